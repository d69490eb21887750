"""Bounds on the Renyi divergences of a composition, and on the epsilon and delta that follow from
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpcompose.composition.directions import Rounds
from dpcompose.composition.losses import Pairs
from dpcompose.contour import Line, moments_exceed, remembered
from dpcompose.guarantee import (
    RenyiPromise,
    remaining_delta,
    renyi_delta,
    renyi_epsilon,
    with_failures,
)
from dpcompose.loss import (
    AtomicLoss,
    GaussianLoss,
    Group,
    Loss,
    Pair,
    Product,
    TwoPointLoss,
    by_family,
    renyi_pair,
)
from dpcompose.numerics import Reals
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, float_sum, up

# Parts whose Renyi curve gives more than their losses are combined into one pair of distributions.
# Renyi divergences add over adaptive rounds, so all such parts together are one interactive
# mechanism with one curve. That curve is converted once (`loss.renyi_pair`), and the pair is
# composed with the losses of all other parts.
#
# Reference: [Mironov2017, Proposition 1], [VadhanZhang2023, Theorem 1.5]


Promises = Sequence[tuple[RenyiPromise, int]]


def curved(loss: Loss) -> bool:
    """Return whether mechanisms that a loss dominates are known to have smaller moments than the
    loss itself.
    """
    return type(loss).moments_below([(loss, 1)], np.ones(1)) is not None


def converted(group: Group, promises: Promises) -> Group:
    """Return losses that dominate these parts together, from their Renyi curves; empty if there are
    no parts.

    Args:
        group: Losses for which `curved` holds, with their counts.
        promises: The Renyi curves of parts without losses; their deltas become infinite losses.
    """
    if not group and not promises:
        return ()
    curves = tuple((promise, times) for promise, times in promises if promise.rho is None)
    return (
        (_one_pair(group, up(_rho(promises) * (1 + 4 * UNIT_ROUNDOFF)), curves), 1),
        *_failing(promises),
    )


def _rho(promises: Promises) -> float:
    """Return the sum of rho * count over the curves that state a rho."""
    return float_sum(times * promise.rho for promise, times in promises if promise.rho is not None)


@lru_cache(maxsize=32)
def _one_pair(group: Group, rho: float, curves: tuple[tuple[RenyiPromise, int], ...]) -> AtomicLoss:
    """Return atoms that dominate all losses, from the sum of their Renyi curves.

    Args:
        group: Losses with their counts.
        rho: The sum of the rhos of parts with a zero-concentrated guarantee.
        curves: The other Renyi curves with their counts.
    """
    families = by_family(group)

    @np.errstate(over="ignore")  # an infinite divergence gives no information
    def moments(orders: Reals) -> Reals:
        total = rho * orders * (orders + 1)
        for family, members in families.items():
            below = family.moments_below(members, orders)
            assert below is not None
            total = total + below
        for promise, times in curves:
            total = total + times * orders * np.array(
                [promise.renyi(_order(each)) for each in orders.tolist()]
            )
        return total * (1 + 16 * UNIT_ROUNDOFF)

    corners = sorted({order - 1 for promise, _ in curves for order in promise.orders})
    return renyi_pair(moments, corners=np.array(corners))


def _order(exponent: float) -> float:
    """Return the order `exponent` + 1 rounded up, which is safe since a divergence grows with its
    order.
    """
    order = 1 + exponent
    return order if order - 1 >= exponent else math.nextafter(order, math.inf)


def attained(promises: Promises) -> Pairs:
    """Return losses that mechanisms with these guarantees attain: Gaussian noise with mu^2 / 2 =
    rho that fails with probability delta.
    """
    rho = _rho(promises)
    noise: Group = ((GaussianLoss(math.sqrt(2 * rho), ulps=8), 1),) if 0 < rho < 1e11 else ()
    mechanisms = (*noise, *_failing(promises))
    return tuple((Pair(loss, loss), times) for loss, times in mechanisms)


def _failing(promises: Promises) -> Group:
    """Return the losses that are infinite with the probabilities delta of the curves, with
    counts.
    """
    return tuple(
        (TwoPointLoss(0.0, promise.delta), times)
        for promise, times in promises
        if promise.delta > 0
    )


Samples = tuple[tuple["RenyiCurve", float, int], ...]
"""Renyi curves of the mechanisms on Poisson samples, with sampling rates and counts."""

# The exact conversion of one order improves delta by much less than this factor over the moment
# alone.
_EXACT = 1.65
_BEST_ORDER = Certificate("Renyi divergences, the best order", unit="epsilon")
_BEST_DELTA = Certificate("Renyi divergences, the best order")
# Substitutes for orders that are too close to 1 or too large for floats.
_NEXT_TO_ONE = tuple(1 + 10.0**-place for place in range(2, 9))
_FAR = (2.0, 16.0, 256.0, 1e4, 1e6, 1e9, 1e16, 1e50, 1e150)


def _floor(product: Product, order: float) -> float:
    """Return a lower bound, at least 0, on one direction's divergence of `order`."""
    if product.infinite.upper > 0:
        return math.inf if product.infinite.lower > 0 else 0.0
    return max(_least(product, order), 0.0)


