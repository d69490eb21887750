"""The prices that filters charge: each is an answer that `guarantee.Priced` promises, checked, and exact.

A mechanism is never asked for its type. An answer that is no finite amount becomes an `UnsupportedError`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from dpcompose import check
from dpcompose.adaptive.amount import probability
from dpcompose.errors import DomainError, DPComposeError, UnsupportedError, brief
from dpcompose.guarantee import (
    ApproximateDP,
    ConcentratedDP,
    Priced,
    TypedAmounts,
    pure_concentrated,
    pure_renyi,
)
from dpcompose.mechanisms import Composable, serialize
from dpcompose.values import (
    Adjacency,
    Bound,
    Orientation,
    double_below,
    exact,
    rounded_down,
    rounded_up,
)

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
    if not isinstance(mechanism, Composable | Priced):
        reason = (
            "it names no prices (typed, costlier, pure, approximate, renyi, zcdp, gdp, epsilon)"
        )
        remedy = "Give a mechanism or a composition, such as Laplace(2.0) or Gaussian(1.0) * 3"
        raise refused(mechanism, reason, remedy)
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
    stated = _answer(mechanism, lambda: read.pure(adjacency=adjacency))
    if stated is None:
        return None
    certified = _answer(mechanism, lambda: _at(read, 0.0, adjacency))
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
        at, stated = rounded_down(delta), typed.epsilon if typed.delta <= delta else None
        bound = _answer(mechanism, lambda: _at(read, at, adjacency))
        return _upper(mechanism, bound, stated=stated), delta
    found = _answer(mechanism, lambda: read.approximate(adjacency=adjacency))
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
    certified = _answer(mechanism, lambda: _at(read, shorter, adjacency))
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
    return _pure_rho(epsilon), charged


def known_rho(mechanism: Priced, *, adjacency: Adjacency) -> tuple[Fraction, Fraction] | None:
    """Its zero-concentrated guarantee, (rho, delta), if it has one."""
    typed = _typed(mechanism, adjacency)
    if typed.rho is not None and typed.delta < 1:
        return typed.rho, typed.delta
    known = _answer(mechanism, lambda: mechanism.costlier().zcdp(adjacency=adjacency))
    if known is None:
        return None
    if not isinstance(known, ConcentratedDP):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused(mechanism, f"its zero-concentrated guarantee is {known!r}")
    return Fraction(known.rho), Fraction(known.delta)


def renyi(mechanism: Priced, order: float, *, adjacency: Adjacency) -> Fraction:
    """Its Renyi divergence at an order."""
    read = mechanism.costlier()
    bound = _answer(
        mechanism, lambda: read.renyi(order, adjacency=adjacency, orientation=Orientation.FREE)
    )
    return _upper(mechanism, bound)


def mu_squared(mechanism: Priced, *, adjacency: Adjacency) -> Fraction:
    """The square of its mu."""
    typed = _typed(mechanism, adjacency)
    if typed.mu_squared is not None:
        return typed.mu_squared
    mu = _answer(mechanism, lambda: mechanism.costlier().gdp(adjacency=adjacency))
    if mu is None:
        unknown = "it is not known to be Gaussian differentially private"
        reason = f"{unknown}: only unsampled Gaussian noise is"
        raise refused(mechanism, reason, "Open a Budget, which prices more")
    return Fraction(_finite(mechanism, "mu", mu)) ** 2


@dataclass(frozen=True)
class Remainder:
    """One decomposition of a mechanism: with probability delta it is anything, else this.

    All amounts are of one and the same remainder, for both orders of its pair; None where nothing finite is proved.

    Args:
        amounts: The delta of the part that may be anything, and the epsilon, rho and mu squared of what remains.
        divergence: From an order to its Renyi divergence.
    """

    amounts: TypedAmounts
    divergence: Callable[[float], Fraction | None]

    @property
    def is_divergence_alone(self) -> bool:
        """Whether nothing but Renyi divergences is known, as of sampled noise."""
        return self.amounts == TypedAmounts(delta=self.amounts.delta)


def remainder(
    mechanism: Priced,
    *,
    delta: Fraction | None,
    adjacency: Adjacency,
    cut: Fraction | None = None,
) -> Remainder:
    """The decomposition that a budget charges, a rule of the mechanism, the delta that was named and the cut alone.

    A composition is decomposed part by part. One part is taken whole, with delta 0, where it has any price so; else by
    its rho but for delta, or by its (epsilon, delta), whichever is cheaper: what is (epsilon, delta)-DP is (epsilon,
    0)-DP but for a mass of delta [KairouzOhViswanath2015, Theorem 3.4].

    A cut is the probability, in all, that is left to the rarest losses of parts that have a divergence alone
    (`worst_case.without_rarest`).

    Raises:
        UnsupportedError: If nothing finite is proved.
    """
    counted = mechanism._counted() if isinstance(mechanism, Composable) else ()  # pyright: ignore[reportPrivateUsage]
    if len(counted) > 1 or (counted and counted[0][1] > 1):
        count = sum(times for _, times in counted)
        named, rarest = [None if each is None else each / count for each in (delta, cut)]
        parts = [
            (remainder(part, delta=named, adjacency=adjacency, cut=rarest), times)
            for part, times in counted
        ]

        def divergences(order: float) -> Fraction | None:
            found = [(each.divergence(order), times) for each, times in parts]
            known = [one * times for one, times in found if one is not None]
            return sum(known, _ZERO) if len(known) == len(found) else None

        # No coin shows with at least probability 1 - the sum of the deltas, and all amounts add up.
        amounts = [each.amounts.times(times) for each, times in parts]
        return Remainder(functools.reduce(operator.add, amounts), divergences)
    whole = _whole(mechanism, adjacency)
    if whole is not None:
        text = serialize(mechanism) if isinstance(mechanism, Composable) else None
        if cut is None or text is None or not whole.is_divergence_alone:
            return whole
        # it needs numpy, and few charges need it
        from dpcompose.adaptive.worst_case import tails, without_rarest

        divergence = without_rarest(tails(text, adjacency), cut)
        return Remainder(TypedAmounts(delta=cut), divergence) if divergence else whole
    concentrated = known_rho(mechanism, adjacency=adjacency)
    if concentrated is None:
        return _of_pure(*promise(mechanism, delta=delta, adjacency=adjacency))
    rho, omitted = concentrated
    promised = unless_refused(lambda: promise(mechanism, delta=delta, adjacency=adjacency))
    if promised is not None and _pure_rho(promised[0]) <= rho * _HARDLY:
        return _of_pure(*promised)
    return Remainder(TypedAmounts(delta=omitted, rho=rho), lambda order: rho * Fraction(order))


def _whole(mechanism: Priced, adjacency: Adjacency) -> Remainder | None:
    """The mechanism itself, without a delta; None if it has no price so."""
    epsilon = unless_refused(lambda: known_pure(mechanism, adjacency=adjacency))
    concentrated = unless_refused(lambda: known_rho(mechanism, adjacency=adjacency))
    rho = None if concentrated is None or concentrated[1] > 0 else concentrated[0]
    square = unless_refused(lambda: mu_squared(mechanism, adjacency=adjacency))

    def divergence(order: float) -> Fraction | None:
        found = unless_refused(lambda: renyi(mechanism, order, adjacency=adjacency))
        return _smallest(found, None if rho is None else rho * Fraction(order))

    if epsilon is None and rho is None and square is None and divergence(2.0) is None:
        return None
    square = _smallest(square, None if epsilon is None else _square(epsilon))
    return Remainder(TypedAmounts(epsilon, _ZERO, rho, square), divergence)


def _square(epsilon: Fraction) -> Fraction:
    """The mu squared of whatever is (epsilon, 0)-DP: at most epsilon^2 pi / 2.

    Its trade-off curve is above that of mu-GDP if the latter's fixed point is at most 1 / (1 + e^epsilon), which says
    log(Phi(t) / Phi(-t)) >= epsilon at t = mu / 2. The left side is 0 at t = 0 and has the slope
    phi(t) / (Phi(t) Phi(-t)). The square [-t, t]^2 contains a disc of radius t: (2 Phi(t) - 1)^2 >= 1 - e^(-t^2 / 2)
    for two normal coordinates, that is Phi(t) Phi(-t) <= e^(-t^2 / 2) / 4. So the slope is at least 4 / sqrt(2 pi).
    """
    return epsilon * epsilon * _HALF_PI


_HALF_PI = Fraction(15_707_963_267_948_967, 10**16)
"""Above pi / 2 = 1.57079632679489661923..."""
_HARDLY = Fraction(1_000_001, 1_000_000)


def _of_pure(epsilon: Fraction, delta: Fraction) -> Remainder:
    """Whatever is (epsilon, delta)-DP."""
    amounts = TypedAmounts(epsilon, delta, _pure_rho(epsilon), _square(epsilon))
    return Remainder(amounts, lambda order: Fraction(pure_renyi(rounded_up(epsilon), order=order)))


def _pure_rho(epsilon: Fraction) -> Fraction:
    """The rho of whatever is (epsilon, 0)-DP."""
    return Fraction(pure_concentrated(rounded_up(epsilon)).rho)


def _smallest(*amounts: Fraction | None) -> Fraction | None:
    return min((each for each in amounts if each is not None), default=None)


def unless_refused(question: Callable[[], Answer]) -> Answer | None:
    """The answer to a question about a price; None where it is refused."""
    try:
        return question()
    except UnsupportedError:
        return None


def refused(mechanism: object, reason: str, remedy: str = "") -> UnsupportedError:
    """The refusal to price."""
    return UnsupportedError(f"the price of {brief(mechanism)}", reason, remedy)


def _at(mechanism: Priced, delta: float, adjacency: Adjacency) -> Bound:
    """A point of its curve, for free orientations of the pairs inside."""
    return mechanism.epsilon(delta=delta, adjacency=adjacency, orientation=Orientation.FREE)


def _answer(mechanism: object, question: Callable[[], Answer]) -> Answer:
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
    return _answer(mechanism, lambda: mechanism.typed(adjacency=adjacency)) or _NOTHING


def _upper(
    mechanism: object, bound: object, other: float | None = None, *, stated: Fraction | None = None
) -> Fraction:
    """The upper end of a bound, or another upper bound, also a stated one, if that is smaller."""
    upper = bound.upper if isinstance(bound, Bound) else math.nan
    if other is not None and isinstance(bound, Bound):
        upper = min(upper, other)
    if not 0.0 <= upper < math.inf:
        if stated is not None and isinstance(bound, Bound):
            return stated
        raise refused(mechanism, f"nothing finite is certified ({bound!r})", "Name a larger delta")
    return Fraction(upper) if stated is None else min(Fraction(upper), stated)


# The delta at which what is promised is asked.


def delta_without_rounding(
    delta: Fraction, omitted: Iterable[tuple[Fraction, float, int]]
) -> float:
    """The delta to ask of bounds whose omitted deltas are rounded up, for the answer at `delta` without that rounding.

    With a mass c omitted, epsilon at delta is that of the remaining mass at (delta - c) / (1 - c). So 1 - delta shrinks
    by the factor (1 - c'') / (1 - c) = 1 - h for each c that is rounded up to c''; (1 - h)^n <= 1 - n h + (n h)^2 / 2.
    Rounded down. A budget that omits 1e-6 therefore has an epsilon at 1e-6, whatever the doubles next to it are.

    Args:
        delta: The exact delta of the question.
        omitted: Exact deltas, each with the float above it and how often it is omitted.
    """
    for exactly, rounded, times in omitted:
        if exactly < min(delta, 1):
            share = times * (Fraction(rounded) - exactly) / (1 - exactly)
            factor = share - (share * share / 2 if times > 1 else 0)
            delta += (1 - delta) * max(factor, Fraction(0)) if share < 1 else 0
        elif exactly == delta and times == 1:
            delta = Fraction(rounded)
    return double_below(delta)
