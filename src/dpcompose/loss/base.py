"""The privacy loss random variable ln(p / q) under p of one ordered pair (p, q) of distributions.

The common part of sums whose rows are losses of at most epsilon in size, any of them many times.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from dpcompose.contour import TabulatedTransform, Transform
from dpcompose.errors import UnsupportedError
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.lattice_noise import Noise
from dpcompose.numerics import Reals, U, log_unmixed
from dpcompose.proof import Ends, Field
from dpcompose.values import Bound, down, up


class Loss:
    """One ordered pair's privacy loss L. A member offers its transform; all else has a sound default.

    The finite part of L has mass 1 - `infinite_mass` up to `unplaced_mass`. The transform is that of the finite part,
    normalized.
    """

    has_least_rho: ClassVar[bool] = False
    """Whether `zcdp` is the least rho there is."""
    alike: ClassVar[bool] = False
    """Whether the losses of this family are finite, and the same in both orders."""

    @property
    def infinite_mass(self) -> float:
        """P[L = inf]."""
        return 0.0

    @property
    def infinite_relative_error(self) -> float:
        """The relative error of `infinite_mass`."""
        return 8 * 2.0**-53

    @property
    def unplaced_mass(self) -> float:
        """Mass whose place is not known: it counts as infinite at the upper end and as nothing at the lower."""
        return 0.0

    @classmethod
    def finite(cls) -> bool:
        """Whether no member of the family can be infinite or have mass of unknown place."""
        return cls.infinite_mass is Loss.infinite_mass and cls.unplaced_mass is Loss.unplaced_mass

    @property
    def maximum(self) -> float:
        """The largest finite loss, or an upper bound on it, in nats; inf if there is none."""
        return math.inf

    @property
    def minimum(self) -> float:
        """The smallest loss, or a lower bound on it, in nats; -inf if there is none."""
        return -math.inf

    @property
    def largest(self) -> Bound:
        """The largest finite loss; by default `maximum` is taken to be exact up to its last digits."""
        maximum = self.maximum
        error = 16 * 2.0**-53 * abs(maximum) if math.isfinite(maximum) else 0.0
        return Bound(maximum - error, maximum + error)

    @property
    def top(self) -> Fraction | None:
        """The largest finite loss, or 0 if that is larger, or an upper bound on it, as an exact number; None if it is
        infinite."""
        maximum = float(self.maximum)
        return None if maximum == math.inf else both_readings(max(maximum, 0.0))

    def transform(self, times: int) -> Transform:
        """The moment generating function of the sum of `times` independent copies of the finite part.

        A family declares this or `pool`.
        """
        return self.pool([(self, times)])[0]

    def profile(self, epsilon: float) -> Bound | None:
        """delta(epsilon) of this one loss in closed form, if there is one."""
        return None

    def profiles(self, epsilons: Sequence[float]) -> list[Bound]:
        """`profile` at many epsilons, for a loss whose `profile` knows the answer."""
        return [bound for at in epsilons if (bound := self.profile(at)) is not None]

    @property
    def has_profile(self) -> bool:
        """Whether `profile` knows the answer."""
        return type(self).profile is not Loss.profile

    @property
    def in_other_order(self) -> Loss | None:
        """The loss of the same pair in the other order; None if it is not known."""
        return self if self.alike else None

    @property
    def additive_noise(self) -> Noise | None:
        """The Gaussian or Laplace noise whose loss this is, sampled or not; None if it is another's."""
        return None

    @property
    def composed(self) -> Loss:
        """The loss that stands for this one where several are composed; by default itself."""
        return self

    def inverse(self, delta: float) -> Bound | None:
        """The inverse of the profile, clipped at 0, in closed form, if there is one."""
        return None

    @property
    def support(self) -> int:
        """How many values the loss has; 0 if they are not finitely many."""
        return 0

    def atoms(self) -> Atoms:
        """The outcomes of the loss, where `support` is not 0."""
        raise UnsupportedError(type(self).__name__, "this loss has no finite list of values")

    def sampled(self, rate: float, *, remove: bool) -> Loss | None:
        """On a Poisson sample: of ((1 - q) Q + q P, Q) if `remove`, else (P, (1 - q) P + q Q); None if not closed."""
        return None

    def enclosing(self) -> tuple[Atoms, Atoms] | None:
        """Atoms that dominate this one and atoms that it dominates, both close; None if there is no offer."""
        return None

    @property
    def shared_reverse(self) -> Loss | None:
        """The same pair in the other order, if the transforms of the two share their work; None if they do not.

        For speed: without it the benchmark row "DP-SGD sigma 4, rate 0.1, 10^4 steps" takes 1.5 times as long.
        """
        return None

    @property
    def zcdp(self) -> float | None:
        """A rho with D_alpha <= rho alpha for all alpha > 1, rounded up, in this order; None if none is known."""
        largest = max(abs(self.maximum), abs(self.minimum))
        if self.infinite_mass + self.unplaced_mass > 0 or not math.isfinite(largest):
            return None
        # Two losses of at most epsilon in size: randomized response is the worst, and its supremum is at alpha = 1.
        return largest * math.tanh(largest / 2) * (1 + 16 * 2.0**-53)

    @classmethod
    def combine(cls, group: Sequence[tuple[Any, int]]) -> Sequence[tuple[Loss, int]]:
        """A composition of losses of this family that is equivalent and has fewer parts; by default the composition
        itself."""
        return group

    @classmethod
    def pool(cls, group: Sequence[tuple[Any, int]]) -> Sequence[Transform]:
        """Transforms that add up to that of a composition of losses of this family: one for many losses where they can
        be computed in arrays."""
        return [loss.transform(times) for loss, times in group]

    def ball(self, field: Field) -> Ends:
        """The loss in ball arithmetic, for proofs.

        Raises:
            UnsupportedError: If no proof is known for this family.
        """
        raise UnsupportedError(
            "proof=True",
            f"{type(self).__name__} has no moments in ball arithmetic",
            "Ask without proof",
        )

    @classmethod
    def moments_below(cls, group: Sequence[tuple[Any, int]], orders: Reals) -> Reals | None:
        """Upper bounds on K of whatever mechanisms lie below these losses, each so many times, at orders > 0.

        None where nothing less is known than K of the losses themselves.
        """
        return None

    def log_moment(self, exponent: float) -> float:
        """An upper bound on K at an exponent > 0 of whatever mechanism this loss stands for; infinite if unknown."""
        if self.infinite_mass + self.unplaced_mass > 0:
            return math.inf
        return self.transform(1).moment_bound(exponent)

    @property
    def gdp(self) -> float | None:
        """The mu of a loss that is exactly Gaussian, rounded up; None for all others."""
        return None


