"""Features: numbers that are read from outcomes, and on whose values the auditor bets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcompose.audit.outcome import Outcomes, Reals


@dataclass(frozen=True)
class Feature:
    """A number that is read from an outcome.

    Args:
        name: The name, which a certificate carries.
        score: From n outcomes to n numbers, each from its own outcome alone; NaN is a value like any other.
    """

    name: str
    score: Callable[[Outcomes], Reals]


class Learner(Protocol):
    """A maker of features from past rows. It sees the coins of these rows; they are never bet on by its feature."""

    @property
    def name(self) -> str:
        """The name."""
        ...

    def fit(self, outcomes: Outcomes, coins: np.ndarray) -> Feature | None:
        """The feature that these rows teach; None if they teach nothing."""
        ...


def features_of(outcomes: Outcomes) -> tuple[Feature, ...]:
    """The features of outcomes that look like these, the first ones that were drawn; coins play no part."""
    if outcomes.dtype.kind not in "fiub":
        return ()
    if outcomes.ndim == 1:
        return (Feature("value", _value),)
    columns = tuple(Feature(f"value[{place}]", _column(place)) for place in range(outcomes.shape[1]))
    return (*columns, Feature("sum", _sum), Feature("row", _row))


def _value(outcomes: Outcomes) -> Reals:
    return outcomes.astype(np.float64)


def _sum(outcomes: Outcomes) -> Reals:
    return outcomes.astype(np.float64).sum(axis=1)


def _column(place: int) -> Callable[[Outcomes], Reals]:
    return lambda outcomes: outcomes[:, place].astype(np.float64)


def _row(outcomes: Outcomes) -> Reals:
    """A number for the whole row: equal rows have equal numbers, and others, but for chance, do not."""
    bits = np.ascontiguousarray(outcomes.astype(np.float64)).view(np.uint64)
    mixed = np.zeros(len(bits), dtype=np.uint64)
    for place in range(bits.shape[1]):
        mixed = (mixed ^ bits[:, place]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(12)).astype(np.float64)
