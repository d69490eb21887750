"""Lemma 3.18: the pair of distributions with the largest mean loss that pure epsilon allows."""

from __future__ import annotations

from dpcompose.divergence.distribution import Distribution, Rational
from dpcompose.divergence.threshold import floor_ratio


def extreme_pair(
    *, epsilon: Rational | None = None, ratio: Rational | None = None
) -> tuple[Distribution, Distribution]:
    """The pair (a, 1)/(1 + a) and (1, a)/(1 + a), a = e^epsilon, which attains the tight form of Lemma 3.18.

    If D_inf(Y||Z) <= epsilon and D_inf(Z||Y) <= epsilon then D(Y||Z) <= epsilon (e^epsilon - 1)/(e^epsilon + 1) =
    epsilon tanh(epsilon/2), with equality for this pair, the two answers of randomized response. The book's bound,
    epsilon (e^epsilon - 1), is larger by the factor e^epsilon + 1. (The pair is extreme in every sense: all others
    within epsilon are post-processings of it.)

    >>> y, z = extreme_pair(ratio=3)
    >>> y.masses[0], z.masses[0]
    (Fraction(3, 4), Fraction(1, 4))

    Args:
        epsilon: A loss in nats in [0, 1e6]: a is then a rational number just below e^epsilon (relative 1e-58); or
        ratio: a itself, >= 1, taken exactly.

    Raises:
        DomainError: Unless exactly one of epsilon and ratio is given, in its domain.

    Reference: [DworkRoth2014, Lemma 3.18].
    """
    a = floor_ratio(epsilon, ratio)
    large, small = a / (1 + a), 1 / (1 + a)
    return Distribution([large, small]), Distribution([small, large])
