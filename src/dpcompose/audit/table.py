"""Outcomes as numeric columns: one per coordinate of an answer and per side channel."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.outcome import (
    BESIDE,
    FURTHER,
    LEAVES,
    Outcome,
    Outcomes,
    Reading,
    Reals,
    code_of,
    read,
)

LETTER = " letter "
"""The separator between the path of a text and the index of a character in it."""
MOST_WORDS = 4096
"""The number of hashes whose outcomes are stored as descriptions."""
HASHES, NO_NUMBERS = (".code", ".words"), (".code", ".words", ".length", ".seconds")
"""Endings of the paths of hashes, and of all columns that are not numbers of an answer."""
_NONE = Reading("NoneType", (), 0.0)


@dataclass(frozen=True, eq=False)
class Table:
    """A batch of outcomes as columns; where an outcome lacks a coordinate, its entry is NaN.

    Args:
        outcomes: The outcomes.
    """

    outcomes: Outcomes

    @property
    def plain(self) -> bool:
        """Whether the outcomes are a numeric array, rather than `Outcome` objects."""
        return self.outcomes.dtype.kind in "fiub"

    @cached_property
    def columns(self) -> dict[str, Reals]:
        """The numbers of each coordinate of the answers, by its path."""
        if self.plain:
            grid = self.outcomes.astype(np.float64).reshape(len(self.outcomes), -1)
            one = self.outcomes.ndim == 1
            return {
                "" if one else f"[{index}]": np.ascontiguousarray(grid[:, index])
                for index in range(grid.shape[1])
            }
        found: dict[str, Reals] = {}
        for row, outcome in enumerate(self._rows):
            for path, number in outcome.value.leaves:
                if path not in found:
                    found[path] = np.full(len(self.outcomes), math.nan)
                found[path][row] = number
            if not math.isnan(outcome.seconds):
                found.setdefault(".seconds", np.full(len(self.outcomes), math.nan))[row] = (
                    outcome.seconds
                )
        return found

    def column(self, path: str) -> Reals:
        """The numbers at one path; for a character in a text, its code point. All NaN if the path
        does not occur.
        """
        found = self.columns.get(path)
        if found is None and not self.plain:
            found = self.further.get(path)
        if found is None and LETTER in path:
            found = self._letter(*path.rsplit(LETTER, 1))
        return np.full(len(self.outcomes), math.nan) if found is None else found

    @cached_property
    def further(self) -> dict[str, Reals]:
        """The columns after the first LEAVES coordinates, which only learners examine."""
        if self.plain:
            return dict(islice(self.columns.items(), LEAVES, LEAVES + FURTHER))
        found: dict[str, Reals] = {}
        for row, outcome in enumerate(self._rows):
            places, numbers = outcome.value.further
            for path, number in zip(
                places, struct.unpack(f"<{len(places)}d", numbers), strict=True
            ):
                if path not in found:
                    found[path] = np.full(len(self.outcomes), math.nan)
                found[path][row] = number
        return found

    @cached_property
    def letters(self) -> dict[str, int]:
        """The paths of texts, each with the length of its longest text."""
        found: dict[str, int] = {}
        for outcome in () if self.plain else self._rows:
            for path, text in outcome.value.letters:
                found[path] = max(found.get(path, 0), len(text))
        return found

    def letters_at(self, path: str, most: int) -> Reals:
        """The code points of the first `most` characters of the texts at a path, shape (most, n);
        NaN beyond their ends.
        """
        found = np.full((most, len(self.outcomes)), math.nan)
        for row, outcome in enumerate(self._rows):
            for where, text in outcome.value.letters:
                if where == path:
                    codes = [ord(each) for each in text[:most]]
                    found[: len(codes), row] = codes
        return found

    def _letter(self, path: str, number: str) -> Reals:
        found, at = np.full(len(self.outcomes), math.nan), int(number)
        for row, outcome in enumerate(() if self.plain else self._rows):
            for where, text in outcome.value.letters:
                if where == path and at < len(text):
                    found[row] = ord(text[at])
        return found

    @cached_property
    def kind(self) -> Reals:
        """For each outcome, a hash of its type, exception class, time-out and number of warnings; 0
        for a bare float.
        """
        if self.plain:
            return np.zeros(len(self.outcomes))
        codes = self._coded(
            lambda row: f"{row.value.kind}|{row.raised}|{row.timeout}|{len(row.warned)}"
        )
        codes[self._bare] = 0.0
        return codes

    @cached_property
    def whole(self) -> Reals:
        """For each outcome, a hash of everything observed; different outcomes have different hashes
        except by chance.
        """
        if self.plain:
            return _mixed(self.outcomes)
        codes = self._coded(
            lambda row: f"{row.value.code!r}|{row.raised}|{row.message}|{row.beside}"
        )
        if self._bare.any():
            codes[self._bare] = _mixed(self.columns[""][self._bare])
        return codes

    @cached_property
    def _bare(self) -> NDArray[np.bool_]:
        """Which outcomes are only a float. Their hashes must equal those in a batch of floats
        alone.
        """
        rows = [row if isinstance(row, Outcome) else Outcome(row) for row in self.outcomes.tolist()]
        return np.array([type(row.value) is float and row.alone for row in rows], dtype=bool)

    @cached_property
    def numbers(self) -> Reals:
        """The numbers of each answer without lengths and hashes, padded with NaN to a common
        length.
        """
        if self.plain:
            return np.column_stack([*self.columns.values()])
        rows = [
            [
                number
                for path, number in row.value.leaves
                if not (path.startswith(BESIDE) or path.endswith(NO_NUMBERS))
            ]
            for row in self._rows
        ]
        found = np.full((len(rows), max(1, *map(len, rows)) if rows else 1), math.nan)
        for row, numbers in zip(found, rows, strict=True):
            row[: len(numbers)] = numbers
        return found

    @cached_property
    def _rows(self) -> list[Outcome]:
        """The outcomes, each with a `Reading` as its value."""
        return [_seen(each) for each in self.outcomes.tolist()]

    @cached_property
    def unread(self) -> dict[str, int]:
        """The kinds of parts that were not read, with the largest number of them in one outcome."""
        found: dict[str, int] = {}
        for row in () if self.plain else self._rows:
            for name, number in row.value.unread:
                found[name] = max(found.get(name, 0), number)
        return found

    @cached_property
    def failures(self) -> Counter[str]:
        """Descriptions of the calls that did not answer, with how often each occurred."""
        return Counter(
            ()
            if self.plain
            else (f"{_worded(row)} {row.value.code}" for row in self._rows if not row.answered)
        )

    def _coded(self, text: Callable[[Outcome], str]) -> Reals:
        codes: dict[str, float] = {}
        texts = [text(row) for row in self._rows]
        for each, row in zip(texts, self._rows, strict=True):
            if each not in codes:
                codes[each] = code_of(each.encode("utf-8", "replace"))
                if len(_words) < MOST_WORDS:
                    _words.setdefault(codes[each], _worded(row))
        return np.array([codes[each] for each in texts])


def _worded(row: Outcome) -> str:
    """A short description of an outcome."""
    if row.timeout:
        return "no answer in time"
    leaves = ", ".join(f"{path or 'value'} {number:g}" for path, number in row.value.leaves[:3])
    answer = (
        f"raises {row.raised}: {row.message[:60]!r}"
        if row.raised
        else f"{row.value.kind} ({leaves})"
    )
    return answer + "".join(f", {name} {str(seen)[:60]!r}" for name, seen in row.beside.items())


def words_of(low: float, high: float) -> str:
    """A description of a stored outcome whose hash is in [low, high); empty if there is none."""
    return next((words for code, words in _words.items() if low <= code < high), "")


def _seen(value: Any) -> Outcome:
    outcome = value if isinstance(value, Outcome) else Outcome(value)
    answer, beside = outcome.value, outcome.beside
    if isinstance(answer, Reading) and not beside:
        return outcome
    if isinstance(answer, Reading):
        reading = answer
    elif answer is None:
        reading = _NONE
    elif type(answer) is float:
        reading = Reading("float", (("", answer),), code_of(struct.pack("<d", answer)))
    else:
        reading = read(answer)
    for name, seen in beside.items():
        each = _read_beside(name, seen)
        leaves, letters = reading.leaves + each.leaves, reading.letters + each.letters
        reading = replace(
            reading, leaves=leaves, letters=letters, unread=reading.unread + each.unread
        )
    return replace(outcome, value=reading)


@lru_cache(maxsize=1024)
def _read_beside(name: str, seen: str | tuple[str, ...]) -> Reading:
    """The contents of one side channel as a `Reading`."""
    return read(seen, f"{BESIDE}{name}")


def _mixed(outcomes: Outcomes) -> Reals:
    """A 52-bit hash of each row of numbers, from their bits."""
    numbers = (
        outcomes if outcomes.dtype.kind in "iub" else outcomes.astype(np.float64).view(np.uint64)
    )
    bits = numbers.astype(np.uint64).reshape(len(outcomes), -1)
    mixed = np.zeros(len(bits), dtype=np.uint64)
    for place in range(bits.shape[1]):
        mixed = (mixed ^ bits[:, place]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(12)).astype(np.float64)


_words: dict[float, str] = {}
_last = [Table(np.zeros(0))]


def table_of(outcomes: Outcomes) -> Table:
    """The table of a batch; the last one is cached, since many features read the same outcomes."""
    if _last[0].outcomes is not outcomes:
        _last[0] = Table(outcomes)
    return _last[0]
