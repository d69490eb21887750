"""A wide answer from the parts: what some of them alone attain, and what all cost if a few are not sampled.

One part may spoil the line of all, most often one that costs almost nothing.

Lower end: to forget the answers of some parts is post-processing. Whatever mechanisms and neighbors some parts attain,
under any adjacency and orientation, the whole attains no less with them: beside them run any mechanisms that the other
parts allow. So neither delta(epsilon) nor epsilon(delta) of the whole is below that of some of its parts.

Upper end: without its sample a part dominates itself (`elementary`), and what dominates every round dominates the
composition: so it does with any of the samples left out.

Reference: [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcompose.composition.elementary import (
    Elementary,
    apart,
    hopeless,
    least,
    wide,
    without_sampling,
)
from dpcompose.composition.losses import gathered
from dpcompose.composition.part import Parts
from dpcompose.values import Bound

_MOST_BLOCKS = 8
"""More parts than these are taken in blocks of about one size."""
_APART = 2
"""From this ratio of the ends on, samples are left out of answers that are wide by nature too."""


@dataclass(frozen=True)
class PartByPart:
    """One number that is asked about a composition.

    Args:
        theorems: The elementary theorems of the composition.
        number: The epsilon, or the delta.
        tolerance: Wanted relative width of epsilon.
        for_delta: Whether `number` is an epsilon.
    """

    theorems: Elementary
    number: float
    tolerance: float
    for_delta: bool

    def narrower(self, bound: Bound, most: float) -> Bound:
        """The wide answer, or what is better at either end.

        Args:
            bound: The answer.
            most: An upper end of what the attained losses of all parts say; infinite if they are those of the answer.
        """
        # What one mechanism attains alone may be more than it does in company: then attained losses do not say it all.
        pairs = self.theorems.losses.pairs
        alone = any(times == 1 and (pair.tight_alone or pair.either_order) for pair, times in pairs)
        most = bound.upper if alone else min(bound.upper, most)
        lower = self._attained(bound.lower, most)
        if bound.lower < lower <= bound.upper:  # what contradicts the upper end is left out
            bound = apart([Bound(lower, math.inf)], bound)
        return (
            self._unsampled(bound)
            if most >= bound.upper or bound.upper > _APART * bound.lower
            else bound
        )

    def _attained(self, lower: float, most: float) -> float:
        """The largest lower end of some blocks: of each alone, then of the best with one after the other."""
        blocks = (
            self._blocks()
            if len(self.theorems.losses.parts) > 1 and self._apart(lower, most)
            else ()
        )
        best = blocks[0] if blocks else ()
        for block in blocks:
            if (more := self._lower(block, lower)) > lower:
                lower, best = more, block
        for block in blocks:
            if not self._apart(lower, most) or len(best) + len(block) >= len(
                self.theorems.losses.parts
            ):
                break
            if block[0] not in best and (more := self._lower(best + block, lower)) > lower:
                lower, best = more, best + block
        return lower

    def _apart(self, lower: float, upper: float) -> bool:
        return wide(Bound(min(lower, upper), upper), self.tolerance)

    def _lower(self, parts: Parts, least: float) -> float:
        question = self.theorems.ask(gathered(parts, self.theorems.losses.adjacency, summed=True))
        return question.attained_end(self.number, least, for_delta=self.for_delta)

    def _blocks(self) -> list[Parts]:
        """The parts one by one, the largest first; if they are many, blocks of parts of about one size."""
        parts = self.theorems.losses.parts
        curves = [
            (self.theorems.ask(losses).curve, times)
            for losses, times in self.theorems.losses.one_by_one()
        ]
        sizes = [times * curve.divergence(2.0) for curve, times in curves]
        ordered = [
            parts[at]
            for at in sorted(range(len(parts)), key=lambda at: (-sizes[at], repr(parts[at][0])))
        ]
        count = min(len(parts), _MOST_BLOCKS)
        return [
            tuple(ordered[len(parts) * at // count : len(parts) * (at + 1) // count])
            for at in range(count)
        ]

    def _unsampled(self, bound: Bound) -> Bound:
        """The answer without the samples of the parts that cost least without them: of so few that a line is good.

        All samples together are left out by another theorem.
        """
        inners = self.theorems.unsampled
        rows = zip(inners, self.theorems.samples, strict=True)
        costs = [
            math.inf if inner is None else times * curve.divergence(2.0)
            for inner, (curve, _, times) in rows
        ]
        order = sorted(range(len(costs)), key=costs.__getitem__)
        low, high = 0, sum(inner is not None for inner in inners)
        if high < 2:
            return bound
        whole = self.theorems.ask(self.theorems.losses)
        while high - low > 1 and wide(bound, self.tolerance):
            middle = (low + high) // 2
            chosen = order[:middle]
            question = self.theorems.without_samples(
                [each if at in chosen else None for at, each in enumerate(inners)]
            )
            point = (self.number, bound.upper) if self.for_delta else (bound.upper, self.number)
            # Where large losses are rare, moments are so far above delta that they tell nothing of any question.
            if hopeless(question, *point) and not hopeless(whole, *point):
                high = middle
                continue
            answer = question.uncompared(self.number, for_delta=self.for_delta)
            low, high = (middle, high) if wide(answer, self.tolerance) else (low, middle)
            bound = least(bound, [without_sampling(answer)])
        return bound
