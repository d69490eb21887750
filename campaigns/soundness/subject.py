"""The mechanisms that the campaign composes, each as a line of Python, with facts about it for the
oracles.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb, ctx

from oracles import (
    atoms,
    cells,
    contour,
    gaussian,
    halfway,
    lattices,
    mixtures,
    optimal,
    patterns,
    periodic,
    residues,
    sampled,
    scales,
    short,
    shuffles,
)
from oracles.ball import Number, ball, ratio, refined
from oracles.law import DiscreteGaussian, Gaussian, Lattice, Law, Points, Terms
from oracles.normal import Direction, SampledGaussian
from oracles.sampled_laplace import SampledLaplace

RARE, FARTHEST = 1e-3, 300.0
"""Below this rate, and that epsilon, the line at -1/2 comes first."""
Curve = Callable[[Number, int], arb | None]
Floats = Callable[[], cells.Cells]


@dataclass(frozen=True)
class Item:
    """One mechanism: `code` builds it; `laws` are its losses, one for each direction that differs.

    `square` is mu^2 of a Gaussian; `pair` its few points, one for each direction; `two_term` its generating
    function's two terms, with the mass `outside` at infinity; `curves` a fast delta(epsilon, times) of its own, None
    where it has none, one for each direction; `cells` the finite part in floats for the lattice, likewise. `attained`:
    whether some mechanism has these losses however often it runs; if not, the truth is at most theirs.
    """

    code: str
    laws: tuple[Law, ...]
    square: Fraction | None = None
    two_term: residues.TwoTerm | None = None
    outside: Number = 0
    pairs: tuple[atoms.Pair, ...] = ()
    curves: tuple[Curve, ...] = ()
    cells: tuple[Floats, ...] = ()
    attained: bool = True

    @property
    def unsampled(self) -> str:
        """The line that builds it without its sample."""
        return re.sub(r"\.sampled\([^()]*\)", "", self.code)


Parts = tuple[tuple[Item, int], ...]


def code(parts: Parts) -> str:
    """The composition as a line of Python."""
    return f"compose({', '.join(f'{item.code} * {times}' for item, times in parts)})"


def delta(epsilon: Number, parts: Parts) -> arb:
    """The truth at `epsilon`: the larger of the two directions, each by the fastest oracle that covers the parts."""
    with ctx.workprec(200):
        first = _directed(epsilon, parts, 0, contour.FLOOR)
        if all(len(item.laws) == 1 for item, _ in parts) or _surely_below(epsilon, parts, 1, first):
            return first
        return first.max(
            _directed(epsilon, parts, 1, (first.lower() * arb(2) ** -90).max(contour.FLOOR))
        )


def _surely_below(epsilon: Number, parts: Parts, direction: int, known: arb) -> bool:
    """Whether few bits already prove that this direction's delta is at most the known one."""
    laws = list(zip(_rows(parts)[direction], _counts(parts), strict=True))
    if not all(isinstance(law, SampledGaussian | Gaussian | Terms) for law, _ in laws):
        return False
    return bool(
        contour.delta(epsilon, laws, bits=20, floor=known.lower().max(contour.FLOOR)) <= known
    )


def dominating(parts: Parts) -> bool:
    """Whether the truth may be below what these losses say."""
    return sum(_counts(parts)) > 1 and not all(item.attained for item, _ in parts)


def infinity(parts: Parts) -> arb:
    """The mass at infinity, in the direction where there is more."""
    best = arb(0)
    with ctx.workprec(200):
        for row in _rows(parts):
            finite = arb(1)
            for law, times in zip(row, _counts(parts), strict=True):
                finite *= (1 - law.outside) ** times
            best = best.max(1 - finite)
    return best


def infinite(parts: Parts) -> list[tuple[float, float]]:
    """Two ends around the mass at infinity of each direction."""
    found = []
    with ctx.workprec(200):
        for row in _rows(parts):
            logs = [
                times * (-law.outside).log1p()
                for law, times in zip(row, _counts(parts), strict=True)
            ]
            mass = -sum(logs, arb(0)).expm1()
            found.append(
                (max(float(mass.lower()) * (1 - 1e-15), 0.0), float(mass.upper()) * (1 + 1e-15))
            )
    return found