def _floor_elsewhere(product: Product, order: float) -> float:
    """Return a lower bound on one direction's divergence of `order` from divergences of other
    orders.

    A divergence grows with its order, by at most half the largest variance of the tilted losses.
    """
    if product.infinite.upper > 0:
        return 0.0
    orders = (*_FAR, float(math.floor(order)))  # some moments at integer orders are short sums
    low = max((_least(product, each) for each in orders if 1 < each < order), default=0.0)
    if order < _NEXT_TO_ONE[0]:
        half = math.fsum(times * _variance(loss) for loss, times in product.group) / 2 * (1 + 1e-12)
        later = [each for each in _NEXT_TO_ONE if each > order] if half < math.inf else []
        low = max(
            [low, *(_least(product, each) - (each - order) * half * (1 + 1e-12) for each in later)]
        )
    return low


def _variance(loss: Loss) -> float:
    """Return an upper bound on the variance of a loss tilted by an exponent of at most 0.01."""
    if math.isfinite(loss.maximum):
        return (loss.maximum - loss.minimum) ** 2 / 4
    bound = loss.transform(1).moment_bound(1.01) if math.isfinite(loss.minimum) else math.inf
    # x^2 <= (2 / e)^2 e^x for x >= 0, and the moment in the denominator is at least 1.
    return loss.minimum**2 + 0.5414 * math.exp(bound) if bound < 700 else math.inf


def _real_line(product: Product, order: float) -> Line:
    """Return the log moment at exponent `order` - 1, with its error.

    If it overflows or the product has no finite losses, the value is infinite or NaN, from which no
    bound follows.
    """
    if product.transform.maximum == -math.inf:
        return Line(np.full(1, np.nan, dtype=complex), np.full(1, np.inf))
    try:
        with np.errstate(all="ignore"):
            return product.transform.line(order - 1, np.zeros(1))
    except OverflowError:
        return Line(np.full(1, np.nan, dtype=complex), np.full(1, np.inf))


@np.errstate(all="ignore")
def _least(product: Product, order: float) -> float:
    """Return a lower bound on the divergence of `order` from the moment of one direction."""
    value = float(_real_line(product, order).floor[0]) / (order - 1)
    return value - 8 * UNIT_ROUNDOFF * abs(value) if -math.inf < value < math.inf else 0.0


