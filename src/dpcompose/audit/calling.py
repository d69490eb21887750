"""Calls of the audited function in isolation: errors, time-outs and side effects are recorded as
part of each outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import io
import logging
import os
import pickle
import random
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from itertools import islice, starmap
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from sysconfig import get_path
from types import FrameType
from typing import Any, cast

import numpy as np

from dpcompose.audit.outcome import LOOKED, TEXT, TIMEOUT, Outcome, Reader, text_of_error

WATCHED = 32
"""The number of first calls around which the global random states are reseeded and compared."""
IMPORTING = 60.0
"""The seconds allowed for an import within a call; interrupted, it would stay incomplete."""
MOST_FILES = 256
"""Files and folders below the working folder that are watched."""
CHANNELS = ("printed", "errors", "warned", "logged", "surroundings")
"""The side channels of a call; once a call has used one, it is read after every call."""


class TooLong(BaseException):
    """Raised inside a call that exceeds its time limit. A function that catches it is interrupted
    again.
    """


@dataclass
class Calls:
    """Calls of one function in batches, with output and global state restored after each batch.

    Side channels (prints, warnings, log records, files) are captured per batch. In the first batch,
    and once a channel has been used, it is read after every call. Otherwise it is read only at the
    end of the batch and is no part of that batch's outcomes. So which channels are read depends on
    past batches alone.

    Args:
        limit: The time limit of one call, in seconds.
        timed: Whether the duration of a call is part of its outcome.
        notes: Remarks about the function for the report, such as that it changes its argument;
            sentences are added to it.
        output: File descriptor that receives standard output written below Python, as by C code; -1
            for none.
        errors: The same for standard error.
    """

    limit: float
    timed: bool
    notes: set[str]
    output: int = -1
    errors: int = -1
    _printed: io.StringIO = field(default_factory=io.StringIO)
    _complained: io.StringIO = field(default_factory=io.StringIO)
    _caught: list[warnings.WarningMessage] = field(default_factory=list[warnings.WarningMessage])
    _logged: list[tuple[logging.LogRecord, str]] = field(
        default_factory=list[tuple[logging.LogRecord, str]]
    )
    _folder: str = field(default_factory=os.getcwd)
    _surroundings: dict[str, Any] = field(default_factory=dict[str, Any])
    _read: frozenset[str] = frozenset(CHANNELS)
    _used: set[str] = field(default_factory=set[str])
    _begins: float = 0.0
    _states: set[int] = field(default_factory=set[int])
    _number: int = 0

    @contextlib.contextmanager
    def open(self) -> Generator[None]:
        """Context of one batch: captures output, and restores the random states and the alarm
        handler at its end.
        """
        states = random.getstate(), np.random.get_state()  # noqa: NPY002
        # Without reseeding, each batch would start from the same restored states.
        random.seed()
        np.random.seed()  # noqa: NPY002
        main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGALRM, self._interrupt) if main else None
        make = logging.getLogRecordFactory()
        logging.setLogRecordFactory(
            lambda *arguments, **named: self._log(make(*arguments, **named))
        )
        self._surroundings = _surroundings(self._folder)
        if len(self._surroundings) - len(os.environ) > MOST_FILES:
            self.notes.add(f"only {MOST_FILES} files below the working folder are looked at")
        with (
            contextlib.redirect_stdout(self._printed),
            contextlib.redirect_stderr(self._complained),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            self._caught = caught
            try:
                yield
            finally:
                if before is not None:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    signal.signal(signal.SIGALRM, before)
                logging.setLogRecordFactory(make)
                random.setstate(states[0])
                np.random.set_state(states[1])  # noqa: NPY002
                self._heard(CHANNELS)
                self._read = frozenset(self._used)

    def answer(self, call: Callable[[Any], Any], dataset: Dataset) -> float | Outcome:
        """Call the function on a copy of the dataset and return the outcome, or a bare float if it
        is only that.
        """
        argument, watched, process = dataset.copied(), self._number < WATCHED, os.getpid()
        if watched:
            self._number += 1
            random.seed()
            np.random.seed()  # noqa: NPY002
        self._begins = begins = time.perf_counter()
        try:
            reader, raised, message = self._timed(call, argument)
        except TooLong:
            self._heard(self._read)
            return Outcome.of(failure=TIMEOUT)
        finally:
            if os.getpid() != process:
                # The subject forked, and this is the child process; it must end here, or two audits
                # would continue.
                os._exit(0)
        took = time.perf_counter() - begins
        if watched:
            self._watch(argument, dataset)
        beside = self._heard(self._read) if self._read else {}
        if not isinstance(reader, Reader):
            if not (beside or self.timed):
                return reader
            reader = Reader.of(reader)
        for name, seen in beside.items():
            reader.channel(seen, name)
        if self.timed:
            reader.timed(took)
        return reader.outcome(raised, message)

    def _heard(self, channels: Collection[str]) -> dict[str, Any]:
        """The contents of the named channels since they were last read, by channel; empty ones are
        left out.
        """
        heard = dict[str, Any]()
        if "printed" in channels:
            heard["printed"] = _printed_text(self._printed, self.output)
        if "errors" in channels:
            heard["errors"] = _printed_text(self._complained, self.errors)
        if "warned" in channels and self._caught:
            heard["warned"] = tuple(map(_warning_parts, self._caught))
            self._caught.clear()
        if "logged" in channels and self._logged:
            heard["logged"], self._logged = tuple(starmap(_logged_parts, self._logged)), []
        if "surroundings" in channels:
            before, now = self._surroundings, _surroundings(self._folder)
            heard["surroundings"] = {
                name.removeprefix(self._folder): _file_parts(name, before.get(name), now[name])
                if isinstance(now.get(name), tuple)
                else now.get(name)
                for name in sorted(before.keys() | now.keys())
                if before.get(name) != now.get(name)
            }
            self._surroundings = now
        heard = {name: seen for name, seen in heard.items() if seen}
        self._used |= heard.keys()
        return heard

    def _timed(self, call: Callable[[Any], Any], argument: Any) -> tuple[float | Reader, str, str]:
        """The reader of a call's answer or exception, within the time limit; for an exception also
        its class name and its text.
        """
        main = threading.current_thread() is threading.main_thread()
        if main:
            signal.setitimer(signal.ITIMER_REAL, self.limit, 0.1)
        try:
            try:
                return _reading(call(argument)), "", ""
            except TooLong:
                raise
            except BaseException as error:
                # In a separate process only the subject itself can raise KeyboardInterrupt.
                if isinstance(error, KeyboardInterrupt) and self.output < 0:
                    raise
                return Reader.of(error), type(error).__name__, text_of_error(error)[:TEXT]
        finally:
            if main:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _interrupt(self, _signal: int, frame: FrameType | None) -> None:
        """Alarm handler: raise TooLong in the call, but let an import finish first; the alarm
        repeats.
        """
        if time.perf_counter() < self._begins + IMPORTING:
            while frame is not None and frame.f_code is not Calls._timed.__code__:
                if frame.f_code.co_filename.startswith("<frozen importlib"):
                    return
                frame = frame.f_back
        raise TooLong

    def _log(self, record: logging.LogRecord) -> logging.LogRecord:
        with contextlib.suppress(Exception):
            if len(self._logged) < LOOKED:
                self._logged.append((record, record.getMessage()))
        return record

    def _watch(self, argument: Any, dataset: Dataset) -> None:
        """Note if a call leaves a global random state that an earlier call also left, or changes
        its argument.
        """
        own = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
        for state in (hash(random.getstate()), hash((own["key"].tobytes(), own["pos"]))):
            if state in self._states:
                self.notes.add("it sets a global random state: its calls repeat each other")
            self._states.add(state)
        if dataset.changed(argument):
            self.notes.add("it changes the dataset it is given; every call had a copy")


def _printed_text(printed: io.StringIO, file: int) -> str:
    """The text printed since the last call through Python, followed by that written below Python to
    the file.
    """
    text, size = printed.getvalue(), 0 if file < 0 else os.fstat(file).st_size
    if text:
        printed.seek(0)
        printed.truncate()
    if size:
        text += os.pread(file, size, 0).decode("utf-8", "replace")
        os.lseek(file, 0, os.SEEK_SET)
        os.ftruncate(file, 0)
    return text


def _surroundings(folder: str) -> dict[str, Any]:
    """The mode, size and modification time of up to MOST_FILES files below a folder, the mode of
    folders, the variables of the environment, and the working folder.

    Folders whose names begin with a point or an underscore are not entered.
    """
    files, folders = dict[str, Any](), deque([folder])
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in islice(entries, MOST_FILES - len(files)):
                stat = entry.stat(follow_symlinks=False)
                files[entry.path] = stat.st_mode, stat.st_size, stat.st_mtime_ns
                if entry.is_dir(follow_symlinks=False):
                    files[entry.path] = stat.st_mode, 0, 0
                    folders += [entry.path] if entry.name[0] not in "._" else []
    with contextlib.suppress(OSError):
        files["working folder"] = os.getcwd()
    return files | {f"${name}": value for name, value in os.environ.items()}


def _file_parts(
    name: str, before: tuple[int, int, int] | None, now: tuple[int, int, int]
) -> dict[str, Any]:
    """The mode of a file, what it has in addition to its earlier size, and all of it; of a link the
    target, or the error that prevents reading it.
    """
    mode, begin = now[0], before[1] if before and before[1] < now[1] else 0
    try:
        if S_ISLNK(mode):
            return {"mode": mode, "target": os.readlink(name)}
        whole = Path(name).read_bytes() if S_ISREG(mode) else b""
    except OSError as error:
        return {"mode": mode, "error": error.strerror}
    return {"mode": mode, "text": whole[begin:].decode("utf-8", "replace"), "whole": whole}


def _warning_parts(warning: warnings.WarningMessage) -> dict[str, Any]:
    """A warning as it is shown, and its attributes."""
    text = f"{warning.category.__name__}: {warning.message}"
    attributes = vars(warning.message) if isinstance(warning.message, Warning) else {}
    return {"text": text, "at": f"{warning.filename}:{warning.lineno}", **attributes}


def _logged_parts(record: logging.LogRecord, message: str) -> dict[str, Any]:
    """Everything that a log handler can write of a record, except times and process identifiers."""
    extra = {name: each for name, each in vars(record).items() if name not in _RECORD}
    text = f"{record.levelname} {record.name}: {message}"
    error = record.exc_info[1] if record.exc_info else None
    at = f"{record.pathname}:{record.lineno}", record.stack_info
    return {"text": text, "args": record.args, "error": error, "at": at, **extra}


_RECORD = frozenset([*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"])
"""The attributes that every log record has."""


def _reading(value: Any) -> float | Reader:
    """A reader of an answer; a coroutine or asynchronous generator is run first."""
    if type(value) is float:
        return value
    if isinstance(value, Awaitable | AsyncIterator):
        return _reading(asyncio.run(_finished(cast("Awaitable[Any] | AsyncIterator[Any]", value))))
    return Reader.of(value)


async def _finished(value: Awaitable[Any] | AsyncIterator[Any]) -> Any:
    """The result of a coroutine, or the first items of an asynchronous generator as a list."""
    if isinstance(value, Awaitable):
        return await value
    items = list[Any]()
    async for item in value:
        items.append(item)
        if len(items) > LOOKED:
            break
    return items


class Dataset:
    """A dataset from which each call receives its own copy.

    Args:
        data: The dataset, any object.
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self._shared = copy.deepcopy(data) is data
        self._pickled = None if self._shared else _pickled(data)
        if self._pickled is not None:
            self._pickled = _pickled(pickle.loads(self._pickled))

    def copied(self) -> Any:
        """A deep copy, or the dataset itself if it is immutable."""
        if self._shared:
            return self._data
        return copy.deepcopy(self._data) if self._pickled is None else pickle.loads(self._pickled)

    def changed(self, argument: Any) -> bool:
        """Whether a call modified its copy; False if the dataset cannot be pickled, so that this is
        unknown.
        """
        return self._pickled is not None and _pickled(argument) != self._pickled


