"""Outcomes as numeric columns: one per coordinate of an answer and per side channel."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

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
    def _layouts(self) -> dict[tuple[str, ...], NDArray[np.intp]]:
        """The rows that have the same paths, by their paths."""
        layouts: dict[tuple[str, ...], list[int]] = {}
        for row, outcome in enumerate(self.rows):
            layouts.setdefault(outcome.paths, []).append(row)
        return {paths: np.array(rows) for paths, rows in layouts.items()}

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
        for paths, rows in self._layouts.items():
            if path in paths:
                at = 8 * paths.index(path)
                chosen = [self.rows[row] for row in cast("list[int]", rows.tolist())]
                numbers = b"".join([row.numbers[at : at + 8] for row in chosen])
                column[rows] = np.frombuffer(numbers, dtype="<f8")
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
        for paths, rows in self._layouts.items():
            chosen = [self.rows[row].numbers for row in cast("list[int]", rows.tolist())]
            grid = np.frombuffer(b"".join(chosen), dtype="<f8").reshape(len(rows), len(paths))
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
        chosen = {
            paths: [
                at
                for at, path in enumerate(paths)
                if not (path.startswith(BESIDE) or path.endswith(NO_NUMBERS))
            ][:LEAVES]
            for paths in self._layouts
        }
        matrix = np.full((len(self.rows), max([1, *map(len, chosen.values())])), math.nan)
        for paths, rows in self._layouts.items():
            columns = [self.column(paths[at])[rows] for at in chosen[paths]]
            matrix[rows, : len(columns)] = np.column_stack([*columns, np.zeros((len(rows), 0))])
        return matrix

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
_last = [Table(np.zeros(0))]


def table_of(outcomes: Outcomes) -> Table:
    """The table of a batch; the last one is cached, since many features read the same outcomes."""
    if _last[0].outcomes is not outcomes:
        _last[0] = Table(outcomes)
    return _last[0]
