"""Certified composition: both orders of every pair, composed apart, their maximum taken once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

from dpcompose.composition import free
from dpcompose.composition.container import Composition, Pairs, Part
from dpcompose.composition.elementary import Elementary, apart, largest_losses, least, wide
from dpcompose.composition.renyi import Curve
from dpcompose.errors import UnsupportedError
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.loss.base import Pair
from dpcompose.loss.product import Product
from dpcompose.loss.proved_product import ProvedProduct
from dpcompose.numerics import check
from dpcompose.numerics.bound import Bound, Certificate

MANY = 16


@runtime_checkable
class KnowsSums(Protocol):
    """A part whose kind adds up the losses of many at once, which is cheaper than to ask each for its own."""

    @classmethod
    def summed_pairs(cls, members: Sequence[tuple[Any, int]], adjacency: Adjacency) -> Pairs | None:
        """The losses of all members; None if they are to be asked one by one after all."""
        ...


@dataclass(frozen=True)
class Question:
    """A composition under one adjacency, ready to be asked for delta and epsilon.

    Args:
        above: One product a direction: their maximum bounds the truth from above, and is the truth if nothing in
            `below` differs.
        below: Products whose maximum bounds the truth from below.
        promises: Renyi-only parts, as a composition: empty for all others.
        tolerance: Wanted relative width of epsilon.
        proof: Whether to evaluate in ball arithmetic.
        alone: Whether different mechanisms attain the one pair at different epsilons.
        rounds: What each round may be turned into by an adversary who orients it; empty if the worlds stay the same.
        origin: What is asked about, all its losses and who orients them, for the elementary theorems; None to ask none.
    """

    above: tuple[Product, ...]
    below: tuple[Product, ...]
    promises: tuple[tuple[Part, int], ...]
    adjacency: Adjacency
    tolerance: float
    proof: bool
    alone: bool = False
    rounds: free.Rounds = ()
    origin: tuple[Composition, Pairs, Orientation] | None = None

    def anew(self) -> Question:
        """The same question with nothing remembered of earlier points: what is answered depends on the point alone."""
        if self.proof or all(product.single is not None for product in (*self.above, *self.below)):
            return self
        above = _anew(self.above)
        return replace(self, above=above, below=above if self.below is self.above else _anew(self.below))

    @property
    def attained(self) -> bool:
        """Whether both ends come from the same losses."""
        return self.above == self.below and not self.promises and not self.rounds

    def delta(self, epsilon: float) -> Bound:
        """The largest delta(epsilon) of the directions, at most what an elementary theorem says."""
        if math.isinf(epsilon):
            return self._at_infinity(epsilon)
        found = self._delta(epsilon)
        return self._least_delta(found, epsilon) if wide(found, self.tolerance) else found

    def _delta(self, epsilon: float) -> Bound:
        if self.promises:
            return apart(self._deltas(self.below, epsilon), self.curve.delta(epsilon))
        upper = _largest(self._deltas(self.above, epsilon))
        return upper if self.attained else apart(self._deltas(self.below, epsilon), upper)

    def _least_delta(self, found: Bound, epsilon: float) -> Bound:
        if self.proof or epsilon < 0:
            return found
        if self.elementary:
            found = least(found, self.elementary.beyond(epsilon))
            if not wide(found, self.tolerance):
                return found
        best = self.promises or self._told or self.curve.hopeless(epsilon, found.upper, attained=self._exactly)
        others = [] if best else [self.curve.delta(epsilon)]
        return least(found, [*others, *(self.elementary.delta(epsilon) if self.elementary else ())])

    def deltas(self, epsilons: Sequence[float]) -> list[Bound]:
        """`delta` at many epsilons, in any order; neighbors share the lines that they are read from."""
        order = sorted({epsilon for epsilon in epsilons if math.isfinite(epsilon)})
        if not (self.attained or self.rounds) or self.promises or len(order) < 8 or self.proof:
            return [self.delta(epsilon) for epsilon in epsilons]
        known = dict(zip(order, self._shared(self.above, order), strict=True))
        if self.rounds:
            lower = self._shared(self.below, order)
            known = {at: apart([low], known[at]) for at, low in zip(order, lower, strict=True)}
        known = {
            at: self._least_delta(bound, at) if wide(bound, self.tolerance) else bound for at, bound in known.items()
        }
        return [known[epsilon] if epsilon in known else self.delta(epsilon) for epsilon in epsilons]

    def _shared(self, products: tuple[Product, ...], order: Sequence[float]) -> list[Bound]:
        """The largest delta of the products at increasing epsilons."""
        rows = [product.deltas(order, tolerance=self.tolerance) for product in products]
        return [_largest([row[at] for row in rows]) for at in range(len(order))]

    def epsilon(self, delta: float) -> Bound:
        """The largest epsilon(delta) of the directions, at most what an elementary theorem says."""
        found = self._epsilon(delta)
        if wide(found, self.tolerance):
            return found if self.proof else self._least_epsilon(found, delta)
        exact = self.proof or (delta == 0 and not self.rounds)
        if not exact and self.origin and not self.promises and self._at_the_top(found.upper):
            return least(found, largest_losses(self.origin[1], delta, known=found.upper))
        return found

    def _least_epsilon(self, found: Bound, delta: float) -> Bound:
        others: list[Bound] = []
        if not self.promises and not self._told:
            others = self.curve.epsilons(delta, known=found.upper, attained=self._exactly)
        return least(found, [*others, *(self.elementary.epsilon(delta, known=found.upper) if self.elementary else ())])

    def _epsilon(self, delta: float) -> Bound:
        if self.promises:
            return apart(self._epsilons(self.below, delta), self.curve.epsilon(delta))
        upper = _largest(self._epsilons(self.above, delta))
        return upper if self.attained else apart(self._epsilons(self.below, delta), upper)

    def _at_the_top(self, epsilon: float) -> bool:
        """Whether the largest losses, added up exactly, may be less by a rounding."""
        for product in self.above:
            if not epsilon < 0.999999 * product.roughly_largest:
                return epsilon > 0
        return False

    @property
    def _exactly(self) -> bool:
        """Whether the losses are those of neighbors, all of them, and so are their moments."""
        return self.attained and not self.alone

    @property
    def _told(self) -> bool:
        """Whether every upper end is a closed profile, of which no moment says more."""
        single = [product.single for product in self.above]
        return all(loss is not None and (self.alone or not loss.zcdp_of_parts) for loss in single)

    def _deltas(self, products: tuple[Product, ...], epsilon: float) -> list[Bound]:
        """delta of each direction, but for those that an upper end proves to be below the first."""
        found: list[Bound] = []
        for product in products:
            if not found or not product.at_most(epsilon, found[0].lower):
                found.append(product.delta(epsilon, tolerance=self.tolerance))
        return found

    def _epsilons(self, products: tuple[Product, ...], delta: float) -> list[Bound]:
        """epsilon of each direction, but for those that an upper end proves to be below the first."""
        found = [Bound(0.0, 0.0, Certificate("delta is 1"))] if delta == 1 else []
        for product in products if delta < 1 else ():
            if not found or not product.at_most(found[0].lower, delta):
                found.append(product.epsilon(delta, tolerance=self.tolerance))
        return found

    def _at_infinity(self, epsilon: float) -> Bound:
        if epsilon < 0:
            return Bound(1.0, 1.0, Certificate("epsilon is -inf"))
        ends = [product.infinite for product in self.above] or [Bound(0.0, 0.0)]
        lost = 1.0 if self.promises else max(end.upper for end in ends)
        low = max((product.infinite.lower for product in self.below), default=0.0)
        return Bound(low, max(lost, low), Certificate("probability of an infinite loss"))

    @cached_property
    def elementary(self) -> Elementary | None:
        """The theorems that a wide answer is compared with, besides Renyi's."""
        if self.origin is None:
            return None
        composition, pairs, orientation = self.origin
        again = partial(
            question, adjacency=self.adjacency, orientation=orientation, tolerance=self.tolerance, proof=False
        )
        return Elementary(composition, None if self.promises else pairs, self.adjacency, again)

    @property
    def curve(self) -> Curve:
        """Renyi divergences, order by order."""
        return self._curve

    @cached_property
    def _curve(self) -> Curve:
        pairs = self.origin[1] if self.origin else ()
        exact = not self.alone and all(pair.attained for pair, _ in pairs)
        return Curve(self.above, self.promises, self.adjacency, self.rounds, self._samples, exact)

    def _samples(self) -> tuple[tuple[Curve, float, int], ...]:
        return self.elementary.samples if self.elementary else ()


