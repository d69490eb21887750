"""Adversarial orientation: Definition 3.7 to the letter, where the adversary places each pair anew.

A round is a set of alternatives: its loss when the record is removed, when it is added (and, for a group, when some are
removed and some added). Which one it is may depend on all earlier answers. From above every round is held by the one
loss over all its alternatives (`loss.envelope`), and at every Renyi order by the largest of their moments; from below
by orientations fixed beforehand.
"""

from __future__ import annotations

from collections import Counter

from dpcompose.composition.part import Pairs
from dpcompose.errors import UnsupportedError
from dpcompose.loss import Loss, Product, envelope

Rounds = tuple[tuple[tuple[Loss, ...], int], ...]
"""The alternatives of each round, and how many such rounds there are."""


def oriented(alternatives: Rounds, *, complete: bool) -> Rounds:
    """The rounds with their distinct alternatives; empty if there is no choice, or but one round to make it in.

    Args:
        alternatives: The losses that a round may have, with the number of such rounds.
        complete: Whether nothing else is composed: then a single round is oriented once, whoever orients it.
    """
    rounds = tuple((tuple(dict.fromkeys(losses)), times) for losses, times in alternatives)
    choice = any(len(losses) > 1 for losses, _ in rounds)
    single = complete and sum(times for _, times in rounds) == 1
    return rounds if choice and not single else ()


def dominating(rounds: Rounds) -> Product:
    """A product that dominates every adaptive choice among the alternatives.

    Reference: [ZhuDongWang2022, Theorem 10]
    """
    return Product(
        tuple(
            (losses[0] if len(losses) == 1 else envelope(losses), times) for losses, times in rounds
        )
    )


def fixed_beforehand(pairs: Pairs) -> tuple[Product, ...]:
    """Sequences fixed beforehand, besides all removed and all added: half or a quarter of the rounds reversed."""
    total = sum(times for pair, times in pairs if not pair.symmetric)
    found: list[Product] = []
    for first in sorted({total // 2, total // 4, total - total // 4}):
        for forward in (True, False) if 0 < first < total else ():
            product = _sequence(pairs, first, forward=forward)
            if product not in found:
                found.append(product)
    return tuple(found)


def _sequence(pairs: Pairs, first: int, *, forward: bool) -> Product:
    """The first rounds in one order, the others in the other."""
    counts: Counter[Loss] = Counter()
    for pair, times in pairs:
        early = 0 if pair.symmetric else min(first, times)
        first -= early
        one, other = (pair.remove, pair.add) if forward else (pair.add, pair.remove)
        counts[one] += early
        counts[other] += times - early
    return Product(tuple((loss, times) for loss, times in counts.items() if times))


def refuse_proof() -> None:
    """Refuse to evaluate rounds that an adversary orients in ball arithmetic."""
    reason = "the loss above both orders is enclosed from values of their profiles in floats"
    raise UnsupportedError(
        "proof=True with Orientation.FREE", reason, "Ask without proof, or with Orientation.SAME"
    )
