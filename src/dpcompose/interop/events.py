"""The table of dp_accounting's events: the mechanism that each one describes under an adjacency,
and how mechanisms are written as events.

An event states how far a record moves the released value and how much noise is added; the
accountant determines the neighboring relation. For noise events, the sensitivity is the
contribution of one record, that is for adding, removing or zeroing it out, and twice that for
replacing it. Guarantee events hold under the accountant's relation. Parameters computed by a
formula are rounded to the conservative side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, cast

from dpcompose import check, mechanisms
from dpcompose.composition import Composable, ComposablePart, Composition, Sampled, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import RenyiLine
from dpcompose.interop.event_tree import event_tuple
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, double_below, down, up

RELATIONS = {
    Adjacency.ADD_REMOVE: "ADD_OR_REMOVE_ONE",
    Adjacency.REPLACE: "REPLACE_ONE",
    Adjacency.ZERO_OUT: "REPLACE_SPECIAL",
}
"""The name of each adjacency in dp_accounting."""
NOTHING = compose()
Read = Callable[..., Composable]
"""Maps an event, an adjacency and what an enclosing event holds, to a composition."""


@dataclass(frozen=True)
class EventRow:
    """The meaning of one class of events.

    Args:
        fields: The names of its fields, as words; a field named `event` encloses another event.
        read: Returns the composition that an event describes.
        relations: The adjacencies under which it has a meaning.
        why: Why it has none under the others.
    """

    fields: str
    read: Read
    relations: Sequence[Adjacency] = tuple(Adjacency)
    why: str = ""

    def composition(self, event: Any, adjacency: Adjacency, *inner: Composition) -> Composable:
        """The mechanisms that an event describes; UnsupportedError or DomainError if there are none."""
        described = self.read(event, adjacency, *inner)
        require_adjacency(adjacency, *self.relations, why=self.why)
        return described


def non_private(adjacency: Adjacency) -> mechanisms.BlackBox:
    """A mechanism without any privacy guarantee: epsilon 0 at delta 1."""
    return mechanisms.BlackBox(0.0, delta=1.0, holds_under=adjacency)


def reveals(composition: Composition) -> bool:
    """Whether a composition contains a mechanism without any guarantee (delta = 1)."""
    return any(
        isinstance(part, mechanisms.BlackBox) and part.stated.delta == 1
        for part, _ in composition.parts
    )


def require_adjacency(adjacency: Adjacency, *covered: Adjacency, why: str) -> None:
    """Raise UnsupportedError, with the reason `why`, unless the adjacency is among those covered."""
    if adjacency not in covered:
        names = " or ".join(f"`{RELATIONS[each]}`" for each in covered)
        raise UnsupportedError(
            "", f"neighboring_relation must be {names}, not `{RELATIONS[adjacency]}`: {why}"
        )


def quotient_below(numerator: float, denominator: float) -> float:
    """The quotient of two floats, rounded down."""
    return double_below(Fraction(numerator) / Fraction(denominator))


def _noise(kind: Callable[[float], Composable], event: Any, adjacency: Adjacency) -> Composable:
    size = check.nonnegative("noise_multiplier", event.noise_multiplier)
    return kind(size) if size else non_private(adjacency)


def _discrete_laplace(event: Any, adjacency: Adjacency) -> Composable:
    rate = check.nonnegative("noise_parameter", event.noise_parameter)
    reach = check.count("sensitivity", event.sensitivity)
    if rate == 0:  # no distribution: the costliest reading
        return non_private(adjacency)
    return mechanisms.DiscreteLaplace(quotient_below(1.0, rate), shift=reach) if reach else NOTHING


def _discrete_gaussian(event: Any, adjacency: Adjacency) -> Composable:
    """Integer noise on a vector of integers whose squared L2 sensitivity is at most `sensitivity`
    squared.

    In one dimension the largest shift has the largest loss, since the noise is log-concave. Up to
    squared sensitivity 3, the unit steps are the largest shift. Beyond that, only the bound on
    Renyi divergences is known to hold for every shift.
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
        return mechanisms.DiscreteGaussian(sigma, shift=math.isqrt(square))
    if square <= 3:
        return mechanisms.DiscreteGaussian(sigma, shift=(1,) * min(square, dimension or square))
    reach *= 2 if adjacency is Adjacency.REPLACE else 1
    return mechanisms.Concentrated(up(up(reach**2) / down(2 * sigma**2)), holds_under=adjacency)


