"""Section 2.3.1, the promise: one person's expected utility, with and without that person's data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, SupportsFloat, runtime_checkable

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF, Bound, down, up


class HasLower(Protocol):
    """A bound, or a curve at one point."""

    @property
    def lower(self) -> SupportsFloat:
        """Not above the truth."""
        ...


@runtime_checkable
class HasTradeoff(Protocol):
    """A guarantee, or the profile of a composition: anything with a trade-off function."""

    def tradeoff(self, alpha: float, /) -> HasLower:
        """The smallest type II error at type I error alpha, for both orders of the pair."""
        ...


@dataclass(frozen=True)
class Promise:
    """The consequence of a guarantee for a utility in [0, utility_range].

    Args:
        guarantee: The guarantee of the mechanism.
        utility_range: The largest utility; infinite for pure guarantees alone.
    """

    guarantee: HasTradeoff
    utility_range: float

    def expected(self, without: float) -> Bound:
        """The interval that the expected utility in the other world lies in.

        For utilities in [0, B] and f the trade-off function it is B [f(1 - m / B), 1 - f(m / B)]: u / B is a randomized
        test. No better interval is true of every such mechanism. For pure guarantees and unbounded utilities it is
        [e^-epsilon m, e^epsilon m]. Both ends are rounded outward.

        Args:
            without: m, the expected utility in one world, in [0, utility_range].

        Raises:
            DomainError: If `without` is outside [0, utility_range].
        """
        mean = check.nonnegative("without", without)
        if not mean <= self.utility_range:
            raise DomainError("without", without, f"a number in [0, {self.utility_range!r}]")
        if self.utility_range == math.inf:
            return self._unbounded(mean)
        share = mean / self.utility_range
        # The quotient is rounded, and both ends increase with it.
        low, high = max(0.0, down(share)), min(1.0, up(share))
        lower = float(self.guarantee.tradeoff(min(1.0, up(1.0 - low))).lower) * self.utility_range
        upper = (1.0 - float(self.guarantee.tradeoff(high).lower)) * self.utility_range
        return Bound(max(0.0, down(lower)), min(self.utility_range, up(up(upper))))

    def _unbounded(self, mean: float) -> Bound:
        epsilon = _pure_epsilon(self.guarantee)
        factor = math.exp(min(epsilon, 709.0)) * (1.0 + 8 * UNIT_ROUNDOFF) if epsilon < 709.0 else math.inf
        upper = up(mean * factor) if mean > 0.0 else 0.0
        return Bound(max(0.0, down(mean * math.exp(-epsilon) * (1.0 - 8 * UNIT_ROUNDOFF))), upper)


def promise(profile: HasTradeoff, *, utility_range: float) -> Promise:
    """The promise of a guarantee about expected utilities in [0, utility_range]: ask the result for `.expected(m)`.

    Pure epsilon: a nonnegative utility changes by a factor of e^epsilon at most, however large it can be. With delta
    above 0 a bounded utility is needed: an event of probability delta may be worth anything.

    >>> from dpcompose.guarantee.approximate import ApproximateDP
    >>> bound = promise(ApproximateDP(0.5, delta=1e-3), utility_range=1.0).expected(0.3)
    >>> round(bound.lower, 12), round(bound.upper, 12)
    (0.181352667254, 0.49561638121)

    Args:
        profile: An `ApproximateDP`, a `GaussianTradeoff`, or a composition's profile.
        utility_range: The largest utility; > 0, infinite for pure guarantees alone.

    Raises:
        DomainError: If utility_range is not a number > 0, or `profile` has no trade-off function.
        UnsupportedError: If utility_range is infinite and the guarantee is not pure.

    Reference: [DworkRoth2014, Section 2.3.1]
    """
    largest = check.real("utility_range", utility_range)
    if not largest > 0.0:
        raise DomainError("utility_range", utility_range, "a number > 0")
    if not isinstance(profile, HasTradeoff):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("profile", profile, "a guarantee with a trade-off function, such as ApproximateDP")
    if largest == math.inf and not _pure_epsilon(profile) < math.inf:
        raise UnsupportedError(
            "the promise about an unbounded utility",
            "with delta > 0 an event of probability delta may be worth anything",
            "State a finite utility_range, or a pure guarantee",
        )
    return Promise(profile, largest)


def _pure_epsilon(guarantee: HasTradeoff) -> float:
    """The epsilon of a guarantee with delta 0; infinite for every other."""
    return guarantee.epsilon if isinstance(guarantee, ApproximateDP) and guarantee.delta == 0.0 else math.inf
