"""A number, and where it holds."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """An upper bound on epsilon at the delta asked, or the reason why there is none.

    Args:
        epsilon: In nats; infinite if nothing finite is known.
        regime: What kind of statement it is: "fixed budgets", "sum along the path", "committed schedule", "odometer" or
            "unavailable".
        holds: One sentence: when it holds, or why there is nothing.
        theorem: What gives the number.
        failure: For an odometer, the probability that the loss is larger; it replaces the delta.
    """

    epsilon: float
    regime: str
    holds: str
    theorem: str = ""
    failure: float = 0.0

    @property
    def available(self) -> bool:
        """Whether there is a finite number."""
        return math.isfinite(self.epsilon)


def unavailable(why: str) -> Statement:
    """No number."""
    return Statement(math.inf, "unavailable", why)
