"""A question made ready for one table: what is aggregated, what noise runs, and what that costs."""

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
from dpcompose.release.noise import Noise, Selection, noise_for
from dpcompose.release.spend import Spend, below
from dpcompose.release.table import Table


@dataclass(frozen=True)
class KeyThreshold:
    """Noise on the units, or rows, of every key that is there, and the least noisy number that lets a key out.

    A unit that alone holds up to `coordinates` keys makes one of them come out with probability at most delta: the
    keys it shares with others are hidden by the noise, so the whole is the composition of the noise on those and of a
    failure of probability delta.

    Args:
        noise: On distinct units, or on rows.
        delta: The double that is charged for keys that one unit alone holds.
        concentrated: Whether the price is wanted in rho.
        measure: 0 where units are counted, 1 where rows are.
        fewest: Keys of fewer units, or rows, never come out, and need not be handed over by the engine that holds them.
            The argument is the same: a key that one unit brings to this number has at most `largest` - 1 more, and
            comes out with probability at most delta / coordinates, as the threshold is that much higher; all others
            are hidden by the noise.

    Reference: [Korolova2009]
    """

    noise: Noise
    delta: float
    concentrated: bool
    measure: int = 0
    fewest: int = 1

    @classmethod
    def costing(cls, change: Change, spend: Spend, *, measure: int = 0) -> KeyThreshold:
        """The noise for the amount, and the threshold for the delta.

        Raises:
            DomainError: If no delta was named.
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
        """The least noisy number that lets a key out.

        One unit alone counts at most as the largest change of a key: each of its keys comes out with probability at
        most delta / coordinates.
        """
        return self.fewest - 1 + self.noise.change.largest + self._reach

    @property
    def _reach(self) -> int:
        """How far noise reaches, but for the probability that one key may have."""
        return self.noise.passing(self.delta / self.noise.change.coordinates * (1 - 1e-12))

    @property
    def scattered(self) -> KeyThreshold:
        """For keys that are many, on many machines: `fewest` above 1, for a threshold higher by an eighth at most."""
        return replace(self, fewest=1 + self._reach // 8)

    @property
    def mechanism(self) -> Composable:
        """The noise, and the failure."""
        failure = (
            Concentrated(0.0, delta=self.delta)
            if self.concentrated
            else BlackBox(0.0, delta=self.delta)
        )
        return self.noise.mechanism + failure

    def draw(self, numbers: Sequence[int]) -> list[tuple[bool, int]]:
        """For the units, or rows, of each key, at least `fewest`: whether it comes out, and their noisy number."""
        least = self.least
        return [(number >= least, number) for number in self.noise.draw(numbers)]

    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""
        fewest = {"fewest": self.fewest} if self.fewest > 1 else {}
        return {"threshold": self.least, "delta": repr(self.delta)} | fewest | self.noise.plain()


class ReleaseStep(Protocol):
    """One part of a release: it names what is charged, and it runs."""

    @property
    def mechanism(self) -> Composable:
        """The mechanism that is charged."""
        ...

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """Draw the values released for each group, from the group's exact integers."""
        ...

    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""
        ...


@dataclass(frozen=True)
class NoiseStep:
    """Noise on every integer of every group: one vector, one mechanism."""

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
    """A candidate for every group, by its scores: |(b - a) lower - a upper| for the quantile a / b."""

    selection: Selection
    quantile: Fraction

    @property
    def mechanism(self) -> Composable:
        return self.selection.mechanism

    def draw(self, cells: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        return [(self.selection.draw(self.scores(cell)),) for cell in cells]

    def scores(self, cell: Sequence[int]) -> list[int]:
        """The scores of all candidates in one group."""
        return scores(cell, self.quantile)

    def plain(self) -> dict[str, object]:
        return self.selection.plain() | {"quantile": str(self.quantile)}


@dataclass(frozen=True)
class RankStep:
    """A candidate for every group, with about so many rows below it, or above it.

    The score of a candidate is the distance of the rank from the interval [rows below it, rows below or at it], which
    one row moves by 1 at most.
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
        """The scores of all candidates in one group."""
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
    """The groups with the largest counts, chosen one after the other, and their noisy counts.

    Each choice is among the groups that are left. Of a group that is not chosen nothing is released.

    Args:
        selection: Chooses among counts, all of which one unit moves the same way.
        noise: On the counts of the chosen groups.
        rounds: How many are chosen.

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
    """The released values: the groups, and for each step its values for each of them.

    Args:
        keys: In the order given, or sorted if they are private.
        released: One entry a step, one tuple a group.
    """

    keys: tuple[Key, ...]
    released: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class Design:
    """All that is decided before the data is touched.

    Args:
        table: The table that is asked.
        aggregation: Which exact integers are needed.
        steps: What is released of them, in this order.
        measures: For each step, which of a group's integers it takes.
        threshold: How private keys come out; None for public ones.
        spend: What was named.
        description: What the ledger stores of the question.
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
        """Whether every integer is a count or a clamped sum over rows, in public groups, with noise on it."""
        what = self.aggregation
        noisy = self.threshold is None and all(type(step) is NoiseStep for step in self.steps)
        of_rows = (
            not what.distinct and what.item is None and what.lost is None and what.among is None
        )
        return noisy and of_rows and what.public is not None and not what.by_rows

    @property
    def wanted(self) -> Aggregation:
        """The integers that the engine hands over: none of keys that cannot come out."""
        if self.threshold is None:
            return self.aggregation
        return replace(
            self.aggregation, fewest=self.threshold.fewest, measure=self.threshold.measure
        )

    @property
    def mechanism(self) -> Composable:
        """The composition of all that runs, which is charged."""
        parts = [step.mechanism for step in self.steps]
        return compose(*parts, *([] if self.threshold is None else [self.threshold.mechanism]))

    @property
    def noises(self) -> list[Noise]:
        """The noise of each step that adds some; that on the keys, where there is no step."""
        if not self.steps and self.threshold is not None:
            return [self.threshold.noise]
        return [each.noise for each in self.steps if isinstance(each, NoiseStep | PeelingStep)]

    @property
    def delta(self) -> Fraction | None:
        """The delta at which a privacy curve becomes one epsilon, for filters that count epsilon; None if none was stated."""
        return self.spend.delta or None

    @property
    def plain(self) -> dict[str, object]:
        """The question, the bounds and the mechanism, as the ledger stores them."""
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
        """The noise on exact integers: the only line between what is private and what is released."""
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
        """The groups that come out; for private ones also their noisy numbers, if nothing else is wanted."""
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
        out = [
            (key, number)
            for key, (comes_out, number) in zip(there, drawn, strict=True)
            if comes_out
        ]
        alone = not self.steps
        return tuple(key for key, _ in out), [
            tuple((number,) for _, number in out)
        ] if alone else []


def scores(counts: Sequence[int], quantile: Fraction) -> list[int]:
    """For each point i of a grid with so many rows at each: |(b - a) rows below - a rows above|, quantile a / b."""
    a, b = quantile.numerator, quantile.denominator
    found: list[int] = []
    below, above = 0, sum(counts)
    for count in counts:
        above -= count
        found.append(abs((b - a) * below - a * above))
        below += count
    return found


def digest(keys: Sequence[Key]) -> str:
    """A short name for a list of keys, so that a request with other keys is another request."""
    text = json.dumps([[str(type(part).__name__), str(part)] for key in keys for part in key])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
