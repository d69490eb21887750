"""Local privacy: randomized response, unary encoding, and the reports of many people, shuffled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import (
    NOTHING,
    Atoms,
    Chained,
    Encoding,
    Law,
    Laws,
    Pair,
    Response,
    Reversed,
    Shuffled,
    ShuffledResponses,
    TwoPoint,
    alike,
    bounded_by,
)
from dpcompose.mechanisms.base import Stated
from dpcompose.mechanisms.parameter import (
    EPSILON,
    HOLDS_UNDER,
    Parameter,
    amount,
    at_most,
    count,
    declare,
)
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, exact

FINEST, STEEPEST = 1e-9, 300.0
_CATEGORIES = count(
    10**15,
    "an integer from 2 to 10^15",
    "BlackBox(epsilon) dominates any number of them",
    least=2,
)


@dataclass(frozen=True, init=False, repr=False)
class RandomizedResponse(Stated):
    """The true category with probability e^epsilon / (e^epsilon + k - 1), else a uniformly random
    other one.

    Any mechanism that this pair dominates can be stated as one.

    >>> from dpcompose import RandomizedResponse
    >>> RandomizedResponse(1.0, categories=10).delta(epsilon=0.5).contains(0.09127281400259379)
    True

    Args:
        epsilon: The largest loss of an answer, in nats; >= 0.
        categories: The number k of categories, an integer from 2 to 10^15.
        holds_under: The adjacency under which the answer is randomized. Under replacement, a
            statement for add-remove counts as for a group of two.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [KairouzOhViswanath2015, Section 1]
    """

    stated: float = field(metadata=declare(epsilon=EPSILON))
    categories: int = field(metadata=declare(_CATEGORIES))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))
    closed_form = True

    def __init__(
        self, epsilon: float, *, categories: int = 2, holds_under: Adjacency = Adjacency.ADD_REMOVE
    ) -> None:
        self._state(categories=categories, epsilon=epsilon, holds_under=holds_under)
        if self.categories > 2 and not self.stated <= STEEPEST:
            raise DomainError(
                "epsilon",
                self.stated,
                f"at most {STEEPEST:g} for more than two categories",
                "BlackBox(epsilon) dominates it",
            )

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon as the typed decimal; 2 epsilon for a group of two."""
        return TypedAmounts(exact(self.stated) * (2 if self._doubled(adjacency) else 1))

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the law with losses +epsilon, -epsilon, and 0 for an answer that is neither of the
        two true categories.
        """
        doubled = self._doubled(adjacency)
        if (doubled or self.categories > 2) and 0 < self.stated < FINEST:
            # A lattice this fine has too many points; the two-point law with only the largest
            # losses dominates.
            return bounded_by(TwoPoint(self.stated * (2 if doubled else 1)))
        if doubled:
            return alike(Chained(self.stated, 0.0, self.categories, steps=2))
        return alike(_loss(self.stated, self.categories))


def _loss(epsilon: float, categories: int) -> Law:
    if categories == 2 or epsilon == 0:
        return TwoPoint(epsilon)
    others = (categories - 1) * math.exp(-epsilon)
    truth, other = 1 / (1 + others), math.exp(-epsilon) / (1 + others)
    rest = (categories - 2) * other
    return Atoms(
        (truth, rest, other),
        (other, rest, truth),
        (epsilon, 0.0, -epsilon),
        (epsilon, 0.0),
        16 * UNIT_ROUNDOFF,
        formula=Response(epsilon, categories),
    )


SMALLEST, LARGEST = 1e-6, 30.0
_PROBABILITY = Parameter("number", check.open_probability)
_EPSILON = amount(at_most(LARGEST, "BlackBox(epsilon) dominates it"))
_REPORTS = count(
    10**9, "an integer from 1 to 10^9", "Fewer reports cost more", response="decreasing"
)


@dataclass(frozen=True, init=False, repr=False)
class _Local(Stated):
    """A randomizer of one person's value, with a guarantee for replacing that value by any other.

    If the guarantee is stated under add-remove or zero-out, absence is one of the values, and it
    covers replacement.
    """

    def _covered(self, adjacency: Adjacency) -> None:
        """Raise an UnsupportedError for an adjacency that changes more than one value into
        another.
        """
        if adjacency not in (self.holds_under, Adjacency.REPLACE):
            raise UnsupportedError(
                repr(self),
                f"it is stated under {self.holds_under.value}, where a value is replaced, and says nothing under "
                f"{adjacency.value}",
                f"Ask with adjacency=Adjacency.REPLACE, or state it with holds_under=Adjacency.{adjacency.name} if "
                "absence is one of the values",
            )


@dataclass(frozen=True, init=False, repr=False)
class UnaryEncoding(_Local):
    """One bit for each category, reported with noise.

    The bit of the true category is reported as 1 with probability `keep`, that of every other with
    probability `flip`. Symmetric unary encoding has flip = 1 - keep, optimized unary encoding keep
    = 1/2.

    Changing the category changes two bits: the losses are +-ln(keep (1 - flip) / (flip (1 - keep)))
    and 0, attained. The members of a group send a report each.

    >>> from dpcompose import Adjacency
    >>> from dpcompose.mechanisms import UnaryEncoding
    >>> round(UnaryEncoding(0.5, flip=0.25).epsilon(delta=0.0, adjacency=Adjacency.REPLACE).upper, 12)
    1.098612288668

    Args:
        keep: The probability that the true category's bit is reported as 1, in (0, 1).
        flip: The probability that another category's bit is reported as 1, in (0, 1).
        holds_under: REPLACE; or another adjacency if absence is one of the categories.

    Raises:
        DomainError: If a parameter is outside its domain.

    Reference: [WangBlockiLiJha2017, Section 4.2]
    """

    keep: float = field(metadata=declare(_PROBABILITY))
    flip: float = field(metadata=declare(_PROBABILITY))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))

    def __init__(
        self, keep: float, *, flip: float, holds_under: Adjacency = Adjacency.REPLACE
    ) -> None:
        self._state(keep=keep, flip=flip, holds_under=holds_under)
        high, low = max(self.keep, self.flip), min(self.keep, self.flip)
        if not low * (1 - high) >= 1e-300:
            domain = (
                "a probability whose product with that of no 1 in the other bit is at least 1e-300"
            )
            raise DomainError("flip" if low == self.flip else "keep", low, domain)

    @property
    def collected(self) -> str:
        """Return "apart": each person sends a report."""
        return "apart"

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the law with three atoms: the two bits differ in one of two ways, or are equal,
        which has loss 0.
        """
        self._covered(adjacency)
        keep, flip = max(self.keep, self.flip), min(self.keep, self.flip)
        more, less = keep * (1 - flip), flip * (1 - keep)
        if keep == flip:
            return alike(TwoPoint(0.0))
        loss = math.log1p((keep - flip) / less)
        masses = more, keep * flip + (1 - keep) * (1 - flip), less
        law = Encoding(keep, flip)
        atoms = Atoms(
            masses,
            masses[::-1],
            (loss, 0.0, -loss),
            (loss, 0.0),
            16 * UNIT_ROUNDOFF,
            formula=law,
        )
        return alike(atoms)


