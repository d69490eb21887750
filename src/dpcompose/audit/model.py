"""Theorem 8b: an e-process for "the code draws from this law", on noise that was seen.

For a law p and any q, chosen before, the product of q(r) / p(r) over independent residuals r has mean 1 under p: so has
a mixture of such products, and it reaches 1/alpha with probability at most alpha, at any time. Bets: the law stretched
or squeezed; a density learned from the past on quantiles of p; one that depends on the residual before; values that
come again. It refutes the *model* of the code, not its privacy: noise with another law may be as private.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.audit.outcome import Reals
from dpcompose.audit.verdict import Verdict
from dpcompose.errors import DomainError

STRETCHED = tuple(factor for size in (1.05, 1.1, 1.2, 1.4, 2.0, 4.0) for factor in (size, 1 / size))
"""Scales that are bet on, as multiples of the stated one."""
CELLS, CONTEXTS, TAILS = (4, 16, 64), 4, 12
"""Quantiles that are learned about; those that the next one may depend on; halvings of either tail."""
SCALES, LEARNED, AGAIN = 0.6, 0.3, 0.1
"""The prior weights of scales, of learned densities, and of values that come again."""
ATOM = 2.0**-20
"""More than the probability that noise on real numbers, in floats, has any one value."""
ROUNDING = 1e-12
"""More than the rounding of the logarithm of a factor; paid for each residual."""
BATCH = 4096


@dataclass(frozen=True)
class Law:
    """The law of noise.

    Args:
        name: Its name, with its parameter.
        log: ln of the density, or of the probability of each integer, for the law stretched by a factor.
        below: P(X < x).
        discrete: Whether it is on the integers.
    """

    name: str
    log: Callable[[Reals, float], Reals]
    below: Callable[[Reals], Reals]
    discrete: bool = False

    def quantiles(self, residuals: Reals, uniform: Reals) -> Reals:
        """Numbers that are uniform on [0, 1] under the law; atoms are spread by numbers of the auditor's own."""
        low = self.below(residuals)
        return low + uniform * (self.below(residuals + 1) - low) if self.discrete else low

    def atom(self, values: Reals) -> Reals:
        """The probability of each value, at most."""
        return np.exp(self.log(values, 1.0)) if self.discrete else np.full(len(values), ATOM)


def laplace(scale: float) -> Law:
    """Noise with density e^(-|x| / scale) / (2 scale)."""
    scale = check.positive("scale", scale)

    def log(x: Reals, factor: float) -> Reals:
        return -np.abs(x) / (scale * factor) - math.log(2 * scale * factor)

    def below(x: Reals) -> Reals:
        tail = 0.5 * np.exp(-np.abs(x) / scale)
        return np.where(x < 0, tail, 1 - tail)

    return Law(f"Laplace, scale {scale:g}", log, below)


def gaussian(sigma: float) -> Law:
    """Normal noise."""
    from scipy.special import ndtr

    sigma = check.positive("sigma", sigma)

    def log(x: Reals, factor: float) -> Reals:
        return -((x / (sigma * factor)) ** 2) / 2 - math.log(
            sigma * factor * math.sqrt(2 * math.pi)
        )

    return Law(
        f"Gaussian, sigma {sigma:g}", log, lambda x: np.asarray(ndtr(x / sigma), dtype=np.float64)
    )


def discrete_laplace(scale: float) -> Law:
    """Noise on the integers, with probabilities in proportion to e^(-|x| / scale)."""
    scale = check.positive("scale", scale)
    ratio = math.exp(-1 / scale)

    def log(x: Reals, factor: float) -> Reals:
        wide = scale * factor
        return np.where(
            x == np.rint(x), -np.abs(x) / wide + math.log(math.tanh(0.5 / wide)), -np.inf
        )

    def below(x: Reals) -> Reals:
        tail = np.exp(-np.abs(np.where(x > 0, x, 1 - x)) / scale) / (1 + ratio)
        return np.where(x > 0, 1 - tail, tail)

    return Law(f"discrete Laplace, scale {scale:g}", log, below, discrete=True)


@dataclass(frozen=True)
class Modelled:
    """The answer of residuals about a law.

    Args:
        verdict: REFUTED of the model, or NOT_REFUTED.
        law: The law's name.
        samples: The residuals.
        log_wealth: ln of the wealth.
        event: The bet that won most.
    """

    verdict: Verdict
    law: str
    samples: int
    log_wealth: float
    event: str


def model(
    noise: Callable[[int], Any] | Any, law: Law, *, alpha: float = 1e-6, samples: int = 1_000_000
) -> Modelled:
    """Test that noise has a law, at any time.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> model(lambda n: rng.laplace(scale=1 / 1.1, size=n), laplace(1.0)).verdict
    <Verdict.REFUTED: 'refuted'>

    Args:
        noise: Draws so many residuals; or residuals that were drawn, independent of each other by the claim.
        law: The law that is stated.
        alpha: The probability of refuting a true one, in (0, 1).
        samples: The most residuals.

    Raises:
        DomainError: If an argument is outside its domain.
    """
    alpha, most = check.open_probability("alpha", alpha), check.count("samples", samples, least=1)
    if not callable(noise):
        known: Reals = np.asarray(noise, dtype=np.float64).reshape(-1)
        return model(_Drawn(known), law, alpha=alpha, samples=max(1, min(most, len(known))))
    goal, bets, seen, wealth = -math.log(alpha), _Bets(law), 0, 0.0
    while seen < most:
        rows = min(BATCH, most - seen)
        residuals: Reals = np.asarray(noise(rows), dtype=np.float64)
        if residuals.shape != (rows,):
            raise DomainError("noise", residuals.shape, f"{rows} numbers")
        course = bets.pay(residuals) - ROUNDING * (seen + 1 + np.arange(rows))
        reached = np.flatnonzero(course >= goal)
        if len(reached):
            place = int(reached[0])
            return Modelled(
                Verdict.REFUTED, law.name, seen + place + 1, float(course[place]), bets.best(place)
            )
        seen, wealth = seen + rows, float(course[-1])
    return Modelled(
        Verdict.NOT_REFUTED, law.name, seen, wealth, bets.best(-1) if seen else "no event"
    )


