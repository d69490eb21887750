"""Outcomes of calls: the answer or exception, and everything else that a caller can observe."""

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
"""Limits on reading one answer: numbers and nesting levels stored; items of a collection and
characters of printed text read.
"""
FURTHER, LETTERS, PARTS = 1024, 512, 1 << 16
"""Numbers stored after the first LEAVES, and characters of text, for learners; total parts of an
answer that are read.
"""
NUMBERS = 8
"""The number of numerals in a text that become columns."""
NESTED = 12
"""The number of nesting levels read of the labels of a table."""
LABELS = ("name", "names", "dtype", "categories", "ordered", "type")
TABLE_LABELS = (*LABELS, "index", "columns", "column_names", "dtypes", "schema", "attrs")
"""Attributes that pandas, polars and pyarrow have beside the values: LABELS of a series or index,
TABLE_LABELS of a table.
"""
_TABLES = ("pandas", "polars", "pyarrow")
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
"""The memory address in the text of an object, which is no part of an answer."""
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
"""Types whose instances have no attributes of their own to read."""

Leaf = tuple[str, float | None, str, bytes | str]
BEYOND, UNREAD = "beyond", "unread"
"""Leaf types: one whose content is already in the hash, and one that counts parts that were not
read.
"""
MANY = f"numbers after the first {LEAVES + FURTHER:,}, but for a hash"


@runtime_checkable
class _Array(Protocol):
    """An array, series or table of any library that numpy can convert."""

    def __array__(self) -> np.ndarray: ...


def code_of(text: bytes) -> float:
    """A 52-bit hash of the bytes as a float: equal for equal bytes, and different otherwise except
    by chance.
    """
    return float(int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 12)


def walk(value: Any, path: str, depth: int) -> Iterator[Leaf]:
    """The parts of an answer, each as (path, number or None, type, bytes), or a text to be read by
    character.

    Args:
        value: The answer, or a part of it.
        path: The path to this part.
        depth: The number of nesting levels still read.
    """
    kind = type(value).__name__
    own = type(value) not in _BARE
    if isinstance(value, float):
        yield path, float(value), kind, struct.pack("<d", value)
    elif isinstance(value, str | bytes | bytearray):
        yield from _text(value, path, kind)
    elif value is None or isinstance(value, Number | bool | np.generic | date | timedelta):
        yield from _scalar(value, path, kind)
    elif depth == 0:
        yield path, None, kind, b"deep"
        yield "parts nested too deeply", 1, UNREAD, b""
    elif isinstance(value, np.ndarray):
        yield from _array(cast("np.ndarray", value), path, kind, depth)
    elif isinstance(value, Mapping | Sequence | Set):
        yield from _collection(cast("Collection[Any]", value), path, depth)
    elif isinstance(value, Iterator):
        yield from _drained(cast("Iterator[Any]", value), path, depth)
    elif isinstance(value, _Array) and not isinstance(value, type):
        own = False
        yield path, None, kind, b""
        yield from _labelled(value, path, depth)
    else:
        own = False
        yield from _object(value, path, depth)
    if own and depth:
        yield from _fields(value, path, depth)


def _scalar(value: Any, path: str, kind: str) -> Iterator[Leaf]:
    text = str(value).encode()
    yield path, _number(value), kind, text
    if isinstance(value, complex | np.complexfloating):
        yield f"{path}.imag", float(cast("complex", value).imag), "float", b""
    elif isinstance(value, int) and value.bit_length() > 53:
        yield path, None, kind, f"{abs(value):x}"[::-1]
    elif value is not None and not isinstance(value, int | np.number):
        yield f"{path}.code", code_of(text), BEYOND, b""


def _collection(value: Collection[Any], path: str, depth: int) -> Iterator[Leaf]:
    kind = type(value).__name__
    yield f"{path}.length", float(len(value)), kind, b""
    if len(value) > LOOKED:
        items = cast("Iterable[Any]", value.items() if isinstance(value, Mapping) else value)
        left, hashed = [*islice(items, LOOKED, None)], ""
        # Version 2 of the format tells values, not which of them are one object.
        with contextlib.suppress(ValueError):
            text, hashed = marshal.dumps(left, 2), ", but for a hash"
            yield f"{path}.others.code", code_of(text), kind, text
        yield f"items of a collection after the first {LOOKED:,}{hashed}", len(left), UNREAD, b""
    if isinstance(value, Mapping):
        value = cast("Mapping[Any, Any]", value)
        for key in islice(value, LOOKED):
            text = _shown(key)
            name = text if len(text) <= 42 else f"{text[:40]} {code_of(text.encode()):.0f}"
            yield f"{path}.has {name}", 1.0, "key", text.encode()
            yield from walk(value[key], f"{path}[{name}]", depth - 1)
    else:
        items = (
            sorted(map(_shown, islice(value, LOOKED)))
            if isinstance(value, Set)
            else islice(value, LOOKED)
        )
        for index, item in enumerate(items):
            yield from walk(item, f"{path}[{index}]", depth - 1)


