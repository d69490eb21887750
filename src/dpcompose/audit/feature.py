"""Features: functions that map an outcome to a number, on whose values the audit bets; and the
outcomes of a batch as columns of numbers, which features read.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.audit.outcome import (
    BESIDE,
    CODES,
    LEAVES,
    Outcome,
    Outcomes,
    Reals,
    code_of,
    mixed,
    rows_of,
)
from dpcompose.audit.stakes import Cells
from dpcompose.errors import DomainError

LETTER = " letter "
"""The separator between the path of a text and the index of a character in it."""
MOST_WORDS = 4096
"""The number of hashes whose outcomes are stored as descriptions."""
NO_NUMBERS = (*CODES, ".length", ".seconds")
"""Endings of the paths of columns that are not numbers of an answer."""


@dataclass(frozen=True, eq=False)
class Table:
    """A batch of outcomes as columns; where an outcome lacks a coordinate, its entry is NaN.

    Args:
        outcomes: A numeric array, or `Outcome` objects and floats.
    """

    outcomes: Outcomes
    _columns: dict[str, Reals] = field(default_factory=dict[str, Reals])

    @property
    def plain(self) -> bool:
        """Whether the outcomes are a numeric array, rather than `Outcome` objects."""
        return self.outcomes.dtype.kind in "fiub"

    @cached_property
    def rows(self) -> list[Outcome]:
        """The outcomes as `Outcome` objects; none if they are a numeric array."""
        return [] if self.plain else rows_of(self.outcomes.tolist()).tolist()

    @cached_property
    def _layouts(self) -> dict[tuple[str, ...], tuple[NDArray[np.intp], Reals]]:
        """The rows that have the same paths and their numbers, shape (rows, paths), by their paths."""
        layouts: dict[tuple[str, ...], list[int]] = {}
        for row, outcome in enumerate(self.rows):
            layouts.setdefault(outcome.paths, []).append(row)
        numbers = [row.numbers for row in self.rows]
        grids = {
            paths: np.frombuffer(b"".join([numbers[row] for row in rows]), dtype="<f8")
            for paths, rows in layouts.items()
        }
        return {
            paths: (np.array(rows), grids[paths].reshape(len(rows), len(paths)))
            for paths, rows in layouts.items()
        }

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The paths of all numbers, in the order in which they occur."""
        if self.plain:
            width = self.outcomes.reshape(len(self.outcomes), -1).shape[1]
            return (
                ("",) if self.outcomes.ndim == 1 else tuple(f"[{index}]" for index in range(width))
            )
        return tuple(dict.fromkeys(path for paths in self._layouts for path in paths))

    def column(self, path: str) -> Reals:
        """The numbers at one path; for a character in a text, its code point. All NaN if the path
        does not occur.
        """
        if path not in self._columns:
            self._columns[path] = self._column(path)
        return self._columns[path]

    def _column(self, path: str) -> Reals:
        column = np.full(len(self.outcomes), math.nan)
        if self.plain and path in self.paths:
            grid = self.outcomes.reshape(len(self.outcomes), -1)
            return np.ascontiguousarray(grid[:, self.paths.index(path)], dtype=np.float64)
        for paths, (rows, grid) in self._layouts.items():
            if path in paths:
                column[rows] = grid[:, paths.index(path)]
        text, letter, index = path.rpartition(LETTER)
        return self.letters_at(text, int(index) + 1)[-1] if letter else column

    @cached_property
    def letters(self) -> dict[str, int]:
        """The paths of texts, each with the length of its longest text."""
        lengths: dict[str, int] = {}
        for path, text in (each for row in self.rows for each in row.texts):
            lengths[path] = max(lengths.get(path, 0), len(text))
        return lengths

    def letters_at(self, path: str, most: int) -> Reals:
        """The code points of the first `most` characters of the texts at a path, shape (most, n);
        NaN beyond their ends.
        """
        points = np.full((most, len(self.outcomes)), math.nan)
        for row, outcome in enumerate(self.rows):
            for where, text in outcome.texts:
                if where == path:
                    codes = [ord(each) for each in text[:most]]
                    points[: len(codes), row] = codes
        return points

    @cached_property
    def kind(self) -> Reals:
        """For each outcome, a hash of its types, channels and failure; 0 for a bare float."""
        if self.plain:
            return np.zeros(len(self.outcomes))
        codes = {
            kind: code_of(kind.encode()) if kind else 0.0
            for kind in {row.kind for row in self.rows}
        }
        return self._described(np.array([codes[row.kind] for row in self.rows]))

    @cached_property
    def whole(self) -> Reals:
        """For each outcome, a hash of everything observed; different outcomes have different hashes
        except by chance.
        """
        return (
            mixed(self.outcomes)
            if self.plain
            else self._described(np.array([row.code for row in self.rows]))
        )

    @cached_property
    def answer(self) -> Reals:
        """For each outcome, a hash of its answer's numbers and hashes, without the side channels
        and the time: different answers usually have different hashes, equal ones always equal.
        """
        if self.plain:
            return self.whole
        codes = np.zeros(len(self.rows))
        for paths, (rows, grid) in self._layouts.items():
            own = [not path.startswith(BESIDE) and path != ".seconds" for path in paths]
            codes[rows] = mixed(grid[:, np.array(own, dtype=np.bool_)])
        return codes

    @cached_property
    def numbers(self) -> Reals:
        """The first LEAVES numbers of each answer without lengths and hashes, padded with NaN to a
        common length.
        """
        if self.plain:
            return self.outcomes.reshape(len(self.outcomes), -1).astype(np.float64)
        matrix, most = np.full((len(self.rows), LEAVES), math.nan), 1
        for paths, (rows, grid) in self._layouts.items():
            places = [
                place
                for place, path in enumerate(paths)
                if not path.startswith(BESIDE) and not path.endswith(NO_NUMBERS)
            ][:LEAVES]
            matrix[rows, : len(places)] = grid[:, places]
            most = max(most, len(places))
        return matrix[:, :most]

    def _described(self, codes: Reals) -> Reals:
        for code, row in zip(codes.tolist(), self.rows, strict=True):
            if len(_words) < MOST_WORDS and code not in _words:
                _words[code] = row.words
        return codes

    @cached_property
    def unread(self) -> dict[str, int]:
        """The kinds of parts that were not read, with the largest number of them in one outcome."""
        largest: dict[str, int] = {}
        for name, number in (each for row in self.rows for each in row.unread):
            largest[name] = max(largest.get(name, 0), number)
        return largest

    @cached_property
    def failures(self) -> Counter[str]:
        """Descriptions of the calls that did not answer, with how often each occurred."""
        return Counter(f"{row.words} {row.code}" for row in self.rows if row.failure)