def in_cells(parts: Parts) -> list[list[tuple[cells.Cells, int]]]:
    """For the lattice: the parts of each direction; empty if one cannot be listed."""
    if not all(item.cells for item, _ in parts):
        return []
    directions = max(len(item.cells) for item, _ in parts)
    return [
        [(item.cells[turn % len(item.cells)](), times) for item, times in parts]
        for turn in range(directions)
    ]


def largest(parts: Parts) -> float:
    """An upper bound of the finite losses."""
    return max(
        float(
            sum(
                (times * law.largest for law, times in zip(row, _counts(parts), strict=True)),
                arb(0),
            )
        )
        for row in _rows(parts)
    )


def _rows(parts: Parts) -> list[list[Law]]:
    directions = max(len(item.laws) for item, _ in parts)
    return [
        [item.laws[direction % len(item.laws)] for item, _ in parts]
        for direction in range(directions)
    ]


def _counts(parts: Parts) -> list[int]:
    return [times for _, times in parts]


def _directed(epsilon: Number, parts: Parts, direction: int, floor: arb) -> arb:
    squares = [(item.square, times) for item, times in parts if item.square is not None]
    if len(squares) == len(parts):
        return refined(
            lambda: gaussian.profile(
                ball(epsilon), sum((times * ball(square) for square, times in squares), arb(0))
            )
        )
    if len(parts) == 1 and parts[0][0].curves:
        curves = parts[0][0].curves
        value = curves[direction % len(curves)](epsilon, parts[0][1])
        if value is not None:
            return value
    terms = [(item.two_term, times) for item, times in parts if item.two_term is not None]
    if (
        len(terms) == len(parts)
        and residues.states(terms) * (1 + sum(times for _, times in terms)) <= 150_000
    ):
        finite = refined(
            lambda: sum((times * (-ball(item.outside)).log1p() for item, times in parts), arb(0)),
            bits=100,
        )
        inner = residues.delta(epsilon, terms)
        return inner if finite.is_zero() else -finite.expm1() + finite.exp() * inner
    pairs = [
        (item.pairs[direction % len(item.pairs)], times) for item, times in parts if item.pairs
    ]
    if len(pairs) == len(parts) and atoms.states(pairs) <= 6_000:
        return atoms.delta(epsilon, pairs)
    laws = list(zip(_rows(parts)[direction], _counts(parts), strict=True))
    noises = [(term, times) for term, times in terms if isinstance(term, residues.Laplace)]
    if 1 < len(noises) == len(parts) and contour.planned_near(epsilon, laws).smoothing:
        value = scales.delta(epsilon, noises)
        if value.rel_accuracy_bits() >= 15 or value < 2 * floor:
            return value
    if len(parts) == 1 and isinstance(laws[0][0], SampledGaussian) and parts[0][1] <= 100:
        return _short(epsilon, laws[0][0], parts[0][1], floor)
    if (
        any(isinstance(law, SampledGaussian) and law.rate < RARE for law, _ in laws)
        and epsilon < FARTHEST
    ):
        rows = _rows(parts)
        ours, theirs = (
            [*zip(rows[turn % len(rows)], _counts(parts), strict=True)]
            for turn in (direction, direction + 1)
        )
        if all(isinstance(law, SampledGaussian | Gaussian) for law, _ in ours):
            value = halfway.delta(epsilon, ours, theirs, bits=60, nodes=20_000)
            if value.rel_accuracy_bits() >= 45 or value < 2 * floor:
                return value
    return contour.delta(epsilon, laws, floor=floor)


def _short(epsilon: Number, law: SampledGaussian, times: int, floor: arb) -> arb:
    """Few steps decay slowly in frequency: where the nodes of the balls are too few, a million nodes in floats."""
    value = contour.delta(epsilon, [(law, times)], nodes=3000, floor=floor)
    if value.rel_accuracy_bits() >= 45 or value < 2 * floor:
        return value
    other = short.delta(epsilon, law, times=times)
    return value.intersection(other)


