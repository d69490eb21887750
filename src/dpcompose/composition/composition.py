"""Compositions: multisets of mechanisms, built with `compose`, `+`, `*` and `.sampled`, and the
questions about their privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, Unpack, cast

from dpcompose import check, mechanisms, notebook
from dpcompose.attached import supply
from dpcompose.composition.comparison import Comparison, theorems
from dpcompose.composition.group import (
    Group,
    Uncomposable,
    group,
    joint_rate,
    sampled_group_losses,
)
from dpcompose.composition.losses import (
    MOST_TIMES,
    GroupLosses,
    Pairs,
    Part,
    checked_times,
    composed_on_sample,
    gathered,
    merged,
)
from dpcompose.composition.profile import LossAbove, Profile, Risk, loss_above, risk
from dpcompose.composition.question import Asking, Options, PrivacyQuestion, ask, asks
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, TypedAmounts
from dpcompose.mechanisms import Unsampled
from dpcompose.pictured import Plot
from dpcompose.values import (
    Adjacency,
    AdjacencyName,
    Bound,
    larger_reading,
)

# Methods of every composition, for one person or a group


@supply(mechanisms.Askable)
class Askable(ABC):
    """A mechanism, composition or group whose certified privacy can be computed.

    Numbers are converted to doubles: a fraction becomes the nearest double. `total.plot()` draws
    the privacy profile, `total.plot.steps(delta=1e-6)` epsilon over the steps of a composition; see
    the gallery.
    """

    plot = Plot("privacy_profile", "trade_off", "steps")

    @abstractmethod
    def _question(self, asking: Asking) -> PrivacyQuestion:
        """Return the question about this object's losses under the options `asking`."""

    @asks("delta")
    def epsilon(self, *, delta: float, **options: Unpack[Options]) -> Bound:
        """Return certified bounds, in nats, on the smallest epsilon >= 0 such that this is
        (epsilon, delta)-differentially private.

        lower <= epsilon <= upper holds with every rounding error included; `upper` is infinite if
        no finite epsilon is certified.

        >>> from dpcompose import Gaussian
        >>> (Gaussian(10.0) * 100).epsilon(delta=1e-5).contains(4.377178095681225)
        True

        Args:
            delta: In [0, 1], read as a double.
            options: Adjacency, orientation, tolerance and proof, as in `Options`.

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If no sound losses of a mechanism are known under the adjacency or
                orientation.

        Reference: [ZhuDongWang2022, Theorem 10]
        """
        return self._question(Asking.read(options)).epsilon(check.probability("delta", delta))

    @asks("epsilon")
    def delta(self, *, epsilon: float, **options: Unpack[Options]) -> Bound:
        """Return certified bounds on the smallest delta such that this is (epsilon,
        delta)-differentially private.

        >>> from dpcompose import BlackBox
        >>> (BlackBox(0.1) * 10).delta(epsilon=0.5).contains(0.009929626917388853)
        True

        Args:
            epsilon: In nats; any real number, infinite ones included, read as a double.
            options: Adjacency, orientation, tolerance and proof, as in `Options`.

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If no sound losses of a mechanism are known under the adjacency or
                orientation.

        Reference: [ZhuDongWang2022, Theorem 10]
        """
        return self._question(Asking.read(options)).delta(check.real("epsilon", epsilon))

    @asks()
    def profile(self, **options: Unpack[Options]) -> Profile:
        """Return the privacy profile delta(epsilon): a function of arrays of epsilons, whose
        `.tradeoff(alpha)` is the trade-off function.
        """
        return Profile(self._question(Asking.read(options)))

    @asks("epsilon")
    def loss_above(self, *, epsilon: float, **options: Unpack[Options]) -> LossAbove:
        """Return certified bounds on P[loss > epsilon] when a record is removed and when it is
        added.

        delta(epsilon) is at most that probability: (epsilon, P[loss > epsilon]) is a valid but
        loose guarantee.

        >>> from dpcompose import Gaussian
        >>> Gaussian(1.0).loss_above(epsilon=1.0).removed.contains(0.3085375387259869)
        True

        Args:
            epsilon: In nats; any real number.
            options: Adjacency, orientation, tolerance and proof, as in `Options`.

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If the losses are not attained by one pair of neighbors.

        Reference: [DworkRoth2014, Section 3.5.1]
        """
        asked = self._question(Asking.read(options))
        return loss_above(asked, check.real("epsilon", epsilon))

    @asks()
    def risk(
        self,
        *,
        prior: float = 0.5,
        false_positive_rate: float = 1e-3,
        **options: Unpack[Options],
    ) -> Risk:
        """Return certified bounds on the best attack on one person by someone who sees all answers.

        They bound the true positive rate at `false_positive_rate`, the advantage, the Bayes error
        at `prior` and the probability of a reconstruction that is guessed right with probability
        `prior` before the answers.
        """
        curve = self.profile(**options)
        return risk(curve, prior=prior, false_positive_rate=false_positive_rate)

    @asks("delta")
    def compare(self, *, delta: float, **options: Unpack[Options]) -> tuple[Comparison, ...]:
        """Return the epsilon at `delta` by every theorem that gives a finite one, smallest first;
        the certified row is always included.

        >>> from dpcompose import BlackBox
        >>> [row.name for row in (BlackBox(0.1) * 100).compare(delta=1e-6)][:2]
        ['certified composition', 'optimal composition of the promises']

        Args:
            delta: In [0, 1].
            options: Adjacency, orientation, tolerance and proof, as in `Options`.

        Raises:
            DomainError: If an argument is outside its domain.
            UnsupportedError: If no sound losses of a mechanism are known under the adjacency or
                orientation.
        """
        delta = check.probability("delta", delta)
        return self._theorems(self._question(Asking.read(options, unproved="a comparison")), delta)

    def _theorems(self, question: PrivacyQuestion, delta: float) -> tuple[Comparison, ...]:
        """Return the rows of `compare` for a question about this object at `delta`."""
        return theorems(question, delta)


