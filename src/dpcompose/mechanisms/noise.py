"""Noise added to a number: Gaussian, Laplace, staircase, and integers for integers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import (
    Atoms,
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    GaussianShift,
    GaussianSum,
    LaplaceShift,
    Law,
    Laws,
    Pair,
    ReplacedGaussian,
    SampledGaussian,
    SkellamShift,
    TwoPoint,
    alike,
    bounded_by,
    symmetric,
)
from dpcompose.mechanisms.base import ContinuousNoise, Mechanism, Stated, quotient, rounded
from dpcompose.mechanisms.parameter import HOLDS_UNDER, Parameter, amount, at_most, declare, noise
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, exact


@dataclass(frozen=True, repr=False)
class Gaussian(ContinuousNoise):
    """A vector plus Gaussian noise N(0, sigma^2) on each coordinate.

    >>> from dpcompose import Gaussian
    >>> Gaussian(2.0, sensitivity=2.0).delta(epsilon=1.0).contains(0.12693673750664394)
    True

    Args:
        sigma: The standard deviation of the noise; finite, > 0.
        sensitivity: The largest L2 distance of the vectors when a record is added or removed;
            finite, > 0.
        replace_sensitivity: The largest L2 distance when a record is replaced; by default twice the
            sensitivity. Not used on a Poisson sample.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [BalleWang2018, Theorem 8]
    """

    sigma: float = field(metadata=declare(noise()))
    noise_name: ClassVar[str] = "sigma"
    closed_form = True

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return rho = mu^2 / 2 and mu^2 for mu = sensitivity / sigma, exact, with each parameter
        as double or decimal, whichever costs more.
        """
        return TypedAmounts.gaussian(self._quotient(adjacency) ** 2)

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return one symmetric law: a Gaussian shift by mu = sensitivity / sigma."""
        return alike(GaussianShift(self._mu(adjacency), rounded(self.sigma)))

    def _mu(self, adjacency: Adjacency) -> float:
        return self.sensitivity_under(adjacency) / self.sigma

    @classmethod
    def summed_laws(cls, members: Sequence[tuple[Self, int]], adjacency: Adjacency) -> Laws | None:
        """Return one symmetric law for all members together; None if a subclass has laws of its
        own.
        """
        if (cls.laws, cls.pairs) != (Gaussian.laws, Gaussian.pairs):
            return None
        return alike(GaussianSum(tuple([(each._mu(adjacency), times) for each, times in members])))

    def sampled_laws(self, rate: float, adjacency: Adjacency) -> Laws:
        """Return the law on a Poisson sample with rate q = `rate`.

        Under replacement it is (1 - q) N(0) + q N(-D) against (1 - q) N(0) + q N(D), with D the
        add-remove sensitivity. If a replaced record moves less than 2 D, it is not attained; a
        record that is replaced by one without effect is.
        """
        far = self.sensitivity_under(adjacency)
        reach = min(far, self.sensitivity)
        noise, ulps = self.sigma / reach, rounded(reach)
        remove, add = (SampledGaussian(noise, rate, side, ulps) for side in (True, False))
        if adjacency is not Adjacency.REPLACE:
            return ((Pair(remove, add), 1),)
        law = ReplacedGaussian(self.sigma / self.sensitivity, rate)
        return alike(law) if far >= 2 * self.sensitivity else bounded_by(law, Pair(remove, add))


@dataclass(frozen=True, repr=False)
class Laplace(ContinuousNoise):
    """A vector plus Laplace noise of density e^(-|x| / scale) / (2 scale) on each coordinate.

    >>> from dpcompose import Laplace
    >>> Laplace(2.0).epsilon(delta=0.0).contains(0.5)
    True

    Args:
        scale: The scale b of the noise; finite, > 0.
        sensitivity: The largest L1 distance of the vectors when a record is added or removed;
            finite, > 0.
        replace_sensitivity: The largest L1 distance when a record is replaced; by default twice the
            sensitivity.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [DworkRoth2014, Theorem 3.6]
    """

    scale: float = field(metadata=declare(noise()))
    noise_name: ClassVar[str] = "scale"
    closed_form = True

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon = sensitivity / scale, exact, with each parameter as double or decimal,
        whichever costs more.
        """
        return TypedAmounts(self._quotient(adjacency))

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return one symmetric law: a Laplace shift by epsilon = sensitivity / scale."""
        epsilon = self.sensitivity_under(adjacency) / self.scale
        quotient = None if adjacency is Adjacency.REPLACE else (self.sensitivity, self.scale)
        return alike(LaplaceShift(epsilon, rounded(self.scale), quotient))


SMALLEST, LARGEST = 1e-9, 300.0
_EPSILON = amount(at_most(LARGEST, "BlackBox(epsilon) dominates it"))
_GAMMA = Parameter("number", check.probability).optional()


@dataclass(frozen=True, init=False, repr=False)
class Staircase(Stated):
    """A number plus staircase noise of its sensitivity D: a step density that falls by e^-epsilon
    over every distance D.

    With h its height at 0, it is h for |x| < gamma D, h e^-epsilon up to D, and e^-epsilon times as
    much at |x| + D. A shift by at most D crosses at most one step net: losses are 0 and +-epsilon.

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

    # Proof. Let p be the mass of +epsilon. Then p (1 - e^-epsilon) is the total variation of the
    # shift, which grows with it, since the density is symmetric and unimodal: D itself is the
    # worst. There p = 1/2 + h D min(gamma, 1 - gamma).

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
        """Return epsilon as the typed decimal; None if it is not the exact cost under `adjacency`."""
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
            # The two-point law with only the largest losses, which dominates the law of the noise.
            return bounded_by(TwoPoint(self.stated))
        gamma = 1 / (1 + math.exp(self.stated / 2)) if self.gamma is None else self.gamma
        scale = -math.expm1(-self.stated) / (2 * (gamma + fall * (1 - gamma)))
        # The mass of loss 0, without cancellation; at the default gamma, 1 - 2 gamma is
        # tanh(epsilon / 4).
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
        """Return by how much each coordinate of the query's answer may change between neighbors."""
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
        """Return the L1 distance divided by the scale, exact, with each parameter as double or
        decimal, whichever costs more.
        """
        change = self._change_under(adjacency)
        distance = sum(abs(step) for step in (change if isinstance(change, tuple) else (change,)))
        return TypedAmounts(quotient(self.scale, float(distance)))

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
        """Return rho from the squared L2 distance, exact, with each parameter as double or decimal,
        whichever costs more.

        Other answers use sigma as a double: with less noise the loss at an epsilon may be smaller,
        so that neither costs more in general.
        """
        change = self._change_under(adjacency)
        square = sum(step**2 for step in (change if isinstance(change, tuple) else (change,)))
        return TypedAmounts(rho=square * quotient(self.sigma, 1.0) ** 2 / 2)

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
