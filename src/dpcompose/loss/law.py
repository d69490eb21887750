"""Pairs of distributions on finitely many outcomes by their formulas, for proofs: floats hold them only up to their
rounding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from dpcompose.proof.ball import Ball, Field
from dpcompose.proof.moments import Grid

Outcomes = list[tuple[Ball, Ball]]


class AtomLaw(ABC):
    """Two distributions on common outcomes, at any precision."""

    @abstractmethod
    def outcomes(self, field: Field) -> Outcomes:
        """The masses under P and under Q of every outcome."""

    def grid(self, field: Field) -> Grid | None:
        """The lattice on which all finite ln(P / Q) lie, if they do."""
        return None


@dataclass(frozen=True)
class GivenLaw(AtomLaw):
    """Masses that are exactly these floats."""

    upper: tuple[float, ...]
    lower: tuple[float, ...]

    def outcomes(self, field: Field) -> Outcomes:
        return [(field.exact(p), field.exact(q)) for p, q in zip(self.upper, self.lower, strict=True)]


@dataclass(frozen=True)
class ResponseLaw(AtomLaw):
    """Randomized response over `categories` >= 2: the truth e^epsilon times as likely as any other answer."""

    epsilon: float
    categories: int

    def outcomes(self, field: Field) -> Outcomes:
        odds = field.exact(self.epsilon).exp()
        whole = odds + (self.categories - 1)
        rest = (self.categories - 2) / whole
        return [(odds / whole, 1 / whole), (rest, rest), (1 / whole, odds / whole)]

    def grid(self, field: Field) -> Grid:
        return Grid(field.exact(self.epsilon), field.exact(0))


@dataclass(frozen=True)
class PromiseLaw(AtomLaw):
    """What dominates every (epsilon, delta)-private mechanism."""

    epsilon: float
    delta: float

    def outcomes(self, field: Field) -> Outcomes:
        delta, odds = field.exact(self.delta), field.exact(self.epsilon).exp()
        high, low = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
        return [(high, low), (low, high), (delta, field.exact(0)), (field.exact(0), delta)]

    def grid(self, field: Field) -> Grid | None:
        epsilon = field.exact(self.epsilon)
        return Grid(2 * epsilon, epsilon) if self.epsilon > 0 else None


@dataclass(frozen=True)
class DiscreteLaplaceLaw(AtomLaw):
    """Noise like e^(-|x| / scale) on the integers, against itself moved by `shift`: outcomes merged by their ratio."""

    scale: float
    shift: int

    def outcomes(self, field: Field) -> Outcomes:
        rate = 1 / field.exact(self.scale)
        end, inside = 1 / (1 + (-rate).exp()), (rate / 2).tanh()
        middle = [inside * (-rate * x).exp() for x in range(1, self.shift)]
        masses = [end, *middle, end * (-rate * self.shift).exp()]
        return list(zip(masses, reversed(masses), strict=True))

    def grid(self, field: Field) -> Grid:
        rate = 1 / field.exact(self.scale)
        return Grid(2 * rate, rate * self.shift)


@dataclass(frozen=True)
class ReversedLaw(AtomLaw):
    """Q against P."""

    law: AtomLaw

    def outcomes(self, field: Field) -> Outcomes:
        return [(q, p) for p, q in self.law.outcomes(field)]

    def grid(self, field: Field) -> Grid | None:
        grid = self.law.grid(field)
        return None if grid is None else Grid(grid.spacing, -grid.offset)


@dataclass(frozen=True)
class SampledLaw(AtomLaw):
    """(1 - rate) Q + rate P against Q if `remove`, else P against (1 - rate) P + rate Q."""

    law: AtomLaw
    rate: float
    remove: bool

    def outcomes(self, field: Field) -> Outcomes:
        rate = field.exact(self.rate)
        if self.remove:
            return [((1 - rate) * q + rate * p, q) for p, q in self.law.outcomes(field)]
        return [(p, (1 - rate) * p + rate * q) for p, q in self.law.outcomes(field)]