def _randomized_response(event: Any, adjacency: Adjacency) -> Composable:
    """Randomized response: the truth with probability 1 - p + p / k, each other bucket with
    probability p / k.
    """
    noise, buckets = check.probability("noise_parameter", event.noise_parameter), event.num_buckets
    buckets = check.count("num_buckets", buckets, least=1)
    if buckets == 1 or noise == 1:
        return NOTHING
    if noise == 0:
        return non_private(adjacency)
    if adjacency is Adjacency.REPLACE:
        epsilon = math.log1p(buckets * (1 - noise) / noise) * (1 + 8 * UNIT_ROUNDOFF)
        return mechanisms.RandomizedResponse(epsilon, categories=buckets, holds_under=adjacency)
    # The null record answers uniformly, as in dp_accounting: the truth is one bucket, and all others are alike.
    lie, of_null = Fraction(noise) * (buckets - 1) / buckets, Fraction(1, buckets)
    upper = min(up(float(1 - lie)), 1.0), down(float(lie))
    lower = down(float(of_null)), min(up(float(1 - of_null)), 1.0)
    return mechanisms.DominatingPair.atoms(upper=upper, lower=lower, adjacency=adjacency)


def _concentrated(event: Any, adjacency: Adjacency) -> Composable:
    rho, xi = check.nonnegative("rho", event.rho), check.nonnegative("xi", event.xi)
    return (
        mechanisms.RenyiCurve(RenyiLine(rho, xi), holds_under=adjacency)
        if xi
        else mechanisms.Concentrated(rho, holds_under=adjacency)
    )


def _mixture(event: Any, adjacency: Adjacency) -> Composable:
    sigma = check.nonnegative("standard_deviation", event.standard_deviation)
    found = mechanisms.MixtureOfGaussians(
        sigma or 1.0, shifts=event.sensitivities, weights=event.sampling_probs
    )
    if not any(shift and weight for shift, weight in zip(found.shifts, found.weights, strict=True)):
        return NOTHING
    return found if sigma else non_private(adjacency)


def _tree(event: Any, adjacency: Adjacency) -> Composable:
    """Tree aggregation over trees with disjoint records: the deepest tree has the largest loss."""
    sigma, steps = check.nonnegative("noise_multiplier", event.noise_multiplier), event.step_counts
    listed = cast("Sequence[Any]", steps if isinstance(steps, Sequence) else (steps,))
    counts = [check.count("step_counts", each) for each in listed]
    if not counts:
        raise DomainError("step_counts", steps, "the number of steps of at least one tree")
    if max(counts) == 0:
        return NOTHING
    if sigma == 0:
        return non_private(adjacency)
    return mechanisms.TreeAggregation(
        sigma, steps=max(counts), participation=mechanisms.Participation.single()
    )


def _truncated(event: Any, adjacency: Adjacency) -> Composable:
    rate = check.probability("sampling_probability", event.sampling_probability)
    records = check.count("dataset_size", event.dataset_size)
    batch = check.count("truncated_batch_size", event.truncated_batch_size)
    sigma = check.nonnegative("noise_multiplier", event.noise_multiplier)
    if 0 in (rate, records, batch):
        return NOTHING
    if sigma == 0:
        return mechanisms.BlackBox(0.0, delta=rate, holds_under=adjacency)
    return mechanisms.TruncatedPoisson(sigma, rate=rate, records=records, batch=min(batch, records))


def _everything(event: Any, adjacency: Adjacency) -> Composable:
    return non_private(adjacency)


def _refused(reason: str, remedy: str, *event: Any) -> Composable:
    raise UnsupportedError("", reason, remedy)


_ADDITIVE = (
    mechanisms.Gaussian,
    mechanisms.Laplace,
    mechanisms.DiscreteLaplace,
    mechanisms.DiscreteGaussian,
    mechanisms.MixtureOfGaussians,
    Sampled,
)
_AMPLIFIED = {
    Adjacency.ADD_REMOVE: (
        *_ADDITIVE,
        mechanisms.BlackBox,
        mechanisms.Exponential,
        mechanisms.PermuteAndFlip,
    ),
    Adjacency.ZERO_OUT: _ADDITIVE,
    Adjacency.REPLACE: (mechanisms.Gaussian, Sampled),
}
"""The mechanisms whose loss on a Poisson sample is known. Under zero-out a null record must act as if
it were not sampled, which is not known of a mechanism that is only its guarantee.
"""


