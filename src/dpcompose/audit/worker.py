"""Calls of the subject in a separate process, so that a call that hangs or ends its process is an
ordinary outcome.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import pickle
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, cast

import numpy as np

from dpcompose.audit.calling import IMPORTING, NOT_ANEW, Calls, Dataset
from dpcompose.audit.check import MALFORMED
from dpcompose.audit.outcome import ENDED, LARGEST, TIMEOUT, Outcome, text_of_error
from dpcompose.document import Record, decoded, encoded
from dpcompose.errors import DomainError

GRACE = 1.0
"""Seconds after its time limit at which a call is ended together with its process."""
CHUNK = 1 << 14
"""The number of calls requested at once."""
_COUNT, _NUMBER = struct.Struct("=q"), struct.Struct("=d")
_DIE_WITH_PARENT, READY = 1, b"."
_IMPORTED = "a mechanism that can be created in a process of its own"
RESTARTED = "its process ended, or was ended after its limit: the next call began from the first state again"
Maker = Callable[[], Callable[[Any], Any]]


class _Line(Record, frozen=True):
    """A line that the process writes: an outcome that is no bare float, the result of creating the
    function (number -1), or remarks about the subject.
    """

    call: int
    outcome: Outcome | None = None
    notes: tuple[str, ...] = ()


@dataclass
class Worker:
    """A process that runs calls one after another and retains its state between them.

    Bare floats return through shared memory, which also counts the completed calls. Requests and
    other outcomes, as lines of JSON, are in files in memory, and one byte through a pipe says that
    they are complete: neither side waits for the rest of a message. Nothing that the process writes
    is executed. A process that ends or hangs is replaced.

    Args:
        function: Creates the function to call; it is run in the process.
        limit: The time limit of one call, in seconds.
        timed: Whether the duration of a call is part of its outcome.
        notes: Remarks about the subject for the report; sentences are added to it.
        again: Creates the function in a replacement process, with new random generators; None if
            that is impossible.
        patience: Additional seconds allowed for the first call of a process.
    """

    function: Maker
    limit: float
    timed: bool
    notes: set[str]
    again: Maker | None = None
    patience: float = IMPORTING
    _child: int = 0
    _begun: int = 0
    _pipe: Connection | None = None
    _request: int = -1
    _lines: int = -1
    _numbers: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 8 * (CHUNK + 1)))
    _first: bool = True

    def outcomes(self, data: tuple[Any, Any], coins: np.ndarray) -> list[float | Outcome]:
        """One outcome per coin, on the dataset that it selects.

        Raises DomainError if the datasets cannot be pickled, or the function cannot be created in
        the process.
        """
        begins = range(0, len(coins), CHUNK)
        try:
            chunks = [self._chunk(data, coins[begin : begin + CHUNK]) for begin in begins]
        except BaseException:
            self.close()
            raise
        return [row for chunk in chunks for row in chunk]

    def _chunk(self, data: tuple[Any, Any], coins: np.ndarray) -> list[float | Outcome]:
        rows: list[float | Outcome] = []
        while len(rows) < len(coins):
            self._ask((*data, coins[len(rows) :].tobytes()))
            failure = self._awaited()
            count = self._done(len(coins) - len(rows))
            try:
                others = self._read_lines()
            except MALFORMED:
                failure, count, others = ENDED, 0, dict[int, Outcome]()
            numbers = np.frombuffer(self._numbers, np.float64, count, offset=8)
            rows += (others.get(call, float(number)) for call, number in enumerate(numbers))
            if failure:
                self.close()
            if failure and len(rows) < len(coins):
                self.notes.add(RESTARTED)
                rows.append(Outcome.of(failure=failure))
        return rows

    def _done(self, most: int) -> int:
        return min(max(0, _COUNT.unpack_from(self._numbers, 0)[0]), most)

    def _ask(self, message: Any) -> None:
        try:
            text = pickle.dumps(message)
        except Exception as error:
            accepted = "datasets that can be sent to a process"
            raise DomainError("pairs", repr(error), accepted) from None
        if self._pipe is None:
            self._begin()
        assert self._pipe is not None
        _COUNT.pack_into(self._numbers, 0, 0)
        os.ftruncate(self._lines, 0)
        os.ftruncate(self._request, 0)
        _append(self._request, text)
        with contextlib.suppress(OSError):
            os.write(self._pipe.fileno(), READY)

    def _awaited(self) -> str:
        """Wait for the requested calls. Returns an empty text if all completed, or else the failure
        of the call during which the process ended or was ended.
        """
        assert self._pipe is not None
        done, changed = 0, time.monotonic()
        while True:
            left = changed + self.limit + GRACE + self.patience * self._first - time.monotonic()
            if self._pipe.poll(min(max(left, 0.0), self.limit + GRACE)):
                with contextlib.suppress(OSError):
                    if os.read(self._pipe.fileno(), 1):
                        self._first = False
                        return ""
                return ENDED
            if self._done(CHUNK) != done:
                done, changed, self._first = self._done(CHUNK), time.monotonic(), False
            elif left <= 0:
                # The first call of a process may take longer because of imports, but only once, in
                # case it never ends.
                self.patience = 0.0 if self._first else self.patience
                return TIMEOUT

    def _read_lines(self) -> dict[int, Outcome]:
        """The outcomes other than plain floats, which the process wrote as lines, by the index of the call.

        Raises:
            DomainError: If the process could not create the mechanism.
        """
        others = dict[int, Outcome]()
        for text in _contents(self._lines).split(b"\n")[:-1]:
            line = decoded(_Line, text)
            self.notes.update(line.notes)
            if line.outcome is not None:
                others[line.call] = line.outcome
        if -1 in others:
            failure = f"{others[-1].failure}: {others[-1].message}"
            raise DomainError("subject", failure, _IMPORTED)
        return others

    def _begin(self) -> None:
        self._pipe, child_end = Pipe()
        self._request, self._lines = os.memfd_create("request"), os.memfd_create("outcomes")
        self._first = True
        self._begun += 1
        if self._begun > 1 and self.again is None:
            self.notes.add(NOT_ANEW)
        self._child = os.fork()
        if self._child == 0:
            with contextlib.suppress(BaseException):
                self._pipe.close()
                self._serve(child_end)
            os._exit(0)
        child_end.close()

    def _serve(self, pipe: Connection) -> None:
        """Run in the process: execute calls until the pipe closes.

        Output is captured, and standard input is empty.
        """
        os.setsid()
        with contextlib.suppress(Exception):
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        output, errors = os.memfd_create("printed"), os.memfd_create("errors")
        for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
            os.dup2(file, stream)
        try:
            # A replacement process would repeat the random numbers of the first one.
            function = (self.function if self.again is None or self._begun == 1 else self.again)()
        except BaseException as error:
            os.read(pipe.fileno(), 1)
            failure, message = type(error).__name__, text_of_error(error)
            self._write(_Line(-1, Outcome.of(failure=failure, message=message)))
            os.write(pipe.fileno(), READY)
            return
        calls = Calls(self.limit, self.timed, self.notes, output, errors)
        text, data = b"", (Dataset(None), Dataset(None))
        while os.read(pipe.fileno(), 1):
            request = _contents(self._request)
            zero, one, coins = cast("tuple[Any, Any, bytes]", pickle.loads(request))
            if request[: -len(coins)] != text:
                text, data = request[: -len(coins)], (Dataset(zero), Dataset(one))
            with calls.open():
                for index, coin in enumerate(coins):
                    answer = calls.answer(function, data[coin])
                    if isinstance(answer, Outcome):
                        self._write(_Line(index, answer))
                    else:
                        _NUMBER.pack_into(self._numbers, 8 + 8 * index, answer)
                    _COUNT.pack_into(self._numbers, 0, index + 1)
            self._write(_Line(-1, notes=tuple(sorted(self.notes))))
            os.write(pipe.fileno(), READY)

    def _write(self, line: _Line) -> None:
        """Append a line to the outcomes; run in the process."""
        _append(self._lines, encoded(line) + b"\n")

    def close(self) -> None:
        """End the process and all processes that it started."""
        if self._child:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
        if self._pipe is not None:
            self._pipe.close()
            os.close(self._request)
            os.close(self._lines)
        self._child, self._pipe = 0, None

    def __del__(self) -> None:
        # The alarm of a call may interrupt here; it repeats.
        with contextlib.suppress(BaseException):
            self.close()


def _append(file: int, text: bytes) -> None:
    left = memoryview(text)
    while left:
        left = left[os.pwrite(file, left, os.fstat(file).st_size) :]


def _contents(file: int) -> bytes:
    """The contents of a file in memory; ValueError if they are longer than LARGEST."""
    if os.fstat(file).st_size > LARGEST:
        raise ValueError("more outcomes than a batch may have")
    return mmap.mmap(file, 0)[:] if os.fstat(file).st_size else b""
