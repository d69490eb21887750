"""Integer noise on any number of coordinates: discrete Laplace, discrete Gaussian and Skellam."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    Law,
    Laws,
    SkellamShift,
    symmetric,
)
from dpcompose.mechanisms.base import Mechanism, quotient
from dpcompose.mechanisms.parameter import Parameter, declare, noise
from dpcompose.values import Adjacency, exact

LARGEST_SHIFT = 4096
Change = int | tuple[int, ...]


def _change(name: str, value: Any) -> Change:
    """Return a change as one nonzero integer, or a tuple of the nonzero integers of several
    coordinates.

    Raises:
        DomainError: If `value` is neither, or all its integers are 0.
    """
    remedy = "Leave out coordinates that do not change"
    if isinstance(value, tuple | list):
        steps = tuple(_step(f"{name}[{index}]", step) for index, step in enumerate(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        steps = tuple(step for step in steps if step != 0)
        if not steps:
            raise DomainError(name, value, "at least one integer other than 0", remedy)
        return steps
    step = _step(name, value)
    if step == 0:
        raise DomainError(name, value, "an integer other than 0", remedy)
    return step


def _step(name: str, value: object) -> int:
    size = check.integer(name, value)
    if not abs(size) <= LARGEST_SHIFT:
        raise DomainError(name, size, f"an integer of size at most {LARGEST_SHIFT}")
    return size


def _skellam_variance(name: str, value: Any) -> float:
    variance = check.positive(name, value)
    if not 1e-3 <= variance <= 1e6:
        remedy = "With more noise use DiscreteGaussian, or a RenyiCurve"
        raise DomainError(name, variance, "a number between 1e-3 and 1e6", remedy)
    return variance


CHANGE = Parameter("change", _change)


@dataclass(frozen=True, repr=False)
class _Integer(Mechanism):
    """Integer noise of one kind on coordinates that a record changes by stated integers.

    Args:
        shift: The change of each coordinate when a record is added or removed.
        replace: The change of each coordinate when a record is replaced.
    """

    _: KW_ONLY
    shift: Change = field(default=1, metadata=declare(CHANGE))
    replace: Change | None = field(default=None, metadata=declare(CHANGE.optional()))

    @abstractmethod
    def _loss(self, shift: int) -> Law: ...

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return one symmetric law for every coordinate that changes."""
        change = self._change_under(adjacency)
        counts = Counter(abs(step) for step in (change if isinstance(change, tuple) else (change,)))
        return symmetric(*((self._loss(step), times) for step, times in counts.items()))

    def _change_under(self, adjacency: Adjacency) -> Change:
        """Return the change of each coordinate under an adjacency."""
        if adjacency is not Adjacency.REPLACE:
            return self.shift
        if self.replace is not None:
            return self.replace
        if isinstance(self.shift, tuple):
            raise UnsupportedError(
                repr(self),
                "what replacing a record changes does not follow from a tuple of shifts",
                "Give replace=(...), one change per coordinate",
            )
        return 2 * self.shift


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(_Integer):
    """An integer vector plus, on each coordinate, integer noise of probability proportional to
    e^(-|x| / scale).

    >>> from dpcompose import DiscreteLaplace
    >>> DiscreteLaplace(4.0, shift=4).delta(epsilon=0.3).contains(0.3005631528977894)
    True

    Args:
        scale: The scale of the noise in units of the integers; from 1e-3 to 1e9.
        shift: The integer change of the one coordinate when a record is added or removed, or a
            tuple with one change per coordinate.
        replace: The same for replacing a record; by default twice the shift of a single coordinate.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [GhoshRoughgardenSundararajan2012, Definition 2.1]
    """

    scale: float = field(metadata=declare(noise("1e-3", "1e9")))

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return the L1 distance divided by the scale, exact, at the reading that costs more."""
        change = self._change_under(adjacency)
        distance = sum(abs(step) for step in (change if isinstance(change, tuple) else (change,)))
        return TypedAmounts(quotient(self.scale, float(distance), None, Adjacency.ADD_REMOVE))

    def _loss(self, shift: int) -> Law:
        return DiscreteLaplaceShift(self.scale, shift)


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(_Integer):
    """An integer vector plus, on each coordinate, integer noise of probability proportional to
    e^(-x^2 / (2 sigma^2)).

    >>> from dpcompose import DiscreteGaussian
    >>> DiscreteGaussian(3.0).delta(epsilon=0.5).contains(0.01191565439117751)
    True

    Args:
        sigma: The parameter of the noise, close to its standard deviation; from 0.01 to 1e9.
        shift: The integer change of the one coordinate when a record is added or removed, or a
            tuple with one change per coordinate.
        replace: The same for replacing a record; by default twice the shift of a single coordinate.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [CanonneKamathSteinke2020, Theorem 7]
    """

    sigma: float = field(metadata=declare(noise("0.01", "1e9", response="unordered", reading=None)))

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return rho from the squared L2 distance, exact, at the reading that costs more.

        Other answers use sigma as a double: with less noise the loss at an epsilon may be smaller,
        so that neither reading costs more.
        """
        change = self._change_under(adjacency)
        square = sum(step**2 for step in (change if isinstance(change, tuple) else (change,)))
        return TypedAmounts(rho=square / (2 * min(exact(self.sigma), Fraction(self.sigma)) ** 2))

    def _loss(self, shift: int) -> Law:
        return DiscreteGaussianShift(self.sigma, shift)


@dataclass(frozen=True, repr=False)
class Skellam(_Integer):
    """An integer vector plus, on each coordinate, the difference of two Poisson variables, as used
    in secure aggregation.

    The sum over several clients, each with a part of the variance, has the same law: state the
    total variance of the honest clients. Values must be rounded to integers and clipped before the
    noise is added, and the sum must not wrap around.

    >>> from dpcompose.mechanisms import Skellam
    >>> Skellam(4.0).delta(epsilon=0.3).contains(0.10256971393864817)
    True

    Args:
        variance: The variance of the noise of one coordinate; between 1e-3 and 1e6.
        shift: The integer change of the one coordinate when a record is added or removed, or a
            tuple with one change per coordinate.
        replace: The same for replacing a record; by default twice the shift of a single coordinate.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [AgarwalKairouzLiu2021, Definition 3.1]
    """

    variance: float = field(metadata=declare(Parameter("noise", _skellam_variance, "decreasing")))

    def _loss(self, shift: int) -> Law:
        return SkellamShift(self.variance, shift)