def words_of(low: float, high: float) -> str:
    """A description of a stored outcome whose hash is in [low, high); empty if there is none."""
    return next((words for code, words in _words.items() if low <= code < high), "")


_words: dict[float, str] = {}
_latest = deque[Table](maxlen=2)


def table_of(outcomes: Outcomes) -> Table:
    """The table of a batch; the last two are cached, since many features read the same outcomes, and
    learners a part of them.
    """
    table = next((each for each in _latest if each.outcomes is outcomes), None)
    if table is None or table is not _latest[-1]:
        table = Table(outcomes) if table is None else table
        _latest.append(table)
    return table


_MANTISSA, _HIDDEN = np.uint64((1 << 52) - 1), np.uint64(1 << 52)


def trailing_zeros(numbers: Reals) -> Reals:
    """The number of zero bits at the end of each number's mantissa; 53 for 0."""
    mantissa = np.ascontiguousarray(numbers).view(np.uint64) & _MANTISSA | _HIDDEN
    lowest = (mantissa & (~mantissa + np.uint64(1))).astype(np.float64)
    return np.where(numbers == 0, 53.0, np.log2(lowest))


def exponent(numbers: Reals) -> Reals:
    """The binary exponent of each number, as `numpy.frexp` gives it."""
    return np.frexp(numbers)[1].astype(np.float64)


def lowest_bit(numbers: Reals) -> Reals:
    """The exponent of the lowest set bit of each number: at least -53 for multiples of 2^-53; 1074
    for 0.
    """
    return np.where(numbers == 0, 1074.0, exponent(numbers) - 53 + trailing_zeros(numbers))


def bit(numbers: Reals, position: int) -> Reals:
    """The bit of weight 2^place of each whole number, as 0 or 1; NaN for other numbers."""
    whole = np.isfinite(numbers) & (np.abs(numbers) < 2.0**53) & (numbers == np.floor(numbers))
    return np.where(whole, np.floor(np.where(whole, numbers, 0.0) / 2.0**position) % 2, np.nan)


def decimals(numbers: Reals) -> Reals:
    """The smallest number of decimal places that represents each number exactly, up to 12; 13 if
    none does.
    """
    found = np.full(len(numbers), 13.0)
    with np.errstate(over="ignore", invalid="ignore"):
        for places in range(12, -1, -1):
            found[np.rint(numbers * 10.0**places) / 10.0**places == numbers] = places
    return found


