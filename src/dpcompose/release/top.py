"""The groups with the most rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.aggregation import Aggregation
from dpcompose.release.counts import Count
from dpcompose.release.design import Design, NoiseStep, PeelingStep, Released
from dpcompose.release.noise import noise_for
from dpcompose.release.question import Question, Values, first_noise, one_of
from dpcompose.release.selection import Selection
from dpcompose.release.spend import Spend
from dpcompose.release.table import Key, Table

MOST_CHOSEN = 1000
METHODS = ("counts", "peeling")


@dataclass(frozen=True)
class Top(Question):
    """The groups with the most rows, and noisy counts of theirs, the largest first.

    By "counts" every group's count is made noisy, and the largest are kept. By "peeling" half of the amount chooses one
    group after the other as a quantile is chosen, for each of which a unit counts with the rows of one group only,
    and half is for the counts of those chosen. The default is the one whose choice is off by less at this price.
    Private keys come out as in a count, and the largest of them are kept.

    Args:
        number: How many groups; at most 1,000, and no more than there are keys.
        method: "counts", "peeling" or None.
    """

    number: int
    _: KW_ONLY
    method: str | None = None

    kind: ClassVar[str] = "top"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.count("number", self.number, least=1)
        if self.method is not None:
            one_of("method", self.method, METHODS)

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        most = MOST_CHOSEN if public is None else min(MOST_CHOSEN, len(public))
        if not (by and self.number <= most):
            raise DomainError(
                "number", self.number, f"an integer from 1 to {most}, of the groups of by="
            )
        asked = self._spend(spend)
        counted = Count(by=self.by, keys=self.keys).design(table, asked.typed_exactly())
        described = self._described(by, public, number=self.number)
        noisy = replace(counted, description=described)
        if (
            public is None
            or self.method == "counts"
            or (asked.delta and asked.currency == "epsilon")
        ):
            if self.method == "peeling":
                raise DomainError(
                    "method", self.method, "counts, where keys are private or a delta is spent"
                )
            return noisy
        step = self._peeling(table, public, asked)
        assert isinstance(counted.steps[0], NoiseStep)
        errors = (
            counted.steps[0].noise.error(0.05 / len(public)),
            step.selection.error(len(public), 0.05 / self.number),
        )
        if self.method is None and errors[0] <= errors[1]:
            return noisy
        return replace(noisy, aggregation=Aggregation(by, public), steps=(step,))

    def _peeling(self, table: Table, public: Sequence[Key], asked: Spend) -> PeelingStep:
        half, chosen = asked.share(Fraction(1, 2), delta=False), table.bounds.within(self.number)
        one = table.bounds.within(len(public)).change(1).largest
        selection = Selection.costing(one, half.share(Fraction(1, self.number)), monotone=True)
        return PeelingStep(selection, noise_for(chosen.change(1), half), self.number)

    def ordered(self, drawn: Released) -> Released:
        """The groups that were chosen, by their noisy counts; equal ones as their keys came."""
        there = [
            (cell[-1], key, cell)
            for key, cell in zip(drawn.keys, drawn.released[0], strict=True)
            if cell[0] or len(cell) == 1
        ]
        kept = sorted(there, key=lambda each: -each[0])[: self.number]
        return Released(tuple(key for _, key, _ in kept), (tuple(cell for _, _, cell in kept),))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (Values("count", "int64", tuple(cell[-1] for cell in drawn.released[0])),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        """Of the noise on each count, before the largest are kept, which moves those up."""
        step = design.steps[0] if design.steps else None
        noise = step.noise if isinstance(step, PeelingStep) else first_noise(design)
        return float(noise.error(failure))
