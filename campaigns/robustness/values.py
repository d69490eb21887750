"""Seventy bad values with their kinds; a parameter that accepts a kind may accept its values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpcompose import Adjacency, Bound, Gaussian, Orientation


class Broken:
    """Raises whatever is asked of it."""

    def __float__(self) -> float:
        raise RuntimeError("no float")

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __iter__(self) -> Any:
        raise RuntimeError("no items")


@dataclass(frozen=True)
class Value:
    """A label that says which it was, how to make it, and its kind."""

    label: str
    make: Callable[[], Any]
    kind: str


def _constant(value: Any, kind: str, label: str = "") -> Value:
    return Value(label or f"{value!r:.40}", lambda: value, kind)


_NUMBERS = [
    -1.0, -0.5, -1e-300, -5e-324, -0.0, 0.0, 5e-324, 1e-300, 1e-17, 0.3, 1.0, math.nextafter(1.0, 0.0),
    math.nextafter(1.0, 2.0), 2.5, 750.0, 1e17, 1e154, 1e300, 1.7976931348623157e308, math.inf, -math.inf,
    Fraction(1, 3), Fraction(-1, 3), Fraction(10) ** 400, Fraction(1, 10**400), np.float64(0.25), np.float32(0.25),
]  # fmt: skip
_INTEGERS = [
    -1,
    0,
    1,
    2,
    3,
    10**6,
    2**63,
    10**15 + 1,
    10**30,
    -(10**30),
    np.int64(3),
    np.uint8(200),
]
_OTHERS: list[tuple[Any, str]] = [
    (math.nan, "nan"), (np.float64("nan"), "nan"), (Decimal("nan"), "nan"), (Decimal("0.5"), "decimal"),
    (1j, "complex"), (True, "flag"), (False, "flag"), (np.True_, "flag"), (None, "none"),
    ("", "text"), ("0.5", "text"), ("nan", "text"), ("\x1b[2J", "text"), ("a\nb", "text"), ("\0", "text"),
    ("\ud800", "text"), ("x" * 300, "text"), ("\u3164", "text"), (b"bytes", "bytes"), (Path("nowhere/x"), "path"),
    ([], "items"), ([math.nan], "items"), ([None, 1], "items"), ((), "items"), ((1, 2, 3), "items"), ({}, "mapping"),
    ({"epsilon": math.nan}, "mapping"), ({1: 2}, "mapping"), ({1, 2}, "items"), (object, "callable"),
    (lambda *_: math.nan, "callable"), (np.array([0.1, math.nan]), "items"),
]  # fmt: skip

VALUES: tuple[Value, ...] = (
    *(_constant(value, "number") for value in _NUMBERS),
    *(_constant(value, "integer") for value in _INTEGERS),
    _constant(10**400, "integer", "10**400"),
    _constant(-(10**400), "integer", "-10**400"),
    _constant(10**5000, "integer", "10**5000"),
    *(_constant(value, kind) for value, kind in _OTHERS),
    Value("an iterator", lambda: iter([1, 2]), "items"),
    Value("an object that breaks", Broken, "other"),
    _constant(Adjacency.REPLACE, "adjacency"),
    _constant(Orientation.FREE, "orientation"),
    _constant(Gaussian(1.0), "mechanism"),
    _constant(Bound(0.1, 0.2), "bound"),
)
