"""How many rows units have, and how many units lose some to the bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.aggregation import Aggregation
from dpcompose.release.design import Design, Released
from dpcompose.release.grid import MOST_BINS, RowNumbers
from dpcompose.release.interval import quotient_interval
from dpcompose.release.question import Interval, Question, Values, measured, noise_of
from dpcompose.release.table import Table


@dataclass(frozen=True)
class RowsPerUnit(Question):
    """How many units have 1, 2, ..., `most` or more rows, in all or in each group, before rows are left out.

    A unit counts once in a group, whatever the number of its rows.

    Args:
        most: The last number, which stands for itself and all above; by default the bound on a unit's rows.
    """

    _: KW_ONLY
    most: int | None = None

    kind: ClassVar[str] = "rows per unit"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most is not None and not check.count("most", self.most, least=1) <= MOST_BINS:
            raise DomainError("most", self.most, f"an integer from 1 to {MOST_BINS:,}")

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        if public is None:
            raise DomainError(
                "keys", None, "a list of keys, where units are counted by their rows in a group"
            )
        most = min(table.bounds.rows, MOST_BINS) if self.most is None else int(self.most)
        asked = self._spend(spend)
        aggregation = Aggregation(by, public, bins=(None, RowNumbers(most)))
        change = table.bounds.within(aggregation.groups).presence
        return measured(table, aggregation, [change], asked, self._described(by, public, most=most))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        counts = tuple(number for cell in drawn.released[0] for number in cell)
        places = tuple(range(1, len(drawn.released[0][0]) + 1)) * len(drawn.keys)
        return Values("units", "int64", counts), Values("rows", "int64", places)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return float(noise_of(design.steps[0]).error(failure))


@dataclass(frozen=True)
class LeftOut(Question):
    """The share of units that lose a row of a question to the bounds, and the noisy number of units.

    Half of the amount is for the units that do, half for all that have a row; one unit changes either by 1. In a
    question about distinct units, what is lost are groups.

    Args:
        question: The question whose rows are left out; its own spend does not matter.
    """

    question: Question

    kind: ClassVar[str] = "left out"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.question, Question) or isinstance(self.question, LeftOut):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("question", self.question, "a question about rows, such as Count()")
        if self.table is None:
            object.__setattr__(self, "table", self.question.table)

    foreseen: ClassVar[bool] = False

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        if self.by or self.keys is not None:
            raise DomainError("by", self.by, "nothing: the groups are those of the question")
        spent = {"epsilon": 1} | (
            {"delta": 0.1} if self.question.by and self.question.keys is None else {}
        )
        inner = replace(self.question, spend=spent).design(table)
        aggregation = Aggregation((), ((),), lost=inner.aggregation)
        one = table.bounds.within(1).presence
        described = self._described((), ((),), of=dict(inner.description))
        return measured(table, aggregation, [one, one], self._spend(spend), described)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        (((units,),), ((lost,),)) = drawn.released
        share = min(max(lost / max(units, 1), 0.0), 1.0)
        return Values("share", "double", (share,)), Values("units", "int64", (units,))

    def errors(
        self, design: Design, failure: float, columns: Sequence[Values]
    ) -> tuple[float, ...]:
        """How far the share is from the true one; from the number of units alone, a bound."""
        units, lost = (noise_of(step) for step in design.steps)
        if len(columns) < 2:
            return tuple(
                min(lost.error_beside(units, 1, failure) / max(n, 1), 1.0) for n in columns[0].cells
            )
        (low,), (high,) = self.interval(design, failure, columns)
        return (max(high - columns[0].cells[0], columns[0].cells[0] - low),)

    def interval(self, design: Design, failure: float, columns: Sequence[Values]) -> Interval:
        """Exact but for steps."""
        units, lost = (noise_of(step) for step in design.steps)
        (share,), (number,) = (each.cells for each in columns)
        low, high = quotient_interval((share * number, number), (lost, units), (0.0, 1.0), failure)
        return (low,), (high,)