class RenyiCurve:
    """Upper bounds on the Renyi divergences of a composition; values are cached by order.

    Args:
        products: The losses, one product for each direction.
        promises: The Renyi curves of parts without losses, with their counts.
        rounds: The alternatives of each round that an adversary orients, used instead of the
            products: at each order the alternative with the largest moment counts.
        samples: Returns the Renyi curves of all parts without their samples, with sampling rates
            and counts.
        exact: Whether all losses on samples are attained, so that unsampled moments cannot improve
            finite sampled ones.
    """

    def __init__(
        self,
        products: tuple[Product, ...],
        promises: Sequence[tuple[RenyiPromise, int]],
        *,
        rounds: Rounds = (),
        samples: Callable[[], Samples] = tuple,
        exact: bool = False,
    ) -> None:
        self._products, self._promises, self._rounds, self._exact = (
            products,
            promises,
            rounds,
            exact,
        )
        self._asked_samples = samples
        # The terms to add, each a set of alternatives: the whole composition in both directions, or
        # one round at a time.
        if rounds:
            self._steps = [
                tuple([Product(((loss, times),)) for loss in losses]) for losses, times in rounds
            ]
        else:
            self._steps = [tuple([product for product in products if product.reduced])]
        # An alternative with a smaller infinite mass is dominated by one with the same finite part
        # and a larger mass.
        self._failures = [(promise.delta, times) for promise, times in promises]
        self._failures += [
            (max([product.infinite.upper for product in step], default=0.0), 1)
            for step in self._steps
        ]
        self.lost = max(self._failures)[0] > 0
        """Whether an infinite loss has positive probability; then divergences may be infinite."""

    @cached_property
    def _corners(self) -> list[float]:
        """The orders at which the stated curves have corners."""
        return sorted({order for promise, _ in self._promises for order in promise.orders})

    @cached_property
    def _samples(self) -> Samples:
        return self._asked_samples()

    @cached_property
    def _terms(self) -> list[list[list[_Term]]]:
        """For each round and each of its alternatives, the losses grouped by family."""
        return [[_terms(product) for product in step] for step in self._steps]

    @cached_property
    def largest(self) -> float:
        """The largest finite loss in nats, rounded up."""
        ends = [
            max((product.extremes.upper for product in step), default=0.0) for step in self._steps
        ]
        return ends[0] if len(ends) == 1 else up(math.fsum(ends) * (1 + 4 * UNIT_ROUNDOFF))

    def enclosed(self, order: float, *, attained: Sequence[Product]) -> Bound:
        """Return bounds on D = log E e^((order - 1) L) / (order - 1), the larger of both
        directions, in nats.

        The upper end is infinite where a loss may be infinite, and otherwise at most the largest
        loss, rho * order and the amplified divergence without samples. A part that only states a
        curve has a lower end of 0.

        Args:
            order: The order of the divergence; finite, > 1.
            attained: The products that mechanisms attain; their divergences give the lower end.

        Reference: [Mironov2017, Proposition 1]
        """
        close = (
            self._close(order) if attained is self._products and order >= _NEXT_TO_ONE[0] else None
        )
        if close is not None:
            return close
        # A divergence grows with its order, and is more accurate at orders further from 1.
        later = [each for each in _NEXT_TO_ONE if each > order] if order < _NEXT_TO_ONE[0] else []
        high = max(min([self.divergence(each) for each in (order, *later)]), 0.0)
        products = [product for product in attained if product.reduced]
        low = max([_floor(product, order) for product in products], default=0.0)
        if low < high * (1 - 1e-6) or order < _NEXT_TO_ONE[0]:
            low = max([low, *[_floor_elsewhere(product, order) for product in products]])
        return Bound(
            min(low, high), high, Certificate("moment generating function", unit="absolute")
        )

    @np.errstate(all="ignore")
    def _close(self, order: float) -> Bound | None:
        """Return bounds on the divergence of attained losses from their moments; None if the bounds
        are not close.
        """
        if self._rounds or self._promises or self.lost:
            return None
        lines = [_real_line(product, order) for product in self._products if product.reduced]
        high = max(
            (float(line.log[0].real) + float(line.error[0]) for line in lines), default=math.nan
        ) / (order - 1)
        low = max((float(line.floor[0]) for line in lines), default=math.nan) / (order - 1)
        high, low = up(high), low - 8 * UNIT_ROUNDOFF * abs(low)
        if not 0 < high * (1 - 1e-6) <= low <= high < min(math.inf, self.largest):
            return None
        return Bound(low, high, Certificate("moment generating function", unit="absolute"))

    def divergence(self, order: float) -> float:
        """Return an upper bound on the divergence of `order` in both directions; infinite if a loss
        may be infinite.
        """
        return self._by_loss(order) if self.lost else self._finite(order)

    @np.errstate(all="ignore")
    def _by_loss(self, order: float) -> float:
        """Return an upper bound on the divergence as a sum over losses, some of which stand for
        mechanisms without infinite losses.
        """
        if any(promise.delta > 0 for promise, _ in self._promises):
            return math.inf
        rows = [times * promise.renyi(order) for promise, times in self._promises]
        for step in self._steps:
            sums = [
                [times * loss.log_moment(order - 1) for loss, times in product.group]
                for product in step
            ]
            rows.append(max((math.fsum(row) for row in sums), default=0.0) / (order - 1))
        return up(math.fsum(rows) * (1 + 16 * UNIT_ROUNDOFF))

    @remembered
    def _finite(self, order: float) -> float:
        """Return an upper bound on log E e^((order - 1) L) / (order - 1) over the finite losses, or
        that of another theorem.
        """
        promised = float_sum(times * promise.renyi(order) for promise, times in self._promises)
        steps = [max((_added(terms, order) for terms in step), default=0.0) for step in self._terms]
        added = steps[0] if len(steps) == 1 else up(math.fsum(steps) * (1 + 4 * UNIT_ROUNDOFF))
        whole = up(added + up(promised * (1 + 4 * UNIT_ROUNDOFF)))
        if not self.lost:
            others = [] if self._promises else [max(self.largest, 0.0)]
            asked = whole == math.inf or not self._exact
            others += [self._amplified(order)] if asked and self._samples else []
            whole = min(whole, *others) if others else whole
        return whole

    def _amplified(self, order: float) -> float:
        """Return an upper bound on the divergence from amplification of the curves without
        samples.
        """
        rows = [
            times * amplified(curve.divergence(order), order=order, rate=rate)
            for curve, rate, times in self._samples
        ]
        return up(math.fsum(rows) * (1 + 4 * UNIT_ROUNDOFF))

    def hopeless(
        self, epsilon: float, delta: float, *, attained: bool, start: float | None = None
    ) -> bool:
        """Return whether no order gives less than `delta` at `epsilon`, judged by approximate
        moments.

        If so, the search over orders, each with its error, is skipped.

        Args:
            epsilon: The epsilon in nats, >= 0.
            delta: The delta to be improved on.
            attained: Whether the products' divergences are those of the composition.
            start: An order close to the best one, if available.
        """
        if not (0 < delta < 1 and epsilon < math.inf):
            return False
        at = start or 1.0
        if attained:
            return _exceeds(self._products[0].transform.cumulants, epsilon, math.log(delta), at)
        rhos = [(promise.rho, times) for promise, times in self._promises]
        known = [rho * times for rho, times in rhos if rho is not None]
        if (
            self._rounds
            or (not self._exact and self._samples)
            or not self._terms[0]
            or len(known) < len(rhos)
        ):
            return False
        if (
            not self._promises
            and epsilon < self.largest
            and not -math.expm1(epsilon - self.largest) > delta
        ):
            return False
        terms, rho = self._terms[0][0], float_sum(known)

        def cumulants(order: float) -> tuple[float, float, float]:
            rows = [term.cumulants(order) for term in terms]
            rows.append((rho * order * (order + 1), rho * (2 * order + 1), 2 * rho))
            return (
                sum(row[0] for row in rows),
                sum(row[1] for row in rows),
                sum(row[2] for row in rows),
            )

        return _exceeds(cumulants, epsilon, math.log(delta), at)

    def bounds(
        self,
        number: float,
        *,
        for_delta: bool,
        upper: float,
        attained: bool,
        start: float | None = None,
    ) -> list[Bound]:
        """Return upper bounds on delta or epsilon that may be below `upper`; their lower ends are 0.

        Args:
            number: The epsilon in nats (`for_delta`) or the delta of the bounds.
            for_delta: Whether delta is bounded.
            upper: The upper end to be improved on.
            attained: As in `hopeless`.
            start: As in `hopeless`.
        """
        point = (number, upper) if for_delta else (upper, number * _EXACT)
        if self.hopeless(*point, attained=attained, start=start):
            return []
        return [self.delta(number) if for_delta else self.epsilon(number)]

    def epsilon(self, delta: float) -> Bound:
        """Return an upper bound on epsilon at `delta` in nats; the lower end is 0."""
        if self._finite_by_loss:
            found = renyi_epsilon(self._nonnegative_by_loss, delta=delta, exact=True, orders=())
            return Bound(0.0, found.epsilon, _BEST_ORDER)
        rest = remaining_delta(delta, self._failures)
        if rest is None or rest.lower <= 0:
            return Bound(0.0, math.inf, _BEST_ORDER)
        # With infinite mass only the moment itself may be used, since the remaining part of Q need
        # not have mass one.
        exact = not any(mass > 0 for mass, _ in self._failures[len(self._promises) :])
        found = renyi_epsilon(
            self._nonnegative, delta=rest.lower, exact=exact, orders=self._corners
        )
        return Bound(0.0, found.epsilon, _BEST_ORDER)

    def delta(self, epsilon: float) -> Bound:
        """Return an upper bound on delta at `epsilon`; the lower end is 0."""
        finite = 1.0
        if self._finite_by_loss and epsilon >= 0:
            return Bound(
                0.0, renyi_delta(self._nonnegative_by_loss, epsilon=epsilon, orders=()), _BEST_DELTA
            )
        if epsilon >= 0:
            finite = renyi_delta(self._nonnegative, epsilon=epsilon, orders=self._corners)
        return Bound(
            0.0, with_failures(Bound(0.0, finite), self._failures, _BEST_DELTA).upper, _BEST_DELTA
        )

    @cached_property
    def _finite_by_loss(self) -> bool:
        """Whether every loss with an infinite mass stands for mechanisms without one, whose moments
        are known.
        """
        return self.lost and self._by_loss(2.0) < math.inf

    def _nonnegative_by_loss(self, order: float) -> float:
        return max(self._by_loss(order), 0.0)

    def _nonnegative(self, order: float) -> float:
        return max(self._finite(order), 0.0)


