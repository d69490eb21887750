"""Outcomes of calls: everything that a caller can observe, as rows of path and number or text.

A path begins with the channel: the answer or the attributes of an exception have none, prints,
warnings and the like begin with `BESIDE` and the channel's name. Values are read immediately, so
that later changes to an object do not matter.
"""

from __future__ import annotations

import marshal
import math
import re
import struct
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from numbers import Number
from operator import attrgetter
from types import GeneratorType, ModuleType
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpcompose.document import Record

Outcomes = NDArray[Any]
"""One row per call: plain numbers of shape (n,) or (n, k), or `Outcome` objects of shape (n,)."""
Reals = NDArray[np.float64]

LEAVES, DEPTH, LOOKED, TEXT = 64, 40, 4096, 4096
"""Limits: numbers with own features, nesting levels, items of a collection, printed characters."""
FURTHER, LETTERS, PARTS = 1024, 512, 1 << 16
"""Limits for learners: numbers after the first LEAVES, characters; parts read of an answer."""
NUMBERS, NESTED, LONGEST = 8, 12, 1 << 20
"""Limits: numerals of a text with columns, nesting of labels, items in a collection's hash."""
LABELS = (
    "name",
    "names",
    "dtype",
    "categories",
    "ordered",
    "type",
    "freq",
    "dictionary",
    "null_count",
)
TABLE_LABELS = (
    *LABELS, "index", "columns", "column_names", "dtypes", "schema", "attrs", "flags.allows_duplicate_labels",
)  # fmt: skip
"""Attributes of pandas, polars and pyarrow tables besides their values."""
BUILT_IN = ("default_factory", "maxlen", "typecode", "format")
"""Settings of standard library containers that are not visible as attributes."""
BESIDE = " beside "
"""The prefix of the paths of side channels."""
TIMEOUT, ENDED = "no answer in time", "process ended"
"""Failures of a call that raises no exception."""
_DOUBLE = struct.Struct("<d")
_NAN = np.array([math.nan]).view(np.uint64)[0]
_TABLES = ("pandas", "polars", "pyarrow")
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
"""The memory address in the text of an object, which is no part of an answer."""
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_BARE = (float, int, bool, str, bytes, list, tuple, dict, set, type(None), np.ndarray, np.float64, np.int64)  # fmt: skip
"""Types whose instances have no attributes of their own to read."""
_TEXTS, _COMPLEX = (str, bytes, bytearray), (complex, np.complexfloating)
_REALS = (int, np.number)
_COLLECTIONS = (list, tuple, dict, Mapping, Sequence, Set)
_SCALARS = (float, int, Number, bool, np.generic, date, time, timedelta, range)
MANY = f"numbers after the first {LEAVES + FURTHER:,}, but for a hash"
LARGEST = 1 << 33
"""The largest size, in bytes, of the unpacked outcomes of a batch."""


@runtime_checkable
class _Array(Protocol):
    """An array, series or table of any library that numpy can convert."""

    def __array__(self) -> np.ndarray: ...


def code_of(text: bytes) -> float:
    """A 52-bit hash of the bytes as a float: equal for equal bytes, and different otherwise except
    by chance.
    """
    return float(int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 12)


def mixed(numbers: Outcomes) -> Reals:
    """A 52-bit hash of each row of numbers, from their bits."""
    bits = numbers if numbers.dtype.kind in "iub" else numbers.astype(np.float64).view(np.uint64)
    bits = bits.astype(np.uint64).reshape(len(numbers), -1)
    codes = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        codes = (codes ^ column) * np.uint64(0x9E3779B97F4A7C15)
        codes ^= codes >> np.uint64(29)
    return (codes >> np.uint64(12)).astype(np.float64)


