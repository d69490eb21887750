"""OpenDP: measurements are read by their privacy maps and charged before they run; totals become
privacy profiles.

OpenDP composes inside Rust, without extension points, so its measurements are wrapped. The values
that privacy maps return are taken as upper bounds, rounded up so that they remain bounds.
"""

from __future__ import annotations

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
    ReleaseError,
    UnsupportedError,
    optional_library,
)
from dpcompose.mechanisms import BlackBox, Concentrated, DominatingPair, RenyiCurve
from dpcompose.values import Adjacency, rounded_up, up

ADD_REMOVE, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE
BY_METRIC = {
    f"{name}Distance": ADD_REMOVE for name in ("Symmetric", "InsertDelete", "SymmetricId")
} | {f"{name}Distance": REPLACE for name in ("ChangeOne", "Hamming", "ChangeOneId", "Discrete")}
"""The adjacency of each dataset metric; metrics of sensitivities have none."""
FARTHEST, NEGLIGIBLE, POINTS = 600.0, 1e-30, 1024
Reading = Callable[[Any, float, Adjacency], Composable]
"""Maps the value of a privacy map, an additional delta and an adjacency to a mechanism."""


def from_measurement(
    measurement: Any, d_in: float, *, adjacency: Adjacency | None = None
) -> Composable:
    """The guarantee of a measurement at an input distance, as a mechanism.

    Args:
        measurement: An OpenDP measurement.
        d_in: The largest distance of neighboring inputs, in the input metric.
        adjacency: The neighboring relation; by default that of the input metric, if it is a dataset
            metric.

    Raises:
        DomainError: If an argument is not a measurement, or not a distance in its metric.
        UnsupportedError: If the privacy map gives no finite bound at that distance, its measure is
            not supported, or the metric does not cover the adjacency.
        MissingExtraError: If opendp is not installed.
    """
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
        raise UnsupportedError(what, f"its privacy measure, {measure}, is not supported", remedy)
    try:
        loss = measurement.map(d_in)
        value, delta = loss if outer == "Approximate" else (loss, 0.0)
        return reading(value, _amount(delta), found)
    except (TypeError, _opendp("mod").UnknownTypeException):
        raise DomainError("d_in", d_in, f"a distance of {measurement.input_metric}") from None
    except (_opendp("mod").OpenDPException, ArithmeticError, ValueError) as error:
        unmet = f"expected {error.domain}" if isinstance(error, DomainError) else _reason(error)
        reason = f"its privacy map gives no finite bound there ({unmet})"
    raise UnsupportedError(what, reason, "Ask at a distance at which its map gives a finite loss")


def _require_measurement(measurement: Any) -> None:
    check.kind("measurement", measurement, _opendp("mod").Measurement, "an OpenDP Measurement")


def _neighbors(domain: Any, metric: Any, d_in: float, adjacency: Adjacency | None) -> Adjacency:
    """The adjacency of the datasets of a domain that are at most `d_in` apart; see `_adjacency`."""
    mod = _opendp("mod")
    check.kind("input_domain", domain, mod.Domain, "a Domain of OpenDP")
    check.kind("input_metric", metric, mod.Metric, "a Metric of OpenDP")
    return _adjacency(str(metric.type), check.nonnegative("d_in", d_in), adjacency)


def _adjacency(metric: str, distance: float, requested: Adjacency | None) -> Adjacency:
    """The adjacency under which a guarantee at a distance in a metric holds.

    Args:
        metric: The name of the input metric.
        distance: The largest distance of neighbors.
        requested: The requested adjacency; None for that of the metric.

    Raises:
        DomainError: If the metric has no adjacency and none is requested, or the distance is below
            1.
        UnsupportedError: If the metric does not cover the requested adjacency.
    """
    own = BY_METRIC.get(metric)
    if own is not None and not distance >= 1:
        raise DomainError("d_in", distance, f"at least 1, since neighbors differ in {metric}")
    asked = own if requested is None else check.member("adjacency", requested, Adjacency)
    if asked is None:
        stated = f"the adjacency that moves the input by at most {distance!r} in {metric}"
        raise DomainError("adjacency", None, f"{stated}: this metric has none of its own")
    one_out_one_in = (own, asked) == (ADD_REMOVE, REPLACE)
    if own is None or own is asked or (one_out_one_in and distance >= 2):
        return asked
    reason = f"distances in it do not cover neighbors under {asked}"
    remedy = f"Ask under {own.value}" + (", or at d_in = 2" if one_out_one_in else "")
    raise UnsupportedError(f"{metric} at {distance!r}", reason, remedy)


def _amount(value: Any) -> float:
    """The number that a privacy map returned, rounded up so that its shortest decimal form is an
    upper bound too.

    Raises:
        ValueError: If it is not a finite number of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"it returns {value!r:.40}")
    return rounded_up(Fraction(value))


def _renyi(curve: Any, delta: float, adjacency: Adjacency) -> Composable:
    failure = _opendp("mod").OpenDPException

    def bound(order: float) -> float:
        """The curve, infinite where it has no value."""
        try:
            return _amount(curve(order))
        except (failure, ValueError):
            return math.inf

    return RenyiCurve(bound, holds_under=adjacency, delta=delta)


def _profile(profile: Any, delta: float, adjacency: Adjacency) -> Composable:
    """A dominating pair above a privacy profile, from upper bounds at many points joined by chords
    (the profile is convex).

    Beyond the last point the profile is taken as constant: that remainder counts as delta.
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
    "MaxDivergence": lambda value, delta, under: BlackBox(
        _amount(value), delta=delta, holds_under=under
    ),
    "ZeroConcentratedDivergence": lambda value, delta, under: Concentrated(
        _amount(value), delta=delta, holds_under=under
    ),
    "FixedSmoothedMaxDivergence": lambda value, delta, under: BlackBox(
        _amount(value[0]), delta=min(up(delta + _amount(value[1])), 1.0), holds_under=under
    ),
    "RenyiDivergence": _renyi,
    "SmoothedMaxDivergence": _profile,
}


