"""The tails of a binomial distribution: one mass in decimals, the others by their ratios."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import numpy as np

from dpcompose.errors import UnsupportedError
from dpcompose.numerics.elementary import U
from dpcompose.values import Bound, around, log_factorial

LONGEST = 2**22


def at_least(least: int, *, times: int, rate: float) -> tuple[Bound, Bound]:
    """P[Bin(times, rate) >= least] and P[Bin(times, rate) < least], certified.

    The tail that does not contain the mode is summed; the other is its complement.

    Raises:
        UnsupportedError: If the tail has more than four million terms that matter.
    """
    if least <= 0 or least > times or rate == 1:
        sure = least <= times and (least <= 0 or rate == 1)
        one, none = Bound(1.0, 1.0), Bound(0.0, 0.0)
        return (one, none) if sure else (none, one)
    upper = least > (times + 1) * rate
    tail = _tail(least if upper else least - 1, times, rate, 1 if upper else -1)
    other = Bound(max(1 - tail.upper, 0.0) * (1 - 2 * U), min((1 - tail.lower) * (1 + 2 * U), 1.0))
    return (tail, other) if upper else (other, tail)


def _tail(first: int, times: int, rate: float, side: int) -> Bound:
    """The sum of the masses from `first` up (`side` 1) or down (`side` -1), away from the mode."""
    with localcontext(Context(prec=60)):
        q = Decimal(rate)
        log = log_factorial(times) - log_factorial(first) - log_factorial(times - first)
        log += first * q.ln() + (times - first) * (1 - q).ln()
        mass = float(log.exp())
    odds = rate / (1 - rate)
    total, last, at, count = 1.0, 1.0, first, 4096
    while True:
        steps = np.arange(count, dtype=np.float64)
        if side > 0:
            ratios = np.maximum(times - at - steps, 0.0) / (at + 1 + steps) * odds
        else:
            ratios = np.maximum(at - steps, 0.0) / (times - at + 1 + steps) / odds
        terms = last * np.cumprod(ratios)
        total, last, at, ratio = (
            total + math.fsum(terms),
            float(terms[-1]),
            at + side * count,
            float(ratios[-1]),
        )
        omitted = last * ratio / (1 - ratio) if ratio < 1 else math.inf
        if omitted <= 1e-18 * total:
            break
        if not abs(at - first) < LONGEST:
            raise UnsupportedError(
                f"the tail of a binomial distribution with {times} trials",
                "its sum has more than four million terms that are not negligible",
                "Take fewer trials",
            )
    # Each mass errs by a few units of roundoff for every ratio before it; most of the sum comes
    # from the first terms.
    error = U * (16 + 8 * min(abs(at - first), times))
    return around(mass * total, relative=error + 1e-17, absolute=omitted * mass + 1e-300)
