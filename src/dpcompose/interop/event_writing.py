"""Compositions, written as events: named tuples of dp_accounting's wire format, without the library."""

from __future__ import annotations

import math
from collections import namedtuple
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpcompose import check
from dpcompose.composition import Composable, ComposablePart, Sampled, compose
from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import RenyiLine
from dpcompose.interop.event_mechanisms import quotient_below
from dpcompose.mechanisms import (
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    FixedSizeSample,
    Gaussian,
    GaussianDP,
    Laplace,
    MixtureOfGaussians,
    PermuteAndFlip,
    PrivateSelection,
    RandomizedResponse,
    RenyiCurve,
    Stated,
    TreeAggregation,
    TruncatedPoisson,
)
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, up

MODULE = "dp_accounting.dp_event"


def to_named_tuple(composition: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Any:
    """The event that describes a composition under that adjacency, as a named tuple of the wire format.

    >>> from dpcompose import Gaussian
    >>> event = to_named_tuple(Gaussian(2.0).sampled(0.25) * 10)
    >>> event.class_name, event.count, event.event.event.noise_multiplier
    ('SelfComposedDpEvent', 10, 2.0)

    Args:
        composition: A mechanism or a composition.
        adjacency: The neighboring relation of the accountant that is to read it: no event names one.

    Raises:
        UnsupportedError: If a part has no event.
    """
    check.member("adjacency", adjacency, Adjacency)
    parts = [(_written(part, adjacency), times) for part, times in compose(composition).parts]
    events = [
        event_tuple("SelfComposedDpEvent", event=one, count=times) if times > 1 else one
        for one, times in parts
    ]
    if len(events) == 1:
        return events[0]
    return event_tuple("ComposedDpEvent", events=events) if events else event_tuple("NoOpDpEvent")


def event_tuple(class_name: str, /, *, module_name: str = MODULE, **fields: Any) -> Any:
    """A named tuple of the wire format."""
    return _kind(class_name, tuple(fields))(module_name, class_name, *fields.values())


@lru_cache(maxsize=256)
def _kind(class_name: str, fields: tuple[str, ...]) -> Any:
    named: Any = namedtuple  # a class for each list of fields: no class statement says that
    return named(f"_{class_name}NamedTupleWrapper", ("module_name", "class_name", *fields))


def _written(part: ComposablePart, adjacency: Adjacency) -> Any:
    """The event of one part; a number that is rounded is rounded to its costlier side."""
    match part:
        case Sampled(base=base, rate=rate):
            inner = to_named_tuple(base, adjacency=adjacency)
            return event_tuple("PoissonSampledDpEvent", sampling_probability=rate, event=inner)
        case PrivateSelection(base=base, tries=mean, shape=shape):
            inner = to_named_tuple(base, adjacency=adjacency)
            return event_tuple("RepeatAndSelectDpEvent", event=inner, mean=mean, shape=shape)
        case Gaussian() | Laplace() | DiscreteLaplace() | DiscreteGaussian():
            return _noise(part, adjacency)
        case Stated():
            return _stated(part, adjacency)
        case MixtureOfGaussians() if adjacency is not Adjacency.REPLACE:
            shifts, weights = list(part.shifts), list(part.weights)
            name = "MixtureOfGaussiansDpEvent"
            return event_tuple(
                name, standard_deviation=part.sigma, sensitivities=shifts, sampling_probs=weights
            )
        case FixedSizeSample(records=records, batch=batch) if adjacency is Adjacency.REPLACE:
            inner = event_tuple("GaussianDpEvent", noise_multiplier=part.sigma)
            name = "SampledWithoutReplacementDpEvent"
            return event_tuple(name, source_dataset_size=records, sample_size=batch, event=inner)
        case TruncatedPoisson(records=records, batch=batch) if adjacency is Adjacency.ADD_REMOVE:
            return event_tuple(
                "TruncatedSubsampledGaussianDpEvent",
                dataset_size=records,
                sampling_probability=part.rate,
                truncated_batch_size=batch,
                noise_multiplier=part.sigma,
            )
        case TreeAggregation() if (
            adjacency is Adjacency.ZERO_OUT and part.participation.times(part.steps) == 1
        ):
            whole, rest = divmod(part.steps, part.restart or part.steps)
            counts = [part.restart or part.steps] * whole + ([rest] if rest else [])
            name = "SingleEpochTreeAggregationDpEvent"
            return event_tuple(
                name,
                noise_multiplier=part.sigma,
                step_counts=counts if len(counts) > 1 else counts[0],
            )
        case _:
            raise _withoutevent_tuple(part, adjacency)


def _noise(
    part: Gaussian | Laplace | DiscreteLaplace | DiscreteGaussian, adjacency: Adjacency
) -> Any:
    """Noise on sums: an event knows one sensitivity, which doubles where a record is replaced."""
    match part:
        case Gaussian() | Laplace() if (
            adjacency is not Adjacency.REPLACE or part.replace_sensitivity is None
        ):
            size, name = (
                (part.sigma, "Gaussian") if isinstance(part, Gaussian) else (part.scale, "Laplace")
            )
            return event_tuple(
                f"{name}DpEvent", noise_multiplier=quotient_below(size, part.sensitivity)
            )
        case DiscreteLaplace() | DiscreteGaussian() if adjacency is not Adjacency.REPLACE or (
            part.replace is None and isinstance(part.shift, int)
        ):
            shifts = part.shift if isinstance(part.shift, tuple) else (part.shift,)
            events = [_integer_noise(part, abs(shift)) for shift in shifts]
            return events[0] if len(events) == 1 else event_tuple("ComposedDpEvent", events=events)
        case _:
            raise _withoutevent_tuple(part, adjacency)


def _integer_noise(part: DiscreteLaplace | DiscreteGaussian, shift: int) -> Any:
    if isinstance(part, DiscreteGaussian):
        return event_tuple(
            "DiscreteGaussianDpEvent", sigma=part.sigma, sensitivity=float(shift), dimension=1
        )
    rate = 1 / part.scale
    rate = rate if Fraction(rate) * Fraction(part.scale) >= 1 else up(rate)
    return event_tuple("DiscreteLaplaceDpEvent", noise_parameter=rate, sensitivity=shift)


def _stated(part: Stated, adjacency: Adjacency) -> Any:
    """A guarantee: the event holds under the relation of whoever reads it, so that both must be the same."""
    if part.holds_under is not adjacency:
        raise _withoutevent_tuple(part, adjacency)
    match part:
        case BlackBox(stated=stated) if stated.delta == 1:
            return event_tuple("NonPrivateDpEvent")
        case BlackBox(stated=stated):
            return event_tuple("EpsilonDeltaDpEvent", epsilon=stated.epsilon, delta=stated.delta)
        case Concentrated(stated=stated) if stated.delta == 0:
            return event_tuple("ZCDpEvent", rho=stated.rho, xi=0.0)
        case RenyiCurve(stated=known) if isinstance(known.curve, RenyiLine) and known.delta == 0:
            return event_tuple("ZCDpEvent", rho=known.curve.rho, xi=known.curve.xi)
        case GaussianDP(mu=mu) if adjacency is not Adjacency.REPLACE:
            return (
                event_tuple("GaussianDpEvent", noise_multiplier=quotient_below(1.0, mu))
                if mu
                else event_tuple("NoOpDpEvent")
            )
        case Exponential(stated=epsilon):
            return event_tuple("ExponentialMechanismDpEvent", epsilon=epsilon)
        case PermuteAndFlip(stated=epsilon):
            return event_tuple("PermuteAndFlipDpEvent", epsilon=epsilon)
        case RandomizedResponse(stated=epsilon, categories=count) if (
            adjacency is Adjacency.REPLACE and epsilon < 700
        ):
            noise = (
                count / (math.expm1(epsilon) + count) * (1 - 8 * UNIT_ROUNDOFF) if epsilon else 1.0
            )
            return event_tuple(
                "RandomizedResponseDpEvent", noise_parameter=noise, num_buckets=count
            )
        case _:
            raise _withoutevent_tuple(part, adjacency)


def _withoutevent_tuple(part: ComposablePart, adjacency: Adjacency) -> UnsupportedError:
    reason = f"no event of dp_accounting says this under {adjacency.value}"
    return UnsupportedError(
        repr(part), reason, "Ask dpcompose itself, or state it as a BlackBox under that adjacency"
    )
