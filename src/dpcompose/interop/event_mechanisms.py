"""Events that describe one mechanism: which one it is under which adjacency.

An event says how far a record moves what is released, and what noise is added; who counts as a neighbor, the accountant
says. Events of noise bound what one record contributes: their sensitivity is that of adding or removing it, or of
zeroing it out, and twice that where it is replaced. Events of a guarantee hold under the relation of the accountant.
A parameter that a formula gives is rounded to its costlier side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

from dpcompose import check
from dpcompose.composition import Composable, Composition, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import RenyiLine
from dpcompose.mechanisms import (
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    DominatingPair,
    Exponential,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    Participation,
    PermuteAndFlip,
    RandomizedResponse,
    RenyiCurve,
    TreeAggregation,
    TruncatedPoisson,
)
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, down, up

RELATIONS = {
    Adjacency.ADD_REMOVE: "ADD_OR_REMOVE_ONE",
    Adjacency.REPLACE: "REPLACE_ONE",
    Adjacency.ZERO_OUT: "REPLACE_SPECIAL",
}
"""What dp_accounting calls each adjacency."""
NOTHING = compose()
Read = Callable[[Any, Adjacency], Composable]


def non_private(adjacency: Adjacency) -> BlackBox:
    """A release of everything."""
    return BlackBox(0.0, delta=1.0, holds_under=adjacency)


def reveals(composition: Composition) -> bool:
    """Whether a part of it releases everything."""
    return any(
        isinstance(part, BlackBox) and part.stated.delta == 1 for part, _ in composition.parts
    )


def require_adjacency(adjacency: Adjacency, *covered: Adjacency, why: str) -> None:
    """Raise UnsupportedError under an adjacency that the event does not cover."""
    if adjacency not in covered:
        names = " or ".join(f"`{RELATIONS[each]}`" for each in covered)
        raise UnsupportedError(
            "", f"neighboring_relation must be {names}, not `{RELATIONS[adjacency]}`: {why}"
        )


def quotient_below(numerator: float, denominator: float) -> float:
    """The quotient, rounded down."""
    found = numerator / denominator
    return found if Fraction(found) * Fraction(denominator) <= Fraction(numerator) else down(found)


def _noise(kind: Callable[[float], Composable]) -> Callable[[Any, Adjacency], Composable]:
    def read(event: Any, adjacency: Adjacency) -> Composable:
        size = check.nonnegative("noise_multiplier", event.noise_multiplier)
        return kind(size) if size else non_private(adjacency)

    return read


def _discrete_laplace(event: Any, adjacency: Adjacency) -> Composable:
    rate = check.nonnegative("noise_parameter", event.noise_parameter)
    reach = check.count("sensitivity", event.sensitivity)
    if rate == 0:  # no distribution: the costliest reading
        return non_private(adjacency)
    return DiscreteLaplace(quotient_below(1.0, rate), shift=reach) if reach else NOTHING


def _discrete_gaussian(event: Any, adjacency: Adjacency) -> Composable:
    """A vector of integers moves by integers, whose squares sum to at most that of the sensitivity.

    With one coordinate the farthest shift costs most, since the noise is log-concave. Up to 3 unit steps no other
    vector is farther. Beyond that only the bound on the Renyi divergences is known to hold for every vector.
    """
    sigma, reach = (
        check.nonnegative("sigma", event.sigma),
        check.nonnegative("sensitivity", event.sensitivity),
    )
    dimension = (
        None if event.dimension is None else check.count("dimension", event.dimension, least=1)
    )
    square = math.floor(Fraction(reach) ** 2)
    if reach == 0:
        return NOTHING
    if square == 0:
        raise DomainError("sensitivity", reach, "0, or at least 1: integers do not move by less")
    if sigma == 0:
        return non_private(adjacency)
    if dimension == 1:
        return DiscreteGaussian(sigma, shift=math.isqrt(square))
    if square <= 3:
        return DiscreteGaussian(sigma, shift=(1,) * min(square, dimension or square))
    reach *= 2 if adjacency is Adjacency.REPLACE else 1
    return Concentrated(up(up(reach**2) / down(2 * sigma**2)), holds_under=adjacency)


def _randomized_response(event: Any, adjacency: Adjacency) -> Composable:
    """The truth with probability 1 - p + p / k, each other bucket with probability p / k."""
    noise, buckets = check.probability("noise_parameter", event.noise_parameter), event.num_buckets
    buckets = check.count("num_buckets", buckets, least=1)
    why = "a record that is not there gives no answer"
    require_adjacency(adjacency, Adjacency.REPLACE, Adjacency.ZERO_OUT, why=why)
    if buckets == 1 or noise == 1:
        return NOTHING
    if noise == 0:
        return non_private(adjacency)
    if adjacency is Adjacency.REPLACE:
        epsilon = math.log1p(buckets * (1 - noise) / noise) * (1 + 8 * UNIT_ROUNDOFF)
        return RandomizedResponse(epsilon, categories=buckets, holds_under=adjacency)
    # The null record answers uniformly, as in dp_accounting: the truth is one bucket, and all others are alike.
    lie, of_null = Fraction(noise) * (buckets - 1) / buckets, Fraction(1, buckets)
    upper = min(up(float(1 - lie)), 1.0), down(float(lie))
    lower = down(float(of_null)), min(up(float(1 - of_null)), 1.0)
    return DominatingPair.atoms(upper=upper, lower=lower, adjacency=adjacency)


def _epsilon_delta(event: Any, adjacency: Adjacency) -> Composable:
    return BlackBox(event.epsilon, delta=event.delta, holds_under=adjacency)


def _concentrated(event: Any, adjacency: Adjacency) -> Composable:
    rho, xi = check.nonnegative("rho", event.rho), check.nonnegative("xi", event.xi)
    return (
        RenyiCurve(RenyiLine(rho, xi), holds_under=adjacency)
        if xi
        else Concentrated(rho, holds_under=adjacency)
    )


def _exponential(event: Any, adjacency: Adjacency) -> Composable:
    return Exponential(event.epsilon, holds_under=adjacency)


def _permute_and_flip(event: Any, adjacency: Adjacency) -> Composable:
    return PermuteAndFlip(event.epsilon, holds_under=adjacency)


def _mixture(event: Any, adjacency: Adjacency) -> Composable:
    require_adjacency(
        adjacency,
        Adjacency.ADD_REMOVE,
        Adjacency.ZERO_OUT,
        why="it says how a record that is there moves the sum",
    )
    sigma = check.nonnegative("standard_deviation", event.standard_deviation)
    found = MixtureOfGaussians(
        sigma or 1.0, shifts=event.sensitivities, weights=event.sampling_probs
    )
    if not any(shift and weight for shift, weight in zip(found.shifts, found.weights, strict=True)):
        return NOTHING
    return found if sigma else non_private(adjacency)


def _tree(event: Any, adjacency: Adjacency) -> Composable:
    """Trees that share no record: the deepest one is the costliest."""
    require_adjacency(
        adjacency,
        Adjacency.ZERO_OUT,
        why="where a record leaves or comes, the steps of the others may move",
    )
    sigma, given = check.nonnegative("noise_multiplier", event.noise_multiplier), event.step_counts
    listed = cast("Sequence[Any]", given if isinstance(given, Sequence) else (given,))
    counts = [check.count("step_counts", each) for each in listed]
    if not counts:
        raise DomainError("step_counts", given, "the number of steps of at least one tree")
    if max(counts) == 0:
        return NOTHING
    if sigma == 0:
        return non_private(adjacency)
    return TreeAggregation(sigma, steps=max(counts), participation=Participation.single())


def _truncated(event: Any, adjacency: Adjacency) -> Composable:
    require_adjacency(
        adjacency, Adjacency.ADD_REMOVE, why="how full a batch is depends on the record"
    )
    rate = check.probability("sampling_probability", event.sampling_probability)
    records = check.count("dataset_size", event.dataset_size)
    batch = check.count("truncated_batch_size", event.truncated_batch_size)
    sigma = check.nonnegative("noise_multiplier", event.noise_multiplier)
    if 0 in (rate, records, batch):
        return NOTHING
    if sigma == 0:
        return BlackBox(0.0, delta=rate, holds_under=adjacency)
    return TruncatedPoisson(sigma, rate=rate, records=records, batch=min(batch, records))


def _nothing(event: Any, adjacency: Adjacency) -> Composable:
    return NOTHING


def _everything(event: Any, adjacency: Adjacency) -> Composable:
    return non_private(adjacency)


def _unsupported(event: Any, adjacency: Adjacency) -> Composable:
    raise UnsupportedError(
        "", "it says itself that it has no description", "Replace it with what is known"
    )


EVENTS: dict[str, tuple[frozenset[str], Read]] = {
    name: (frozenset(fields.split()), read)
    for name, fields, read in (
        ("NoOpDpEvent", "", _nothing),
        ("NonPrivateDpEvent", "", _everything),
        ("UnsupportedDpEvent", "", _unsupported),
        ("GaussianDpEvent", "noise_multiplier", _noise(Gaussian)),
        ("LaplaceDpEvent", "noise_multiplier", _noise(Laplace)),
        ("DiscreteLaplaceDpEvent", "noise_parameter sensitivity", _discrete_laplace),
        ("DiscreteGaussianDpEvent", "sigma sensitivity dimension", _discrete_gaussian),
        ("RandomizedResponseDpEvent", "noise_parameter num_buckets", _randomized_response),
        ("EpsilonDeltaDpEvent", "epsilon delta", _epsilon_delta),
        ("ZCDpEvent", "rho xi", _concentrated),
        ("ExponentialMechanismDpEvent", "epsilon", _exponential),
        ("PermuteAndFlipDpEvent", "epsilon", _permute_and_flip),
        ("MixtureOfGaussiansDpEvent", "standard_deviation sensitivities sampling_probs", _mixture),
        ("SingleEpochTreeAggregationDpEvent", "noise_multiplier step_counts", _tree),
        (
            "TruncatedSubsampledGaussianDpEvent",
            "dataset_size sampling_probability truncated_batch_size noise_multiplier",
            _truncated,
        ),
    )
}