class Outcome(Record, frozen=True):
    """The outcome of one call: its numbers and texts by path.

    Args:
        kind: The type names of the answer and of its parts, with the channels that were used; empty
            for a float and nothing else.
        paths: The path of each number.
        numbers: The numbers as eight bytes each.
        texts: The beginnings of texts, with their paths; for an integer too large for a float, its
            hexadecimal digits, last digit first.
        code: A hash of everything that was read.
        failure: The class name of the exception, `TIMEOUT` or `ENDED`; empty if the call answered.
        message: The text of the exception.
        unread: The kinds of parts that were not read, with their counts.
    """

    kind: str
    paths: tuple[str, ...]
    numbers: bytes
    texts: tuple[tuple[str, str], ...]
    code: float
    failure: str = ""
    message: str = ""
    unread: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if len(self.numbers) != 8 * len(self.paths):
            raise ValueError("paths and numbers differ in count")
        self._fix("paths", _layout(*self.paths))

    @classmethod
    def of(cls, value: Any = None, *, failure: str = "", message: str = "") -> Outcome:
        """The outcome of a call that returned a value, or failed."""
        return Reader.of(value).outcome(failure, message)

    @property
    def words(self) -> str:
        """A short description."""
        values = struct.unpack(f"<{len(self.paths)}d", self.numbers)
        shown = [
            f"{path or 'value'} {number:g}"
            for path, number in zip(self.paths, values, strict=True)
            if not path.startswith(BESIDE) and not path.endswith(CODES)
        ]
        answer = f"{self.kind or 'float'} ({', '.join(shown[:3])})"
        if self.failure:
            answer = (
                f"raises {self.failure}: {self.message[:60]!r}" if self.message else self.failure
            )
        heard = [
            (path[len(BESIDE) :], text) for path, text in self.texts if path.startswith(BESIDE)
        ]
        return answer + "".join(f", {name} {text[:60]!r}" for name, text in heard)


CODES = (".code", ".words", ".flags")
"""Endings of the paths of hashes and other numbers without order."""