LOWEST = "lowest bit"
READ = {
    "trailing zeros": trailing_zeros,
    LOWEST: lowest_bit,
    "exponent": exponent,
    "decimals": decimals,
}
ESSENTIAL = (LOWEST, "decimals")
"""The readings of each number in an answer of several; a single number has all of `READ`."""


WITH_BITS, STEPS = 2, 7
"""The number of leading coordinates with bits as features, and with differences."""
PLACES, BITS, WHOLES, REDUCED, CHANNELS = 4.0, 2.5, 1.0, 2.5, 2.0
"""Prior weights: coordinates, bits, types and whole answers, reductions, side channels."""


@dataclass(frozen=True)
class Feature:
    """A function from outcomes to numbers on which bets are placed.

    Args:
        name: The name, which is recorded in certificates.
        score: Maps n outcomes to n numbers, each computed from its own outcome alone; NaN is a
            value like any other.
        parameters: The fitted parameters of a learned feature, as JSON, from which a certificate
            restores it; otherwise None.
        weight: The prior weight of bets on this feature, relative to the other features; positive.
        memory: For a feature that depends on earlier outcomes, the record of them; otherwise None.
    """

    name: str
    score: Callable[[Outcomes], Reals]
    parameters: Mapping[str, Any] | None = None
    weight: float = 1.0
    memory: Memory | None = None

    def __post_init__(self) -> None:
        check.positive("weight", self.weight)


@dataclass(frozen=True)
class Memory:
    """A record of which worlds (datasets) have produced each whole answer.

    An answer that comes again usually comes from the same world if the mechanism's random generator
    has few states.

    Fairness: when a batch is bet on, the score of an outcome is a function of that outcome alone,
    fixed by the rows before the batch. So each cell is an event of Theorem 1, its stake at most
    e^-epsilon, its charge delta / 2 times the largest stake: E[payoff | past] <= 1 if the claim
    holds for each call given the past. A mechanism that legitimately returns stored answers
    violates that conditional claim, not its own. If calls are not isolated, the verdict therefore
    says that it concerns repeated calls.

    Args:
        worlds: For the hash of each answer: 1 if it came from world 0, 2 if from world 1, 3 if from
            both.
    """

    worlds: dict[float, int] = field(default_factory=dict[float, int])

    @property
    def feature(self) -> Feature:
        """The feature that reads this record."""
        return Feature(SEEN, self.score, memory=self, weight=2.0)

    def score(self, outcomes: Outcomes) -> Reals:
        """For each outcome, the worlds that produced the same answer before: 0 none, 1 world 0, 2
        world 1, 3 both.
        """
        codes = table_of(outcomes).whole.tolist()
        return np.array([self.worlds.get(code, 0) for code in codes], dtype=np.float64)

    def learn(self, outcomes: Outcomes, coins: np.ndarray) -> None:
        """Add outcomes and their coins to the record."""
        worlds = self.worlds
        for code, coin in zip(table_of(outcomes).whole.tolist(), coins.tolist(), strict=True):
            worlds[code] = worlds.get(code, 0) | 1 << coin


SEEN, WHOLE, KIND = "worlds of the same answer before", "the whole answer", "type or exception"
"""The names of the feature `Memory`, and of the features for the whole answer and its type."""


Learner = Callable[[Outcomes, np.ndarray], Feature | None]
"""Fits a feature to past outcomes and coins, for bets on later ones; None if not useful."""


def features_of(outcomes: Outcomes) -> tuple[Feature, ...]:
    """The built-in features that suit these outcomes, the first ones of a pair. Their coins are not
    used.
    """
    return tuple(_features(table_of(outcomes)))


def named(name: str) -> Feature:
    """Restore a built-in feature from its name in a certificate.

    Raises:
        DomainError: If no built-in feature has this name.
    """
    read = _reading(name)
    weight = 2.0 if name.startswith(f"{LOWEST} of") else 1.0  # shows floating-point noise first
    return Feature(name, lambda outcomes: read(table_of(outcomes)), weight=weight)


def _reading(name: str) -> Callable[[Table], Reals]:
    """The function of a table that a built-in feature's name denotes."""
    reading, of, path = name.partition("value")
    if not reading and of:
        second, apart, first = path.partition(" - value")

        def column(table: Table) -> Reals:
            if not apart or path in table.paths:
                return table.column(path)
            with np.errstate(invalid="ignore"):
                return table.column(second) - table.column(first)

        return column
    if bit_of := _BIT.fullmatch(reading):
        return lambda table: bit(table.column(path), int(bit_of[1]))
    if reading.endswith(" of ") and (read := READ.get(reading[:-4])):
        return lambda table: read(table.column(path))
    if name in _WHOLE:
        return _WHOLE[name]
    raise DomainError(
        "feature", name, "a feature of outcomes", "Give one of your own with features="
    )


