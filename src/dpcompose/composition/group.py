"""Group privacy: the privacy losses of several people who are changed at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, localcontext
from typing import ClassVar, NoReturn

from dpcompose import check
from dpcompose.composition.comparison import Comparison, group_theorems
from dpcompose.composition.losses import (
    Composed,
    GroupLoss,
    GroupLosses,
    Pairs,
    Part,
    Parts,
    gathered,
)
from dpcompose.composition.question import Asking, PrivacyQuestion, ask, directed, proved
from dpcompose.contour import Lattice
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import IDENTITY, ConcentratedDP, PowerCurve, RenyiPromise, power_mixture
from dpcompose.loss import (
    NODES,
    AtomicLoss,
    EnclosedPower,
    GaussianLoss,
    Loss,
    Pair,
    Product,
    atoms_of,
    curves_of,
    grouped,
    losses_on_a_line,
)
from dpcompose.mechanisms import Askable
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, up

# The losses of a group of `size` people, derived from those of one person.
#
# A path of neighboring data sets leads from one data set to the other, one group member at a time.
# Along it the power function of a part is iterated (`guarantee.power_function`); the group's loss
# has the iterated power function. For a composition it is the composition of its parts' group
# losses, which is never more than the iterate of the composition's own power function, and often
# much less.
#
# If removing and adding have different losses: some members may be only in the first data set
# (removed), the others only in the second (added). Both orders of the path, all removals first or
# all additions first, bound the power, so at every level the smaller one does. The truth is the
# largest over the number of removed members.
#
# On a Poisson sample the number of members in it is binomial. With r of them against none, P is the
# mixture of the part's outputs with j = 0, ..., r members. Its power is at most sum_j C(r, j) q^j
# (1 - q)^(r - j) phi_j, where phi_j is that of a group of j without sampling, whatever else is in
# the sample (power functions are concave). That is less than iterating the sampled part's own power
# function, and is attained if one family of tests is optimal for every j.


FEW_NODES = 512
MOST_ATOMS = 4096
LARGEST_SAMPLED = 64


def group_losses(pairs: Pairs, size: int) -> GroupLosses:
    """Return the losses of a group of `size` people from the losses of one person.

    They are in closed form where one exists; else they follow from iterated power functions.
    """
    return tuple((_closed(pair, size) or _iterated(pair, size), times) for pair, times in pairs)


def sampled_group_losses(
    parts: Parts,
    rate: float,
    size: int,
    adjacency: Adjacency,
    *,
    own: Callable[[], Pairs],
    joint: Callable[[], Pairs],
) -> GroupLosses:
    """Return the losses of a group under a composition on a Poisson sample.

    Args:
        parts: The mechanisms that run on the sample, with their counts.
        rate: The probability that a record is in the sample.
        size: The number of people in the group.
        adjacency: The adjacency of one person.
        own: Returns the losses of one person on the sample.
        joint: Returns the losses of one person at the rate at which any member of the group is in
            the sample, or `own`. They are attained, because the output may depend only on whether
            any member is; not if people send reports of their own.

    Raises:
        UnsupportedError: If the group is larger than 64.
    """
    noise = _gaussian(parts)
    if noise is not None:
        replaced = adjacency is Adjacency.REPLACE
        found = losses_on_a_line(noise, size, rate=rate, replaced=replaced)
        if found is not None:
            losses, attained = found
            if not replaced or _opposite(parts):
                return ((_on_a_line(losses, attained), 1),)
            alone = _attained(own()) if sum(times for _, times in parts) == 1 else ()
            return ((_on_a_line(losses, False, *alone), 1),)
    _require_few(size)
    pairs = None if adjacency is Adjacency.REPLACE else _pairs(parts, adjacency)
    if pairs is None:
        attained_parts = _attained(joint())
        return tuple(
            (_above(_iterated(pair, size), attained_parts), times) for pair, times in own()
        )
    single = pairs[0][0] if len(pairs) == 1 and pairs[0][1] == 1 else None
    found = losses_on_a_line(single.remove, size, rate=rate) if single is not None else None
    if single is not None and found is not None:
        losses, attained = found
        return ((_on_a_line(losses, attained and single.attained, *_attained(own())), 1),)
    curves = [_together(pairs, number) for number in range(1, size + 1)]
    relative_error = max(curve.relative_error for curve in curves)
    whole = [_mixed([curve.above for curve in curves], number, rate) for number in range(size + 1)]
    removals = [curve.thinned(MOST_ATOMS, above=True) for curve in whole]
    losses = [
        _loss(_between(removals[n], removals[size - n].mirrored), 2 * relative_error)
        for n in range(size + 1)
    ]
    under = [curve.below for curve in curves if curve.below is not None]
    if single is not None and single.attained and len(under) == size:
        attained = _mixed(under, size, rate)
        attained_parts = (
            Pair(
                _loss(attained, relative_error, above=False),
                _loss(attained.mirrored, relative_error, above=False),
            ),
        )
    else:
        attained_parts = _attained(joint())
    exact = all(curve.exact for curve in curves)
    return (
        (
            GroupLoss(
                Pair(losses[size], losses[0], False, attained_parts), tuple(losses[1:size]), exact
            ),
            1,
        ),
    )


def _require_few(size: int) -> None:
    """Raise an UnsupportedError for a group on a Poisson sample with more than 64 members."""
    if not size <= LARGEST_SAMPLED:
        reason = (
            f"a group on a Poisson sample is followed member by member, up to {LARGEST_SAMPLED}"
        )
        raise UnsupportedError(
            f"a group of {size}", reason, "Ask for fewer, or without .sampled: an upper bound"
        )


def _gaussian(parts: Parts) -> GaussianLoss | None:
    """Return the one Gaussian loss equivalent to all parts when a record is added or removed; None
    if there is none.
    """
    pairs = _pairs(parts, Adjacency.ADD_REMOVE)
    if pairs is None or not all(pair.attained and pair.symmetric for pair, _ in pairs):
        return None
    loss = Product(tuple((pair.remove, times) for pair, times in pairs)).single
    return loss if isinstance(loss, GaussianLoss) else None


def _opposite(parts: Parts) -> bool:
    """Return whether a replaced record may move each noise from one end to the opposite one: twice
    as far as a removed one.
    """
    near, far = (_pairs(parts, each) or () for each in (Adjacency.ADD_REMOVE, Adjacency.REPLACE))
    losses = [(one.remove, two.remove) for (one, _), (two, _) in zip(near, far, strict=False)]
    return 0 < len(near) == len(far) and all(
        isinstance(one, GaussianLoss) and isinstance(two, GaussianLoss) and two.mu >= 2 * one.mu
        for one, two in losses
    )


def _on_a_line(losses: Sequence[Loss], attained: bool, *attained_parts: Pair) -> GroupLoss:
    """Return the group losses from those with 0, 1, ..., all members removed and the others added."""
    added, *mixed, removed = losses
    parts = () if attained else attained_parts
    return GroupLoss(Pair(removed, added, attained, parts), tuple(mixed), True)


def joint_rate(rate: float, size: int) -> float:
    """Return a lower bound on the probability that any of `size` records is in the sample, 1 - (1 -
    rate)^size.
    """
    return -math.expm1(size * math.log1p(-rate)) * (1 - 16 * UNIT_ROUNDOFF)


def _closed(pair: Pair, size: int) -> GroupLoss | None:
    """Return the closed-form losses of a group; None if the losses of one person have no such
    form.
    """
    if size == 1:
        return GroupLoss(pair, (), True)
    known = losses_on_a_line(pair.remove, size)
    if known is not None:
        losses, attained = known
        return _on_a_line(losses, attained and pair.attained, *_attained(((pair, 1),)))
    found = grouped(pair.remove, size) if pair.symmetric else None
    if found is not None and found.attained and not pair.attained:
        found = Pair(found.remove, found.add, False, pair.attained_parts)
    return None if found is None else GroupLoss(found, (found.remove,) * (size - 1), True)


def _reports(pairs: Pairs, size: int) -> GroupLosses:
    """Return the losses of a group of people who send a report each: they add up.

    Raises:
        UnsupportedError: If removing and adding differ, and the group has more than 64 members.
    """
    found: GroupLosses = ()
    for pair, times in pairs:
        if pair.symmetric:
            found += ((GroupLoss(pair, (pair.remove,) * (size - 1), True), times * size),)
            continue
        _require_few(size)
        for member in range(size):
            mixed = (pair.remove if member < removed else pair.add for removed in range(1, size))
            found += ((GroupLoss(pair, tuple(mixed), True), times),)
    return found


def _iterated(pair: Pair, size: int) -> GroupLoss:
    """Return group losses from the iterated trade-off function of a pair: the supremum over all
    mechanisms it dominates.
    """
    remove, add = _curves(pair)
    exact = remove.exact and add.exact
    all_removed, all_added = remove.repeated(size), add.repeated(size)
    relative_error, lattice = (
        all_removed.relative_error + all_added.relative_error,
        _lattice(pair.remove, size),
    )
    first = _loss(all_removed.above, relative_error, lattice)
    second = first if pair.symmetric else _loss(all_added.above, relative_error)
    mixed = (first,) * (size - 1)
    if not pair.symmetric:
        chains = (
            _between(remove.above.repeated(n), add.above.repeated(size - n)) for n in range(1, size)
        )
        mixed = tuple(_loss(chain, relative_error) for chain in chains)
    if not pair.attained or all_removed.below is None or all_added.below is None:
        # A change of one member alone is attained.
        return GroupLoss(
            Pair(first, second, False, (pair,) if pair.attained else pair.attained_parts),
            mixed,
            exact,
        )
    low = _loss(all_removed.below, relative_error, lattice, above=False)
    attained = Pair(
        low, low if pair.symmetric else _loss(all_added.below, relative_error, above=False)
    )
    same = attained.remove == first and attained.add == second
    return GroupLoss(attained if same else Pair(first, second, False, (attained,)), mixed, exact)


def _curves(pair: Pair) -> tuple[EnclosedPower, EnclosedPower]:
    """Return power functions that enclose that of the pair, in both orders."""
    remove, add = Product(((pair.remove, 1),)), Product(((pair.add, 1),))
    one = curves_of(remove, add)
    return one, one if pair.symmetric else curves_of(add, remove)


def _together(pairs: Pairs, size: int) -> EnclosedPower:
    """Return the power function of a group of `size`, all members removed, under a composition of
    these losses.
    """
    if len(pairs) == 1 and pairs[0][1] == 1 and _closed(pairs[0][0], size) is None:
        return _curves(pairs[0][0])[0].repeated(size)
    found = group_losses(pairs, size)
    remove = Product(tuple((each.pair.remove, times) for each, times in found))
    add = Product(tuple((each.pair.add, times) for each, times in found))
    return curves_of(remove, add, nodes=NODES if remove.single is not None else FEW_NODES)


def _pairs(parts: Parts, adjacency: Adjacency) -> Pairs | None:
    """Return the losses of all parts with their counts; None if a part has none."""
    found = [(part.pairs(adjacency), times) for part, times in parts]
    pairs = tuple((pair, count * times) for some, times in found for pair, count in some or ())
    return pairs if all(some is not None for some, _ in found) else None


def _mixed(curves: Sequence[PowerCurve], number: int, rate: float) -> PowerCurve:
    """Return the power function of `number` members present against none, each in the sample with
    probability `rate`.

    Args:
        curves: The power functions of 1, 2, 3, ... members in the sample.
        number: The number of members.
        rate: The sampling rate.
    """
    with localcontext(Context(prec=60)):
        q = Decimal(rate)
        weights = [math.comb(number, j) * q**j * (1 - q) ** (number - j) for j in range(number + 1)]
    return power_mixture(weights, [IDENTITY, *curves[:number]])


def _between(remove: PowerCurve, add: PowerCurve) -> PowerCurve:
    """Return the power function of a group with removed and added members: the smaller one of
    removals first and additions first.
    """
    if IDENTITY in (remove, add):
        return remove.after(add)
    return remove.after(add).least(add.after(remove))


def _loss(
    curve: PowerCurve,
    relative_error: float = 0.0,
    lattice: Lattice | None = None,
    *,
    above: bool = True,
) -> AtomicLoss:
    """Return atoms whose power function is above `curve` (`above`) or below it.

    Args:
        curve: The piecewise linear power function.
        relative_error: The relative error of its slopes.
        lattice: The lattice of the losses, if they lie on one.
        above: Whether the atoms dominate.
    """
    return atoms_of(
        curve.thinned(MOST_ATOMS, above=above), relative_error=relative_error, lattice=lattice
    )


def _attained(pairs: Pairs) -> tuple[Pair, ...]:
    """Return the attained losses among those of the parts."""
    return tuple(
        each for pair, _ in pairs for each in ((pair,) if pair.attained else pair.attained_parts)
    )


def _above(loss: GroupLoss, attained_parts: tuple[Pair, ...]) -> GroupLoss:
    """Return the group loss as dominating only, with `attained_parts` as the attained losses below
    it.
    """
    return replace(loss, pair=Pair(loss.pair.remove, loss.pair.add, False, attained_parts))


def _lattice(loss: Loss, size: int) -> Lattice | None:
    """Return the lattice of the losses of a group of `size`, if those of one person lie on one;
    else None.
    """
    lattice = loss.lattice if isinstance(loss, AtomicLoss) else None
    return None if lattice is None else Lattice(lattice.spacing, lattice.offset * size)


LARGEST = 10**5


class Uncomposable:
    """The privacy of a whole that cannot be composed further: operators raise an UnsupportedError."""

    instead_of_composing: ClassVar[str]
    """The remedy that an error names."""

    def _refused(self, *_: object) -> NoReturn:
        reason = "it cannot be composed further"
        name = f"{type(self).__name__.lower()}(...)"
        raise UnsupportedError(name, reason, self.instead_of_composing)

    __add__ = __radd__ = __mul__ = __rmul__ = _refused


@dataclass(frozen=True)
class Group(Uncomposable, Askable):
    """The privacy of a group of `size` people under a composition: all of them are in one data set
    and absent from the other, or some in each.

    The bounds are those of the composition of the parts' group losses: never larger, and for
    several parts much smaller, than those of the iterated trade-off function of the whole. Where no
    closed form is known, both ends come from piecewise linear power functions, and agree to about
    four digits. `compare` shows the certified epsilon, the geometric sum and the bound of
    [DworkRoth2014, Theorem 2.2]. Build it with `.group(size)`.

    Args:
        composition: The composition.
        size: The number of people.
    """

    composition: Composed
    size: int
    instead_of_composing: ClassVar[str] = "Compose and sample first: (a.sampled(q) + b).group(size)"
    _parts: Parts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = self.composition.parts
        if self.size > 1:
            parts = tuple((Grouped(part, self.size), times) for part, times in parts)
        object.__setattr__(self, "_parts", parts)

    def _question(self, asking: Asking) -> PrivacyQuestion:
        losses = gathered(self._parts, asking.adjacency, summed=not asking.proof)
        known = self._losses(asking.adjacency)
        alternatives = tuple(
            ((each.pair.remove, each.pair.add, *each.mixed), times) for each, times in known
        )
        question = directed(losses, asking, alternatives if self.size > 1 else None)
        if question.rounds:
            return replace(question, compared=False)
        mixed = self._mixtures(known)
        if asking.proof:
            if not all(each.exact for each, _ in known):
                reason = (
                    "a group without a closed form is enclosed from values of a profile in floats"
                )
                raise UnsupportedError("proof=True", reason, "Ask without proof")
            mixed = proved(mixed, losses)
        return replace(question, dominating=(*question.dominating, *mixed), compared=False)

    def _theorems(self, question: PrivacyQuestion, delta: float) -> tuple[Comparison, ...]:
        one = ask(self.composition.parts, question.asking)
        return group_theorems(question, one, size=self.size, delta=delta)

    def _losses(self, adjacency: Adjacency) -> GroupLosses:
        """Return the group losses of all parts that have losses, with their counts."""
        found: GroupLosses = ()
        for part, times in self._parts:
            if isinstance(part, Grouped):
                found += tuple(
                    (each, count * times) for each, count in part.losses(adjacency) or ()
                )
        return found

    def _mixtures(self, losses: GroupLosses) -> tuple[Product, ...]:
        """Return a product of losses for each number of removed members, the others added; none if
        removal and addition cost the same.
        """
        if all(each.symmetric for each, _ in losses):
            return ()
        return tuple(
            Product(tuple((each.mixed[removed - 1], times) for each, times in losses))
            for removed in range(1, self.size)
        )


@dataclass(frozen=True)
class Grouped(Part):
    """A mechanism whose losses are those of a group of people.

    Args:
        part: The mechanism.
        size: The number of people.
    """

    part: Part
    size: int
    _cache: dict[Adjacency, GroupLosses | None] = field(
        default_factory=dict[Adjacency, "GroupLosses | None"], init=False, repr=False, compare=False
    )
    """A cache of the losses for each adjacency; computing them may take seconds."""

    @property
    def label(self) -> str:
        """The name of this part in reports."""
        return f"{self.part.label}, for a group of {self.size}"

    def losses(self, adjacency: Adjacency) -> GroupLosses | None:
        """Return the losses of the group, for every number of removed members; None if the part
        only states a Renyi curve.
        """
        if adjacency not in self._cache:
            self.part.require_any_size(self.label)
            self.part.require_group(self.size, adjacency)
            pairs = self.part.pairs(adjacency) if self.part.collected == "apart" else None
            found = (
                _reports(pairs, self.size)
                if pairs
                else self.part.group_losses(self.size, adjacency)
            )
            if found is None:
                pairs = self.part.pairs(adjacency)
                found = None if pairs is None else group_losses(pairs, self.size)
            self._cache[adjacency] = found
        return self._cache[adjacency]

    def pairs(self, adjacency: Adjacency) -> Pairs | None:
        """Return the losses when all members are removed, or all added; None if the part only
        states a Renyi curve.
        """
        found = self.losses(adjacency)
        return None if found is None else tuple((each.pair, times) for each, times in found)

    def promise(self, adjacency: Adjacency) -> RenyiPromise | None:
        """Return the part's concentrated guarantee with rho times size^2; None if the part has
        losses.

        Raises:
            UnsupportedError: If the part states a Renyi curve without a rho, or a delta above 0.
        """
        stated = self.part.promise(adjacency)
        if stated is None:
            return None
        if stated.rho is None:
            remedy = "Ask a Concentrated of the rho that bounds the curve, if there is one"
            raise UnsupportedError(
                self.label, "no group guarantee is offered for a Renyi curve", remedy
            )
        if stated.delta > 0:
            reason = "no group guarantee is offered for zero-concentrated privacy with delta > 0"
            raise UnsupportedError(self.label, reason)
        return ConcentratedDP(
            up(stated.rho * self.size**2 * (1 + 2 * UNIT_ROUNDOFF)) if stated.rho else 0.0
        )


def group(composition: Composed, size: int) -> Group:
    """Return the question about the privacy of a group of `size` people under a composition.

    >>> from dpcompose import Gaussian
    >>> (Gaussian(10.0) * 4).group(5).delta(epsilon=1.0).contains(0.12693673750664394)
    True

    Args:
        composition: The composition.
        size: The number of people, an integer from 1 to 10^5.

    Raises:
        DomainError: If the size is outside its domain.

    Reference: [DongRothSu2022, Theorem 2.14]
    """
    number = check.count("size", size, least=1)
    if not number <= LARGEST:
        raise DomainError("size", size, f"an integer from 1 to {LARGEST}")
    return Group(composition, number)
