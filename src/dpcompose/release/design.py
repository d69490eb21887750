"""A question prepared for one table: the exact integers to aggregate, the noise to add, and the
mechanism to charge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Protocol

from dpcompose.composition import Composable, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import BlackBox, Concentrated
from dpcompose.release.aggregate import Groups, Numbers
from dpcompose.release.aggregation import Aggregation
from dpcompose.release.columns import Change, Key, sorting
from dpcompose.release.noise import Noise, Selection, Spend, below, noise_for
from dpcompose.release.table import Table


@dataclass(frozen=True)
class KeyThreshold:
    """Noise on the number of units or rows of every private key, and the threshold that releases a
    key.

    If a unit alone holds up to `coordinates` keys, the probability that any of them is released is
    at most delta. Keys that it shares with others are protected by the noise. So the whole is the
    composition of the noise on those keys and a failure of probability delta.

    Args:
        noise: The noise on numbers of distinct units or of rows.
        delta: The double that is charged for keys that one unit alone holds.
        concentrated: Whether the price is stated in rho.
        measure: 0 if units are counted, 1 if rows are.
        fewest: Keys with fewer units or rows are never released, and the engine need not return
            them. The same argument applies: a key that one unit lifts to this number has at most
            `largest` - 1 more, and is released with probability at most delta / coordinates, since
            the threshold is that much higher; all other keys are protected by the noise.

    Reference: [Korolova2009]
    """

    noise: Noise
    delta: float
    concentrated: bool
    measure: int = 0
    fewest: int = 1

    @classmethod
    def costing(cls, change: Change, spend: Spend, *, measure: int = 0) -> KeyThreshold:
        """Return the noise that the spend pays for, with the threshold for its delta.

        Raises:
            DomainError: If the spend has no delta.
        """
        KeyThreshold.require(spend)
        noise = noise_for(change, spend.with_delta(Fraction(0)))
        return cls(noise, below(spend.delta), spend.currency == "rho", measure)

    @staticmethod
    def require(spend: Spend) -> None:
        """Raise DomainError unless the whole spend of a question names a delta."""
        if not spend.delta > 0:
            domain = "a delta > 0, beside the epsilon or rho, where keys are private"
            raise DomainError(
                "spend", spend.amounts(float), domain, "Name a delta, or give the keys"
            )

    @property
    def least(self) -> int:
        """The threshold: keys with at least this noisy number are released.

        The number of a key that one unit holds alone is at most the largest change of a key, so it
        is released with probability at most delta / coordinates.
        """
        return self.fewest - 1 + self.noise.change.largest + self._reach

    @property
    def _reach(self) -> int:
        """The least t that the noise of one key reaches with probability at most delta /
        coordinates.
        """
        return self.noise.passing(self.delta / self.noise.change.coordinates * (1 - 1e-12))

    @property
    def scattered(self) -> KeyThreshold:
        """The same with `fewest` above 1, for very many keys on a cluster; the threshold rises by
        at most an eighth.
        """
        return replace(self, fewest=1 + self._reach // 8)

    @property
    def mechanism(self) -> Composable:
        """The composition of the noise and the failure of probability delta."""
        failure = (
            Concentrated(0.0, delta=self.delta)
            if self.concentrated
            else BlackBox(0.0, delta=self.delta)
        )
        return self.noise.mechanism + failure

    def draw(self, numbers: Sequence[int]) -> list[tuple[bool, int]]:
        """Return for each key, which has at least `fewest` units or rows, whether it is released,
        and its noisy number.
        """
        least = self.least
        return [(number >= least, number) for number in self.noise.draw(numbers)]

    def plain(self) -> dict[str, object]:
        """Return the description that the ledger stores."""
        fewest = {"fewest": self.fewest} if self.fewest > 1 else {}
        return {"threshold": self.least, "delta": repr(self.delta)} | fewest | self.noise.plain()


class ReleaseStep(Protocol):
    """One step of a release: it names the mechanism to charge, and draws."""

    @property
    def mechanism(self) -> Composable:
        """The mechanism that is charged."""
        ...

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """Draw the values released for each group from the group's exact integers."""
        ...

    def plain(self) -> dict[str, object]:
        """Return the description that the ledger stores."""
        ...


