"""Finite sums for losses whose moment generating function has two terms: Laplace, two answers, exponential.

    M(t) = up(t) e^{t a} + down(t) e^{-t a},   up and down = constant (t+1)^i t^j (t + 1/2)^{-n}

Then delta(epsilon) = (1 / 2 pi i) int M_1^k_1 ... M_m^k_m e^{-t epsilon} / (t (t+1)) dt, Re t > 0, is expanded into
terms e^{t x} times a rational function: those with x <= 0 close to the right and vanish, the others are their
residues at 0, -1 and -1/2. They cancel, so the working precision is doubled until the ball is small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Protocol

from flint import arb, arb_series, ctx

from oracles.ball import Number, ball, inverse, refined


@dataclass(frozen=True)
class Term:
    """constant e^{t shift} (t+1)^after t^at (t + 1/2)^{-order}."""

    constant: arb
    shift: arb
    after: int = 0
    at: int = 0
    order: int = 0


class TwoTerm(Protocol):
    """A loss with such a moment generating function."""

    def terms(self) -> tuple[Term, Term]: ...


@dataclass(frozen=True)
class Laplace:
    """Atoms of 1/2 at `epsilon` and e^-epsilon / 2 at -epsilon, density e^{(l - epsilon)/2} / 4 between them."""

    epsilon: Number

    def terms(self) -> tuple[Term, Term]:
        bound = ball(self.epsilon)
        half = arb(1) / 2
        return Term(half, bound, after=1, order=1), Term((-bound).exp() / 2, -bound, at=1, order=1)


@dataclass(frozen=True)
class Flip:
    """Randomized response: epsilon with probability 1 / (1 + e^-epsilon), else -epsilon."""

    epsilon: Number

    def terms(self) -> tuple[Term, Term]:
        bound = ball(self.epsilon)
        return Term(1 / (1 + (-bound).exp()), bound), Term(1 / (1 + bound.exp()), -bound)


@dataclass(frozen=True)
class Range:
    """The pair of an epsilon-bounded-range mechanism: density e^{(l-epsilon)/2} / (2 (1 - e^-epsilon)) on +-epsilon.

    Its profile (1 - e^{-(epsilon - e)/2})^2 / (1 - e^-epsilon) is the largest over the two-point pairs whose losses are
    an epsilon apart, and its density is delta'' - delta'.
    """

    epsilon: Number

    def terms(self) -> tuple[Term, Term]:
        bound = ball(self.epsilon)
        density = 1 / (-2 * (-bound).expm1())
        return Term(density, bound, order=1), Term(-density * (-bound).exp(), -bound, order=1)


Parts = Sequence[tuple[TwoTerm, int]]


def delta(epsilon: Number, parts: Parts) -> arb:
    """delta(epsilon) of the composition of `parts`, pairs (loss, times)."""
    return refined(partial(_delta, epsilon, parts), start=192)


def epsilon(target: Number, parts: Parts) -> arb:
    """The smallest epsilon >= 0 whose delta is at most `target`."""
    return inverse(partial(delta, parts=parts), target)


def states(parts: Parts) -> int:
    """How many terms the expansion has."""
    count = 1
    for _, times in parts:
        count *= times + 1
    return count


def _delta(epsilon: Number, parts: Parts) -> arb:
    level = ball(epsilon)
    total = arb(0)
    for term in _expanded([(loss.terms(), times) for loss, times in parts]):
        total += _value(term, term.shift - level)
    return total if total > 0 or total.rad() > 0 else arb(0)


def _expanded(factors: list[tuple[tuple[Term, Term], int]]) -> Iterator[Term]:
    powers = [list(_powers(up, down, times)) for (up, down), times in factors]
    for chosen in product(*powers):
        whole = Term(arb(1), arb(0))
        for term in chosen:
            whole = _times(whole, term)
        yield whole


def _powers(up: Term, down: Term, times: int) -> Iterator[Term]:
    for j in range(times + 1):
        ups, downs = _power(up, times - j), _power(down, j)
        both = _times(ups, downs)
        yield Term(
            both.constant * arb.bin_uiui(times, j), both.shift, both.after, both.at, both.order
        )


def _power(term: Term, times: int) -> Term:
    return Term(
        term.constant**times,
        term.shift * times,
        term.after * times,
        term.at * times,
        term.order * times,
    )


def _times(one: Term, other: Term) -> Term:
    return Term(
        one.constant * other.constant,
        one.shift + other.shift,
        one.after + other.after,
        one.at + other.at,
        one.order + other.order,
    )


def _value(term: Term, distance: arb) -> arb:
    """The term's part of the integral, `distance` being its shift minus epsilon."""
    if distance <= 0:
        return arb(0)
    total, half = arb(0), arb(1) / 2
    if term.at == 0:
        total += arb(2) ** term.order
    if term.after == 0:
        total -= (-1) ** (term.at + term.order) * arb(2) ** term.order * (-distance).exp()
    if term.order:
        ctx.cap = term.order
        middle = arb_series([half, 1]) ** (term.after - 1) * arb_series([-half, 1]) ** (term.at - 1)
        middle *= arb_series([0, distance]).exp()
        total += (-distance / 2).exp() * middle[term.order - 1]
    value = term.constant * total
    return value if distance > 0 else value.union(arb(0))