_Member = TypeVar("_Member", bound=Loss)
_Key = TypeVar("_Key", bound=Hashable)
_Rows = TypeVar("_Rows")


def alike(
    group: Iterable[tuple[_Member, int]], key: Callable[[_Member], _Key]
) -> dict[_Key, list[tuple[_Member, int]]]:
    """The losses grouped by a key, with their counts."""
    members: dict[_Key, list[tuple[_Member, int]]] = defaultdict(list)
    for loss, times in group:
        members[key(loss)].append((loss, times))
    return members


def by_family(group: Iterable[tuple[Loss, int]]) -> dict[type[Loss], list[tuple[Loss, int]]]:
    """The losses of each family, with their counts."""
    return alike(group, type)


def blocks(rows: _Rows, size: int) -> list[_Rows]:
    """The rows, a list or an array, in blocks of at most `size`."""
    every: Any = rows
    return [every[at : at + size] for at in range(0, len(every), size)]


def bounds_of_rows(
    bound: Callable[..., Reals], rows: Sequence[Reals], apart: int
) -> Iterator[Callable[[Reals], Reals]]:
    """Functions of frequencies: `bound` at them, given every `apart`-th row of some arrays. Rows that differ do not come
    back to 1 at the same frequencies.
    """
    for at in range(max(1, apart)):
        yield partial(bound, *(each[at :: max(1, apart)] for each in rows))


