"""One answer of a subject, whatever came back: everything that a caller could see of it."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from hashlib import blake2b
from itertools import islice
from numbers import Number
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Outcomes = NDArray[Any]
"""One row for each call: plain numbers, of shape (n,) or (n, k), or an array of objects `Outcome`, of shape (n,)."""
Reals = NDArray[np.float64]

LEAVES, DEPTH, LOOKED, TEXT = 64, 40, 4096, 4096
"""Leaves and levels that are kept of a nested answer; items of a collection, and letters of a text, that are read."""
FURTHER, LETTERS, PARTS = 1024, 512, 1 << 16
"""Numbers after the leaves, and letters of texts, in which a learner looks; parts of an answer that are read."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


@runtime_checkable
class _Array(Protocol):
    """An array, a series or a frame of any library."""

    def __array__(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Reading:
    """A nested or foreign answer, read when it was given: what becomes of the object later changes nothing.

    Args:
        kind: Its type, with the type of what is in it and its shape.
        leaves: The numbers in it by their place, the first ones.
        code: A hash of all that was read.
        further: The places of the numbers after these, and the numbers, each in eight bytes.
        letters: The texts in it by their place, their beginning; of an integer that no float holds, its hexadecimal
            digits, the last one first.
    """

    kind: str
    leaves: tuple[tuple[str, float], ...]
    code: float
    further: tuple[tuple[str, ...], bytes] = ((), b"")
    letters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One value of a sum type: an answer, an exception, or nothing within the time allowed; with its warnings.

    Args:
        value: The answer, a number or a `Reading`; of an exception, its parts. None where there is neither.
        raised: The name of the exception's class; empty if none was raised.
        message: The text of the exception.
        warned: The categories and texts of the warnings, in order.
        timeout: Whether the call was ended because it took too long.
        printed: The text that the call printed, its beginning.
        seconds: The time it took, where that is looked at.
    """

    value: Any = None
    raised: str = ""
    message: str = ""
    warned: tuple[str, ...] = ()
    timeout: bool = False
    printed: str = ""
    seconds: float = math.nan

    @property
    def alone(self) -> bool:
        """Whether there is an answer and nothing beside it."""
        beside = self.raised or self.message or self.warned or self.timeout or self.printed
        return not beside and math.isnan(self.seconds)


def read(value: Any) -> Any:
    """The answer as it can be seen now: a float as it is, anything else as a `Reading`."""
    if type(value) is float:
        return value
    digest = blake2b(digest_size=8)
    found: list[tuple[str, float]] = []
    kinds: list[str] = []
    letters: list[tuple[str, str]] = []
    room = LETTERS
    for place, number, kind, text in islice(_walk(value, "", DEPTH), PARTS):
        if isinstance(text, str):
            if room > 0 and text:
                letters.append((place, text[:room]))
                room -= len(text)
            continue
        if number is not None and len(found) < LEAVES + FURTHER:
            found.append((place, number))
        if kind == _BEYOND:
            continue
        if len(kinds) < 4 * LEAVES:
            kinds.append(kind)
        digest.update(f"{place}|{kind}|".encode() + text)
    further = found[LEAVES:]
    places = tuple(place for place, _ in further)
    if len(_places) < LEAVES:
        places = _places.setdefault(places, places)
    numbers = struct.pack(f"<{len(further)}d", *(number for _, number in further))
    code = code_of(digest.digest())
    return Reading(",".join(dict.fromkeys(kinds)), tuple(found[:LEAVES]), code, (places, numbers), tuple(letters))


def code_of(text: bytes) -> float:
    """A number below 2^52 for a text: equal texts have equal numbers, and others, but for chance, do not."""
    return float(int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 12)


_Leaf = tuple[str, float | None, str, bytes | str]
_BEYOND = "beyond"
"""The type of a leaf that is in the hash already."""
_places: dict[tuple[str, ...], tuple[str, ...]] = {}


def _walk(value: Any, place: str, depth: int) -> Iterator[_Leaf]:
    """The parts of an answer: place, number, type, and all of it as bytes; or a text whose letters are looked at."""
    kind = type(value).__name__
    if isinstance(value, float):
        yield place, float(value), kind, struct.pack("<d", value)
    elif isinstance(value, str | bytes | bytearray):
        yield from _text(value, place, kind)
    elif value is None or isinstance(value, Number | bool | np.generic | date | timedelta):
        yield place, _number(value), kind, str(cast("Any", value))[:TEXT].encode()
        if isinstance(value, int) and value.bit_length() > 53:
            yield place, None, kind, f"{abs(value):x}"[::-1]
    elif depth == 0:
        yield place, None, kind, b"deep"
    elif isinstance(value, np.ndarray):
        yield from _array(cast("Outcomes", value), place, kind)
    elif isinstance(value, Mapping | Sequence | Set):
        yield from _collection(cast("Collection[Any]", value), place, depth)
    elif isinstance(value, Iterator):
        # What a caller would get of it.
        yield from _collection(list(islice(cast("Iterator[Any]", value), LOOKED)), place, depth)
        yield place, None, kind, b""
    elif isinstance(value, _Array):
        yield place, None, kind, b""
        yield from _array(np.asarray(value), place, kind)
    else:
        yield place, None, kind, _ADDRESS.sub("", repr(value)[:TEXT]).encode()
        yield from _fields(value, place, depth)


def _collection(value: Collection[Any], place: str, depth: int) -> Iterator[_Leaf]:
    kind = type(value).__name__
    if isinstance(value, Mapping):
        value = cast("Mapping[Any, Any]", value)
        yield f"{place}.length", float(len(value)), kind, b""
        for key in islice(value, LOOKED):
            yield f"{place}.has {str(key)[:40]!r}", 1.0, "key", str(key)[:TEXT].encode()
            yield from _walk(value[key], f"{place}[{str(key)[:40]!r}]", depth - 1)
    else:
        yield f"{place}.length", float(len(value)), kind, b""
        items = sorted(map(repr, islice(value, LOOKED))) if isinstance(value, Set) else islice(value, LOOKED)
        for index, item in enumerate(items):
            yield from _walk(item, f"{place}[{index}]", depth - 1)


def _fields(value: Any, place: str, depth: int) -> Iterator[_Leaf]:
    try:
        fields = cast("dict[str, Any]", vars(value))
    except TypeError:
        return
    for name in islice(fields, LEAVES):
        yield from _walk(fields[name], f"{place}.{name}", depth - 1)


def _text(value: str | bytes | bytearray, place: str, kind: str) -> Iterator[_Leaf]:
    whole = value[:TEXT].encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value[:TEXT])
    yield f"{place}.length", float(len(value)), kind, whole + bytes(str(value[-64:]), "utf-8", "surrogatepass")
    try:
        yield place, float(value), "number in text", b""
    except (ValueError, OverflowError):
        yield place, None, kind, b""
    head = value[:LETTERS]
    yield place, None, kind, head if isinstance(head, str) else bytes(head).decode("latin-1")


def _array(value: np.ndarray, place: str, kind: str) -> Iterator[_Leaf]:
    flat = value.reshape(-1)
    head = flat[:LOOKED]
    plain = flat.dtype.kind in "fiub"
    whole = np.ascontiguousarray(flat[:: max(1, flat.size >> 17)]).tobytes() if plain else str(head[:LEAVES]).encode()
    yield (
        f"{place}.length",
        float(flat.size),
        f"{kind} of {value.dtype} {value.ndim}",
        str(value.shape).encode() + whole,
    )
    if plain and flat.size > LEAVES:
        yield f"{place}.sum", float(flat.sum(dtype=np.float64)), "float", b""
    for index, item in enumerate(head[: FURTHER if plain else LEAVES].tolist()):
        if plain:
            yield f"{place}[{index}]", float(item), _BEYOND if index >= LEAVES else "", b""
        else:
            yield from _walk(item, f"{place}[{index}]", 1)


def _number(value: Any) -> float | None:
    """A number for an ordered value; None where there is none."""
    match value:
        case complex():
            return value.real
        case np.generic():
            return _number(value.item()) if not isinstance(value.item(), np.generic) else None
        case timedelta():
            return value.total_seconds()
        case date():
            return float(value.toordinal())
        case None:
            return math.nan
        case Decimal() if value.is_snan():
            return math.nan
        case _:
            try:
                return float(value)
            except OverflowError:
                return math.inf if value > 0 else -math.inf
            except (TypeError, ValueError):
                return None


def rows_of(values: Iterable[Any]) -> Outcomes:
    """One outcome for each answer, read."""
    listed = [value if isinstance(value, Outcome) else Outcome(read(value)) for value in values]
    rows = np.empty(len(listed), dtype=object)
    rows[:] = listed
    return rows
