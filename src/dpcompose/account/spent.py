"""A number on the charges about a person, as far as one holds."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcompose.account.tree import ExposureStatement, Standing, Tree, standing, unavailable
from dpcompose.adaptive import Mileage, Odometer
from dpcompose.composition import Composition, compose
from dpcompose.values import Adjacency, Orientation, rounded_down, rounded_up

Charged = Mapping[str, Standing]
MOST_ALTERNATIVES = 64
BETWEEN = "; if no odometer was chosen from answers in another top-level scope"
NATURAL = "composing charges that were chosen along the way tightly, after the fact, is unsound (the natural filter)"


def together(trees: Sequence[Tree], *, delta: float) -> ExposureStatement:
    """The statement for a person in all of these trees."""
    nodes = [node for tree in trees for node in tree.all()]
    if not any(node.charges for node in nodes):
        return ExposureStatement(0.0, "sum along the path", "nothing was charged")
    # That a partition parts people depends on the adjacency, too.
    adjacencies = {node.budget.adjacency for node in nodes if node.charges or node.parts_people}
    if len(adjacencies) > 1:
        return unavailable("the charges are priced under different adjacencies")
    charged = standing(trees)
    pure = _largest_pure(trees, charged)
    if pure is not None:
        return ExposureStatement(
            rounded_up(pure), "sum along the path", "along every path: all charges are pure", "sum"
        )
    committed = _committed(trees, delta, next(iter(adjacencies)) or Adjacency.ADD_REMOVE)
    if committed is not None:
        return committed
    return _odometers(trees, charged)


# Pure charges


def _largest_pure(trees: Sequence[Tree], charged: Charged) -> Fraction | None:
    sums = [_pure(tree, charged) for tree in trees]
    known = [each for each in sums if each is not None]
    return sum(known, Fraction(0)) if len(known) == len(sums) else None


def _pure(tree: Tree, charged: Charged) -> Fraction | None:
    """The sum of the epsilons, of a partition the largest child's; None if a charge is not pure."""
    own = [charged[entry.hash].pure for entry in tree.charges]
    below = [_pure(child, charged) for child in tree.children]
    known = [each for each in (*own, *below) if each is not None]
    if len(known) < len(own) + len(below):
        return None
    if tree.parts_people:
        return max(known, default=Fraction(0))
    return sum(known, Fraction(0))


# Committed schedules


def _committed(
    trees: Sequence[Tree], delta: float, adjacency: Adjacency
) -> ExposureStatement | None:
    """The composition of what was charged, if all of it stood on schedules committed before the first answer.

    Before the first one about the person in any of the scopes: a schedule that is committed after an answer elsewhere
    was chosen from it. Between two top-level scopes nothing orders the entries, so that only one may have charges.
    """
    charged = [tree for tree in trees if tree.first < math.inf]
    scheduled = [node for tree in trees for node in tree.all() if node.budget.schedule]
    if len(charged) > 1 or any(node not in charged[0].all() for node in scheduled):
        return None
    if any(node.budget.scope.opened > charged[0].first for node in scheduled):
        return None
    alternatives = _joined([_scheduled(tree) for tree in trees])
    if alternatives is None:
        return None

    def epsilon(each: Composition) -> float:
        # Nobody recorded that the same world held the record in every round.
        return each.epsilon(delta=delta, adjacency=adjacency, orientation=Orientation.FREE).upper

    done, whole = (
        max(epsilon(each) for each in alternative)
        for alternative in zip(*alternatives, strict=True)
    )
    finished = all(len(node.charges) == node.budget.rounds for tree in trees for node in tree.all())
    holds = (
        "the schedules were committed before the first answer, and are finished"
        if finished
        else "the schedules were committed before the first answer; for the rounds so far, if their number was not"
        f" chosen from the answers; for the whole schedules, always: epsilon {whole!r}"
    )
    return ExposureStatement(
        done, "committed schedule", holds, "composition of the schedules, certified"
    )


Alternative = tuple[Composition, Composition]
"""The charges so far, and the whole schedules."""


def _scheduled(tree: Tree) -> list[Alternative] | None:
    """The compositions that a person may have met; None if a charge was not on a schedule."""
    own = _own_schedule(tree)
    below = [_scheduled(child) for child in tree.children]
    if own is None:
        return None
    if tree.parts_people and below:
        known = [each for each in below if each is not None]
        return [choice for each in known for choice in each] if len(known) == len(below) else None
    return _joined([[own], *below])


