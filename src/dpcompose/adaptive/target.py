"""What the constructors `for_target` share: checked targets, and the largest parameter that stays within them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpcompose.adaptive.amount import LARGEST, Number, nonnegative, probability
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.numerics.exact import exact, rounded_down

_CLOSE = 1.0 + 1e-13
SMALLEST = 1e-50
"""Below it no parameter is looked for."""


@dataclass(frozen=True)
class Target:
    """A target, and what of its delta is kept for the charges.

    Args:
        epsilon: Exactly as given.
        delta: Exactly as given.
        mechanism_delta: Exactly as given; at most `delta`.
    """

    epsilon: float | Fraction
    delta: float | Fraction
    mechanism_delta: float | Fraction

    @classmethod
    def of(cls, epsilon: Number, delta: Number, mechanism_delta: Number) -> Target:
        """The checked target."""
        total, kept = probability("delta", delta), probability("mechanism_delta", mechanism_delta)
        if not exact(kept) <= exact(total):
            raise DomainError("mechanism_delta", mechanism_delta, f"at most the total delta {delta!r}")
        return cls(nonnegative("epsilon", epsilon), total, kept)

    @property
    def slack(self) -> Fraction:
        """What the theorem may use."""
        return exact(self.delta) - exact(self.mechanism_delta)

    @property
    def floats(self) -> tuple[float, float]:
        """epsilon and delta, rounded down."""
        return rounded_down(exact(self.epsilon)), rounded_down(exact(self.delta))

    def without_charged_delta(self, kind: str) -> None:
        """Refuse a filter that charges no delta where some is kept for charges."""
        if not self.mechanism_delta == 0:
            raise UnsupportedError(
                f"{kind}.for_target with mechanism_delta = {self.mechanism_delta!r}",
                "this filter charges no delta, and nothing could spend what is kept",
                "Leave mechanism_delta out, or take a ConcentratedFilter",
            )


def largest(within: Callable[[float], bool], *, guess: float) -> float:
    """About the largest x > 0 that is proved to be within the target, of a claim that holds below it; 0 if none is."""
    low = high = min(max(guess, SMALLEST), LARGEST)
    while not within(low):
        low, high = low / 2.0, low
        if low < SMALLEST:
            return 0.0
    while high == low or within(high):
        low, high = high, high * 2.0
        if high > LARGEST:
            return low
    while high > low * _CLOSE:
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (middle, high) if within(middle) else (low, middle)
    return low