def _poisson(event: Any, adjacency: Adjacency, inner: Composition) -> Composable:
    """The composition `inner` on one Poisson sample, shared by all of its mechanisms."""
    rate = check.probability("sampling_probability", event.sampling_probability)
    if rate == 0 or not inner.parts:
        return NOTHING
    if rate == 1:
        return inner
    if reveals(inner):
        return mechanisms.BlackBox(0.0, delta=rate, holds_under=adjacency)
    for part, _ in inner.parts:
        covered = [each for each, known in _AMPLIFIED.items() if isinstance(part, known)]
        reason = f"no pair is known for {part!r} on a sample"
        if not covered:
            raise UnsupportedError("", reason, "Leave out the sample")
        require_adjacency(adjacency, *covered, why=reason)
    part, times = inner.parts[0]
    alone = times == 1 and len(inner.parts) == 1
    if adjacency is Adjacency.REPLACE and not alone:
        raise UnsupportedError(
            "", "no pair is known for several mechanisms on one sample where a record is replaced"
        )
    return Sampled(inner, rate) if alone and not isinstance(part, Sampled) else inner.sampled(rate)


def _without_replacement(event: Any, adjacency: Adjacency, inner: Composition) -> Composable:
    records = check.count("source_dataset_size", event.source_dataset_size, least=1)
    batch = check.count("sample_size", event.sample_size)
    if not batch <= records:
        raise DomainError("sample_size", batch, f"at most the {records} records")
    if batch == 0 or not inner.parts:
        return NOTHING
    if batch == records:
        return inner
    if reveals(inner):
        return mechanisms.BlackBox(0.0, delta=min(up(batch / records), 1.0), holds_under=adjacency)
    (part, times), *others = inner.parts
    if others or times > 1 or not isinstance(part, mechanisms.Gaussian):
        raise UnsupportedError(
            "", f"no pair is known for {inner!r} on a batch of fixed size", "One Gaussian has one"
        )
    return mechanisms.FixedSizeSample(part.sigma, records=records, batch=batch)


def _selection(event: Any, adjacency: Adjacency, inner: Composition) -> Composable:
    """Selection of the best of a random number of runs, whose distribution does not depend on the
    data.
    """
    chosen = mechanisms.PrivateSelection(
        inner if inner.parts else non_private(adjacency), tries=event.mean, shape=event.shape
    )
    if not inner.parts:
        return NOTHING
    return non_private(adjacency) if reveals(inner) else chosen


def _declared_rows() -> dict[str, EventRow]:
    """The table rows of mechanism classes that declare an event by their own parameters; of two, the earlier one's."""
    return {
        kind.event[0]: EventRow(
            " ".join(kind.event[1]), partial(_read_declared, kind, kind.event[1])
        )
        for kind in reversed(mechanisms.kinds().values())
        if issubclass(kind, mechanisms.Stated) and kind.event
        if all(isinstance(each, str) for each in kind.event[1].values())
    }


def _read_declared(
    kind: type[Any], fields: Mapping[str, Any], event: Any, adjacency: Adjacency
) -> Composable:
    values = {parameter: getattr(event, name) for name, parameter in fields.items()}
    return kind(**values, holds_under=adjacency)