def privacy_profile(total: Composable, *, adjacency: Adjacency = ADD_REMOVE) -> Any:
    """The privacy profile of a composition as an OpenDP object: upper bounds of delta at each
    epsilon >= 0.

    Args:
        total: A mechanism or composition.
        adjacency: The neighboring relation.

    Raises:
        DomainError: If `total` is neither a mechanism nor a composition.
        UnsupportedError: If a mechanism has no bound under the adjacency, or OpenDP's features are
            not enabled.
    """
    measures = _opendp("measures")
    whole = compose(check.kind("total", total, Composable, "a mechanism or a composition"))
    whole.delta(epsilon=0.0, adjacency=adjacency)

    def curve(epsilon: float) -> float:
        return whole.delta(epsilon=epsilon, adjacency=adjacency).upper

    return _constructed("a privacy profile", lambda: measures.new_privacy_profile(curve))


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
    """An OpenDP measurement that runs a function, with the privacy profile of `total` at distances
    up to `d_in`.

    That the function satisfies the guarantee of `total` is the caller's promise; OpenDP calls this
    feature honest-but-curious.

    Args:
        total: The mechanism or composition that the function implements.
        function: Maps data to a release.
        input_domain: OpenDP's domain of the data.
        input_metric: OpenDP's metric between data.
        d_in: The largest distance of neighbors; at larger distances the privacy map raises an
            error.
        adjacency: The neighboring relation; by default that of the input metric, if it is a dataset
            metric.
        TO: OpenDP's type of the release.
    """
    found = _neighbors(input_domain, input_metric, d_in, adjacency)
    privacy_profile(total, adjacency=found)

    def privacy_map(input_distance: float) -> Any:
        if not 0 <= input_distance <= d_in:
            raise ValueError(f"stated at distances of at most {d_in!r}")
        return privacy_profile(
            total, adjacency=found
        ).curve  # a new one: OpenDP frees each that it is given

    measure = _opendp("measures").smoothed_max_divergence
    make = _opendp("measurements").make_user_measurement
    return _constructed(
        "a measurement",
        lambda: make(
            input_domain, input_metric, measure(), function, privacy_map=privacy_map, TO=TO
        ),
    )


@dataclass(frozen=True)
class Compositor:
    """OpenDP measurements on one dataset, each charged to an account before it runs.

    Args:
        account: The budget account.
        data: The dataset, which is left out of `repr`.
        input_domain: The OpenDP domain that every measurement must have, as text.
        input_metric: The OpenDP metric that every measurement must have, as text.
        d_in: The largest distance of neighbors, in that metric.
    """

    account: Account
    data: Any = field(repr=False)
    input_domain: str
    input_metric: str
    d_in: float

    def invoke(
        self, measurement: Any, *, actor: str, key: str, delta: NumericLiteral | None = None
    ) -> Any:
        """Charge and redeem a measurement, then run it on the data and return its answer.

        Args:
            measurement: An OpenDP measurement that is not interactive.
            actor: Who requests the answer.
            key: The idempotency key of the charge; a key that was redeemed before is refused.
            delta: The delta at which it is charged, for filters that charge (epsilon, delta).

        Raises:
            OverdrawnError: If it does not fit the budget; the measurement does not run.
            AlreadyRedeemedError: If the key was redeemed before.
            EngineError: If OpenDP fails; the charge stands.
            ReleaseError: If the answer is interactive; the charge stands, and the answer is not
                returned.
            DomainError, UnsupportedError: As for `from_measurement` and `Account.charge`.
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
        if isinstance(answer, _opendp("mod").Queryable):
            raise ReleaseError(
                f"key = {key!r}: an interactive measurement. Its charge stands; invoke what answers once"
            )
        return answer


def compositor(
    account: Account, data: Any, *, input_domain: Any, input_metric: Any, d_in: float
) -> Compositor:
    """A compositor that charges OpenDP measurements on a dataset to an account before each one
    runs.

    Args:
        account: The budget account: a scope of a ledger with a filter.
        data: The dataset.
        input_domain: OpenDP's domain of the data.
        input_metric: OpenDP's metric between datasets.
        d_in: The largest distance of neighbors under the account's adjacency.

    Raises:
        DomainError: If an argument has the wrong type, or `d_in` is outside its domain.
        UnsupportedError: If the metric does not cover the account's adjacency.
    """
    check.kind("account", account, Account, "an Account, as open_scope returns it")
    _neighbors(input_domain, input_metric, d_in, account.adjacency)
    return Compositor(account, data, str(input_domain), str(input_metric), d_in)


def _constructed(what: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except _opendp("mod").OpenDPException as error:
        raise UnsupportedError(what, _reason(error), "See opendp.mod.enable_features") from None


def _reason(error: Exception) -> str:
    """The line of an OpenDP error that states its cause, without stack traces."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    raised = [line for line in lines if re.match(r"\w*(Error|Exception)\b", line)]
    return (raised[-1] if raised else lines[0])[:120]


def _opendp(name: str) -> Any:
    """A module of opendp; its prelude would also import polars and scikit-learn."""
    return optional_library(f"opendp.{name}", "reading OpenDP's measurements", "opendp")
