"""JSON documents as types: a frozen class declares the members, and from it come reading, writing and the schema.

    class Reply(Document):
        epsilon: Number
        notes: tuple[str, ...] = ()

`read` takes nothing but the members of the class, in their types; `dumps` writes every double in full, an infinite one
as "inf" or "-inf"; `schema` is the JSON schema. Only modules that have documents import this one: msgspec takes three
times as long to load as Python takes to start.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec

from dpcompose.errors import DomainError

Kind = TypeVar("Kind")
Number = float | Literal["inf", "-inf"]
"""A number of a document; JSON has no infinite ones, which are texts."""


class Document(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The base class of JSON documents: members are keywords; one equal to its default is left out
    of the JSON.
    """


class Record(msgspec.Struct, frozen=True, array_like=True):
    """The base class of records of which there are many: each is a JSON array of its members."""

    def _fix(self, name: str, value: Any) -> None:
        """Set a member while the record is created."""
        msgspec.structs.force_setattr(self, name, value)


def encoded(records: Any) -> bytes:
    """Return records as JSON text on one line; raises a ValueError for text that is not Unicode."""
    return msgspec.json.encode(records)


def decoded(of: type[Kind], content: bytes) -> Kind:
    """Return records of type `of` from a JSON text; raises a ValueError if it is not theirs."""
    return msgspec.json.decode(content, type=of)


def read(of: type[Kind], content: str | bytes, *, name: str) -> Kind:
    """Return the document of type `of` in a JSON text.

    Args:
        of: A subclass of Document, a dataclass, or another type that msgspec decodes.
        content: The JSON text.
        name: The name of the text in errors.

    Raises:
        DomainError: If the text is not JSON, or a member is missing, unknown or of another type;
            the error names the member, such as `name.runs[2].times`, its value and what is
            accepted.
    """
    return checked(of, parsed(content, name=name), name=name)


def parsed(content: str | bytes, *, name: str) -> Any:
    """Return a JSON text as mappings, lists, texts and numbers; DomainError if it is not JSON or
    nested too deeply.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DomainError(
            name, content, f"JSON text ({str(error).partition(' - at ')[0]})"
        ) from None


def checked(of: type[Kind], value: Any, *, name: str) -> Kind:
    """Return a parsed JSON value as a document of type `of`; raises as `read`."""
    try:
        return msgspec.convert(value, of)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        member = path.rstrip("`").removeprefix("$")
        raise DomainError(f"{name}{member}", _at(value, member), _accepted(message)) from None


def plain(document: Any) -> Any:
    """Return a document as mappings, lists, texts and numbers for JSON; infinite numbers become
    texts.
    """
    return _finite(msgspec.to_builtins(document))


def dumps(document: Any, *, indent: int | None = 2) -> str:
    """Return a document as JSON text; raises a ValueError for NaN."""
    return json.dumps(plain(document), indent=indent, ensure_ascii=False, allow_nan=False)


def schema(of: Any) -> dict[str, Any]:
    """Return the JSON schema of the type `of` of documents."""
    return msgspec.json.schema(of)


def _finite(value: Any) -> Any:
    match value:
        case float() if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        case dict():
            return {key: _finite(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_finite(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _accepted(message: str) -> str:
    """Return the accepted domain that an error text of msgspec states, such as "Expected `int`, got
    `str`".
    """
    if match := re.fullmatch(r"Object missing required field `(.*)`", message):
        return f"a member {match[1]!r}"
    if match := re.fullmatch(r"Object contains unknown field `(.*)`", message):
        return f"no member {match[1]!r}"
    if message.startswith("Invalid enum value"):
        return "one of the texts that the schema lists"
    wanted = message.removeprefix("Expected ").partition(", got ")[0]
    return wanted.replace("`", "").replace(" | ", " or ")


def _at(value: Any, path: str) -> Any:
    """Return the part of a JSON value at `path`, such as `.runs[2].times`; the innermost part that
    the path reaches.
    """
    for index, member in re.findall(r"\[(\d+)\]|\.([^.\[]+)", path):
        if index and isinstance(value, list):
            value = value[int(index)]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(value, Mapping) and member in value:
            value = value[member]  # pyright: ignore[reportUnknownVariableType]
    return value  # pyright: ignore[reportUnknownVariableType]