class _Drawn:
    """Residuals that were drawn already."""

    def __init__(self, known: Reals) -> None:
        self.known, self.begun = known, 0

    def __call__(self, rows: int) -> Reals:
        self.begun += rows
        return self.known[self.begun - rows : self.begun]


class _Bets:
    """The wealth of every bet so far."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.rng = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))
        names = [f"{factor:.3g} times the scale" for factor in STRETCHED]
        names += [f"another density on {cells} quantiles" for cells in CELLS]
        names += [
            "another density in the tails",
            "it depends on the value before",
            "the value before comes again",
        ]
        shares = (
            [SCALES / len(STRETCHED)] * len(STRETCHED)
            + [LEARNED / (len(CELLS) + 2)] * (len(CELLS) + 2)
            + [AGAIN]
        )
        self.names, self.logs = names, np.log(shares)
        self.counts: list[NDArray[np.float64]] = [np.zeros((1, cells)) for cells in CELLS]
        self.tails, self.contexts = np.zeros((1, 2 * TAILS)), np.zeros((CONTEXTS, CONTEXTS))
        self.last, self.cell = math.nan, 0
        self.course = np.zeros((len(names), 0))

    def pay(self, residuals: Reals) -> Reals:
        """ln of the wealth after each residual."""
        with np.errstate(invalid="ignore", over="ignore"):
            own = self.law.log(residuals, 1.0)
            found = [self.law.log(residuals, factor) - own for factor in STRETCHED]
            quantiles = np.clip(
                np.nan_to_num(self.law.quantiles(residuals, self.rng.random(len(residuals)))), 0, 1
            )
        nothing = np.zeros(len(residuals), dtype=np.intp)
        for counts, cells in zip(self.counts, CELLS, strict=True):
            found.append(
                _learned(counts, nothing, _cell(quantiles, cells), np.full(cells, 1 / cells))
            )
        found.append(_learned(self.tails, nothing, _tail(quantiles), _TAILS))
        places = _cell(quantiles, CONTEXTS)
        past = np.append(self.cell, places[:-1])
        found.append(_learned(self.contexts, past, places, np.full(CONTEXTS, 1 / CONTEXTS)))
        before = np.append(self.last, residuals[:-1])
        with np.errstate(invalid="ignore"):
            atom = np.clip(np.nan_to_num(self.law.atom(before)), ATOM / 2, 1 - ATOM)
        found.append(np.where(residuals == before, np.log(0.5 / atom), np.log(0.5 / (1 - atom))))
        self.last, self.cell = float(residuals[-1]), int(places[-1])
        steps = np.array(found)
        # What the law cannot draw refutes it.
        impossible = ~np.isfinite(residuals) | np.isneginf(own)
        steps[:, impossible] = math.inf
        self.course = self.logs[:, None] + np.cumsum(steps, axis=1)
        self.logs = self.course[:, -1]
        return np.logaddexp.reduce(self.course, axis=0)

    def best(self, place: int) -> str:
        """The bet that holds most of the wealth."""
        if np.isinf(self.course[0, place]):
            return "a value that the law never gives"
        return self.names[int(np.argmax(self.course[:, place]))]


def _cell(quantiles: Reals, cells: int) -> NDArray[np.intp]:
    return np.minimum((quantiles * cells).astype(np.intp), cells - 1)


def _tail(quantiles: Reals) -> NDArray[np.intp]:
    """How often either tail has to be halved to hold the quantile."""
    with np.errstate(divide="ignore"):
        halved = np.minimum(-np.log2(np.minimum(quantiles, 1 - quantiles)) - 1, TAILS - 1).astype(
            np.intp
        )
    return np.where(quantiles < 0.5, halved, TAILS + halved)


_TAILS = np.tile(0.5 ** np.minimum(np.arange(TAILS) + 2, TAILS), 2)


def _learned(
    counts: NDArray[np.float64], context: NDArray[np.intp], places: NDArray[np.intp], chances: Reals
) -> Reals:
    """ln of the factors of a density that is learned as it goes, in each context; counts are added to."""
    number = counts.shape[1]
    factors = np.empty(len(places))
    for each in range(len(counts)):
        here = np.flatnonzero(context == each)
        if len(here):
            hits = np.zeros((len(here), number))
            hits[np.arange(len(here)), places[here]] = 1.0
            before = counts[each] + np.cumsum(hits, axis=0) - hits
            own, base = before[np.arange(len(here)), places[here]], chances[places[here]]
            factors[here] = np.log(
                (own + number / 2 * base) / (before.sum(axis=1) + number / 2) / base
            )
            counts[each] += hits.sum(axis=0)
    return factors
