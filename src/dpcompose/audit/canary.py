"""Audit of one training run: canaries are included by fair coins, and the coins are guessed from
scores of the result.

Theorem. Let c of m canaries be guessed, N of the guesses right, S_t =
P(N >= t), and let the run be f-DP with T = 1 - f. For each canary compare the run with the one in
which only its coin is flipped: a right guess of N >= t becomes a wrong one of N >= t - 1. The mean
over canaries and coins, since T is concave, gives
  A_t <= m T(B_{t-1} / m),  A_t = sum over i >= t of i P(N = i),  B_t = sum over i >= t of (c - i)
  P(N = i).
With g the inverse of T, A_t = t S_t + sum over i > t of S_i and B_t = c S_t - A_t, that is
  S_{t-1} >= (m g(A_t / m) + S_t + sum over i > t of S_i) / (c - t + 1).
The right side increases with every S_i of i >= t, so the least S_v, then the least S_{v-1}, and so
on, are the least of all: if they make S_0 exceed 1, P(N >= v) is less than that S_v. For (epsilon,
delta)-DP the probability is also at most P(B >= v) + 2 m delta max over i of P(v > B >= v - i) / i,
B ~ Bin(c, 1 / (1 + e^-epsilon)). The smaller bound is used. The numbers of guesses and their
fractions of alpha are fixed before the scores are examined.

References: [MahloujifarMelisChaudhuri2025], [SteinkeNasrJagielski2023, Theorem 5.2]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, ndtr, ndtri

from dpcompose import check
from dpcompose.audit.claim import Verdict
from dpcompose.composition import Composable, compose
from dpcompose.errors import DomainError
from dpcompose.mechanisms import BlackBox, GaussianDP
from dpcompose.numerics import at_least
from dpcompose.values import Bound

FEWEST, LARGEST, LARGEST_MU = 8, 30.0, 16.0
"""The smallest number of guesses, and the largest epsilon and mu that are searched."""
MARGIN, SLACK = 1 + 1e-6, 1 + 1e-9
"""Safety factors above the relative errors of the delta term's masses and of the recursion."""
MAIN = 0.95
"""The fraction of alpha for the most promising number of guesses; others divide the remainder."""
STEPS = 24
"""Bisection steps of the search for a bound; the lower end of the final interval is returned."""


@dataclass(frozen=True)
class Canaries:
    """The result of auditing one training run with canaries.

    Args:
        verdict: `REFUTED` or `NOT_REFUTED`.
        epsilon: The epsilon at `delta` of the run. Its lower end is a lower confidence bound, valid
            with probability 1 - alpha; its upper end is infinite.
        delta: The delta at which epsilon is bounded.
        guesses: The number of guesses that gives the strongest evidence.
        right: How many of those guesses were right.
        pvalue: An upper bound on the p-value under the claim, divided by the fraction of alpha that
            this number of guesses has.
        mu: If the claim is Gaussian, a lower confidence bound on mu of the run's Gaussian DP;
            otherwise None.
        gaussian: The epsilon at `delta` of that mu, a lower bound only if the run itself is
            Gaussian; otherwise None.
    """

    verdict: Verdict
    epsilon: Bound
    delta: float
    guesses: int
    right: int
    pvalue: float
    mu: float | None = None
    gaussian: float | None = None


Inverse = Callable[[float], float]
"""Maps an event's probability in one world to its least in the other: the inverse of 1 - f."""


