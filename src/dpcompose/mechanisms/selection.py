"""Selection among candidates: the exponential mechanism, permute-and-flip, noisy maxima,
the sparse vector technique, votes of teachers.

Theorem. Let noises Z_i be independent, with densities f_i of bounded hazard: f_i <= beta (1 - F_i). Let one record move
the scores s_i by amounts in [-a, b]; w = a + b. The winner, the index of the largest s_i + Z_i, is dominated by the
Laplace loss of epsilon = beta w, for any number of candidates. Two candidates with exponential noise attain it at every
epsilon. The proof is in docs/theorems.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from dpcompose.errors import DomainError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import (
    NOTHING,
    Atoms,
    BoundedRange,
    BoundedRangeAttained,
    Chained,
    GaussianShift,
    LaplaceShift,
    Law,
    Laws,
    Pair,
    Reversed,
    TwoPoint,
    bounded_by,
)
from dpcompose.mechanisms.base import ContinuousNoise, Mechanism, Stated, quotient
from dpcompose.mechanisms.parameter import (
    EPSILON,
    FLAG,
    HOLDS_UNDER,
    Parameter,
    amount,
    count,
    declare,
    noise,
)
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, exact, up

SMALLEST, LARGEST = 1e-9, 300.0


def _bounded_range(name: str, value: Any) -> float:
    epsilon = EPSILON.domain(name, value)
    if not epsilon <= LARGEST:
        raise DomainError(name, epsilon, f"at most {LARGEST:g}", "BlackBox(epsilon) dominates it")
    return epsilon


@dataclass(frozen=True, init=False, repr=False)
class Exponential(Stated):
    """Any epsilon-bounded-range mechanism: its losses lie in an interval of length epsilon.

    Examples are the exponential mechanism with weights e^(epsilon u / (2 D)), D the sensitivity of
    the utility u, and report-noisy-max with Gumbel noise. One run attains the dominating pair at
    every epsilon; for several runs, the lower end is that of mechanisms of one fixed shape.

    >>> from dpcompose import Exponential
    >>> Exponential(1.0).delta(epsilon=0.5).contains(0.07740468631569081)
    True

    Args:
        epsilon: The length of the interval of losses, in nats; >= 0.
        holds_under: The adjacency under which epsilon is stated. Under replacement, a value stated
            for add-remove counts as 2 epsilon.

    Raises:
        DomainError: If epsilon is outside its domain.

    Reference: [DongDurfeeRogers2020, Definition 3.1]
    """

    stated: float = field(metadata=declare(epsilon=amount(_bounded_range)))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))
    event = "ExponentialMechanismDpEvent", {"epsilon": "epsilon"}

    def __init__(self, epsilon: float, *, holds_under: Adjacency = Adjacency.ADD_REMOVE) -> None:
        self._state(epsilon=epsilon, holds_under=holds_under)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon as the typed decimal; 2 epsilon for a group of two."""
        return TypedAmounts(exact(self.stated) * (2 if self._doubled(adjacency) else 1))

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the dominating law, with the attained two-point laws that it dominates."""
        epsilon = 2 * self.stated if self._doubled(adjacency) else self.stated
        if epsilon < SMALLEST:
            return bounded_by(TwoPoint(epsilon), NOTHING)
        inside = attained_pairs(epsilon)
        loss = BoundedRange(epsilon)
        return bounded_by(loss, *inside, tight_alone=True)


def attained_pairs(epsilon: float) -> tuple[Pair, ...]:
    """Return the two-point laws, in both orders, that mechanisms of bounded range `epsilon`
    attain.
    """
    laws = [BoundedRangeAttained(epsilon, at) for at in range(3)]
    return tuple([Pair(law, Reversed(law)) for law in laws])


LEAST_TAIL = 1e-250
NOISES = ("laplace", "exponential", "gumbel")
Tail = Callable[[float], float]


def _noise_name(name: str, value: Any) -> str:
    if not (isinstance(value, str) and value in NOISES):
        remedy = "For Gaussian noise: GaussianDP(L2 distance of the score vectors / sigma)"
        raise DomainError(name, value, "one of " + ", ".join(map(repr, NOISES)), remedy)
    return value


_NOISE = Parameter("text", _noise_name)
_SCALE = declare(noise())
_POSITIVES = count(10**9, "an integer from 1 to 10^9")


@dataclass(frozen=True, init=False, repr=False)
class PermuteAndFlip(Stated):
    """Permute-and-flip over any number of candidates.

    Candidates are visited in random order and each is accepted with probability e^(rate (score -
    best)), with rate = epsilon / (2 D), or epsilon / D if the scores are monotone, and D their
    sensitivity.

    It is the noisy maximum with exponential noise, so that its loss is at most that of Laplace
    noise. Two candidates attain it at every epsilon; lower ends of several answers are those of two
    candidates at a fixed gap. The coins must be exact, or the noise continuous.

    >>> from dpcompose.mechanisms import PermuteAndFlip
    >>> PermuteAndFlip(1.0).delta(epsilon=0.3).contains(0.29531191028128656)
    True

    Args:
        epsilon: The largest loss, in nats; >= 0.
        monotone: Whether adding a record lowers no score, or raises none, so that the rate is
            epsilon / D.
        holds_under: The adjacency under which D is the sensitivity. Under replacement, a statement
            for add-remove counts as 2 epsilon, and no scores are monotone.

    Raises:
        DomainError: If a parameter is outside its domain.

    Reference: [McKennaSheldon2020, Algorithm 1], [DingKiferSEtAl2021]
    """

    stated: float = field(metadata=declare(epsilon=EPSILON))
    monotone: bool = field(metadata=declare(FLAG))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))
    event = "PermuteAndFlipDpEvent", {"epsilon": "epsilon"}

    def __init__(
        self,
        epsilon: float,
        *,
        monotone: bool = False,
        holds_under: Adjacency = Adjacency.ADD_REMOVE,
    ) -> None:
        self._state(epsilon=epsilon, holds_under=holds_under, monotone=monotone)
        _require_not_monotone(self.monotone, self.holds_under)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon as the typed decimal; 2 epsilon under replacement, which moves the scores
        at most twice as far.
        """
        return TypedAmounts(exact(self.stated) * (2 if self._doubled(adjacency) else 1))

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the Laplace law of epsilon, or of 2 epsilon, with the attained laws of two
        candidates.
        """
        epsilon = 2 * self.stated if self._doubled(adjacency) else self.stated
        return _noisy_maximum(epsilon, LaplaceShift(epsilon), _laplace_tail, tight=True)


@dataclass(frozen=True, repr=False)
class NoisyMax(ContinuousNoise):
    """The index of the largest of any number of scores, each with independent noise; no score is
    released.

    Its loss is at most that of Laplace noise with epsilon = w / scale, where w is the largest
    change of the difference of two scores: twice the sensitivity, or once if adding a record moves
    all scores in one direction. With Gumbel noise it is the exponential mechanism, and has the
    smaller loss of `Exponential`. The noise must be continuous: with integers, ties break the
    theorem. For Gaussian noise use GaussianDP(L2 distance of the score vectors / sigma).

    >>> from dpcompose.mechanisms import NoisyMax
    >>> NoisyMax(2.0, noise="exponential").epsilon(delta=0.0).contains(1.0)
    True

    Args:
        scale: The scale of the noise; finite, > 0.
        noise: "laplace", "exponential" or "gumbel".
        sensitivity: The largest change of one score when a record is added or removed; finite, > 0.
        replace_sensitivity: The largest change when a record is replaced; by default twice the
            sensitivity.
        monotone: Whether adding a record lowers no score, or raises none; it helps under add-remove
            only.

    Raises:
        DomainError: If a parameter is outside its domain.

    Reference: [DworkRoth2014, Claim 3.9]
    """

    scale: float = field(metadata=_SCALE)
    _: KW_ONLY
    noise: str = field(metadata=declare(_NOISE))
    monotone: bool = field(default=False, metadata=declare(FLAG))
    noise_name: ClassVar[str] = "scale"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._checked(noise=self.noise, monotone=self.monotone)

    def _apart(self, adjacency: Adjacency) -> float:
        """Return the largest change of the difference of two scores. If scores only rise with a record, it is one
        sensitivity where a record is added or removed, and two where it is replaced; else always two.
        """
        reach = self.sensitivity_under(adjacency)
        if not self.monotone:
            return 2 * reach
        return 2 * min(reach, self.sensitivity) if adjacency is Adjacency.REPLACE else reach

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon as an exact amount, with each parameter as double or decimal, whichever
        costs more.
        """
        if not self.monotone:
            return TypedAmounts(2 * self._quotient(adjacency))
        once = self._quotient(Adjacency.ADD_REMOVE)
        return TypedAmounts(
            2 * min(self._quotient(adjacency), once) if adjacency is Adjacency.REPLACE else once
        )

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the Laplace law, or for Gumbel noise that of bounded range, with the attained laws
        of two candidates.
        """
        apart = self._apart(adjacency)
        epsilon = apart / self.scale
        if self.noise == "gumbel" and SMALLEST <= epsilon <= LARGEST:
            inside = attained_pairs(epsilon * (1 - 4 * UNIT_ROUNDOFF))
            loss = BoundedRange(up(epsilon))
            return bounded_by(loss, *inside, tight_alone=True)
        tail = {
            "laplace": _two_laplace_tail,
            "exponential": _laplace_tail,
            "gumbel": _logistic_tail,
        }[self.noise]
        loss = LaplaceShift(epsilon, 1, (apart, self.scale))
        return _noisy_maximum(epsilon, loss, tail, tight=self.noise == "exponential")


@dataclass(frozen=True, init=False, repr=False)
class AboveThreshold(Stated):
    """The sparse vector technique: answers whether each query is above a threshold, until
    `positives` answers were "above".

    The threshold has noise Lap(D / e1), drawn once; every answer has noise Lap(2 c D / e2), with c
    = positives, or Lap(c D / e2) if the queries are monotone; e1 + e2 = epsilon and e2 / e1 = (2
    c)^(2/3), or c^(2/3). The whole interaction is epsilon-private for any adaptive queries, and is
    charged in full when it starts, for any number of "below" answers. A restarted one is a new
    charge, and a released value needs noise and a charge of its own. It composes with concurrent
    interactions. Gaussian noise is not offered.

    >>> from dpcompose.mechanisms import AboveThreshold
    >>> AboveThreshold(1.0, positives=5).epsilon(delta=0.0).upper
    1.0

    Args:
        epsilon: The epsilon of the whole interaction, in nats; >= 0.
        positives: The number c of "above" answers after which it ends; from 1 to 10^9.
        monotone: Whether adding a record lowers no query, or raises none.
        holds_under: The adjacency under which D is the sensitivity of every query. Under
            replacement, a statement for add-remove counts as for a group of two, and no queries are
            monotone.

    Raises:
        DomainError: If a parameter is outside its domain.

    Reference: [LyuSuLi2017, Theorems 4 and 5], [VadhanWang2021]
    """

    stated: float = field(metadata=declare(epsilon=EPSILON))
    positives: int = field(metadata=declare(_POSITIVES))
    monotone: bool = field(metadata=declare(FLAG))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))

    def __init__(
        self,
        epsilon: float,
        *,
        positives: int = 1,
        monotone: bool = False,
        holds_under: Adjacency = Adjacency.ADD_REMOVE,
    ) -> None:
        self._state(
            epsilon=epsilon, holds_under=holds_under, positives=positives, monotone=monotone
        )
        _require_not_monotone(self.monotone, self.holds_under)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon as the typed decimal; 2 epsilon for a group of two."""
        return TypedAmounts(exact(self.stated) * (2 if self._doubled(adjacency) else 1))

    @property
    def scales(self) -> tuple[float, float]:
        """The noise scales of the threshold and of each answer, in units of the sensitivity."""
        count = self.positives if self.monotone else 2 * self.positives
        share = 1 / (1 + count ** (2 / 3))
        return 1 / (share * self.stated), count / ((1 - share) * self.stated)

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the two-point law with the attained laws of a single query; for a group of two,
        its trade-off function iterated.
        """
        doubled = self._doubled(adjacency)
        loss = (
            Chained(self.stated, 0.0, categories=2, steps=2) if doubled else TwoPoint(self.stated)
        )
        if not SMALLEST <= self.stated <= LARGEST:
            return bounded_by(loss, NOTHING)
        threshold, answer = self.scales
        ratio = answer / threshold
        tail = _two_laplace_tail if ratio < 1.1 else _unequal_tail(ratio)
        # One query moves by one sensitivity, by two for a group of two.
        inside = threshold_pairs(tail, (2 if doubled else 1) / threshold)
        return bounded_by(loss, *inside)


@dataclass(frozen=True, repr=False)
class NoisyArgmax(Mechanism):
    """The class with the most votes of teachers, each count with noise N(0, sigma^2): PATE's answer
    for one example.

    One record belongs to one teacher, whose vote moves from one class to another: an L2 distance of
    sqrt 2, for any number of classes. The bound does not depend on the votes. A replaced record may
    change the votes of two teachers.

    >>> from dpcompose.mechanisms import NoisyArgmax
    >>> round((NoisyArgmax(40.0) * 1000).gdp(), 9)
    1.118033989

    Args:
        sigma: The standard deviation of the noise of each count; between 1e-5 and 1e11.

    Raises:
        DomainError: If sigma is outside its domain.

    Reference: [PapernotSongEtAl2018, Section 4.1]
    """

    sigma: float = field(metadata=declare(noise("1e-5", "1e11")))

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return mu squared = 2 / sigma^2, exact; four times that under replacement."""
        votes = 8 if adjacency is Adjacency.REPLACE else 2
        return TypedAmounts.gaussian(votes * quotient(self.sigma, 1.0) ** 2)

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the Gaussian law, with the attained laws of two classes whose counts differ by
        fixed integers.
        """
        votes, spread = (2 if adjacency is Adjacency.REPLACE else 1), math.sqrt(2) * self.sigma
        loss = GaussianShift(votes * math.sqrt(2) / self.sigma, 3)
        # The difference of two counts has noise of deviation `spread`; each teacher moves it by 2.
        gaps = sorted(
            {-votes, *(round(deviations * spread) for deviations in (0.5, 1.5, 2.5, 3.5, 5.0))}
        )
        inside = threshold_pairs(
            _normal_tail, 2 * votes / spread, starts=[gap / spread for gap in gaps]
        )
        return bounded_by(loss, *inside)


def threshold_pairs(tail: Tail, width: float, *, starts: Sequence[float] = ()) -> tuple[Pair, ...]:
    """Return the pairs of two candidates: whether the difference of their noises exceeds a start,
    or start + width.

    Args:
        tail: Returns P[difference > y] for y >= 0, accurate to 128 + 4 (1 + y)^2 units of roundoff
            if y is accurate to two. The law of the difference is symmetric.
        width: The largest change of the difference of scores, in units of the noise.
        starts: The thresholds in the same units; by default -width / 2 (even odds in the middle), 0
            and width.
    """
    found: list[Pair] = []
    for start in starts or (-width / 2, 0.0, width):
        places = start, start + width
        (upper, lower), (other, least) = (
            [tail(y) if y > 0 else 1 - tail(-y) for y in (at, -at)] for at in places
        )
        small = min(upper, lower, other, least)
        if not (small > LEAST_TAIL and SMALLEST < width < LARGEST):
            continue
        error = UNIT_ROUNDOFF * (256 + 8 * (1 + max(map(abs, places))) ** 2)
        nearest = min(abs(math.log(upper / other)), abs(math.log(lower / least)))
        if nearest > 1e-7:
            ratio_error = 4 * error * (1 + 1 / nearest)
            atoms = Atoms(
                (upper, lower),
                (other, least),
                relative_error=error,
                log_ratio_relative_error=ratio_error,
            )
            found.append(Pair(atoms, atoms.reverse))
    return tuple(found) or (NOTHING,)


def _noisy_maximum(epsilon: float, loss: Law, tail: Tail, *, tight: bool) -> Laws:
    """Return a dominating loss with the attained pairs of two candidates at symmetric gaps, at even
    odds, and one move beyond.

    Args:
        epsilon: The largest loss in nats.
        loss: The dominating law.
        tail: The tail probability of the difference of two noises.
        tight: Whether two candidates attain the law at every epsilon.
    """
    if epsilon < SMALLEST:
        loss, tight = TwoPoint(epsilon), False
    inside = threshold_pairs(tail, epsilon)
    return bounded_by(loss, *inside, tight_alone=tight)


def _laplace_tail(y: float) -> float:
    """Return P[difference > y] for the difference of two exponential noises."""
    return math.exp(-y) / 2


def _two_laplace_tail(y: float) -> float:
    """Return P[difference > y] for the difference of two Laplace noises."""
    return math.exp(-y) * (2 + y) / 4


def _logistic_tail(y: float) -> float:
    """Return P[difference > y] for the difference of two Gumbel noises."""
    return 1 / (1 + math.exp(min(y, 700.0)))


def _normal_tail(y: float) -> float:
    return math.erfc(y / math.sqrt(2)) / 2


def _unequal_tail(ratio: float) -> Tail:
    """Return the tail probability of the difference of Laplace noises of scales 1 and `ratio` >
    1.
    """
    square = ratio * ratio
    return lambda y: (square * math.exp(-y / ratio) - math.exp(-y)) / (2 * (square - 1))


def _require_not_monotone(monotone: bool, holds_under: Adjacency) -> None:
    """Raise a DomainError if monotone scores are stated under replacement."""
    if monotone and holds_under is Adjacency.REPLACE:
        remedy = "A replaced record moves scores both ways; use monotone=False"
        raise DomainError("monotone", monotone, "False under Adjacency.REPLACE", remedy)
