"""Features learned from past outcomes and coins: a linear discriminant, a decision tree, and the
most informative coordinate.

The parameters of a learned feature are recorded with the bets on it, so that a certificate can
restore it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.check import MALFORMED
from dpcompose.audit.feature import LETTER, Feature, Learner, bit, features_of, named, table_of
from dpcompose.audit.outcome import CODES, FURTHER, LEAVES, LETTERS, Outcomes, Reals
from dpcompose.errors import DomainError

LEAST, MOST = 128, 8192
"""The number of rows that a learner needs, and the largest number of latest rows that it uses."""
TREE_LEAVES, CUTS, SMALLEST = 32, 15, 8
"""The most leaves of a tree, the cuts tried per feature, and the fewest rows in a leaf."""


def discriminant(outcomes: Outcomes, coins: np.ndarray) -> Feature | None:
    """Fit the linear combination of coordinates that best separates the outcomes of the two worlds.

    Mean difference and covariance give its weights, as in Fisher's linear discriminant.
    """
    outcomes, coins = _latest(outcomes, MOST), coins[-MOST:].astype(bool)
    places = [path for path in table_of(outcomes).paths if not path.endswith(CODES)][:LEAVES]
    if len(places) < 2 or len(outcomes) < LEAST or coins.all() or not coins.any():
        return None
    rows = _columns(outcomes, places)
    middle, spread = np.median(rows, axis=0), rows.std(axis=0)
    spread[~(spread > 0)] = 1.0
    scaled = np.clip((rows - middle) / spread, -10, 10)
    apart = scaled[coins].mean(axis=0) - scaled[~coins].mean(axis=0)
    weights = cast("Reals", np.linalg.solve(np.cov(scaled.T) + 1e-3 * np.eye(len(places)), apart))
    numbers = {"middle": middle, "spread": spread, "weights": weights}
    return remade(
        "linear discriminant",
        {"places": places} | {name: _hex(each) for name, each in numbers.items()},
    )


def _latest(outcomes: Outcomes, most: int) -> Outcomes:
    """The last `most` outcomes; if that is all of them, the same object is returned, whose table is
    cached.
    """
    return outcomes if len(outcomes) <= most else outcomes[-most:]


def _direction(name: str, parameters: Mapping[str, Any]) -> Feature:
    """The linear discriminant with these recorded parameters; ValueError if their lengths differ."""
    places = tuple(parameters["places"])
    middle, spread, weights = (
        np.array([*map(float.fromhex, parameters[each])])
        for each in ("middle", "spread", "weights")
    )
    if not 2 <= len(places) == len(middle) == len(spread) == len(weights):
        raise ValueError("the coordinates and their weights differ in number")

    def score(outcomes: Outcomes) -> Reals:
        return np.clip((_columns(outcomes, places) - middle) / spread, -10, 10) @ weights

    return Feature(name, score, parameters)


def _hex(numbers: Reals) -> list[str]:
    return [each.hex() for each in numbers.tolist()]


def _columns(outcomes: Outcomes, places: Sequence[str]) -> Reals:
    table = table_of(outcomes)
    return np.nan_to_num(
        np.column_stack([table.column(place) for place in places]), nan=0, posinf=1e6, neginf=-1e6
    )


@dataclass(frozen=True, eq=False)
class _Leaf:
    rows: NDArray[np.intp]
    path: tuple[tuple[int, float, bool], ...]


def tree(outcomes: Outcomes, coins: np.ndarray) -> Feature | None:
    """Fit a decision tree over the built-in features, whose leaves are joint events of several features."""
    outcomes, coins = _latest(outcomes, MOST), coins[-MOST:].astype(np.float64)
    features = features_of(outcomes)
    if len(outcomes) < LEAST or len(features) < 2:
        return None
    scores = [_ordered(feature.score(outcomes)) for feature in features]
    waiting, done = [_Leaf(np.arange(len(coins)), ())], list[_Leaf]()
    while waiting and len(waiting) + len(done) < TREE_LEAVES:
        leaf = max(waiting, key=lambda each: len(each.rows))
        waiting.remove(leaf)
        cut = _best(scores, coins, leaf)
        if cut is None:
            done.append(leaf)
            continue
        place, value = cut
        above = scores[place][leaf.rows] >= value
        waiting += [
            _Leaf(leaf.rows[above == up], (*leaf.path, (place, value, up))) for up in (False, True)
        ]
    leaves = sorted([*waiting, *done], key=lambda each: float(coins[each.rows].mean()))
    if len(leaves) < 2:
        return None
    paths = [
        [[features[place].name, value.hex(), up] for place, value, up in leaf.path]
        for leaf in leaves
    ]
    return remade("tree", {"leaves": paths})


def _ranks(name: str, parameters: Mapping[str, Any]) -> Feature:
    """The decision tree with these recorded parameters.

    It maps an outcome to the rank of its leaf, in increasing order of the fraction of coin 1.
    """
    leaves = [
        [(place, float.fromhex(value), bool(up)) for place, value, up in path]
        for path in parameters["leaves"]
    ]
    used = {place: named(place) for path in leaves for place, _, _ in path}

    def score(outcomes: Outcomes) -> Reals:
        scores = {place: _ordered(feature.score(outcomes)) for place, feature in used.items()}
        ranks = np.zeros(len(outcomes))
        for rank, path in enumerate(leaves):
            inside = np.ones(len(outcomes), dtype=bool)
            for place, value, up in path:
                inside &= (scores[place] >= value) == up
            ranks[inside] = rank
        return ranks

    return Feature(name, score, parameters)


def remade(name: str, parameters: Mapping[str, Any]) -> Feature:
    """Restore a learned feature from its parameters in a certificate.

    Raises:
        DomainError: If they describe neither a linear discriminant nor a tree.
    """
    try:
        return _direction(name, parameters) if "places" in parameters else _ranks(name, parameters)
    except MALFORMED as error:
        raise DomainError(
            "feature", name, f"the parameters of a linear discriminant or a tree ({error!r})"
        ) from None


def _ordered(scores: Reals) -> Reals:
    """The scores with NaN replaced by minus infinity, so that a cut can separate it."""
    return np.where(np.isnan(scores), -math.inf, scores)


def _best(scores: Sequence[Reals], coins: Reals, leaf: _Leaf) -> tuple[int, float] | None:
    """The feature index and the cut that most reduce the entropy of the coin; None if the gain may
    be chance.
    """
    own, rows = coins[leaf.rows], len(leaf.rows)
    if rows < 2 * SMALLEST:
        return None
    whole, found, best = _entropy(own.sum(), rows), None, 3.0
    for place, score in enumerate(scores):
        here = score[leaf.rows]
        order = np.argsort(here, kind="stable")
        values, ones = here[order], np.concatenate([[0.0], np.cumsum(own[order])])
        cuts = np.unique(values[np.linspace(SMALLEST, rows - SMALLEST, CUTS).astype(int)])
        below = np.searchsorted(values, cuts)
        below, cuts = below[(below > 0)], cuts[below > 0]
        if len(cuts):
            gain = (
                whole
                - _entropy(ones[below], below)
                - _entropy(ones[-1] - ones[below], rows - below)
            )
            top = int(np.argmax(gain))
            if gain[top] > best:
                found, best = (place, float(cuts[top])), float(gain[top])
    return found


def _entropy(ones: Reals | float, rows: NDArray[np.intp] | int) -> Reals:
    """The entropy of the coin in nats, summed over the rows, given the number of rows with coin 1."""
    share = np.asarray(ones, dtype=np.float64) / rows
    with np.errstate(divide="ignore", invalid="ignore"):
        each = share * np.log(share) + (1 - share) * np.log1p(-share)
    return -rows * np.nan_to_num(each)


NEEDED, LATEST, CELLS = 64, 4096, 16
"""Rows needed to choose a coordinate, latest rows used, and cells of its values."""
BITS, INTEGERS, MANY = 24, 4, 64
"""Bits read of an integer, integers whose bits are read, the distinct values one must exceed."""
LIKELY = 32
"""The number of coordinates examined in detail."""
WORTH = 4.0
"""The threshold of the information about the coin, in standard deviations above chance."""


def single(outcomes: Outcomes, coins: np.ndarray) -> Feature | None:
    """Choose the single most informative coordinate, among those that no built-in feature reads."""
    outcomes, coins = _latest(outcomes, LATEST), coins[-LATEST:].astype(bool)
    if len(outcomes) < NEEDED or coins.all() or not coins.any():
        return None
    found, most = "", WORTH
    for name, values in _places(outcomes, coins):
        information = _information(values, coins)
        if information > most:
            found, most = name, information
    return named(found) if found else None


def _places(outcomes: Outcomes, coins: np.ndarray) -> Iterator[tuple[str, Reals]]:
    table = table_of(outcomes)
    further = table.paths[LEAVES : LEAVES + FURTHER]
    for place, column in _promising({path: table.column(path) for path in further}, coins):
        yield f"value{place}", column
    for place, length in table.letters.items():
        for number, column in enumerate(table.letters_at(place, min(length, LETTERS))):
            yield f"value{place}{LETTER}{number}", column
    integers = 0
    for place in [path for path in table.paths if not path.endswith(CODES)][:LEAVES]:
        column = table.column(place)
        if (
            integers < INTEGERS
            and not np.isnan(bit(column, 0)).any()
            and len(np.unique(column)) > MANY
        ):
            integers += 1
            for number in range(BITS):
                yield f"bit {number} of value{place}", bit(column, number)


def _promising(columns: Mapping[str, Reals], coins: np.ndarray) -> Iterator[tuple[str, Reals]]:
    """The columns whose median or spread differs most between the coins: evaluating all of them
    would take long.
    """
    if not columns:
        return
    rows = np.stack([*columns.values()])
    known = np.isfinite(rows)
    rows = np.where(known, rows, 0.0)
    away = np.clip(rows - np.median(rows, axis=1, keepdims=True), -1e150, 1e150)
    spread = np.median(np.abs(away), axis=1, keepdims=True) + 1e-300
    away = np.clip(away, -10 * spread, 10 * spread) / spread
    apart = np.zeros(len(rows))
    for seen in (away, np.abs(away), known.astype(np.float64)):
        means = [seen[:, coins == side].mean(axis=1) for side in (False, True)]
        apart = np.maximum(apart, np.abs(means[1] - means[0]) / (seen.std(axis=1) + 1e-9))
    names = [*columns]
    for number in np.argsort(-apart)[:LIKELY]:
        yield names[number], columns[names[number]]


def _information(values: Reals, coins: np.ndarray) -> float:
    """The chi-squared statistic of values against coins, in standard deviations above its mean
    under independence.
    """
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


LEARNERS: tuple[Learner, ...] = (discriminant, tree, single)
"""The learners that the command line uses."""
