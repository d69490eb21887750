"""Renyi differential privacy: a bound for each order, and its conversions to (epsilon, delta)."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from fractions import Fraction

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.guarantee.approximate import checked_epsilon, remaining_delta
from dpcompose.numerics import bracketed_root, largest, parabolic_minimum, walk
from dpcompose.values import UNIT_ROUNDOFF, decimal_context, up

RenyiCurve = Callable[[float], float]
"""Maps an order in (1, inf) to an upper bound on that Renyi divergence, in both directions."""

_FARTHEST = 700.0
_FAINT = 36.0
_ONE_MOMENT = "best use of one moment", "[CanonneKamathSteinke2020, Proposition 12]"


@dataclass(frozen=True)
class RenyiDP:
    """A Renyi DP guarantee: the divergence of every order is at most `curve(order)`.

    It holds for both orders of every pair of neighbors.

    >>> RenyiDP(lambda order: order / 2)(3)
    1.5

    Args:
        curve: A function from an order in (1, inf) to an upper bound in [0, inf]; infinite for
            orders without a bound.

    Raises:
        DomainError: If the curve is not callable.

    Reference: [Mironov2017, Definition 4]
    """

    curve: RenyiCurve

    def __post_init__(self) -> None:
        if not callable(self.curve):
            raise DomainError("curve", self.curve, "a function of the order")

    def __call__(self, order: float) -> float:
        """The bound on the divergence of order `order`, in (1, inf)."""
        return checked_epsilon("curve(order)", self.curve(check.order(order)))

    def epsilon(self, *, delta: float) -> Converted:
        """An epsilon for which the curve implies (epsilon, delta)-DP, by a search over all orders.

        See `renyi_epsilon`.
        """
        return renyi_epsilon(self, delta=delta)


@dataclass(frozen=True)
class Converted:
    """An upper bound on epsilon from a Renyi curve, with the order and theorem that it comes from.

    Args:
        epsilon: The bound, in nats.
        order: The order of the divergence that gives the bound; infinite if the bound comes from no
            single order.
        conversion: The name of the conversion theorem.
        reference: The publication that proves it.
    """

    epsilon: float
    order: float
    conversion: str
    reference: str


def mironov_epsilon(rho: float, *, order: float, delta: float) -> float:
    """The epsilon >= 0 that a Renyi divergence of at most `rho` implies at `delta`; rounded up.

    It is rho + log(1 / delta) / (order - 1).

    >>> round(mironov_epsilon(0.5, order=10, delta=1e-6), 12)
    2.035056728663

    Args:
        rho: The bound on the divergence, in nats; >= 0, infinite allowed.
        order: The order of the divergence; finite, > 1.
        delta: In [0, 1]; infinite epsilon at 0.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [Mironov2017, Proposition 3]
    """
    rho, order, delta = (
        checked_epsilon("rho", rho),
        check.order(order),
        check.probability("delta", delta),
    )
    if rho == math.inf or delta == 0.0:
        return 0.0 if rho == 0.0 else math.inf
    return up((rho - math.log(delta) / (order - 1.0)) * (1.0 + 12 * UNIT_ROUNDOFF))


def optimal_moment_epsilon(rho: float, *, order: float, delta: float) -> float:
    """The epsilon >= 0 that a moment of the privacy loss, e^((order - 1) rho), implies; rounded up.

    epsilon = rho + log(1 - 1 / order) - (log delta + log order) / (order - 1), never larger than
    `mironov_epsilon`. `lossless_epsilon` is the optimal conversion from one order.

    >>> round(optimal_moment_epsilon(0.5, order=10, delta=1e-6), 12)
    1.673853424894

    Args:
        rho: The bound on the divergence, in nats; >= 0, infinite allowed.
        order: The order of the divergence; finite, > 1.
        delta: In [0, 1]; infinite epsilon at 0.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [CanonneKamathSteinke2020, Proposition 12], [Balle2020, Theorem 21]
    """
    rho, order, delta = (
        checked_epsilon("rho", rho),
        check.order(order),
        check.probability("delta", delta),
    )
    if rho == math.inf or delta == 0.0:
        return 0.0 if rho == 0.0 else math.inf
    # log(1 - 1 / order), without the cancellation next to order 1.
    first = -math.log1p(1.0 / (order - 1.0))
    second, third = math.log(delta) / (order - 1.0), math.log(order) / (order - 1.0)
    error = 24 * UNIT_ROUNDOFF * (rho + abs(first) + abs(second) + abs(third))
    return max(0.0, up(rho + first - second - third + error))


def optimal_moment_delta(rho: float, *, order: float, epsilon: float) -> float:
    """The delta at `epsilon` that a moment of the privacy loss, e^((order - 1) rho), implies;
    rounded up.

    delta = min(1, e^((order - 1) (rho - epsilon)) (1 - 1 / order)^order / (order - 1)).

    >>> round(optimal_moment_delta(0.5, order=10, epsilon=2.0) * 1e8, 10)
    5.3113763965

    Args:
        rho: The bound on the divergence, in nats; >= 0, infinite allowed.
        order: The order of the divergence; finite, > 1.
        epsilon: In nats; >= 0, infinite allowed.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [CanonneKamathSteinke2020, Proposition 12], [Balle2020, Theorem 21]
    """
    rho, order, epsilon = (
        checked_epsilon("rho", rho),
        check.order(order),
        checked_epsilon("epsilon", epsilon),
    )
    if rho == 0.0:
        return 0.0
    if epsilon == math.inf:
        return 0.0 if rho < math.inf else 1.0
    if rho == math.inf:
        return 1.0
    return min(1.0, up(math.exp(min(_log_delta(rho, order=order, epsilon=epsilon), 1.0))))


def _log_delta(rho: float, *, order: float, epsilon: float) -> float:
    excess = order - 1.0
    terms = excess * rho, -excess * epsilon, -order * math.log1p(1.0 / excess), -math.log(excess)
    error = 24 * UNIT_ROUNDOFF * (2.0 + sum(abs(term) for term in terms))
    return math.fsum(terms) + error if error < math.inf else math.inf


def renyi_epsilon(
    curve: RenyiCurve, *, delta: float, exact: bool = True, orders: Sequence[float] = ()
) -> Converted:
    """An upper bound on the smallest epsilon >= 0 that a Renyi curve implies, by a search over
    orders.

    Every order implies a valid epsilon at the same delta, so that the least of those tried is valid
    even if the search misses the best order.

    >>> round(renyi_epsilon(lambda order: order / 2, delta=1e-6).epsilon, 4)
    5.2215

    Args:
        curve: A function from an order in (1, inf) to an upper bound on the divergence, which may
            be infinite.
        delta: In [0, 1].
        exact: Whether to use `lossless_epsilon`, which requires that both outputs are probability
            measures; if False, `optimal_moment_epsilon`.
        orders: Orders at which the slope of the curve may jump; the search starts from the best of
            them.

    Raises:
        DomainError: If delta is outside [0, 1], or the curve is not a function that returns numbers
            >= 0.

    Reference: [Mironov2017, Proposition 3], [CanonneKamathSteinke2020, Proposition 12],
    [Asoodeh2021, Section III]
    """
    delta = check.probability("delta", delta)
    if not callable(curve):
        raise DomainError("curve", curve, "a function of the order")

    def moment(point: float) -> float:
        order = _order_at(point)
        return optimal_moment_epsilon(curve(order), order=order, delta=delta)

    def estimate(point: float) -> float:
        order = _order_at(point)
        return min(
            estimated_epsilon(
                checked_epsilon("curve(order)", curve(order)), order=order, delta=delta
            ),
            moment(point),
        )

    def lossless(point: float) -> float:
        order = _order_at(point)
        return min(lossless_epsilon(curve(order), order=order, delta=delta), moment(point))

    first = _first(moment, orders)
    point = rough = parabolic_minimum(
        moment, start=first, step=1.0, limit=_FARTHEST, refinements=0 if exact else 6
    )
    if exact:
        # The exact conversion lowers delta, relative to the moment alone, by about a fraction
        # e^(-(order - 1) (rho + epsilon)).
        order = _order_at(rough)
        plain = (order - 1) * (curve(order) + moment(rough)) > _FAINT
        point = parabolic_minimum(
            moment if plain else estimate,
            start=rough,
            step=0.5,
            limit=_FARTHEST + 2.0,
            refinements=3,
        )
    found = lossless if exact else moment
    corners = [first] if orders else []
    epsilon, least = min(
        (found(each), each) for each in (point, *corners, *_last_finite(curve, rough))
    )
    how = ("exact at one order", "[Asoodeh2021, Section III]") if exact else _ONE_MOMENT
    return Converted(epsilon, _order_at(least), *how)


def renyi_delta(curve: RenyiCurve, *, epsilon: float, orders: Sequence[float] = ()) -> float:
    """An upper bound on the smallest delta that a Renyi curve implies, by a search over orders.

    >>> renyi_delta(lambda order: 5e-30 * order, epsilon=1e-13) < 1e-200
    True

    Args:
        curve: A function from an order in (1, inf) to an upper bound on the divergence, which may
            be infinite.
        epsilon: In nats; >= 0, infinite allowed.
        orders: Orders at which the slope of the curve may jump; the search starts from the best of
            them.

    Raises:
        DomainError: If epsilon is negative or NaN, or the curve is not a function that returns
            numbers >= 0.

    Reference: [CanonneKamathSteinke2020, Proposition 12]
    """
    epsilon = checked_epsilon("epsilon", epsilon)

    def log_delta(point: float) -> float:
        order = _order_at(point)
        rho = curve(order)
        return (
            math.inf
            if rho == math.inf
            else _log_delta(rho, order=order, epsilon=min(epsilon, 1e300))
        )

    def delta(point: float) -> float:
        order = _order_at(point)
        return optimal_moment_delta(curve(order), order=order, epsilon=epsilon)

    first = _first(log_delta, orders)
    point = parabolic_minimum(log_delta, start=first, step=1.0, limit=_FARTHEST, refinements=8)
    return min(
        delta(each) for each in (point, *([first] if orders else []), *_last_finite(curve, point))
    )


def _order_at(point: float) -> float:
    return max(1.0 + math.exp(point), math.nextafter(1.0, 2.0))


def _first(function: Callable[[float], float], orders: Sequence[float]) -> float:
    # The start of the search: by default order 8, else the listed order at which the function of
    # log(order - 1) is smallest.
    points = [
        math.log(order - 1.0) - 1e-15 * (1.0 + abs(math.log(order - 1.0))) for order in orders
    ]
    return min(points, key=function, default=2.0)


def _last_finite(curve: RenyiCurve, point: float) -> list[float]:
    """The largest order at which `curve` is finite, if within a step beyond the order `point`; else
    no order.

    The best order may be at this end.
    """
    if not curve(_order_at(point)) < math.inf or curve(_order_at(point + 1.0)) < math.inf:
        return []
    return [largest(lambda each: curve(_order_at(each)) < math.inf, low=point, high=point + 1.0)]


LEAST_DELTA = 1e-290
"""Below it no conversion of this module is finite."""


def lossless_epsilon(rho: float, *, order: float, delta: float) -> float:
    """The smallest epsilon >= 0 that a Renyi divergence of at most `rho` implies at `delta`;
    rounded up.

    By data processing only pairs of two-point distributions matter, (p, 1 - p) against (q, 1 - q),
    and those within rho form the convex set G(p, q) = p^a q^(1 - a) + (1 - p)^a (1 - q)^(1 - a) <=
    e^((a - 1) rho), a the order. Its tangent at any point (p, q) gives p' - e^epsilon q' <= delta'
    for all of the set, e^epsilon = -G_q / G_p: an upper bound at every point, and a tight one at
    the best point. That point is searched in floats; its tangent is evaluated in sixty or more
    digits. For delta >= 1 / order the corner p = 1 is best, and epsilon = rho + log(1 - delta).

    >>> lossless_epsilon(0.5, order=10.0, delta=1e-6) >= 1.672612290475518
    True

    Args:
        rho: The bound on the divergence, in nats; >= 0, infinite allowed.
        order: The order of the divergence; finite, > 1.
        delta: In [0, 1].

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [Asoodeh2021, Section III]
    """
    rho, order, delta = (
        checked_epsilon("rho", rho),
        check.order(order),
        check.probability("delta", delta),
    )
    if rho == 0.0 or delta == 1.0:
        return 0.0
    if delta == 0.0 or rho == math.inf or not (order - 1.0) * rho < 1e12:
        return math.inf
    if delta * order >= 1.0 - 1e-12 and Fraction(delta) * Fraction(order) >= 1:
        return max(0.0, up((rho + math.log1p(-delta)) + 8e-16 * (rho - math.log1p(-delta))))
    if not delta > LEAST_DELTA:
        return math.inf  # the best p is no float; one moment is almost as good
    if delta * order >= 1.0 - 1e-6:
        # The best point is too close to the corner to be distinguished from it; a smaller delta
        # gives a larger, valid epsilon.
        return min(
            _inside(rho, order=order, delta=delta * (1.0 - share))
            for share in (0.0, 1e-12, 1e-9, 1e-6)
        )
    return _inside(rho, order=order, delta=delta)


def _inside(rho: float, *, order: float, delta: float) -> float:
    """The bound of `lossless_epsilon` from the best tangent point with p < 1, for delta < 1 /
    order.
    """
    found = [math.inf]

    def proved(point: float) -> bool:
        if not point > -700.0:
            found[:] = [math.inf]
            return True
        success = _logistic(point)
        epsilon, margin = _tangent(success, _gap(success, rho, order), rho, order, delta)
        found[:] = [epsilon]
        return margin >= 0

    best = _best(rho, order, delta)
    walk(best, -4.0 * math.ulp(best) - 1e-300, proved)
    return max(0.0, found[0])


def estimated_epsilon(rho: float, *, order: float, delta: float) -> float:
    """`lossless_epsilon` in floats, without proof: for a search whose result is proved afterwards."""
    if rho == 0.0 or delta == 1.0:
        return 0.0
    if delta * order >= 1.0:
        return max(0.0, rho + math.log1p(-delta))
    if not (delta > LEAST_DELTA and (order - 1.0) * rho < 1e12):
        return math.inf
    success = _logistic(_best(rho, order, delta))
    gap = _gap(success, rho, order)
    return max(0.0, gap + _log_ratio(success, gap, order))


def _best(rho: float, order: float, delta: float) -> float:
    # The log odds of the p at which p - e^epsilon q is delta. With the first term of G alone that
    # is p = order * delta; the second term increases it, usually by little.
    def excess(point: float) -> float:
        return _log_tangent_delta(_logistic(point), rho, order) - math.log(delta)

    mean = order * delta
    lower = max(math.log(mean / (1.0 - mean)) - 1e-9, -690.0) if mean < 1.0 else -690.0
    lower, step = (lower, 0.01) if excess(lower) <= 0.0 else (-690.0, 8.0)
    while lower + step < 650.0 and excess(lower + step) < 0.0:
        lower, step = lower + step, 8.0 * step
    return bracketed_root(excess, lower=lower, upper=min(lower + step, 650.0))


def _logistic(point: float) -> tuple[float, float]:
    # p and 1 - p at the log odds `point`.
    if point >= 0.0:
        return 1.0 / (1.0 + math.exp(-point)), math.exp(-point) / (1.0 + math.exp(-point))
    return math.exp(point) / (1.0 + math.exp(point)), 1.0 / (1.0 + math.exp(point))


def _gap(success: tuple[float, float], rho: float, order: float) -> float:
    # log(p / q) for the smallest q with G(p, q) <= e^((a - 1) rho). log G is convex and increasing in it; Newton's
    # method starts to the right, where the first term alone is as large as allowed, and stays to the right.
    slope, most = order - 1.0, (order - 1.0) * rho
    point = rho - math.log(success[0]) / slope
    for _ in range(300):
        value, steepness = _log_power(success, point, order)
        following = point - (value - most) / steepness if steepness > 0.0 else point
        if not 0.0 < following < point:
            break
        point = following
    return point


def _log_power(success: tuple[float, float], gap: float, order: float) -> tuple[float, float]:
    # log G(p, p e^-gap) and its slope in the gap; G - 1 is a sum of two positive terms, q f(gap) and (1 - q) f(-fall).
    p, complement = success
    other = complement - p * math.expm1(-gap)
    fall = (
        math.log(other / complement)
        if complement < 0.5
        else math.log1p(-p * math.expm1(-gap) / complement)
    )
    if order * gap < 500.0 and fall < 500.0:
        power = p * (math.exp(-gap) * _convex(gap, order)) + other * _convex(-fall, order)
        growth = math.exp((order - 1.0) * gap) - math.exp(-order * fall - gap)
        return math.log1p(power), (order - 1.0) * p * growth / (1.0 + power)
    first = (order - 1.0) * gap + math.log(p)
    second = order * math.log(complement) - (order - 1.0) * math.log(other)
    top = max(first, second)
    total = math.exp(first - top) + math.exp(second - top)
    return top + math.log(total), (order - 1.0) * math.exp(first - top) / total


def _convex(exponent: float, order: float) -> float:
    # e^(a x) - 1 - a (e^x - 1) >= 0
    if abs(order * exponent) > 0.02:
        return math.expm1(order * exponent) - order * math.expm1(exponent)
    total, power, small, factorial = 0.0, order * exponent, exponent, 1.0
    for term in range(2, 9):
        power, small, factorial = power * (order * exponent), small * exponent, factorial * term
        total += (power - order * small) / factorial
    return total


def _log_tangent_delta(success: tuple[float, float], rho: float, order: float) -> float:
    # log of p - e^epsilon q at the boundary point of that p, in floats.
    gap = _gap(success, rho, order)
    if success[1] < 1e-300:
        return -math.log(order)
    return math.log(success[0]) + math.log(
        max(-math.expm1(_log_ratio(success, gap, order)), 5e-324)
    )


def _log_ratio(success: tuple[float, float], gap: float, order: float) -> float:
    # log(e^epsilon q / p) for the tangent at the boundary point of that p, in floats.
    fall = math.log1p(-success[0] * math.expm1(-gap) / max(success[1], 1e-300))
    whole = gap + fall
    return (
        _log_minus(order * whole)
        - _log_minus((order - 1.0) * whole)
        - math.log1p(1.0 / (order - 1.0))
    )


def _log_minus(positive: float) -> float:
    # log(1 - e^-x)
    return math.log(max(-math.expm1(-positive), 5e-324))


def _tangent(
    success: tuple[float, float], gap: float, rho: float, order: float, delta: float
) -> tuple[float, Decimal]:
    # epsilon, rounded up, and delta minus the delta' that the tangent of G at (p, q) proves for it.
    places = 60 + 3 * max(0, math.ceil(-math.log10(rho))) + max(0, math.ceil(-math.log10(delta)))
    with decimal.localcontext(decimal_context(places)):
        complement = 1 - Decimal(success[0]) if success[0] < 0.5 else Decimal(success[1])
        p = 1 - complement
        q = p * (-Decimal(gap)).exp()
        if not (complement > 0 and 0 < q < 1):
            return math.inf, Decimal(-1)
        power = Decimal(order) - 1
        more, less = p / q if q > 0 else Decimal(0), complement / (1 - q)
        if not more > 1 > less:
            return math.inf, Decimal(-1)
        high, low = (power * more.ln()).exp(), (power * less.ln()).exp() if less > 0 else Decimal(0)
        ratio = power * (more * high - less * low) / ((power + 1) * (high - low))
        excess = (power * Decimal(rho)).exp() - (p * high + complement * low)
        proved = p - ratio * q + excess / ((power + 1) * (high - low))
        return up(float(ratio.ln())), Decimal(delta) - proved * (1 + Decimal(10) ** -30)


@dataclass(frozen=True)
class ConcentratedDP:
    """rho-zCDP up to delta: the Renyi divergence of every order a > 1 is at most rho a.

    With delta > 0 the bound holds for both output distributions conditioned on an event of
    probability at least 1 - delta.

    >>> ConcentratedDP(0.5)
    ConcentratedDP(rho=0.5, delta=0.0)

    Args:
        rho: The bound on the Renyi divergence of order a, divided by a; finite, >= 0.
        delta: The probability outside which the bound holds, in [0, 1].

    Raises:
        DomainError: If rho is not a finite number >= 0, or delta is outside [0, 1].

    Reference: [BunSteinke2016, Definitions 1.1 and 8.1]
    """

    rho: float
    _: KW_ONLY
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check.nonnegative("rho", self.rho))
        object.__setattr__(self, "delta", check.probability("delta", self.delta))

    def renyi(self, order: float) -> float:
        """The bound rho * order, rounded up, on the Renyi divergence of order `order`."""
        return up(self.rho * check.order(order))

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders at which the slope of the curve jumps: the empty tuple, since it is a line."""
        return ()

    def epsilon(self, *, delta: float) -> float:
        """An epsilon for which the guarantee implies (epsilon, delta)-DP; see
        `concentrated_epsilon`.
        """
        return concentrated_epsilon(self, delta=delta)


