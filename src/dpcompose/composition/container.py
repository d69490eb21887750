"""What is composed: a multiset of parts. A part names its losses or its guarantee; what it is stays unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from dpcompose.errors import DomainError
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.guarantee.priced import TypedAmounts
from dpcompose.loss.base import Pair
from dpcompose.numerics import check
from dpcompose.numerics.bound import Bound

if TYPE_CHECKING:
    from dpcompose.composition.compare import Comparison
    from dpcompose.composition.group import Group
    from dpcompose.composition.profile import Profile
    from dpcompose.composition.risk import Risk

TOLERANCE = 1e-9
MOST_TIMES = 10**15
MOST_TYPED = 64
"""Of more parts no exact sums are taken: their denominators would grow without end."""
_REMEDY = "Build it with compose, + and *"
Pairs = tuple[tuple[Pair, int], ...]


@runtime_checkable
class Part(Protocol):
    """One member of a composition, hashable: what it loses under an adjacency, or what is promised of it."""

    @property
    def label(self) -> str:
        """What a report calls it."""
        ...

    def pairs(self, adjacency: Adjacency) -> Pairs | None:
        """Its losses, a composition of pairs; None if it is known only by its Renyi curve.

        Raises:
            UnsupportedError: Where nothing sound is known.
        """
        ...

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Its losses on a Poisson sample. Raises UnsupportedError where nothing sound is known."""
        ...

    def promise(self, adjacency: Adjacency) -> ConcentratedDP | None:
        """The zero-concentrated guarantee of a part without losses; None for all others."""
        ...

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """See `Composable`."""
        ...

    def costlier(self) -> Any:
        """See `Composable`."""
        ...


