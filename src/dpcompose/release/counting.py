"""How many counting queries can be answered to an accuracy: Section 3.5.2 of the book, with its
constants.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

from dpcompose import check
from dpcompose.composition import Composable, calibrate
from dpcompose.errors import DomainError, UnreachableError
from dpcompose.guarantee import ApproximateDP, printed_advanced
from dpcompose.mechanisms import Concentrated, Gaussian, Laplace
from dpcompose.numerics import largest
from dpcompose.pictured import Card

MOST_UNITS, MOST_QUERIES, MOST_POINTS = 10**9, 10**15, 10**4
LEAST_CONFIDENCE = 1e-6
_ROUNDS = tuple(sorted({math.ceil(1.05**power) for power in range(450)}))
"""Numbers of rounds to try, up to 3e9."""


@dataclass(frozen=True)
class Counted:
    """How many counting queries one method answers.

    Args:
        method: The composition theorem, or the algorithm that answers.
        reference: The source of the method.
        queries: The largest number of queries, rounded down; infinite beyond 1e300.
        noise: The scale or sigma of the noise on each query; for coordinated answering, the number
            of rounds.
        growth: How `queries` grows with the number n of units, with its constant: "n / 23" or "n^2
            / 5000".
        accuracy: Whether the error bound holds for each query separately ("each"), or for all at
            once.
    """

    method: str
    reference: str
    queries: float
    noise: float
    growth: str
    accuracy: str = "each"


@dataclass(frozen=True)
class AccuracyCurve:
    """The error of one method as the number of queries grows: points (queries, error as a fraction
    of the units).
    """

    method: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class CountingPlan(Card):
    """How many counting queries about a population can be answered; one unit changes each query by
    1.

    Args:
        units: The number of units, n.
        accuracy: The allowed error, as a fraction of the units.
        confidence: The probability with which the error bound holds.
        epsilon: The epsilon of all answers together.
        delta: The delta of all answers together.
        domain: The number of kinds of units, for coordinated answering.
        rows: The methods, in the order of the book.
    """

    units: int
    accuracy: float
    confidence: float
    epsilon: float
    delta: float
    domain: int
    rows: tuple[Counted, ...]

    def curves(self, *, points: int = 25) -> tuple[AccuracyCurve, ...]:
        """Return for each method the error at increasing numbers of queries, for a plot."""
        check.count("points", points, least=2, most=MOST_POINTS)
        most = max(row.queries for row in self.rows if row.accuracy == "each")
        last = min(max(math.log10(max(most, 10)) + 1, 3), math.log10(MOST_QUERIES))
        counts = sorted(
            {max(round(10 ** (last * position / (points - 1))), 1) for position in range(points)}
        )
        errors: dict[str, Callable[[int], float]] = {
            "basic composition": lambda k: _laplace_error(k / self.epsilon, self),
            "Theorem 3.20": lambda k: _laplace_error(1 / _each(k, self), self),
            "tight, Laplace": lambda k: _laplace_error(_tight_scale(k, self), self),
            "tight, Gaussian": lambda k: _gaussian_error(k, self),
        }
        errors |= {
            way.method: partial(_coordinated_error, way, self)
            for way in round_costs(self.epsilon, self.delta)
        }
        return tuple(
            AccuracyCurve(name, tuple((k, min(error(k), 1.0)) for k in counts))
            for name, error in errors.items()
        )


def plan(
    units: int,
    *,
    accuracy: float,
    confidence: float = 0.95,
    epsilon: float,
    delta: float,
    domain: int = 2**20,
) -> CountingPlan:
    """Return how many counting queries can be answered to an accuracy, under each composition
    theorem.

    Noise is Laplace or Gaussian, as large as the accuracy allows: P(|noise| > accuracy * units) <=
    1 - confidence for each query. The result is the largest k such that k queries are certified to
    be (epsilon, delta)-differentially private; integer noise of the same size differs only in late
    digits. Coordinated answering keeps one synthetic table and corrects it where its error is
    largest. It needs the queries in advance, a finite domain and a public number of units; its
    error bound is a theorem and holds for all queries at once. Without a delta its smallest error
    grows as n^(2/3); if the rounds are composed by zCDP, which uses the delta, as sqrt(n), each
    times logarithms.

    Args:
        units: The number of units; from 1 to 10^9.
        accuracy: The allowed error, as a fraction of the units; in (0, 1).
        confidence: From 10^-6 to below 1.
        epsilon: For all answers together; in (0, 100].
        delta: For all answers together; in (0, 1).
        domain: The number of kinds of units; at least 2.

    Raises:
        DomainError: If a number is outside its domain, or the accuracy is below one unit.

    Reference: [DworkRoth2014, Section 3.5.2], [HardtLigettMcSherry2012, Theorem 2.2]
    """
    size = check.count("units", units, least=1)
    part, level = (
        check.open_probability("accuracy", accuracy),
        check.open_probability("confidence", confidence),
    )
    total, delta = check.positive("epsilon", epsilon), check.open_probability("delta", delta)
    kinds = check.count("domain", domain, least=2)
    if not level >= LEAST_CONFIDENCE:
        raise DomainError(
            "confidence", confidence, f"at least {LEAST_CONFIDENCE:g}; any noise reaches less"
        )
    if not (size <= MOST_UNITS and total <= 100):
        raise DomainError(
            "units", units, f"at most {MOST_UNITS:,} units, and an epsilon of at most 100"
        )
    reach = math.floor(part * size)
    if not reach >= 1:
        raise DomainError("accuracy", accuracy, f"an error of at least one of the {size:,} units")
    scale = reach / _laplace_reach(level) * (1 - 1e-12)
    sigma = reach / _gaussian_reach(level) * (1 - 1e-12)
    tight = "[ZhuDongWang2022, Theorem 10]"
    independent = (
        _row(
            "basic composition",
            "[DworkRoth2014, Corollary 3.15]",
            _basic(scale, total),
            scale,
            size,
            1,
        ),
        _row(
            "Theorem 3.20",
            "[DworkRoth2014, Theorem 3.20]",
            _advanced(scale, total, delta),
            scale,
            size,
            2,
        ),
        _row("tight, Laplace", tight, _tight(Laplace(scale), total, delta), scale, size, 2),
        _row("tight, Gaussian", tight, _tight(Gaussian(sigma), total, delta), sigma, size, 2),
    )
    coordinated = tuple(
        _coordinated(way, reach, size, level, kinds) for way in round_costs(total, delta)
    )
    rows = (*independent, *coordinated)
    return CountingPlan(size, part, level, epsilon=total, delta=delta, domain=kinds, rows=rows)


def _laplace_reach(confidence: float) -> float:
    """Return the t with P(|x| <= t b) = 1 - e^-t = confidence, for Laplace noise x of scale b."""
    return -math.log1p(-confidence)


def _gaussian_reach(confidence: float) -> float:
    """Return the t with P(|x| <= t sigma) = confidence, for Gaussian noise x."""
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def _basic(scale: float, epsilon: float) -> int:
    return math.floor(epsilon * scale * (1 - 1e-15))


def _advanced(scale: float, epsilon: float, delta: float) -> int:
    each = ApproximateDP(math.nextafter(1 / scale, math.inf))

    def fits(times: int) -> bool:
        return printed_advanced([(each, times)], slack=delta).epsilon <= epsilon

    return bisect_left(range(1, 2**50), True, key=lambda times: not fits(times))


def _tight(mechanism: Composable, epsilon: float, delta: float) -> int:
    try:
        found = calibrate(
            lambda times: mechanism * int(times), epsilon=epsilon, delta=delta, parameter="increasing", integer=True,
            bracket=(1, MOST_QUERIES),
        )  # fmt: skip
    except UnreachableError:
        return 0
    return int(found.value)


def _row(
    method: str, reference: str, queries: int, noise: float, units: int, power: int
) -> Counted:
    each = f"n^{power}" if power > 1 else "n"
    growth = f"{each} / {units**power / queries:.4g}" if queries else "none"
    return Counted(method, reference, queries, noise, growth)


@dataclass(frozen=True)
class RoundCosts:
    """The noise of T rounds of coordinated answering within one budget: T choices and T
    measurements.

    With t = ln(2 T / (1 - confidence)) each choice and each noise fails with probability (1 -
    confidence) / (2 T). Then all q queries are within 2 n sqrt(ln domain / T) + choice(T) (ln q +
    t) + noise(T, t). This is the proof of the theorem for any failure probability and any
    mechanisms that choose and measure. The theorem as printed has t = ln q.

    Args:
        method: The name of the method.
        choice: Maps T to the scale of one choice by the exponential mechanism.
        noise: Maps T and t to a bound on one noise that fails with probability at most e^-t.

    Reference: [HardtLigettMcSherry2012, Theorem 2.2]
    """

    method: str
    choice: Callable[[int], float]
    noise: Callable[[int, float], float]

    def error(self, turns: int, *, units: int, domain: int, confidence: float) -> float:
        """Return the error bound without the term that grows with ln q."""
        failing = math.log(2 * turns) - math.log1p(-confidence)
        initial = 2 * units * math.sqrt(math.log(domain) / turns)
        return initial + self.choice(turns) * failing + self.noise(turns, failing)


def round_costs(epsilon: float, delta: float) -> tuple[RoundCosts, RoundCosts]:
    """Return the noise under pure epsilon, epsilon / (2 T) for each choice and each Laplace noise;
    and under zCDP, rho / (2 T) for each.

    A choice by the exponential mechanism with epsilon e0 is e0^2 / 8-zCDP, and its scale is 2 / e0.
    Gaussian noise of sigma is 1 / (2 sigma^2)-zCDP, and exceeds sqrt(2 t) sigma with probability at
    most e^-t.
    """
    rho = calibrate(Concentrated, epsilon=epsilon, delta=delta).value
    return (
        RoundCosts(
            "coordinated",
            lambda turns: 4 * turns / epsilon,
            lambda turns, t: 2 * turns * t / epsilon,
        ),
        RoundCosts(
            "coordinated, zCDP",
            lambda turns: math.sqrt(turns / rho),
            lambda turns, t: math.sqrt(2 * t * turns / rho),
        ),
    )


def _coordinated(
    costs: RoundCosts, reach: int, units: int, confidence: float, domain: int
) -> Counted:
    """Return the largest number of queries whose error is within `reach`, over all numbers of
    rounds.
    """
    best, rounds = 0.0, 0
    for turns in _ROUNDS:
        left = reach - costs.error(turns, units=units, domain=domain, confidence=confidence)
        logarithm = left / costs.choice(turns)
        if logarithm > best:
            best, rounds = logarithm, turns
    queries = 0.0 if rounds == 0 else math.floor(math.exp(best)) if best < 690 else math.inf
    growth = f"e^(n / {units / best:.4g})" if best else "none"
    return Counted(
        costs.method,
        "[HardtLigettMcSherry2012, Theorem 2.2]",
        queries,
        rounds,
        growth,
        "all at once",
    )


def _laplace_error(scale: float, plan: CountingPlan) -> float:
    return scale * _laplace_reach(plan.confidence) / plan.units


def _each(times: int, plan: CountingPlan) -> float:
    """Return the epsilon of each of `times` queries that Theorem 3.20 composes within the budget."""

    def fits(each: float) -> bool:
        total = printed_advanced([(ApproximateDP(each), times)], slack=plan.delta)
        return each < 1e-300 or total.epsilon <= plan.epsilon

    return max(largest(fits, low=0.0, high=plan.epsilon), 1e-300)


def _tight_scale(times: int, plan: CountingPlan) -> float:
    """Return the least scale of Laplace noise with which `times` queries are within the budget."""
    return calibrate(
        lambda scale: Laplace(scale) * times, epsilon=plan.epsilon, delta=plan.delta
    ).value


def _gaussian_error(times: int, plan: CountingPlan) -> float:
    """Return the error of k queries with Gaussian noise: mu^2 is additive, so they need sqrt(k)
    times the sigma of one.
    """
    one = calibrate(Gaussian, epsilon=plan.epsilon, delta=plan.delta).value
    return one * math.sqrt(times) * _gaussian_reach(plan.confidence) / plan.units


def _coordinated_error(costs: RoundCosts, plan: CountingPlan, times: int) -> float:
    def error(turns: int) -> float:
        rest = costs.error(turns, units=plan.units, domain=plan.domain, confidence=plan.confidence)
        return costs.choice(turns) * math.log(times) + rest

    return min(error(turns) for turns in _ROUNDS) / plan.units
