"""The smallest epsilon of a mechanism with finitely many inputs and outputs (Remark 3.1)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcompose.divergence.distribution import (
    Distribution,
    Finite,
    Rational,
    coupled,
    exact_probability,
)
from dpcompose.divergence.hockey_stick import largest_ratio, log_ratio
from dpcompose.errors import DomainError
from dpcompose.pictured import Card
from dpcompose.values import Bound


@dataclass(frozen=True)
class SmallestEpsilon(Card):
    """The smallest epsilon of a mechanism at a delta, with the pair of inputs that attains it.

    Args:
        epsilon: The smallest epsilon >= 0 in nats, enclosed; infinite if no finite one holds.
        delta: The delta of the (epsilon, delta) guarantee.
        ratio: max_S (Y(S) - delta)/Z(S) for the pair, exactly (below 1 if epsilon is 0); the float
            inf if infinite.
        pair: The inputs (x, y) with Y = M(x) and Z = M(y).
    """

    epsilon: Bound
    delta: Fraction
    ratio: Fraction | float
    pair: tuple[Any, Any]


def smallest_epsilon(
    outputs: Mapping[Any, Finite],
    *,
    delta: Rational = 0,
    neighbors: Iterable[tuple[Any, Any]] | None = None,
) -> SmallestEpsilon:
    """The smallest epsilon >= 0 at which a mechanism is (epsilon, delta)-DP, and the pair attaining
    it.

    M is (epsilon, delta)-differentially private exactly when D_inf^delta(M(x)||M(y)) <= epsilon for
    every two neighbors in both orders (Remark 3.1), so the smallest epsilon is their maximum, or 0.

    >>> coin = {"heads": [Fraction(3, 4), Fraction(1, 4)], "tails": [Fraction(1, 4), Fraction(3, 4)]}
    >>> smallest_epsilon(coin).ratio, smallest_epsilon(coin, delta=Fraction(1, 4)).ratio
    (Fraction(3, 1), Fraction(2, 1))

    Args:
        outputs: The mechanism M, as a mapping from each input to the finite distribution of its
            output.
        delta: A probability, taken exactly.
        neighbors: The pairs of neighboring inputs, each in one order or both. If None, every two
            inputs are neighbors.

    Raises:
        DomainError: If an output is not a distribution, a neighbor is not an input, delta is
            outside [0, 1], or there is no pair of neighbors.

    Reference: [DworkRoth2014, Remark 3.1].
    """
    allowed = exact_probability("delta", delta)
    if not isinstance(outputs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "outputs", outputs, "a mapping from each input to the distribution of its output"
        )
    read = {x: Distribution.read(f"outputs[{x!r}]", output) for x, output in outputs.items()}
    pairs = _pairs(read, neighbors)
    if not pairs:
        raise DomainError(
            "neighbors",
            pairs,
            "at least one pair of inputs",
            "Without neighbors nothing is protected",
        )
    ordered = dict.fromkeys(ends for x, y in pairs for ends in ((x, y), (y, x)))
    ratios = {(x, y): largest_ratio(coupled(read[x], read[y]), allowed) for x, y in ordered}
    worst = max(ratios, key=ratios.__getitem__)
    return SmallestEpsilon(
        log_ratio(max(ratios[worst], Fraction(1))), allowed, ratios[worst], worst
    )


def _pairs(
    read: Mapping[Any, Distribution], neighbors: Iterable[tuple[Any, Any]] | None
) -> list[tuple[Any, Any]]:
    """The pairs of neighboring inputs: `neighbors`, or every two inputs.

    Raises DomainError if an element is not a pair of inputs in `read`.
    """
    if neighbors is None:
        return list(itertools.combinations(read, 2))
    domain = "pairs of inputs among the keys of outputs"
    try:
        pairs = [(x, y) for x, y in neighbors]
        unknown = [x for x in itertools.chain.from_iterable(pairs) if x not in read]
    except (TypeError, ValueError):
        raise DomainError("neighbors", neighbors, domain) from None
    if unknown:
        raise DomainError("neighbors", unknown[0], domain)
    return pairs