def laplace(scale: float, *, sensitivity: float = 1.0, records: int = 1) -> Item:
    """Replacing a record is changing two `records`."""
    loss = residues.Laplace(records * ratio(sensitivity, scale))
    bound = float(loss.epsilon)
    floats = (lambda: cells.Smooth(cells.laplace(bound), bound, 2 * bound),)
    return Item(
        f"Laplace({scale!r}{_sensitivity(sensitivity)})",
        (Terms(loss),),
        two_term=loss,
        cells=floats,
    )


def normal(sigma: float, *, sensitivity: float = 1.0, records: int = 1) -> Item:
    square = (records * ratio(sensitivity, sigma)) ** 2
    mu = float(records * ratio(sensitivity, sigma))
    text = f"Gaussian({sigma!r}{_sensitivity(sensitivity)})"
    return Item(
        text, (Gaussian(square),), square=square, cells=(lambda: cells.Smooth(cells.gaussian(mu)),)
    )


def gaussian_promise(mu: float) -> Item:
    floats = (lambda: cells.Smooth(cells.gaussian(mu)),)
    return Item(
        f"GaussianDP({mu!r})",
        (Gaussian(Fraction(mu) ** 2),),
        square=Fraction(mu) ** 2,
        cells=floats,
    )


def correlated(strategy: list[list[float]], sigma: float, gap: int, most: int) -> Item:
    """Noise on an encoded run of steps; no two columns of the strategy have a negative product."""
    found = patterns.sensitivity_squared(strategy, gap, most, False)
    text = f"MatrixMechanism({strategy!r}, sigma={sigma!r}, participation=Participation(separation={gap}, most={most}))"
    return _moved(text, found.equal, sigma)


def tree(sigma: float, steps: int, gap: int, most: int, *, restart: int | None) -> Item:
    square = patterns.tree_sensitivity_squared(steps, gap, most, restart=restart)
    participation = f"Participation(separation={gap}, most={most})"
    text = f"TreeAggregation({sigma!r}, steps={steps}, participation={participation}, restart={restart!r})"
    return _moved(text, square, sigma)


def _moved(text: str, square: Fraction | int, sigma: float) -> Item:
    """Gaussian noise on what one record moves by the root of `square`."""
    squared = square * ratio(1, sigma) ** 2
    floats = (lambda: cells.Smooth(cells.gaussian(math.sqrt(squared))),)
    return Item(text, (Gaussian(squared),), square=squared, cells=floats)


def _sensitivity(sensitivity: float) -> str:
    return "" if sensitivity == 1 else f", sensitivity={sensitivity!r}"


def promise(epsilon: float, delta: float) -> Item:
    pair = atoms.promise(epsilon, delta)

    def curve(level: Number, times: int) -> arb:
        return optimal.homogeneous(level, epsilon=epsilon, delta=delta, times=times)

    law = Points(pair)
    text = f"BlackBox({epsilon!r}, delta={delta!r})" if delta else f"BlackBox({epsilon!r})"
    return Item(
        text,
        (law,),
        None,
        residues.Flip(epsilon),
        delta,
        (pair,),
        (curve,),
        (_listed(pair, 2 * epsilon),),
    )


def bounded_range(epsilon: float, *, records: int = 1) -> Item:
    loss = residues.Range(records * ratio(epsilon, 1))
    floats = (lambda: cells.Smooth(cells.bounded_range(float(loss.epsilon))),)
    return Item(
        f"Exponential({epsilon!r})", (Terms(loss),), two_term=loss, cells=floats, attained=False
    )


def _listed(pair: atoms.Pair, spacing: float = 0.0) -> Floats:
    """The finite losses of a pair on a few points."""

    def build() -> cells.Cells:
        with ctx.workprec(100):
            points = sorted((float(loss), float(mass)) for loss, mass in atoms.losses(pair))
        losses, masses = np.array(points).T
        return cells.Listed(losses, masses / masses.sum(), 32 * cells.U, spacing, float(losses[-1]))

    return build