def bun_steinke_epsilon(promise: ConcentratedDP, *, delta: float) -> float:
    """The epsilon rho + 2 sqrt(rho log(1 / delta)) that rho-zCDP implies at `delta`; rounded up.

    If the guarantee has a delta d of its own, the formula is used at (delta - d) / (1 - d); epsilon
    is infinite for delta <= d (unless both are 0 and rho is 0).

    >>> round(bun_steinke_epsilon(ConcentratedDP(0.5), delta=1e-6), 13)
    5.7565217697569

    Args:
        promise: The zCDP guarantee to convert.
        delta: In [0, 1].

    Raises:
        DomainError: If delta is outside [0, 1], or promise is not a ConcentratedDP.

    Reference: [BunSteinke2016, Proposition 1.3]
    """

    def converted(rho: float, remaining: float) -> float:
        root = math.sqrt(rho * -math.log(remaining))
        return up((rho + 2.0 * root) * (1.0 + 16 * UNIT_ROUNDOFF))

    return _at_remaining(promise, delta, converted)


def concentrated_epsilon(promise: ConcentratedDP, *, delta: float) -> float:
    """An upper bound on the smallest epsilon that zCDP implies at `delta`, by a search over orders.

    Each order is converted exactly. The result is at most that of `bun_steinke_epsilon` and, to the
    accuracy of the search, of [CanonneKamathSteinke2020, Corollary 13]. If the guarantee has a
    delta d of its own, the bound is converted at (delta - d) / (1 - d).

    >>> 5.2 < concentrated_epsilon(ConcentratedDP(0.5), delta=1e-6) < 5.2215344
    True

    Args:
        promise: The zCDP guarantee to convert.
        delta: In [0, 1].

    Raises:
        DomainError: If delta is outside [0, 1], or promise is not a ConcentratedDP.

    Reference: [Asoodeh2021, Section III], [CanonneKamathSteinke2020, Corollary 13]
    """

    def converted(_: float, remaining: float) -> float:
        searched = renyi_epsilon(promise.renyi, delta=remaining).epsilon
        return min(bun_steinke_epsilon(promise, delta=delta), searched)

    return _at_remaining(promise, delta, converted)


