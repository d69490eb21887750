"""Adaptive interactions as outcomes: the coin selects a world, and the outcome is the adversary's
view (Definition 3.7).

The claim is about the whole interaction. Since the mechanisms of the family are known, the last
number of each outcome is the view's privacy loss, the most informative feature.

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
    """Views of an adversary who plays all rounds of an experiment against one of two worlds.

    Args:
        experiment: The adversary, the family of mechanisms, and the number of rounds.
        seed: Seed of the mechanisms' noise; None for a random one. It is independent of the audit's
            coins.
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
        """The two worlds of the experiment; the adversary chooses the databases."""
        return Pair(World.ZERO, World.ONE)

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """One view per coin: the answers of all rounds, followed by the privacy loss."""
        rows = np.empty((len(coins), self.experiment.rounds + 1))
        for coin in (0, 1):
            asked = np.flatnonzero(coins == coin)
            if len(asked):
                views = self.experiment.play(pair[coin], transcripts=len(asked), rng=self._rng)
                rows[asked] = np.column_stack([views.answers.T, views.loss])
        return rows

    def features(self, outcomes: Outcomes) -> tuple[Feature, ...]:
        """The privacy loss, and the built-in features of the answers."""
        last = outcomes.shape[1] - 1
        views = features_of(outcomes[:, :last])
        loss = Feature(
            "loss", lambda rows: rows[:, last], weight=sum(each.weight for each in views)
        )
        return (loss, *(replace(each, score=_of_answers(each, last)) for each in views))


def _of_answers(feature: Feature, last: int) -> Callable[[Outcomes], Any]:
    return lambda rows: feature.score(rows[:, :last])