def response(epsilon: float, categories: int) -> Item:
    builder, pair = lattices.response(epsilon, categories), atoms.response(epsilon, categories)
    text = f"RandomizedResponse({epsilon!r}, categories={categories})"
    if categories == 2:
        return Item(
            text,
            promise(epsilon, 0.0).laws,
            None,
            residues.Flip(epsilon),
            0,
            (pair,),
            promise(epsilon, 0.0).curves,
            (_listed(pair, 2 * epsilon),),
        )
    floats = (_listed(pair, epsilon),)
    return Item(text, (Lattice(builder),), pairs=(pair,), curves=(_lattice(builder),), cells=floats)


def discrete_laplace(scale: float, shift: int, *, records: int = 1) -> Item:
    builder = lattices.discrete_laplace(ratio(1, scale), records * shift)

    def pair() -> atoms.Points:
        masses = builder().masses
        return list(zip(masses, reversed(masses), strict=True))

    text, floats = f"DiscreteLaplace({scale!r}, shift={shift})", (_listed(pair, 2 / scale),)
    return Item(text, (Lattice(builder),), pairs=(pair,), curves=(_lattice(builder),), cells=floats)


def _lattice(builder: lattices.Builder) -> Curve:
    def curve(level: Number, times: int) -> arb:
        if len(builder().masses) * times <= 1500:
            return lattices.delta(level, builder, times=times)
        return periodic.delta(level, builder, times=times)

    return curve


def discrete_gaussian(sigma: float, shift: int, *, records: int = 1) -> Item:
    moved = records * shift

    def curve(level: Number, times: int) -> arb:
        if times == 1:
            return lattices.delta(level, lattices.discrete_gaussian(sigma, moved))
        return periodic.gaussian(level, sigma=sigma, shift=moved, times=times)

    def build() -> cells.Cells:
        reach = math.ceil(39 * sigma) + moved
        noise = np.arange(reach, -reach - 1, -1.0)
        weights = np.exp(-((noise / sigma) ** 2) / 2)
        losses = (moved - 2 * noise) * moved / (2 * sigma * sigma)
        return cells.Listed(
            losses,
            weights / weights.sum(),
            4000 * cells.U,
            moved / (sigma * sigma),
            float(losses[reach]),
        )

    text, floats = f"DiscreteGaussian({sigma!r}, shift={shift})", (build,) if sigma < 1000 else ()
    return Item(text, (DiscreteGaussian(sigma, moved),), curves=(curve,), cells=floats)


def sampled_normal(sigma: float, rate: float) -> Item:
    mu, text = ratio(1, sigma), f"Gaussian({sigma!r}).sampled({rate!r})"
    laws = tuple(
        SampledGaussian(rate, mu, direction) for direction in (Direction.REMOVE, Direction.ADD)
    )
    return Item(
        text,
        laws,
        curves=_single(rate, sampled.gaussian(mu)),
        cells=_mixed(cells.gaussian(float(mu)), rate),
    )


def mixture(sigma: float, shifts: tuple[float, ...], weights: tuple[float, ...]) -> Item:
    """A record that moves a sum by a random amount; increasing shifts, weights whose floats sum to about 1.

    The heaviest is what the others leave: the library answers for every law within the rounding of the weights.
    """
    text = f"MixtureOfGaussians({sigma!r}, shifts={shifts!r}, weights={weights!r})"
    exact = [Fraction(weight) for weight in weights]
    exact[exact.index(max(exact))] += 1 - sum(exact)
    terms = tuple(
        (Fraction(shift) / Fraction(sigma), weight)
        for shift, weight in zip(shifts, exact, strict=True)
    )
    laws = mixtures.Mixture(terms), mixtures.Mixture(mixtures.NOTHING, terms)
    return Item(text, laws, curves=tuple(partial(_one_mixture, law) for law in laws))


