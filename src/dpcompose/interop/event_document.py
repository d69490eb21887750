"""Events as JSON: the named tuples of the wire format, field by field.

{"module_name": "dp_accounting.dp_event", "class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dpcompose.errors import DomainError
from dpcompose.interop.event_tree import RefusedEventError, named
from dpcompose.interop.event_writing import MODULE, event_tuple


def event_to_json(event: Any) -> str:
    """An event, an object of dp_accounting or a named tuple, as one line of JSON.

    >>> event_to_json(event_tuple("GaussianDpEvent", noise_multiplier=2.0))
    '{"module_name": "dp_accounting.dp_event", "class_name": "GaussianDpEvent", "noise_multiplier": 2.0}'

    Raises:
        DomainError: If it is no event, or nested too deeply for JSON.
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
    """The named tuple of an event, from the mapping that its JSON gives.

    Raises:
        DomainError: If a mapping in it is no event.
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
        case Sequence() if not _is_tuple_of_fields(value):
            return [_document(each) for each in cast("Sequence[Any]", value)]
        case _:
            name, fields = named(value)
            rest = {each: _document(getattr(value, each)) for each in sorted(fields)}
            return {"module_name": MODULE, "class_name": name, **rest}


def _is_tuple_of_fields(value: Any) -> bool:
    return isinstance(value, tuple) and "class_name" in dir(cast("object", value))
