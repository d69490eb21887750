"""The tree of a DpEvent: each distinct event once, with the number of times it runs.

An event is an object of dp_accounting or a named tuple of its wire format. Both have the same
fields, and differ in where the class name is stored. Trees may be deep and share branches: the work
grows with the number of distinct events, not with how often they run. In JSON an event is written
field by field:

{"module_name": "dp_accounting.dp_event", "class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from dpcompose import check
from dpcompose.composition import MOST_TIMES
from dpcompose.errors import DomainError, UnsupportedError

MODULE = "dp_accounting.dp_event"
SELF_COMPOSED = "SelfComposedDpEvent"
COMPOSITIONS = {
    "ComposedDpEvent": frozenset({"events"}),
    SELF_COMPOSED: frozenset({"event", "count"}),
}
Children = list[tuple[Any, int]]


class RefusedEventError(Exception):
    """Raised if an event cannot be read.

    Args:
        event: The innermost event that causes the error.
        error: The error to report to the user.
    """

    def __init__(self, event: Any, error: DomainError | UnsupportedError) -> None:
        super().__init__(str(error))
        self.event, self.error = event, error


def named(event: Any) -> tuple[str, frozenset[str]]:
    """The class name of an event and the names of its fields.

    Raises:
        RefusedEventError: If the argument is not an event.
    """
    try:
        if not isinstance(event, tuple):
            return _declared(cast("Any", type(event)))
        wire = cast("Any", event)
        module, name = (_text(each) for each in (wire.module_name, wire.class_name))
        return _checked(module, name), frozenset(wire._fields) - {"module_name", "class_name"}
    except (AttributeError, TypeError, ValueError):
        shown = cast("Any", type(cast("object", event))).__name__
        wanted = "an event of dp_accounting, or a named tuple of its wire format"
        raise RefusedEventError(event, DomainError("event", f"a {shown}", wanted)) from None


def _text(value: Any) -> str:
    """A name as str; bytes are decoded, other types raise TypeError."""
    if not isinstance(value, str | bytes):
        raise TypeError(value)
    return value if isinstance(value, str) else value.decode()


@lru_cache(maxsize=128)
def _declared(kind: Any) -> tuple[str, frozenset[str]]:
    return _checked(kind.__module__, kind.__name__), frozenset(
        each.name for each in kind.__attrs_attrs__
    )


def _checked(module: str, name: str) -> str:
    """The name of a class of dp_accounting; a class of another module is qualified by it, so that
    no event matches.
    """
    return name if module.partition(".")[0] == "dp_accounting" else f"{module}.{name}"


def require(event: Any, name: str, fields: frozenset[str], wanted: frozenset[str]) -> None:
    """Raise RefusedEventError unless an event has exactly the expected fields: an unknown one might
    change its meaning.
    """
    if fields != wanted:
        said = f"the fields {', '.join(sorted(fields)) or 'none'}"
        raise RefusedEventError(
            event, DomainError(name, said, f"the fields {', '.join(sorted(wanted)) or 'none'}")
        )


def counted(root: Any) -> list[tuple[Any, int]]:
    """The events of a tree that are not compositions, each object once, with the number of times it
    runs (at least 1).

    Raises:
        RefusedEventError: If a composition contains itself, a count is not a nonnegative integer,
            or an event runs more than 10^15 times.
    """
    if not is_composition(root):
        return [(root, 1)]
    events, below, waiting = dict[int, Any](), dict[int, Children](), [root]
    while waiting:
        event = waiting.pop()
        if id(event) not in below:
            events[id(event)], below[id(event)] = event, _children(event)
            waiting += [child for child, _ in below[id(event)] if is_composition(child)]
    graph = {
        key: [id(child) for child, _ in below[key][::-1] if id(child) in below] for key in below
    }
    try:
        order = [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        reason = DomainError("event", "a cycle", "a tree: this composition contains itself")
        raise RefusedEventError(events[error.args[1][0]], reason) from None
    times, leaves = {id(root): 1}, dict[int, Any]()
    for key in reversed(order):
        if times[key] > MOST_TIMES:
            reason = DomainError("count", "more", "events that run at most 10^15 times in all")
            raise RefusedEventError(events[key], reason)
        for child, each in below[key]:
            times[id(child)] = times.get(id(child), 0) + times[key] * each
            if id(child) not in below:
                leaves[id(child)] = child
    return [(event, times[key]) for key, event in leaves.items() if times[key]]


def is_composition(event: Any) -> bool:
    """Whether an event consists only of other events."""
    return named(event)[0] in COMPOSITIONS


def _children(event: Any) -> Children:
    """The events of which a composition consists, with the number of times each runs."""
    name, fields = named(event)
    require(event, name, fields, COMPOSITIONS[name])
    if name == SELF_COMPOSED:
        try:
            return [(event.event, check.count("count", event.count))]
        except DomainError as error:
            raise RefusedEventError(event, error) from None
    events = event.events
    if not isinstance(events, Sequence) or isinstance(events, str | bytes) or _is_event(events):
        raise RefusedEventError(event, DomainError("events", "no list", "a list of events"))
    return [(each, 1) for each in cast("Sequence[Any]", events)]


def _is_event(value: Any) -> bool:
    """Whether a sequence is an event of the wire format, rather than a list of events."""
    try:
        return bool(value.class_name)
    except AttributeError:
        return False


def event_tuple(class_name: str, /, *, module_name: str = MODULE, **fields: Any) -> Any:
    """An event of the wire format: a named tuple with the class name, the module name and the
    fields.
    """
    return _kind(class_name, tuple(fields))(module_name, class_name, *fields.values())


@lru_cache(maxsize=256)
def _kind(class_name: str, fields: tuple[str, ...]) -> Any:
    named: Any = namedtuple  # a class for each list of fields: no class statement says that
    return named(f"_{class_name}NamedTupleWrapper", ("module_name", "class_name", *fields))


def event_to_json(event: Any) -> str:
    """An event, either an object of dp_accounting or a named tuple, as one line of JSON.

    >>> event_to_json(event_tuple("GaussianDpEvent", noise_multiplier=2.0))
    '{"module_name": "dp_accounting.dp_event", "class_name": "GaussianDpEvent", "noise_multiplier": 2.0}'

    Raises:
        DomainError: If the argument is not an event, or is nested too deeply for JSON.
    """
    try:
        named(event)
        return json.dumps(_document(event))
    except RefusedEventError as refused:
        raise refused.error from None
    except RecursionError:
        raise DomainError(
            "event", "too deep", "an event that is not nested so deeply, and not in itself"
        ) from None


def event_from_document(document: Any) -> Any:
    """The named tuple of an event, from the value that its JSON decodes to.

    Raises:
        DomainError: If an object in it does not describe an event.
    """
    if isinstance(document, list):
        return [event_from_document(each) for each in cast("list[Any]", document)]
    if not isinstance(document, Mapping):
        return document
    given = cast("Mapping[str, Any]", document)
    fields = {key: event_from_document(value) for key, value in given.items()}
    try:
        return event_tuple(fields.pop("class_name"), **{"module_name": MODULE, **fields})
    except (KeyError, TypeError, ValueError):
        expected = 'a table with "class_name", "module_name" and the fields of that class'
        raise DomainError(
            "event", f"a table of {', '.join(map(repr, given))[:200]}", expected
        ) from None


def _document(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Sequence() if not _is_event(value):
            return [_document(each) for each in cast("Sequence[Any]", value)]
        case _:
            name, fields = named(value)
            rest = {each: _document(getattr(value, each)) for each in sorted(fields)}
            return {"module_name": MODULE, "class_name": name, **rest}
