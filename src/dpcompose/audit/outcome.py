"""One answer of a subject, whatever came back: everything that a caller could see of it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.parts import (
    BEYOND,
    DEPTH,
    FURTHER,
    LEAVES,
    LETTERS,
    MANY,
    PARTS,
    UNREAD,
    code_of,
    walk,
)

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