@dataclass(frozen=True)
class NoiseStep:
    """Noise on every integer of every group, as one mechanism on one vector."""

    noise: Noise

    @property
    def mechanism(self) -> Composable:
        return self.noise.mechanism

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        noisy = iter(self.noise.draw([number for cell in cells for number in cell]))
        if len(widths := {len(cell) for cell in cells}) == 1 and 0 not in widths:
            return list(zip(*[noisy] * widths.pop(), strict=True))
        return [tuple(next(noisy) for _ in cell) for cell in cells]

    def plain(self) -> dict[str, object]:
        return self.noise.plain()


@dataclass(frozen=True)
class SelectionStep:
    """A step that chooses a candidate for every group by the scores |(b - a) lower - a upper| for
    the quantile a / b.
    """

    selection: Selection
    quantile: Fraction

    @property
    def mechanism(self) -> Composable:
        return self.selection.mechanism

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        return [(self.selection.draw(self.scores(cell)),) for cell in cells]

    def scores(self, cell: Sequence[int]) -> list[int]:
        """Return the scores of all candidates in one group."""
        return scores(cell, self.quantile)

    def plain(self) -> dict[str, object]:
        return self.selection.plain() | {"quantile": str(self.quantile)}


@dataclass(frozen=True)
class RankStep:
    """A step that chooses for every group a candidate with about a given number of rows below or
    above it.

    The score of a candidate is the distance of that rank from the interval [rows below it, rows
    below or at it]; one row changes it by at most 1.
    """

    selection: Selection
    rank: int
    above: bool

    @property
    def mechanism(self) -> Composable:
        return self.selection.mechanism

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        return [(self.selection.draw(self.scores(cell)),) for cell in cells]

    def scores(self, cell: Sequence[int]) -> list[int]:
        """Return the scores of all candidates in one group."""
        counts = cell[::-1] if self.above else cell
        ends = [0, *accumulate(counts)]
        found = [max(less - self.rank, self.rank - most, 0) for less, most in pairwise(ends)]
        return found[::-1] if self.above else found

    def plain(self) -> dict[str, object]:
        return self.selection.plain() | {
            "rank": self.rank,
            "from": "above" if self.above else "below",
        }


@dataclass(frozen=True)
class PeelingStep:
    """A step that chooses the groups with the largest counts, one after the other, and releases
    their noisy counts.

    Each choice is among the groups that are left. Nothing is released of a group that is not
    chosen.

    Args:
        selection: Chooses among counts; one unit moves all of them in the same direction.
        noise: The noise on the counts of the chosen groups.
        rounds: The number of groups to choose.

    Reference: [DurfeeRogers2019]
    """

    selection: Selection
    noise: Noise
    rounds: int

    @property
    def mechanism(self) -> Composable:
        return compose(self.selection.mechanism * self.rounds, self.noise.mechanism)

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        left, chosen = [sum(cell) for cell in cells], list[int]()
        places = list(range(len(left)))
        for _ in range(self.rounds):
            at = self.selection.draw([-left[place] for place in places])
            chosen.append(places.pop(at))
        numbers = dict(zip(chosen, self.noise.draw([left[place] for place in chosen]), strict=True))
        return [(1, numbers[place]) if place in numbers else (0, 0) for place in range(len(left))]

    def plain(self) -> dict[str, object]:
        return {"rounds": self.rounds} | self.selection.plain() | self.noise.plain()