_SIZES = "source_dataset_size sample_size event"
EVENTS: dict[str, EventRow] = _declared_rows() | {
    "NoOpDpEvent": EventRow("", lambda *event: NOTHING),
    "NonPrivateDpEvent": EventRow("", _everything),
    "GaussianDpEvent": EventRow("noise_multiplier", partial(_noise, mechanisms.Gaussian)),
    "LaplaceDpEvent": EventRow("noise_multiplier", partial(_noise, mechanisms.Laplace)),
    "DiscreteLaplaceDpEvent": EventRow("noise_parameter sensitivity", _discrete_laplace),
    "DiscreteGaussianDpEvent": EventRow("sigma sensitivity dimension", _discrete_gaussian),
    "RandomizedResponseDpEvent": EventRow(
        "noise_parameter num_buckets", _randomized_response,
        (Adjacency.REPLACE, Adjacency.ZERO_OUT), "a record that is not there gives no answer"),
    "ZCDpEvent": EventRow("rho xi", _concentrated),
    "MixtureOfGaussiansDpEvent": EventRow(
        "standard_deviation sensitivities sampling_probs", _mixture,
        (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT), "it says how a record that is there moves the sum"),
    "SingleEpochTreeAggregationDpEvent": EventRow(
        "noise_multiplier step_counts", _tree,
        (Adjacency.ZERO_OUT,), "where a record leaves or comes, the steps of the others may move"),
    "TruncatedSubsampledGaussianDpEvent": EventRow(
        "dataset_size sampling_probability truncated_batch_size noise_multiplier", _truncated,
        (Adjacency.ADD_REMOVE,), "how full a batch is depends on the record"),
    "PoissonSampledDpEvent": EventRow("sampling_probability event", _poisson),
    "SampledWithReplacementDpEvent": EventRow(
        _SIZES, partial(_refused, "no pair is known for a batch that may hold a record several times",
                        "Draw without replacement, or a Poisson sample")),
    "SampledWithoutReplacementDpEvent": EventRow(
        _SIZES, _without_replacement,
        (Adjacency.REPLACE,), "how a batch is drawn depends on the number of records"),
    "RepeatAndSelectDpEvent": EventRow("event mean shape", _selection),
}  # fmt: skip


