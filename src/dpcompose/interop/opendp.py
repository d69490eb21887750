"""OpenDP: measurements in by their privacy maps, charged before they are invoked; our totals out as privacy profiles.

OpenDP composes inside Rust, where nothing can be plugged in: our place is around its measurements. What its maps return
are upper ends, and they are taken as such, whichever way their decimals are read.
"""
# opendp is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportMissingImports=false

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from dpcompose import check
from dpcompose.account import Account, NumericLiteral
from dpcompose.composition import Composable, compose
from dpcompose.errors import (
    DomainError,
    EngineError,
    MissingExtraError,
    PlanError,
    ReleaseError,
    UnsupportedError,
)
from dpcompose.mechanisms import BlackBox, Concentrated, DominatingPair, RenyiCurve
from dpcompose.plan import Entry, Plan
from dpcompose.values import Adjacency, rounded_up, up

ADD_REMOVE, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE
BY_METRIC = {
    "SymmetricDistance": ADD_REMOVE,
    "InsertDeleteDistance": ADD_REMOVE,
    "SymmetricIdDistance": ADD_REMOVE,
    "ChangeOneDistance": REPLACE,
    "HammingDistance": REPLACE,
    "ChangeOneIdDistance": REPLACE,
    "DiscreteDistance": REPLACE,
}
"""The adjacency of each metric that has one; a metric of sensitivities has none of its own."""
FARTHEST, NEGLIGIBLE, POINTS = 600.0, 1e-30, 1024
Reading = Callable[[Any, float, Adjacency], Composable]
"""From what a map returned, a further delta and an adjacency to a mechanism."""


def from_measurement(
    measurement: Any, d_in: float, *, adjacency: Adjacency | None = None
) -> Composable:
    """The guarantee of a measurement at an input distance, as a mechanism to compose, sample and charge.

    Args:
        measurement: An OpenDP measurement.
        d_in: How far one person's data move its input, in the input metric.
        adjacency: What one person's data may change; where the metric is one of data sets, by default its own.

    Raises:
        DomainError: If that is no measurement, or no distance of its metric.
        UnsupportedError: If its map says nothing at that distance, its measure has no statement here, or its metric
            says nothing of that adjacency.
        MissingExtraError: Without opendp.
    """
    library = _opendp()
    _require_measurement(measurement)
    distance = check.nonnegative("d_in", d_in)
    found = _adjacency(str(measurement.input_metric.type), distance, adjacency)
    what, measure = (
        f"the OpenDP measurement at d_in = {d_in!r}",
        str(measurement.output_measure.type),
    )
    outer, _, inner = measure.removesuffix(">").partition("<")
    reading = _READINGS.get(inner if outer == "Approximate" else outer)
    if reading is None or (inner and outer != "Approximate"):
        remedy = "Convert it first, such as by a combinator of OpenDP"
        raise UnsupportedError(what, f"nothing here can be said of its measure, {measure}", remedy)
    try:
        loss = measurement.map(d_in)
        value, delta = loss if outer == "Approximate" else (loss, 0.0)
        return reading(value, _amount(delta), found)
    except (TypeError, library.mod.UnknownTypeException):
        raise DomainError("d_in", d_in, f"a distance of {measurement.input_metric}") from None
    except (library.mod.OpenDPException, ArithmeticError) as error:
        raise UnsupportedError(
            what, f"it has no privacy map there ({_reason(error)})", _SMALLER
        ) from None
    except ValueError as error:
        reason = f"expected {error.domain}" if isinstance(error, DomainError) else error
        raise UnsupportedError(
            what, f"its privacy map bounds nothing ({reason})", _SMALLER
        ) from None


def _require_measurement(given: Any) -> None:
    if not isinstance(given, _opendp().mod.Measurement):
        raise DomainError("measurement", given, "an OpenDP Measurement")


_SMALLER = "Ask at a distance at which its map gives a finite loss"


