"""Mechanisms known only by what is promised of them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from dpcompose.composition.container import Pairs
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.loss.gaussian import GaussianLoss
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.loss.twice import two_in_a_row
from dpcompose.mechanism.base import Stated, symmetric
from dpcompose.numerics import check

LARGEST_EPSILON = 1e5


@dataclass(frozen=True)
class BlackBox(Stated):
    """Any (epsilon, delta)-differentially private mechanism.

    Its losses are those of the worst such mechanism: +epsilon, -epsilon, or infinite with probability delta.

    >>> from dpcompose import BlackBox
    >>> (BlackBox(0.1) * 100).epsilon(delta=1e-6).contains(4.774567588107986)
    True

    Args:
        epsilon: In nats; >= 0.
        delta: In [0, 1].
        holds_under: The adjacency of the statement; asked about replacing, an add-remove statement is a group of two.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [KairouzOhViswanath2015, Theorem 3.3]
    """

    epsilon: float
    _: KW_ONLY
    delta: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", bounded_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check.probability("delta", self.delta))

    def pairs(self, adjacency: Adjacency) -> Pairs:
        """The two-point loss, or the pair of its trade-off function iterated twice."""
        if self._doubled(adjacency):
            return symmetric((two_in_a_row(self.epsilon, delta=self.delta, categories=2), 1))
        return symmetric((TwoPointLoss(self.epsilon, self.delta), 1))


@dataclass(frozen=True)
class Concentrated(Stated):
    """Any mechanism that is rho-zero-concentrated differentially private, except with probability delta.

    It has no privacy loss of its own, so a composition with one is bounded from above by Renyi divergences.

    Args:
        rho: >= 0.
        delta: In [0, 1].
        holds_under: The adjacency of the statement; asked about replacing, an add-remove statement is 4 rho if delta is 0.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [BunSteinke2016, Definition 1.1]
    """

    rho: float
    _: KW_ONLY
    delta: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", check.nonnegative("rho", self.rho))
        object.__setattr__(self, "delta", check.probability("delta", self.delta))

    def pairs(self, adjacency: Adjacency) -> None:
        """None: only the curve rho * order is known."""
        self.promise(adjacency)

    def promise(self, adjacency: Adjacency) -> ConcentratedDP:
        """The guarantee; 4 rho for a group of two."""
        if not self._doubled(adjacency):
            return ConcentratedDP(self.rho, delta=self.delta)
        if self.delta > 0:
            raise UnsupportedError(repr(self), "no group guarantee is offered for zero-concentrated privacy with delta > 0")
        return ConcentratedDP(4 * self.rho)


@dataclass(frozen=True)
class GaussianDP(Stated):
    """Any mechanism that is mu-Gaussian differentially private.

    Args:
        mu: In (0, 1e6), or 0.
        holds_under: The adjacency of the statement; asked about replacing, an add-remove statement is 2 mu.

    Raises:
        DomainError: If mu is outside its domain.

    Reference: [DongRothSu2022, Definition 2.6]
    """

    mu: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mu", check.nonnegative("mu", self.mu))
        if not (self.mu == 0 or 1e-12 < self.mu < 1e6):
            raise DomainError("mu", self.mu, "0, or a number between 1e-12 and 1e6")

    def pairs(self, adjacency: Adjacency) -> Pairs:
        """The Gaussian loss of mu, or of 2 mu."""
        mu = 2 * self.mu if self._doubled(adjacency) else self.mu
        return symmetric((GaussianLoss(mu, 0), 1)) if mu > 0 else ()


def bounded_epsilon(epsilon: object) -> float:
    """An epsilon of at most 1e5 nats: beyond that nothing is promised in any useful sense."""
    number = check.nonnegative("epsilon", epsilon)
    if not number <= LARGEST_EPSILON:
        raise DomainError("epsilon", number, f"at most {LARGEST_EPSILON:g}")
    return number
