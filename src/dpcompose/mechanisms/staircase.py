"""The staircase mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpcompose import check
from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import Atoms, Laws, Pair, TwoPoint, alike
from dpcompose.mechanisms.base import Stated
from dpcompose.mechanisms.parameter import HOLDS_UNDER, Parameter, amount, at_most, declare
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, exact

SMALLEST, LARGEST = 1e-9, 300.0
_EPSILON = amount(at_most(LARGEST, "BlackBox(epsilon) dominates it"))
_GAMMA = Parameter("number", check.probability).optional()


@dataclass(frozen=True, init=False, repr=False)
class Staircase(Stated):
    """A number plus staircase noise of its sensitivity D: a step density that falls by e^-epsilon
    over every distance D.

    With h its height at 0, it is h for |x| < gamma D, h e^-epsilon up to D, and e^-epsilon times as
    much at |x| + D. A shift by at most D crosses at most one step net: losses are 0 and +-epsilon.
    Let p be the mass of +epsilon. Then p (1 - e^-epsilon) is the total variation of the shift,
    which grows with it, since the density is symmetric and unimodal: D itself is the worst. There p
    = 1/2 + h D min(gamma, 1 - gamma).

    >>> from dpcompose.mechanisms import Staircase
    >>> Staircase(1.0).delta(epsilon=0.5).contains(0.27414373101677103)
    True

    Args:
        epsilon: The largest loss, in nats; in [0, 300].
        gamma: The position of the step, in units of D, in [0, 1]; by default 1 / (1 + e^(epsilon /
            2)), which minimizes the expected absolute error.
        holds_under: The adjacency of the sensitivity D.

    Raises:
        DomainError: If a parameter is outside its domain.

    Reference: [GengViswanath2016, Theorem 1]
    """

    stated: float = field(metadata=declare(epsilon=_EPSILON))
    gamma: float | None = field(metadata=declare(_GAMMA))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))

    def __init__(
        self,
        epsilon: float,
        *,
        gamma: float | None = None,
        holds_under: Adjacency = Adjacency.ADD_REMOVE,
    ) -> None:
        self._state(epsilon=epsilon, gamma=gamma, holds_under=holds_under)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts | None:
        """Return epsilon as written; None if it is not the exact cost under `adjacency`."""
        return TypedAmounts(exact(self.stated)) if adjacency is self.holds_under else None

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the law with losses +epsilon, 0 and -epsilon of a shift by the sensitivity."""
        if adjacency is not self.holds_under:
            raise UnsupportedError(
                repr(self),
                f"D is its sensitivity under {self.holds_under.value}, and a larger shift has no proved loss",
                f"State it with holds_under=Adjacency.{adjacency.name} if D is the sensitivity there, or ask "
                ".group(2) for a record replaced",
            )
        fall = math.exp(-self.stated)
        if self.stated < SMALLEST:
            # The largest losses alone: a pair above the one of the noise, which has smaller ones too.
            above = TwoPoint(self.stated)
            return ((Pair(above, above, attained=False), 1),)
        gamma = 1 / (1 + math.exp(self.stated / 2)) if self.gamma is None else self.gamma
        scale = -math.expm1(-self.stated) / (2 * (gamma + fall * (1 - gamma)))
        # What is left to 0, without cancellation; at the default 1 - 2 gamma is tanh(epsilon / 4).
        apart = math.tanh(self.stated / 4) if self.gamma is None else 1 - 2 * gamma
        rest = scale * (fall * apart if apart > 0 else -apart)
        most = 0.5 + scale * min(gamma, 1 - gamma)
        upper, lower, losses = (
            (most, rest, most * fall),
            (most * fall, rest, most),
            (self.stated, 0.0, -self.stated),
        )
        lattice = (self.stated, 0.0)
        return alike(Atoms(upper, lower, losses, lattice, 64 * UNIT_ROUNDOFF))
