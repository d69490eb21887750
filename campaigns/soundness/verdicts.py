"""The verdict of ball arithmetic on an answer: inside, outside, open if its ball is too wide to
decide, or vacuous.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb

from campaigns.soundness import subject
from dpcompose import Bound

Truth = Callable[[float], arb]
WORST = ("inside", "vacuous", "open", "outside")


def delta_verdict(
    answer: Bound, epsilon: float, parts: subject.Parts, truth: Truth | None = None
) -> tuple[str, str]:
    """Whether the truth at `epsilon` is inside the answer; vacuous is one between 0 and 1."""
    value = truth(epsilon) if truth else subject.delta(epsilon, parts)
    shown = f"truth {value.str(20)}"
    loose = subject.dominating(parts)
    if value < answer.lower or (value > answer.upper and not loose):
        return "outside", shown
    proved = (answer.lower <= 0 or answer.lower <= value) and (
        loose or answer.upper >= 1 or value <= answer.upper
    )
    empty = answer.lower <= 0 and answer.upper >= 1 and value < 0.5
    return ("vacuous" if empty else "inside" if proved else "open"), shown


def epsilon_verdict(
    answer: Bound, delta: float, parts: subject.Parts, truth: Truth | None = None
) -> tuple[str, str]:
    """lower <= epsilon(delta) where delta(lower) >= delta, and epsilon(delta) <= upper where delta(upper) <= delta."""
    goal, verdicts, shown = arb(delta), ["inside"], []
    for end, sign in ((answer.lower, 1), (answer.upper, -1)):
        if (sign > 0 and end <= 0) or (sign < 0 and subject.dominating(parts)):
            continue
        if end == math.inf:
            outside = subject.infinity(parts)
            verdicts.append(
                "inside"
                if outside > goal
                else "outside"
                if sign > 0
                else "vacuous"
                if outside < goal
                else "open"
            )
            shown.append(f"delta(inf) = {outside.str(20)}")
            continue
        value = truth(end) if truth else subject.delta(end, parts)
        shown.append(f"delta({end!r}) = {value.str(20)}")
        verdicts.append(
            "inside"
            if sign * (value - goal) >= 0
            else "outside"
            if sign * (value - goal) < 0
            else "open"
        )
    return max(verdicts, key=WORST.index), "truth " + ", ".join(shown)