def _own_schedule(tree: Tree) -> Alternative | None:
    if not tree.charges and not tree.budget.schedule:
        return compose(), compose()
    texts = [entry.description.get("mechanism") for entry in tree.charges]
    if any(
        text is None or text != tree.budget.scope.committed(position)
        for position, text in enumerate(texts)
    ):
        return None
    done = compose(*[mechanism * times for mechanism, times in tree.budget.committed(len(texts))])
    whole = compose(
        *[mechanism * times for mechanism, times in tree.budget.committed(tree.budget.rounds)]
    )
    return done, whole


def _joined(parts: Sequence[list[Alternative] | None]) -> list[Alternative] | None:
    """Every choice of one alternative from each part, composed; None if a part has none, or there are too many."""
    found: list[Alternative] = [(compose(), compose())]
    for part in parts:
        if part is None or len(found) * len(part) > MOST_ALTERNATIVES:
            return None
        found = [(done + more, whole + all) for done, whole in found for more, all in part]
    return found


# Odometers


@dataclass(frozen=True)
class _Covered:
    """The mileage that each odometer must show, and the pure epsilons that none covers."""

    mileage: dict[str, tuple[Odometer, Mileage]]
    rest: Fraction = Fraction(0)


def _odometers(trees: Sequence[Tree], charged: Charged) -> ExposureStatement:
    covered: dict[str, tuple[Odometer, Mileage]] = {}
    rest = Fraction(0)
    for tree in trees:
        for node in tree.all():
            if node.charges and node.odometer is not None and node.odometer[2] > tree.first:
                return unavailable(
                    f"the odometer of {node.odometer[0]!r} was fixed after the first answer, and {NATURAL}"
                )
        found = _covered(tree, charged)
        if isinstance(found, str):
            return unavailable(found)
        covered |= found.mileage
        rest += found.rest
    total, failure = rounded_up(rest), 0.0
    for path, (odometer, mileage) in covered.items():
        if not mileage.failure <= Fraction(odometer.mechanism_delta):
            return unavailable(
                f"the odometer of {path!r} kept {odometer.mechanism_delta!r} for deltas; more was charged"
            )
        reading = odometer.read(mileage)
        total = math.nextafter(total + reading.epsilon, math.inf)
        failure = (
            math.nextafter(failure + reading.failure, math.inf) if reading.failure else failure
        )
    return ExposureStatement(
        total,
        "odometer",
        "a bound on the realized loss at all times at once, but with the stated probability, fixed at each odometer's"
        f" opening; not an (epsilon, delta) guarantee{BETWEEN if len(covered) > 1 < len(trees) else ''}",
        "; ".join(sorted({odometer.boundary.kind for odometer, _ in covered.values()})),
        min(failure, 1.0),
    )


def _covered(tree: Tree, charged: Charged) -> _Covered | str:
    known: list[_Covered] = []
    for part in (_own_cover(tree, charged), *(_covered(child, charged) for child in tree.children)):
        if isinstance(part, str):
            return part
        known.append(part)
    merge = _largest if tree.parts_people else operator.add
    merged: dict[str, tuple[Odometer, Mileage]] = {}
    for part in known:
        for path, (odometer, mileage) in part.mileage.items():
            merged[path] = (
                odometer,
                merge(merged[path][1], mileage) if path in merged else mileage,
            )
    rests = [part.rest for part in known]
    return _Covered(merged, max(rests) if tree.parts_people else sum(rests, Fraction(0)))


def _own_cover(tree: Tree, charged: Charged) -> _Covered | str:
    """The charges of a scope itself: under its odometer, or, if they are pure, by themselves."""
    total, rest = Mileage(), Fraction(0)
    for entry in tree.charges:
        paid = [rounded_down(entry.cost["delta"].fraction)] if "delta" in entry.cost else []
        stands, deltas = charged[entry.hash], [None, *paid]
        mileage = None if tree.odometer is None else stands.mileage(tree.odometer[1], deltas=deltas)
        if mileage is not None:
            total += mileage
        elif (pure := stands.pure) is not None:
            rest += pure
        else:
            return f"no odometer was fixed for the charges of {tree.budget.path!r}, and {NATURAL}"
    return _Covered(
        {} if tree.odometer is None else {tree.odometer[0]: (tree.odometer[1], total)}, rest
    )


def _largest(one: Mileage, other: Mileage) -> Mileage:
    """A mileage that neither exceeds."""
    both = None if one.epsilon is None or other.epsilon is None else max(one.epsilon, other.epsilon)
    return Mileage(
        max(one.rho, other.rho), max(one.drift, other.drift), max(one.failure, other.failure), both
    )