class Reader:
    """Reads the parts of one outcome into columns, texts and one hash."""

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._numbers = array("d")
        self._texts: list[tuple[str, str]] = []
        self._kinds: list[str] = []
        self._unread: defaultdict[str, int] = defaultdict(int)
        self._digest = blake2b(digest_size=8)
        self._parts = self._columns = self._letters = 0

    @classmethod
    def of(cls, value: Any) -> Reader:
        """A reader that has read an answer."""
        reader = cls()
        reader.channel(value)
        return reader

    def channel(self, value: Any, name: str = "") -> None:
        """Read the answer, or the side channel of that name."""
        self._parts, self._columns, self._letters = PARTS, LEAVES + FURTHER, LETTERS
        kinds, self._kinds = self._kinds, []
        try:
            self._read(value, f"{BESIDE}{name}" if name else "", DEPTH)
        except _FullError:
            self._unread[f"parts after the first {PARTS:,}"] += 1
        if self._letters < 0:
            self._unread[
                f"letters of texts after the first {LETTERS}, but for a hash"
            ] = -self._letters
        if not name and len(self._kinds) > 1:
            self._paths.insert(0, ".types.code")
            self._numbers.insert(0, code_of(",".join(self._kinds[: 4 * LEAVES]).encode()))
        self._kinds = [*kinds, name] if name else self._kinds

    def timed(self, seconds: float) -> None:
        """Add the duration of the call."""
        self._column(".seconds", seconds)

    def outcome(self, failure: str = "", message: str = "") -> Outcome:
        """Everything that was read as an outcome."""
        paths, numbers = tuple(self._paths), self._numbers.tobytes()
        if paths == ("",) and self._kinds == ["float"] and not failure:
            return Outcome("", paths, numbers, (), float(mixed(np.array(self._numbers))[0]))
        if failure:
            self._digest.update(f"{failure}|{message}".encode("utf-8", "surrogatepass"))
        kinds = ",".join(dict.fromkeys(self._kinds[: 4 * LEAVES]))
        kind = f"{kinds} {failure}".rstrip()
        code, unread = code_of(self._digest.digest()), tuple(self._unread.items())
        texts, failed = tuple(self._texts), {"failure": failure, "message": message}
        return Outcome(kind, paths, numbers, texts, code, unread=unread, **failed)

    def _part(
        self, path: str, kind: str, content: bytes = b"", number: float | None = None
    ) -> None:
        if not self._parts:
            raise _FullError
        self._parts -= 1
        self._kinds.append(kind)
        self._digest.update(f"{path}|{kind}|".encode("utf-8", "surrogatepass") + content)
        if number is not None:
            self._column(path, number)

    def _column(self, path: str, number: float) -> None:
        if self._columns:
            self._columns -= 1
            self._paths.append(path)
            self._numbers.append(number)
        else:
            self._unread[MANY] += 1

    def _read(self, value: Any, path: str, depth: int) -> None:
        kind = type(value).__name__
        attributes = type(value) not in _BARE and depth > 0
        if isinstance(value, float):
            self._part(path, kind, _DOUBLE.pack(value), float(value))
            if math.isnan(value) or not value:
                self._odd_bits(np.array([value]), path)
        elif isinstance(value, _TEXTS):
            self._text(value, path, kind)
        elif value is None or isinstance(value, _SCALARS):
            self._scalar(value, path, kind)
        elif depth == 0:
            self._part(path, kind, b"deep")
            self._unread["parts nested too deeply"] += 1
        elif isinstance(value, np.ndarray):
            self._array(cast("np.ndarray", value), path, kind, depth)
        elif isinstance(value, _COLLECTIONS):
            self._items(value, path, kind, depth)
        elif isinstance(value, Iterator):
            self._drained(cast("Iterator[Any]", value), path, kind, depth)
            attributes = False
            if not isinstance(value, GeneratorType) and not self._attributes(value, path, depth):
                self._reduced(value, path, kind, depth)
        else:
            attributes = False
            table = isinstance(value, _Array) and not isinstance(value, type)
            (self._table if table else self._object)(value, path, kind, depth)
        if attributes:
            self._attributes(value, path, depth)
            self._built_in(value, path, depth)

    def _scalar(self, value: Any, path: str, kind: str) -> None:
        text, number = _shown(value).encode(), _number(value)
        exact = value.item() if isinstance(value, np.integer) else value
        self._part(path, kind, text, number)
        if isinstance(value, _COMPLEX):
            self._column(f"{path}.imag", float(cast("complex", value).imag))
        elif isinstance(exact, int) and exact.bit_length() > 53:
            digits = f"{abs(exact):x}"[::-1]
            self._letter(path, digits[:LETTERS], len(digits))
        elif value is not None and (not isinstance(value, _REALS) or number != exact):
            self._column(f"{path}.code", code_of(text))

    def _text(self, value: str | bytes | bytearray, path: str, kind: str) -> None:
        whole = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)
        code = code_of(whole)
        content = whole if len(whole) <= TEXT else _DOUBLE.pack(code)
        self._part(f"{path}.length", kind, content, float(len(value)))
        self._column(f"{path}.code", code)
        head = value[:LETTERS] if isinstance(value, str) else whole[:LETTERS].decode("latin-1")
        try:
            self._column(path, float(head if len(head) == len(value) else "text"))
        except (ValueError, OverflowError):
            words = _NUMBER.sub("#", head).encode("utf-8", "surrogatepass")
            self._column(f"{path}.words", code_of(words))
            for index, number in enumerate(map(float, _NUMBER.findall(head)[:NUMBERS])):
                self._column(
                    f"{path}.numbers[{index}]", number if abs(number) < 1e100 else math.inf
                )
        self._letter(path, head, len(value))

    def _letter(self, path: str, head: str, length: int) -> None:
        if self._letters > 0 and head:
            self._texts.append((path, _encodable(head[: self._letters])))
        self._letters -= length

    def _items(self, value: Any, path: str, kind: str, depth: int) -> None:
        self._part(f"{path}.length", kind, b"", float(len(value)))
        size = len(value)
        mapping = cast("Mapping[Any, Any] | None", value if isinstance(value, Mapping) else None)
        items = cast("Iterable[Any]", value if mapping is None else mapping.items())
        if size > LOOKED:
            self._others(islice(items, LOOKED, LONGEST), size - LOOKED, path, "collection")
        if mapping is None:
            first = islice(items, LOOKED)
            for index, item in enumerate(
                sorted(first, key=_shown) if isinstance(value, Set) else first
            ):
                self._read(item, f"{path}[{index}]", depth - 1)
            return
        texts = [*map(_shown, islice(mapping, LOOKED))]
        self._column(f"{path}.keys.code", code_of("|".join(texts).encode()))
        for text, item in zip(texts, mapping.values(), strict=False):
            name = text if len(text) <= 42 else f"{text[:40]} {code_of(text.encode()):.0f}"
            self._part(f"{path}.has {name}", "key", text.encode(), 1.0)
            self._read(item, f"{path}[{name}]", depth - 1)

    def _others(self, left: Iterable[Any], number: int, path: str, what: str) -> None:
        """Add one hash for the items that get no columns."""
        items = [*left]
        try:
            content = marshal.dumps(
                items, 2
            )  # version 2 encodes values, not the identity of objects
        except ValueError:
            content = self._hashed(items)
        self._part(f"{path}.others.code", "", content, code_of(content))
        self._unread[f"items of a {what} after the first {LOOKED:,}, but for a hash"] += number

    def _hashed(self, value: Any, depth: int = DEPTH) -> bytes:
        """A digest of a value that gets no columns."""
        reader = Reader()
        reader._parts = PARTS
        try:
            reader._read(value, "", depth)
        except _FullError:
            self._unread[f"parts after the first {PARTS:,}"] += 1
        return reader._digest.digest()

    def _drained(self, value: Iterator[Any], path: str, kind: str, depth: int) -> None:
        """The items of an iterator, up to LOOKED, and the return value of a generator."""
        items, returned = list[Any](), None
        try:
            while len(items) < LOOKED:
                items.append(next(value))
            self._unread[f"items of an iterator after the first {LOOKED:,}"] += 1
        except StopIteration as ended:
            returned = ended.value
        self._items(items, path, kind, depth)
        if returned is not None:
            self._read(returned, f"{path}.returned", depth - 1)

    def _table(self, value: Any, path: str, kind: str, depth: int) -> None:
        """Read a table or series: a hash of each label, then its values, then the contents of the
        labels.
        """
        if type(value).__module__.partition(".")[0] not in _TABLES:
            self._unread[f"attributes of a {kind}"] += 1
        self._part(path, kind)
        labels = dict[str, Any]()
        for name in TABLE_LABELS if depth > NESTED else LABELS:
            with suppress(Exception):
                label = attrgetter(name)(value)
                if not callable(label) or isinstance(label, type):
                    labels[name] = label
        if labels.get("null_count"):
            self._unread["bytes behind nulls"] += 1
        inside = min(depth - 1, NESTED)
        for name, label in labels.items():
            self._column(f"{path}.{name}.all.code", code_of(self._hashed(label, inside)))
        self._array(np.asarray(value), path, kind, depth)
        for name, label in labels.items():
            self._read(label, f"{path}.{name}", inside)

    def _array(self, value: np.ndarray, path: str, kind: str, depth: int) -> None:
        flat, size = np.asarray(value).reshape(-1), value.size
        plain, step = _exact(flat), max(1, size // LONGEST)
        whole = (
            np.ascontiguousarray(flat[::step]).tobytes() if plain or flat.dtype.kind == "c" else b""
        )
        shape = str(value.shape).encode() + whole
        self._part(f"{path}.length", f"{kind} of {value.dtype} {value.ndim}", shape, float(size))
        self._column(f"{path}.flags", float(value.flags.num))
        for axis, number in enumerate(value.shape if value.ndim > 1 else ()):
            self._column(f"{path}.shape[{axis}]", float(number))
        if step > 1:
            self._unread["items of an array, but for their sum"] += size - len(flat[::step])
        if flat.dtype.kind == "c":
            self._array(np.real(flat), path, kind, depth)
            self._array(np.imag(flat), f"{path}.imag", kind, depth)
            return
        if plain and size > LEAVES:
            self._column(f"{path}.sum", float(flat.sum(dtype=np.float64)))
        if plain and size > FURTHER:
            self._column(f"{path}.others.code", code_of(flat[FURTHER::step].tobytes()))
            self._unread[MANY] += size - FURTHER
        elif size > LOOKED:
            self._others(flat[LOOKED:LONGEST].tolist(), size - LOOKED, path, "collection")
        if flat.dtype.kind == "f":
            self._odd_bits(flat[:FURTHER].astype(np.float64), path)
        for index, item in enumerate(flat[: FURTHER if plain else LOOKED].tolist()):
            if plain:
                self._column(f"{path}[{index}]", float(item))
            else:
                self._read(item, f"{path}[{index}]", depth - 1)

    def _odd_bits(self, numbers: Reals, path: str) -> None:
        """A hash of negative zeros and of NaN payloads, which comparisons ignore."""
        odd = numbers[(numbers == 0) | np.isnan(numbers)].view(np.uint64)
        if np.any((odd != 0) & (odd != _NAN)):
            self._column(f"{path}.bits.code", code_of(odd.tobytes()))

    def _built_in(self, value: Any, path: str, depth: int) -> None:
        """Read the settings of a container of the standard library, which are no attributes."""
        for name in BUILT_IN if type(value).__module__ != "numpy" else ():
            if hasattr(value, name):
                self._read(getattr(value, name), f"{path}.{name}", depth - 1)

    def _object(self, value: Any, path: str, kind: str, depth: int) -> None:
        """Read an object of any other type: its text, and its attributes or, if it has none, its
        pickled state.
        """
        text = _shown(value).encode()
        self._part(path, kind, text)
        self._column(f"{path}.code", code_of(text))
        addresses = len(ADDRESS.findall(_repr(value).replace(f" at {id(value):#x}", "")))
        if addresses:
            self._unread["addresses in the texts of objects"] += addresses
        if not _is_named(value if isinstance(value, type) else type(value)):
            self._unread["inside of a class that has no name in a module"] += 1
        if isinstance(value, BaseException):
            self._exception(value, path, depth)
        elif isinstance(value, type | np.dtype | ModuleType) or self._attributes(
            value, path, depth
        ):
            return
        else:
            self._reduced(value, path, kind, depth)

    def _exception(self, value: BaseException, path: str, depth: int) -> None:
        """Read everything a caller can see of an exception: text, arguments, attributes with notes,
        causes and members of groups.
        """
        text, arguments = text_of_error(value), value.args
        self._read(text, f"{path}.text", depth - 1)
        grouped = isinstance(value, BaseExceptionGroup)
        if len(arguments) != 1 or type(arguments[0]) is not str or arguments[0] != text:
            self._read(arguments, f"{path}.args", depth - 1)
        if value.__context__ is not value.__cause__:
            self._read(value.__suppress_context__, f"{path}.suppressed", depth - 1)
            self._read(value.__context__, f"{path}.context", depth - 1)
        for name, behind in (
            ("cause", value.__cause__),
            ("exceptions", cast("Any", value).exceptions if grouped else None),
        ):
            if behind is not None:
                self._read(behind, f"{path}.{name}", depth - 1)
        self._attributes(value, path, depth)

    def _reduced(self, value: Any, path: str, kind: str, depth: int) -> None:
        """Read the state from which an object without attributes is pickled."""
        try:
            parts: Any = value.__reduce_ex__(2)
        except Exception:
            self._unread[f"inside of a {kind}"] += 1
        else:
            self._read(parts if isinstance(parts, str) else parts[1:], f"{path}.state", depth - 1)

    def _attributes(self, value: Any, path: str, depth: int) -> bool:
        """Read the attributes of an object, including slots. Returns whether it has any."""
        states, count = object.__getstate__(value), 0
        for state in cast("tuple[Any, ...]", states) if isinstance(states, tuple) else (states,):
            fields = cast("dict[Any, Any]", state if isinstance(state, dict) else {})
            count += len(fields)
            for name in islice(fields, LOOKED):
                self._read(fields[name], f"{path}.{_encodable(name)}", depth - 1)
            if len(fields) > LOOKED:
                self._unread[f"attributes after the first {LOOKED:,}"] += len(fields) - LOOKED
        return count > 0


def _exact(numbers: np.ndarray) -> bool:
    """Whether these are numbers that floats hold exactly."""
    if numbers.dtype.kind not in "fiub":
        return False
    with np.errstate(invalid="ignore"):
        again = numbers.astype(np.float64).astype(numbers.dtype)
    return numbers.dtype == np.float64 or np.array_equal(again, numbers, equal_nan=True)


def _is_named(kind: type) -> bool:
    """Whether a class can be found under its name in its module, so that the name identifies it."""
    within: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        within = getattr(within, name, None)
    return within is kind or not kind.__flags__ & _HEAP


_HEAP = 1 << 9
"""CPython's flag of classes that were created at run time."""


class _FullError(Exception):
    """Raised when the parts of an answer that may be read are used up."""


@lru_cache(LOOKED)
def _layout(*paths: str) -> tuple[str, ...]:
    """These paths as a tuple; equal paths give the same object, so that many outcomes share one."""
    return paths


def _shown(value: Any) -> str:
    """The object's `repr` without memory addresses; characters that are not valid Unicode are
    escaped.
    """
    text = _repr(value)
    return _encodable(text if isinstance(value, str) else ADDRESS.sub("", text))


def _encodable(text: str) -> str:
    """A text whose characters that are not valid Unicode are escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _repr(value: Any, text: Callable[[Any], str] = repr) -> str:
    try:
        return text(value)
    except Exception:
        return "no text"


def text_of_error(error: BaseException) -> str:
    """The text of an exception without memory addresses."""
    return _encodable(ADDRESS.sub("", _repr(error, str)))


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


def rows_of(values: Iterable[Any]) -> Outcomes:
    """The answers as an array of `Outcome` objects."""
    listed = [value if isinstance(value, Outcome) else Outcome.of(value) for value in values]
    rows = np.empty(len(listed), dtype=object)
    rows[:] = listed
    return rows
