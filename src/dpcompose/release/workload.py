"""Many correlated counting queries under one budget: each with its own noise, or coordinated by one synthetic table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

from dpcompose import check
from dpcompose.composition import Composable, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.aggregation import Aggregation
from dpcompose.release.answer import Answer
from dpcompose.release.bounds import Change
from dpcompose.release.counts import Count
from dpcompose.release.design import Design, Released
from dpcompose.release.noise import Noise, Selection, noise_for
from dpcompose.release.question import Question, Values, key_columns
from dpcompose.release.table import Key, Table

MOST_CELLS = 100_000
MOST_COUNTS = 10_000
ROUNDS, MOST_ROUNDS = 10, 1000


@dataclass(frozen=True)
class Coordinated(Question):
    """All counts of several grouped counts, read off one synthetic table that is corrected where it is most wrong.

    The synthetic table starts uniform over all combinations of the keys, with the noisy number of rows. Each round one
    of the counts that are far off is chosen, noise is added to it, and the cells it counts are multiplied towards it.
    After the last round a count that is far off is chosen and measured once more, as a check: the column `off` says by
    how much, and the error is stated from it. What is charged is fixed before: the number of rows, and `rounds` + 1
    choices and noisy counts. Rows that have none of the combinations are left out.

    Args:
        counts: Counts with public keys.
        rounds: How many corrections.

    Reference: [HardtLigettMcSherry2012, Figure 1]
    """

    counts: tuple[Count, ...]
    rounds: int = ROUNDS

    def __post_init__(self) -> None:
        super().__post_init__()
        rounds_of(self.rounds)

    kind: ClassVar[str] = "workload"
    foreseen: ClassVar[bool] = False

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, cells, queries = _domain(table, self.counts)
        asked = self._spend(spend)
        if asked.delta and asked.currency == "epsilon":
            domain = "an epsilon or a rho without a delta, where counts are coordinated"
            raise DomainError("spend", asked.typed(), domain)
        change = table.bounds.within(len(cells)).change(1)
        # A query adds up cells: one unit moves it by all its rows at most.
        one = Change(change.l1, 1, change.l1, change.l1**2, box=True)
        each = asked.part(Fraction(1, 2 * self.rounds + 3), delta=False)
        loop = Correction(
            noise_for(one, each), Selection.costing(change.l1, each), self.rounds, queries
        )
        described = self._described(by, cells, counts=len(self.counts), rounds=self.rounds)
        return Design(
            table, Aggregation(by, cells), (loop,), (0,), None, spend=asked, description=described
        )

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        """The synthetic table, and by how much a count that is far off was measured to be."""
        counts = tuple(number / UNIT for number, _ in drawn.released[0])
        return Values("count", "double", counts), Values(
            OFF, "int64", tuple(off for _, off in drawn.released[0])
        )

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        """A bound on the largest error of all counts at once, from the check.

        The count that the check chose is off by at most what was measured and the noise on that; no other is off by
        more than that and the error of the choice. Each fails with half of the failure probability.

        Raises:
            UnsupportedError: Before the answer: how far a synthetic table is off depends on the data.
        """
        if columns[-1].name != OFF:
            reason = "how far a synthetic table is off depends on the data"
            raise UnsupportedError(
                "the error of coordinated counts, quoted", reason, "The answer states a bound"
            )
        (loop,) = design.steps
        assert isinstance(loop, Correction)
        each = failure / 2
        off_choice = loop.selection.error(len(loop.queries), each)
        # 1 for guesses rounded to whole rows, up and down.
        return columns[-1].cells[0] + loop.noise.error(each) + off_choice + 1


def rounds_of(value: Any) -> int:
    """`value` as a number of corrections."""
    if not check.count("rounds", value, least=1) <= MOST_ROUNDS:
        raise DomainError("rounds", value, f"an integer from 1 to {MOST_ROUNDS}")
    return int(value)


OFF = "off"
UNIT = 2**20
"""The synthetic table is handed on in these parts of a row."""


@dataclass(frozen=True)
class Correction:
    """Multiplicative weights with private choices: private in what it chooses and measures, and nowhere else.

    Args:
        noise: On the number of rows, and on every chosen count.
        selection: Chooses a count by how far the synthetic table is off.
        rounds: How often.
        queries: The cells that each count adds up.
    """

    noise: Noise
    selection: Selection
    rounds: int
    queries: tuple[tuple[int, ...], ...]

    @property
    def mechanism(self) -> Composable:
        """All of it, fixed in advance; which counts are chosen is adaptive."""
        return compose(
            self.noise.mechanism * (self.rounds + 2), self.selection.mechanism * (self.rounds + 1)
        )

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        exact = [count for (count,) in cells]
        truth = [sum(exact[cell] for cell in query) for query in self.queries]
        total = float(max(self.noise.draw([sum(exact)])[0], 1))
        weights = [total / len(exact)] * len(exact)
        measured: dict[int, int] = {}
        for _ in range(self.rounds):
            chosen, measured[chosen], _ = self._measured(weights, truth)
            weights = _corrected(weights, self.queries, measured, total)
        parts = [round(weight * UNIT) for weight in weights]
        _, number, guess = self._measured([part / UNIT for part in parts], truth)
        return [(part, abs(number - guess)) for part in parts]

    def _measured(self, weights: Sequence[float], truth: Sequence[int]) -> tuple[int, int, int]:
        """A count that is far off: which, its noisy number, and what the synthetic table says.

        Only the exact counts are private; the weights follow from what was released.
        """
        guesses = [round(math.fsum(weights[cell] for cell in query)) for query in self.queries]
        chosen = self.selection.draw(
            [-abs(guess - count) for guess, count in zip(guesses, truth, strict=True)]
        )
        return chosen, self.noise.draw([truth[chosen]])[0], guesses[chosen]

    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""
        return {"rounds": self.rounds} | self.noise.plain() | self.selection.plain()


def _corrected(
    weights: list[float],
    queries: Sequence[Sequence[int]],
    measured: Mapping[int, int],
    total: float,
) -> list[float]:
    """The weights after a few passes over all that was measured."""
    found = list(weights)
    for _ in range(10):
        for query, number in measured.items():
            guess = math.fsum(found[cell] for cell in queries[query])
            factor = math.exp(max(min((number - guess) / (2 * total), 10.0), -10.0))
            for cell in queries[query]:
                found[cell] *= factor
            whole = math.fsum(found)
            found = [weight * total / whole for weight in found]
    return found


def read_off(synthetic: Answer, counts: Sequence[Count]) -> tuple[Answer, ...]:
    """The answer to every count of a workload, from the synthetic table; all share its receipt and its error bound."""
    table, cells = synthetic.design.table, synthetic.columns[-2].cells
    _, _, queries = _domain(table, counts)
    numbers = iter([math.fsum(cells[cell] for cell in query) for query in queries])
    found: list[Answer] = []
    for count in counts:
        aggregation = _aggregation(count, table)
        assert aggregation.public is not None
        keys = key_columns(table, aggregation.by, aggregation.public)
        values = Values("count", "double", tuple(next(numbers) for _ in aggregation.public))
        found.append(
            Answer(
                ReadOff(synthetic.question, synthetic.columns),
                (*keys, values),
                synthetic.receipt,
                synthetic.replayed,
                design=replace(synthetic.design, aggregation=aggregation),
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class ReadOff(Question):
    """A count that is read off the synthetic table of a workload: its error is bounded by the workload's."""

    workload: Question
    synthetic: tuple[Values, ...] = field(repr=False)

    kind: ClassVar[str] = "count"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        return self.workload.design(table, spend)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return self.workload.columns(design, drawn)

    def errors(
        self, design: Design, failure: float, columns: Sequence[Values]
    ) -> tuple[float, ...] | float:
        return self.workload.errors(design, failure, self.synthetic)


