"""The pair of a mechanism on a Poisson sample, from the losses of the mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.loss.atomic import AtomizedLoss
from dpcompose.loss.atomize import atomized
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss, Pair, sampled_profile
from dpcompose.loss.product import Product
from dpcompose.numerics import U, log_mixed
from dpcompose.values import Bound, Certificate, down, up

_TOLERANCE = 1e-9
_CERTIFICATE = Certificate("closed form, from the profile without sampling")


def sampled_pair(remove: Product, add: Product, rate: float, *, attained: bool) -> Pair:
    """((1 - q) Q + q P, Q) from the remove loss of (P, Q), and (P', (1 - q) P' + q Q') from the add loss of (P', Q').

    In closed form where the loss offers one; otherwise the certified profile of the one sample is that of the base
    shifted, and composed it is replaced by atoms, once from above and once from below, which enclose the truth.

    Reference: [ZhuDongWang2022, Theorem 11]
    """
    one, two = _closed(remove), _closed(add)
    closed = [
        loss and loss.sampled(rate, remove=side) for loss, side in ((one, True), (two, False))
    ]
    if closed[0] is not None and closed[1] is not None:
        return Pair(closed[0], closed[1], attained)
    base = Enclosed(remove)
    bases = base, base if add == remove else Enclosed(add)
    above, below = (
        Pair(
            SampledLoss(bases[0], rate, True, side),
            SampledLoss(bases[1], rate, False, side),
            not side,
        )
        for side in (True, False)
    )
    return Pair(above.remove, above.add, False, (below,) if attained else ())


@dataclass(frozen=True)
class Enclosed:
    """A product with atoms that dominate it and atoms that it dominates, found when they are asked for."""

    product: Product

    @cached_property
    def atoms(self) -> tuple[Atoms, Atoms]:
        """The atoms that dominate the product, and those that it dominates."""
        closed = _closed(self.product)
        found = closed.enclosing() if closed is not None else None
        return found or atomized(_profiles(self.product), self.product.extremes.upper)


@dataclass(frozen=True)
class SampledLoss(AtomizedLoss):
    """The loss on a Poisson sample: by itself its profile is that of the base, shifted; composed it is atoms.

    Args:
        base: The sum of losses without sampling.
        rate: q, in (0, 1).
        remove: Whether it is the loss of ((1 - q) Q + q P, Q), else of (P, (1 - q) P + q Q).
        above: Whether the atoms dominate the truth or are dominated by it.
    """

    base: Enclosed
    rate: float
    remove: bool
    above: bool

    def _listed(self) -> Atoms:
        return self.base.atoms[0 if self.above else 1].sampled(self.rate, remove=self.remove)

    def profile(self, epsilon: float) -> Bound:
        if epsilon < -40:
            return Bound(-math.expm1(epsilon) * (1 - 8 * U), 1.0, _CERTIFICATE)
        found = sampled_profile(epsilon, self.rate, remove=self.remove, base=self._base)
        return Bound(found.lower, found.upper, _CERTIFICATE)

    def _base(self, location: float, error: float) -> Bound:
        high, low = self.base.product.deltas(
            [location - error, location + error], tolerance=_TOLERANCE
        )
        return Bound(low.lower, high.upper)

    def inverse(self, delta: float) -> Bound | None:
        """The inverse of the profile if the record is removed: ln(1 + q (e^y - 1)), where y is the epsilon at which the
        base's profile is delta / q."""
        if not self.remove or not delta > 0:
            return None
        if delta >= self.rate:
            return Bound(0.0, 0.0, _CERTIFICATE)
        ends = up(delta / self.rate), down(delta / self.rate)
        found = [
            self.base.product.epsilon(end, tolerance=_TOLERANCE) if end < 1 else Bound(0.0, 0.0)
            for end in ends
        ]
        (lower, error), (upper, spread) = self._mixed(found[0].lower), self._mixed(found[1].upper)
        return Bound(lower * (1 - error), upper * (1 + spread), _CERTIFICATE)

    def _mixed(self, loss: float) -> tuple[float, float]:
        """ln(1 - q + q e^loss) for a loss >= 0, and its relative error."""
        if loss < 700:
            return math.log1p(self.rate * math.expm1(loss)), 16 * U
        log_rate = math.log(self.rate)
        relative_error = 16 * U * (1 + loss + abs(log_rate)) if loss < math.inf else 0.0
        if loss + log_rate < 700:
            return math.log1p(math.exp(loss + log_rate)), relative_error
        return loss + log_rate, relative_error

    @property
    def infinite_mass(self) -> float:
        return self.rate * self.base.product.infinite.lower if self.remove else 0.0

    @property
    def unplaced_mass(self) -> float:
        """Where the base's infinite mass is an interval; on a sample, (1 - q) P + q Q has all that P has."""
        infinite = self.base.product.infinite
        return (
            up(self.rate * up(infinite.upper - infinite.lower))
            if self.remove and infinite.upper > 0
            else 0.0
        )

    @property
    def maximum(self) -> float:
        return self.largest.upper

    @property
    def largest(self) -> Bound:
        """ln(1 - q + q e^l), or -ln(1 - q + q e^-l), of the base's largest l; an infinite one is finite if added."""
        base = self.base.product
        ends, infinite = base.extremes, base.infinite
        low = math.inf if not self.remove and infinite.lower > 0 else ends.lower
        high = math.inf if not self.remove and infinite.upper > 0 else ends.upper
        return Bound(self._placed(low, -1), self._placed(high, 1))

    def _placed(self, loss: float, side: int) -> float:
        """Where an outcome of the base with a given loss lies on the sample, rounded down (side -1) or up (side 1)."""
        signed = loss if self.remove else -loss
        found = float(log_mixed(np.array([signed]), self.rate)[0])
        if found == math.inf:
            return found if self.remove else -found
        error = (24 * abs(found) + 16 * (signed if signed > 700 else 0.0)) * U
        location = (found if self.remove else -found) + side * error * (1 + 1e-9)
        return up(location) if side > 0 else down(location)

    @property
    def minimum(self) -> float:
        return self.composed.minimum


def _profiles(product: Product) -> Callable[[list[float]], list[Bound]]:
    return lambda epsilons: product.deltas(epsilons, tolerance=1e-8)


def _closed(product: Product) -> Loss | None:
    """The one loss that the product amounts to, if there is one."""
    return (
        product.reduced[0][0] if len(product.reduced) == 1 and product.reduced[0][1] == 1 else None
    )
