"""The prices that filters charge: each is an answer that `guarantee.Priced` promises, checked, and exact.

A mechanism is never asked for its type. An answer that is no finite amount becomes an `UnsupportedError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from dpcompose import check
from dpcompose.adaptive.amount import probability
from dpcompose.errors import DomainError, DPComposeError, UnsupportedError
from dpcompose.guarantee import (
    ApproximateDP,
    ConcentratedDP,
    Priced,
    TypedAmounts,
    pure_concentrated,
)
from dpcompose.values import Adjacency, Bound, Orientation, exact, rounded_down, rounded_up

Answer = TypeVar("Answer")
_ZERO, _NOTHING = Fraction(0), TypedAmounts()


def request(mechanism: Any, delta: Any, adjacency: Any) -> Fraction | None:
    """The delta of a request, a float as its shortest decimal, after a check of all three arguments.

    Raises:
        DomainError: If the delta or the adjacency is outside its domain.
        UnsupportedError: If the mechanism names no prices at all.
    """
    check.member("adjacency", adjacency, Adjacency)
    named = None if delta is None else probability("delta", delta)
    if not isinstance(mechanism, Priced):
        raise UnsupportedError(
            f"the price of {label(mechanism)}",
            "it names no prices (typed, costlier, pure, approximate, renyi, zcdp, gdp, epsilon)",
            "Give a mechanism or a composition, such as Laplace(2.0) or Gaussian(1.0) * 3",
        )
    return None if named is None else exact(named)


def pure(mechanism: Priced, *, adjacency: Adjacency) -> Fraction:
    """Its epsilon at delta 0: as typed, else the smaller of the sum of its losses and its certified profile."""
    found = known_pure(mechanism, adjacency=adjacency)
    if found is None:
        raise refused(
            mechanism, "it is not (epsilon, 0)-differentially private for any finite epsilon"
        )
    return found


def known_pure(mechanism: Priced, *, adjacency: Adjacency) -> Fraction | None:
    """Its epsilon at delta 0, if there is a finite one."""
    typed = _typed(mechanism, adjacency)
    if typed.epsilon is not None and typed.delta == 0:
        return typed.epsilon
    read = mechanism.costlier()
    stated = _asked(mechanism, lambda: read.pure(adjacency=adjacency))
    if stated is None:
        return None
    certified = _asked(mechanism, lambda: _at(read, 0.0, adjacency))
    return min(
        Fraction(_finite(mechanism, "epsilon", stated)), _upper(mechanism, certified, stated)
    )


def promise(
    mechanism: Priced, *, delta: Fraction | None, adjacency: Adjacency
) -> tuple[Fraction, Fraction]:
    """Its (epsilon, delta): at the delta named in the request, else the one that holds without choosing a delta."""
    typed, read = _typed(mechanism, adjacency), mechanism.costlier()
    if delta is None and typed.epsilon is not None and typed.delta < 1:
        if typed.delta == 0:
            return typed.epsilon, typed.delta
        delta = typed.delta
    if delta is not None:
        at = rounded_down(delta)
        epsilon = _upper(
            mechanism, _asked(mechanism, lambda: _at(read, at, adjacency)), None, typed, delta
        )
        return epsilon, delta
    found = _asked(mechanism, lambda: read.approximate(adjacency=adjacency))
    if found is None:
        raise refused(
            mechanism,
            "it has a whole curve of (epsilon, delta)",
            "Name the delta to be charged: delta=...",
        )
    if not isinstance(found, ApproximateDP) or found.vacuous:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused(mechanism, f"its (epsilon, delta) is {found!r}")
    # A delta comes back one rounding larger: the profile certifies the shorter decimal.
    shorter = min(found.delta, float(f"{found.delta:.14g}"))
    certified = _asked(mechanism, lambda: _at(read, shorter, adjacency))
    if isinstance(certified, Bound) and certified.upper <= found.epsilon:  # pyright: ignore[reportUnnecessaryIsInstance]
        return Fraction(certified.upper), Fraction(shorter)
    return Fraction(found.epsilon), Fraction(found.delta)


def rho(
    mechanism: Priced, *, delta: Fraction | None, adjacency: Adjacency
) -> tuple[Fraction, Fraction]:
    """Its (rho, delta): the zero-concentrated guarantee, else epsilon tanh(epsilon / 2) of its (epsilon, delta)."""
    known = known_rho(mechanism, adjacency=adjacency)
    if known is not None:
        return known
    epsilon, charged = promise(mechanism, delta=delta, adjacency=adjacency)
    return Fraction(pure_concentrated(rounded_up(epsilon)).rho), charged


def known_rho(mechanism: Priced, *, adjacency: Adjacency) -> tuple[Fraction, Fraction] | None:
    """Its zero-concentrated guarantee, (rho, delta), if it has one."""
    typed = _typed(mechanism, adjacency)
    if typed.rho is not None and typed.delta < 1:
        return typed.rho, typed.delta
    known = _asked(mechanism, lambda: mechanism.costlier().zcdp(adjacency=adjacency))
    if known is None:
        return None
    if not isinstance(known, ConcentratedDP):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused(mechanism, f"its zero-concentrated guarantee is {known!r}")
    return Fraction(known.rho), Fraction(known.delta)


def renyi(mechanism: Priced, order: float, *, adjacency: Adjacency) -> Fraction:
    """Its Renyi divergence at an order."""
    read = mechanism.costlier()
    bound = _asked(
        mechanism, lambda: read.renyi(order, adjacency=adjacency, orientation=Orientation.FREE)
    )
    return _upper(mechanism, bound, None)


def mu_squared(mechanism: Priced, *, adjacency: Adjacency) -> Fraction:
    """The square of its mu."""
    typed = _typed(mechanism, adjacency)
    if typed.mu_squared is not None:
        return typed.mu_squared
    mu = _asked(mechanism, lambda: mechanism.costlier().gdp(adjacency=adjacency))
    if mu is None:
        raise refused(
            mechanism,
            "it is not known to be Gaussian differentially private: only unsampled Gaussian noise is",
            "Open a ConcentratedFilter or a RenyiFilter, which price more",
        )
    return Fraction(_finite(mechanism, "mu", mu)) ** 2


def refused(mechanism: object, reason: str, remedy: str = "") -> UnsupportedError:
    """The refusal to price."""
    return UnsupportedError(f"the price of {label(mechanism)}", reason, remedy)


def label(mechanism: object) -> str:
    """The name of a mechanism in a message, even where its own repr fails."""
    try:
        text = repr(mechanism)
    except Exception:
        text = f"a {type(mechanism).__name__}"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def _at(mechanism: Priced, delta: float, adjacency: Adjacency) -> Bound:
    """A point of its curve, for free orientations of the pairs inside."""
    return mechanism.epsilon(delta=delta, adjacency=adjacency, orientation=Orientation.FREE)


def _asked(mechanism: object, question: Callable[[], Answer]) -> Answer:
    """The answer; an error that is not ours becomes a refusal, and keeps its cause."""
    try:
        return question()
    except DPComposeError:
        raise
    except Exception as error:
        raise refused(mechanism, f"it raised {type(error).__name__}: {error}") from error


def _finite(mechanism: object, name: str, value: object) -> float:
    try:
        return check.nonnegative(name, value)
    except DomainError:
        raise refused(mechanism, f"its {name} is {value!r}, not a finite number >= 0") from None


def _typed(mechanism: Priced, adjacency: Adjacency) -> TypedAmounts:
    """Its guarantee in typed amounts; empty if none is stated."""
    return _asked(mechanism, lambda: mechanism.typed(adjacency=adjacency)) or _NOTHING


def _upper(
    mechanism: object,
    bound: object,
    otherwise: float | None,
    typed: TypedAmounts = _NOTHING,
    delta: Fraction = _ZERO,
) -> Fraction:
    """The upper end of a bound, or another known upper bound if that is smaller."""
    upper = bound.upper if isinstance(bound, Bound) else math.nan
    if otherwise is not None and isinstance(bound, Bound):
        upper = min(upper, otherwise)
    stated = typed.epsilon if typed.delta <= delta else None
    if not 0.0 <= upper < math.inf:
        if stated is not None and isinstance(bound, Bound):
            return stated
        raise refused(mechanism, f"nothing finite is certified ({bound!r})", "Name a larger delta")
    return Fraction(upper) if stated is None else min(Fraction(upper), stated)