def question(
    composition: Composition, adjacency: Adjacency, orientation: Orientation, tolerance: float, proof: bool
) -> Question:
    """The composition's losses in both directions, or the reason why there are none.

    Raises:
        DomainError: If an argument is outside its domain.
        UnsupportedError: If parts lack a statement under the adjacency (all are named), or a proof is not offered.
    """
    check.member("orientation", orientation, Orientation)
    tolerance, proof = check.open_probability("tolerance", tolerance), check.flag("proof", proof)
    pairs, promises = gathered(composition, adjacency, summed=not proof)
    single = pairs[0][0] if not promises and len(pairs) == 1 and pairs[0][1] == 1 else None
    above = _below(pairs) if single and single.either_order else _directions(pairs)
    alone = single is not None and single.tight_alone
    below = (
        above if alone or (single and single.either_order) or all(pair.attained for pair, _ in pairs) else _below(pairs)
    )
    rounds: free.Rounds = ()
    if orientation is Orientation.FREE:
        rounds = free.rounds((((pair.remove, pair.add), times) for pair, times in pairs), alone=not promises)
    if rounds:
        above, below = (free.above(rounds),), _below(pairs, turned=True)
    if proof:
        if rounds:
            raise free.unproved()
        above, below = proved(above, promises), proved(below, promises)
    origin = composition, pairs, orientation
    return Question(above, below, promises, adjacency, tolerance, proof, alone, rounds, origin)