def _drained(value: Iterator[Any], path: str, depth: int) -> Iterator[Leaf]:
    """The items of an iterator, up to LOOKED, and the return value of a generator."""
    items, returned = list[Any](), None
    try:
        while len(items) < LOOKED:
            items.append(next(value))
        yield f"items of an iterator after the first {LOOKED:,}", 1, UNREAD, b""
    except StopIteration as ended:
        returned = ended.value
    yield from _collection(items, path, depth)
    yield path, None, type(value).__name__, b""
    if returned is not None:
        yield from walk(returned, f"{path}.returned", depth - 1)


def _labelled(value: Any, path: str, depth: int) -> Iterator[Leaf]:
    """A table or series: a hash of each label, then its values, then the contents of the labels."""
    labels = list[Leaf]()
    if type(value).__module__.partition(".")[0] not in _TABLES:
        yield f"attributes of a {type(value).__name__}", 1, UNREAD, b""
    for name in TABLE_LABELS if depth > NESTED else LABELS:
        with contextlib.suppress(Exception):
            label = getattr(value, name)
            if callable(label) and not isinstance(label, type):
                continue
            leaves = [*islice(walk(label, f"{path}.{name}", min(depth - 1, NESTED)), PARTS)]
            yield f"{path}.{name}.all.code", code_of(repr(leaves).encode()), BEYOND, b""
            labels += leaves
    yield from _array(np.asarray(value), path, type(value).__name__, depth)
    yield from labels


def _object(value: Any, path: str, depth: int) -> Iterator[Leaf]:
    """An object of any other type: its text, and its attributes or, if it has none, its pickled
    state.
    """
    kind, text = type(value).__name__, _shown(value).encode()
    yield path, None, kind, text
    yield f"{path}.code", code_of(text), BEYOND, b""
    addresses = len(ADDRESS.findall(repr(value).replace(f" at {id(value):#x}", "")))
    if addresses:
        yield "addresses in the texts of objects", addresses, UNREAD, b""
    if isinstance(value, type | np.dtype) or (yield from _fields(value, path, depth)):
        return
    try:
        parts: Any = value.__reduce_ex__(2)
    except Exception:
        yield f"inside of a {kind}", 1, UNREAD, b""
    else:
        yield from walk(parts if isinstance(parts, str) else parts[1:], f"{path}.state", depth - 1)


def _fields(value: Any, path: str, depth: int) -> Generator[Leaf, None, bool]:
    """The attributes of an object, including slots. Returns whether it has any."""
    states = object.__getstate__(value)
    found = False
    for state in cast("tuple[Any, ...]", states) if isinstance(states, tuple) else (states,):
        fields = cast("dict[Any, Any]", state if isinstance(state, dict) else {})
        found = found or bool(fields)
        for name in islice(fields, LOOKED):
            yield from walk(fields[name], f"{path}.{name}", depth - 1)
        if len(fields) > LOOKED:
            yield f"attributes after the first {LOOKED:,}", len(fields) - LOOKED, UNREAD, b""
    return found


def _shown(value: Any) -> str:
    """The object's `repr` without memory addresses; characters that are not valid Unicode are
    escaped.
    """
    text = repr(value)
    text = text if isinstance(value, str) else ADDRESS.sub("", text)
    return text.encode("utf-8", "backslashreplace").decode()


def _text(value: str | bytes | bytearray, path: str, kind: str) -> Iterator[Leaf]:
    whole = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
    yield f"{path}.length", float(len(value)), kind, whole
    yield f"{path}.code", code_of(whole), BEYOND, b""
    letters = value if isinstance(value, str) else whole.decode("latin-1")
    try:
        yield path, float(value), "number in text", b""
    except (ValueError, OverflowError):
        yield path, None, kind, b""
        head = letters[:LETTERS]
        yield (
            f"{path}.words",
            code_of(_NUMBER.sub("#", head).encode("utf-8", "surrogatepass")),
            BEYOND,
            b"",
        )
        for index, number in enumerate(map(float, _NUMBER.findall(head)[:NUMBERS])):
            yield (
                f"{path}.numbers[{index}]",
                number if abs(number) < 1e100 else math.inf,
                BEYOND,
                b"",
            )
    yield path, None, kind, letters


