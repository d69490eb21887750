"""Odometers: how large the loss of an adaptive interaction without a budget is by now, at every time at once.

The time-uniform boundaries bound a loss at all times at once, as functions of the rho spent so far. A mechanism that is
rho_i-zCDP has E[e^(l L_i)] <= e^(l (l + 1) rho_i) for every l > 0, under either world. With R the sum of the rho so
far, V = 2 R and X = L - V / 2, e^(l X - l^2 V / 2) starts at 1 and never grows on average, however the rho_i were
chosen; so does any mixture over l, and such a process ever reaches 1 / failure with probability at most failure
(Ville). Both boundaries solve that for X.

Reference: [HowardRamdasMcAuliffeSekhon2020], [WhitehouseRamdasRogersWu2023, Theorem 3]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

from scipy.special import log_ndtr

from dpcompose import check
from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import Number, mapping, read, written
from dpcompose.errors import DomainError
from dpcompose.guarantee import Priced, pure_concentrated
from dpcompose.notebook import Listed
from dpcompose.pictured import Card
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, double_below, rounded_up, up

SMALLEST, LARGEST = 1e-50, 1e50
"""The ends of the domain of `tight_at`: nothing overflows between them."""


@dataclass(frozen=True)
class Boundary(ABC):
    """A bound on the loss at every time at once.

    Args:
        tight_at: The rho at which the bound is tight; from 1e-50 to 1e50.

    Raises:
        DomainError: If it is outside its domain.
    """

    tight_at: float
    kind: ClassVar[str]
    """Its name in a description."""

    def __post_init__(self) -> None:
        tight = check.real("tight_at", self.tight_at)
        if not SMALLEST <= tight <= LARGEST:
            raise DomainError("tight_at", self.tight_at, f"a rho from {SMALLEST:g} to {LARGEST:g}")
        object.__setattr__(self, "tight_at", tight)

    def above(self, rho: float, *, failure: float) -> float:
        """A number that the loss exceeds, at any time at all, with probability at most `failure`; rounded up.

        Args:
            rho: The sum of the rho so far; >= 0, infinite allowed.
            failure: In (0, 1).

        Raises:
            DomainError: If a number is outside its domain.
        """
        rho, logarithm = (
            check.real("rho", rho),
            -math.log(check.open_probability("failure", failure)),
        )
        if not rho >= 0.0:
            raise DomainError("rho", rho, "a number >= 0")
        # From 1e100 on squares would overflow.
        return (
            up((rho + self._excess(rho, logarithm)) * (1.0 + 32 * UNIT_ROUNDOFF))
            if rho < 1e100
            else math.inf
        )

    @abstractmethod
    def _excess(self, rho: float, logarithm: float) -> float:
        """X on the boundary, `logarithm` = ln(1 / failure); a dozen roundings off at most."""


@dataclass(frozen=True)
class Line(Boundary):
    """The line-crossing boundary V / 2 + sqrt(w / (2 y)) V + sqrt(y w / 2), w = ln(1 / failure), y = 2 `tight_at`.

    One l, sqrt(2 w / y): where V = y it is V / 2 + sqrt(2 w V), the price of a bound at one time known beforehand.

    >>> round(Line(0.5).above(0.25, failure=1e-6), 12)
    4.192391327318
    """

    kind: ClassVar[str] = "line"

    def _excess(self, rho: float, logarithm: float) -> float:
        tight = 2.0 * self.tight_at
        return 2.0 * rho * math.sqrt(logarithm / (2.0 * tight)) + math.sqrt(tight * logarithm / 2.0)


@dataclass(frozen=True)
class Mixture(Boundary):
    """The boundary of a mixture over all l > 0, half-normal with variance 1 / r: V / 2 + u sqrt(V + r).

    The mixture is 2 Phi(u) sqrt(r / (V + r)) e^(u^2 / 2) at X = u sqrt(V + r), and u is where it is 1 / failure. Both
    signs of l, as for a martingale, would give u = sqrt(2 ln(sqrt((V + r) / r) / failure)), which is larger, and need
    lower bounds on divergences that nobody promises. It is never far from the best line for any rho.

    >>> Mixture(0.5).above(0.5, failure=1e-6) < Line(0.05).above(0.5, failure=1e-6)
    True
    """

    kind: ClassVar[str] = "mixture"

    def _excess(self, rho: float, logarithm: float) -> float:
        # Any r is sound; this one solves r dU / dr = 0 to first order at V = 2 tight_at.
        twice = 2.0 * logarithm
        variance = 2.0 * self.tight_at / (1.0 + twice + math.log1p(twice))
        wanted = math.log1p(2.0 * rho / variance) / 2.0 + logarithm
        return _solved(wanted) * math.sqrt(2.0 * rho + variance)


def _solved(wanted: float) -> float:
    """A u >= 0 with u^2 / 2 + ln(2 Phi(u)) >= wanted, by Newton's method from above, with a margin."""
    # At sqrt(2 wanted) the left side is at least wanted. The last loop checks the result of Newton's steps.
    point = math.sqrt(2.0 * wanted)
    for _ in range(8):
        ratio = math.exp(-point * point / 2.0 - float(log_ndtr(point))) / math.sqrt(2.0 * math.pi)
        excess = point * point / 2.0 + math.log(2.0) + float(log_ndtr(point)) - wanted
        point = max(point - excess / (point + ratio), 0.0)
    margin = 1e-13 * (1.0 + point)
    while (
        point * point / 2.0 + math.log(2.0) + float(log_ndtr(point))
        < wanted * (1.0 + 1e-14) + 1e-15
    ):
        point, margin = point + margin, 2.0 * margin
    return point


