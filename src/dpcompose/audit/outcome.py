"""One answer of a subject, whatever came back: everything that a caller could see of it."""

from __future__ import annotations

import contextlib
import marshal
import math
import re
import struct
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from itertools import islice
from numbers import Number
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

LEAVES, DEPTH, LOOKED, TEXT = 64, 40, 4096, 4096
"""Leaves and levels that are kept of a nested answer; items of a collection, and letters of a print, that are read."""
FURTHER, LETTERS, PARTS = 1024, 512, 1 << 16
"""Numbers after the leaves, and letters of texts, in which a learner looks; parts of an answer that are read."""
NUMBERS = 8
"""Numbers in a text that are columns of their own."""
NESTED = 12
"""Levels that are kept of the labels of a table."""
LABELS = ("name", "names", "dtype", "categories", "ordered", "type")
TABLE_LABELS = (*LABELS, "index", "columns", "column_names", "dtypes", "schema", "attrs")
"""What pandas, polars and pyarrow keep of a series or an index beside its values, and of a table."""
_TABLES = ("pandas", "polars", "pyarrow")
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
"""Where an object lies, which is no answer."""
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_BARE = {
    float,
    int,
    bool,
    str,
    bytes,
    list,
    tuple,
    dict,
    set,
    type(None),
    np.ndarray,
    np.float64,
    np.int64,
}
"""Types whose instances have no attributes of their own."""

Leaf = tuple[str, float | None, str, bytes | str]
BEYOND, UNREAD = "beyond", "unread"
"""The types of a leaf that is in the hash already, and of one that says how many of what were not looked at."""
MANY = f"numbers after the first {LEAVES + FURTHER:,}, but for a hash"


@runtime_checkable
class _Array(Protocol):
    """An array, a series or a frame of any library."""

    def __array__(self) -> np.ndarray: ...


def code_of(text: bytes) -> float:
    """A number below 2^52 for a text: equal texts have equal numbers, and others, but for chance, do not."""
    return float(int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 12)


def walk(value: Any, place: str, depth: int) -> Iterator[Leaf]:
    """The parts of an answer: place, number, type, and all of it as bytes; or a text whose letters are looked at."""
    kind = type(value).__name__
    own = type(value) not in _BARE
    if isinstance(value, float):
        yield place, float(value), kind, struct.pack("<d", value)
    elif isinstance(value, str | bytes | bytearray):
        yield from _text(value, place, kind)
    elif value is None or isinstance(value, Number | bool | np.generic | date | timedelta):
        yield from _scalar(value, place, kind)
    elif depth == 0:
        yield place, None, kind, b"deep"
        yield "parts nested too deeply", 1, UNREAD, b""
    elif isinstance(value, np.ndarray):
        yield from _array(cast("np.ndarray", value), place, kind, depth)
    elif isinstance(value, Mapping | Sequence | Set):
        yield from _collection(cast("Collection[Any]", value), place, depth)
    elif isinstance(value, Iterator):
        yield from _drained(cast("Iterator[Any]", value), place, depth)
    elif isinstance(value, _Array) and not isinstance(value, type):
        own = False
        yield place, None, kind, b""
        yield from _labelled(value, place, depth)
    else:
        own = False
        yield from _object(value, place, depth)
    if own and depth:
        yield from _fields(value, place, depth)


def _scalar(value: Any, place: str, kind: str) -> Iterator[Leaf]:
    text = str(value).encode()
    yield place, _number(value), kind, text
    if isinstance(value, complex | np.complexfloating):
        yield f"{place}.imag", float(cast("complex", value).imag), "float", b""
    elif isinstance(value, int) and value.bit_length() > 53:
        yield place, None, kind, f"{abs(value):x}"[::-1]
    elif value is not None and not isinstance(value, int | np.number):
        yield f"{place}.code", code_of(text), BEYOND, b""


def _collection(value: Collection[Any], place: str, depth: int) -> Iterator[Leaf]:
    kind = type(value).__name__
    yield f"{place}.length", float(len(value)), kind, b""
    if len(value) > LOOKED:
        items = cast("Iterable[Any]", value.items() if isinstance(value, Mapping) else value)
        left, hashed = [*islice(items, LOOKED, None)], ""
        # Version 2 of the format tells values, not which of them are one object.
        with contextlib.suppress(ValueError):
            text, hashed = marshal.dumps(left, 2), ", but for a hash"
            yield f"{place}.others.code", code_of(text), kind, text
        yield f"items of a collection after the first {LOOKED:,}{hashed}", len(left), UNREAD, b""
    if isinstance(value, Mapping):
        value = cast("Mapping[Any, Any]", value)
        for key in islice(value, LOOKED):
            text = _shown(key)
            name = text if len(text) <= 42 else f"{text[:40]} {code_of(text.encode()):.0f}"
            yield f"{place}.has {name}", 1.0, "key", text.encode()
            yield from walk(value[key], f"{place}[{name}]", depth - 1)
    else:
        items = (
            sorted(map(_shown, islice(value, LOOKED)))
            if isinstance(value, Set)
            else islice(value, LOOKED)
        )
        for index, item in enumerate(items):
            yield from walk(item, f"{place}[{index}]", depth - 1)


