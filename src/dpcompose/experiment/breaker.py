"""The adversary who breaks the natural filter: stop when the exact composition so far would exceed the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpcompose.experiment.channel import Reals
from dpcompose.experiment.query import Holds, Query
from dpcompose.experiment.round import Round
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.mechanism import BlackBox, RandomizedResponse


@dataclass(frozen=True)
class NaturalFilterBreaker:
    """Randomized response with epsilon 1; if it speaks for Bob, another with 0.6115, if not, a (0, 0.05) mechanism.

    Either way the two compose to (1.5, 0.05) exactly, so that a filter which stops before the composition of what was
    asked exceeds that budget lets both through. The whole has delta(1.5) = 0.0634470710684997560374.

    Reference: [TranKoskelaRaisaHonkela2026]
    """

    budget: ClassVar[ApproximateDP] = ApproximateDP(1.5, delta=0.05)
    opening: ClassVar[Query] = Query(RandomizedResponse(1.0), ("Bob",), (), Holds("Bob"))
    continuations: ClassVar[tuple[Query, Query]] = (
        Query(BlackBox(0.0, delta=0.05), ("Bob",), (), Holds("Bob")),
        Query(RandomizedResponse(0.611490968801848951918), ("Bob",), (), Holds("Bob")),
    )

    @property
    def queries(self) -> tuple[Query, ...]:
        """All that it asks."""
        return (self.opening, *self.continuations)

    def first(self, rng: np.random.Generator | None) -> None:
        """It keeps nothing."""

    def choose(self, state: None, answers: Reals) -> tuple[None, Round | None]:
        if len(answers) == 0:
            return None, Round.of(self.opening)
        if len(answers) > 1:
            return None, None
        return None, Round(self.continuations, (answers[0] == 1.0).astype(np.intp))
