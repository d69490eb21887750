"""One place of a large answer that tells the coin: numbers after the first ones, letters of texts, bits of integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dpcompose.audit.bits import bit
from dpcompose.audit.feature import Feature, named
from dpcompose.audit.outcome import Outcomes, Reals
from dpcompose.audit.parts import LEAVES, LETTERS
from dpcompose.audit.table import LETTER, table_of

LEAST, MOST, CELLS = 64, 4096, 16
"""Rows that teach anything; the latest rows that are looked at; cells into which the values at a place are sorted."""
BITS, INTEGERS, MANY = 24, 4, 64
"""Bits of an integer; integers whose bits are looked at; the values that such an integer takes."""
LIKELY = 32
"""Numbers that are looked at closely."""
WORTH = 4.0
"""Standard deviations by which the information about the coin is above that of chance."""


@dataclass(frozen=True)
class Single:
    """The place at which the values tell most of the coin, of all that no other feature reads."""

    name: str = "single place"

    def fit(self, outcomes: Outcomes, coins: np.ndarray) -> Feature | None:
        outcomes, coins = outcomes[-MOST:], coins[-MOST:].astype(bool)
        if len(outcomes) < LEAST or coins.all() or not coins.any():
            return None
        found, most = "", WORTH
        for name, values in _places(outcomes, coins):
            told = _told(values, coins)
            if told > most:
                found, most = name, told
        return named(found) if found else None


def _places(outcomes: Outcomes, coins: np.ndarray) -> Iterator[tuple[str, Reals]]:
    table = table_of(outcomes)
    for place, column in _promising(table.further, coins):
        yield f"value{place}", column
    for place, length in table.letters.items():
        for number, column in enumerate(table.letters_at(place, min(length, LETTERS))):
            yield f"value{place}{LETTER}{number}", column
    integers = 0
    for place, column in [*table.columns.items()][:LEAVES]:
        if (
            integers < INTEGERS
            and not np.isnan(bit(column, 0)).any()
            and len(np.unique(column)) > MANY
        ):
            integers += 1
            for number in range(BITS):
                yield f"bit {number} of value{place}", bit(column, number)


def _promising(columns: Mapping[str, Reals], coins: np.ndarray) -> Iterator[tuple[str, Reals]]:
    """The columns whose middles or spreads differ most between the coins: to look at all of them takes long."""
    if not columns:
        return
    rows = np.stack([*columns.values()])
    known = np.isfinite(rows)
    rows = np.where(known, rows, 0.0)
    away = np.clip(rows - np.median(rows, axis=1, keepdims=True), -1e150, 1e150)
    spread = np.median(np.abs(away), axis=1, keepdims=True) + 1e-300
    away = np.clip(away / spread, -10, 10)
    apart = np.zeros(len(rows))
    for seen in (away, np.abs(away), known.astype(np.float64)):
        means = [seen[:, coins == side].mean(axis=1) for side in (False, True)]
        apart = np.maximum(apart, np.abs(means[1] - means[0]) / (seen.std(axis=1) + 1e-9))
    names = [*columns]
    for number in np.argsort(-apart)[:LIKELY]:
        yield names[number], columns[names[number]]


def _told(values: Reals, coins: np.ndarray) -> float:
    """The information about the coin, in standard deviations above what chance tells."""
    order, cell = np.unique(values, return_inverse=True)
    if len(order) < 2:
        return 0.0
    if len(order) > 4 * CELLS:
        cell = cell * CELLS // len(order)
    counts = np.array(
        [np.bincount(cell[coins == side], minlength=cell.max() + 1) for side in (False, True)],
        float,
    )
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    free = counts.shape[1] - 1
    return (
        float((((counts - expected) ** 2 / expected).sum() - free) / np.sqrt(2 * free))
        if free
        else 0.0
    )