def amplified(divergence: float, *, order: float, rate: float) -> float:
    """Return an upper bound on a Renyi divergence on a Poisson sample, in both directions, in nats,
    rounded up.

    For (1 - q) Q + q P against Q by Minkowski's inequality in L^order(Q); for P against (1 - q) P +
    q Q by convexity, and because that is at least (1 - q) P.

    >>> round(amplified(250.0, order=500.0, rate=0.01), 9)
    245.385601016

    Args:
        divergence: The divergence of `order` without the sample, in both directions; >= 0, infinity
            allowed.
        order: The order; finite, > 1.
        rate: The sampling rate, in (0, 1].
    """
    if rate == 1 or divergence == math.inf:
        return divergence
    scale = 1 - 1 / order if order > 2 else (order - 1) / order
    share = scale * divergence
    if share < 700:
        log = math.log1p(rate * math.expm1(share))
    else:
        log = max(share + math.log(rate), 0.0) + math.log1p(math.exp(-abs(share + math.log(rate))))
    slack = 1 + UNIT_ROUNDOFF * (64 + 8 * share)
    return up(
        min(divergence, max(log / scale * slack, min(divergence, -math.log1p(-rate) * slack)))
    )


def _exceeds(
    cumulants: Callable[[float], tuple[float, float, float]],
    epsilon: float,
    log_delta: float,
    start: float,
) -> bool:
    """Return whether no moment gives at most `delta` at `epsilon`; False where the moments
    overflow.

    Args:
        cumulants: Returns log E e^(a L) and its first two derivatives at an exponent a.
        epsilon: The epsilon in nats.
        log_delta: The logarithm of delta.
        start: The order at which the search for the best one begins.
    """
    try:
        with np.errstate(all="ignore"):
            return moments_exceed(cumulants, epsilon, log_delta, start=start)
    except (OverflowError, ZeroDivisionError):
        return False