def merged(group: Sequence[tuple[_Member, int]]) -> list[tuple[_Member, int]]:
    """Each distinct loss once, with the sum of its counts."""
    counts: Counter[_Member] = Counter()
    for loss, times in group:
        counts[loss] += times
    return [(loss, times) for loss, times in counts.items() if times > 0]


@lru_cache(maxsize=1 << 12)
def both_readings(number: float) -> Fraction:
    """The larger of a float's two readings: the double itself, and its shortest decimal."""
    return max(Fraction(number), Fraction(repr(number)))


class Pair(NamedTuple):
    """A mechanism's losses under one adjacency: with the record against without it, and the other order.

    Args:
        remove: The loss of (with the record, without it).
        add: The loss of (without the record, with it).
        attained: Whether one mechanism has both losses; if not, they only dominate.
        attained_parts: Attained losses below dominating ones, for the lower end of a composition.
        tight_alone: Whether an uncomposed profile is attained at every epsilon, by one mechanism or another.
        either_order: Whether an uncomposed truth is the largest answer of the attained parts, in either order.
    """

    remove: Loss
    add: Loss
    attained: bool = True
    attained_parts: tuple[Pair, ...] = ()
    tight_alone: bool = False
    either_order: bool = False

    @property
    def symmetric(self) -> bool:
        """Whether both orders have the same loss."""
        return self.remove is self.add or self.remove == self.add


def sampled_profile(
    epsilon: float, rate: float, *, remove: bool, base: Callable[[float, float], Bound]
) -> Bound:
    """The profile on a Poisson sample, from D without sampling: `base` encloses D within an error of a place.

    q D(ln(1 + (e^x - 1) / q)) if the record is removed, else c D(x + ln(q / c)), c = 1 - (1 - q) e^x.

    Reference: [ZhuDongWang2022, Theorem 11]
    """
    if remove:
        before = log_unmixed(epsilon, rate)
        if before is not None:
            return _scaled(base(*before), rate, 0.0)
        # Below the smallest loss the profile is 1 - e^x; a hair above it at most q delta more.
        floor, above = -math.expm1(epsilon), math.expm1(epsilon) / rate < -1 - 1e-9
        room = 0.0 if above else 2e-9 * rate
        return Bound(floor * (1 - 8 * U), min(up(floor * (1 + 8 * U) + room), 1.0))
    rise = math.expm1(min(epsilon, 700.0))
    factor, scale = rate - rise * (1 - rate), U * (rate + abs(rise)) + math.ulp(0.0)
    if (
        factor < 32 * scale
    ):  # beyond the largest loss, or within rounding of it: c is at most twice that
        most = 64 * scale
        if factor <= -32 * scale:
            return Bound(0.0, 0.0)
        return Bound(0.0, up(most * base(epsilon + math.log(rate / most) - 1e-6, 0.0).upper))
    relative_error = 8 * scale / factor
    logs = math.log(rate), math.log(factor)
    error = 16 * U * (abs(epsilon) + 2 + abs(logs[0]) + abs(logs[1])) + 2 * relative_error
    return _scaled(base(epsilon + logs[0] - logs[1], error), factor, 2 * relative_error)


def _scaled(bound: Bound, factor: float, relative_error: float) -> Bound:
    error = relative_error + 8 * U
    upper = up(bound.upper * factor * (1 + error)) if bound.upper > 0 else 0.0
    return Bound(max(down(bound.lower * factor * (1 - error)), 0.0), min(upper, 1.0))


@dataclass(frozen=True, eq=False)
class BoundedRows(TabulatedTransform):
    """A sum of rows, of shape (m, 1): a loss between -epsilon and epsilon, so many times. A member adds the moments.

    Args:
        epsilon: The largest loss of each row.
        times: How many copies of each.
    """

    epsilon: Reals
    times: Reals

    @property
    def maximum(self) -> float:
        return math.fsum((self.epsilon * self.times).ravel()) * (1 + 4 * U)

    @property
    def minimum(self) -> float:
        return -self.maximum

    @property
    def scale(self) -> float:
        return float((self.times * np.minimum(self.epsilon, self.epsilon**2)).sum())
