"""Views of Definition 3.7 as outcomes: one coin a transcript, under a claim about the whole interaction.

Where the laws of the family are known, the last number of a row is the view's privacy loss, the best feature of all.
Reference: [DworkRoth2014, Definition 3.7]
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from dpcompose.audit.claim import Pair
from dpcompose.audit.feature import Feature, features_of
from dpcompose.audit.outcome import Outcomes
from dpcompose.experiment import Experiment, World


@dataclass(frozen=True)
class Transcripts:
    """The views of an adversary, who plays against one world for as many rounds as the experiment has.

    Args:
        experiment: The adversary, its family, and the number of rounds.
        seed: For the noise; None: from the system. The audit's coins have another.
    """

    experiment: Experiment
    _: KW_ONLY
    seed: int | None = None
    _rng: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        seed = int.from_bytes(os.urandom(16), "little") if self.seed is None else self.seed
        object.__setattr__(self, "_rng", np.random.default_rng(seed))

    @property
    def name(self) -> str:
        """The adversary and the number of rounds."""
        return f"{self.experiment.adversary!r}, {self.experiment.rounds} rounds"

    @property
    def pair(self) -> Pair:
        """The two worlds: the adversary names the databases."""
        return Pair(World.ZERO, World.ONE)

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """A view for every coin: the answers, and the loss."""
        rows = np.empty((len(coins), self.experiment.rounds + 1))
        for coin in (0, 1):
            asked = np.flatnonzero(coins == coin)
            if len(asked):
                views = self.experiment.play(pair[coin], transcripts=len(asked), rng=self._rng)
                rows[asked] = np.column_stack([views.answers.T, views.loss])
        return rows

    def features(self, outcomes: Outcomes) -> tuple[Feature, ...]:
        """The loss, and what any view shows."""
        last = outcomes.shape[1] - 1
        views = features_of(outcomes[:, :last])
        loss = Feature(
            "loss", lambda rows: rows[:, last], weight=sum(each.weight for each in views)
        )
        return (loss, *(replace(each, score=_of_answers(each, last)) for each in views))


@dataclass(frozen=True)
class Interaction:
    """A whole interaction with foreign mechanisms: any callable that plays all rounds and returns the view.

    Args:
        play: From a world's dataset to a view, a row of numbers.
        rounds: The number of answers in a view; shorter views are filled with NaN.
    """

    play: Callable[[Any], Any]
    rounds: int

    @property
    def name(self) -> str:
        """The callable and the number of rounds."""
        return f"{self.play!r}, {self.rounds} rounds"

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """A view for every coin, in their order."""
        rows = np.full((len(coins), self.rounds), np.nan)
        for row, coin in zip(rows, coins, strict=True):
            view = np.asarray(self.play(pair[coin]), dtype=np.float64)
            row[: len(view)] = view
        return rows

    def features(self, outcomes: Outcomes) -> tuple[Feature, ...]:
        """The features of any view."""
        return features_of(outcomes)


def _of_answers(feature: Feature, last: int) -> Callable[[Outcomes], Any]:
    return lambda rows: feature.score(rows[:, :last])
