"""What every group theorem says of one composition, side by side at one delta."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcompose.composition.compare import Comparison
from dpcompose.composition.container import Composition
from dpcompose.composition.numerical import Question, question
from dpcompose.guarantee import group
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.numerics.bound import Bound

Theorem = Callable[[ApproximateDP], ApproximateDP]
STEPS, WIDENING = 60, 1.04


def compare(
    composition: Composition, tight: Bound, *, size: int, delta: float, adjacency: Adjacency, orientation: Orientation,
    tolerance: float,
) -> tuple[Comparison, ...]:  # fmt: skip
    """The certified epsilon of the group, and what Theorem 2.2 makes of the whole composition's profile.

    Theorem 2.2 takes one (epsilon, delta(epsilon)) of one person and gives (k epsilon, ...) for k: the best is taken.

    Args:
        composition: What is composed.
        tight: The certified epsilon of the group at `delta`.
        size: The number of people.
        delta: In [0, 1].
        adjacency: What one person's data may change.
        orientation: Whether the same world holds the record in every round.
        tolerance: Wanted relative width of the answers for one person.

    Reference: [DworkRoth2014, Theorem 2.2], [Vadhan2017, Lemma 2.2]
    """
    asked = question(composition, adjacency, orientation, tolerance, False)
    theorems: tuple[tuple[str, str, Theorem], ...] = (
        ("geometric sum", "[Vadhan2017, Lemma 2.2]", lambda promise: group.chained(promise, size=size)),
        ("the book's bound", "[DworkRoth2014, Theorem 2.2]", lambda promise: group.book(promise, size=size)),
    )
    note = "; ".join((tight.certificate.method, *tight.certificate.notes))
    reference = "[DongRothSu2022, Theorem 2.14]"
    rows = [Comparison("certified group", reference, tight.upper, "certified", tight.lower, note)]
    for name, reference, theorem in theorems:
        found = _best(asked, theorem, delta)
        if found < math.inf:
            note = "from one (epsilon, delta) of one person under the whole composition"
            rows.append(Comparison(name, reference, found, "upper bound", None, note))
    return tuple(sorted(rows, key=lambda row: row.epsilon))


def _best(asked: Question, theorem: Theorem, delta: float) -> float:
    """The smallest k epsilon found with a delta within the target; any that is within it is sound."""

    def stated(epsilon: float) -> ApproximateDP:
        return theorem(ApproximateDP(epsilon, delta=asked.delta(epsilon).upper))

    # The delta of the group need not fall with epsilon: the first good point of a walk, then a bisection before it.
    start = max(asked.epsilon(delta).upper, 1e-6)
    if not start < math.inf:
        return math.inf
    ends = [product.extremes.upper for product in asked.above]
    walk = sorted([start * WIDENING**step for step in range(STEPS)] + [end for end in ends if start < end < math.inf])
    low = 0.0
    for high in walk:
        if stated(high).delta <= delta:
            break
        low = high
    else:
        return math.inf
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        if not low < middle < high or high - low < 1e-9 * high:
            break
        low, high = (low, middle) if stated(middle).delta <= delta else (middle, high)
    return stated(high).epsilon
