"""Events around another event: samples of the data, and selections; which of them has a sound statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcompose import check
from dpcompose.composition import Composable, Composition, Sampled
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.interop.event_mechanisms import NOTHING, non_private, require_adjacency, reveals
from dpcompose.mechanisms import (
    BlackBox,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    FixedSizeSample,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PermuteAndFlip,
    PrivateSelection,
)
from dpcompose.values import Adjacency, up

ReadAround = Callable[[Any, Adjacency, Composition], Composable]
_ADDITIVE = (Gaussian, Laplace, DiscreteLaplace, DiscreteGaussian, MixtureOfGaussians, Sampled)
_AMPLIFIED = {
    Adjacency.ADD_REMOVE: (*_ADDITIVE, BlackBox, Exponential, PermuteAndFlip),
    Adjacency.ZERO_OUT: _ADDITIVE,
    Adjacency.REPLACE: (Gaussian, Sampled),
}
"""What may run on a Poisson sample. Under zero-out a null record adds nothing, as if it were not in the sample: that
is so of sums with noise, and not of a mechanism known by its guarantee alone."""


def _poisson(event: Any, adjacency: Adjacency, inner: Composition) -> Composable:
    """One sample, on which all of it runs."""
    rate = check.probability("sampling_probability", event.sampling_probability)
    if rate == 0 or not inner.parts:
        return NOTHING
    if rate == 1:
        return inner
    if reveals(inner):
        return BlackBox(0.0, delta=rate, holds_under=adjacency)
    for part, _ in inner.parts:
        if not isinstance(part, _AMPLIFIED[adjacency]):
            covered = [each for each, kinds in _AMPLIFIED.items() if isinstance(part, kinds)]
            if covered:
                require_adjacency(
                    adjacency, *covered, why=f"no pair is known for {part!r} on a sample"
                )
            raise UnsupportedError(
                "", f"no pair is known for {part!r} on a Poisson sample", "Leave out the sample"
            )
    part, times = inner.parts[0]
    alone = times == 1 and len(inner.parts) == 1
    if adjacency is Adjacency.REPLACE and not alone:
        raise UnsupportedError(
            "", "no pair is known for several mechanisms on one sample where a record is replaced"
        )
    return Sampled(inner, rate) if alone and not isinstance(part, Sampled) else inner.sampled(rate)


def _without_replacement(event: Any, adjacency: Adjacency, inner: Composition) -> Composable:
    require_adjacency(
        adjacency, Adjacency.REPLACE, why="how a batch is drawn depends on the number of records"
    )
    records = check.count("source_dataset_size", event.source_dataset_size, least=1)
    batch = check.count("sample_size", event.sample_size)
    if not batch <= records:
        raise DomainError("sample_size", batch, f"at most the {records} records")
    if batch == 0 or not inner.parts:
        return NOTHING
    if batch == records:
        return inner
    if reveals(inner):
        return BlackBox(0.0, delta=min(up(batch / records), 1.0), holds_under=adjacency)
    (part, times), *others = inner.parts
    if others or times > 1 or not isinstance(part, Gaussian):
        raise UnsupportedError(
            "", f"no pair is known for {inner!r} on a batch of fixed size", "One Gaussian has one"
        )
    return FixedSizeSample(part.sigma, records=records, batch=batch)


def _with_replacement(event: Any, adjacency: Adjacency, inner: Composition) -> Composable:
    check.count("source_dataset_size", event.source_dataset_size, least=1)
    check.count("sample_size", event.sample_size)
    reason = "no pair is known for a batch that may hold a record several times"
    raise UnsupportedError("", reason, "Draw without replacement, or a Poisson sample")


def _selection(event: Any, adjacency: Adjacency, inner: Composition) -> Composable:
    """The law of the number of runs does not depend on the data, nor does the choice among runs that say nothing."""
    chosen = PrivateSelection(
        inner if inner.parts else non_private(adjacency), tries=event.mean, shape=event.shape
    )
    if not inner.parts:
        return NOTHING
    return non_private(adjacency) if reveals(inner) else chosen


EVENTS_AROUND: dict[str, tuple[frozenset[str], ReadAround]] = {
    name: (frozenset(fields.split()), read)
    for name, fields, read in (
        ("PoissonSampledDpEvent", "sampling_probability event", _poisson),
        (
            "SampledWithReplacementDpEvent",
            "source_dataset_size sample_size event",
            _with_replacement,
        ),
        (
            "SampledWithoutReplacementDpEvent",
            "source_dataset_size sample_size event",
            _without_replacement,
        ),
        ("RepeatAndSelectDpEvent", "event mean shape", _selection),
    )
}