def _drained(value: Iterator[Any], place: str, depth: int) -> Iterator[Leaf]:
    """The items that a caller would get of it, and the value that a generator returns."""
    items, returned = list[Any](), None
    try:
        while len(items) < LOOKED:
            items.append(next(value))
        yield f"items of an iterator after the first {LOOKED:,}", 1, UNREAD, b""
    except StopIteration as ended:
        returned = ended.value
    yield from _collection(items, place, depth)
    yield place, None, type(value).__name__, b""
    if returned is not None:
        yield from walk(returned, f"{place}.returned", depth - 1)


def _labelled(value: Any, place: str, depth: int) -> Iterator[Leaf]:
    """A table or series: a hash of each of its labels, its values, and then what is in the labels."""
    labels = list[Leaf]()
    if type(value).__module__.partition(".")[0] not in _TABLES:
        yield f"attributes of a {type(value).__name__}", 1, UNREAD, b""
    for name in TABLE_LABELS if depth > NESTED else LABELS:
        with contextlib.suppress(Exception):
            label = getattr(value, name)
            if callable(label) and not isinstance(label, type):
                continue
            leaves = [*islice(walk(label, f"{place}.{name}", min(depth - 1, NESTED)), PARTS)]
            yield f"{place}.{name}.all.code", code_of(repr(leaves).encode()), BEYOND, b""
            labels += leaves
    yield from _array(np.asarray(value), place, type(value).__name__, depth)
    yield from labels


def _object(value: Any, place: str, depth: int) -> Iterator[Leaf]:
    """An object of any other type: its text, and its attributes or else what it is pickled from."""
    kind, text = type(value).__name__, _shown(value).encode()
    yield place, None, kind, text
    yield f"{place}.code", code_of(text), BEYOND, b""
    addresses = len(ADDRESS.findall(repr(value).replace(f" at {id(value):#x}", "")))
    if addresses:
        yield "addresses in the texts of objects", addresses, UNREAD, b""
    if isinstance(value, type | np.dtype) or (yield from _fields(value, place, depth)):
        return
    try:
        parts: Any = value.__reduce_ex__(2)
    except Exception:
        yield f"inside of a {kind}", 1, UNREAD, b""
    else:
        yield from walk(parts if isinstance(parts, str) else parts[1:], f"{place}.state", depth - 1)


def _fields(value: Any, place: str, depth: int) -> Generator[Leaf, None, bool]:
    """Its attributes, those in slots too; whether there are any."""
    states = object.__getstate__(value)
    found = False
    for state in cast("tuple[Any, ...]", states) if isinstance(states, tuple) else (states,):
        fields = cast("dict[Any, Any]", state if isinstance(state, dict) else {})
        found = found or bool(fields)
        for name in islice(fields, LOOKED):
            yield from walk(fields[name], f"{place}.{name}", depth - 1)
        if len(fields) > LOOKED:
            yield f"attributes after the first {LOOKED:,}", len(fields) - LOOKED, UNREAD, b""
    return found


def _shown(value: Any) -> str:
    """Its `repr`, without the addresses of objects; escaped, what is no Unicode."""
    text = repr(value)
    text = text if isinstance(value, str) else ADDRESS.sub("", text)
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: str | bytes | bytearray, place: str, kind: str) -> Iterator[Leaf]:
    whole = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    yield f"{place}.length", float(len(value)), kind, whole
    yield f"{place}.code", code_of(whole), BEYOND, b""
    letters = value if isinstance(value, str) else whole.decode("latin-1")
    try:
        yield place, float(value), "number in text", b""
    except (ValueError, OverflowError):
        yield place, None, kind, b""
        head = letters[:LETTERS]
        yield (
            f"{place}.words",
            code_of(_NUMBER.sub("#", head).encode("utf-8", "surrogatepass")),
            BEYOND,
            b"",
        )
        for index, number in enumerate(map(float, _NUMBER.findall(head)[:NUMBERS])):
            yield (
                f"{place}.numbers[{index}]",
                number if abs(number) < 1e100 else math.inf,
                BEYOND,
                b"",
            )
    yield place, None, kind, letters


