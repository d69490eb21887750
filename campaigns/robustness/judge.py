"""Judges the result of one call with one bad value."""

from __future__ import annotations

import dataclasses
import inspect
import math
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, GeneratorType
from typing import Any

import numpy as np

from dpcompose import Bound
from dpcompose.errors import DPComposeError

MOST_CALLS = 3_000_000
"""Calls of Python functions that one answer may take."""
LONGEST_MESSAGE = 1500
PROMISES = {"ApproximateDP", "ConcentratedDP", "Total", "Reading", "Statement"}
"""Types with an epsilon and a delta that are promised."""

# What a parameter's annotation says it takes.
_TAKES = (
    ("float", {"number", "integer"}),
    ("Rational", {"number", "integer", "decimal"}),
    ("Number", {"number", "integer", "decimal"}),
    ("Typed", {"number", "integer", "text", "decimal"}),
    ("int", {"integer"}),
    ("bool", {"flag"}),
    ("str", {"text"}),
    ("Path", {"path"}),
    ("None", {"none"}),
    ("Adjacency", {"adjacency"}),
    ("Orientation", {"orientation"}),
    ("Fraction", {"number", "integer", "decimal"}),
)
_PLAIN = {name for name, _ in _TAKES}
# What holds things: a thing that holds none is refused by name. Of what is neither plain nor one of these, such as an
# Experiment or a callable, Python's own errors say well enough that another type was given.
_HOLDERS = (
    "Sequence",
    "Iterable",
    "Mapping",
    "tuple[",
    "list[",
    "ArrayLike",
    "Reals",
    "Finite",
    "Costs",
    "Database",
    "Any",
    "Hashable",
)


class TooMuchWork(BaseException):
    """A call took more than the limit."""


@contextmanager
def limited(calls: int, seconds: int) -> Iterator[None]:
    """Stop after so many calls of Python functions; for loops inside C, after so many seconds of processor time."""
    left = calls

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal left
        left -= event == "call"
        if left < 0:
            sys.setprofile(None)
            raise TooMuchWork

    def stop(*_: Any) -> None:
        raise TooMuchWork

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def judged(
    call: Callable[..., Any],
    arguments: Mapping[str, Any],
    takes: str,
    kind: str,
    *,
    seconds: int = 60,
    work: int = MOST_CALLS,
) -> str | None:
    """Return the fault of the call; None if there is none."""
    try:
        with warnings.catch_warnings(), limited(work, seconds):
            warnings.simplefilter("error")
            found = call(**arguments)
            if isinstance(found, GeneratorType):
                found = [each for each, _ in zip(found, range(100), strict=False)]
    except DPComposeError as error:
        text = str(error)
        return (
            None
            if 0 < len(text) <= LONGEST_MESSAGE
            and all(line.isprintable() for line in text.splitlines())
            else f"the message {text!r:.200}"
        )
    except TooMuchWork:
        return "more work than the limit"
    except RecursionError:
        return "RecursionError"
    except TypeError as error:
        inside = error.__traceback__ and error.__traceback__.tb_next
        return f"TypeError from inside: {error}" if inside and not duck(takes) else None
    except Exception as error:
        if isinstance(error, AttributeError) and duck(takes):
            return None
        # What an iterable raises while it is read is its own.
        text = _text(error)
        return (
            None
            if kind == "other" and text == "no items"
            else f"{type(error).__name__}: {text:.120}"
        )
    if not accepted(takes, kind):
        return f"accepted, and gave {_shown(found)}"
    wrong = None if inspect.isclass(call) else nonsense(found)
    return f"{wrong} in {_shown(found)}" if wrong else None


def duck(takes: str) -> bool:
    """Whether a parameter takes an object of the library's, or something to call."""
    return not _names(takes) <= _PLAIN and not any(each in takes for each in _HOLDERS)


def _names(takes: str) -> set[str]:
    return {part.strip().split(".")[-1] for part in takes.strip("'\"").split("|")}


def accepted(takes: str, kind: str) -> bool:
    """Whether a parameter of that annotation may take a value of that kind; what is no plain type may take anything."""
    names = _names(takes)
    if not names <= _PLAIN:
        return True
    return any(kind in kinds for name, kinds in _TAKES if name in names)


def nonsense(found: Any, depth: int = 3) -> str | None:
    """Name the nonsense in an answer: NaN, a bound upside down, a negative epsilon, a delta outside [0, 1]."""
    if isinstance(found, Bound):
        return None if found.lower <= found.upper else "a bound upside down"
    if isinstance(found, float | np.floating):
        return "NaN" if math.isnan(found) else None
    if isinstance(found, np.ndarray):
        return "NaN" if found.dtype.kind == "f" and bool(np.any(np.isnan(found))) else None
    if depth == 0:
        return None
    if isinstance(found, Mapping):
        return next(filter(None, (nonsense(each, depth - 1) for each in found.values())), None)
    if isinstance(found, list | tuple):
        return next(filter(None, (nonsense(each, depth - 1) for each in found[:50])), None)
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        promised = type(found).__name__ in PROMISES
        fields = {
            field.name: getattr(found, field.name, None) for field in dataclasses.fields(found)
        }
        for name, low, high in (("epsilon", 0.0, math.inf), ("delta", 0.0, 1.0)):
            value = fields.get(name)
            if promised and isinstance(value, float) and not low <= value <= high:
                return f"{name} = {value}"
        return nonsense(list(fields.values()), depth - 1)
    return None


def _text(error: Exception) -> str:
    try:
        return str(error)
    except ValueError:
        return "of a number too long to print"


def _shown(found: Any) -> str:
    try:
        return f"{found!r:.100}"
    except Exception as error:
        return f"<{type(found).__name__}: {type(error).__name__}>"
