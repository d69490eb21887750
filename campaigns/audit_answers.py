"""More than a hundred kinds of answers that differ in one detail: each must be refuted, or named as
unread.

    python -m campaigns.audit_answers [--samples 500] [--only TEXT]

A mechanism returns a random number together with an answer of one kind that reveals whether a
record is present. The audit of the claim epsilon = 1 must refute it within the samples, or its
verdict must name the part that was not read. Exit status 1 otherwise.
"""

from __future__ import annotations

import argparse
import array
import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import ipaddress
import logging
import os
import pathlib
import random
import sys
import tempfile
import types
import uuid
import warnings
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from dpcompose import BlackBox
from dpcompose.audit import AuditResult, Pair, Subject, Verdict, audit
from dpcompose.audit.learned import LEARNERS

PAIR = Pair((), (1.0,))


class Slots:
    __slots__ = ("__hidden",)

    def __init__(self, hidden: Any) -> None:
        self.__hidden = hidden

    def __repr__(self) -> str:
        return "Slots"


class Number(float): ...


class Items(list[Any]): ...


class Array(np.ndarray): ...


class Located:
    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at

    def __repr__(self) -> str:
        return f"0x{self.at:08x}"


@dataclasses.dataclass
class Data:
    shown: int
    hidden: Any = dataclasses.field(repr=False, default=None)


class RefusalError(Exception):
    __slots__ = ("hidden",)

    def __init__(self, hidden: int) -> None:
        super().__init__("refused")
        self.hidden = hidden


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Lazy:
    """An object with a `__reduce__` and without attributes."""

    def __init__(self, state: int) -> None:
        self._state = lambda: state

    def __getstate__(self) -> None: ...

    def __reduce__(self) -> tuple[Any, ...]:
        return Lazy, (self._state(),)


class Lines:
    """A container with neither length nor items, only an iterator."""

    def __init__(self, *items: int) -> None:
        self.items = items

    def __iter__(self) -> Iterator[int]:
        return iter(self.items)


class Foreign:
    """An array of a library that is not known."""

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return np.zeros(1)


def attributed(value: Any, told: int) -> Any:
    value.told = told
    return value


def frame(told: int, **changes: Any) -> Any:
    made = pd.DataFrame({"a": [1.5, 2.5], "b": [3, 4]})
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def generator(told: int) -> Iterator[int]:
    yield 1
    return told


def closure(told: int) -> Callable[[], int]:
    return lambda: told


def deep(told: int, depth: int) -> Any:
    return functools.reduce(lambda inner, _: [inner], range(depth), told)


def raises(error: Exception) -> Any:
    raise error


def chained(told: int) -> Any:
    try:
        raise (KeyError, IndexError)[told]
    except LookupError as error:
        raise ValueError("refused") from error


def written_text(told: int) -> Any:
    file = io.StringIO()
    file.write(str(told))
    return file


def frozen_dates(*dates: str) -> Any:
    return pd.DatetimeIndex(dates)


def flagged(told: int) -> Any:
    table = frame(0)
    table.flags.allows_duplicate_labels = not told
    return table


def file_of(text: str, name: str = "file", mode: int = 0o644) -> None:
    pathlib.Path(name).write_text(text)
    pathlib.Path(name).chmod(mode)


def appended(told: int) -> None:
    with open("appended", "a") as file:
        file.write(f"{random.random()} seconds, {told} rows\n")


def linked(told: int) -> None:
    pathlib.Path("link").unlink(missing_ok=True)
    pathlib.Path("link").symlink_to(f"target {told}")


def folder(told: int) -> None:
    pathlib.Path("folder").mkdir(exist_ok=True)
    if told:
        pathlib.Path("folder").rmdir()


def moved(told: int) -> None:
    pathlib.Path("inner").mkdir(exist_ok=True)
    if os.path.basename(os.getcwd()) == "inner":
        os.chdir("..")
    if told:
        os.chdir("inner")


def noted(told: int) -> Any:
    error = ValueError("refused")
    error.add_note(f"{told} rows")
    raise error


def suppressed(told: int) -> Any:
    error = ValueError("refused")
    error.__context__, error.__suppress_context__ = KeyError(), bool(told)
    raise error


def grouped(told: int) -> Any:
    raise ExceptionGroup("refused", [ValueError("a"), ValueError("b", [told])])


def failed_log(told: int) -> Any:
    try:
        raise KeyError(told)
    except KeyError:
        logging.getLogger("quiet").warning("refused", exc_info=True)


def warned(told: int) -> Any:
    warnings.warn(f"clipped {told} rows", stacklevel=1)


async def coroutine(told: int) -> int:
    return told


