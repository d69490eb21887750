"""Synthetic data: a distribution over several columns, fitted to marginals that were measured
privately.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import combinations, groupby, product
from pathlib import Path
from typing import Any, ClassVar, cast

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Receipt
from dpcompose.release.aggregate import Groups
from dpcompose.release.aggregation import Aggregation
from dpcompose.release.aim import (
    SIGMA,
    STEPS,
    AdaptiveMarginals,
    Columns,
    GraphicalModel,
    Marginal,
    require,
    workload,
)
from dpcompose.release.answer import Answer
from dpcompose.release.arrow import arrow_table, write
from dpcompose.release.counts import Count
from dpcompose.release.design import Design, Released, digest
from dpcompose.release.noise import Spend, below, rho_within
from dpcompose.release.question import MOST_KEYS, Question, Values, key_columns
from dpcompose.release.table import Table

MOST_COLUMNS, MOST_PARTS, MOST_ROUNDS, MOST_ROWS = 50, 200_000, 10_000, 10**8
REFITTED = 3
"""A model that is fitted from scratch takes this many times as many steps."""


@dataclass(frozen=True)
class Synthetic(Question):
    """Noisy marginals of several columns, each chosen where the model fitted so far has the largest
    error.

    The answer has one row for every cell of every measured marginal, with NULL for columns that the
    marginal does not have. `SyntheticData` fits one distribution to them with the library mbi. Rows
    with values outside `keys` are left out.

    Args:
        by: The columns.
        keys: One list of values for each column of `by`.
        spend: A rho, or an epsilon with a delta.
        marginals: What should be accurate: a number, for all marginals of that many columns (at
            most all); or lists of columns.
        rounds: The number of rounds of equal price into which the spend is first divided; by
            default 16 for each column.
        megabytes: The largest size of the model; with a large model a round takes minutes.

    Reference: [McKennaMullinsSheldonMiklau2022]
    """

    _: KW_ONLY
    marginals: int | Sequence[Sequence[str]] = 3
    rounds: int | None = None
    megabytes: float = 80.0

    kind: ClassVar[str] = "synthetic data"
    foreseen: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check.positive("megabytes", self.megabytes)
        if self.rounds is not None:
            check.count("rounds", self.rounds, least=1)
        if not isinstance(self.marginals, Sequence) or isinstance(self.marginals, str):
            check.count("marginals", self.marginals, least=1)

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, lists = self.domain(table)
        asked, sizes = self._spend(spend), tuple(len(each) for each in lists)
        rho = rho_of(asked)
        least = len(by) + 1
        rounds = 16 * len(by) if self.rounds is None else self.rounds
        check.count("rounds", rounds, least=least, most=MOST_ROUNDS)
        weights = workload(self._workload(by, sizes))
        change = table.bounds.change(1).l1
        start = GraphicalModel(sizes)
        step = AdaptiveMarginals(
            rho, change, sizes, weights, rounds, megabytes=float(self.megabytes), start=start
        )
        # Fail before anything is charged if the library for the model is missing.
        require()
        wanted = [by[column] for columns in weights for column in (*columns, -1)]
        described = {
            "question": self.kind,
            "by": list(by),
            "keys": {"number": math.prod(sizes), "digest": digest(lists)},
            "marginals": digest([tuple(wanted)]),
        }
        return MarginalsDesign(
            table,
            Aggregation(by, None, among=lists),
            (step,),
            (1,),
            None,
            spend=asked,
            description=described,
        )

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        cells = drawn.released[0]
        return (
            Values("count", "int64", tuple(count for count, _, _ in cells)),
            Values("sigma", "double", tuple(sigma / SIGMA for _, sigma, _ in cells)),
            Values("measurement", "int64", tuple(number for _, _, number in cells)),
        )

    def errors(
        self, design: Design, failure: float, columns: Sequence[Values]
    ) -> tuple[float, ...]:
        """Return a bound on the noise of each cell.

        Raises:
            UnsupportedError: Before the answer: the noise of later rounds depends on what was
                released.
        """
        if len(columns) < 3:
            reason = "the noise of later rounds follows from what was released"
            raise UnsupportedError(
                "the error of synthetic data, quoted", reason, "The answer states it"
            )
        (step,) = design.steps
        assert isinstance(step, AdaptiveMarginals)
        sigmas = columns[-2].cells
        found = {sigma: float(step.noise_of(sigma).error(failure)) for sigma in {*sigmas}}
        return tuple(found[sigma] for sigma in sigmas)

    def domain(self, table: Table) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
        """Return the columns, and the values of each.

        Raises:
            DomainError: If there is no such column, or a list of values is invalid.
        """
        by = (self.by,) if isinstance(self.by, str) else tuple(self.by)
        lists = (
            self.keys if isinstance(self.keys, Sequence) and not isinstance(self.keys, str) else ()
        )
        if not 2 <= len(by) <= MOST_COLUMNS or len(lists) != len(by) or len(set(by)) < len(by):
            domain = (
                f"2 to {MOST_COLUMNS} different columns, and in keys= a list of values for each"
            )
            raise DomainError("by", self.by, domain)
        found: list[tuple[Any, ...]] = []
        for name, values in zip(by, lists, strict=True):
            _, keys = Count(by=name, keys=values)._groups(table)  # pyright: ignore[reportPrivateUsage]
            found.append(tuple(value for (value,) in keys or ()))
            if None in found[-1]:
                raise DomainError(
                    "keys",
                    [None],
                    "values",
                    f"mutate({name}=col({name!r}).fill_null(...)) gives NULL one",
                )
        return by, tuple(found)

    def _workload(self, by: Sequence[str], sizes: Sequence[int]) -> list[Columns]:
        """Return the marginals that should be accurate, by the positions of their columns."""
        if isinstance(self.marginals, Sequence) and not isinstance(self.marginals, str):
            found = [_places(by, "marginals", each) for each in self.marginals]
            parts = sum(2 ** len(columns) for columns in found)
        else:
            together = min(int(self.marginals), len(by))
            parts = math.comb(len(by), together) * 2**together
            found = list(combinations(range(len(by)), together)) if parts <= MOST_PARTS else []
        if not 1 <= parts <= MOST_PARTS:
            domain = (
                f"marginals of the columns of by=, with 1 to {MOST_PARTS:,} parts, 2^n of n columns"
            )
            raise DomainError("marginals", self.marginals, domain)
        for columns in found:
            cells = math.prod(sizes[column] for column in columns)
            if not cells <= MOST_KEYS:
                names = [by[column] for column in columns]
                raise DomainError(
                    "marginals",
                    names,
                    f"at most {MOST_KEYS:,} cells each, not {cells:,}",
                    "Name fewer",
                )
        return found


@dataclass(frozen=True)
class MarginalsDesign(Design):
    """A design whose groups are the cells of all measured marginals."""

    def draw(self, aggregates: Groups) -> Released:
        lists = self.aggregation.among
        assert lists is not None
        places = [{value: place for place, value in enumerate(values)} for values in lists]
        cells = [
            (*(at[value] for at, value in zip(places, key, strict=True)), bins[0][self.measures[0]])
            for key, bins in aggregates.items()
            if all(value in at for at, value in zip(places, key, strict=True))
        ]
        rows = self.steps[0].draw(cells)
        width = len(lists)
        keys = tuple(
            tuple(
                None if place < 0 else values[place]
                for place, values in zip(row[:width], lists, strict=True)
            )
            for row in rows
        )
        return Released(keys, (tuple(row[width:] for row in rows),))


@dataclass(frozen=True)
class SyntheticData:
    """A distribution fitted to the marginals of an answer; it gives marginals and synthetic rows.

    It depends on the answer alone, so it costs nothing, however often it is used. It is fitted at
    first use, with the same result every time.

    Args:
        answer: The answer to a question of type `Synthetic`.

    Raises:
        DomainError: If the answer is another question's.
    """

    answer: Answer

    def __post_init__(self) -> None:
        if not (isinstance(self.answer, Answer) and isinstance(self.answer.question, Synthetic)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "answer", type(self.answer).__name__, "the answer to a question of type Synthetic"
            )

    @property
    def receipt(self) -> Receipt:
        """The receipt of the charge."""
        return self.answer.receipt

    @property
    def spent(self) -> Mapping[str, Any]:
        """The exact amounts charged, by currency."""
        return self.answer.spent

    def marginal(self, columns: str | Sequence[str]) -> Any:
        """Return the expected number of rows with each combination of values of some columns: an
        Arrow table with the column `count`.

        Args:
            columns: Any of the question's columns, measured together or not.

        Raises:
            DomainError: If the question has no such column, or there are more than 10^6
                combinations.
        """
        by, lists = self._domain
        places = _places(by, "columns", (columns,) if isinstance(columns, str) else columns)
        cells = math.prod(len(lists[place]) for place in places)
        if not cells <= MOST_KEYS:
            raise DomainError(
                "columns", columns, f"at most {MOST_KEYS:,} combinations of values, not {cells:,}"
            )
        keys = list(product(*(lists[place] for place in places)))
        named = key_columns(self.answer.design.table, [by[place] for place in places], keys)
        taken = "count_" if "count" in by else "count"
        counts = tuple(self.model.counts(places))
        return arrow_table(
            [*((each.name, each.type, each.cells) for each in named), (taken, "double", counts)]
        )

    def sample(self, rows: int | None = None) -> Any:
        """Draw synthetic rows as an Arrow table.

        Args:
            rows: How many; by default about as many as were counted.

        Raises:
            DomainError: If it is no integer from 1 to 10^8.
        """
        by, lists = self._domain
        if rows is None:
            rows = max(round(math.fsum(self.model.counts((0,)))), 1)
        drawn = self.model.sample(check.count("rows", rows, least=1, most=MOST_ROWS))
        values = [
            tuple(each[place] for place in column)
            for each, column in zip(lists, drawn, strict=True)
        ]
        types = [each.type for each in key_columns(self.answer.design.table, by, ())]
        return arrow_table(list(zip(by, types, values, strict=True)))

    def to_pandas(self, rows: int | None = None) -> Any:
        """Draw synthetic rows as a pandas data frame; see `sample`."""
        return self.sample(rows).to_pandas()

    def write(self, path: str | Path, rows: int | None = None) -> None:
        """Write synthetic rows as CSV or Parquet, depending on the file name; see `sample`.

        Raises:
            DomainError: As `sample`, or if the name has another ending, or the file cannot be
                written.
        """
        write(self.sample(rows), path)

    @cached_property
    def model(self) -> GraphicalModel:
        """The fitted distribution."""
        require()
        return GraphicalModel(tuple(len(each) for each in self._domain[1])).after(
            self.measured, steps=REFITTED * STEPS
        )

    @cached_property
    def measured(self) -> tuple[Marginal, ...]:
        """The measured marginals, in the order of measurement."""
        *keys, counts, sigmas, numbers = (values.cells for values in self.answer.columns)
        found: list[Marginal] = []
        for _, rows in groupby(range(len(counts)), key=lambda row: numbers[row]):
            places = list(rows)
            columns = tuple(at for at, cells in enumerate(keys) if cells[places[0]] is not None)
            found.append(Marginal(columns, tuple(counts[row] for row in places), sigmas[places[0]]))
        return tuple(found)

    @property
    def _domain(self) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
        question = self.answer.question
        assert isinstance(question, Synthetic)
        return question.domain(self.answer.design.table)


def rho_of(spend: Spend) -> float:
    """Return the rho that a spend buys.

    Raises:
        DomainError: If it is an epsilon without a delta.
    """
    if spend.currency == "rho":
        return below(spend.amount)
    if not spend.delta:
        domain = "a rho, or an epsilon with a delta, where marginals are chosen in rounds"
        raise DomainError(
            "spend",
            spend.amounts(float),
            domain,
            "Name a delta, such as {'epsilon': 1, 'delta': 1e-9}",
        )
    return rho_within(spend)


def _places(by: Sequence[str], name: str, columns: Any) -> Columns:
    """Return the positions of some columns, in the order of the question."""
    given = tuple(cast("Sequence[Any]", columns)) if isinstance(columns, Sequence) else ()
    if (
        not given
        or isinstance(columns, str)
        or len(set(given)) < len(given)
        or not set(given) <= set(by)
    ):
        raise DomainError(name, columns, f"different columns among {', '.join(by)}")
    return tuple(sorted(by.index(each) for each in given))
