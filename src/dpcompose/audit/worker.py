"""A process for the calls of a subject: one that hangs, in C code too, or ends its process, is an outcome."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import random
import select
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from dpcompose.audit.calling import IMPORTING, NOT_ANEW, Calls, Dataset
from dpcompose.audit.outcome import Outcome, Outcomes
from dpcompose.audit.outcome_text import LARGEST, MALFORMED, outcome_of, text_of_outcome
from dpcompose.errors import DomainError

GRACE = 1.0
"""Seconds beyond its limit after which a call is ended with its process."""
_LENGTH = struct.Struct("<q")
_DIE_WITH_PARENT = 1
ENDED = "its process ended, or was ended after its limit: the next call began from the first state again"


@dataclass
class Worker:
    """A process that answers calls one after another and keeps its memory between them, until it has to be ended.

    Args:
        function: Makes the function that is called, in the process.
        limit: The seconds that a call may take.
        timed: Whether the time of a call is part of its outcome.
        notes: Sentences about the subject; added to.
        again: Makes it in a process that begins after another one, with generators of its own; None: nothing can.
    """

    function: Callable[[], Callable[[Any], Any]]
    limit: float
    timed: bool
    notes: set[str]
    again: Callable[[], Callable[[Any], Any]] | None = None
    _child: int = 0
    _begun: int = 0
    _asking: int = -1
    _telling: int = -1
    _waiting: bytearray = field(default_factory=bytearray)
    _first: bool = True
    _patience: float = IMPORTING

    def outcomes(self, data: tuple[Any, Any], coins: np.ndarray) -> Outcomes:
        """An outcome for every coin, about the dataset that it picks."""
        rows: Outcomes = np.empty(len(coins), dtype=object)
        done = 0
        try:
            while done < len(coins):
                self._ask((*data, coins[done:].tobytes()))
                while done < len(coins):
                    told = self._told()
                    if isinstance(told, Outcome):
                        rows[done] = told
                        done += 1
                        if not self._child:
                            break
                else:
                    notes = self._told()
                    self.notes |= notes if isinstance(notes, set) else set[str]()
        except BaseException:
            self.close()
            raise
        return rows

    def _ask(self, message: Any) -> None:
        try:
            text = pickle.dumps(message)
        except Exception as error:
            raise DomainError(
                "pairs", repr(error), "datasets that can be sent to a process"
            ) from None
        if not self._child:
            self._begin()
        with contextlib.suppress(BrokenPipeError):
            _write(self._asking, text)

    def _told(self) -> Any:
        """The next thing that the process tells, as data; an outcome of its own where it ended or took too long."""
        limit = self.limit + GRACE + (self._patience if self._first else 0.0)
        ends = time.monotonic() + limit
        while (size := self._size()) is None:
            left = ends - time.monotonic()
            ready = left > 0 and select.select([self._telling], [], [], left)[0]
            part = os.read(self._telling, 1 << 16) if ready else b""
            if not part:
                # An import takes its time in the first call of a process, but not again where it never ends.
                self._patience = self._patience if ready or not self._first else 0.0
                return self._ended(
                    Outcome(raised="process ended") if ready else Outcome(timeout=True)
                )
            self._waiting += part
        self._first = False
        try:
            told: Any = json.loads(self._waiting[8:size])
            notes = isinstance(told, dict) and "notes" in told
            told = (
                set(map(str, cast("dict[str, list[Any]]", told)["notes"]))
                if notes
                else outcome_of(told)
            )
        except MALFORMED:
            return self._ended(Outcome(raised="process ended"))
        del self._waiting[:size]
        return told

    def _size(self) -> int | None:
        """The bytes of the message that waits, with its length; None where it is not whole yet."""
        size = 8 + _LENGTH.unpack_from(self._waiting)[0] if len(self._waiting) >= 8 else LARGEST
        size = size if 8 <= size <= LARGEST else 8
        return size if len(self._waiting) >= size else None

    def _ended(self, outcome: Outcome) -> Outcome:
        self.notes.add(ENDED)
        self.close()
        return outcome

    def _begin(self) -> None:
        (asked, asking), (telling, told) = os.pipe(), os.pipe()
        self._begun += 1
        if self._begun > 1 and self.again is None:
            self.notes.add(NOT_ANEW)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                os.close(asking)
                os.close(telling)
                self._serve(asked, told)
            os._exit(0)
        os.close(asked)
        os.close(told)
        self._child, self._asking, self._telling, self._first = child, asking, telling, True
        self._waiting.clear()

    def _serve(self, asking: int, told: int) -> None:
        """In the process: answer until nobody asks. Its output is caught, and nothing can be read from the terminal."""
        os.setsid()
        with contextlib.suppress(Exception):
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        random.seed()
        np.random.seed()  # noqa: NPY002
        output = os.memfd_create("printed")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        errors = os.memfd_create("errors")
        os.dup2(output, 1)
        os.dup2(errors, 2)
        # A second process would draw from the first one's generators again.
        function = (self.again if self.again is not None and self._begun > 1 else self.function)()
        calls = Calls(self.limit, self.timed, self.notes, output, errors)
        while (text := _read(asking)) is not None:
            asked: tuple[Any, Any, bytes] = pickle.loads(text)
            zero, one, coins = asked
            data: tuple[Dataset, Dataset] = Dataset(zero), Dataset(one)
            with calls.open():
                for coin in coins:
                    _write(
                        told,
                        json.dumps(text_of_outcome(calls.outcome(function, data[coin]))).encode(),
                    )
            _write(told, json.dumps({"notes": sorted(self.notes)}).encode())

    def close(self) -> None:
        """End the process, and whatever it began."""
        if self._child:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            os.close(self._asking)
            os.close(self._telling)
            self._child = 0

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def _write(file: int, text: bytes) -> None:
    rest = memoryview(_LENGTH.pack(len(text)) + text)
    while rest:
        rest = rest[os.write(file, rest) :]


def _read(file: int) -> bytes | None:
    """A message; None where nobody sends any more."""
    found = bytearray()
    size = 8
    while len(found) < size:
        part = os.read(file, size - len(found))
        if not part:
            return None
        found += part
        if len(found) == 8 and size == 8:
            size += _LENGTH.unpack(found)[0]
    return bytes(found[8:])