def proved(products: tuple[Product, ...], promises: tuple[tuple[Part, int], ...]) -> tuple[Product, ...]:
    """The same products, evaluated in ball arithmetic; parts known only by a Renyi curve are refused."""
    if promises:
        raise UnsupportedError(
            "proof=True",
            f"{promises[0][0].label} is known only by its Renyi curve, which is converted in floats",
            "Ask without proof",
        )
    return tuple(ProvedProduct(product.group) for product in products)


def unproved(what: str, *, proof: bool) -> None:
    """Refuse `proof` for a quantity that is offered in floats alone."""
    if check.flag("proof", proof):
        raise UnsupportedError("proof=True", f"{what} is not offered in ball arithmetic", "Ask without proof")


def gathered(
    composition: Composition, adjacency: Adjacency, *, summed: bool = False
) -> tuple[tuple[tuple[Pair, int], ...], tuple[tuple[Part, int], ...]]:
    """All pairs, and the parts that have none but a Renyi curve; refuses with the list of parts that lack both.

    `summed`: with one pair in place of many, where a kind of part can add them up in floats.
    """
    check.member("adjacency", adjacency, Adjacency)
    parts, pairs = _summed(composition.parts, adjacency) if summed else (composition.parts, [])
    promises: list[tuple[Part, int]] = []
    refusals: list[UnsupportedError] = []
    for part, times in _ordered(parts):
        try:
            found = part.pairs(adjacency)
            if found is None and part.promise(adjacency) is None:
                raise UnsupportedError(part.label, "it states neither a privacy loss nor a Renyi curve")
        except UnsupportedError as refusal:
            refusals.append(refusal)
            continue
        if found is None:
            promises.append((part, times))
        else:
            for pair, count in found:
                pairs.append((pair, count * times))
    if len(refusals) == 1:
        raise refusals[0]
    if refusals:
        what = "; ".join(str(refusal) for refusal in refusals[:5]) + (
            "" if len(refusals) <= 5 else f"; and {len(refusals) - 5} more"
        )
        raise UnsupportedError(
            f"adjacency {adjacency.value}", f"{len(refusals)} parts have no sound statement under it: {what}"
        )
    return tuple(pairs), tuple(promises)