def _one_mixture(law: mixtures.Mixture, level: Number, times: int) -> arb | None:
    return mixtures.profile(level, law) if times == 1 else None


def capped(sigma: float, rate: float, records: int, batch: int) -> Item:
    """A Poisson sample cut to a largest batch: the losses that dominate it."""
    text = f"TruncatedPoisson({sigma!r}, rate={rate!r}, records={records}, batch={batch})"
    return Item(text, mixtures.capped(sigma, rate, records, batch), attained=False)


def _mixed(tails: cells.TailsAt, rate: float) -> tuple[Floats, ...]:
    def build(remove: bool) -> cells.Cells:
        return cells.Smooth(cells.sampled(tails, rate, remove=remove))

    return partial(build, True), partial(build, False)


def replaced_normal(sigma: float, rate: float) -> Item:
    mu, text = ratio(1, sigma), f"Gaussian({sigma!r}).sampled({rate!r})"
    law = SampledGaussian(rate, mu, Direction.REPLACE)

    def curve(level: Number, times: int) -> arb | None:
        return sampled.replace_gaussian(level, rate, mu) if times == 1 else None

    return Item(
        text,
        (law,),
        curves=(curve,),
        cells=(lambda: cells.Smooth(cells.replaced_gaussian(rate, float(mu))),),
    )


def sampled_laplace(scale: float, rate: float) -> Item:
    bound, text = ratio(1, scale), f"Laplace({scale!r}).sampled({rate!r})"
    laws = tuple(SampledLaplace(rate, bound, remove) for remove in (True, False))
    floats = _mixed(cells.laplace(float(bound)), rate)
    return Item(text, laws, curves=_single(rate, sampled.laplace(bound)), cells=floats)


def _single(rate: Number, profile: sampled.Profile) -> tuple[Curve, ...]:
    def remove(level: Number, times: int) -> arb | None:
        return sampled.remove(level, rate, profile) if times == 1 else None

    def add(level: Number, times: int) -> arb | None:
        return sampled.add(level, rate, profile) if times == 1 else None

    return remove, add


def sampled_promise(epsilon: float, delta: float, rate: float) -> Item:
    pair = atoms.promise(epsilon, delta)
    pairs = atoms.remove(pair, rate), atoms.add(pair, rate)
    return _paired(f"BlackBox({epsilon!r}, delta={delta!r}).sampled({rate!r})", pairs)


def _paired(text: str, pairs: tuple[atoms.Pair, ...]) -> Item:
    """A loss that has nothing but its points."""
    return Item(text, tuple(map(Points, pairs)), pairs=pairs, cells=tuple(map(_listed, pairs)))


def together(first: float, second: float, times: int, rate: float) -> Item:
    """Several promises on one sample."""
    joined = atoms.joined([(atoms.promise(first), times), (atoms.promise(second), 1)])
    text = f"(BlackBox({first!r}) * {times} + BlackBox({second!r})).sampled({rate!r})"
    return _paired(text, (atoms.remove(joined, rate), atoms.add(joined, rate)))


def selection(size: float, kind: str) -> Item:
    """A selection with the loss of another mechanism, which it attains for no single choice of the scores."""
    if kind == "AboveThreshold":
        return replace(promise(size, 0.0), code=f"AboveThreshold({size!r})", attained=False)
    if kind == "NoisyArgmax":
        sigma = math.sqrt(2) / size
        square = 2 / ratio(sigma, 1) ** 2
        floats = (lambda: cells.Smooth(cells.gaussian(size)),)
        return Item(
            f"NoisyArgmax({sigma!r})",
            (Gaussian(square),),
            square=square,
            cells=floats,
            attained=False,
        )
    if kind == "gumbel":
        scale = 1 / size
        loss = residues.Range(ratio(1, scale))
        floats = (lambda: cells.Smooth(cells.bounded_range(float(loss.epsilon))),)
        base = Item("", (Terms(loss),), two_term=loss, cells=floats)
    else:
        base = laplace(scale := 1 / size)
    return replace(base, code=f"NoisyMax({scale!r}, noise={kind!r}, monotone=True)", attained=False)