def _aggregation(count: Count, table: Table) -> Aggregation:
    return replace(count, spend={"epsilon": 1}).design(table).aggregation


def _domain(
    table: Table, counts: Sequence[Count]
) -> tuple[tuple[str, ...], tuple[Key, ...], tuple[tuple[int, ...], ...]]:
    """The columns, all combinations of their keys, and for every count of every question the combinations in it."""
    if not counts:
        raise DomainError("questions", 0, "at least one count")
    keys: dict[str, dict[Any, None]] = {}
    aggregations: list[Aggregation] = []
    for count in counts:
        if count.kind != "count" or not count.by or count.keys is None:
            raise DomainError(
                "questions",
                count.kind,
                "grouped counts with public keys, where counts are coordinated",
            )
        aggregation = _aggregation(count, table)
        assert aggregation.public is not None
        aggregations.append(aggregation)
        for position, name in enumerate(aggregation.by):
            keys.setdefault(name, {}).update(
                dict.fromkeys(key[position] for key in aggregation.public)
            )
    size = math.prod(len(values) for values in keys.values())
    if not size <= MOST_CELLS:
        raise DomainError(
            "questions", size, f"at most {MOST_CELLS:,} combinations of keys", "Ask fewer columns"
        )
    by, cells = tuple(keys), tuple(product(*keys.values()))
    queries: list[tuple[int, ...]] = []
    for aggregation in aggregations:
        places = [by.index(name) for name in aggregation.by]
        inside: dict[Key, list[int]] = {key: [] for key in aggregation.public or ()}
        for number, cell in enumerate(cells):
            key = tuple(cell[place] for place in places)
            if key in inside:
                inside[key].append(number)
        queries += [tuple(numbers) for numbers in inside.values()]
    return by, cells, tuple(queries)
