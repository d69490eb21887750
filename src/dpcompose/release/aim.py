"""Adaptive choice of marginals to measure (the algorithm AIM), and the model fitted to the
measurements.

Privacy. One number, rho, is charged before anything runs; what runs is rho-zero-concentrated
private (zCDP):

1. A unit adds or removes at most `change` rows. The counts of a marginal split rows into cells, so
   they move by at most `change` in L1, and so in L2. Discrete Gaussian noise of sigma on each is
   change^2 / (2 sigma^2)-zCDP.
2. The score of a candidate is its weight times its L1 distance from a public estimate, which moves
   by at most `change` by the triangle inequality; numbers are clamped first, which is 1-Lipschitz.
   The exponential mechanism with that sensitivity has privacy losses in an interval of length
   epsilon, so it is epsilon^2 / 8-zCDP.
3. The next round, its candidates and its price follow from earlier releases and public numbers
   alone. Before a round runs, its price is subtracted from the remaining rho, as exact fractions,
   and sigma and the scale are computed from that price; `Allowance` refuses to overspend. So the
   prices add up to at most rho on every path of releases, and the whole is rho-zCDP: this is a
   privacy filter for zCDP.

The values of each column are listed without looking at rows, so the set of cells is public. A row
with another value is dropped before the rows of its unit are counted. The model never sees a row:
it is post-processing in floating point, and its errors cannot affect privacy.

Reference: [McKennaMullinsSheldonMiklau2022], [WhitehouseRamdasRogersWu2023, Theorem 1],
[McKennaSheldonMiklau2019]
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
from typing import Any

from dpcompose.composition import Composable
from dpcompose.errors import DomainError, optional_library
from dpcompose.mechanisms import Concentrated
from dpcompose.release.columns import Change
from dpcompose.release.noise import DiscreteGaussianNoise, Selection, Spend

Columns = tuple[int, ...]
"""Increasing positions of some columns of a table."""
STEPS = 1000
"""The number of steps of mirror descent after each measurement."""


@dataclass(frozen=True)
class Marginal:
    """The noisy measurement of one marginal.

    Args:
        columns: The positions of the columns that it counts by.
        counts: The noisy counts of its cells, the last column varying fastest.
        sigma: The standard deviation of the noise on each count.
    """

    columns: Columns
    counts: tuple[int, ...] = field(repr=False)
    sigma: float


@dataclass(frozen=True)
class GraphicalModel:
    """A graphical model, a distribution over all cells, fitted to the measured marginals by mirror
    descent that starts at the previous model.

    Args:
        sizes: The number of values of each column.
        model: The model of the library mbi; None before the first measurement.
    """

    sizes: tuple[int, ...]
    model: Any = field(default=None, repr=False)

    def counts(self, columns: Columns) -> Sequence[float]:
        """Return the expected counts of a marginal."""
        import numpy

        return numpy.asarray(self.model.project(_names(columns)).datavector(), dtype=float).tolist()

    def megabytes(self, columns: Columns) -> float:
        """Return the size of the model in megabytes if that marginal were measured too; 0 if the
        model does not grow.
        """
        library = require()
        if any(set(_names(columns)) <= set(clique) for clique in self.model.cliques):
            return 0.0
        return library.junction_tree.hypothetical_model_size(
            self.model.domain, [*self.model.cliques, _names(columns)]
        )

    def after(self, measured: Sequence[Marginal], *, steps: int = STEPS) -> GraphicalModel:
        """Return the distribution fitted to all measurements so far."""
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
        """Draw this number of rows; return for each column the positions of their values."""
        drawn = self.model.synthetic_data(rows=rows)
        return [drawn.to_dict()[name].tolist() for name in _names(range(len(self.sizes)))]


def require() -> Any:
    """Import and return the library mbi before anything is charged.

    Raises:
        MissingExtraError: If it is not installed.
    """
    return optional_library("mbi", "synthetic data", "marginals")


def _names(columns: Sequence[int]) -> tuple[str, ...]:
    return tuple(str(column) for column in columns)


MEASURED = Fraction(9, 10)
"""The part of a round's price that pays for the noise; the remainder pays for the choice."""
UNIT = 1024
"""Distances between counts and estimates are integers in units of 1/1024 of a row."""
LARGEST_COUNT = 2**31
"""Counts and estimates are clamped to this, so that distances over 10^6 cells fit in 64 bits."""
SIGMA = 2**20
"""A sigma is released as an integer in units of 2^-20, rounded up."""