def _adjacency(metric: str, distance: float, asked: Adjacency | None) -> Adjacency:
    """The adjacency of a statement at a distance in a metric."""
    own = BY_METRIC.get(metric)
    if own is not None and not distance >= 1:
        raise DomainError("d_in", distance, f"at least 1, since neighbors differ in {metric}")
    if asked is not None and not isinstance(asked, Adjacency):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("adjacency", asked, "a member of Adjacency")
    if own is None and asked is None:
        stated = f"the adjacency that moves the input by at most {distance!r} in {metric}"
        raise DomainError("adjacency", None, f"{stated}: this metric has none of its own")
    if asked in (None, own):
        return own or ADD_REMOVE
    if own is None:
        return asked or ADD_REMOVE
    if own is ADD_REMOVE and asked is REPLACE and distance >= 2:
        return REPLACE  # one record out, one in
    remedy = f"Ask under {own.value}" + (
        ", or at d_in = 2" if own is ADD_REMOVE and asked is REPLACE else ""
    )
    raise UnsupportedError(
        f"{metric} at {distance!r}", f"it says nothing of neighbors under {asked}", remedy
    )


def _amount(value: Any) -> float:
    """The number that a map returned, rounded so that neither the double nor its shortest decimal is below it.

    Raises:
        ValueError: If it is no finite number >= 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"it returns {value!r:.40}")
    return rounded_up(Fraction(value))


def _pure(value: Any, delta: float, adjacency: Adjacency) -> Composable:
    return BlackBox(_amount(value), delta=delta, holds_under=adjacency)


def _concentrated(value: Any, delta: float, adjacency: Adjacency) -> Composable:
    return Concentrated(_amount(value), delta=delta, holds_under=adjacency)


def _fixed(value: Any, delta: float, adjacency: Adjacency) -> Composable:
    return BlackBox(
        _amount(value[0]), delta=min(up(delta + _amount(value[1])), 1.0), holds_under=adjacency
    )


def _renyi(curve: Any, delta: float, adjacency: Adjacency) -> Composable:
    failure = _opendp().mod.OpenDPException

    def bound(order: float) -> float:
        """The curve, infinite where it has no value."""
        try:
            return _amount(curve(order))
        except (failure, ValueError):
            return math.inf

    return RenyiCurve(bound, holds_under=adjacency, delta=delta)


def _profile(profile: Any, delta: float, adjacency: Adjacency) -> Composable:
    """The pair above a profile, from upper ends at many points: a chord between two of them is above a convex curve.

    Beyond the last point, where hardly anything is left, it does not fall: that much counts as lost.
    """

    @cache
    def at(epsilon: float) -> float:
        return min(up(min(_amount(profile.delta(epsilon)), 1.0) + delta), 1.0)

    end = at(FARTHEST) * (1 + 1e-9) + NEGLIGIBLE
    low, high = 0.0, 1.0
    while high < FARTHEST and at(high) > end:
        low, high = high, min(2 * high, FARTHEST)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > end else (low, middle)
    points = np.linspace(0.0, high, POINTS).tolist()
    return DominatingPair.from_points(points, [at(point) for point in points], adjacency=adjacency)


_READINGS: dict[str, Reading] = {
    "MaxDivergence": _pure,
    "ZeroConcentratedDivergence": _concentrated,
    "FixedSmoothedMaxDivergence": _fixed,
    "RenyiDivergence": _renyi,
    "SmoothedMaxDivergence": _profile,
}


def privacy_profile(total: Composable, *, adjacency: Adjacency = ADD_REMOVE) -> Any:
    """The privacy profile of a composition as OpenDP has them: upper ends of delta at each epsilon >= 0.

    Args:
        total: A mechanism or composition.
        adjacency: What one person's data may change.

    Raises:
        DomainError: If that is no composition.
        UnsupportedError: If a part has no statement under the adjacency, or OpenDP's features are not enabled.
    """
    if not isinstance(total, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("total", total, "a mechanism or a composition")
    library, whole = _opendp(), compose(total)
    whole.delta(epsilon=0.0, adjacency=adjacency)

    def curve(epsilon: float) -> float:
        return whole.delta(epsilon=epsilon, adjacency=adjacency).upper

    return _made("a privacy profile", lambda: library.measures.new_privacy_profile(curve))


def to_measurement(
    total: Composable,
    function: Callable[[Any], Any],
    *,
    input_domain: Any,
    input_metric: Any,
    d_in: float,
    adjacency: Adjacency | None = None,
    TO: Any = "ExtrinsicObject",  # noqa: N803
) -> Any:
    """An OpenDP measurement that runs `function`, with the privacy profile of `total` up to the distance `d_in`.

    That the function does what `total` states is the caller's word: OpenDP calls the feature honest-but-curious.

    Args:
        total: The mechanism or composition that the function runs.
        function: From data to a release.
        input_domain: OpenDP's domain of the data.
        input_metric: OpenDP's metric between data.
        d_in: The distance of neighbors; beyond it nothing is stated.
        adjacency: As in `from_measurement`.
        TO: OpenDP's type of the release.
    """
    library = _opendp()
    distance = check.nonnegative("d_in", d_in)
    if not isinstance(input_metric, library.mod.Metric) or not isinstance(
        input_domain, library.mod.Domain
    ):
        raise DomainError(
            "input_metric", input_metric, "a Metric of OpenDP, and input_domain a Domain"
        )
    found = _adjacency(str(input_metric.type), distance, adjacency)
    privacy_profile(total, adjacency=found)

    def privacy_map(asked: float) -> Any:
        if not 0 <= asked <= distance:
            raise ValueError(f"stated at distances of at most {distance!r}")
        return privacy_profile(
            total, adjacency=found
        ).curve  # a new one: OpenDP frees each that it is given

    measure = library.measures.smoothed_max_divergence
    make = library.measurements.make_user_measurement
    return _made(
        "a measurement",
        lambda: make(
            input_domain, input_metric, measure(), function, privacy_map=privacy_map, TO=TO
        ),
    )


@dataclass(frozen=True)
class Compositor:
    """Measurements on one data set: each is charged to an account, then invoked, and refused before if it is too much.

    Args:
        account: Where it is charged.
        data: What is measured; it is not shown.
        input_domain: OpenDP's domain of the data, as text; that of every measurement.
        input_metric: OpenDP's metric, likewise.
        d_in: How far one person's data move the input.
    """

    account: Account
    data: Any = field(repr=False)
    input_domain: str
    input_metric: str
    d_in: float

    def invoke(
        self, measurement: Any, *, actor: str, key: str, delta: NumericLiteral | None = None
    ) -> Any:
        """Charge, redeem, then invoke; the answer.

        Args:
            measurement: An OpenDP measurement that answers once.
            actor: Who asks.
            key: The idempotency key: a key that was used draws nothing again.
            delta: Where on its curve it is charged to filters of (epsilon, delta).

        Raises:
            OverdrawnError: If it does not fit; it was not invoked.
            AlreadyRedeemedError: If the key was used.
            EngineError: If OpenDP failed: the charge stands.
            ReleaseError: If the answer would go on answering: the charge stands, and it is not handed out.
            DomainError, UnsupportedError: As `from_measurement` and `Account.charge`.
        """
        _require_measurement(measurement)
        for name, own in (
            ("input_domain", measurement.input_domain),
            ("input_metric", measurement.input_metric),
        ):
            if str(own) != self.__dict__[name]:
                raise DomainError(name, str(own), f"{self.__dict__[name]}, as in the compositor")
        mechanism = from_measurement(measurement, self.d_in, adjacency=self.account.adjacency)
        receipt = self.account.charge(mechanism, actor=actor, key=key, delta=delta)
        self.account.ledger.redeem(receipt, actor=actor)
        try:
            answer = measurement.invoke(self.data)
        except Exception:
            raise EngineError("OpenDP") from None
        if isinstance(answer, _opendp().mod.Queryable):
            raise ReleaseError(
                f"key = {key!r}: an interactive measurement. Its charge stands; invoke what answers once"
            )
        return answer


def compositor(
    account: Account, data: Any, *, input_domain: Any, input_metric: Any, d_in: float
) -> Compositor:
    """A compositor around OpenDP's measurements that charges an account before each of them is invoked.

    Args:
        account: A scope of a ledger with a filter.
        data: What is measured.
        input_domain: OpenDP's domain of the data.
        input_metric: OpenDP's metric between data.
        d_in: How far one person's data move the input, under the account's adjacency.

    Raises:
        DomainError: If an argument is of another type.
        UnsupportedError: If the metric says nothing of the account's adjacency.
    """
    library = _opendp()
    if not isinstance(account, Account):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("account", account, "an Account, as open_scope returns it")
    if not isinstance(input_metric, library.mod.Metric) or not isinstance(
        input_domain, library.mod.Domain
    ):
        raise DomainError(
            "input_metric", input_metric, "a Metric of OpenDP, and input_domain a Domain"
        )
    _adjacency(str(input_metric.type), check.nonnegative("d_in", d_in), account.adjacency)
    return Compositor(account, data, str(input_domain), str(input_metric), d_in)


def profile_plan(text: str, *, delta: float, source: str = "profile") -> Plan:
    """The plan of a profile in a file: the point with the least epsilon at no more than `delta`, as a black box.

    The file is JSON: {"epsilon": [...], "delta": [...], "adjacency": "add-remove"}, with upper ends, such as those of
    `PrivacyProfile.delta` at some epsilons.

    Raises:
        PlanError: If the text is no such profile.
        DomainError: If delta is outside [0, 1].
        UnsupportedError: If no point has so small a delta.
    """
    delta = check.probability("delta", delta)
    try:
        given = json.loads(text)
        adjacency = Adjacency(given.get("adjacency", ADD_REMOVE.value))
        points = list(zip(given["epsilon"], given["delta"], strict=True))
        DominatingPair.from_points(given["epsilon"], given["delta"], adjacency=adjacency)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        expected = f'{{"epsilon": [...], "delta": [...], "adjacency": "add-remove"}} ({type(error).__name__}: {error})'
        raise PlanError(source, "", "", None, expected) from None
    small = [
        (_amount(epsilon), _amount(mass)) for epsilon, mass in points if _amount(mass) <= delta
    ]
    if not small:
        raise UnsupportedError(
            source,
            f"no point of the profile has a delta of at most {delta!r}",
            "Ask at a larger one",
        )
    epsilon, mass = min(small)
    parameters = (("epsilon", epsilon), ("delta", mass), ("holds_under", adjacency))
    return Plan((Entry("profile", "black-box", parameters),), adjacency=adjacency, source=source)


def _made(what: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except _opendp().mod.OpenDPException as error:
        raise UnsupportedError(what, _reason(error), "See opendp.mod.enable_features") from None


def _reason(error: Exception) -> str:
    """The line that says what went wrong, of an error that may hold two stack traces."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    raised = [line for line in lines if re.match(r"\w*(Error|Exception)\b", line)]
    return (raised[-1] if raised else lines[0])[:120]


@dataclass(frozen=True)
class _Library:
    """The parts of opendp that are used: its prelude would bring polars and scikit-learn along."""

    mod: Any
    measurements: Any
    measures: Any


def _opendp() -> _Library:
    try:
        from opendp import measurements, measures, mod
    except ImportError:
        raise MissingExtraError("reading OpenDP's measurements", "opendp") from None
    return _Library(mod, measurements, measures)