@dataclass(frozen=True)
class Released:
    """The released values of all groups.

    Args:
        keys: The groups, in the given order, or sorted if they are private.
        released: One entry for each step: a tuple of values for each group.
    """

    keys: tuple[Key, ...]
    released: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class Design:
    """Everything that is decided about a question before the data is read.

    Args:
        table: The table to aggregate.
        aggregation: The exact integers that are needed.
        steps: The mechanisms that release values, in order.
        measures: For each step, the positions of the integers of a group that it reads.
        threshold: The rule that releases private keys; None for public ones.
        spend: The spend of the question.
        description: The part of the ledger's description that states the question.
    """

    table: Table
    aggregation: Aggregation
    steps: tuple[ReleaseStep, ...]
    measures: tuple[int, ...]
    threshold: KeyThreshold | None
    spend: Spend
    description: Mapping[str, object]

    def __post_init__(self) -> None:
        if not (self.table.unit or self._adds_rows):
            what = (
                f"{self.description.get('question', 'a question')} of a table joined on another key"
            )
            reason = (
                "its rows belong to no unit, so only what adds them up in public groups is answered"
            )
            raise UnsupportedError(
                what, reason, "Ask counts, histograms, sums or means, with keys= for by="
            )
        if self.threshold is not None and self.table.engine.scattered:
            object.__setattr__(self, "threshold", self.threshold.scattered)

    @property
    def _adds_rows(self) -> bool:
        """Whether all integers are counts or clamped sums over rows in public groups, released with
        noise.
        """
        what = self.aggregation
        noisy = self.threshold is None and all(type(step) is NoiseStep for step in self.steps)
        of_rows = (
            not what.distinct and what.item is None and what.lost is None and what.among is None
        )
        return noisy and of_rows and what.public is not None and not what.by_rows

    @property
    def wanted(self) -> Aggregation:
        """The aggregation sent to the engine; it omits keys that cannot be released."""
        if self.threshold is None:
            return self.aggregation
        return replace(
            self.aggregation, fewest=self.threshold.fewest, measure=self.threshold.measure
        )

    @property
    def mechanism(self) -> Composable:
        """The composition of all steps and the threshold, which is charged."""
        parts = [step.mechanism for step in self.steps]
        return compose(*parts, *([] if self.threshold is None else [self.threshold.mechanism]))

    @property
    def noises(self) -> list[Noise]:
        """The noise of each step that adds noise; the noise of the threshold if there is no step."""
        if not self.steps and self.threshold is not None:
            return [self.threshold.noise]
        return [each.noise for each in self.steps if isinstance(each, NoiseStep | PeelingStep)]

    @property
    def delta(self) -> Fraction | None:
        """The delta at which filters in epsilon convert the privacy curve to one epsilon; None if
        the spend states none.
        """
        return self.spend.delta or None

    @property
    def plain(self) -> dict[str, object]:
        """Return the question, the bounds and the mechanism as the ledger stores them."""
        bounds = self.table.bounds
        contribution = {
            "rows": bounds.rows,
            "groups": bounds.groups,
            "rows per group": bounds.rows_per_group,
        }
        found: dict[str, object] = {
            "table": self.table.name,
            "source": self.table.identity,
            "unit": list(self.table.roots[0].unit),
            "bounds": contribution
            if self.table.unit
            else {"rows that one unit moves": bounds.rows},
            **({"part": self.table.part} if self.table.part else {}),
            **self.description,
            "spend": self.spend.amounts(str),
            "steps": [step.plain() for step in self.steps],
        }
        return found if self.threshold is None else found | {"keys out": self.threshold.plain()}

    def draw(self, aggregates: Groups) -> Released:
        """Add noise to exact integers. Only here do private values become released ones."""
        keys, first = self._keys(aggregates)
        bins = 1 if self.aggregation.bins is None else self.aggregation.bins[1].count
        empty: Mapping[int, Numbers] = {}
        nothing = (0,) * self.aggregation.width
        released = list(first)
        for step, measure in zip(self.steps, self.measures, strict=True):
            cells = [
                [aggregates.get(key, empty).get(bin, nothing)[measure] for bin in range(bins)]
                for key in keys
            ]
            released.append(tuple(step.draw(cells)))
        return Released(keys, tuple(released))

    def _keys(
        self, aggregates: Groups
    ) -> tuple[tuple[Key, ...], list[tuple[tuple[int, ...], ...]]]:
        """Return the released groups; for private ones also their noisy numbers, if nothing else is
        released.
        """
        if self.threshold is None:
            assert self.aggregation.public is not None
            return self.aggregation.public, []
        measure, fewest = self.threshold.measure, self.threshold.fewest
        counted = {
            key: sum(numbers[measure] for numbers in bins.values())
            for key, bins in aggregates.items()
        }
        there = sorted((key for key, number in counted.items() if number >= fewest), key=sorting)
        drawn = self.threshold.draw([counted[key] for key in there])
        pairs = zip(there, drawn, strict=True)
        out = {key: (number,) for key, (comes_out, number) in pairs if comes_out}
        return tuple(out), [] if self.steps else [tuple(out.values())]


def scores(counts: Sequence[int], quantile: Fraction) -> list[int]:
    """Return, for each point i of a grid with counts at its points, |(b - a) rows below - a rows
    above| for the quantile a / b.
    """
    a, b = quantile.numerator, quantile.denominator
    found: list[int] = []
    below, above = 0, sum(counts)
    for count in counts:
        above -= count
        found.append(abs((b - a) * below - a * above))
        below += count
    return found


def digest(keys: Sequence[Key]) -> str:
    """Return a hash of a list of keys, so that requests with different keys are different requests."""
    text = json.dumps([[str(type(part).__name__), str(part)] for key in keys for part in key])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