def _pickled(data: Any) -> bytes | None:
    try:
        return pickle.dumps(data)
    except Exception:
        return None


NOT_ANEW = "it is no name in a file that can be executed again: generators that it made before are copied, and repeat"


@dataclass(frozen=True)
class Home:
    """The source file that defines the audited function.

    Args:
        spec: The import specification of the module.
        name: The function's name in that module.
    """

    spec: ModuleSpec
    name: str

    @classmethod
    def of(cls, function: object) -> Home | None:
        """The source file of a function; None if it is no named function of a user module."""
        for spec in _specs_of_user():
            for name, value in vars(sys.modules[spec.name]).items():
                if value is function:
                    return cls(spec, name)
        return None

    def anew(self) -> Any:
        """Execute the function's source file again and return the new function.

        User modules that it imports are loaded again too, so that their random generators are new.
        Loaded modules are forgotten, so this must run in a process of its own.
        """
        for spec in _specs_of_user():
            del sys.modules[spec.name]
        assert self.spec.loader is not None, "a module that was found has one"
        made = sys.modules[self.spec.name] = module_from_spec(self.spec)
        self.spec.loader.exec_module(made)
        return getattr(made, self.name)


def _specs_of_user() -> list[ModuleSpec]:
    """The import specifications of all loaded modules that are source files outside of libraries."""
    libraries = [get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    specs: list[ModuleSpec] = []
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("dpcompose", "__main__"):
            continue
        with contextlib.suppress(
            ValueError, ImportError
        ):  # entries that are no modules, and scripts
            spec = find_spec(name)
            origin = "" if spec is None or spec.name != name else spec.origin or ""
            library = any(Path(origin).is_relative_to(path) for path in libraries)
            if spec is not None and origin.endswith(".py") and not library:
                specs.append(spec)
    return specs
