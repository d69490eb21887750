"""g(x) = E[(1 - e^(x - L))_+] for a sum of independent variables, in ball arithmetic: every error is a theorem.

The formulas are those of `contour`. For t = order + iu the trapezoid sum of M(t) e^(-t x) / (t (t + 1)) with period W
is exactly the sum over integers n of e^(order n W) g(x + n W), all terms nonnegative. Here M comes in balls that
contain it, the sum is evaluated in balls, and

  the terms n < 0 are at most M(0) e^(-order W |n|);
  those n > 0 are at most M(l) e^(-l x) l^l / (1 + l)^(1 + l) e^(-(l - order) n W) at any l > order;
  the nodes left out are bounded in `tail`;
  a Gaussian of variance s^2, if one is added, raises g by at most the expectation of s^2 e^(-y / 2) n_s(y) at
  y = L - x, whose transform is s^2 e^(s^2 / 8) e^(s^2 t (t + 1) / 2) M(t).

Reference: [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpcompose.contour import shortened
from dpcompose.proof.ball import Ball, Disc, Field
from dpcompose.proof.moments import BallLattice, Factors
from dpcompose.proof.plan import LinePlan
from dpcompose.proof.tail import TailBound


@dataclass(frozen=True)
class Enclosure:
    """lower <= g(x) <= upper, and the part of the width that each source of error adds, absolute."""

    lower: Ball
    upper: Ball
    aliasing: Ball
    truncation: Ball
    smoothing: Ball
    rounding: Ball


@dataclass(frozen=True, kw_only=True)
class ProvedLine:
    """A line with its nodes, ready to be summed at any x.

    Args:
        field: Where balls come from.
        order: Its real part.
        step: The distance of the nodes.
        main: The nodes' terms at x = 0, as a polynomial in e^(-i step x): for a lattice without the part that e^x
            multiplies.
        tail: A bound on the nodes left out, to be multiplied by e^(-order x).
        mass: M(0).
        whole: M(order), raised by the smoothing.
        outer: An order and M there, raised by the smoothing, for the aliases above x.
        largest: No alias above this value.
        nodes: How many nodes there are.
        name: The quadrature rule.
        other: The part of a lattice's terms that e^x multiplies, or None.
        grid: The lattice, if the sum is one over a lattice.
        bump: The terms of the smoothing gap, or None.
        bump_tail: `tail` for the smoothing gap, or None.
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
        """The two-sided value of g(x), x exact."""
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
        """The first lattice point above x, and the error if x cannot be told from it: its term nearly vanishes."""
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


def draw(field: Field, factors: Factors, plan: LinePlan) -> ProvedLine:
    """The line of that plan, at the working precision."""
    grid = _grid(field, factors)
    if grid is not None:
        return _periodic(field, factors, plan, grid)
    step = field.exact(shortened(2 * math.pi / plan.period, bits=24))
    count = math.ceil(plan.last / float(step)) + 1
    powers = _powers(field, factors, plan.order, step, count)
    return (_mollified if plan.smoothing > 0 else _direct)(field, factors, plan, step, powers)


def _direct(
    field: Field, factors: Factors, plan: LinePlan, step: Ball, powers: list[Disc]
) -> ProvedLine:
    """The line of L itself."""
    main = list[Disc]()
    for j, power in enumerate(powers):
        t = field.disc(plan.order, step * j)
        main.append((power if j == 0 else 2 * power) / (t * (t + 1)))
    whole, bound = (
        powers[0].real,
        TailBound(field, factors, plan.order, plan.variance, plan.magnitude),
    )
    tail = bound.beyond(step * len(powers), step, field.exact(plan.error) * field.pi)
    return ProvedLine(
        field=field,
        order=plan.order,
        step=step,
        main=field.power_sum(main),
        tail=(whole * tail / field.pi).upper(),
        mass=_mass(field, factors),
        whole=whole,
        outer=_outer(field, factors, plan),
        largest=_largest(field, factors),
        nodes=len(powers),
        name="contour",
    )


def _mollified(
    field: Field, factors: Factors, plan: LinePlan, step: Ball, powers: list[Disc]
) -> ProvedLine:
    """The line of L + Z, Z a Gaussian, and the bump that bounds the gap."""
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
    return ProvedLine(
        field=field,
        order=plan.order,
        step=step,
        main=field.power_sum(main),
        tail=(faded / edge**2).upper(),
        mass=_mass(field, factors),
        whole=whole,
        outer=_outer(field, factors, plan),
        largest=field.exact(math.inf),
        nodes=len(powers),
        name="smoothed contour",
        bump=field.power_sum([gap * term for term in bump]),
        bump_tail=(faded * gap).upper(),
    )


def _periodic(field: Field, factors: Factors, plan: LinePlan, grid: BallLattice) -> ProvedLine:
    """The finite sum over the circle that the line is for a lattice, without the nodes from `last` on if that pays."""
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
    powers = _powers(field, factors, plan.order, step, count)
    main, other = list[Disc](), list[Disc]()
    for j, power in enumerate(powers):
        t = field.disc(plan.order, step * j)
        weighted = spacing * (power if j == 0 else 2 * power)
        main.append(weighted / -(-spacing * t).expm1())
        other.append(weighted / -(-spacing * (t + 1)).expm1())
    whole = powers[0].real
    return ProvedLine(
        field=field,
        order=plan.order,
        step=step,
        main=field.power_sum(main),
        tail=(tail * whole).upper(),
        mass=_mass(field, factors),
        whole=whole,
        outer=_outer(field, factors, plan),
        largest=_largest(field, factors),
        nodes=count,
        name="lattice",
        other=field.power_sum(other),
        grid=grid,
    )


def _mass(field: Field, factors: Factors) -> Ball:
    """M(0) of the sum."""
    mass = field.exact(1)
    for moments, times in factors:
        mass *= moments.mass**times
    return mass


def _largest(field: Field, factors: Factors) -> Ball:
    """The supremum of the sum's support."""
    return sum((moments.largest * times for moments, times in factors), field.exact(0))


def _outer(field: Field, factors: Factors, plan: LinePlan) -> tuple[float, Ball] | None:
    """The order that bounds the aliases above x, and M there, raised by the smoothing."""
    if plan.beyond is None:
        return None
    smoothing = field.exact(plan.smoothing)
    total = (smoothing**2 * plan.beyond * (field.exact(plan.beyond) + 1) / 2).exp()
    for moments, times in factors:
        total *= moments.at(plan.beyond, [field.exact(0)])[0].real ** times
    return plan.beyond, total


def _omitted(
    field: Field, factors: Factors, plan: LinePlan, step: Ball, first: int, half: int
) -> Ball:
    """A bound on step / pi times the sum of |M| / M(order) over the nodes from `first` to `half`."""
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
    """The lattice of the sum, if it has one variable with its copies."""
    if len(factors) != 1:
        return None
    moments, times = factors[0]
    one = moments.grid
    return None if one is None else BallLattice(one.spacing, one.offset * times)


def _powers(field: Field, factors: Factors, order: float, step: Ball, count: int) -> list[Disc]:
    """M of the sum at the nodes."""
    total = [field.disc(1)] * count
    for moments, times in factors:
        line = moments.line(order, step, count)
        total = [product * value**times for product, value in zip(total, line, strict=True)]
    return total