@dataclass
class Allowance:
    """The unspent rho of a charge; each part is subtracted before it is used.

    Args:
        left: The unspent rho; exact, >= 0.
    """

    left: Fraction

    def take(self, part: Fraction) -> Spend:
        """Subtract and return a part of the unspent rho.

        Raises:
            DomainError: If less than that is left.
        """
        if not 0 < part <= self.left:
            raise DomainError(
                "part", float(part), f"a number > 0 and at most {float(self.left):g}, which is left"
            )
        self.left -= part
        return Spend(part, "rho")


@dataclass(frozen=True)
class AdaptiveMarginals:
    """Measure every single column, then in each round the marginal for which the model has the
    largest error.

    If a measurement changes the model by no more than its own noise does, the price of later rounds
    is multiplied by four.

    Args:
        rho: The price of the whole run, in rho of zCDP.
        change: The largest number of rows of one unit.
        sizes: The number of values of each column.
        weights: The marginals that may be measured, and the weight of an error in each.
        rounds: The number of rounds of equal price into which rho is first divided.
        megabytes: The largest size of the model.
        start: The model before anything is measured.
    """

    rho: float
    change: int
    sizes: tuple[int, ...]
    weights: Mapping[Columns, int] = field(repr=False)
    rounds: int
    megabytes: float
    start: GraphicalModel = field(repr=False)

    @property
    def mechanism(self) -> Composable:
        """The mechanism that is charged: one fixed price in rho."""
        return Concentrated(self.rho)

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """Run all rounds. Each result row is a cell of a measured marginal: its value positions (-1
        for other columns), count, sigma, and number of the measurement.

        Args:
            cells: One entry for each combination of values: its positions, one a column, and last
                its number of rows.
        """
        return [
            row
            for number, each in enumerate(self.measured(cells))
            for row in self._rows(number, each)
        ]

    def measured(self, cells: Sequence[Sequence[int]]) -> list[Marginal]:
        """Return the measured marginals, in the order of measurement."""
        truth = ExactMarginals(cells, self.sizes)
        allowance, each = Allowance(Fraction(self.rho)), self.part
        found = [
            self._noisy((place,), truth, allowance.take(MEASURED * each))
            for place in range(len(self.sizes))
        ]
        model = self.start.after(found)
        while allowance.left > 0:
            # If less than two rounds are left, this round takes all of it.
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
        """The rho of each of the first rounds."""
        return Fraction(self.rho) / self.rounds

    def noise_of(self, sigma: float) -> DiscreteGaussianNoise:
        """Return the noise with this sigma for one marginal."""
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
        model: GraphicalModel,
        truth: ExactMarginals,
        spend: Spend,
        sigma: float,
    ) -> Columns:
        """Choose a marginal by the exponential mechanism; its score is the distance between truth
        and model minus the expected noise.

        Scores are integers in units of 1/1024 of a row. One unit moves them by at most UNIT *
        change times the largest weight.
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
        """Return the description that the ledger stores."""
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
        cells: One entry for each combination of values: its positions, one a column, and last its
            number of rows.
        sizes: The number of values of each column.
    """

    cells: Sequence[Sequence[int]] = field(repr=False)
    sizes: tuple[int, ...]
    marginals: dict[Columns, Any] = field(default_factory=dict[Columns, Any], repr=False)

    def counts(self, columns: Columns) -> Any:
        """Return the counts of a marginal as 64-bit integers, the last column varying fastest."""
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
        """Return the L1 distance of a marginal from public estimates in units of 1/1024 of a row;
        one row moves it by UNIT.
        """
        import numpy

        # An estimate that diverged may hold NaN, which becomes 0.
        parts = (
            numpy.nan_to_num(numpy.asarray(guess, dtype=float)).clip(-LARGEST_COUNT, LARGEST_COUNT)
            * UNIT
        )
        counts = self.counts(columns).clip(-LARGEST_COUNT, LARGEST_COUNT) * UNIT
        return int(numpy.abs(counts - numpy.rint(parts).astype(numpy.int64)).sum())


def workload(marginals: Sequence[Columns]) -> dict[Columns, int]:
    """Return all subsets of the given marginals, small ones first, each with the total number of
    columns that it shares with them.
    """
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
    """Return the expected sum of the absolute noise on this number of cells."""
    return math.sqrt(2 / math.pi) * sigma * cells