def _features(table: Table) -> Iterator[Feature]:
    yield from _sharing(WHOLES, [WHOLE] if table.plain else [KIND, WHOLE])
    beside, paths = (
        [
            path
            for path in [each for each in table.paths if each.startswith(BESIDE) is side][:LEAVES]
            if not (path.endswith(NO_NUMBERS) and np.ptp(table.column(path)) == 0)
        ]
        for side in (True, False)
    )
    yield from _sharing(PLACES, [f"value{path}" for path in paths])
    yield from _sharing(CHANNELS, [f"value{path}" for path in beside])
    continuous = [path for path in paths if _fractional(table.column(path))]
    read = READ if len(paths) == 1 else ESSENTIAL
    bits = [f"{name} of value{path}" for path in continuous[:WITH_BITS] for name in read]
    yield from _sharing(BITS, bits)
    numbers = [path for path in paths if not path.endswith(NO_NUMBERS)]
    if len(numbers) > 1:
        steps = [f"value{after} - value{path}" for path, after in pairwise(numbers[:STEPS])]
        yield from _sharing(REDUCED, [*REDUCTIONS, *steps])


def _sharing(weight: float, names: Sequence[str]) -> Iterator[Feature]:
    """Features of one kind with their weights scaled to the given total, however many they are."""
    features = [*map(named, names)]
    whole = math.fsum(each.weight for each in features)
    return (replace(each, weight=weight * each.weight / whole) for each in features)


def _fractional(column: Reals) -> bool:
    known = column[np.isfinite(column)]
    return bool(np.any(known != np.floor(known)))


def _finite(numbers: Reals, otherwise: float) -> Reals:
    return np.where(np.isfinite(numbers), numbers, otherwise)


_BIT = re.compile(r"bit ([0-9]|[1-4][0-9]) of ")
REDUCTIONS: dict[str, Callable[[Reals], Reals]] = {
    "sum": lambda numbers: _finite(numbers, 0.0).sum(axis=1),
    "largest": lambda numbers: _finite(numbers, -math.inf).max(axis=1),
    "smallest": lambda numbers: _finite(numbers, math.inf).min(axis=1),
    "place of the largest": lambda numbers: (
        _finite(numbers, -math.inf).argmax(axis=1).astype(np.float64)
    ),
    "numbers": lambda numbers: np.isfinite(numbers).sum(axis=1).astype(np.float64),
}
"""Reductions of all numbers in an answer to one; numbers that are not finite are left out."""


def _reduction(reduced: Callable[[Reals], Reals]) -> Callable[[Table], Reals]:
    return lambda table: reduced(table.numbers)


_WHOLE: dict[str, Callable[[Table], Reals]] = {
    KIND: lambda table: table.kind,
    WHOLE: lambda table: table.whole,
    **{name: _reduction(reduced) for name, reduced in REDUCTIONS.items()},
}
"""The features of whole answers."""


def event_in_words(name: str, cells: Cells, cell: int, example: str) -> str:
    """A sentence fragment that describes the outcomes in one cell of a feature, without codes and
    hashes.

    Args:
        name: The name of the feature.
        cells: The cells of the feature.
        cell: The index of the cell.
        example: A description of an earlier outcome in this cell; empty if none is stored.
    """
    low = cells.cuts[cell - 1] if 0 < cell <= len(cells.cuts) else -math.inf
    values = cells.words(cell)
    answer = name.replace("value", "the answer")
    if name == SEEN:
        worlds = {1: "world 0 alone", 2: "world 1 alone", 3: "both worlds"}.get(int(max(low, 0)))
        return f"the same answer was met before, in {worlds}" if worlds else "the answer is new"
    if name in (KIND, WHOLE):
        what = "the outcome" if name == WHOLE else "the type of the outcome"
        return (
            f"{what} is that of: {example}"
            if example
            else f"{what} is one of those that were rare before"
        )
    if name.startswith("lowest bit of value"):
        if values.startswith("is "):
            return f"the last bit that is set in the answer{name[19:]} is that of 2^{low:.0f}"
        return f"the power of 2 at which the answer{name[19:]} ends {values}"
    for ending, what in (".code", "the text or object at"), (".words", "the words of the text at"):
        if name.endswith(ending):
            at = name.removeprefix("value").removesuffix(ending).strip() or "the answer"
            one = "one that was met before" if values.startswith("is ") else "another one"
            return f"{what} {at} is {one}"
    return f"{answer} {values}"
