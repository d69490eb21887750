"""Any mechanism stated by its dominating pair: by atoms, or by a privacy profile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.law import LAST_EPSILON, Atoms, AtomsAbove, AtomsOfProfile, Envelope, Laws, Pair
from dpcompose.mechanisms.base import Mechanism
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, Bound, down, up

SUM_TOLERANCE = 1e-12


@dataclass(frozen=True, repr=False)
class DominatingPair(Mechanism):
    """A mechanism stated by a pair of distributions that dominates its outputs with and without the
    record.

    Build it with `atoms` or `from_profile`.

    >>> from dpcompose import Adjacency
    >>> from dpcompose.mechanisms import DominatingPair
    >>> pair = DominatingPair.atoms(upper=[0.75, 0.25], lower=[0.25, 0.75], adjacency=Adjacency.ADD_REMOVE)
    >>> pair.delta(epsilon=0.0).contains(0.5)
    True
    """

    pair: Pair
    holds_under: Adjacency
    name: str = "DominatingPair"

    def __post_init__(self) -> None:
        if not isinstance(self.pair, Pair):  # pyright: ignore[reportUnnecessaryIsInstance]
            remedy = "Give masses by DominatingPair.atoms(upper=..., lower=..., adjacency=...)"
            raise DomainError("pair", self.pair, "a pair of privacy losses", remedy)
        check.member("holds_under", self.holds_under, Adjacency)

    def __repr__(self) -> str:
        return f"<{self.name}, {self.holds_under.value}>"

    @property
    def label(self) -> str:
        return self.name

    @classmethod
    def atoms(cls, *, upper: Any, lower: Any, adjacency: Adjacency) -> DominatingPair:
        """Return the mechanism dominated by a pair of distributions with exactly these masses.

        Args:
            upper: The masses with the record: a mapping from outcomes, or a sequence.
            lower: The masses without the record, likewise; an outcome missing in one mapping has
                mass 0 there.
            adjacency: The adjacency under which the pair dominates.

        Raises:
            DomainError: If a mass is negative or not finite, or a sum differs from 1 by more than
                1e-12; the error names the entry or the sum.
        """
        adjacency = check.member("adjacency", adjacency, Adjacency)
        first, second = _masses("upper", upper), _masses("lower", lower)
        if (
            not isinstance(upper, Mapping)
            and not isinstance(lower, Mapping)
            and len(first) != len(second)
        ):
            raise DomainError(
                "lower", f"{len(second)} masses", f"as many as upper has: {len(first)}"
            )
        outcomes = list(dict.fromkeys([*first, *second]))
        masses = [tuple(side.get(outcome, 0.0) for outcome in outcomes) for side in (first, second)]
        # The difference of each sum from 1 counts as omitted mass.
        omitted = max(abs(1 - math.fsum(side)) for side in masses)
        law = Atoms(masses[0], masses[1], omitted_mass=up(omitted) if omitted else 0.0)
        return cls(Pair(law, law.reverse), adjacency, f"DominatingPair of {len(outcomes)} atoms")

    @classmethod
    def from_profile(
        cls, profile: Callable[[float], float], *, error: float, adjacency: Adjacency
    ) -> DominatingPair:
        """Return the mechanism whose privacy profile delta(epsilon) is `profile` up to `error`.

        Its losses are atoms that dominate the profile, with attained atoms that it dominates.

        Args:
            profile: delta as a function of every real epsilon, for (with the record, without it);
                nonincreasing, and convex in e^epsilon.
            error: The largest absolute difference of `profile` from the exact profile, in [0, 1).
            adjacency: The adjacency under which the pair dominates.

        Raises:
            DomainError: If `error` is outside its domain, or the profile returns a value outside
                [0, 1] by more than the error.
        """
        if not callable(profile):
            raise DomainError("profile", profile, "a function from epsilon to delta")
        error, adjacency = (
            check.probability("error", error),
            check.member("adjacency", adjacency, Adjacency),
        )

        def enclosed(epsilon: float) -> Bound:
            delta = check.real("profile(epsilon)", profile(epsilon))
            if not -error <= delta <= 1 + error:
                raise DomainError(f"profile({epsilon!r})", delta, "a number in [0, 1]")
            floor = max(-math.expm1(epsilon), 0.0)
            low, high = max(down(delta - error), floor, 0.0), min(up(delta + error), 1.0)
            if not low <= high:
                raise DomainError(
                    f"profile({epsilon!r})", delta, f"at least 1 - e^epsilon = {floor!r}"
                )
            return Bound(low, high)

        # The atoms are computed here, so the profile function need not be stored.
        above, below = AtomsOfProfile(enclosed, True).loss(), AtomsOfProfile(enclosed, False).loss()
        inside = Pair(below, below.reverse)
        return cls(
            Pair(above, above.reverse, False, (inside,)), adjacency, "DominatingPair from a profile"
        )

    @classmethod
    def from_points(
        cls, epsilon: Iterable[float], delta: Iterable[float], *, adjacency: Adjacency
    ) -> DominatingPair:
        """Return the least pair that dominates every mechanism with these upper bounds on delta at
        finitely many epsilons.

        H(a) = delta(ln a) is convex, H(0) = 1, and in the other order H(1 / a) = 1 - 1 / a + H(a) /
        a, so that the polygon below the points, and the mirror images of those points, is above
        every such profile. No losses are stated as attained, and beyond the last point the profile
        need not fall.

        >>> from dpcompose import Adjacency
        >>> from dpcompose.mechanisms import DominatingPair
        >>> pair = DominatingPair.from_points([0.0, 1.0], [0.3, 0.0], adjacency=Adjacency.ADD_REMOVE)
        >>> 0.3 <= pair.delta(epsilon=0.0).upper < 0.3 + 1e-12
        True

        Args:
            epsilon: The epsilons in nats, increasing, >= 0.
            delta: For each epsilon a delta in [0, 1] such that the mechanism is (epsilon,
                delta)-differentially private.
            adjacency: The adjacency of these guarantees.

        Raises:
            DomainError: If there is no point, or a number is outside its domain.

        Reference: [ZhuDongWang2022, Proposition 9 and Theorem 10]
        """
        adjacency = check.member("adjacency", adjacency, Adjacency)
        points = [check.nonnegative("epsilon", each) for each in _listed("epsilon", epsilon)]
        values = [check.probability("delta", each) for each in _listed("delta", delta)]
        if not points or len(points) != len(values):
            raise DomainError(
                "delta",
                f"{len(values)} numbers",
                f"one for each epsilon, at least one: {len(points)}",
            )
        if not all(one < two for one, two in pairwise(points)):
            raise DomainError("epsilon", points, "increasing numbers")
        # Each epsilon is rounded up, where the profile is no larger; of two that become equal, the
        # right one is kept.
        nodes: dict[float, float] = {0.0: 1.0}
        last = 1.0
        for each, value in zip(points, values, strict=True):
            node, last = up(each + 32 * UNIT_ROUNDOFF * (1 + each)), min(last, value)
            if len(nodes) > 1 and node - (before := next(reversed(nodes))) < 8 * UNIT_ROUNDOFF * (
                1 + node
            ):
                del nodes[before]
            if node <= LAST_EPSILON:
                nodes[node] = last
        law = AtomsAbove(tuple(nodes), tuple(nodes.values()))
        return cls(Pair(law, law, False), adjacency, f"DominatingPair above {len(points)} points")

    def laws(self, adjacency: Adjacency) -> Laws:
        if adjacency is not self.holds_under:
            stated = f"its pair is stated under {self.holds_under.value} and says nothing under {adjacency.value}"
            raise UnsupportedError(self.label, stated)
        if adjacency is not Adjacency.REPLACE or self.pair.symmetric:
            return ((self.pair, 1),)
        # When a record is replaced, neither data set is the one with the record, so each use of the
        # mechanism may have the pair in either order.
        either = Envelope((self.pair.remove, self.pair.add))
        attained = self.pair.attained
        inside = (self.pair,) if attained else self.pair.attained_parts
        return ((Pair(either, either, False, inside, either_order=attained), 1),)


def _listed(name: str, values: Any) -> list[Any]:
    """Return a sequence as a list; raises a DomainError for a text, a mapping or no sequence."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise DomainError(name, values, "a sequence of numbers")
    return list(cast("Iterable[Any]", values))


def _masses(name: str, values: Any) -> dict[Any, float]:
    """Return the masses by outcome, each checked to be finite and >= 0; the outcomes of a sequence
    are its indices.
    """
    if not isinstance(values, Mapping | Iterable) or isinstance(values, str | bytes):
        raise DomainError(
            name, values, "a mapping from outcomes to masses, or a sequence of masses"
        )
    entries: dict[Any, Any] = (
        dict(cast("Mapping[Any, Any]", values))
        if isinstance(values, Mapping)
        else dict(enumerate(cast("Iterable[Any]", values)))
    )
    masses: dict[Any, float] = {
        key: check.probability(f"{name}[{key!r}]", mass) for key, mass in entries.items()
    }
    total = math.fsum(masses.values())
    if not abs(total - 1) <= SUM_TOLERANCE:
        raise DomainError(
            f"sum of {name}", total, "1 (up to 1e-12)", "Nothing is normalized silently"
        )
    return masses
