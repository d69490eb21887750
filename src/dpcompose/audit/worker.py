"""Calls of the subject in a separate process, so that a call that hangs or ends its process is an
ordinary outcome.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import pickle
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
"""Seconds after its time limit at which a call is ended together with its process."""
CHUNK = 1 << 14
"""The number of calls requested at once."""
_LENGTH = struct.Struct("<q")
_COUNT, _NUMBER = struct.Struct("=q"), struct.Struct("=d")
_DIE_WITH_PARENT = 1
_IMPORTED = "a mechanism that can be made in a process of its own"
ENDED = "its process ended, or was ended after its limit: the next call began from the first state again"


@dataclass
class Worker:
    """A process that runs calls one after another and retains its state between them.

    Bare floats return through shared memory, which also counts the completed calls; other outcomes
    return as JSON through a pipe. Nothing that the process writes is executed. A process that ends
    or hangs is replaced.

    Args:
        function: Creates the function to call; it is run in the process.
        limit: The time limit of one call, in seconds.
        timed: Whether the duration of a call is part of its outcome.
        notes: Remarks about the subject for the report; sentences are added to it.
        again: Creates the function in a replacement process, with new random generators; None if
            that is impossible.
        patience: Additional seconds allowed for the first call of a process.
    """

    function: Callable[[], Callable[[Any], Any]]
    limit: float
    timed: bool
    notes: set[str]
    again: Callable[[], Callable[[Any], Any]] | None = None
    patience: float = IMPORTING
    _child: int = 0
    _begun: int = 0
    _asking: int = -1
    _telling: int = -1
    _waiting: bytearray = field(default_factory=bytearray)
    _numbers: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 8 * (CHUNK + 1)))
    _first: bool = True

    def outcomes(self, data: tuple[Any, Any], coins: np.ndarray) -> Outcomes:
        """One outcome per coin, on the dataset that it selects; an array of floats if all outcomes
        are bare floats.

        Raises DomainError if the datasets cannot be pickled, or the function cannot be created in
        the process.
        """
        try:
            parts = [
                self._chunk(data, coins[begin : begin + CHUNK])
                for begin in range(0, len(coins), CHUNK)
            ]
        except BaseException:
            self.close()
            raise
        if all(part.dtype == np.float64 for part in parts):
            return np.concatenate(parts) if parts else np.zeros(0)
        return np.concatenate([part.astype(object) for part in parts])

    def _chunk(self, data: tuple[Any, Any], coins: np.ndarray) -> Outcomes:
        rows: Outcomes = np.empty(len(coins), dtype=object)
        done, objects = 0, dict[int, Outcome]()
        while done < len(coins):
            self._ask((*data, coins[done:].tobytes()))
            ended = self._answers(objects, done, len(coins))
            count = len(coins) if ended is None else min(self._done(), len(coins) - done - 1)
            numbers = np.frombuffer(self._numbers, dtype=np.float64, offset=8, count=count)[
                : len(coins) - done
            ]
            rows[done : done + len(numbers)] = numbers
            done += len(numbers)
            if ended is not None:
                objects = {place: each for place, each in objects.items() if place < done}
                objects[done] = ended
                done += 1
        if not objects:
            return rows.astype(np.float64)
        rows[[*objects]] = np.array([*objects.values()], dtype=object)
        return rows

    def _done(self) -> int:
        return max(0, _COUNT.unpack_from(self._numbers, 0)[0])

    def _ask(self, message: Any) -> None:
        try:
            text = pickle.dumps(message)
        except Exception as error:
            raise DomainError(
                "pairs", repr(error), "datasets that can be sent to a process"
            ) from None
        _COUNT.pack_into(self._numbers, 0, 0)
        if not self._child:
            self._begin()
        with contextlib.suppress(BrokenPipeError):
            _write(self._asking, text)

    def _answers(self, objects: dict[int, Outcome], begin: int, end: int) -> Outcome | None:
        """Wait for the requested calls, and store their outcomes in `objects` by index.

        Returns None if all completed, or the outcome of the call during which the process ended or
        was ended.
        """
        done, changed = 0, time.monotonic()
        while True:
            if (size := self._size()) is not None:
                try:
                    told: Any = json.loads(self._waiting[8:size])
                    if isinstance(told, dict):
                        told = cast("dict[str, Any]", told)
                        if "failed" in told:
                            raise DomainError("subject", str(told["failed"]), _IMPORTED)
                        self.notes |= set(map(str, told["notes"]))
                        self._first = False
                        del self._waiting[:size]
                        return None
                    place, outcome = told
                    objects[begin + int(place)] = outcome_of(outcome)
                    if not 0 <= begin + int(place) < end:
                        raise ValueError("an answer to no call")
                except MALFORMED:
                    return self._ended(Outcome(raised="process ended"))
                del self._waiting[:size]
                continue
            if self._done() != done:
                done, changed, self._first = self._done(), time.monotonic(), False
            allowed = self.limit + GRACE
            left = changed + allowed + self.patience * self._first - time.monotonic()
            ready = select.select([self._telling], [], [], max(min(left, allowed), 0.0))[0]
            part = os.read(self._telling, 1 << 16) if ready else b""
            self._waiting += part
            if part or (not ready and (left > allowed or self._done() != done)):
                continue
            # An import takes its time in the first call of a process, but not again where it never ends.
            self.patience = self.patience if ready or not self._first else 0.0
            return self._ended(Outcome(raised="process ended") if ready else Outcome(timeout=True))

    def _size(self) -> int | None:
        """The size in bytes of the next buffered message with its header; None if it is incomplete."""
        size = 8 + _LENGTH.unpack_from(self._waiting)[0] if len(self._waiting) >= 8 else LARGEST
        size = size if 8 <= size <= LARGEST else 8
        return size if len(self._waiting) >= size else None

    def _ended(self, outcome: Outcome) -> Outcome:
        self.notes.add(ENDED)
        self.close()
        return outcome

    def _begin(self) -> None:
        (requests, asking), (telling, replies) = os.pipe(), os.pipe()
        self._begun += 1
        if self._begun > 1 and self.again is None:
            self.notes.add(NOT_ANEW)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                os.close(asking)
                os.close(telling)
                self._serve(requests, replies)
            os._exit(0)
        os.close(requests)
        os.close(replies)
        self._child, self._asking, self._telling, self._first = child, asking, telling, True
        self._waiting.clear()

    def _serve(self, asking: int, replies: int) -> None:
        """Run in the process: execute calls until the request pipe closes.

        Output is captured, and standard input is empty.
        """
        os.setsid()
        with contextlib.suppress(Exception):
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        output = os.memfd_create("printed")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        errors = os.memfd_create("errors")
        os.dup2(output, 1)
        os.dup2(errors, 2)
        try:
            # A second process would draw from the first one's generators again.
            again = self.again is not None and self._begun > 1
            function = (self.again if again and self.again is not None else self.function)()
        except BaseException as error:
            _write(replies, json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
            return
        calls = Calls(self.limit, self.timed, self.notes, output, errors)
        text, data = b"", (Dataset(None), Dataset(None))
        while (request := _read(asking)) is not None:
            zero, one, coins = cast("tuple[Any, Any, bytes]", pickle.loads(request))
            if request[: -len(coins)] != text:
                text, data = request[: -len(coins)], (Dataset(zero), Dataset(one))
            with calls.open():
                for place, coin in enumerate(coins):
                    answer = calls.answer(function, data[coin])
                    if type(answer) is float:
                        _NUMBER.pack_into(self._numbers, 8 + 8 * place, answer)
                    else:
                        _write(replies, json.dumps([place, text_of_outcome(answer)]).encode())
                    _COUNT.pack_into(self._numbers, 0, place + 1)
            _write(replies, json.dumps({"notes": sorted(self.notes)}).encode())

    def close(self) -> None:
        """End the process and all processes that it started."""
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
        # The alarm of a call may ring here; it rings again.
        with contextlib.suppress(BaseException):
            self.close()


def _write(file: int, text: bytes) -> None:
    rest = memoryview(_LENGTH.pack(len(text)) + text)
    while rest:
        rest = rest[os.write(file, rest) :]


def _read(file: int) -> bytes | None:
    """The next message from a pipe; None if the pipe is closed."""
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
