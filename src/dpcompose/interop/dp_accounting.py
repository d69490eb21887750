"""dp_accounting: its events, read and written, and an accountant that replaces `PLDAccountant`.

    from dpcompose.interop.dp_accounting import Accountant

    accountant = Accountant().compose(event)      # instead of PLDAccountant()
    config.calibrate(..., accountant_fn=Accountant)      # JAX Privacy

Events are read without the library, from its objects or from named tuples of its wire format.
`Accountant` and `to_dp_event` need the library (extra `dp-accounting`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, ClassVar, Self

from dpcompose import check
from dpcompose.composition import Composable, Composition, GrowingEpsilon, compose
from dpcompose.errors import DomainError, UnsupportedError, optional_library
from dpcompose.interop.event_tree import RefusedEventError, counted, named, require
from dpcompose.interop.events import EVENTS, RELATIONS, reveals, to_named_tuple
from dpcompose.values import Adjacency, Bound

ADJACENCIES = {name: adjacency for adjacency, name in RELATIONS.items()}
MOST_KNOWN = 1 << 14
"""The number of different events that are remembered with what they describe."""
MOST_AROUND = 16
_CALLED = {
    "sigma": ("noise_multiplier", "standard_deviation"),
    "scale": ("noise_multiplier", "noise_parameter"),
    "shift": ("sensitivity",),
    "shifts": ("sensitivities",),
    "weights": ("sampling_probs",),
    "steps": ("step_counts",),
    "records": ("dataset_size", "source_dataset_size"),
    "categories": ("num_buckets",),
    "tries": ("mean",),
}
"""For each parameter of dpcompose, the event fields from which it is computed."""


def from_dp_event(event: Any, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Composition:
    """The composition that an event describes under an adjacency.

    Args:
        event: An event of dp_accounting, or a named tuple of its wire format.
        adjacency: The neighboring relation, which events do not state.

    Raises:
        DomainError: If the argument is not an event, contains itself, or has a value outside its
            domain.
        UnsupportedError: If an event has no certified mechanism under the adjacency.
    """
    try:
        return read_event(event, check.member("adjacency", adjacency, Adjacency))
    except RefusedEventError as refused:
        raise refused.error from None


def to_dp_event(composition: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Any:
    """The dp_accounting event that describes a composition under an adjacency.

    Raises:
        MissingExtraError: If dp_accounting is not installed.
        UnsupportedError: If a mechanism has no event, or the installed version lacks its class.
    """
    wire = to_named_tuple(composition, adjacency=adjacency)
    library = optional_library("dp_accounting", "to_dp_event", "dp-accounting")
    try:
        return library.DpEvent.from_named_tuple(wire)
    except AttributeError as error:
        reason = f"the installed dp_accounting has no {error.name}"
        raise UnsupportedError(
            "to_dp_event", reason, "Install a later version, or use to_named_tuple"
        ) from None


def read_event(event: Any, adjacency: Adjacency, above: tuple[int, ...] = ()) -> Composition:
    """The composition that an event describes under an adjacency.

    Args:
        event: An event of dp_accounting, or a named tuple of its wire format.
        adjacency: The neighboring relation, which events do not state.
        above: The `id` of each enclosing sampling or selection event, to detect cycles.

    Raises:
        RefusedEventError: If an event cannot be read, or has no certified mechanism under the
            adjacency.
    """
    memo, read = dict[Any, Composable](), partial(_read_one, adjacency=adjacency, above=above)
    return compose(*[_once(memo, each, read) * times for each, times in counted(event)])


def _once(memo: dict[Any, Composable], event: Any, read: Callable[[Any], Composable]) -> Composable:
    """The mechanisms that an event describes, read once for equal events if they can be compared."""
    try:
        described = memo.get(event)
    except (TypeError, RecursionError):  # it holds a list, or is too deep
        return read(event)
    if described is None:
        described = read(event)
        if len(memo) < MOST_KNOWN:
            memo[event] = described
    return described


def _read_one(event: Any, adjacency: Adjacency, above: tuple[int, ...]) -> Composable:
    name, fields = named(event)
    row = EVENTS.get(name)
    if row is None:
        remedy = "Say what is known of it by an EpsilonDeltaDpEvent or a ZCDpEvent"
        raise RefusedEventError(
            event, UnsupportedError(name, "this event has no sound statement here", remedy)
        )
    require(event, name, fields, frozenset(row.fields.split()))
    try:
        if "event" not in fields:
            return row.composition(event, adjacency)
        if id(event) in above:
            raise DomainError("event", "a cycle", "a tree: this event contains itself")
        if len(above) == MOST_AROUND:
            shown = f"<more than {MOST_AROUND} inside one another>"
            accepted = f"samples and selections inside one another at most {MOST_AROUND} deep"
            raise DomainError("event", shown, accepted)
        return row.composition(
            event, adjacency, read_event(event.event, adjacency, (*above, id(event)))
        )
    except DomainError as error:
        own, bracket, index = error.name.partition("[")
        field = next((each for each in (own, *_CALLED.get(own, ())) if each in fields), own)
        called = f"{name}.{field}{bracket}{index}"
        placed = DomainError(called, error.value, error.domain, error.remedy)
        raise RefusedEventError(event, placed) from None
    except UnsupportedError as error:
        raise RefusedEventError(event, UnsupportedError(name, error.reason, error.remedy)) from None


class _ExactAccountant:
    """A dp_accounting accountant with certified bounds, a replacement for `PLDAccountant` and
    `RdpAccountant`.

    Args:
        neighboring_relation: A member of dp_accounting's NeighboringRelation; None for
            ADD_OR_REMOVE_ONE.
    """

    library: ClassVar[Any]
    neighboring_relation: Any
    CompositionErrorDetails: Any
    _ledger: Any

    def __init__(self, neighboring_relation: Any = None) -> None:
        relations = self.library.NeighboringRelation
        relation = (
            relations.ADD_OR_REMOVE_ONE if neighboring_relation is None else neighboring_relation
        )
        if not isinstance(relation, relations):
            raise DomainError(
                "neighboring_relation", relation, f"NeighboringRelation.{' or .'.join(ADJACENCIES)}"
            )
        super().__init__(relation)  # pyright: ignore[reportCallIssue]
        self._total, self._waiting = compose(), list[Composable]()
        self._known = dict[Any, Composable]()

    @property
    def adjacency(self) -> Adjacency:
        """The neighboring relation as an `Adjacency`."""
        return ADJACENCIES[self.neighboring_relation.name]

    @property
    def composition(self) -> Composition:
        """Everything composed so far, as a composition."""
        if self._waiting:
            self._total, self._waiting = compose(self._total, *self._waiting), []
        return self._total

    def compose(self, event: Any, count: int = 1) -> Self:
        """Add an event that runs `count` times, and return the accountant.

        Raises:
            TypeError: If `event` is not a DpEvent.
            DomainError: If a value in the event is outside its domain, or `count` is not an integer
                of at least 1.
            UnsupportedEventError: If an event has no certified mechanism under the neighboring
                relation.
        """
        if not isinstance(event, self.library.DpEvent):
            raise TypeError(f"`event` must be `DpEvent`. Found {type(event)}.")
        count = check.count("count", count, least=1)
        try:
            described = self._read(event)
        except RefusedEventError as refused:
            if isinstance(refused.error, DomainError):
                raise refused.error from None
            caused = f"{refused.error} [caused by subevent {type(refused.event).__name__}]"
            raise self.library.UnsupportedEventError(caused) from None
        repeated, times = event, count
        while isinstance(repeated, self.library.SelfComposedDpEvent):
            repeated, times = repeated.event, times * repeated.count
        if times:
            self._ledger.compose(repeated, times)
        self._add(described, count)
        return self

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            self._add(self._read(event), count if do_compose else 0)
        except RefusedEventError as refused:
            return self.CompositionErrorDetails(refused.event, str(refused.error))
        return None

    def _read(self, event: Any) -> Composable:
        return _once(self._known, event, partial(read_event, adjacency=self.adjacency))

    def _add(self, described: Composable, count: int) -> None:
        self._waiting += [compose(described * count)] if count else []

    def bound(self, *, delta: float | None = None, epsilon: float | None = None) -> Bound:
        """Certified lower and upper ends of epsilon at a delta, or of delta at an epsilon.

        Raises:
            DomainError: If not exactly one of the two is given, or it is outside its domain.
        """
        if (delta is None) == (epsilon is None):
            raise DomainError("delta, epsilon", (delta, epsilon), "one of the two")
        if epsilon is not None:
            return self.composition.delta(epsilon=epsilon, adjacency=self.adjacency)
        return _epsilon(self.composition, check.probability("delta", delta), self.adjacency)

    def get_epsilon(self, target_delta: float) -> float:
        """The upper end of epsilon at this delta; infinite if anything was released without
        protection.
        """
        found = self.bound(delta=target_delta).upper
        return math.inf if reveals(self.composition) else found

    def get_delta(self, target_epsilon: float) -> float:
        """The upper end of delta at this epsilon."""
        return self.bound(epsilon=target_epsilon).upper


@lru_cache(maxsize=32)
def _epsilon(composition: Composition, delta: float, adjacency: Adjacency) -> Bound:
    """Epsilon at a delta, cached because calibrations repeat questions at both ends and at the
    result of their search.
    """
    if adjacency is Adjacency.ADD_REMOVE and len(composition.parts) == 1:
        return GrowingEpsilon(delta).bound(composition.parts)
    return composition.epsilon(delta=delta, adjacency=adjacency)


def __getattr__(name: str) -> Any:
    """Create the class `Accountant` when it is first accessed, since it derives from a class of
    dp_accounting.
    """
    if name != "Accountant":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    library = optional_library("dp_accounting", "Accountant", "dp-accounting")
    stated = {"library": library, "__module__": __name__, "__doc__": _ExactAccountant.__doc__}
    kind = type("Accountant", (_ExactAccountant, library.PrivacyAccountant), stated)
    return globals().setdefault(name, kind)