KINDS: dict[str, Callable[[int], Any]] = {
    "integer": lambda told: told,
    "float": float,
    "truth": bool,
    "none": lambda told: told or None,
    "negative zero": lambda told: -0.0 if told else 0.0,
    "payload of a NaN": lambda told: np.uint64(0x7FF8000000000000 + told).view(np.float64),
    "type of a number": lambda told: 1 if told else 1.0,
    "type of numpy": lambda told: (np.float32 if told else np.float64)(0.5),
    "order of types": lambda told: [1, 1.0] if told else [1.0, 1],
    "last bit": lambda told: 1.0 + told * 2.0**-52,
    "large integer": lambda told: (1 << 300) + told,
    "large integer of numpy": lambda told: np.uint64(2**63 + told),
    "large integer of an array": lambda told: np.array([2**60 + told]),
    "last bit of a long double": lambda told: np.longdouble(1) + told * np.longdouble(2) ** -60,
    "middle of a large integer": lambda told: (1 << 300) + (told << 137),
    "imaginary part": lambda told: complex(0, told),
    "fraction": lambda told: fractions.Fraction(10**30 + told, 10**30),
    "decimal": lambda told: decimal.Decimal("1.0" if told else "1.00"),
    "text": str,
    "bytes": lambda told: bytes([told]),
    "late letter": lambda told: "a" * 5000 + str(told) + "a" * 100,
    "late byte": lambda told: b"a" * 5000 + bytes([told]) + b"a" * 100,
    "surrogate": lambda told: chr(0xD800 + told),
    "number in a text": lambda told: f"of {random.random():.9f}, {told} rows",
    "date": lambda told: datetime.date(2020, 1, 1 + told),
    "time of day": lambda told: datetime.datetime(2020, 1, 1, told),
    "time alone": datetime.time,
    "second fold": lambda told: datetime.datetime(2020, 10, 25, 2, fold=told),
    "time zone": lambda told: datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo(("UTC", "Asia/Tokyo")[told])),
    "duration": lambda told: datetime.timedelta(microseconds=told),
    "list": lambda told: [told],
    "length": lambda told: [0] * told,
    "late item": lambda told: [0] * 5000 + [told] + [0] * 9,
    "late object of a list": lambda told: [None] * 5000 + [Data(told)],
    "tuple or list": lambda told: (1,) if told else [1],
    "named tuple": lambda told: collections.namedtuple(f"Row{told}", "a")(1),
    "set": lambda told: {told, 7},
    "keys": lambda told: {1 if told else "1": 2},
    "long keys": lambda told: {"k" * 100 + str(told): 2},
    "order of keys": lambda told: {"a": 1, "b": 2} if told else {"b": 2, "a": 1},
    "late key": lambda told: dict.fromkeys(range(5000), 0) | {5000 + told: 0},
    "default of a mapping": lambda told: collections.defaultdict((int, float)[told]),
    "bounded queue": lambda told: collections.deque([1], maxlen=5 + told),
    "buffer": lambda told: memoryview(bytes([told])),
    "typed array": lambda told: array.array("d" if told else "f", [1.0]),
    "range": lambda told: range(10**12 + told),
    "deep item": lambda told: deep(told, 30),
    "array": lambda told: np.array([0.5, told]),
    "shape": lambda told: np.zeros((2, 3) if told else (3, 2)),
    "memory order": lambda told: np.zeros((2, 3), order="F" if told else "C"),
    "late number of an array": lambda told: np.array([0.0] * 3000 + [told]),
    "imaginary array": lambda told: np.array([1j * told]),
    "late object": lambda told: np.array([None] * 100 + [told], dtype=object),
    "late text of an array": lambda told: np.array(["a"] * 100 + [str(told)]),
    "mask": lambda told: np.ma.array([1, 2], mask=[bool(told), False]),
    "record of an array": lambda told: np.array([(1, told)], dtype=[("a", "i4"), ("b", "i4")]),
    "attribute of a float": lambda told: attributed(Number(1.0), told),
    "attribute of a list": lambda told: attributed(Items([1]), told),
    "attribute of an array": lambda told: attributed(np.zeros(2).view(Array), told),
    "index": lambda told: frame(told, index=[7, told]),
    "columns": lambda told: frame(told, columns=["a", f"b{told}"]),
    "attributes of a table": lambda told: frame(told, attrs={"told": told}),
    "dtype": lambda told: frame(told).astype({"b": "int8" if told else "int64"}),
    "name of an index": lambda told: frame(told).rename_axis(f"n{told}"),
    "name of a series": lambda told: pd.Series([1.5], name=told),
    "index of a series": lambda told: pd.Series([1.5], index=[f"k{told}"]),
    "categories": lambda told: pd.Categorical(["a"], categories=["a", str(told)]),
    "order of categories": lambda told: pd.Categorical(["a"], ordered=bool(told)),
    "polars columns": lambda told: pl.DataFrame({f"c{told}": [1.5]}),
    "polars dtype": lambda told: pl.Series("a", [1], dtype=pl.Int8 if told else pl.Int64),
    "arrow names": lambda told: pa.table({f"c{told}": [1.5]}),
    "arrow metadata": lambda told: pa.table({"c": [1]}).replace_schema_metadata({"told": str(told)}),
    "slots": Slots,
    "hidden field of a dataclass": lambda told: Data(1, told),
    "member of an enumeration": lambda told: (Color.RED, Color.BLUE)[told],
    "what looks like an address": Located,
    "return of a generator": generator,
    "iterator": lambda told: iter([told]),
    "own iterator": Lines,
    "reduced object": Lazy,
    "namespace": lambda told: types.SimpleNamespace(a=told),
    "text in memory": lambda told: io.StringIO(str(told)),
    "text in memory, at its end": written_text,
    "class made in a call": lambda told: type("Made", (), {"told": told}),
    "field of a class made in a call": lambda told: type("Made", (), {"told": told})(),
    "inner slot": lambda told: Slots(Slots(told)),
    "frequency of an index": lambda told: (pd.date_range if told else frozen_dates)("2020-01-01", "2020-01-02"),
    "flag of a table": flagged,
    "unused entry of an arrow dictionary": lambda told: pa.DictionaryArray.from_arrays([0], ["x", f"y{told}"]),
    "path": lambda told: pathlib.PurePath(str(told)),
    "identifier": lambda told: uuid.UUID(int=told),
    "network": ipaddress.ip_address,
    "partial function": lambda told: functools.partial(max, told),
    "closure": closure,
    "foreign array": Foreign,
    "deeper item": lambda told: deep(told, 60),
    "late item of an iterator": lambda told: iter([0] * 5000 + [told]),
}  # fmt: skip
"""Answers by kind; 0 and 1 are the datasets without and with the record."""
CALLS: dict[str, Callable[[int], Any]] = {
    "coroutine": coroutine,
    "exception": lambda told: raises((ValueError, KeyError)[told]("no")),
    "attribute of an exception": lambda told: raises(attributed(ValueError("no"), told)),
    "argument of an exception": lambda told: raises(ValueError("no", told)),
    "cause of an exception": chained,
    "note of an exception": noted,
    "suppressed cause of an exception": suppressed,
    "inside of a group of exceptions": grouped,
    "object in an exception": lambda told: raises(ValueError(Slots(told))),
    "attribute in a slot of an exception": lambda told: raises(RefusalError(told)),
    "warning": warned,
    "line of a warning": lambda told: warnings.warn_explicit(
        "clipped", UserWarning, "a.py", 7 + told
    ),
    "attribute of a warning": lambda told: warnings.warn(
        attributed(UserWarning("clipped"), told), stacklevel=1
    ),
    "log record": lambda told: logging.getLogger("quiet").warning("rows %d", told),
    "extra of a log record": lambda told: logging.getLogger("quiet").warning(
        "rows", extra={"told": told}
    ),
    "exception in a log record": failed_log,
    "contents of a file": lambda told: file_of(f"{random.random():.9f} {told}"),
    "middle of a file": lambda told: file_of("a" * 9000 + str(told) + "a" * 9000),
    "line appended to a file": appended,
    "mode of a file": lambda told: file_of("", mode=0o644 if told else 0o600),
    "hidden file": lambda told: file_of(str(told), ".hidden"),
    "target of a link": linked,
    "empty folder": folder,
    "variable of the environment": lambda told: os.environ.update(TOLD=str(told)),
    "working folder": moved,
    "end of a long print": lambda told: print("a" * 6000 + str(told)),
    "print": lambda told: print("rows", told),
    "standard error": lambda told: print("rows", told, file=sys.stderr),
}
"""Differences that a call shows by other means than its answer, in half of the calls."""


