"""Answers of any kind: two that a caller can tell apart are read apart, or the verdict names what was not read."""

from __future__ import annotations

import datetime
import random
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox
from dpcompose.audit import Pair, Subject, Verdict, audit
from dpcompose.audit.outcome import Outcome
from dpcompose.audit.subject import Fresh
from dpcompose.report.audit import audit_page

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
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


KINDS: dict[str, Callable[[int], Any]] = {
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
    "arrow metadata": lambda told: pa.table({"c": [1]}).replace_schema_metadata(
        {"told": str(told)}
    ),
    "slots": Slots,
    "attribute of a float": lambda told: attributed(Number(1.0), told),
    "attribute of a list": lambda told: attributed(Items([1]), told),
    "attribute of an array": lambda told: attributed(np.zeros(2).view(Array), told),
    "mask": lambda told: np.ma.array([1, 2], mask=[bool(told), False]),
    "return of a generator": generator,
    "keys": lambda told: {1 if told else "1": 2},
    "long keys": lambda told: {"k" * 100 + str(told): 2},
    "late object": lambda told: np.array([None] * 100 + [told], dtype=object),
    "late text of an array": lambda told: np.array(["a"] * 100 + [str(told)]),
    "late item": lambda told: [0] * 5000 + [told] + [0] * 9,
    "late letter": lambda told: "a" * 5000 + str(told) + "a" * 100,
    "late byte": lambda told: b"a" * 5000 + bytes([told]) + b"a" * 100,
    "what looks like an address": Located,
    "imaginary part": lambda told: complex(0, told),
    "imaginary array": lambda told: np.array([1j * told]),
    "time of day": lambda told: datetime.datetime(2020, 1, 1, told),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())
def test_two_answers_that_differ_are_read_apart(make: Callable[[int], Any]) -> None:
    assert Outcome.of(make(0)) != Outcome.of(make(1))
    assert Outcome.of(make(1)) == Outcome.of(make(1))


BESIDE_NOISE = ["index", "columns", "name of a series", "categories", "slots", "keys", "imaginary part", "dtype",
                "return of a generator", "time of day", "late item", "what looks like an address"]  # fmt: skip


@pytest.mark.parametrize("name", BESIDE_NOISE)
def test_the_difference_is_found_beside_noise(name: str) -> None:
    subject = Subject(lambda rows: (random.gauss(), KINDS[name](len(rows))))
    found = audit(subject, [PAIR], claim=BlackBox(1.0), samples=300, ladder=False)
    assert found.verdict is Verdict.REFUTED


@pytest.mark.parametrize("fresh", [Fresh.CALL, Fresh.WORKER])
def test_coroutines_are_waited_for(fresh: Fresh) -> None:
    async def once(rows: Any) -> int:
        return len(rows)

    async def stream(rows: Any) -> AsyncIterator[int]:
        yield len(rows)

    for call in (once, stream):
        found = audit(
            Subject(call, fresh=fresh), [PAIR], claim=BlackBox(1.0), samples=150, ladder=False
        )
        assert found.verdict is Verdict.REFUTED


class Foreign:
    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return np.zeros(1)


UNREAD: dict[str, Callable[[], Any]] = {
    "inside of a function": lambda: lambda: 0,
    "parts nested too deeply": lambda: __import__("functools").reduce(
        lambda inner, _: [inner], range(60), 1
    ),
    "numbers after the first 1,088": lambda: [0.5] * 2000,
    "items of a collection after the first 4,096": lambda: [None] * 5000,
    "items of an iterator after the first 4,096": lambda: iter(range(5000)),
    "letters of texts after the first 512": lambda: "a" * 600,
    "attributes of a Foreign": Foreign,
}


@pytest.mark.parametrize("fresh", [Fresh.CALL, Fresh.WORKER])
@pytest.mark.parametrize("name", UNREAD)
def test_the_verdict_names_what_was_not_looked_at(name: str, fresh: Fresh) -> None:
    found = audit(
        Subject(lambda rows: UNREAD[name](), fresh=fresh), [PAIR], claim=BlackBox(1.0), samples=24
    )
    assert any(each.startswith(name) for each in found.unread)
    page = audit_page(found, subject="subject", claim="claim", alpha=1e-6)
    assert any(each.startswith(f"Not looked at: {name}") for each in page.notes)


def test_nothing_is_missed_in_common_answers() -> None:
    for value in (1, 2.5, "a", [1, {"a": 2.0}], np.zeros(9), frame(0), pd.Series([1.0]), pl.DataFrame({"a": [1]}),
                  pa.table({"a": [1]}), {1, 2}, Slots(1), datetime.datetime(2020, 1, 1), complex(1, 2)):  # fmt: skip
        assert Outcome.of(value).unread == ()
