"""The probability that the privacy loss is above epsilon, P[L > epsilon], in both directions.

With a = e^epsilon and H(a) = delta(ln a) = E_P[(1 - a e^-L)_+], convex and falling, the right derivative is
H'(a+) = -E_P[e^-L; L > ln a], so that P[L > epsilon] = delta(epsilon) - a H'(a+). For e0 < epsilon < e1 the slope lies
between two secants, and a / (e^e1 - a) = 1 / expm1(e1 - epsilon):

    (H(a) - H(e^e1)) / expm1(e1 - epsilon)  <=  -a H'(a+)  <=  (H(e^e0) - H(a)) / -expm1(e0 - epsilon).

Each secant takes the certified end of either delta that keeps the inequality; the best of several distances is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcompose.composition.question import PrivacyQuestion
from dpcompose.errors import UnsupportedError
from dpcompose.loss import Product
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, down, up

FINEST = 1e-13
"""The relative width of the deltas that are asked for."""
_DISTANCES = tuple(10.0**-place for place in range(1, 9))
_ROUNDING = 16 * UNIT_ROUNDOFF
_METHOD = Certificate("secants of the certified profile", unit="relative probability")


@dataclass(frozen=True)
class LossAbove:
    """P[L > epsilon] for the pair of neighbors that attains delta(epsilon) at every epsilon.

    Args:
        epsilon: The epsilon.
        removed: With L = ln P / Q, P the answers' distribution with the record, Q without it, and the answers drawn
            from P: how often an answer speaks so loudly of somebody who is in.
        added: With L = ln Q / P, and the answers drawn from Q: the same of somebody who is not in.
    """

    epsilon: float
    removed: Bound
    added: Bound

    @property
    def largest(self) -> Bound:
        """The larger of the two."""
        return Bound(
            max(self.removed.lower, self.added.lower),
            max(self.removed.upper, self.added.upper),
            _METHOD,
        )


def loss_above(question: PrivacyQuestion, epsilon: float) -> LossAbove:
    """Both probabilities.

    Raises:
        UnsupportedError: If the losses are not those of one pair of neighbors, or a proof is asked for.
    """
    if not question.tight or question.tight_alone or question.asking.proof:
        raise UnsupportedError(
            "the probability of a loss above epsilon",
            "a pair that only dominates bounds every delta, and no probability of a loss",
            "Ask delta(epsilon=...), which holds for every pair; or ask without proof and with Orientation.SAME",
        )
    both = [_above(product, epsilon) for product in question.dominating[:2]]
    return LossAbove(epsilon, both[0], both[-1])


def _above(product: Product, epsilon: float) -> Bound:
    def at(point: float) -> Bound:
        return product.delta(point, tolerance=FINEST)

    if math.isinf(epsilon):
        here = at(epsilon)
        return Bound(here.lower, here.upper, _METHOD) if epsilon > 0 else Bound(1.0, 1.0, _METHOD)
    here, least, most = at(epsilon), 0.0, math.inf
    for distance in _DISTANCES:
        size = distance * max(1.0, abs(epsilon))
        left, right = epsilon - size, epsilon + size
        if not left < epsilon < right:
            break
        fall = (here.lower - at(right).upper) / math.expm1(right - epsilon)
        rise = (at(left).upper - here.lower) / -math.expm1(left - epsilon)
        least, most = max(least, fall * (1 - _ROUNDING)), min(most, rise * (1 + _ROUNDING))
    return Bound(
        min(max(down(here.lower + least), 0.0), 1.0), min(up(here.upper + most), 1.0), _METHOD
    )
