"""The patterns of steps in which one record takes part in a run, and the costliest pattern."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.mechanisms.base import set_fields
from dpcompose.numerics import Reals, U

MOST_CELLS = 10**7
PRICES = 5
Pattern = tuple[int, ...]


@dataclass(frozen=True, init=False, repr=False)
class Participation:
    """The patterns of steps i_1 < i_2 < ... in which one record may take part.

    There are two conventions for the distance. `separation=b` means i_(j+1) - i_j >= b, as matrix
    libraries count; `strictly_between=b` means that at least b steps lie between two that follow
    each other, which is a separation of b + 1.

    >>> from dpcompose.mechanisms import Participation
    >>> Participation.separated(4, most=3) == Participation.separated(strictly_between=3, most=3)
    True

    Args:
        separation: The smallest distance of two steps of a record; >= 1.
        most: The largest number of steps of a record; >= 1. None: as many as the separation allows.
        fixed: Whether the steps of a record are i, i + separation, ...: the same slot of every
            epoch.
        strictly_between: An alternative to `separation`: the smallest number of steps between two
            steps of a record; >= 0.

    Raises:
        DomainError: If a number is outside its domain, or both distances are given.
    """

    separation: int
    most: int | None
    fixed: bool

    def __init__(
        self,
        *,
        separation: int | None = None,
        most: int | None = None,
        fixed: bool = False,
        strictly_between: int | None = None,
    ) -> None:
        if separation is not None and strictly_between is not None:
            given = (separation, strictly_between)
            raise DomainError(
                "separation, strictly_between", given, "one of the two conventions, not both"
            )
        if strictly_between is not None:
            separation = check.count("strictly_between", strictly_between) + 1
        separation = 1 if separation is None else check.count("separation", separation, least=1)
        most = None if most is None else check.count("most", most, least=1)
        set_fields(self, separation=separation, most=most, fixed=check.flag("fixed", fixed))

    def __repr__(self) -> str:
        given = {
            "separation": (self.separation, 1),
            "most": (self.most, None),
            "fixed": (self.fixed, False),
        }
        stated = [f"{name}={value!r}" for name, (value, usual) in given.items() if value != usual]
        return f"Participation({', '.join(stated)})"

    @classmethod
    def single(cls) -> Participation:
        """Return the patterns of one step."""
        return cls(most=1)

    @classmethod
    def epochs(cls, most: int, *, steps_per_epoch: int) -> Participation:
        """Return the patterns of one fixed slot in each of `most` epochs of `steps_per_epoch`
        steps, which make up the run.
        """
        return cls(separation=steps_per_epoch, most=check.count("most", most, least=1), fixed=True)

    @classmethod
    def separated(
        cls, by: int | None = None, *, most: int | None = None, strictly_between: int | None = None
    ) -> Participation:
        """Return the patterns of at most `most` steps at a distance of at least `by`, or with
        `strictly_between` steps between.
        """
        return cls(separation=by, most=most, strictly_between=strictly_between)

    def times(self, steps: int) -> int:
        """Return the largest number of steps of a record in a run of `steps` steps.

        Raises:
            DomainError: If the slots are fixed and the epochs do not add up to `steps`.
        """
        fitting = -(-steps // self.separation)
        if self.fixed and self.most is not None and self.most != fitting:
            domain = f"epochs that make up the {steps} steps: {fitting} of {self.separation} steps"
            raise DomainError(
                "participation", self, domain, "Name the separation without fixed=True"
            )
        return fitting if self.most is None else min(self.most, fitting)


def chained(weights: Reals, gap: int, most: int) -> tuple[float, Pattern]:
    """Return the largest sum of weights over patterns, and a pattern that attains it.

    Args:
        weights: The weight of each step, >= 0.
        gap: The smallest distance of two steps of a pattern.
        most: The largest number of steps of a pattern.
    """
    steps = len(weights)
    best = np.zeros((steps + 1, most + 1))
    for at in range(steps - 1, -1, -1):
        best[at] = best[at + 1]
        best[at, 1:] = np.maximum(best[at, 1:], weights[at] + best[min(at + gap, steps), :-1])
    pattern: list[int] = []
    at, left = 0, most
    while at < steps and left:
        if best[at, left] > best[at + 1, left]:
            pattern.append(at)
            at, left = at + gap, left - 1
        else:
            at += 1
    return float(best[0, most]), tuple(pattern)


def enumerated(gram: Reals, gap: int, most: int) -> tuple[float, Pattern] | None:
    """Return the largest sum of `gram` over the pairs of a pattern, and such a pattern; None if the
    search is too costly.

    The search is by branch and bound. A branch stores its sum, and for each step the sum of the
    pairs it would add. It is cut where the `most` largest additions, each with an upper bound of
    later ones, do not exceed the best sum so far.

    Args:
        gram: The matrix of products, >= 0, symmetric.
        gap: The smallest distance of two steps of a pattern.
        most: The largest number of steps of a pattern.
    """
    steps, diagonal, later = len(gram), np.diag(gram), np.arange(len(gram))
    rows = through(gram, gap, most)
    best, pattern, cells = -1.0, (), 0
    stack = [(later[:, None], diagonal.copy(), gram)]
    while stack:
        chosen, sums, added = stack.pop()
        size = chosen.shape[1]
        top = int(np.argmax(sums))
        if sums[top] > best:
            best, pattern = float(sums[top]), tuple(chosen[top].tolist())
        if size == most:
            continue
        allowed = later >= chosen[:, -1:] + gap
        if size + 1 < most:
            gains = np.where(allowed, 2 * added + rows, 0.0)
            largest = -np.partition(-gains, min(most - size, steps) - 1, axis=1)[:, : most - size]
            allowed &= ((sums + largest.sum(axis=1)) * (1 + 64 * steps * U) > best)[:, None]
        whole = np.where(allowed, sums[:, None] + (2 * added + diagonal), -1.0)
        if size + 1 == most:
            branch, step = np.unravel_index(int(np.argmax(whole)), whole.shape)
            if whole[branch, step] > best:
                best, pattern = float(whole[branch, step]), (*chosen[branch].tolist(), int(step))
            continue
        branches, next_steps = np.nonzero(allowed)
        cells += len(branches) * steps
        if cells > MOST_CELLS:
            return None
        for first in range(0, len(branches), 4096):
            old, new = branches[first : first + 4096], next_steps[first : first + 4096]
            stack.append(
                (np.column_stack((chosen[old], new)), whole[old, new], added[old] + gram[new])
            )
    return best, pattern


def through(gram: Reals, gap: int, most: int) -> Reals:
    """Return for each step i an upper bound on the sum of gram_ij over j in any pattern through i.

    The limit on the number of steps is relaxed by a Lagrange multiplier for each i: for every
    multiplier >= 0, the largest sum of the entries reduced by it, plus the multiplier for each
    allowed step, is an upper bound. It is smallest where the numbers of steps on both sides of i
    add up to the limit.

    Args:
        gram: The matrix of products, >= 0, symmetric.
        gap: The smallest distance of two steps of a pattern.
        most: The largest number of steps of a pattern.
    """
    steps, others = len(gram), most - 1
    index = np.arange(steps)
    apart = np.where(np.abs(index[:, None] - index) >= gap, gram, 0.0)
    if others <= 1:
        return np.diag(gram) + others * apart.max(axis=1)

    def relaxed(price: Reals) -> tuple[Reals, Reals]:
        best, count = np.zeros((steps + 1, steps)), np.zeros((steps + 1, steps))
        for at in range(steps - 1, -1, -1):
            beyond = min(at + gap, steps)
            taken = apart[at] - price + best[beyond]
            better = taken > best[at + 1]
            best[at] = np.where(better, taken, best[at + 1])
            count[at] = np.where(better, 1 + count[beyond], count[at + 1])
        return best[0], count[0]

    low = np.zeros(steps)
    low_value, low_count = relaxed(low)
    found = low_value.copy()
    high = apart.max(axis=1)
    high_value, high_count = np.zeros(steps), np.zeros(steps)
    found = np.minimum(found, high * others)
    for _ in range(PRICES):
        if np.all(low_count <= others):
            break
        gap_of_counts = np.maximum(low_count - high_count, 1.0)
        price = (low_value + low_count * low - high_value - high_count * high) / gap_of_counts
        price = np.clip(price, low, high)
        value, count = relaxed(price)
        error = 8 * steps * U * (value + 2 * steps * price)
        found = np.where(
            low_count > others, np.minimum(found, value + price * others + error), found
        )
        many = count > others
        low, low_value, low_count = (
            np.where(many, new, old)
            for new, old in ((price, low), (value, low_value), (count, low_count))
        )
        high, high_value, high_count = (
            np.where(many, old, new)
            for new, old in ((price, high), (value, high_value), (count, high_count))
        )
    return np.diag(gram) + found
