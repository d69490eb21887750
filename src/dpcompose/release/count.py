"""How many rows, and how many units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose.release.aggregate import Aggregation
from dpcompose.release.design import Design, Drawn
from dpcompose.release.question import Question, Values, measured, noise_of
from dpcompose.release.threshold import Threshold


@dataclass(frozen=True)
class Count(Question):
    """How many rows there are, in all or in each group."""

    @property
    def kind(self) -> str:
        return "count"

    def design(self, table: Any, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        asked, aggregation = self._spend(spend), Aggregation(by, public)
        bounds = table.bounds.within(None if public is None else len(public))
        ready = measured(table, aggregation, [bounds.change(1)], asked)
        described = self._described(by, public)
        return Design(table, aggregation, ready.steps, ready.measures, ready.threshold, asked, described)

    def columns(self, design: Design, drawn: Drawn) -> tuple[Values, ...]:
        return (Values("count", "int64", tuple(number for (number,) in drawn.released[0])),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return float(noise_of(design.steps[0]).error(failure))


@dataclass(frozen=True)
class Units(Question):
    """How many units there are, in all or in each group: a unit counts once in a group, however many rows it has."""

    @property
    def kind(self) -> str:
        return "units"

    def design(self, table: Any, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        asked, aggregation = self._spend(spend), Aggregation(by, public, distinct=True)
        described = self._described(by, public)
        change = table.bounds.within(None if public is None else len(public)).presence
        if public is None:
            return Design(table, aggregation, (), (), Threshold.costing(change, asked), asked, described)
        ready = measured(table, aggregation, [change], asked)
        return Design(table, aggregation, ready.steps, ready.measures, None, asked, described)

    def columns(self, design: Design, drawn: Drawn) -> tuple[Values, ...]:
        return (Values("units", "int64", tuple(number for (number,) in drawn.released[0])),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        noise = design.threshold.noise if design.threshold is not None else noise_of(design.steps[0])
        return float(noise.error(failure))
