"""The two directions (record removed, record added) of a composition, as products of losses, and
their combined bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from dpcompose.composition.losses import Pairs
from dpcompose.errors import UnsupportedError
from dpcompose.loss import Loss, Product, envelope
from dpcompose.values import Bound, Certificate

# Adversarial orientation: in every round of Definition 3.7 the adversary may choose anew which data
# set contains the record.
#
# A round is a set of alternatives: its loss when the record is removed, when it is added (and, for
# a group, when some members are removed and some added). The choice may depend on all earlier
# answers. The upper bound uses in every round the one loss that dominates all its alternatives
# (`loss.envelope`), and at every Renyi order the largest of their moments. The lower bound uses
# orientations fixed in advance.


Rounds = tuple[tuple[tuple[Loss, ...], int], ...]
"""The alternative losses of each kind of round, with the number of such rounds."""


def oriented(alternatives: Rounds, *, complete: bool) -> Rounds:
    """Return the rounds with their distinct alternatives; empty if no round, or only a single one,
    has several.

    Args:
        alternatives: The losses that each kind of round may have, with the number of such rounds.
        complete: Whether nothing else is composed: then a single round has the same answer in any
            orientation.
    """
    rounds = tuple((tuple(dict.fromkeys(losses)), times) for losses, times in alternatives)
    choice = any(len(losses) > 1 for losses, _ in rounds)
    single = complete and sum(times for _, times in rounds) == 1
    return rounds if choice and not single else ()


def above_every_choice(rounds: Rounds) -> Product:
    """Return a product of losses that dominates every adaptive choice among the alternatives of
    each round.

    Reference: [ZhuDongWang2022, Theorem 10]
    """
    return Product(
        tuple(
            (losses[0] if len(losses) == 1 else envelope(losses), times) for losses, times in rounds
        )
    )


def fixed_beforehand(pairs: Pairs) -> tuple[Product, ...]:
    """Return the products of fixed orientations other than all removed or all added: a half or a
    quarter of the rounds reversed.
    """
    total = sum(times for pair, times in pairs if not pair.symmetric)
    found: list[Product] = []
    for first in sorted({total // 2, total // 4, total - total // 4}):
        for forward in (True, False) if 0 < first < total else ():
            product = _sequence(pairs, first, forward=forward)
            if product not in found:
                found.append(product)
    return tuple(found)


def _sequence(pairs: Pairs, first: int, *, forward: bool) -> Product:
    """Return the product of the first `first` rounds in one orientation and the others in the
    opposite one.

    Args:
        pairs: The losses of the rounds with their counts.
        first: The number of leading rounds.
        forward: Whether the leading rounds remove the record.
    """
    counts: Counter[Loss] = Counter()
    for pair, times in pairs:
        early = 0 if pair.symmetric else min(first, times)
        first -= early
        one, other = (pair.remove, pair.add) if forward else (pair.add, pair.remove)
        counts[one] += early
        counts[other] += times - early
    return Product(tuple((loss, times) for loss, times in counts.items() if times))


def refuse_oriented_proof() -> None:
    """Raise an UnsupportedError: rounds with adversarial orientation are not evaluated in ball
    arithmetic.
    """
    reason = "an adversarial orientation is evaluated from privacy profiles in floats, not in ball arithmetic"
    raise UnsupportedError(
        "proof=True with Orientation.FREE", reason, "Ask without proof, or with Orientation.SAME"
    )


_NOTE = "the upper end is a dominating pair's or an elementary theorem's; the lower end is that of attained losses"
WIDE = 1e-6
"""Bounds with at least this relative width are compared with other theorems."""


def wide(bound: Bound, tolerance: float) -> bool:
    """Return whether a bound is wider than the tolerance by so much that another theorem may
    improve it.
    """
    return bound.lower < bound.upper * (1 - (WIDE + 4 * tolerance)) and bound.upper > 1e-320


def least(bound: Bound, others: Iterable[Bound]) -> Bound:
    """Return `bound`, with the smallest upper end among it and `others`; others below its lower end
    are ignored.
    """
    best = min(
        (bound, *(other for other in others if other.upper >= bound.lower)),
        key=lambda bound: bound.upper,
    )
    return bound if best is bound else apart([bound], best)


def greatest(bounds: Sequence[Bound]) -> Bound:
    """Return a bound on the maximum of several bounded numbers."""
    if len(bounds) == 1:
        return bounds[0]
    leader = max(bounds, key=lambda bound: (bound.upper, bound.lower))
    return Bound(max([bound.lower for bound in bounds]), leader.upper, leader.certificate)


def apart(lower: Sequence[Bound], upper: Bound) -> Bound:
    """Return the bound with the largest lower end and the upper end of other losses; its
    certificate says so.
    """
    certificate = Certificate(
        upper.certificate.method,
        upper.certificate.budget,
        upper.certificate.unit,
        (*upper.certificate.notes, _NOTE),
    )
    low = max((bound.lower for bound in lower), default=0.0)
    return Bound(min(low, upper.upper), upper.upper, certificate)


def directions(pairs: Pairs) -> tuple[Product, ...]:
    """Return the product of the losses with the record removed and, where it differs, the one with
    it added.
    """
    remove = Product(tuple([(pair.remove, times) for pair, times in pairs]))
    if False in [pair.symmetric for pair, _ in pairs]:
        return (remove, Product(tuple([(pair.add, times) for pair, times in pairs]), remove))
    return (remove,)


def attained_directions(pairs: Pairs, *, adversary: bool = False) -> tuple[Product, ...]:
    """Return the products of losses that mechanisms attain: one choice of attained losses for all
    pairs, without pairs that have none.

    Args:
        pairs: The losses of the composition.
        adversary: Whether sequences of mixed orientations are included.
    """
    known = [(pair, times) for pair, times in pairs if pair.attained or pair.attained_parts]
    found: list[Product] = []
    for choice in range(max((len(pair.attained_parts) for pair, _ in known), default=0) or 1):
        chosen = tuple(
            (
                pair
                if pair.attained
                else pair.attained_parts[min(choice, len(pair.attained_parts) - 1)],
                times,
            )
            for pair, times in known
        )
        found.extend(directions(chosen))
        found.extend(fixed_beforehand(chosen) if adversary else ())
    return tuple(found)


# Bounds for (P, Q) from the profile of (Q, P): a test and its complement.


_FAR, _HALVINGS, _SMALLEST, _LARGEST = 1e-2, 16, 1e-30, 30.0
"""The width from which the reverse order is used, its halvings, and the smallest and the largest epsilon."""


def with_the_other_order(
    products: Sequence[Product], delta: float, bounds: Sequence[Bound]
) -> list[Bound]:
    """Return the bounds on epsilon of (P, Q) and (Q, P), the wide one narrowed by means of the
    other's profile.

    Args:
        products: The losses of both orders.
        delta: The delta of the bounds.
        bounds: The bounds on epsilon of both orders.
    """
    first, second = bounds
    return [_helped(first, second, products[1], delta), _helped(second, first, products[0], delta)]


def _helped(bound: Bound, others: Bound, other: Product, delta: float) -> Bound:
    """Return `bound` narrowed by the profile of `other`, where it is wide and the bound of `other`
    is narrow.
    """
    within = bound.lower < _LARGEST and bound.upper > _SMALLEST
    helps = within and bound.width > _FAR * bound.upper and not wide(others, 1e-6)
    return epsilon_by_the_other_order(other, delta, bound) if helps else bound


def epsilon_by_the_other_order(other: Product, delta: float, bound: Bound) -> Bound:
    """Return bounds on epsilon of (P, Q) at `delta` from the profile H of (Q, P), never wider than
    `bound`.

    A test of P against Q and its complement have P(S) - e^x Q(S) = 1 - e^x + e^x (Q(S^c) - e^-x
    P(S^c)), so that delta of (P, Q) at x is 1 - e^x + e^x H(-x), computed with an error of at most
    8 U (1 + e^x).

    Args:
        other: The losses of (Q, P).
        delta: The delta of the bound.
        bound: A bound on epsilon of (P, Q).
    """
    lower, upper = bound.lower, min(bound.upper, _LARGEST)
    low, high = lower, upper
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found, growth = other.delta(-middle, tolerance=1e-13), math.exp(middle)
        rounding = 2.0**-50 * (1 + growth)
        least_here, most_here = (
            growth * end - math.expm1(middle) for end in (found.lower, found.upper)
        )
        if most_here + rounding <= delta:
            high = upper = middle
        elif least_here - rounding > delta:
            low = lower = middle
        else:  # close to the solution, where only a larger epsilon is proved
            break
    if upper >= bound.upper and lower <= bound.lower:
        return bound
    certificate = Certificate("profile of the other order", notes=bound.certificate.notes)
    return Bound(lower, upper if upper < _LARGEST else bound.upper, certificate)
