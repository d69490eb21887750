"""A choice among public candidates by permute-and-flip or the exponential mechanism, drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcompose.composition import Composable, compose
from dpcompose.errors import DomainError
from dpcompose.mechanisms import Exponential, PermuteAndFlip
from dpcompose.release import sampler
from dpcompose.release.spend import Spend, below
from dpcompose.values import rounded_up

LARGEST_SCORE = 2**62
"""Scores are clamped to this size, which is 1-Lipschitz: the sampler takes 64 bits."""


@dataclass(frozen=True)
class Selection:
    """The candidate with the least score, noise of one scale on each.

    For an amount of epsilon the noise is exponential: permute-and-flip, which is never further from the best than the
    exponential mechanism. Its losses are at most those of Laplace noise, and so for choices in several groups, which
    are Laplace noise on several numbers. For an amount of rho it is the exponential mechanism, candidate i with
    probability proportional to e^(-score_i / scale): one unit moves every score by at most `change`, so all losses lie
    in an interval of length 2 change / scale, a bounded range, which costs a quarter of the rho of that epsilon.
    Choices for several groups add up to one of bounded range, `change` being the sum over groups.

    Args:
        scale: Exactly this double.
        change: How far one unit moves any score, summed over groups.
        monotone: Whether one unit moves all scores the same way, as it does counts: then by between 0 and `change`, so
            that all losses lie in an interval of length change / scale.
        flips: Whether by permute-and-flip.

    Reference: [McKennaSheldon2020, Algorithm 1], [DongDurfeeRogers2020, Definition 3.1],
    [McSherryTalwar2007, Definition 2]
    """

    scale: float
    change: int
    monotone: bool = False
    flips: bool = False

    @classmethod
    def costing(cls, change: int, spend: Spend, *, monotone: bool = False) -> Selection:
        """The least scale whose certified price is within the epsilon, or within the rho, epsilon^2 / 8."""
        if spend.delta and spend.currency == "epsilon":
            domain = "an epsilon without a delta, where a quantile is chosen among candidates"
            raise DomainError("spend", spend.typed(), domain)
        epsilon = below(spend.amount)
        if spend.currency == "rho":
            epsilon = math.sqrt(8 * epsilon) * (1 - 1e-13)
        ways = 1 if monotone else 2
        flips = spend.currency == "epsilon"
        chosen = cls(
            rounded_up(ways * Fraction(change) / Fraction(epsilon)), change, monotone, flips
        )
        if spend.currency == "rho":
            promise = compose(chosen.mechanism).zcdp()
            price = None if promise is None else promise.rho
        else:
            price = compose(chosen.mechanism).pure()
        assert price is not None and Fraction(price) <= spend.amount, (
            "the reserve covers the rounding of a price"
        )
        return chosen

    @property
    def mechanism(self) -> Composable:
        """Of epsilon 2 change / scale, or half of it: the statement of all choices together."""
        ways = 1 if self.monotone else 2
        epsilon = rounded_up(ways * Fraction(self.change) / Fraction(self.scale))
        return (
            PermuteAndFlip(epsilon, monotone=self.monotone) if self.flips else Exponential(epsilon)
        )

    def draw(self, scores: Sequence[int]) -> int:
        """The index of the chosen candidate; the least score is the best."""
        within = [max(min(score, LARGEST_SCORE), -LARGEST_SCORE) for score in scores]
        return sampler.least_with_noise(within, scale=self.scale, flips=self.flips)

    def error(self, candidates: int, failure: float) -> float:
        """How far the chosen score is above the best, but for a probability of `failure`: an upper bound.

        scale (ln candidates + ln(1 / failure)).

        Reference: [DworkRoth2014, Corollary 3.12]
        """
        return self.scale * (math.log(candidates) - math.log(failure))

    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""
        found: dict[str, object] = {
            "selection": "permute-and-flip" if self.flips else "exponential mechanism",
            "scale": repr(self.scale),
            "change": self.change,
        }
        return found | ({"monotone": True} if self.monotone else {})