def concentrated_delta(promise: ConcentratedDP, *, epsilon: float) -> float:
    """An upper bound on the smallest delta that zCDP implies at `epsilon`, by one moment.

    >>> round(concentrated_delta(ConcentratedDP(0.5), epsilon=5.0) * 1e6, 9)
    2.896122809

    Args:
        promise: The zCDP guarantee to convert; if it has a delta d of its own, the result is d + (1
            - d) delta.
        epsilon: In nats; >= 0, infinite allowed.

    Raises:
        DomainError: If epsilon is negative or NaN, or promise is not a ConcentratedDP.

    Reference: [CanonneKamathSteinke2020, Corollary 13]
    """
    promise, epsilon = _checked(promise), checked_epsilon("epsilon", epsilon)
    if promise.rho == 0.0:
        return promise.delta
    return min(1.0, up(promise.delta + renyi_delta(promise.renyi, epsilon=epsilon)))


def _checked(promise: object) -> ConcentratedDP:
    if not isinstance(promise, ConcentratedDP):
        raise DomainError("promise", promise, "a ConcentratedDP")
    return promise


def _at_remaining(
    promise: ConcentratedDP, delta: float, converted: Callable[[float, float], float]
) -> float:
    """Return the conversion of rho at the delta that remains after the guarantee's own; 0 or inf
    where rho does not matter.
    """
    promise = _checked(promise)
    remaining = _remaining(promise, delta)
    if remaining is None:
        return math.inf
    if promise.rho == 0.0 or remaining == 1.0:
        return 0.0
    return math.inf if remaining == 0.0 else converted(promise.rho, remaining)