def to_named_tuple(composition: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Any:
    """The event that describes a composition under an adjacency, as a named tuple of the wire
    format.

    >>> from dpcompose import Gaussian
    >>> event = to_named_tuple(Gaussian(2.0).sampled(0.25) * 10)
    >>> event.class_name, event.count, event.event.event.noise_multiplier
    ('SelfComposedDpEvent', 10, 2.0)

    Args:
        composition: A mechanism or a composition.
        adjacency: The neighboring relation of the accountant that will read the event, which does
            not state it.

    Raises:
        UnsupportedError: If a mechanism has no event.
    """
    check.member("adjacency", adjacency, Adjacency)
    parts = [(_written(part, adjacency), times) for part, times in compose(composition).parts]
    events = [
        event_tuple("SelfComposedDpEvent", event=one, count=times) if times > 1 else one
        for one, times in parts
    ]
    return _together(events)


def _written(part: ComposablePart, adjacency: Adjacency) -> Any:
    """The event of one mechanism; UnsupportedError if none describes it under this adjacency."""
    if not isinstance(part, mechanisms.Stated) or part.holds_under is adjacency:
        events = _described(part, adjacency)
        row = EVENTS.get(events[0].class_name) if events else None
        if events and (row is None or adjacency in row.relations):
            return _together(events)
    reason = f"no event of dp_accounting says this under {adjacency.value}"
    raise UnsupportedError(
        repr(part), reason, "Ask dpcompose itself, or state it as a BlackBox under that adjacency"
    )


def _described(part: ComposablePart, adjacency: Adjacency) -> list[Any]:
    """The events that describe a mechanism together; none if no event does.

    Rounded numbers are rounded to the conservative side. A noise event has one sensitivity, which
    is doubled for replacement: a mechanism that states another one for it has no event there.
    """
    is_replace = adjacency is Adjacency.REPLACE
    match part:
        case mechanisms.BlackBox(stated=stated) if stated.delta == 1:
            return [event_tuple("NonPrivateDpEvent")]
        case mechanisms.Stated(event=(name, fields)):
            return [event_tuple(name, **_declared_fields(part, fields))]
        case mechanisms.GaussianDP(mu=0) if not is_replace:
            return [event_tuple("NoOpDpEvent")]
        case mechanisms.GaussianDP(mu=mu) if not is_replace:
            return [event_tuple("GaussianDpEvent", noise_multiplier=quotient_below(1.0, mu))]
        case mechanisms.Gaussian() | mechanisms.Laplace() if (
            not is_replace or part.replace_sensitivity is None
        ):
            size = part.sigma if isinstance(part, mechanisms.Gaussian) else part.scale
            multiplier = quotient_below(size, part.sensitivity)
            return [event_tuple(f"{type(part).__name__}DpEvent", noise_multiplier=multiplier)]
        case mechanisms.DiscreteLaplace(scale=scale):
            rate = 1 / scale
            rate = rate if Fraction(rate) * Fraction(scale) >= 1 else up(rate)
            event = partial(event_tuple, "DiscreteLaplaceDpEvent", noise_parameter=rate)
            return [event(sensitivity=shift) for shift in _shifts(part, is_replace)]
        case mechanisms.DiscreteGaussian(sigma=sigma):
            event = partial(event_tuple, "DiscreteGaussianDpEvent", sigma=sigma)
            shifts = _shifts(part, is_replace)
            return [event(sensitivity=float(shift), dimension=1) for shift in shifts]
        case mechanisms.RandomizedResponse(stated=epsilon, categories=count) if (
            epsilon < 700 and is_replace
        ):
            spread = count / (math.expm1(epsilon) + count)
            noise = spread * (1 - 8 * UNIT_ROUNDOFF) if epsilon else 1.0
            return [
                event_tuple("RandomizedResponseDpEvent", noise_parameter=noise, num_buckets=count)
            ]
        case mechanisms.Concentrated(stated=stated) if not stated.delta:
            return [event_tuple("ZCDpEvent", rho=stated.rho, xi=0.0)]
        case mechanisms.RenyiCurve(stated=stated) if (
            isinstance(stated.curve, RenyiLine) and not stated.delta
        ):
            return [event_tuple("ZCDpEvent", rho=stated.curve.rho, xi=stated.curve.xi)]
        case mechanisms.MixtureOfGaussians(sigma=sigma, shifts=shifts, weights=weights):
            event = partial(event_tuple, "MixtureOfGaussiansDpEvent", standard_deviation=sigma)
            return [event(sensitivities=shifts, sampling_probs=weights)]
        case mechanisms.TreeAggregation(sigma=sigma, steps=steps) if (
            part.participation.times(steps) == 1
        ):
            whole, remainder = divmod(steps, part.restart or steps)
            counts = [part.restart or steps] * whole + ([remainder] if remainder else [])
            event = partial(
                event_tuple, "SingleEpochTreeAggregationDpEvent", noise_multiplier=sigma
            )
            return [event(step_counts=counts if len(counts) > 1 else counts[0])]
        case mechanisms.TruncatedPoisson(sigma=sigma, rate=rate, records=records, batch=batch):
            event = partial(event_tuple, "TruncatedSubsampledGaussianDpEvent", dataset_size=records)
            event = partial(event, sampling_probability=rate, truncated_batch_size=batch)
            return [event(noise_multiplier=sigma)]
        case Sampled(base=base, rate=rate):
            inner = to_named_tuple(base, adjacency=adjacency)
            return [event_tuple("PoissonSampledDpEvent", sampling_probability=rate, event=inner)]
        case mechanisms.FixedSizeSample(sigma=sigma, records=records, batch=batch):
            event = partial(
                event_tuple, "SampledWithoutReplacementDpEvent", source_dataset_size=records
            )
            inner = event_tuple("GaussianDpEvent", noise_multiplier=sigma)
            return [event(sample_size=batch, event=inner)]
        case mechanisms.PrivateSelection(base=base, tries=tries, shape=shape):
            inner = to_named_tuple(base, adjacency=adjacency)
            return [event_tuple("RepeatAndSelectDpEvent", event=inner, mean=tries, shape=shape)]
        case _:
            return []


def _shifts(
    part: mechanisms.DiscreteLaplace | mechanisms.DiscreteGaussian, is_replace: bool
) -> list[int]:
    """The absolute shift of each coordinate; empty if the event would mean another shift under
    replacement.
    """
    if is_replace and (part.replace is not None or isinstance(part.shift, tuple)):
        return []
    shifts = part.shift if isinstance(part.shift, tuple) else (part.shift,)
    return [abs(shift) for shift in shifts]


def _declared_fields(part: ComposablePart, fields: Mapping[str, str | float]) -> dict[str, Any]:
    """The field values of an event: parameters of a mechanism by their names, and numbers."""
    arguments = mechanisms.arguments_of(type(part))
    return {
        name: arguments[value].value(part) if isinstance(value, str) else value
        for name, value in fields.items()
    }


def _together(events: list[Any]) -> Any:
    if len(events) == 1:
        return events[0]
    return event_tuple("ComposedDpEvent", events=events) if events else event_tuple("NoOpDpEvent")
