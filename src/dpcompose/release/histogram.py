"""How many rows lie between declared edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpcompose.release.aggregate import Aggregation
from dpcompose.release.bins import Edges
from dpcompose.release.design import Design, Drawn, digest
from dpcompose.release.question import OfColumn, Values, measured, noise_of, of_numbers
from dpcompose.release.table import Table


@dataclass(frozen=True)
class Histogram(OfColumn):
    """The number of rows in every bin [e0, e1), [e1, e2), ..., the last one closed; what lies outside is left out.

    Args:
        column: A column of numbers.
        edges: Increasing numbers; all bins come out, empty ones too.
    """

    _: KW_ONLY
    edges: Sequence[Any]

    @property
    def kind(self) -> str:
        return "histogram"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        of_numbers(table, self.column)
        asked, bins = self._spend(spend), Edges.stated(self.edges)
        aggregation = Aggregation(by, public, bins=(self.column, bins))
        bounds = table.bounds.within(None if public is None else len(public))
        ready = measured(table, aggregation, [bounds.change(1, bins=bins.count)], asked)
        described = self._described(
            by, public, column=self.column, edges={"number": len(bins.edges), "digest": digest([bins.edges])}
        )
        return Design(table, aggregation, ready.steps, ready.measures, ready.threshold, asked, described)

    def columns(self, design: Design, drawn: Drawn) -> tuple[Values, ...]:
        edges = [float(edge) for edge in Edges.stated(self.edges).edges]
        counts = tuple(number for cell in drawn.released[0] for number in cell)
        times = len(drawn.keys)
        return (
            Values("from", "double", tuple(edges[:-1]) * times),
            Values("to", "double", tuple(edges[1:]) * times),
            Values("count", "int64", counts),
        )

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return float(noise_of(design.steps[0]).error(failure))