def _array(value: np.ndarray, path: str, kind: str, depth: int) -> Iterator[Leaf]:
    flat = np.asarray(value).reshape(-1)
    plain, step = flat.dtype.kind in "fiub", max(1, flat.size >> 20)
    whole = np.ascontiguousarray(flat[::step]).tobytes() if plain or flat.dtype.kind == "c" else b""
    yield (
        f"{path}.length",
        float(flat.size),
        f"{kind} of {value.dtype} {value.ndim}",
        str(value.shape).encode() + whole,
    )
    if step > 1:
        yield "items of an array, but for their sum", flat.size - len(flat[::step]), UNREAD, b""
    if flat.dtype.kind == "c":
        for part, numbers in ("", np.real(flat)), (".imag", np.imag(flat)):
            yield from _array(numbers, f"{path}{part}", kind, depth)
        return
    if plain and flat.size > LEAVES:
        yield f"{path}.sum", float(flat.sum(dtype=np.float64)), "float", b""
    most = FURTHER if plain else LOOKED
    for index, item in enumerate(flat[:most].tolist()):
        if plain:
            yield f"{path}[{index}]", float(item), BEYOND if index >= LEAVES else "", b""
        else:
            yield from walk(item, f"{path}[{index}]", depth - 1)
    if flat.size > most:
        yield (
            MANY if plain else f"items of an array after the first {LOOKED:,}",
            flat.size - most,
            UNREAD,
            b"",
        )


def _number(value: Any) -> float | None:
    """A float that represents the value, or None if it has no numeric order."""
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
"""One row per call: plain numbers of shape (n,) or (n, k), or `Outcome` objects of shape (n,)."""
Reals = NDArray[np.float64]

BESIDE = " beside "
"""The prefix of the paths of side channels: prints, standard error, warnings, log records, message.
"""
_places: dict[tuple[str, ...], tuple[str, ...]] = {}


@dataclass(frozen=True)
class Reading:
    """The contents of an answer that is not a plain float, read immediately so that later changes
    to the object do not matter.

    Args:
        kind: The type names of the answer and of its parts, with shapes.
        leaves: The first numbers in the answer, with their paths.
        code: A hash of everything that was read.
        further: The paths of the numbers after those, and the numbers as eight bytes each.
        letters: The beginnings of texts in the answer, with their paths; for an integer too large
            for a float, its hexadecimal digits, last digit first.
        unread: The kinds of parts that were not read, with their counts.
    """

    kind: str
    leaves: tuple[tuple[str, float], ...]
    code: float
    further: tuple[tuple[str, ...], bytes] = ((), b"")
    letters: tuple[tuple[str, str], ...] = ()
    unread: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The outcome of one call: an answer, an exception or a time-out, with its side channels.

    Args:
        value: The answer, a float or a `Reading`; for an exception, its attributes. None if there
            is neither.
        raised: The class name of the exception; empty if none was raised.
        message: The text of the exception.
        warned: The categories and texts of warnings, in order.
        timeout: Whether the call exceeded its time limit and was ended.
        printed: The beginning of the text printed to standard output.
        seconds: The duration of the call in seconds, if it is measured; otherwise NaN.
        errors: The beginning of the text written to standard error.
        logged: The log records, in order: level, logger and text.
        files: The files below the working directory that the call changed, each with its last part.
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
        """Whether the outcome is an answer without any side channel or measured duration."""
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
        """Whether the call returned an answer, rather than raising or timing out."""
        return not (self.raised or self.timeout)

    @property
    def beside(self) -> dict[str, Any]:
        """The side channels that were used, by name. The exception's message is included only if
        `value` is None.
        """
        channels = {
            "printed": self.printed, "errors": self.errors, "warned": self.warned, "logged": self.logged,
            "files": self.files, "message": self.message if self.value is None else "",
        }  # fmt: skip
        return {name: seen for name, seen in channels.items() if seen}


def read(value: Any, path: str = "", depth: int = DEPTH) -> Any:
    """An answer in the form that is stored: a float unchanged, anything else as a `Reading`.

    Args:
        value: The answer.
        path: The path at which its parts are named.
        depth: The number of nesting levels read.
    """
    if type(value) is float:
        return value
    digest = blake2b(digest_size=8)
    found: list[tuple[str, float]] = []
    kinds: list[str] = []
    letters: list[tuple[str, str]] = []
    unread: dict[str, int] = {}
    room = LETTERS
    parts = walk(value, path, depth)
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
    places = tuple(path for path, _ in further)
    if len(_places) < LEAVES:
        places = _places.setdefault(places, places)
    numbers = struct.pack(f"<{len(further)}d", *(number for _, number in further))
    code = code_of(digest.digest())
    kind = ",".join(dict.fromkeys(kinds))
    return Reading(
        kind, tuple(found[:LEAVES]), code, (places, numbers), tuple(letters), tuple(unread.items())
    )


def rows_of(values: Iterable[Any]) -> Outcomes:
    """The answers as an array of `Outcome` objects."""
    listed = [value if isinstance(value, Outcome) else Outcome(read(value)) for value in values]
    rows = np.empty(len(listed), dtype=object)
    rows[:] = listed
    return rows