def skellam(variance: float, shift: int) -> Item:
    return _paired(f"Skellam({variance!r}, shift={shift})", (lattices.skellam(variance, shift),))


def staircase(epsilon: float, gamma: float | None) -> Item:
    text = (
        f"Staircase({epsilon!r})" if gamma is None else f"Staircase({epsilon!r}, gamma={gamma!r})"
    )

    def pair() -> atoms.Points:
        fall = (-ball(epsilon)).exp()
        step = 1 / (1 + (ball(epsilon) / 2).exp()) if gamma is None else ball(gamma)
        height = (1 - fall) / (2 * (step + fall * (1 - step)))
        most = arb(1) / 2 + height * step.min(1 - step)
        rest = 1 - most - most * fall
        return [(most, most * fall), (most * fall, most), (rest, rest)]

    return _paired(text, (pair,))


def encoding(keep: float, flip: float) -> Item:
    return _paired(f"UnaryEncoding({keep!r}, flip={flip!r})", (shuffles.encoding(keep, flip),))


def shuffled(epsilon: float, reports: int) -> Item:
    item = _paired(
        f"ShuffledReports({epsilon!r}, reports={reports})", (shuffles.clones(epsilon, reports),)
    )
    return replace(item, attained=False)


def points(upper: list[int], lower: list[int]) -> Item:
    """A pair by its masses, in 2^-20."""

    def pair() -> atoms.Points:
        return [(arb(p) / 2**20, arb(q) / 2**20) for p, q in zip(upper, lower, strict=True)]

    masses = [[number / 2**20 for number in row] for row in (upper, lower)]
    text = f"DominatingPair.atoms(upper={masses[0]}, lower={masses[1]}, adjacency=Adjacency.ADD_REMOVE)"
    return _paired(text, (pair, atoms.swapped(pair)))


def profiled(inner: Item, *, error: float) -> Item:
    """A mechanism known by values of its profile."""
    profile = f"lambda epsilon: {inner.code}.delta(epsilon=epsilon).upper"
    text = (
        f"DominatingPair.from_profile({profile}, error={error!r}, adjacency=Adjacency.ADD_REMOVE)"
    )
    return replace(inner, code=text)


def sampled_response(epsilon: float, categories: int, rate: float) -> Item:
    pair = atoms.response(epsilon, categories)
    pairs = atoms.remove(pair, rate), atoms.add(pair, rate)
    return _paired(
        f"RandomizedResponse({epsilon!r}, categories={categories}).sampled({rate!r})", pairs
    )


def sampled_points(upper: list[Fraction], lower: list[Fraction], rate: float) -> Item:
    """A pair by its masses, floats as fractions, on a sample."""

    def pair() -> atoms.Points:
        return [(ball(p), ball(q)) for p, q in zip(upper, lower, strict=True)]

    masses = [[float(number) for number in row] for row in (upper, lower)]
    text = f"DominatingPair.atoms(upper={masses[0]}, lower={masses[1]}, adjacency=Adjacency.ADD_REMOVE)"
    pairs = atoms.remove(pair, rate), atoms.add(atoms.swapped(pair), rate)
    return replace(_paired(f"{text}.sampled({rate!r})", pairs), cells=())


def replaced_response(epsilon: float, categories: int) -> Item:
    """Two members in a row, k <= e^epsilon: the power function of k-ary randomized response after itself."""

    def pair() -> atoms.Points:
        grow, others = ball(epsilon).exp(), categories - 2
        least = 1 / (grow + categories - 1)
        ends = [(grow * least, least / grow), (others * least, others * least / grow)]
        middle = (grow - categories + 1) * least / grow
        return [*ends, (middle, middle), *((q, p) for p, q in ends)]

    text = f"RandomizedResponse({epsilon!r}, categories={categories})"
    return Item(text, (Points(pair),), pairs=(pair,))


def vast(item: Item) -> Item:
    """The same without what is known in floats: its masses are below their range."""
    return replace(item, cells=())