@dataclass(frozen=True)
class _Term:
    """The losses of one family in a product."""

    product: Product

    @cached_property
    def rho(self) -> float:
        """The sum of rho * count over the losses, rounded up; infinite if the rho of one is
        unknown.
        """
        rhos = [(loss.zcdp, times) for loss, times in self.product.group]
        known = [times * rho for rho, times in rhos if rho is not None]
        return (
            up(float_sum(known) * (1 + 4 * UNIT_ROUNDOFF)) if len(known) == len(rhos) else math.inf
        )

    def _below(self, exponents: list[float]) -> list[float] | None:
        """Return the log moments, at these exponents, of the mechanisms that the losses dominate;
        None if none smaller than the losses' own are known.
        """
        group = self.product.group
        found = type(group[0][0]).moments_below(group, np.array(exponents))
        return None if found is None else found.tolist()

    def cumulants(self, exponent: float) -> tuple[float, float, float]:
        """Return the smallest known log moment at `exponent` with its first two derivatives,
        without certification.
        """
        step = exponent * 1e-3
        below = self._below([exponent - step, exponent, exponent + step])
        if below is None:
            return self.product.transform.cumulants(exponent)
        before, here, after = below
        return (
            here,
            (after - before) / (2 * step),
            max((after - 2 * here + before) / (step * step), 0.0),
        )

    def divergence(self, order: float) -> float:
        """Return an upper bound on the Renyi divergence of `order`: the smallest known from the
        dominated mechanisms, the losses' moment, or rho * order.
        """
        below = self._below([order - 1])
        if below is not None:
            return up(below[0] / (order - 1) * (1 + 16 * UNIT_ROUNDOFF))
        moment = _moment(self.product, order)
        return moment if moment < math.inf else up(self.rho * order)


def _terms(product: Product) -> list[_Term]:
    """Return the losses of a product grouped by family."""
    families = by_family(product.group)
    if len(families) == 1:
        return [_Term(product)]
    return [_Term(Product(tuple(group))) for group in families.values()]


def _added(terms: Sequence[_Term], order: float) -> float:
    """Return the sum of the terms' divergences of `order`, rounded up."""
    found = [term.divergence(order) for term in terms]
    return found[0] if len(found) == 1 else up(math.fsum(found) * (1 + 4 * UNIT_ROUNDOFF))


def _moment(product: Product, order: float) -> float:
    """Return an upper bound on the divergence of `order` from the moment of the product."""
    if not product.reduced:
        return 0.0
    line = _real_line(product, order)
    moment = up((float(line.log[0].real) + float(line.error[0])) / (order - 1))
    return moment if moment > -math.inf else math.inf
