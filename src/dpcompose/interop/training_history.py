"""Epsilon over the steps of a training run: frozen values, which a picture draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcompose.account import CHOSEN
from dpcompose.composition import Composable, Composition, compose
from dpcompose.values import Adjacency, Bound


@dataclass(frozen=True)
class TrainingHistory:
    """Epsilon after so many steps, at several places.

    Args:
        steps: How many steps were charged at each place, increasing.
        epsilon: The certified epsilon of them.
        delta: At which delta.
        target: The most that may be spent, in nats.
        holds: When these numbers hold.
    """

    steps: tuple[int, ...]
    epsilon: tuple[Bound, ...]
    delta: float
    target: float
    holds: str = CHOSEN


def history_of(
    charges: Sequence[tuple[Composable, int]],
    *,
    target: float,
    delta: float,
    points: int,
    adjacency: Adjacency,
) -> TrainingHistory:
    """Epsilon of the first steps, at evenly spaced places of which the last is the end."""
    whole = sum(times for _, times in charges)
    places = sorted({whole * place // points for place in range(1, points + 1)} - {0})
    epsilon = [first(charges, place).epsilon(delta=delta, adjacency=adjacency) for place in places]
    return TrainingHistory(tuple(places), tuple(epsilon), delta, target)


def first(charges: Sequence[tuple[Composable, int]], steps: int) -> Composition:
    """The first so many steps, as one composition."""
    taken: list[Composable] = []
    for mechanism, times in charges:
        if now := min(times, steps):
            taken.append(mechanism * now)
        steps -= now
    return compose(*taken)
