"""A tree of events, read: the composition that it describes."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from dpcompose.composition import Composable, Composition, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.interop.event_mechanisms import EVENTS
from dpcompose.interop.event_sampling import EVENTS_AROUND
from dpcompose.interop.event_tree import RefusedEventError, counted, is_composition, named, require
from dpcompose.values import Adjacency

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
"""Our parameters, and the fields that they come from."""


def read_event(event: Any, adjacency: Adjacency, above: tuple[int, ...] = ()) -> Composition:
    """The composition that an event describes, to be asked under that adjacency.

    Args:
        event: An event of dp_accounting, or a named tuple of its wire format.
        adjacency: Who are neighbors.
        above: The samples and selections, by identity, that the event is inside of.

    Raises:
        RefusedEventError: If an event in it cannot be read, or has no sound statement under the adjacency.
    """
    if not is_composition(event):
        return compose(_read_one(event, adjacency, above))
    with _uncollected():
        return compose(*_read_all(event, adjacency, above))


def _read_all(event: Any, adjacency: Adjacency, above: tuple[int, ...]) -> list[Composable]:
    """The members of a composition; events that are equal are read once."""
    items: list[Composable] = []
    known: dict[Any, Composable] = {}
    for each, times in counted(event):
        try:
            found = known.get(each)
        except (TypeError, RecursionError):  # it holds a list, or is too deep to be compared
            found = _read_one(each, adjacency, above)
        else:
            if found is None:
                found = known[each] = _read_one(each, adjacency, above)
        items.append(found if times == 1 else found * times)
    return items


@contextmanager
def _uncollected() -> Generator[None]:
    """Without the collector of cycles: a long composition has none, and it would look at all of it again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read_one(event: Any, adjacency: Adjacency, above: tuple[int, ...]) -> Composable:
    name, fields = named(event)
    known = EVENTS.get(name) or EVENTS_AROUND.get(name)
    if known is None:
        remedy = "Say what is known of it by an EpsilonDeltaDpEvent or a ZCDpEvent"
        raise RefusedEventError(
            event, UnsupportedError(name, "this event has no sound statement here", remedy)
        )
    require(event, name, fields, known[0])
    try:
        if name in EVENTS:
            return EVENTS[name][1](event, adjacency)
        if id(event) in above:
            raise DomainError("event", "a cycle", "a tree: this event contains itself")
        if len(above) == MOST_AROUND:
            raise DomainError(
                "event", "one more inside", f"samples and selections at most {MOST_AROUND} deep"
            )
        inner = read_event(event.event, adjacency, (*above, id(event)))
        return EVENTS_AROUND[name][1](event, adjacency, inner)
    except DomainError as error:
        own, bracket, index = error.name.partition("[")
        field = (
            own
            if own in fields
            else next((each for each in _CALLED.get(own, ()) if each in fields), own)
        )
        placed = DomainError(
            f"{name}.{field}{bracket}{index}", error.value, error.domain, error.remedy
        )
        raise RefusedEventError(event, placed) from None
    except UnsupportedError as error:
        raise RefusedEventError(event, UnsupportedError(name, error.reason, error.remedy)) from None