def _remaining(promise: ConcentratedDP, delta: float) -> float | None:
    # The delta that remains for the concentrated part, rounded down; None if none remains.
    remaining = remaining_delta(check.probability("delta", delta), ((promise.delta, 1),))
    return None if remaining is None or remaining.lower < 0.0 else remaining.lower


# Conversions of pure differential privacy to other definitions; randomized response is the worst
# case.


def pure_renyi(epsilon: float, *, order: float) -> float:
    """The largest Renyi divergence of order `order` under (epsilon, 0)-DP, in nats; rounded up.

    It is log(cosh((order - 1/2) epsilon) / cosh(epsilon / 2)) / (order - 1), the divergence of
    randomized response, of which every (epsilon, 0)-DP pair of distributions is a post-processing.

    >>> round(pure_renyi(1.0, order=2.0), 14), round(pure_renyi(0.3, order=8.0), 14)
    (0.73532566405552, 0.22238464291144)

    Args:
        epsilon: In nats; >= 0, infinite allowed.
        order: The order of the divergence; finite, > 1.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [Mironov2017, Proposition 5]
    """
    epsilon, order = checked_epsilon("epsilon", epsilon), check.order(order)
    if epsilon == math.inf:
        return math.inf
    # cosh A - cosh B = 2 sinh((A + B) / 2) sinh((A - B) / 2): nothing cancels.
    first, second, half = order * epsilon / 2.0, (order - 1.0) * epsilon / 2.0, epsilon / 2.0
    if first < 300.0:
        value = math.log1p(2.0 * math.sinh(first) * (math.sinh(second) / math.cosh(half))) / (
            order - 1.0
        )
        return min(epsilon, up(value * (1.0 + UNIT_ROUNDOFF * (40.0 + 8.0 * first))))
    numerator, denominator = (
        math.log1p(math.exp(-epsilon)),
        math.log1p(math.exp(-(2.0 * order - 1.0) * epsilon)),
    )
    return min(
        epsilon,
        up((epsilon - (numerator - denominator) / (order - 1.0)) * (1.0 + 24 * UNIT_ROUNDOFF)),
    )


def pure_concentrated(epsilon: float) -> ConcentratedDP:
    """The smallest rho for which (epsilon, 0)-DP implies rho-zCDP, rounded up.

    It is epsilon tanh(epsilon / 2).

    Proof, from the Renyi divergence of randomized response: log cosh sqrt(w) is concave in w, hence
    log cosh((order - 1/2) epsilon) - log cosh(epsilon / 2) is at most order (order - 1) epsilon
    tanh(epsilon / 2), with equality in the limit of order 1. The rho is below the epsilon^2 / 2 of
    [BunSteinke2016, Proposition 1.4].

    >>> round(pure_concentrated(1.0).rho, 14)
    0.46211715726001

    Args:
        epsilon: In nats; finite, >= 0.

    Raises:
        DomainError: If epsilon is not a finite number >= 0.

    Reference: [BunSteinke2016, Proposition 3.3]
    """
    epsilon = check.nonnegative("epsilon", epsilon)
    return ConcentratedDP(
        min(epsilon, up(epsilon * math.tanh(epsilon / 2.0) * (1.0 + 12 * UNIT_ROUNDOFF)))
    )
