"""Distributions with a density on the real line, and integrals over them: estimates without proof."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.pictured import Card

MASS_TOLERANCE = 1e-8
_LOG_LARGEST = 709.0


@dataclass(frozen=True)
class Estimate(Card):
    """A number without a proved error: the result of quadrature.

    `float(estimate)` is its value. It is not a `Bound`, and no privacy claim may rest on it.

    Args:
        value: The estimate.
        error: An estimate of its absolute error, by the numerical method.
    """

    value: float
    error: float

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Density:
    """A distribution on the real line, represented by the logarithm of its density.

    The logarithm gives ratios of densities where the densities themselves underflow.

    >>> gaussian = Density(lambda x: -x * x / 2 - math.log(2 * math.pi) / 2)
    >>> laplace = Density(lambda x: -abs(x) - math.log(2), breakpoints=(0.0,))

    Args:
        log_pdf: The natural logarithm of the density at a float; -inf where it is 0. It is called
            inside the support only.
        support: The interval outside of which the density is 0.
        breakpoints: The kinks of the density, and a point inside the bulk of its mass if that is
            narrow or not around 0.

    Raises:
        DomainError: If the support is not an interval, a breakpoint is not a finite number, or the
            quadrature of the density differs from 1 by more than 1e-8.
    """

    log_pdf: Callable[[float], float]
    support: tuple[float, float] = (-math.inf, math.inf)
    breakpoints: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.log_pdf):
            raise DomainError("log_pdf", self.log_pdf, "a function of a float")
        try:
            lower, upper = (check.real("end of the support", end) for end in self.support)
            points = tuple(check.finite("breakpoint", point) for point in self.breakpoints)
        except (TypeError, ValueError) as problem:
            given = (self.support, self.breakpoints)
            raise DomainError(
                "support, breakpoints", given, "(lower, upper) and a tuple of finite numbers"
            ) from problem
        if not lower < upper:
            raise DomainError("support", self.support, "(lower, upper) with lower < upper")
        object.__setattr__(self, "support", (lower, upper))
        object.__setattr__(self, "breakpoints", points)
        remedy = "Name the kinks and the place of the mass in breakpoints=; nothing is normalized silently"
        try:
            mass = _integral(lambda x: _exp(self(x)), _panels(_cuts(self, self))).value
        except UnsupportedError as diverged:
            raise DomainError(
                "integral of the density", math.inf, f"1 within {MASS_TOLERANCE}", remedy
            ) from diverged
        if not abs(mass - 1) <= MASS_TOLERANCE:
            raise DomainError("integral of the density", mass, f"1 within {MASS_TOLERANCE}", remedy)

    def __call__(self, x: float) -> float:
        """The natural logarithm of the density at `x`; -inf outside the support."""
        if not self.support[0] <= x <= self.support[1]:
            return -math.inf
        given: Any = self.log_pdf(x)
        try:
            value = math.nan if isinstance(given, str) else float(given)
        except (TypeError, ValueError):
            value = math.nan
        if not value < math.inf:
            raise DomainError(f"log_pdf({x!r})", given, "a number below infinity, not NaN")
        return value


def integral(
    first: Density, second: Density, integrand: Callable[[float, float], float]
) -> Estimate:
    """The integral over x in the support of `first` of `integrand`, by adaptive quadrature.

    The integrand is called with the logarithms (log y(x), log z(x)) of both densities.

    The result is infinite if the integrand is infinite at a point of positive density.

    Raises:
        UnsupportedError: If the quadrature does not converge, so that the integral may be infinite.
    """

    def at(x: float) -> float:
        log_first = first(x)
        return 0.0 if log_first == -math.inf else integrand(log_first, second(x))

    return _integral(at, _panels(_cuts(first, second)))


def _cuts(first: Density, second: Density) -> list[float]:
    """The ends of the first support, and the breakpoints of both densities inside it, increasing."""
    lower, upper = first.support
    inner = {*second.support, *first.breakpoints, *second.breakpoints}
    cuts = sorted({lower, upper, *(x for x in inner if lower < x < upper)})
    return cuts if any(math.isfinite(x) for x in cuts) else [lower, 0.0, upper]


def _panels(cuts: list[float]) -> list[tuple[float, float]]:
    """Intervals of integration whose lengths grow by a factor 8 away from every cut.

    Mass concentrated at a cut is resolved whatever its width.
    """
    lower, upper = cuts[0], cuts[-1]
    sided = {
        cut + sign * 8.0**k
        for cut in cuts
        if math.isfinite(cut)
        for sign in (-1, 1)
        for k in range(-14, 15)
    }
    return list(itertools.pairwise(sorted({*cuts, *(x for x in sided if lower < x < upper)})))


def _integral(function: Callable[[float], float], panels: list[tuple[float, float]]) -> Estimate:
    from scipy import integrate

    infinite = False

    def at(x: float) -> float:
        nonlocal infinite
        value = function(x)
        infinite = infinite or math.isinf(value)
        return 0.0 if infinite else value

    parts: list[Any] = [
        integrate.quad(at, lower, upper, epsabs=0.0, epsrel=1e-12, limit=400, full_output=1)
        for lower, upper in panels
    ]
    if infinite:
        return Estimate(math.inf, 0.0)
    value, error = math.fsum(part[0] for part in parts), math.fsum(part[1] for part in parts)
    # If the integral converges, the last panels of an infinite range contribute next to nothing.
    ends = [
        *(parts[:2] if math.isinf(panels[0][0]) else ()),
        *(parts[-2:] if math.isinf(panels[-1][1]) else ()),
    ]
    scale = max(1.0, abs(value))
    if not (error <= 1e-6 * scale and all(abs(part[0]) <= 1e-6 * scale for part in ends)):
        reason = f"quadrature did not converge (value {value!r}, error {error!r}); the integral may be infinite"
        raise UnsupportedError(
            "this pair of densities", reason, "Name kinks and places of mass in breakpoints="
        )
    return Estimate(value, error)


def _exp(power: float) -> float:
    return math.exp(power) if power < _LOG_LARGEST else math.inf