def _summed(
    parts: Sequence[tuple[Part, int]], adjacency: Adjacency
) -> tuple[Sequence[tuple[Part, int]], list[tuple[Pair, int]]]:
    """The parts that are to be asked for their pairs, and the pairs of all others."""
    if len(parts) < MANY:
        return parts, []
    kinds: dict[type[Part], list[tuple[Part, int]]] = defaultdict(list)
    for entry in parts:
        kinds[type(entry[0])].append(entry)
    asked: list[tuple[Part, int]] = []
    pairs: list[tuple[Pair, int]] = []
    for kind in sorted(kinds, key=lambda kind: kind.__qualname__):
        members = kinds[kind]
        one = members[0][0] if len(members) >= MANY else None
        found = one.summed_pairs(members, adjacency) if isinstance(one, KnowsSums) else None
        if found is None:
            asked.extend(members)
        else:
            pairs.extend(found)
    return asked, pairs


def _ordered(parts: Sequence[tuple[Part, int]]) -> Sequence[tuple[Part, int]]:
    """One fixed order, so that equal compositions have answers equal to the last bit."""
    if len(parts) < 2:
        return parts
    try:
        return sorted(parts, key=_by_values)
    except (AttributeError, TypeError, ValueError):  # fields that have no order, such as one left at None
        return sorted(parts, key=_by_text)


def _by_values(entry: tuple[Part, int]) -> tuple[str, tuple[object, ...]]:
    part = entry[0]
    return type(part).__qualname__, tuple(part.__dict__.values())


def _by_text(entry: tuple[Part, int]) -> tuple[str, str]:
    part = entry[0]
    return type(part).__qualname__, repr(getattr(part, "__dict__", part))


def _directions(pairs: tuple[tuple[Pair, int], ...]) -> tuple[Product, ...]:
    remove = Product(tuple((pair.remove, times) for pair, times in pairs))
    if all(pair.symmetric for pair, _ in pairs):
        return (remove,)
    return (remove, Product(tuple((pair.add, times) for pair, times in pairs), remove))


def _below(pairs: tuple[tuple[Pair, int], ...], *, turned: bool = False) -> tuple[Product, ...]:
    """Attained sub-cases: every choice that all dominating pairs make alike; one that knows none is left out.

    `turned`: with sequences of orientations too.
    """
    known = [(pair, times) for pair, times in pairs if pair.attained or pair.attained_parts]
    found: list[Product] = []
    for choice in range(max((len(pair.attained_parts) for pair, _ in known), default=0) or 1):
        chosen = tuple(
            (pair if pair.attained else pair.attained_parts[min(choice, len(pair.attained_parts) - 1)], times)
            for pair, times in known
        )
        found.extend(_directions(chosen))
        found.extend(free.below(chosen) if turned else ())
    return tuple(found)


def _anew(products: tuple[Product, ...]) -> tuple[Product, ...]:
    """The products anew, each beside the one of the other order if that was just before it."""
    found: list[Product] = []
    for at, product in enumerate(products):
        beside = found[-1] if at and product.other is products[at - 1] else None
        found.append(product.anew(beside))
    return tuple(found)


def _largest(bounds: list[Bound]) -> Bound:
    """The maximum of numbers known by their bounds."""
    leader = max(bounds, key=lambda bound: (bound.upper, bound.lower))
    return Bound(max(bound.lower for bound in bounds), leader.upper, leader.certificate)
