"""Adaptive marginals: which are measured, with which noise, and the model that is fitted to them.

Privacy. One number, rho, is charged before anything runs; what runs is rho-zero-concentrated private (zCDP):

1. A unit adds or removes at most `change` rows. The counts of a marginal split rows into cells, so they move by at most
   `change` in L1, and so in L2. Discrete Gaussian noise of sigma on each is change^2 / (2 sigma^2)-zCDP.
2. The score of a candidate is its weight times its L1 distance from a public estimate, which moves by at most `change`
   by the triangle inequality; numbers are clamped first, which is 1-Lipschitz. The exponential mechanism with that
   sensitivity has losses in an interval of length epsilon, so it is epsilon^2 / 8-zCDP.
3. Which round comes next, its candidates and its price follow from what was released before, by the model and public
   numbers alone. Before a round runs, its price is taken from what is left of rho, as exact fractions, and the sigma
   and the scale are made for what was taken: `Allowance` refuses more. So the prices add up to at most rho on every
   path, whatever is released, and then the whole is rho-zCDP: a filter on zero-concentrated privacy.

The values of each column are named without looking at rows, so that which cells there are is public; rows with others
are left out, row by row, before rows of a unit are counted. The model never sees a row: it is post-processing, in
floats, and may be as wrong as it likes.

Reference: [McKennaMullinsSheldonMiklau2022], [WhitehouseRamdasRogersWu2023, Theorem 1]

Reference: [McKennaSheldonMiklau2019]
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false, reportMissingImports=false

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any, Protocol

from dpcompose.composition import Composable
from dpcompose.errors import DomainError, MissingExtraError
from dpcompose.mechanisms import Concentrated
from dpcompose.release.columns import Change
from dpcompose.release.noise import DiscreteGaussianNoise, Selection
from dpcompose.release.spend import Spend

Columns = tuple[int, ...]
"""Some columns of a table, by their places, increasing."""
STEPS = 1000
"""The steps of mirror descent after every measurement."""


@dataclass(frozen=True)
class Marginal:
    """A marginal that was measured.

    Args:
        columns: What it counts by.
        counts: The noisy counts of its cells, the last column running fastest.
        sigma: Of the noise on each.
    """

    columns: Columns
    counts: tuple[int, ...] = field(repr=False)
    sigma: float


class Model(Protocol):
    """A distribution over all cells that agrees with what was measured."""

    def counts(self, columns: Columns) -> Sequence[float]:
        """The expected counts of a marginal."""
        ...

    def megabytes(self, columns: Columns) -> float:
        """How large it would be if that marginal were measured too; 0 if it grows by nothing."""
        ...

    def after(self, measured: Sequence[Marginal]) -> Model:
        """The distribution that agrees with these, all that was measured up to now."""
        ...


@dataclass(frozen=True)
class GraphicalModel:
    """A graphical model, found by mirror descent from the one before.

    Args:
        sizes: How many values each column has.
        model: The model of mbi; None before anything was measured.
    """

    sizes: tuple[int, ...]
    model: Any = field(default=None, repr=False)

    def counts(self, columns: Columns) -> Sequence[float]:
        import numpy

        return numpy.asarray(self.model.project(_names(columns)).datavector(), dtype=float).tolist()

    def megabytes(self, columns: Columns) -> float:
        library = require()
        if any(set(_names(columns)) <= set(clique) for clique in self.model.cliques):
            return 0.0
        return library.junction_tree.hypothetical_model_size(
            self.model.domain, [*self.model.cliques, _names(columns)]
        )

    def after(self, measured: Sequence[Marginal], *, steps: int = STEPS) -> GraphicalModel:
        import numpy

        library = require()
        domain = library.Domain(_names(range(len(self.sizes))), self.sizes)
        noisy = [
            library.LinearMeasurement(
                numpy.array(each.counts, dtype=float), _names(each.columns), stddev=each.sigma
            )
            for each in measured
        ]
        before = None
        if self.model is not None:
            before = self.model.potentials.expand(list({_names(each.columns) for each in measured}))
        return GraphicalModel(
            self.sizes,
            library.estimation.mirror_descent(domain, noisy, iters=steps, potentials=before),
        )

    def sample(self, rows: int) -> list[Sequence[int]]:
        """So many rows drawn from it: for each column the places of their values."""
        drawn = self.model.synthetic_data(rows=rows)
        return [drawn.to_dict()[name].tolist() for name in _names(range(len(self.sizes)))]


def require() -> Any:
    """The library, or MissingExtraError: asked before anything is charged."""
    try:
        import mbi
    except ImportError:
        raise MissingExtraError("synthetic data", "marginals") from None
    return mbi


def _names(columns: Sequence[int]) -> tuple[str, ...]:
    return tuple(str(column) for column in columns)


MEASURED = Fraction(9, 10)
"""The part of a round that is for the noise; the rest is for the choice."""
UNIT = 1024
"""Distances between counts and estimates are taken in these parts of a row."""
LARGEST_COUNT = 2**31
"""Counts and estimates are clamped to this size before distances are taken: those of 10^6 cells then fit in 64 bits."""
SIGMA = 2**20
"""A sigma is handed on in these parts, rounded up."""


@dataclass
class Allowance:
    """The rest of the rho that was charged: every part is taken out before it is used.

    Args:
        left: Exact, >= 0.
    """

    left: Fraction

    def take(self, part: Fraction) -> Spend:
        """A part of what is left.

        Raises:
            DomainError: If there is less.
        """
        if not 0 < part <= self.left:
            raise DomainError(
                "part", float(part), f"a number > 0 and at most {float(self.left):g}, which is left"
            )
        self.left -= part
        return Spend(part, "rho")


@dataclass(frozen=True)
class AdaptiveMarginals:
    """Every column alone is measured, then in each round the marginal that the model has most wrong.

    A round in which a measurement changes the model by no more than its noise makes the next ones four times as dear.

    Args:
        rho: What all of it costs.
        change: The rows that one unit may have.
        sizes: How many values each column has.
        weights: The marginals that may be measured, and what an error there counts.
        rounds: Of how many rounds the first is an equal part.
        megabytes: How large the model may become.
        start: The model before anything is measured.
    """

    rho: float
    change: int
    sizes: tuple[int, ...]
    weights: Mapping[Columns, int] = field(repr=False)
    rounds: int
    megabytes: float
    start: Model = field(repr=False)

    @property
    def mechanism(self) -> Composable:
        """One fixed price."""
        return Concentrated(self.rho)

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """For every cell of every marginal: its places (-1 for the columns it has not), count, sigma, measurement.

        Args:
            cells: The places of a combination of all columns, and how many rows have it.
        """
        return [
            row
            for number, each in enumerate(self.measured(cells))
            for row in self._rows(number, each)
        ]

    def measured(self, cells: Sequence[Sequence[int]]) -> list[Marginal]:
        """The marginals that were measured, in their order."""
        truth = ExactMarginals(cells, self.sizes)
        allowance, each = Allowance(Fraction(self.rho)), self.part
        found = [
            self._noisy((place,), truth, allowance.take(MEASURED * each))
            for place in range(len(self.sizes))
        ]
        model = self.start.after(found)
        while allowance.left > 0:
            # What is left of two rounds is one.
            each = each if allowance.left >= 2 * each else allowance.left
            used = 1 - float((allowance.left - each) / Fraction(self.rho))
            small = [
                columns
                for columns in self.weights
                if model.megabytes(columns) <= self.megabytes * used
            ]
            choice, spend = allowance.take((1 - MEASURED) * each), allowance.take(MEASURED * each)
            columns = self._worst(small, model, truth, choice, self._noise(spend).spread)
            found.append(self._noisy(columns, truth, spend))
            before, model = model.counts(columns), model.after(found)
            moved = math.fsum(
                abs(new - old) for new, old in zip(model.counts(columns), before, strict=True)
            )
            if moved <= _expected(found[-1].sigma, len(before)):
                each *= 4
        return found

    @property
    def part(self) -> Fraction:
        """The rho of the first rounds."""
        return Fraction(self.rho) / self.rounds

    def noise_of(self, sigma: float) -> DiscreteGaussianNoise:
        """The noise of that sigma on a marginal."""
        return DiscreteGaussianNoise(sigma, self._moved)

    @property
    def _moved(self) -> Change:
        return Change(self.change, 1, self.change, self.change**2, box=True)

    def _noise(self, spend: Spend) -> DiscreteGaussianNoise:
        return DiscreteGaussianNoise.costing(self._moved, spend)

    def _noisy(self, columns: Columns, truth: ExactMarginals, spend: Spend) -> Marginal:
        noise = self._noise(spend)
        return Marginal(columns, tuple(noise.draw(truth.counts(columns).tolist())), noise.spread)

    def _worst(
        self,
        small: Sequence[Columns],
        model: Model,
        truth: ExactMarginals,
        spend: Spend,
        sigma: float,
    ) -> Columns:
        """The exponential mechanism's choice by distance, beyond what the noise would add: integers, in parts of a row.

        Scores are moved by at most UNIT * change times the largest weight.
        """
        most = max(self.weights[columns] for columns in small)
        selection = Selection.costing(UNIT * self.change * most, spend)
        scores: list[int] = []
        for columns in small:
            guess = model.counts(columns)
            expected = round(UNIT * _expected(sigma, len(guess)))
            scores.append(self.weights[columns] * (expected - truth.distance(columns, guess)))
        return small[selection.draw(scores)]

    def _rows(self, number: int, measured: Marginal) -> list[tuple[int, ...]]:
        sigma = math.ceil(measured.sigma * SIGMA)
        rows: list[tuple[int, ...]] = []
        for place, count in enumerate(measured.counts):
            places, rest = [-1] * len(self.sizes), place
            for column in reversed(measured.columns):
                rest, places[column] = divmod(rest, self.sizes[column])
            rows.append((*places, count, sigma, number))
        return rows

    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""
        sigma = self._noise(Spend(MEASURED * self.part, "rho")).spread
        return {
            "noise": "adaptive marginals, discrete gaussian",
            "sigma": repr(sigma),
            "l2 squared": self.change**2,
            "rho": repr(self.rho),
            "rounds": self.rounds,
            "marginals": len(self.weights),
            "megabytes": repr(self.megabytes),
        }


@dataclass(frozen=True)
class ExactMarginals:
    """The exact counts of all marginals of some columns.

    Args:
        cells: The places of a combination of all columns, and how many rows have it.
        sizes: How many values each column has.
    """

    cells: Sequence[Sequence[int]] = field(repr=False)
    sizes: tuple[int, ...]
    marginals: dict[Columns, Any] = field(default_factory=dict[Columns, Any], repr=False)

    def counts(self, columns: Columns) -> Any:
        """The counts of a marginal, the last column running fastest, as 64-bit integers."""
        import numpy

        if columns not in self.marginals:
            if () not in self.marginals:
                self.marginals[()] = (
                    numpy.array(self.cells, dtype=numpy.int64).reshape(-1, len(self.sizes) + 1).T
                )
            table, place = self.marginals[()], 0
            for column in columns:
                place = place * self.sizes[column] + table[column]
            found = numpy.zeros(
                math.prod(self.sizes[column] for column in columns), dtype=numpy.int64
            )
            numpy.add.at(found, place, table[-1])
            self.marginals[columns] = found
        return self.marginals[columns]

    def distance(self, columns: Columns, guess: Sequence[float]) -> int:
        """The L1 distance of a marginal from public numbers, in parts of a row: exact, so one row moves it by UNIT."""
        import numpy

        # NaN, which an estimate that ran away may hold, is 0.
        parts = (
            numpy.nan_to_num(numpy.asarray(guess, dtype=float)).clip(-LARGEST_COUNT, LARGEST_COUNT)
            * UNIT
        )
        counts = self.counts(columns).clip(-LARGEST_COUNT, LARGEST_COUNT) * UNIT
        return int(numpy.abs(counts - numpy.rint(parts).astype(numpy.int64)).sum())


def workload(marginals: Sequence[Columns]) -> dict[Columns, int]:
    """All parts of some marginals, the small ones first, and how many columns each shares with them in all."""
    found = {
        part
        for columns in marginals
        for size in range(1, len(columns) + 1)
        for part in combinations(columns, size)
    }
    shared = Counter(column for columns in marginals for column in columns)
    return {
        part: sum(shared[column] for column in part)
        for part in sorted(found, key=lambda part: (len(part), part))
    }


def _expected(sigma: float, cells: int) -> float:
    """The mean size of the noise on so many cells, added up."""
    return math.sqrt(2 / math.pi) * sigma * cells