BOUNDARIES: dict[str, type[Line] | type[Mixture]] = {Line.kind: Line, Mixture.kind: Mixture}


NOT_A_GUARANTEE = "a bound on the realized loss with this probability, at all times at once; not an (epsilon, delta) guarantee"


@dataclass(frozen=True)
class Mileage(Card):
    """The increment of an odometer by one answer, or by many: exact sums.

    Args:
        rho: The rho of the zero-concentrated guarantee, or of the bounded part of an (epsilon, delta) one.
        drift: The increase of the mean loss by the unbounded part of (epsilon, delta).
        failure: The probability that the loss lies outside the bounded part.
        epsilon: The pure epsilon; infinite (None) if there is none.
    """

    rho: Fraction = Fraction(0)
    drift: Fraction = Fraction(0)
    failure: Fraction = Fraction(0)
    epsilon: Fraction | None = Fraction(0)

    def __add__(self, other: Mileage) -> Mileage:
        both = (
            None if self.epsilon is None or other.epsilon is None else self.epsilon + other.epsilon
        )
        return Mileage(
            self.rho + other.rho, self.drift + other.drift, self.failure + other.failure, both
        )

    def description(self) -> dict[str, str]:
        """This mileage as plain text values."""
        return {name: written(value) for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Reading(Card):
    """A reading of an odometer.

    Args:
        epsilon: The bound on the loss, now and at all other times together with their readings.
        failure: The probability that it fails, under either world; 0 where it holds along every path.
        meaning: The kind of statement.
    """

    epsilon: float
    failure: float
    meaning: str


@dataclass(frozen=True)
class Distance(Card):
    """The state of an odometer.

    Args:
        odometer: The odometer.
        adjacency: The adjacency under which every answer is priced.
        mileage: The exact sums.
        answers: The number of answers.
    """

    odometer: Odometer
    adjacency: Adjacency
    mileage: Mileage = Mileage()
    answers: int = 0


@dataclass(frozen=True)
class Odometer(Listed):
    """With probability at least 1 - delta, under either world, the realized loss is below the reading at all times.

    For mechanisms that are pure or zero-concentrated the boundary holds directly, with failure probability
    delta - mechanism_delta. An (epsilon, delta_i)-DP one is first cut at e = `stretch` epsilon: its loss is above e, or
    below -e in the other world, with probability at most d = delta_i / (1 - e^(epsilon - e)). The remaining part has
    E[e^(l L)] <= e^(l (l + 1) e tanh(e / 2) + l c), c = 2 e d (1 + e^-e) / (e^e - 1): the largest over all
    pairs of measures whose losses lie in [-e, e] and which lack at most d (1 + e^-e) of the other world's mass. The
    sum of the c is added to the reading, and the sum of the d may not exceed `mechanism_delta`.

    It is not an (epsilon, delta) guarantee: nothing stops the loss from growing. A budget (a filter) does.

    >>> from dpcompose import BlackBox
    >>> state = Odometer(1e-6, boundary=Mixture(0.05)).start()
    >>> for _ in range(100): state = state.odometer.step(state, BlackBox(0.1))
    >>> 6.1 < state.odometer.reading(state).epsilon < 6.2
    True

    Args:
        delta: The probability that some reading is ever below the loss; in (0, 1).
        boundary: `Line` or `Mixture`.
        mechanism_delta: The part of delta reserved for mechanisms with a delta of their own; in [0, delta).
        stretch: The cut of (epsilon, delta) mechanisms, as a multiple of their epsilon; finite, > 1.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [WhitehouseRamdasRogersWu2023, Theorem 3]
    """

    delta: float
    _: KW_ONLY
    boundary: Boundary = field(default_factory=lambda: Mixture(0.1))
    mechanism_delta: float = 0.0
    stretch: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check.open_probability("delta", self.delta))
        object.__setattr__(
            self, "mechanism_delta", check.probability("mechanism_delta", self.mechanism_delta)
        )
        object.__setattr__(self, "stretch", check.finite("stretch", self.stretch))
        if not (self.mechanism_delta < self.delta and self._crossing > 0.0):
            raise DomainError(
                "mechanism_delta", self.mechanism_delta, f"below delta = {self.delta!r}"
            )
        if not self.stretch > 1.0:
            raise DomainError("stretch", self.stretch, "a finite number > 1")
        if not isinstance(self.boundary, tuple(BOUNDARIES.values())):
            raise DomainError("boundary", self.boundary, "a Line or a Mixture")

    @property
    def _crossing(self) -> float:
        """The part of delta for the boundary, rounded down."""
        return double_below(Fraction(self.delta) - Fraction(self.mechanism_delta))

    def start(self, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Distance:
        """The state before any answer, under an adjacency that all answers share."""
        check.member("adjacency", adjacency, Adjacency)
        return Distance(self, adjacency)

    def step(self, state: Distance, mechanism: Priced, *, delta: Number | None = None) -> Distance:
        """The state after one more mechanism, to be asked before it runs.

        Args:
            state: The value that `start` or the last `step` returned.
            mechanism: A mechanism, a composition, or anything else that answers as `guarantee.Priced` does.
            delta: The delta on its curve of (epsilon, delta) at which it is cut, if it is neither pure nor
                zero-concentrated.

        Raises:
            DomainError: If the state belongs to another odometer, or delta is outside its domain.
            UnsupportedError: If the mechanism has no finite bound, or needs more of `mechanism_delta` than is left.
        """
        if not isinstance(state, Distance) or state.odometer != self:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("state", state, "a state of this odometer")
        after = state.mileage + self.mileage(mechanism, delta=delta, adjacency=state.adjacency)
        if not after.failure <= Fraction(self.mechanism_delta):
            outside = (
                f"with it the losses are out of bounds with probability {float(after.failure):.6g}"
            )
            reason = f"{outside}, and the odometer keeps {self.mechanism_delta!r} for that"
            remedy = "Open the odometer with a larger mechanism_delta"
            raise pricing.refused(mechanism, reason, remedy)
        return Distance(self, state.adjacency, after, state.answers + 1)

    def mileage(
        self,
        mechanism: Priced,
        *,
        delta: Number | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
    ) -> Mileage:
        """The increment by a mechanism; see `step`."""
        named = pricing.request(mechanism, delta, adjacency)
        rho = pricing.known_rho(mechanism, adjacency=adjacency)
        if rho is not None and rho[1] == 0:
            return Mileage(rho=rho[0], epsilon=pricing.known_pure(mechanism, adjacency=adjacency))
        epsilon, charged = pricing.promise(mechanism, delta=named, adjacency=adjacency)
        return self._cut(mechanism, rounded_up(epsilon), rounded_up(charged))

    def _cut(self, mechanism: object, epsilon: float, delta: float) -> Mileage:
        """The bounded part of an (epsilon, delta) promise; see the class."""
        cut = up(epsilon * self.stretch)
        if not cut < 700.0:
            raise pricing.refused(
                mechanism, f"its loss cannot be cut at {cut!r}", "Name a larger delta"
            )
        margin = 1.0 + 32 * UNIT_ROUNDOFF
        outside = up(delta / -math.expm1(epsilon - cut) * margin)
        if not outside < 1.0:
            reason = f"its loss is above {cut!r} with probability up to {outside!r}"
            larger = "State it with a larger epsilon, which is also true"
            raise pricing.refused(
                mechanism, reason, f"{larger}, or open the odometer with a larger stretch"
            )
        drift = up(2.0 * cut * outside * (1.0 + math.exp(-cut)) / math.expm1(cut) * margin)
        return Mileage(
            Fraction(pure_concentrated(cut).rho), Fraction(drift), Fraction(outside), None
        )

    def reading(self, state: Distance) -> Reading:
        """The bound now; the sum of pure epsilons, which holds along every path, where it is smaller."""
        return self.read(state.mileage)

    def _in_lines(self) -> tuple[str, list[str]]:
        """How sure its readings are, and its boundary."""
        kept = f"of that for mechanisms with a delta of their own: {self.mechanism_delta!r}"
        rows = [f"boundary: {self.boundary!r}", *([kept] if self.mechanism_delta else [])]
        return f"Odometer, every reading right except with probability {self.delta!r}", rows

    def read(self, mileage: Mileage) -> Reading:
        """The reading after that mileage."""
        failure = rounded_up(Fraction(self.mechanism_delta)) if mileage.failure else 0.0
        crossing = self._crossing
        found = up(
            self.boundary.above(rounded_up(mileage.rho), failure=crossing)
            + rounded_up(mileage.drift)
        )
        if mileage.epsilon is not None and rounded_up(mileage.epsilon) <= found:
            return Reading(rounded_up(mileage.epsilon), 0.0, "a bound on the loss along every path")
        return Reading(found, self.delta if failure else crossing, NOT_A_GUARANTEE)

    def description(self) -> dict[str, Any]:
        """This odometer as plain text values."""
        numbers = {"tight_at": self.boundary.tight_at, "delta": self.delta}
        numbers |= {"mechanism_delta": self.mechanism_delta, "stretch": self.stretch}
        texts = {name: written(value) for name, value in numbers.items()}
        return {"odometer": self.boundary.kind, "version": 1, **texts}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """The odometer that `description` described."""
        stated = mapping(description)
        kind = stated.get("odometer")
        if not isinstance(kind, str) or kind not in BOUNDARIES or stated.get("version") != 1:
            raise DomainError("odometer", kind, f"one of {', '.join(BOUNDARIES)}, version 1")
        names = "tight_at", "delta", "mechanism_delta", "stretch"
        tight_at, delta, reserved, stretch = (float(read(name, stated.get(name))) for name in names)
        return cls(
            delta, boundary=BOUNDARIES[kind](tight_at), mechanism_delta=reserved, stretch=stretch
        )