def canaries(
    scores: Any, bits: Any, *, claim: Composable, alpha: float = 0.05, delta: float | None = None
) -> Canaries:
    """Audit one training run from the scores of its canaries.

    Args:
        scores: One number per canary, larger if the model behaves as if the canary had been
            included.
        bits: Whether each canary was included, 0 or 1: independent fair coins, drawn before the
            run.
        claim: The privacy claim of the run.
        alpha: The probability of refuting a true claim, in (0, 1).
        delta: The delta at which the claim's privacy curve is tested. A `BlackBox` claim has its
            own; None for alpha over 1,000 times the number of canaries.

    Returns:
        The verdict, with a lower confidence bound on epsilon.

    Raises:
        DomainError: If an argument is outside its domain.
    """
    alpha = check.open_probability("alpha", alpha)
    known, inside = _numbers(scores, bits)
    if isinstance(claim, BlackBox):
        delta, epsilon = claim.stated.delta, claim.stated.epsilon
    else:
        delta = check.open_probability(
            "delta", alpha / (1000 * len(known)) if delta is None else delta
        )
        epsilon = claim.epsilon(delta=delta).upper
    order, total = np.argsort(known, kind="stable"), len(known)

    def right(guesses: int) -> int:
        low, high = order[: guesses // 2], order[total - guesses // 2 :]
        return int((~inside[low]).sum() + inside[high].sum())

    tried = _tried(total, epsilon, delta, alpha)
    counts = {guesses: right(guesses) for guesses in tried}

    def pvalues(epsilon: float) -> dict[int, float]:
        return {
            guesses: chance(guesses, counts[guesses], total, epsilon, delta) / part
            for guesses, part in tried.items()
        }

    claimed = pvalues(epsilon) if epsilon <= LARGEST else dict.fromkeys(tried, 1.0)
    best = min(claimed, key=lambda guesses: claimed[guesses])
    # The probability grows with epsilon, so a refutation of one epsilon refutes every smaller one.
    low = _largest(
        lambda each: any(
            _refuted(alpha * part, counts[guesses], guesses, total, each, delta)
            for guesses, part in tried.items()
        ),
        LARGEST,
    )
    mu = _gaussian_line(right, total, claim, delta, alpha)
    return Canaries(
        Verdict.REFUTED if claimed[best] <= alpha else Verdict.NOT_REFUTED,
        Bound(low, math.inf),
        delta,
        guesses=best,
        right=counts[best],
        pvalue=min(1.0, claimed[best]),
        mu=mu,
        gaussian=None if mu is None else GaussianDP(mu).epsilon(delta=delta).lower if mu else 0.0,
    )


def _gaussian_line(
    right: Callable[[int], int], total: int, claim: Composable, delta: float, alpha: float
) -> float | None:
    """A lower confidence bound on the run's mu if the claim is Gaussian DP; otherwise None."""
    stated = compose(claim).gdp()
    if stated is None or isinstance(claim, BlackBox):
        return None

    def low(guesses: int, number: int) -> float:
        return _largest(lambda mu: _excluded(alpha, number, guesses, total, _of_mu(mu)), LARGEST_MU)

    guesses = _promising(total, stated, low)
    return low(guesses, right(guesses))


def _tried(total: int, epsilon: float, delta: float, alpha: float) -> dict[int, float]:
    """The numbers of guesses to evaluate, each with its fraction of alpha.

    They depend only on the claim and on the number of canaries, not on scores. A pure claim fits
    randomized response, whose guesses are equally good, or noise with exponential tails: the
    numbers of guesses then have equal fractions.

    Args:
        total: The number of canaries.
        epsilon: The claim's epsilon at `delta`.
        delta: The claim's delta.
        alpha: The probability of refuting a true claim.
    """
    others = {2 * (part // 2) for part in (total, total // 4) if part >= FEWEST} or {
        2 * (total // 2)
    }
    if not (delta > 0 and epsilon <= LARGEST):
        return dict.fromkeys(others, 1 / len(others))

    def low(guesses: int, number: int) -> float:
        return _largest(
            lambda each: _excluded(alpha, number, guesses, total, _of_epsilon(each, delta)), LARGEST
        )

    mu = _largest(lambda mu: GaussianDP(mu).delta(epsilon=epsilon).upper <= delta, LARGEST_MU, 12)
    main = _promising(total, max(mu, 0.01), low)
    others -= {main}
    return {main: MAIN if others else 1.0} | dict.fromkeys(others, (1 - MAIN) / max(1, len(others)))


def _promising(total: int, mu: float, low: Callable[[int, int], float]) -> int:
    """The number of guesses with the largest expected lower bound, if including a canary shifts its
    Gaussian score by mu.

    Args:
        total: The number of canaries.
        mu: The shift of a score, in standard deviations.
        low: The lower bound from a number of guesses and a number of right ones.
    """
    found, best = 2 * (total // 2), -1.0
    for third in range(3 * total.bit_length()):
        guesses = 2 * round(total * 2 ** (-third / 3) / 2)
        if guesses < FEWEST and third:
            break
        part = guesses / total
        cut = _largest(
            lambda z, part=part: float(ndtr(-z) + ndtr(mu - z)) >= part, mu + 40.0, low=-1.0
        )
        rate = min(1.0, float(ndtr(mu - cut) / (ndtr(-cut) + ndtr(mu - cut))))
        spread = math.sqrt(guesses * rate * (1 - rate))
        counts = (round(guesses * rate + side * spread) for side in (-1, 0, 1))
        mean = sum(low(guesses, min(guesses, each)) for each in counts)
        if mean > best:
            found, best = guesses, mean
    return found


def _largest(
    holds: Callable[[float], bool], high: float, steps: int = STEPS, *, low: float = 0.0
) -> float:
    """By bisection, about the largest number in [low, high] at which a monotone condition holds;
    else `low`.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _of_epsilon(epsilon: float, delta: float) -> Inverse:
    shrunk, growth = math.exp(-epsilon), math.exp(epsilon)
    return lambda mass: max(0.0, shrunk * (mass - delta), 1 - delta - growth * (1 - mass))


def _of_mu(mu: float) -> Inverse:
    return lambda mass: float(ndtr(ndtri(min(mass, 1.0)) - mu))


def _excluded(tail: float, right: int, guesses: int, canaries: int, inverse: Inverse) -> bool:
    """Whether P(N >= right) is less than `tail` for every run with this trade-off function.

    The proof is the theorem at the top of the file; `inverse` is g there.
    """
    mass, above = tail, 0.0
    for count in range(right, 0, -1):
        needed = canaries * inverse((count * mass + above) / canaries) + mass + above
        above += mass
        mass = max(mass, needed / (guesses - count + 1))
        if mass > SLACK:
            return True
    return False


def _numbers(scores: Any, bits: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        known, inside = np.asarray(scores, dtype=np.float64), np.asarray(bits, dtype=np.float64)
    except (TypeError, ValueError):
        raise DomainError("scores", scores, "a number for each canary") from None
    if known.ndim != 1 or known.shape != inside.shape or len(known) < 2:
        raise DomainError("scores", known.shape, "at least two numbers, and as many bits")
    if np.isnan(known).any():
        raise DomainError("scores", math.nan, "numbers; a run that gives NaN has no score")
    if not np.isin(inside, (0, 1)).all():
        raise DomainError("bits", bits, "0 or 1 for each canary")
    return known, inside == 1


def _refuted(
    level: float, right: int, guesses: int, canaries: int, epsilon: float, delta: float
) -> bool:
    """Whether at least `right` right guesses have probability at most `level` under (epsilon,
    delta)-DP.
    """
    excluded = _excluded(level, right, guesses, canaries, _of_epsilon(epsilon, delta))
    return excluded or _binomial(guesses, right, canaries, epsilon, delta) <= level


def chance(guesses: int, right: int, canaries: int, epsilon: float, delta: float) -> float:
    """An upper bound on the probability of at least `right` right guesses under (epsilon,
    delta)-DP.

    >>> round(chance(10, 10, 10, 0.0, 0.0) * 1024, 6)
    1.0
    """
    if not right:
        return 1.0
    inverse = _of_epsilon(epsilon, delta)
    # If a tail probability is excluded, all larger ones are.
    power = _largest(
        lambda power: _excluded(math.exp(-power), right, guesses, canaries, inverse), 700.0
    )
    return min(_binomial(guesses, right, canaries, epsilon, delta), math.exp(-power))


def _binomial(guesses: int, right: int, canaries: int, epsilon: float, delta: float) -> float:
    """The binomial bound on the probability of at least `right` right guesses, with its delta term;
    at most 1.
    """
    if not right:
        return 1.0
    rate = min(1.0, (1 / (1 + math.exp(-epsilon))) * (1 + 2.0**-50)) if epsilon else 0.5
    tail = at_least(right, times=guesses, rate=rate)[0].upper
    if not delta:
        return min(1.0, tail)
    below = np.arange(right - 1, -1, -1)
    logs = gammaln(guesses + 1) - gammaln(below + 1) - gammaln(guesses - below + 1)
    logs += below * math.log(rate) + (guesses - below) * math.log1p(-rate)
    most = float(np.max(np.cumsum(np.exp(logs)) / np.arange(1, right + 1))) * MARGIN
    return min(1.0, (tail + 2 * canaries * delta * most) * MARGIN)
