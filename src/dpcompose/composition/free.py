"""Freely oriented rounds: Definition 3.7 to the letter, where the adversary places each pair anew.

A round is a set of alternatives: its loss when the record is removed, when it is added (and, for a group, when some are
removed and some added). Which one it is may depend on all earlier answers. From above every round is held by the one
loss over all its alternatives (`loss.envelope`), and at every Renyi order by the largest of their moments; from below
by orientations fixed beforehand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dpcompose.errors import UnsupportedError
from dpcompose.loss.atomize import envelope
from dpcompose.loss.base import Loss, Pair
from dpcompose.loss.product import Product

Rounds = tuple[tuple[tuple[Loss, ...], int], ...]
Counted = tuple[tuple[Pair, int], ...]


def rounds(alternatives: Iterable[tuple[Iterable[Loss], int]], *, alone: bool) -> Rounds:
    """The rounds with their distinct alternatives; empty if there is no choice, or but one round to make it in.

    Args:
        alternatives: The losses that a round may have, with the number of such rounds.
        alone: Whether nothing else is composed: then a single round is oriented once, whoever orients it.
    """
    found = tuple((tuple(dict.fromkeys(losses)), times) for losses, times in alternatives)
    free = any(len(losses) > 1 for losses, _ in found)
    single = alone and sum(times for _, times in found) == 1
    return found if free and not single else ()


def above(free: Rounds) -> Product:
    """A product that dominates every adaptive choice among the alternatives.

    Reference: [ZhuDongWang2022, Theorem 10]
    """
    return Product(tuple((losses[0] if len(losses) == 1 else envelope(losses), times) for losses, times in free))


def below(pairs: Counted) -> tuple[Product, ...]:
    """Sequences fixed beforehand, besides all removed and all added: half or a quarter of the rounds turned."""
    total = sum(times for pair, times in pairs if not pair.symmetric)
    found: list[Product] = []
    for first in sorted({total // 2, total // 4, total - total // 4}):
        for forward in (True, False) if 0 < first < total else ():
            product = _sequence(pairs, first, forward=forward)
            if product not in found:
                found.append(product)
    return tuple(found)


def _sequence(pairs: Counted, first: int, *, forward: bool) -> Product:
    """The first rounds in one order, the others in the other."""
    counts: Counter[Loss] = Counter()
    for pair, times in pairs:
        turned = 0 if pair.symmetric else min(first, times)
        first -= turned
        one, other = (pair.remove, pair.add) if forward else (pair.add, pair.remove)
        counts[one] += turned
        counts[other] += times - turned
    return Product(tuple((loss, times) for loss, times in counts.items() if times))


def unproved() -> UnsupportedError:
    """Why no proof is offered."""
    reason = "the loss above both orders is enclosed from values of their profiles in floats"
    return UnsupportedError("proof=True with Orientation.FREE", reason, "Ask without proof, or with Orientation.SAME")
