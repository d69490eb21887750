"""What the campaign composes: each item is a line of Python, and what is true of it, for the oracles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from truth import atoms, contour, gaussian, lattices, optimal, periodic, residues, sampled, short
from truth.ball import Number, ball, ratio, refined
from truth.law import DiscreteGaussian, Gaussian, Lattice, Law, Points, Terms
from truth.normal import Direction, SampledGaussian
from truth.sampled_laplace import SampledLaplace

Curve = Callable[[Number, int], arb | None]


@dataclass(frozen=True)
class Item:
    """One mechanism: `code` builds it; `laws` are its losses, one for each direction that differs.

    `square` is mu^2 of a Gaussian; `pair` its few points, one for each direction; `two_term` its generating
    function's two terms, with the mass `outside` at infinity; `curves` a fast delta(epsilon, times) of its own, None
    where it has none, one for each direction.
    """

    code: str
    laws: tuple[Law, ...]
    square: Fraction | None = None
    two_term: residues.TwoTerm | None = None
    outside: Number = 0
    pairs: tuple[atoms.Pair, ...] = ()
    curves: tuple[Curve, ...] = ()


Parts = tuple[tuple[Item, int], ...]


def code(parts: Parts) -> str:
    """The composition as a line of Python."""
    return f"compose({', '.join(f'{item.code} * {times}' for item, times in parts)})"


def delta(epsilon: float, parts: Parts) -> arb:
    """The truth at `epsilon`: the larger of the two directions, each by the fastest oracle that covers the parts."""
    with ctx.workprec(200):
        first = _directed(epsilon, parts, 0, contour.FLOOR)
        if all(len(item.laws) == 1 for item, _ in parts):
            return first
        return first.max(_directed(epsilon, parts, 1, (first.lower() * arb(2) ** -90).max(contour.FLOOR)))


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


def largest(parts: Parts) -> float:
    """An upper bound of the finite losses."""
    return max(
        float(sum((times * law.largest for law, times in zip(row, _counts(parts), strict=True)), arb(0)))
        for row in _rows(parts)
    )


def _rows(parts: Parts) -> list[list[Law]]:
    directions = max(len(item.laws) for item, _ in parts)
    return [[item.laws[direction % len(item.laws)] for item, _ in parts] for direction in range(directions)]


def _counts(parts: Parts) -> list[int]:
    return [times for _, times in parts]


def _directed(epsilon: float, parts: Parts, direction: int, floor: arb) -> arb:
    squares = [(item.square, times) for item, times in parts if item.square is not None]
    if len(squares) == len(parts):
        return refined(lambda: gaussian.profile(ball(epsilon), sum(times * ball(square) for square, times in squares)))
    if len(parts) == 1 and parts[0][0].curves:
        curves = parts[0][0].curves
        value = curves[direction % len(curves)](epsilon, parts[0][1])
        if value is not None:
            return value
    terms = [(item.two_term, times) for item, times in parts if item.two_term is not None]
    if len(terms) == len(parts) and residues.states(terms) * (1 + sum(times for _, times in terms)) <= 150_000:
        finite = refined(
            lambda: sum((times * (-ball(item.outside)).log1p() for item, times in parts), arb(0)), bits=100
        )
        inner = residues.delta(epsilon, terms)
        return inner if finite.is_zero() else -finite.expm1() + finite.exp() * inner
    pairs = [(item.pairs[direction % len(item.pairs)], times) for item, times in parts if item.pairs]
    if len(pairs) == len(parts) and atoms.states(pairs) <= 6_000:
        return atoms.delta(epsilon, pairs)
    laws = list(zip(_rows(parts)[direction], _counts(parts), strict=True))
    if len(parts) == 1 and isinstance(laws[0][0], SampledGaussian) and parts[0][1] <= 100:
        return _short(epsilon, laws[0][0], parts[0][1], floor)
    return contour.delta(epsilon, laws, floor=floor)


def _short(epsilon: float, law: SampledGaussian, times: int, floor: arb) -> arb:
    """Few steps decay slowly in frequency: where the nodes of the balls are too few, a million nodes in floats."""
    value = contour.delta(epsilon, [(law, times)], nodes=3000, floor=floor)
    if value.rel_accuracy_bits() >= 45 or value < 2 * floor:
        return value
    other = short.delta(epsilon, law, times=times)
    return value.intersection(other)


def laplace(scale: float, *, sensitivity: float = 1.0, records: int = 1) -> Item:
    """Replacing a record is changing two `records`."""
    loss = residues.Laplace(records * ratio(sensitivity, scale))
    return Item(f"Laplace({scale!r}{_sensitivity(sensitivity)})", (Terms(loss),), two_term=loss)


def normal(sigma: float, *, sensitivity: float = 1.0, records: int = 1) -> Item:
    square = (records * ratio(sensitivity, sigma)) ** 2
    return Item(f"Gaussian({sigma!r}{_sensitivity(sensitivity)})", (Gaussian(square),), square=square)


def _sensitivity(sensitivity: float) -> str:
    return "" if sensitivity == 1 else f", sensitivity={sensitivity!r}"


def promise(epsilon: float, delta: float) -> Item:
    pair = atoms.promise(epsilon, delta)

    def curve(level: Number, times: int) -> arb:
        return optimal.homogeneous(level, epsilon=epsilon, delta=delta, times=times)

    law = Points(pair)
    text = f"BlackBox({epsilon!r}, delta={delta!r})" if delta else f"BlackBox({epsilon!r})"
    return Item(text, (law,), None, residues.Flip(epsilon), delta, (pair,), (curve,))


def bounded_range(epsilon: float) -> Item:
    loss = residues.Range(epsilon)
    return Item(f"Exponential({epsilon!r})", (Terms(loss),), two_term=loss)


def response(epsilon: float, categories: int) -> Item:
    builder, pair = lattices.response(epsilon, categories), atoms.response(epsilon, categories)
    text = f"RandomizedResponse({epsilon!r}, categories={categories})"
    if categories == 2:
        return Item(
            text, promise(epsilon, 0.0).laws, None, residues.Flip(epsilon), 0, (pair,), promise(epsilon, 0.0).curves
        )
    return Item(text, (Lattice(builder),), pairs=(pair,), curves=(_lattice(builder),))


def discrete_laplace(scale: float, shift: int, *, records: int = 1) -> Item:
    builder = lattices.discrete_laplace(ratio(1, scale), records * shift)

    def pair() -> atoms.Points:
        masses = builder().masses
        return list(zip(masses, reversed(masses), strict=True))

    return Item(
        f"DiscreteLaplace({scale!r}, shift={shift})", (Lattice(builder),), pairs=(pair,), curves=(_lattice(builder),)
    )


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

    return Item(f"DiscreteGaussian({sigma!r}, shift={shift})", (DiscreteGaussian(sigma, moved),), curves=(curve,))


def sampled_normal(sigma: float, rate: float) -> Item:
    mu, text = ratio(1, sigma), f"Gaussian({sigma!r}).sampled({rate!r})"
    laws = tuple(SampledGaussian(rate, mu, direction) for direction in (Direction.REMOVE, Direction.ADD))
    return Item(text, laws, curves=_single(rate, sampled.gaussian(mu)))


def replaced_normal(sigma: float, rate: float) -> Item:
    mu, text = ratio(1, sigma), f"Gaussian({sigma!r}).sampled({rate!r})"
    law = SampledGaussian(rate, mu, Direction.REPLACE)

    def curve(level: Number, times: int) -> arb | None:
        return sampled.replace_gaussian(level, rate, mu) if times == 1 else None

    return Item(text, (law,), curves=(curve,))


def sampled_laplace(scale: float, rate: float) -> Item:
    bound, text = ratio(1, scale), f"Laplace({scale!r}).sampled({rate!r})"
    laws = tuple(SampledLaplace(rate, bound, remove) for remove in (True, False))
    return Item(text, laws, curves=_single(rate, sampled.laplace(bound)))


def _single(rate: Number, profile: sampled.Profile) -> tuple[Curve, ...]:
    def remove(level: Number, times: int) -> arb | None:
        return sampled.remove(level, rate, profile) if times == 1 else None

    def add(level: Number, times: int) -> arb | None:
        return sampled.add(level, rate, profile) if times == 1 else None

    return remove, add


def sampled_promise(epsilon: float, delta: float, rate: float) -> Item:
    pair = atoms.promise(epsilon, delta)
    pairs = atoms.remove(pair, rate), atoms.add(pair, rate)
    return Item(f"BlackBox({epsilon!r}, delta={delta!r}).sampled({rate!r})", tuple(map(Points, pairs)), pairs=pairs)


def sampled_response(epsilon: float, categories: int, rate: float) -> Item:
    pair = atoms.response(epsilon, categories)
    pairs = atoms.remove(pair, rate), atoms.add(pair, rate)
    text = f"RandomizedResponse({epsilon!r}, categories={categories}).sampled({rate!r})"
    return Item(text, tuple(map(Points, pairs)), pairs=pairs)
