"""g(x) = integral of (1 - e^(x - L))_+ for a sum of independent variables, in ball arithmetic: the contour sum with
every error a theorem.

The formulas are those of `contour`: for t = order + iu the trapezoid sum of M(t) e^(-t x) / (t (t + 1)) with period W
is exactly the sum over integers n
of e^(order n W) g(x + n W), all terms nonnegative. Here M comes in balls that contain it, the sum is evaluated in
balls, and
  the terms n < 0 are at most M(0) e^(-order W |n|), those n > 0 at most M(l) e^(-l x) l^l / (1 + l)^(1 + l) e^(-(l -
  order) n W) at any l > order;
  the nodes left out are bounded by `rest`;
  a Gaussian of variance s^2, if one is added, raises g by at most the expectation of s^2 e^(-y / 2) n_s(y) at y = L -
  x, whose transform is
  s^2 e^(s^2 / 8) e^(s^2 t (t + 1) / 2) M(t).

Reference: [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpcompose.contour.saddle import short
from dpcompose.proof.ball import Ball, Disc, Field
from dpcompose.proof.moments import Factors, Grid
from dpcompose.proof.plan import Route
from dpcompose.proof.tail import Rest


@dataclass(frozen=True)
class Enclosure:
    """lower <= g(x) <= upper, and what each source of error adds to the width, absolute."""

    lower: Ball
    upper: Ball
    aliasing: Ball
    truncation: Ball
    smoothing: Ball
    rounding: Ball


@dataclass(frozen=True)
class ProvedLine:
    """A line with its nodes, ready to be summed at any x.

    Args:
        field: Where balls come from.
        order: Its real part.
        step: The distance of the nodes.
        main: The nodes' terms at x = 0, as a polynomial in e^(-i step x): for a lattice without the part that e^x
            multiplies.
        other: The part of a lattice's terms that e^x multiplies, or None.
        bump: The terms of the smoothing gap, or None.
        tail: A bound on the nodes left out, to be multiplied by e^(-order x).
        bump_tail: The same for the smoothing gap.
        mass: M(0).
        whole: M(order), raised by the smoothing.
        outer: An order and M there, raised by the smoothing, for the aliases above x.
        largest: No alias above this value.
        grid: The lattice, if the sum is one over a lattice.
        nodes: How many nodes there are.
        name: Which kernel this is.
    """

    field: Field
    order: float
    step: Ball
    main: Callable[[Disc], Disc]
    other: Callable[[Disc], Disc] | None
    bump: Callable[[Disc], Disc] | None
    tail: Ball
    bump_tail: Ball
    mass: Ball
    whole: Ball
    outer: tuple[float, Ball] | None
    largest: Ball
    grid: Grid | None
    nodes: int
    name: str

    def enclosure(self, x: Ball) -> Enclosure:
        """The two-sided value of g(x), x exact."""
        exact = self.field.exact
        anchor, vague = (x, exact(0)) if self.grid is None else self._anchor(x)
        turn = self.field.disc(0, -self.step * anchor).exp()
        unit = self.step / (2 * self.field.pi) * (-self.order * anchor).exp()
        value = self.main(turn).real
        if self.other is not None:
            value -= (x - anchor).exp() * self.other(turn).real
        value, truncation = value * unit, self.tail * (-self.order * anchor).exp() + vague
        gap = exact(0)
        if self.bump is not None:
            gap = (
                self.field.positive(self.bump(turn).real * unit).upper() + self.bump_tail * (-self.order * anchor).exp()
            )
        aliasing = self._aliases(x).upper()
        upper = self.field.positive((value + truncation).upper())
        lower = self.field.positive((value - truncation - gap - aliasing).lower())
        return Enclosure(lower.min(upper), upper, aliasing, 2 * truncation.upper(), gap.upper(), 2 * value.rad())

    def _anchor(self, x: Ball) -> tuple[Ball, Ball]:
        """The first lattice point above x, and what can be wrong if x cannot be told from it: almost nothing, as its
        term vanishes there."""
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
        """A bound on the terms n != 0."""
        period = 2 * self.field.pi / self.step
        total = self.mass / (self.order * period).expm1()
        if x + period >= self.largest:
            return total
        if self.outer is None:
            return self.field.exact(math.inf)
        order, raised = self.field.exact(self.outer[0]), self.outer[1]
        chernoff = raised * (order * order.log() - (1 + order) * order.log1p() - order * x).exp()
        return total + chernoff / ((order - self.order) * period).expm1()


def draw(field: Field, factors: Factors, route: Route) -> ProvedLine:
    """The line along `route`, at the working precision."""
    grid = _grid(field, factors)
    smoothing = field.exact(route.smoothing)
    beyond = None if route.beyond is None else (route.beyond, _moment(field, factors, route.beyond, smoothing))
    mass, largest = field.exact(1), field.exact(0)
    for moments, times in factors:
        mass *= moments.mass**times
        largest += moments.largest * times
    if route.smoothing > 0:
        largest = field.exact(math.inf)
    if grid is not None:
        return _on_grid(field, factors, route, grid, beyond, mass, largest)
    step = field.exact(short(2 * math.pi / route.period, bits=24))
    count = math.ceil(route.last / float(step)) + 1
    powers = _powers(field, factors, route.order, step, count)
    whole = powers[0].real
    gap = smoothing**2 * (smoothing**2 / 8).exp()
    main, bump = list[Disc](), list[Disc]()
    for j, power in enumerate(powers):
        t = field.disc(route.order, step * j)
        both = t * (t + 1)
        raised = (
            (power if j == 0 else 2 * power) * (smoothing**2 * both / 2).exp()
            if route.smoothing > 0
            else (power if j == 0 else 2 * power)
        )
        main.append(raised / both)
        bump.append(raised)
    edge = step * count
    if route.smoothing > 0:
        lift = (smoothing**2 * route.order * (route.order + 1) / 2).exp()
        faded = whole * lift * (-(smoothing**2) * edge**2 / 2).exp() * (step + 1 / (smoothing**2 * edge)) / field.pi
        tail, bump_tail, whole = faded / edge**2, faded * gap, whole * lift
    else:
        rest = Rest(field, factors, route.order, route.variance, route.magnitude).beyond(
            edge, step, field.exact(route.share) * field.pi
        )
        tail, bump_tail = whole * rest / field.pi, field.exact(0)
    smooth = field.power_sum([gap * term for term in bump]) if route.smoothing > 0 else None
    name = "smoothed contour" if route.smoothing > 0 else "contour"
    return ProvedLine(
        field,
        route.order,
        step,
        field.power_sum(main),
        None,
        smooth,
        tail.upper(),
        bump_tail.upper(),
        mass,
        whole,
        beyond,
        largest,
        None,
        count,
        name,
    )


def _on_grid(
    field: Field,
    factors: Factors,
    route: Route,
    grid: Grid,
    beyond: tuple[float, Ball] | None,
    mass: Ball,
    largest: Ball,
) -> ProvedLine:
    """The finite sum over the circle that the line is for a lattice; nodes from `last` on are left out if that is worth
    it."""
    spacing = grid.spacing
    half = max(1, math.ceil(route.period / float(spacing.mid()) / 2))
    step = 2 * field.pi / (spacing * (2 * half + 1))
    kept, tail = half + 1, field.exact(0)
    first = math.ceil(route.last / float(step.mid()))
    while half > 64 and first < 0.8 * half and kept > half:
        rest = _left_out(field, factors, route, step, first, half) * spacing / -(-route.order * spacing).expm1()
        if rest <= 8 * field.exact(route.share) / route.order:
            kept, tail = first, rest
        first = math.ceil(1.3 * first)
    powers = _powers(field, factors, route.order, step, kept)
    main, other = list[Disc](), list[Disc]()
    for j, power in enumerate(powers):
        t = field.disc(route.order, step * j)
        weighted = spacing * (power if j == 0 else 2 * power)
        main.append(weighted / -(-spacing * t).expm1())
        other.append(weighted / -(-spacing * (t + 1)).expm1())
    whole = powers[0].real
    return ProvedLine(
        field, route.order, step, field.power_sum(main), field.power_sum(other), None, (tail * whole).upper(),
        field.exact(0), mass, whole, beyond, largest, grid, kept, "lattice",
    )  # fmt: skip


def _left_out(field: Field, factors: Factors, route: Route, step: Ball, first: int, half: int) -> Ball:
    """A bound on step / pi times the sum of |M| / M(order) over the nodes from `first` to `half`."""
    wide = 0.6 / math.sqrt(route.variance / factors[0][1]) / float(step.mid())
    indices = [first]
    while indices[-1] <= half:
        further = min(0.25 * indices[-1], wide if len(indices) < 400 else half)
        indices.append(min(indices[-1] + max(1, math.floor(further)), half + 1))
    bounds = Rest(field, factors, route.order, route.variance, route.magnitude, circle=True).within(
        [step * index for index in indices]
    )
    total = sum(
        (bound * (high - low) for bound, low, high in zip(bounds, indices, indices[1:], strict=False)), field.exact(0)
    )
    return total * step / field.pi


def _grid(field: Field, factors: Factors) -> Grid | None:
    """The lattice of the sum, if it has one variable with its copies."""
    if len(factors) != 1:
        return None
    moments, times = factors[0]
    one = moments.grid
    return None if one is None else Grid(one.spacing, one.offset * times)


def _moment(field: Field, factors: Factors, order: float, smoothing: Ball) -> Ball:
    """M at a real order, raised by the smoothing."""
    total = (smoothing**2 * order * (field.exact(order) + 1) / 2).exp()
    for moments, times in factors:
        total *= moments.at(order, [field.exact(0)])[0].real ** times
    return total


def _powers(field: Field, factors: Factors, order: float, step: Ball, count: int) -> list[Disc]:
    """M of the sum at the nodes."""
    total = [field.disc(1)] * count
    for moments, times in factors:
        line = moments.line(order, step, count)
        total = [product * value**times for product, value in zip(total, line, strict=True)]
    return total
