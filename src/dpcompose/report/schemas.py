"""JSON schemas of the documents that commands print under --json, format 1, from the table `schemas.toml`.

Every document has `dpcompose`, `format` and `command`, and then the members of its command, or `error` alone. A later
version may add members; it takes none away.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, cast

from dpcompose.errors import DomainError

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: dict[str, Schema] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "flag": {"type": "boolean"},
    "number": {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]},
    "status": {"type": "integer", "minimum": 1, "maximum": 4},
    "amount": {"type": "string", "description": "An exact decimal."},
    "anything": {},
    "true": {"const": True},
    "false": {"const": False},
}
_TABLE = tomllib.loads((files("dpcompose.report") / "schemas.toml").read_text("utf-8"))


def _schema(stated: Any) -> Schema:
    """The JSON schema of a type of `schemas.toml`: a constant, a list of alternatives, an object or a name."""
    match stated:
        case int():
            return {"const": stated}
        case list():
            return {"anyOf": [_schema(each) for each in cast("list[Any]", stated)]}
        case dict():
            types = cast("dict[Any, str]", stated)
            members = {name: each for each, names in types.items() for name in names.split(", ")}
            return {
                "type": "object",
                "properties": {name.rstrip("?"): _schema(each) for name, each in members.items()},
                "required": [name for name in members if not name.endswith("?")],
            }
        case _:
            return _named(str(stated))


def _named(text: str) -> Schema:
    if text.startswith("= "):
        return {"const": text.removeprefix("= ")}
    if text.endswith("[]"):
        return {"type": "array", "items": _named(text[:-2])}
    if text.endswith("{}"):
        return {"type": "object", "additionalProperties": _named(text[:-2])}
    if text.endswith("?"):
        return {"anyOf": [_named(text[:-1]), {"type": "null"}]}
    return _TYPES[text] if text in _TYPES else _schema(_TABLE["records"][text])


DOCUMENTS: dict[str, Schema] = {
    command: _schema(stated) for command, stated in _TABLE["documents"].items()
}
"""The members of each command's document, by the words of the command."""


def schema(command: str) -> Schema:
    """The JSON schema of the documents of a command, such as "ledger show"; its errors included.

    >>> schema("ledger show")["properties"]["command"]
    {'const': 'ledger show'}

    Args:
        command: The words after `dpcompose`.

    Raises:
        DomainError: If no command of that name prints a document.
    """
    if command not in DOCUMENTS:
        raise DomainError("COMMAND", command, f"one of {', '.join(DOCUMENTS)}")
    head = {"text": "dpcompose", 1: "format", f"= {command}": "command"}
    either = {"anyOf": [DOCUMENTS[command], _schema({"error": "error"})]}
    return {"$schema": DIALECT, "title": f"dpcompose {command}"} | _schema(head) | either
