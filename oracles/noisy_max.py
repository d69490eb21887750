"""Who wins a noisy maximum: probabilities by integrals over the value of the winner, between the kinks, in floats.

The noises of the candidates may be of different kinds and scales. On every panel the integrand is analytic, so that 20
Gauss nodes on panels of at most two scales give 13 digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb

from oracles.ball import Number, ball

Array = np.ndarray
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)
REACH, PANEL = 38.0, 2.0


@dataclass(frozen=True)
class Noise:
    """Noise of a kind, "exponential", "laplace" or "gumbel", and a scale: its hazard is at most 1 / scale."""

    kind: str
    scale: float

    def law(self, x: Array) -> tuple[Array, Array]:
        """The density and the cdf at x, where the score is 0."""
        z = x / self.scale
        fall = np.exp(-np.abs(z))
        if self.kind == "exponential":
            return np.where(z >= 0, fall, 0.0) / self.scale, np.where(
                z >= 0, -np.expm1(-np.maximum(z, 0.0)), 0.0
            )
        if self.kind == "laplace":
            return fall / (2 * self.scale), np.where(z >= 0, 1 - fall / 2, fall / 2)
        cdf = np.exp(-np.exp(np.minimum(-z, 700.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(cdf * np.exp(-z)) / self.scale, cdf


def winning(scores: Sequence[float], noises: Sequence[Noise]) -> Array:
    """The probability of every candidate to have the largest score plus noise."""
    widest = max(noise.scale for noise in noises)
    kinks = np.unique([min(scores) - REACH * widest, *scores, max(scores) + REACH * widest])
    narrowest = PANEL * min(noise.scale for noise in noises)
    edges = np.concatenate(
        [
            np.linspace(left, right, max(2, int(np.ceil((right - left) / narrowest)) + 1))
            for left, right in pairwise(kinks)
        ]
    )
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    x, weight = (middle[:, None] + half[:, None] * NODES).ravel(), (half[:, None] * WEIGHTS).ravel()
    laws = [noise.law(x - score) for score, noise in zip(scores, noises, strict=True)]
    found = []
    for i, (density, _) in enumerate(laws):
        others = np.prod([cdf for j, (_, cdf) in enumerate(laws) if j != i], axis=0)
        found.append(float(weight @ (density * others)))
    return np.array(found)


def permute_and_flip(scores: Sequence[Fraction | int], rate: Number) -> list[arb]:
    """The selection probabilities of permute-and-flip, as its coins give them: by all orders of the candidates."""
    best = max(scores)
    weights = [(ball(Fraction(score) - best) * ball(rate)).exp() for score in scores]
    found = []
    for i, own in enumerate(weights):
        # own times the integral of the product of (1 - u w) over u in [0, 1]: the others before i, in uniform order.
        poly = [arb(1)]
        for weight in weights[:i] + weights[i + 1 :]:
            poly = [a - weight * b for a, b in zip([*poly, arb(0)], [arb(0), *poly], strict=True)]
        found.append(own * sum((c / (k + 1) for k, c in enumerate(poly)), arb(0)))
    return found
