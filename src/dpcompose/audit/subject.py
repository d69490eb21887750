"""The subject of an audit: a mechanism that can be called, and nothing else is known of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import numpy as np

from dpcompose.audit.outcome import Outcome, Outcomes
from dpcompose.audit.pair import Pair


class Source(Protocol):
    """Whatever answers rows: a mechanism that is called, or transcripts that are played."""

    @property
    def name(self) -> str:
        """The name, which a certificate carries."""
        ...

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """An outcome for every coin, in their order: row t is about `pair[coins[t]]`."""
        ...


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit.

    Args:
        call: From a dataset to an answer.
        batch: From a dataset and n to n independent answers, as an array; independence is the user's promise.
    """

    call: Callable[[Any], Any]
    _: KW_ONLY
    batch: Callable[[Any, int], Any] | None = None

    @property
    def name(self) -> str:
        """The name of the callable."""
        return str(vars(self.call).get("__name__", type(self.call).__name__)) if vars(self.call) else repr(self.call)

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """An outcome for every coin, in their order."""
        if self.batch is None:
            rows = np.empty(len(coins), dtype=object)
            for place, coin in enumerate(coins):
                rows[place] = Outcome(self.call(pair[coin]))
            values = [row.value for row in rows]
            return np.array(values) if all(type(value) is float for value in values) else rows
        ones = int(np.count_nonzero(coins))
        zero, one = np.asarray(self.batch(pair.zero, len(coins) - ones)), np.asarray(self.batch(pair.one, ones))
        drawn = np.empty((len(coins), *zero.shape[1:]), dtype=np.result_type(zero, one))
        drawn[coins == 0], drawn[coins == 1] = zero, one
        return drawn
