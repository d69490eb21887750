"""Bounds on g(x) = E[(1 - e^(x - L))_+] for a sum of independent variables, in ball arithmetic.

The formulas are those of `contour`. For t = order + iu the trapezoid sum of M(t) e^(-t x) / (t (t +
1)) with period W is exactly the sum over integers n of e^(order n W) g(x + n W), whose terms are
all nonnegative. Here M is enclosed in balls, the sum is evaluated in balls, and

  the terms n < 0 are at most M(0) e^(-order W |n|);
  the terms n > 0 are at most M(l) e^(-l x) l^l / (1 + l)^(1 + l) e^(-(l - order) n W) at any l >
  order;
  the omitted nodes are bounded by `TailBound`;
  a Gaussian of variance s^2, if one is added, raises g by at most the expectation of s^2 e^(-y / 2)
  n_s(y) at y = L - x, whose transform is s^2 e^(s^2 / 8) e^(s^2 t (t + 1) / 2) M(t).

`LinePlan` states the line's order, period, last frequency and smoothing, computed in floats. None
of these needs a proof: every line gives valid bounds, and the choice only affects their width.

`TailBound` bounds the sum over all nodes beyond a frequency. For one variable let phi(u) = M(order
+ iu) / M(order) and f = |phi|^2. Two bounds hold from one edge to the next: the variable's own,
which holds for all larger u, and one from the values at the two edges: f is the characteristic
function of a symmetrized variable of variance 2 v, so |f''| <= 2 v, and on a block of width D it is
at most max(f at its ends) + v D^2 / 4. The tilted variance v is bounded by means of l^2 <= 2
(cosh(h l) - 1) / h^2: v <= (2 / h^2) (sqrt(M(order + h) M(order - h)) / M(order) - 1).

Reference: [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcompose.contour import (
    Placement,
    Transform,
    placement_of,
    relative_value,
    saddle_for_value,
    shortened,
)
from dpcompose.proof.ball import Ball, Disc, Field
from dpcompose.proof.moments import BallLattice, Factors, Moments, kernel_peak, multiplied, summed

FINE = 43.0
# Balls can have extra digits, so a line may lose a factor e^12 of accuracy for a shorter period.
_LOSS = 12.0


@dataclass(frozen=True, kw_only=True)
class LinePlan:
    """The parameters of a line.

    Args:
        order: The real part of the line, a float of few digits.
        period: W = 2 pi / step.
        beyond: An order from which the aliases above x are bounded; None if there are none.
        last: The frequency at which the nodes end.
        smoothing: The standard deviation of the added Gaussian; 0 if there is none.
        variance: The tilted variance.
        error: The part of M(order) that may be omitted.
        magnitude: log2 of the largest exponent that occurs.
    """

    order: float
    period: float
    beyond: float | None
    last: float
    smoothing: float
    variance: float
    error: float
    magnitude: float


def plan(
    transform: Transform,
    x: float,
    *,
    tolerance: float,
    digits: float = FINE,
    most_nodes: int,
    falling: bool = True,
    last: float | None = None,
) -> LinePlan | None:
    """Return the line for the hockey-stick divergence g close to x: to precision e^-`digits` if |M|
    decays, else smoothed, to `tolerance` if there are enough nodes. M is the moment generating
    function.

    Args:
        transform: The variable.
        x: The point at which g is wanted.
        tolerance: The relative width that suffices for the smoothing.
        digits: Minus the logarithm of the relative width that all other errors may cause.
        most_nodes: The largest number of nodes, except on a lattice.
        falling: Whether |M| may be assumed to decay.
        last: The frequency by which it has decayed, if known.

    Returns:
        None if no saddle point is found.
    """
    saddle_point = saddle_for_value(transform, x)
    log_m, first, variance = transform.cumulants(saddle_point)
    if not (math.isfinite(log_m) and 0 < variance < math.inf):
        return None
    log_mass = min(log_m - saddle_point * x + math.log(relative_value(variance, saddle_point)), 0.0)

    def placed(digits: float, *, bounded: bool = True) -> Placement:
        return placement_of(
            transform,
            order=saddle_point,
            x=x,
            log_mass=log_mass,
            tolerance=20 * math.exp(-digits),
            most_nodes=most_nodes,
            bounded=bounded,
            loss=_LOSS,
        )

    def ended(placement: Placement, last: float, error: float, smoothing: float = 0.0) -> LinePlan:
        order = placement.order
        return LinePlan(
            order=order,
            period=placement.period,
            beyond=placement.outer[0][0] if placement.outer else None,
            last=last,
            smoothing=smoothing,
            variance=placement.variance,
            error=error,
            magnitude=math.log2(2 + abs(placement.log_m) + order * (abs(x) + abs(first)) + order),
        )

    placement = placed(digits)
    error = 2 * placement.error
    if transform.lattice is not None:
        last = math.sqrt(2 * (3 - math.log(error)) / placement.variance)
    elif last is None and falling:
        last = _end(transform, placement, error)
    if last is not None:
        return ended(placement, last, error)
    digits = min(math.log(1e3 / tolerance), digits)
    placement = placed(digits, bounded=False)
    order, error = placement.order, 2 * placement.error
    reach = math.sqrt(2 * (digits - math.log(placement.height) + 3))
    smoothing = max(math.sqrt(tolerance / 10 / (order * (order + 1))), reach / placement.limit)
    gap = placement.height * smoothing**2 * order * (order + 1) / 10
    last = _end(transform, placement, gap) if falling else None
    return (
        ended(placement, reach / smoothing, error, smoothing)
        if last is None
        else ended(placement, last, gap)
    )


def _end(transform: Transform, placement: Placement, error: float) -> float | None:
    """Return the first frequency beyond which |M| / u^2 integrates to less than pi `error`,
    computed in floats without proof. M is the moment generating function.
    """
    error *= math.pi
    start = math.sqrt(2 * max(-math.log(error) - 3.0, 1.0) / placement.variance) * 0.8
    edges = max(start, 2 * placement.step) * 1.2 ** np.arange(60)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        log_bound = transform.log_envelope(placement.order, edges)
        blocks = np.exp(np.minimum(log_bound, 0.0)) * (1 / edges - np.append(1 / edges[1:], 0.0))
    enough = np.flatnonzero(np.cumsum(blocks[::-1])[::-1] <= error)
    return float(edges[enough[0]]) if len(enough) and edges[enough[0]] <= placement.limit else None


_RATIO = 1.25
_STRIDES = (0, 2, 5, 9, 14, 20, 27, 35, 44)


@dataclass(frozen=True)
class TailBound:
    """Bounds on the outer part of the line through `order` for a sum of independent variables,
    relative to the moment generating function M(order).

    Args:
        field: The field of balls.
        factors: The variables with their counts.
        order: The real part of the line.
        variance: An estimate of the tilted variance of the sum; it only affects widths.
        magnitude: log2 of the largest exponent that occurs.
        circle: Whether M is periodic along the line, so that only half a period matters.
    """

    field: Field
    factors: Factors
    order: float
    variance: float
    magnitude: float
    circle: bool = False

    def beyond(self, edge: Ball, step: Ball, enough: Ball) -> Ball:
        """Return a bound on step times the sum of |M(order + iu)| / (M(order) u^2) over nodes u =
        edge, edge + step, ... M is the moment generating function.

        Args:
            edge: The first node.
            step: The distance of the nodes.
            enough: A value that need not be improved.
        """
        with self.field.precision(self._bits):
            last, stride = self.field.exact(math.inf), 0
            for stride in _STRIDES:
                end = edge * self.field.exact(_RATIO) ** stride
                last = self._envelope(end).exp() * (1 / end + step / end**2)
                if last <= enough / 2:
                    break
            return last + self._blocks(
                [edge * self.field.exact(_RATIO) ** n for n in range(stride + 1)], step
            )

    def reach(self, enough: Ball, *, limit: float) -> float | None:
        """Return the first frequency up to `limit`, in factors of 5/4, from which the variables'
        own bounds leave at most `enough`.
        """
        with self.field.precision(self._bits):
            frequency = 1.0 / math.sqrt(self.variance)
            while frequency <= limit:
                end = self.field.exact(frequency)
                if self._envelope(end).exp() / end <= enough:
                    return frequency
                frequency *= _RATIO
        return None

    def within(self, edges: Sequence[Ball]) -> list[Ball]:
        """Return for each edge except the last a bound on |M(order + iu)| / M(order) up to the next
        edge. M is the moment generating function.
        """
        with self.field.precision(self._bits):
            total = [self.field.exact(0)] * (len(edges) - 1)
            for index, (_, times) in enumerate(self.factors):
                shares = [square.log() / 2 for square in self._squares(index, edges)]
                total = [log + times * share for log, share in zip(total, shares, strict=True)]
            return [log.exp() for log in total]

    def _blocks(self, edges: Sequence[Ball], step: Ball) -> Ball:
        total = self.field.exact(0)
        for bound, low, high in zip(self.within(edges), edges, edges[1:], strict=False):
            total += bound * (1 / low - 1 / high + step / low**2)
        return total

    def _envelope(self, edge: Ball) -> Ball:
        """Return the logarithm of a bound that holds from `edge` on."""
        terms = zip(self._decays, self.factors, strict=True)
        return sum((times * decay(edge).log() for decay, (_, times) in terms), self.field.exact(0))

    @property
    def _bits(self) -> int:
        """The precision that distinguishes each |phi| from 1 as far as its power matters."""
        return min(
            self.field.bits,
            64 + sum(times for _, times in self.factors).bit_length() + math.ceil(self.magnitude),
        )

    @cached_property
    def _decays(self) -> list[Callable[[Ball], Ball]]:
        if self.circle:
            return [moments.half_circle(self.order) for moments, _ in self.factors]
        return [moments.decay(self.order) for moments, _ in self.factors]

    def _squares(self, index: int, edges: Sequence[Ball]) -> list[Ball]:
        """Return bounds on f of one variable between the edges."""
        moments, times = self.factors[index]
        whole = moments.real(self.order)
        values = [(abs(value) / whole) ** 2 for value in moments.at(self.order, edges)]
        spread, decay = self._variance(moments, times, whole), self._decays[index]
        bounds: list[Ball] = []
        for n in range(len(edges) - 1):
            bent = values[n].max(values[n + 1]) + spread * (edges[n + 1] - edges[n]) ** 2 / 4
            bounds.append(bent.min(decay(edges[n]) ** 2).min(self.field.exact(1)).upper())
        return bounds

    def _variance(self, moments: Moments, times: int, whole: Ball) -> Ball:
        """Return an upper bound on the tilted variance, from the first h for which halving it
        brings no improvement.

        It is infinite if order - h or order + h is no float.
        """
        best = self.field.exact(math.inf)
        move = shortened(min(abs(self.order) / 2, 0.3 / math.sqrt(self.variance / times)), bits=12)
        for _ in range(12):
            if not (self.order + move) - self.order == move == self.order - (self.order - move):
                break
            up, down = (moments.real(self.order + side * move) for side in (1, -1))
            bound = (2 / self.field.exact(move) ** 2 * ((up * down).sqrt() / whole - 1)).upper()
            settled = not bound < 0.9 * best
            best, move = best.min(bound), move / 2
            if settled or bound <= 1.1 * self.variance / times:
                break
        return best


class Enclosure(NamedTuple):
    """Lower and upper bound on the hockey-stick divergence g(x), and the absolute width that each
    source of error adds.
    """

    lower: Ball
    upper: Ball
    aliasing: Ball
    truncation: Ball
    smoothing: Ball
    rounding: Ball


@dataclass(frozen=True, kw_only=True)
class ProvedLine:
    """A line with its nodes, from which the hockey-stick divergence g can be bounded at any x.

    Args:
        field: The field of balls.
        order: The real part of the line.
        step: The distance of the nodes.
        main: The terms of the nodes at x = 0, as a polynomial in e^(-i step x); for a lattice,
            without the part that is multiplied by e^x.
        tail: A bound on the sum over omitted nodes, to be multiplied by e^(-order x).
        mass: M(0).
        whole: M(order), including the smoothing.
        outer: A larger order and M at it, including the smoothing, for the aliases above x.
        largest: Aliases above this value are 0.
        nodes: The number of nodes.
        name: The name of the quadrature rule.
        other: For a lattice, the part of the terms that is multiplied by e^x; else None.
        grid: The lattice of the sum; None if there is none.
        bump: The terms of the smoothing gap; None without smoothing.
        bump_tail: `tail` for the smoothing gap; None without smoothing.
    """

    field: Field
    order: float
    step: Ball
    main: Callable[[Disc], Disc]
    tail: Ball
    mass: Ball
    whole: Ball
    outer: tuple[float, Ball] | None
    largest: Ball
    nodes: int
    name: str
    other: Callable[[Disc], Disc] | None = None
    grid: BallLattice | None = None
    bump: Callable[[Disc], Disc] | None = None
    bump_tail: Ball | None = None

    def enclosure(self, x: Ball) -> Enclosure:
        """Return bounds on the hockey-stick divergence g(x), x exact."""
        exact = self.field.exact
        anchor, anchor_error = (x, exact(0)) if self.grid is None else self._anchor(x)
        turn = self.field.disc(0, -self.step * anchor).exp()
        unit = self.step / (2 * self.field.pi) * (-self.order * anchor).exp()
        value = self.main(turn).real
        if self.other is not None:
            value -= (x - anchor).exp() * self.other(turn).real
        scale = (-self.order * anchor).exp()
        value, truncation, gap = value * unit, self.tail * scale + anchor_error, exact(0)
        if self.bump is not None and self.bump_tail is not None:
            gap = self.field.positive(self.bump(turn).real * unit).upper() + self.bump_tail * scale
        aliasing = self._aliases(x).upper()
        upper = self.field.positive((value + truncation).upper())
        lower = self.field.positive((value - truncation - gap - aliasing).lower())
        return Enclosure(
            lower.min(upper), upper, aliasing, 2 * truncation.upper(), gap.upper(), 2 * value.rad()
        )

    def _anchor(self, x: Ball) -> tuple[Ball, Ball]:
        """Return the first lattice point above x, and an error if x cannot be distinguished from
        it; its term is nearly 0.
        """
        assert self.grid is not None
        spacing, offset = self.grid.spacing, self.grid.offset
        index = math.ceil(float(((x - offset) / spacing).mid()))
        while not offset + spacing * (index - 1) < x:
            index -= 1
        while offset + spacing * index < x:
            index += 1
        anchor = offset + spacing * index
        if anchor > x:
            return anchor, self.field.exact(0)
        return anchor, self.whole * (-self.order * anchor).exp() * (abs(anchor - x)).expm1().upper()

    def _aliases(self, x: Ball) -> Ball:
        """Return a bound on the terms n != 0."""
        period = 2 * self.field.pi / self.step
        total = self.mass / (self.order * period).expm1()
        if x + period >= self.largest:
            return total
        if self.outer is None:
            return self.field.exact(math.inf)
        order, raised = self.field.exact(self.outer[0]), self.outer[1]
        chernoff = raised * (kernel_peak(order) - order * x).exp()
        return total + chernoff / ((order - self.order) * period).expm1()


def draw(field: Field, factors: Factors, plan: LinePlan) -> ProvedLine:
    """Return the line with these parameters, evaluated at the working precision."""
    grid = _grid(field, factors)
    if grid is not None:
        return _periodic(field, factors, plan, grid)
    step = field.exact(shortened(2 * math.pi / plan.period, bits=24))
    count = math.ceil(plan.last / float(step)) + 1
    powers = powers_along(field, factors, plan.order, step, count)
    return (_mollified if plan.smoothing > 0 else _direct)(field, factors, plan, step, powers)


def _direct(
    field: Field, factors: Factors, plan: LinePlan, step: Ball, powers: list[Disc]
) -> ProvedLine:
    """Return the line of L without smoothing."""
    main = list[Disc]()
    for j, power in enumerate(powers):
        t = field.disc(plan.order, step * j)
        main.append((power if j == 0 else 2 * power) / (t * (t + 1)))
    whole, bound = (
        powers[0].real,
        TailBound(field, factors, plan.order, plan.variance, plan.magnitude),
    )
    tail = bound.beyond(step * len(powers), step, field.exact(plan.error) * field.pi)
    tail = whole * tail / field.pi
    return _proved(field, factors, plan, step, main, name="contour", whole=whole, tail=tail)


def _mollified(
    field: Field, factors: Factors, plan: LinePlan, step: Ball, powers: list[Disc]
) -> ProvedLine:
    """Return the line of L + Z, Z Gaussian, with the bump terms that bound the gap."""
    smoothing = field.exact(plan.smoothing)
    gap = smoothing**2 * (smoothing**2 / 8).exp()
    main, bump = list[Disc](), list[Disc]()
    for j, power in enumerate(powers):
        t = field.disc(plan.order, step * j)
        both = t * (t + 1)
        raised = (power if j == 0 else 2 * power) * (smoothing**2 * both / 2).exp()
        main.append(raised / both)
        bump.append(raised)
    edge = step * len(powers)
    whole = powers[0].real * (smoothing**2 * plan.order * (plan.order + 1) / 2).exp()
    faded = (
        whole
        * (-(smoothing**2) * edge**2 / 2).exp()
        * (step + 1 / (smoothing**2 * edge))
        / field.pi
    )
    line = _proved(
        field, factors, plan, step, main, name="smoothed contour", whole=whole, tail=faded / edge**2
    )
    bumps, bump_tail = field.power_sum([gap * term for term in bump]), (faded * gap).upper()
    return replace(line, largest=field.exact(math.inf), bump=bumps, bump_tail=bump_tail)


def _periodic(field: Field, factors: Factors, plan: LinePlan, grid: BallLattice) -> ProvedLine:
    """Return the finite sum over one period for a lattice, without the nodes from `last` on if that
    is cheaper.
    """
    spacing = grid.spacing
    half = max(1, math.ceil(plan.period / float(spacing.mid()) / 2))
    step = 2 * field.pi / (spacing * (2 * half + 1))
    count, tail = half + 1, field.exact(0)
    first = math.ceil(plan.last / float(step.mid()))
    while half > 64 and first < 0.8 * half and count > half:
        omitted = (
            _omitted(field, factors, plan, step, first, half)
            * spacing
            / -(-plan.order * spacing).expm1()
        )
        if omitted <= 8 * field.exact(plan.error) / plan.order:
            count, tail = first, omitted
        first = math.ceil(1.3 * first)
    powers = powers_along(field, factors, plan.order, step, count)
    main, other = list[Disc](), list[Disc]()
    for j, power in enumerate(powers):
        t = field.disc(plan.order, step * j)
        weighted = spacing * (power if j == 0 else 2 * power)
        main.append(weighted / -(-spacing * t).expm1())
        other.append(weighted / -(-spacing * (t + 1)).expm1())
    whole = powers[0].real
    line = _proved(field, factors, plan, step, main, name="lattice", whole=whole, tail=tail * whole)
    return replace(line, other=field.power_sum(other), grid=grid)


def _proved(
    field: Field,
    factors: Factors,
    plan: LinePlan,
    step: Ball,
    main: list[Disc],
    *,
    name: str,
    whole: Ball,
    tail: Ball,
) -> ProvedLine:
    """Return the line with these terms and the bounds that every rule needs."""
    return ProvedLine(
        field=field,
        order=plan.order,
        step=step,
        main=field.power_sum(main),
        tail=tail.upper(),
        mass=multiplied(field, factors, lambda moments: moments.mass),
        whole=whole,
        outer=_outer(field, factors, plan),
        largest=summed(field, factors, lambda moments: moments.largest),
        nodes=len(main),
        name=name,
    )


def _outer(field: Field, factors: Factors, plan: LinePlan) -> tuple[float, Ball] | None:
    """Return the order that bounds the aliases above x, and the moment generating function M at it,
    including the smoothing.
    """
    if plan.beyond is None:
        return None
    smoothing = field.exact(plan.smoothing)
    total = (smoothing**2 * plan.beyond * (field.exact(plan.beyond) + 1) / 2).exp()
    for moments, times in factors:
        total *= moments.real(plan.beyond) ** times
    return plan.beyond, total


def _omitted(
    field: Field, factors: Factors, plan: LinePlan, step: Ball, first: int, half: int
) -> Ball:
    """Return a bound on step / pi times the sum of |M| / M(order) over the nodes from `first` to
    `half`. M is the moment generating function.
    """
    wide = 0.6 / math.sqrt(plan.variance / factors[0][1]) / float(step.mid())
    indices = [first]
    while indices[-1] <= half:
        further = min(0.25 * indices[-1], wide if len(indices) < 400 else half)
        indices.append(min(indices[-1] + max(1, math.floor(further)), half + 1))
    bounds = TailBound(
        field, factors, plan.order, plan.variance, plan.magnitude, circle=True
    ).within([step * index for index in indices])
    total = sum(
        (
            bound * (high - low)
            for bound, low, high in zip(bounds, indices, indices[1:], strict=False)
        ),
        field.exact(0),
    )
    return total * step / field.pi


def _grid(field: Field, factors: Factors) -> BallLattice | None:
    """Return the lattice of the sum if all its terms are copies of one variable on a lattice; else
    None.
    """
    if len(factors) != 1:
        return None
    moments, times = factors[0]
    one = moments.grid
    return None if one is None else BallLattice(one.spacing, one.offset * times)


def powers_along(
    field: Field, factors: Factors, order: float, step: Ball, count: int
) -> list[Disc]:
    """Return the moment generating function M of the sum at the nodes."""
    total = [field.disc(1)] * count
    for moments, times in factors:
        line = moments.line(order, step, count)
        total = [product * value**times for product, value in zip(total, line, strict=True)]
    return total