def _array(value: np.ndarray, place: str, kind: str, depth: int) -> Iterator[Leaf]:
    flat = np.asarray(value).reshape(-1)
    plain, step = flat.dtype.kind in "fiub", max(1, flat.size >> 20)
    whole = np.ascontiguousarray(flat[::step]).tobytes() if plain or flat.dtype.kind == "c" else b""
    yield (
        f"{place}.length",
        float(flat.size),
        f"{kind} of {value.dtype} {value.ndim}",
        str(value.shape).encode() + whole,
    )
    if step > 1:
        yield "items of an array, but for their sum", flat.size - len(flat[::step]), UNREAD, b""
    if flat.dtype.kind == "c":
        for part, numbers in ("", np.real(flat)), (".imag", np.imag(flat)):
            yield from _array(numbers, f"{place}{part}", kind, depth)
        return
    if plain and flat.size > LEAVES:
        yield f"{place}.sum", float(flat.sum(dtype=np.float64)), "float", b""
    most = FURTHER if plain else LOOKED
    for index, item in enumerate(flat[:most].tolist()):
        if plain:
            yield f"{place}[{index}]", float(item), BEYOND if index >= LEAVES else "", b""
        else:
            yield from walk(item, f"{place}[{index}]", depth - 1)
    if flat.size > most:
        yield (
            MANY if plain else f"items of an array after the first {LOOKED:,}",
            flat.size - most,
            UNREAD,
            b"",
        )


def _number(value: Any) -> float | None:
    """A number for an ordered value; None where there is none."""
    match value:
        case complex():
            return value.real
        case np.generic():
            return _number(value.item()) if not isinstance(value.item(), np.generic) else None
        case timedelta():
            return value.total_seconds()
        case datetime():
            return (value.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()
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


Outcomes = NDArray[Any]
"""One row for each call: plain numbers, of shape (n,) or (n, k), or an array of objects `Outcome`, of shape (n,)."""
Reals = NDArray[np.float64]

BESIDE = " beside "
"""How the places of what comes beside an answer begin: prints, standard error, warnings, log records, a message."""
_places: dict[tuple[str, ...], tuple[str, ...]] = {}


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
        unread: What was not looked at, and how many of it.
    """

    kind: str
    leaves: tuple[tuple[str, float], ...]
    code: float
    further: tuple[tuple[str, ...], bytes] = ((), b"")
    letters: tuple[tuple[str, str], ...] = ()
    unread: tuple[tuple[str, int], ...] = ()


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
        errors: The text that went to standard error, its beginning.
        logged: The log records, in order: level, logger and text.
        files: The files below the working folder that the call wrote, each with its end.
    """

    value: Any = None
    raised: str = ""
    message: str = ""
    warned: tuple[str, ...] = ()
    timeout: bool = False
    printed: str = ""
    seconds: float = math.nan
    errors: str = ""
    logged: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether there is an answer and nothing beside it."""
        beside = (
            self.raised
            or self.message
            or self.warned
            or self.timeout
            or self.printed
            or self.errors
            or self.logged
            or self.files
        )
        return not beside and math.isnan(self.seconds)

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return not (self.raised or self.timeout)

    @property
    def beside(self) -> dict[str, Any]:
        """All that came beside an answer, by its channel; the message only where the value has no parts of it."""
        channels = {
            "printed": self.printed, "errors": self.errors, "warned": self.warned, "logged": self.logged,
            "files": self.files, "message": self.message if self.value is None else "",
        }  # fmt: skip
        return {name: seen for name, seen in channels.items() if seen}


def read(value: Any, place: str = "", depth: int = DEPTH) -> Any:
    """The answer as it can be seen now: a float as it is, anything else as a `Reading`."""
    if type(value) is float:
        return value
    digest = blake2b(digest_size=8)
    found: list[tuple[str, float]] = []
    kinds: list[str] = []
    letters: list[tuple[str, str]] = []
    unread: dict[str, int] = {}
    room = LETTERS
    parts = walk(value, place, depth)
    for at, number, kind, text in islice(parts, PARTS):
        if kind == UNREAD:
            unread[at] = unread.get(at, 0) + int(number or 0)
            continue
        if isinstance(text, str):
            if text:
                letters += [(at, text[:room])] if room > 0 else []
                room -= len(text)
            continue
        if number is not None and len(found) < LEAVES + FURTHER:
            found.append((at, number))
        elif number is not None:
            unread[MANY] = unread.get(MANY, 0) + 1
        if kind == BEYOND:
            continue
        if len(kinds) < 4 * LEAVES:
            kinds.append(kind)
        digest.update(f"{at}|{kind}|".encode("utf-8", "surrogatepass") + text)
    if room < 0:
        unread[f"letters of texts after the first {LETTERS}, but for a hash"] = -room
    if next(parts, None) is not None:
        unread[f"parts after the first {PARTS:,}"] = 1
    further = found[LEAVES:]
    places = tuple(place for place, _ in further)
    if len(_places) < LEAVES:
        places = _places.setdefault(places, places)
    numbers = struct.pack(f"<{len(further)}d", *(number for _, number in further))
    code = code_of(digest.digest())
    kind = ",".join(dict.fromkeys(kinds))
    return Reading(
        kind, tuple(found[:LEAVES]), code, (places, numbers), tuple(letters), tuple(unread.items())
    )


def rows_of(values: Iterable[Any]) -> Outcomes:
    """One outcome for each answer, read."""
    listed = [value if isinstance(value, Outcome) else Outcome(read(value)) for value in values]
    rows = np.empty(len(listed), dtype=object)
    rows[:] = listed
    return rows
