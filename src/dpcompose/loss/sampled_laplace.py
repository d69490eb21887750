"""The losses of Laplace noise on a Poisson sample: (1 - q) Q + q P against Q, in both orders.

Reference: [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpcompose.contour import Transform
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss
from dpcompose.loss.product import Product
from dpcompose.loss.sampled import Enclosed, SampledLoss
from dpcompose.loss.sampled_laplace_sum import SampledLaplaceSum
from dpcompose.proof import Ends, Field
from dpcompose.values import Bound

LARGEST_EPSILON, LARGEST_RATE = 16.0, 0.99
"""Beyond these the density between the atoms takes too many points."""
_TOGETHER = 128
"""Losses that share arrays."""


@dataclass(frozen=True)
class SampledLaplaceLoss(Loss):
    """log(1 - q + q e^l), or -log(1 - q + q e^-l), of the loss l of Laplace noise.

    Args:
        base: The loss without sampling, which has atoms at -epsilon and epsilon and a density between.
        epsilon: The largest loss of the base.
        ulps: How many units of roundoff epsilon may be off.
        rate: q, in (0, `LARGEST_RATE`].
        remove: Whether the loss is that of (with the record, without it).
    """

    base: Loss
    epsilon: float
    ulps: int
    rate: float
    remove: bool

    @cached_property
    def _alone(self) -> tuple[SampledLoss, SampledLoss]:
        """The same loss by its profile; composed, atoms above it and atoms below it."""
        base = Enclosed(Product(((self.base, 1),)))
        return SampledLoss(base, self.rate, self.remove, True), SampledLoss(
            base, self.rate, self.remove, False
        )

    @property
    def maximum(self) -> float:
        return self._alone[0].maximum

    @property
    def minimum(self) -> float:
        return self.transform(1).minimum

    @property
    def largest(self) -> Bound:
        return self._alone[0].largest

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        return self._alone[0].profile(epsilon)

    def inverse(self, delta: float) -> Bound | None:
        return self._alone[0].inverse(delta)

    def enclosing(self) -> tuple[Atoms, Atoms]:
        above, below = self._alone
        return above.atoms(), below.atoms()

    def transform(self, times: int) -> Transform:
        return self.pool([(self, times)])[0]

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """Losses of one direction in rows of one transform, those of similar size together."""
        found: list[Transform] = []
        for remove in (True, False):
            rows = sorted(
                (entry for entry in group if entry[0].remove is remove),
                key=lambda entry: entry[0].maximum,
            )
            for at in range(0, len(rows), _TOGETHER):
                part = rows[at : at + _TOGETHER]
                columns = np.array(
                    [(loss.epsilon, loss.rate, times) for loss, times in part], dtype=float
                )
                ulps = max(loss.ulps for loss, _ in part)
                found.append(
                    SampledLaplaceSum(columns[:, :1], columns[:, 1:2], columns[:, 2:], ulps, remove)
                )
        return found

    def ball(self, field: Field) -> Ends:
        """Between the atoms below and the atoms above."""
        above, below = (AtomicLoss(atoms).ball(field) for atoms in self.enclosing())
        return Ends(below.below, above.above)