class Composable:
    """What a mechanism and a composition have in common: both can be composed, sampled and asked."""

    def _counted(self) -> Iterable[tuple[Part, int]]:
        """The parts with their counts: a composition has several, all else is one."""
        return ((self, 1),)  # pyright: ignore[reportReturnType]

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """What is stated of it in amounts that a person typed, exact; None if nothing is."""
        check.member("adjacency", adjacency, Adjacency)
        return None

    def costlier(self) -> Composable:
        """The same with every typed parameter at whichever of its readings, double or decimal, costs more."""
        return self

    def __add__(self, other: Composable) -> Composition:
        if not isinstance(other, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return compose(self, other)

    def __mul__(self, times: int) -> Composition:
        times = _times("times", times)
        return _composition(((self, times),) if times else ())  # pyright: ignore[reportArgumentType]

    def __rmul__(self, times: int) -> Composition:
        return self * times

    def sampled(self, rate: float) -> Composable:
        """The whole on one Poisson sample: each record is in it independently with probability `rate`.

        Args:
            rate: In (0, 1].
        """
        from dpcompose.composition.sampling import sampled

        return sampled(compose(self), rate)

    def epsilon(
        self,
        *,
        delta: float,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Bound:
        """The smallest epsilon >= 0 such that the composition is (epsilon, delta)-differentially private.

        lower <= epsilon <= upper holds with every rounding accounted for; infinite where nothing finite does.

        >>> from dpcompose import Gaussian
        >>> (Gaussian(10.0) * 100).epsilon(delta=1e-5).contains(4.377178095681225)
        True

        Args:
            delta: In [0, 1].
            adjacency: What one person's data may change.
            orientation: Whether the same world holds the record in every round.
            tolerance: Wanted relative width, in (0, 1); what was reached is in the bound.
            proof: Evaluate in ball arithmetic, every error a theorem (extra `proof`).

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If a part has no sound statement under the adjacency or orientation.

        Reference: [ZhuDongWang2022, Theorem 10]
        """
        from dpcompose.composition import numerical

        question = numerical.question(compose(self), adjacency, orientation, tolerance, proof)
        return question.epsilon(check.probability("delta", delta))

    def delta(
        self,
        *,
        epsilon: float,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Bound:
        """The smallest delta such that the composition is (epsilon, delta)-differentially private, at any real epsilon.

        >>> from dpcompose import BlackBox
        >>> (BlackBox(0.1) * 10).delta(epsilon=0.5).contains(0.009929626917388853)
        True

        Args:
            epsilon: In nats; any real number, infinite ones included.
            adjacency: What one person's data may change.
            orientation: Whether the same world holds the record in every round.
            tolerance: Wanted relative width of epsilon(delta), in (0, 1).
            proof: Evaluate in ball arithmetic (extra `proof`).

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If a part has no sound statement under the adjacency or orientation.

        Reference: [ZhuDongWang2022, Theorem 10]
        """
        from dpcompose.composition import numerical

        question = numerical.question(compose(self), adjacency, orientation, tolerance, proof)
        return question.delta(check.real("epsilon", epsilon))

    def profile(
        self,
        *,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Profile:
        """The curve delta(epsilon): call it at an array of epsilons; `.tradeoff(alpha)` is its dual."""
        from dpcompose.composition import numerical
        from dpcompose.composition.profile import Profile

        return Profile(numerical.question(compose(self), adjacency, orientation, tolerance, proof))

    def risk(
        self,
        *,
        prior: float = 0.5,
        false_positive_rate: float = 1e-3,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Risk:
        """What an attacker gains from all answers: true positive rate, advantage, Bayes error, reconstruction."""
        from dpcompose.composition.risk import risk

        curve = self.profile(adjacency=adjacency, orientation=orientation, tolerance=tolerance, proof=proof)
        return risk(curve, prior=prior, false_positive_rate=false_positive_rate)

    def group(self, size: int) -> Group:
        """The same questions for a group of that size: all of it in one world and none in the other, or mixed."""
        from dpcompose.composition.group import group

        return group(compose(self), size)

    def renyi(
        self,
        order: float,
        *,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Bound:
        """The Renyi divergence of the given order > 1, the larger of both directions; its upper end is certified."""
        from dpcompose.composition import numerical, renyi

        numerical.unproved("a Renyi divergence", proof=proof)
        asked = numerical.question(compose(self), adjacency, orientation, tolerance, False)
        # A pair that different mechanisms attain at different epsilons has the moments of none of them.
        return renyi.divergence(asked.curve, order, below=() if asked.alone else asked.below)

    def zcdp(
        self,
        *,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> ConcentratedDP | None:
        """The zero-concentrated guarantee, or None if no finite one is known."""
        from dpcompose.composition import numerical, zcdp

        numerical.unproved("a zero-concentrated guarantee", proof=proof)
        numerical.question(compose(self), adjacency, orientation, tolerance, False)
        return zcdp.guarantee(compose(self), adjacency=adjacency)

    def gdp(
        self,
        *,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> float | None:
        """The mu of Gaussian differential privacy, rounded up, or None if the composition is not Gaussian."""
        from dpcompose.composition import gdp, numerical

        numerical.unproved("the mu of Gaussian privacy", proof=proof)
        numerical.question(compose(self), adjacency, orientation, tolerance, False)
        return gdp.mu(compose(self), adjacency=adjacency)

    def pure(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> float | None:
        """The epsilon of pure differential privacy, rounded up, or None if there is none."""
        from dpcompose.composition import pure

        return pure.epsilon(compose(self), adjacency=adjacency)

    def approximate(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> ApproximateDP | None:
        """The (epsilon, delta) of bounded losses, added up by the basic theorem; None where a loss is unbounded."""
        from dpcompose.composition import pure

        return pure.approximate(compose(self), adjacency=adjacency)

    def compare(
        self,
        *,
        delta: float,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        orientation: Orientation = Orientation.SAME,
        tolerance: float = TOLERANCE,
    ) -> tuple[Comparison, ...]:
        """Every theorem that applies, tightest first: its epsilon at this delta, its name and its reference."""
        from dpcompose.composition.compare import compare

        return compare(compose(self), delta=delta, adjacency=adjacency, orientation=orientation, tolerance=tolerance)


@dataclass(frozen=True, eq=False)
class Composition(Composable):
    """A multiset of parts with counts, order-free and flat. Build it with `compose`, `+` and `*`.

    Args:
        parts: Distinct parts with their counts, in order of first appearance.
    """

    parts: tuple[tuple[Part, int], ...] = ()

    def __post_init__(self) -> None:
        """What `compose` refuses is refused here, and so is what it would join or leave out.

        Raises:
            DomainError: If an entry is not a mechanism with a count of at least 1, or a mechanism is there twice.
        """
        counts: dict[Any, int] = {}
        for part, times in _entries(self.parts):
            if not isinstance(part, Composable) or isinstance(part, Composition):
                raise DomainError("part", part, "a mechanism", _REMEDY)
            if not _times("count", times) >= 1:
                raise DomainError("count", times, f"an integer of at least 1 for {part!r}", _REMEDY)
            if part in counts:
                raise DomainError("part", part, "a mechanism that is there once", _REMEDY)
            counts[part] = int(times)
        object.__setattr__(self, "parts", tuple(counts.items()))

    def _counted(self) -> Iterable[tuple[Part, int]]:
        return self.parts

    def __mul__(self, times: int) -> Composition:
        times = _times("times", times)
        return _composition(tuple([(part, _times("times", count * times)) for part, count in self.parts if times]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and dict(self.parts) == dict(other.parts)

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def __repr__(self) -> str:
        terms = [f"{part!r}" if times == 1 else f"{part!r} * {times}" for part, times in self.parts]
        return " + ".join(terms) if terms else "Composition()"

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        """The sums over the parts; None if nothing is stated of one."""
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

    @property
    def count(self) -> int:
        """How many mechanisms, counted with multiplicity."""
        return sum(times for _, times in self.parts)

    @property
    def label(self) -> str:
        """What a report calls it."""
        return repr(self)


def compose(*items: Composable) -> Composition:
    """The composition of mechanisms and compositions: adaptively chosen, with their parameters fixed in advance.

    >>> from dpcompose import Gaussian, Laplace, compose
    >>> compose(Gaussian(1.0), Laplace(2.0)) == Laplace(2.0) + Gaussian(1.0)
    True

    Raises:
        DomainError: If an item is neither a mechanism nor a composition.
    """
    for item in items:
        if not isinstance(item, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("item", item, "a mechanism or a composition", getattr(item, "instead_of_composing", ""))
    if len(items) == 1 and isinstance(items[0], Composition):
        return items[0]
    counts: dict[Part, int] = {}
    for item in items:
        for part, times in item._counted():  # pyright: ignore[reportPrivateUsage]
            if not times:
                continue
            known = len(counts)
            earlier = counts.setdefault(part, times)  # one hash where a lookup and an assignment take two
            if len(counts) == known:
                counts[part] = _times("times", earlier + times)
            elif times > 1:
                _times("times", times)
    return _composition(tuple(counts.items()))


def _composition(parts: tuple[tuple[Part, int], ...]) -> Composition:
    """The composition of parts that are checked."""
    made = object.__new__(Composition)
    object.__setattr__(made, "parts", parts)
    return made


def _entries(parts: object) -> tuple[tuple[Any, Any], ...]:
    """Pairs of whatever they are of."""
    if not isinstance(parts, tuple | list):
        raise DomainError("parts", parts, "a tuple of mechanisms with their counts", _REMEDY)
    entries = tuple(cast("Iterable[Any]", parts))
    for entry in entries:
        if not isinstance(entry, tuple) or len(cast("tuple[Any, ...]", entry)) != 2:
            raise DomainError("entry of parts", entry, "a mechanism with its count", _REMEDY)
    return entries


def _times(name: str, value: object) -> int:
    """A count of at most 10^15: every integer up to there is a float, and so are the sums that count with it."""
    if type(value) is int and 0 <= value <= MOST_TIMES:
        return value
    times = check.count(name, value)
    if not times <= MOST_TIMES:
        raise DomainError(name, times, "an integer of at most 10^15")
    return times