MOST_TYPED = 64
"""The largest number of parts with exact decimal sums; more have too large denominators."""
_REMEDY = "Build it with compose, + and *"


@supply(mechanisms.Composable)
class Composable(Askable):
    """A mechanism or composition: it can be composed with others, run on a sample, and its privacy
    computed.
    """

    @abstractmethod
    def _counted(self) -> tuple[tuple[ComposablePart, int], ...]:
        """Return the parts with their counts: those of a composition, or this object once."""

    @abstractmethod
    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """Return the exact privacy amounts computed from the parameters as typed decimals, or None
        if none are stated.
        """

    @abstractmethod
    def costlier(self) -> Composable:
        """Return this object with each parameter as its double or its typed decimal, whichever
        costs more privacy.
        """

    def __add__(self, other: Composable) -> Composition:
        if not isinstance(other, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return _sum(self, other)

    def __radd__(self, other: object) -> Composition:
        """Support `sum(...)`, which starts with 0."""
        return compose(self) if other == 0 and not isinstance(other, bool) else NotImplemented

    @abstractmethod
    def __mul__(self, times: int) -> Composition:
        """Return the composition of `times` runs."""

    def __rmul__(self, times: int) -> Composition:
        return self * times

    def sampled(self, rate: float) -> Composable:
        """Return this object run on one Poisson sample: each record is in it independently with
        probability `rate`.

        Shuffled batches are not Poisson samples: see `ShuffledEpochs`, and `FixedSizeSample` for
        batches drawn without replacement.

        Args:
            rate: The sampling probability, in (0, 1].

        Raises:
            DomainError: If the rate is outside its domain.
        """
        return sampled(compose(self), rate)

    def group(self, size: int) -> Group:
        """Return the group-privacy question: `size` people are all in one data set and absent from
        the other, or some in each.

        Raises:
            DomainError: If the size is no integer from 1 to 10^5.
        """
        return group(compose(self), size)  # pyright: ignore[reportArgumentType]

    def _question(self, asking: Asking) -> PrivacyQuestion:
        return ask(self._counted(), asking)

    @asks()
    def renyi(self, order: float, **options: Unpack[Options]) -> Bound:
        """Return bounds on the Renyi divergence of `order` > 1, in nats, the larger of both
        directions.

        >>> from dpcompose import Gaussian
        >>> (Gaussian(2.0) * 4).renyi(8.0).contains(4.0)
        True
        """
        return self._question(Asking.read(options, unproved="a Renyi divergence")).renyi(order)

    @asks()
    def zcdp(self, **options: Unpack[Options]) -> ConcentratedDP | None:
        """Return the rho and delta of zero-concentrated differential privacy, or None if no finite
        rho is known.

        >>> from dpcompose import Gaussian
        >>> round((Gaussian(2.0) * 4).zcdp().rho, 12)
        0.5
        """
        asking = Asking.read(options, unproved="a zero-concentrated guarantee")
        return gathered(self._counted(), asking.adjacency).zcdp()

    @asks()
    def gdp(self, **options: Unpack[Options]) -> float | None:
        """Return the mu of Gaussian differential privacy, rounded up, or None if a mechanism is not
        Gaussian.

        >>> from dpcompose import Gaussian
        >>> round((Gaussian(2.0) * 16).gdp(), 12)
        2.0
        """
        asking = Asking.read(options, unproved="the mu of Gaussian privacy")
        return gathered(self._counted(), asking.adjacency).gdp()

    def pure(self, *, adjacency: AdjacencyName = Adjacency.ADD_REMOVE) -> float | None:
        """Return the epsilon of pure differential privacy in nats, rounded up, or None if a loss is
        unbounded.
        """
        return gathered(self._counted(), check.named("adjacency", adjacency, Adjacency)).pure()

    def approximate(
        self, *, adjacency: AdjacencyName = Adjacency.ADD_REMOVE
    ) -> ApproximateDP | None:
        """Return the (epsilon, delta) of the basic composition theorem; None where a mechanism's
        loss is unbounded.
        """
        return gathered(
            self._counted(), check.named("adjacency", adjacency, Adjacency)
        ).approximate()


@supply(mechanisms.ComposablePart)
class ComposablePart(Composable, Part):
    """A single mechanism: composed, sampled and evaluated as the composition of itself once."""

    def _counted(self) -> tuple[tuple[ComposablePart, int], ...]:
        return ((self, 1),)

    def __mul__(self, times: int) -> Composition:
        times = checked_times("times", times)
        return _composition(parts=((self, times),) if times else ())

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        check.member("adjacency", adjacency, Adjacency)
        return None

    def costlier(self) -> Composable:
        return self


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Composition(Composable):
    """A multiset of mechanisms with counts, without order or nesting. Build it with `compose`, `+`
    and `*`.

    A sum of n terms is flattened when its parts are first read, in n steps.

    Args:
        parts: Distinct mechanisms with their counts, in order of first appearance.
    """

    def __init__(self, parts: tuple[tuple[ComposablePart, int], ...] = ()) -> None:
        """Check the parts, which must be distinct mechanisms with counts of at least 1.

        Raises:
            DomainError: If an entry is not a mechanism with a count of at least 1, or a mechanism
                occurs twice.
        """
        counts: dict[Any, int] = {}
        for part, times in _entries(parts):
            if not isinstance(part, ComposablePart):
                raise DomainError("part", part, "a mechanism", _REMEDY)
            if not checked_times("count", times) >= 1:
                raise DomainError("count", times, f"an integer of at least 1 for {part!r}", _REMEDY)
            if part in counts:
                raise DomainError("part", part, "a mechanism that is there once", _REMEDY)
            counts[part] = int(times)
        vars(self)["parts"] = tuple(counts.items())

    _terms: ClassVar[tuple[Composable, Composable] | None] = None

    @cached_property
    def parts(self) -> tuple[tuple[ComposablePart, int], ...]:
        """The distinct mechanisms with their counts, in order of first appearance."""
        entries: list[tuple[ComposablePart, int]] = []
        waiting: list[Composable] = [self]
        while waiting:
            one = waiting.pop()
            if isinstance(one, Composition) and one._terms is not None:
                waiting += reversed(one._terms)
            else:
                entries += one._counted()
        # The parts are stored before the terms are dropped, since another thread may read them.
        parts = vars(self)["parts"] = merged(entries)
        vars(self).pop("_terms", None)
        return parts

    def __getstate__(self) -> dict[str, Any]:
        return {"parts": self.parts}

    def _counted(self) -> tuple[tuple[ComposablePart, int], ...]:
        return self.parts

    def __mul__(self, times: int) -> Composition:
        times = checked_times("times", times)
        return _composition(
            parts=tuple(
                [
                    (part, checked_times("times", count * times))
                    for part, count in self.parts
                    if times
                ]
            )
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and dict(self.parts) == dict(other.parts)

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def _repr_html_(self) -> str:
        """Return an HTML summary for a notebook: the number of mechanisms, and the first of
        them.
        """
        rows = [f"{part!r}, {times:,} times" for part, times in self.parts]
        return notebook.lines(f"{len(rows):,} mechanisms, run {self.count:,} times in all", rows)

    def __repr__(self) -> str:
        terms = [f"{part!r}" if times == 1 else f"{part!r} * {times}" for part, times in self.parts]
        return " + ".join(terms) if terms else "Composition()"

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """Return the sums of the parts' exact amounts from typed decimals; None if a part states
        none.
        """
        check.member("adjacency", adjacency, Adjacency)
        total = TypedAmounts(Fraction(0), rho=Fraction(0), mu_squared=Fraction(0))
        for part, times in self.parts if len(self.parts) <= MOST_TYPED else ():
            stated = part.typed(adjacency=adjacency)
            if stated is None:
                return None
            total += stated.times(times)
        return total if len(self.parts) <= MOST_TYPED else None

    def costlier(self) -> Composition:
        found = [(part.costlier(), times) for part, times in self.parts]
        if all(one is part for (one, _), (part, _) in zip(found, self.parts, strict=True)):
            return self
        return compose(*[part * times for part, times in found])

    @cached_property
    def count(self) -> int:
        """The number of mechanisms, with multiplicity."""
        return sum(times for _, times in self.parts)

    @property
    def label(self) -> str:
        """The name of this composition in reports."""
        return repr(self)


def compose(*items: Composable | Sequence[Composable]) -> Composition:
    """Return the composition of mechanisms and compositions, which may be chosen adaptively, with
    parameters fixed in advance.

    >>> from dpcompose import Gaussian, Laplace, compose
    >>> compose(Gaussian(1.0), Laplace(2.0)) == Laplace(2.0) + Gaussian(1.0) == compose([Gaussian(1.0), Laplace(2.0)])
    True

    Args:
        items: The mechanisms and compositions, or one list of them.

    Raises:
        DomainError: If an item is neither a mechanism nor a composition.
    """
    given = cast(
        "Sequence[Composable]",
        items[0] if len(items) == 1 and isinstance(items[0], list | tuple) else items,
    )
    if len(given) == 1 and type(given[0]) is Composition:
        return given[0]
    for kind in {*map(type, given)}:
        if not issubclass(kind, Composable):
            item = next(item for item in given if type(item) is kind)
            remedy = item.instead_of_composing if isinstance(item, Uncomposable) else ""
            raise DomainError("item", item, "a mechanism or a composition", remedy)
    return _composition(parts=merged(chain.from_iterable([item._counted() for item in given])))  # pyright: ignore[reportPrivateUsage]


@asks()
def compare(
    composition: Composable, *, delta: float, **options: Unpack[Options]
) -> tuple[Comparison, ...]:
    """Return `composition.compare(delta=delta, **options)` for a mechanism, a composition or a list
    of them.
    """
    return compose([composition]).compare(delta=delta, **options)


def _composition(**attributes: Any) -> Composition:
    """Return a composition with these attributes set, unchecked: its parts, or the terms of an
    unflattened sum.
    """
    composition = object.__new__(Composition)
    vars(composition).update(attributes)
    return composition


def _sum(*terms: Composable) -> Composition:
    """Return the sum of the terms, flattened when its parts are first read; at once if all terms
    are unflattened sums or the count exceeds 10^15.
    """
    waiting = [isinstance(term, Composition) and term._terms is not None for term in terms]  # pyright: ignore[reportPrivateUsage]
    count = sum(term.count if isinstance(term, Composition) else 1 for term in terms)
    if all(waiting) or count > MOST_TIMES:
        return compose(*terms)
    return _composition(count=count, _terms=terms)


def _entries(parts: object) -> tuple[tuple[Any, Any], ...]:
    """Return the pairs in `parts`, of any types; raises a DomainError if it is no sequence of
    pairs.
    """
    if not isinstance(parts, tuple | list):
        raise DomainError("parts", parts, "a tuple of mechanisms with their counts", _REMEDY)
    entries = tuple(cast("Iterable[Any]", parts))
    for entry in entries:
        if not isinstance(entry, tuple) or len(cast("tuple[Any, ...]", entry)) != 2:
            raise DomainError("entry of parts", entry, "a mechanism with its count", _REMEDY)
    return entries


@dataclass(frozen=True)
class Sampled(ComposablePart):
    """A composition run on one Poisson sample. With the record, its output is a mixture of the
    outputs with and without it.

    Args:
        base: The composition that runs on the sample.
        rate: The probability that a record is in the sample, in (0, 1).
    """

    base: Composition
    rate: float

    def __repr__(self) -> str:
        inner = repr(self.base)
        return (
            f"({inner}).sampled({self.rate!r})"
            if self.base.count > 1
            else f"{inner}.sampled({self.rate!r})"
        )

    @property
    def label(self) -> str:
        """The name of this mechanism in reports."""
        return f"{self.base.parts[0][0].label if self.base.count == 1 else self.base.label}, sampled at {self.rate:g}"

    @property
    def collected(self) -> str:
        """How the data of the people in the sample are collected: as all parts of the base do, or "mixed"."""
        found = {part.collected for part, _ in self.base.parts}
        return found.pop() if len(found) == 1 else "mixed"

    def pairs(self, adjacency: Adjacency) -> Pairs:
        """Return the losses of the mixture against the composition without the record, and
        reversed; under replacement those the composition states.
        """
        if self.base.count == 1:
            return self.base.parts[0][0].sampled_pairs(self.rate, adjacency)
        if adjacency is Adjacency.REPLACE:
            reason = "no sound pair is known for a sampled composition when a record is replaced"
            raise UnsupportedError(repr(self), reason)
        self.require_any_size(repr(self))
        return ((composed_on_sample(self.base.parts, self.rate, adjacency), 1),)

    def require_any_size(self, question: str) -> None:
        for part, _ in self.base.parts:
            part.require_any_size(question)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Return the losses on a sample of the sample, which has the product of the rates."""
        return Sampled(self.base, self.rate * rate).pairs(adjacency)

    def group_losses(self, size: int, adjacency: Adjacency) -> GroupLosses:
        """Return the losses of a group, of which a binomial number is in the sample."""
        any_of_them = Sampled(self.base, joint_rate(self.rate, size))
        as_one = any_of_them if self.collected == "together" else self
        own, joint = [partial(each.pairs, adjacency) for each in (self, as_one)]
        return sampled_group_losses(
            self.base.parts, self.rate, size, adjacency, own=own, joint=joint
        )

    def costlier(self) -> Composable:
        return sampled(self.base.costlier(), min(larger_reading(self.rate), 1.0))

    def unsampled(self, adjacency: Adjacency) -> Unsampled:
        """Return the composition on the full data, which dominates: whether the record is in the
        sample may be public.
        """
        return Unsampled(self.base.parts, 1.0 if adjacency is Adjacency.REPLACE else self.rate)


def sampled(composition: Composition, rate: float) -> Composable:
    """Return `composition` on one Poisson sample; itself at rate 1, and one sample at the product
    of the rates for a sample.
    """
    rate = check.probability("rate", rate)
    if not rate > 0:
        raise DomainError(
            "rate", rate, "a number in (0, 1]", "A rate of 0 releases nothing about anybody"
        )
    if rate == 1 or not composition.parts:
        return composition
    if composition.count == 1 and isinstance(composition.parts[0][0], Sampled):
        inner = composition.parts[0][0]
        if not inner.rate * rate > 0:
            raise DomainError(
                "rate",
                rate,
                f"a rate whose product with the earlier one, {inner.rate!r}, is above 0",
            )
        return Sampled(inner.base, inner.rate * rate)
    return Sampled(composition, rate)