@dataclass(frozen=True, init=False, repr=False)
class ShuffledReports(_Local):
    """The reports of epsilon-private local randomizers, one for each person, in random order.

    Upper ends follow from the stronger clones of the other reports: they hold for any randomizer
    that is the same for all people, and for any values of the others; the proof is in
    docs/theorems.md. Lower ends are those of binary randomized response. The number of reports is
    public. Randomizers chosen from earlier reports of the same shuffle are not covered; one shuffle
    after another is.

    >>> from dpcompose import Adjacency
    >>> from dpcompose.mechanisms import ShuffledReports
    >>> ShuffledReports(2.0, reports=50).delta(epsilon=1.0, adjacency=Adjacency.REPLACE).contains(0.0054852222013)
    True

    Args:
        epsilon: The epsilon of each report in nats, in [0, 30].
        reports: The number of shuffled reports, from 1 to 10^9.
        holds_under: REPLACE; or another adjacency if absence is one of the values, and is reported
            too.

    Raises:
        DomainError: If a parameter is outside its domain.

    Reference: [FeldmanMcMillanTalwar2023, Theorem 3.2]
    """

    stated: float = field(metadata=declare(epsilon=_EPSILON))
    reports: int = field(metadata=declare(_REPORTS))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))

    def __init__(
        self, epsilon: float, *, reports: int, holds_under: Adjacency = Adjacency.REPLACE
    ) -> None:
        self._state(epsilon=epsilon, reports=reports, holds_under=holds_under)

    @property
    def collected(self) -> str:
        """Return "shuffled": each person sends a report, and nobody knows which."""
        return "shuffled"

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon as the typed decimal: at delta 0, shuffling does not amplify."""
        self._covered(adjacency)
        return TypedAmounts(exact(self.stated))

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the law of the clones, with that of binary randomized response as attained."""
        self._covered(adjacency)
        if self.reports == 1 or self.stated < SMALLEST:
            loss: Law = TwoPoint(self.stated)
        else:
            loss = Shuffled(self.stated, self.reports)
        below = ShuffledResponses(self.stated, self.reports)
        inside = NOTHING if self.stated < SMALLEST else Pair(below, Reversed(below))
        return bounded_by(loss, inside)