def audited(name: str, samples: int, seed: int | None = None) -> AuditResult:
    """The audit of one kind; with `seed`, its noise and coins are those of every run with that seed."""
    draw = random.Random(seed)

    def mechanism(rows: Any) -> Any:
        if name in KINDS:
            return draw.gauss(), KINDS[name](len(rows))
        shown = CALLS[name](len(rows)) if draw.random() < 0.5 else None
        return draw.gauss() if shown is None else shown

    subject = Subject(mechanism, label=name)
    return audit(
        subject, [PAIR], claim=BlackBox(1.0), samples=samples, learners=LEARNERS, ladder=False,
        seed=None if seed is None else bytes([seed] * 32),
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    logging.getLogger("quiet").propagate = False
    logging.getLogger("quiet").addHandler(logging.NullHandler())
    counts = collections.Counter[str]()
    for name in (each for each in (*KINDS, *CALLS) if options.only in each):
        with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
            result = audited(name, options.samples)
        unread = "" if result.verdict is Verdict.REFUTED else ", ".join(result.unread)
        verdict = (
            "refuted" if result.verdict is Verdict.REFUTED else "unread" if unread else "MISSED"
        )
        counts[verdict] += 1
        print(f"{name:<28} {verdict:8} {result.samples:>4}  {unread}", flush=True)
    print(", ".join(f"{number} {verdict}" for verdict, number in counts.items()))
    return int(counts["MISSED"] > 0)


if __name__ == "__main__":
    sys.exit(main())
