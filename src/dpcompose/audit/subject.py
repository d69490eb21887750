"""The subject of an audit: a mechanism that can be called, and nothing else is known of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from functools import partial
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpcompose import check
from dpcompose.audit.calling import NOT_ANEW, Calls, Dataset, Home
from dpcompose.audit.claim import Pair
from dpcompose.audit.feature import Feature, features_of
from dpcompose.audit.outcome import Outcome, Outcomes
from dpcompose.audit.worker import Worker
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.mechanisms import BlackBox, Concentrated


class Source(Protocol):
    """Whatever answers rows: a mechanism that is called, or transcripts that are played."""

    @property
    def name(self) -> str:
        """The name, which a certificate carries."""
        ...

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """An outcome for every coin, in their order: row t is about `pair[coins[t]]`."""
        ...

    def features(self, outcomes: Outcomes) -> tuple[Feature, ...]:
        """The features of outcomes that look like these, the first of a pair."""
        ...


class Fresh(Enum):
    """How much of a subject is new in every call."""

    CALL = "call"
    """Nothing: one function is called again and again, and its memory is part of what is audited."""
    WORKER = "worker"
    """Nothing, but its calls are in a process beside the audit's: one that hangs, also in C code, or ends its process
    is an outcome, after which a new process begins."""
    INSTANCE = "instance"
    """An instance of its own, from `make`."""
    PROCESS = "process"
    """A process of its own, in which the file that names the subject is executed again: no call sees what another one
    left, and one that hangs is ended whatever it does."""


class ExhaustedError(Exception):
    """No more answers are there: the audit stops, and its wealth stands."""


@runtime_checkable
class Measurement(Protocol):
    """A function of data that knows its privacy loss, such as a measurement of OpenDP."""

    def __call__(self, data: Any) -> Any: ...

    def map(self, d_in: Any) -> Any:
        """The loss of inputs so far apart."""
        ...


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit.

    Args:
        call: From a dataset to an answer; None where `make` or `batch` is given.
        make: Makes the function that is called, anew for every call if `fresh` says so.
        batch: From a dataset and n to n independent answers, as an array; independence is the user's promise.
        fresh: How much is new in every call.
        timed: Whether the time of a call is part of the outcome: the verdict is then about (answer, time).
        limit: The seconds that one call may take.
        label: The name; by default the function's own.
    """

    call: Callable[[Any], Any] | None = None
    _: KW_ONLY
    make: Callable[[], Callable[[Any], Any]] | None = None
    batch: Callable[[Any, int], Any] | None = None
    fresh: Fresh = Fresh.CALL
    timed: bool = False
    limit: float = 1.0
    label: str = ""
    notes: set[str] = field(default_factory=set[str], compare=False)
    _made: list[Callable[[Any], Any]] = field(
        default_factory=list[Callable[[Any], Any]], compare=False, repr=False
    )
    _workers: list[Worker] = field(default_factory=list[Worker], compare=False, repr=False)
    _calls: list[Calls] = field(default_factory=list[Calls], compare=False, repr=False)

    def __post_init__(self) -> None:
        given = [each for each in (self.call, self.make, self.batch) if each is not None]
        if not given or not all(map(callable, given)):
            raise DomainError(
                "call", given[0] if given else None, "a function from a dataset to an answer"
            )
        check.member("fresh", self.fresh, Fresh)
        check.positive("limit", self.limit)
        if self.fresh is Fresh.INSTANCE and self.make is None:
            raise DomainError("make", None, "a maker of instances, since each call has its own")

    @classmethod
    def samples(cls, zero: Any, one: Any) -> Samples:
        """Answers that were drawn already, independent and identical in each world; the coin picks from them."""
        return Samples(np.asarray(zero), np.asarray(one))

    @classmethod
    def measurement(cls, measurement: Measurement) -> Subject:
        """A measurement of OpenDP or of the same shape; its claim is its own `map(d_in)`."""
        if not isinstance(measurement, Measurement):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("measurement", measurement, "a function with a privacy map")
        return cls(measurement, label=type(measurement).__name__)

    @property
    def name(self) -> str:
        """The name."""
        function = self.call or self.make or self.batch
        return self.label or (
            f"{function.__module__}:{function.__qualname__}"
            if isinstance(function, FunctionType)
            else type(function).__name__
        )

    @property
    def isolated(self) -> bool:
        """Whether no call can see what another one left, as promised for batches and as it is for instances."""
        return self.batch is not None or self.fresh in (Fresh.INSTANCE, Fresh.PROCESS)

    def features(self, outcomes: Outcomes) -> tuple[Feature, ...]:
        """Everything that can be read from outcomes that look like these."""
        return features_of(outcomes)

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """An outcome for every coin, in their order.

        Raises:
            DomainError: If `batch` gives something else than so many answers.
        """
        return self._called(pair, coins) if self.batch is None else self._batched(pair, coins)

    def _called(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        match self.fresh:
            case Fresh.WORKER:
                rows = self._worker.outcomes((pair.zero, pair.one), coins)
            case Fresh.PROCESS:
                rows = self._in_processes(pair, coins)
            case _:
                rows = self._called_here(pair, coins)
        if rows.dtype != object or all(type(row) is float for row in rows):
            return rows.astype(np.float64)
        rows[:] = [row if isinstance(row, Outcome) else Outcome(row) for row in rows]
        failed = [row for row in rows if not row.answered]
        if len(failed) == len(rows) and failed[0].raised:
            first = failed[0]
            self.notes.add(f"all calls of a batch raised {first.raised}: {first.message[:200]}")
        if any(row.timeout for row in failed):
            self.notes.add(
                f"calls took longer than their limit of {self.limit:g} seconds; that is an outcome"
            )
        return rows

    @property
    def _worker(self) -> Worker:
        if not self._workers:
            home = Home.of(self.call or self.make)
            again = None if home is None else partial(self._anew, home)
            again = self._function if home is None and self.call is None else again
            self._workers.append(Worker(self._function, self.limit, self.timed, self.notes, again))
        return self._workers[0]

    def _in_processes(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """Each call in a process that begins, in which the file of the subject is executed again."""
        home = Home.of(self.call or self.make)
        if home is None:
            self.notes.add(NOT_ANEW)
        rows: Outcomes = np.empty(len(coins), dtype=object)
        for place in range(len(coins)):
            function = partial(self._anew, home)
            worker = Worker(function, self.limit, self.timed, self.notes, patience=0.0)
            rows[place : place + 1] = worker.outcomes(
                (pair.zero, pair.one), coins[place : place + 1]
            )
            worker.close()
        return rows

    def _called_here(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        data = Dataset(pair.zero), Dataset(pair.one)
        if not self._calls:
            self._calls.append(Calls(self.limit, self.timed, self.notes))
        rows: Outcomes = np.empty(len(coins), dtype=object)
        with self._calls[0].open():
            for place, coin in enumerate(coins):
                rows[place] = self._calls[0].answer(self._function(), data[int(coin)])
        return rows

    def _anew(self, home: Home | None) -> Callable[[Any], Any]:
        """The function in a process that begins: its file is executed again where it has one."""
        if home is None:
            return self._function()
        return home.anew() if self.make is None else home.anew()()

    def _function(self) -> Callable[[Any], Any]:
        if self.make is None:
            assert self.call is not None
            return self.call
        if self.fresh is Fresh.INSTANCE:
            return self.make()
        if not self._made:
            self._made.append(self.make())
        return self._made[0]

    def _batched(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        assert self.batch is not None
        ones = int(np.count_nonzero(coins))
        wanted = (len(coins) - ones, ones)
        # A world that is not asked answers as the other one would, no rows.
        drawn = [
            np.asarray(self.batch(pair[world], rows)) if rows else None
            for world, rows in enumerate(wanted)
        ]
        for part, rows in zip(drawn, wanted, strict=True):
            if part is not None and (part.shape[:1] != (rows,) or part.ndim > 2):
                raise DomainError(
                    "batch", part.shape, f"{rows} answers, numbers or rows of numbers"
                )
        zero, one = (
            next(each for each in drawn if each is not None)[:0] if part is None else part
            for part in drawn
        )
        return placed(zero, one, coins)


def placed(zero: Outcomes, one: Outcomes, coins: np.ndarray) -> Outcomes:
    """The answers of both worlds, each where its coin lies."""
    if zero.shape[1:] != one.shape[1:]:
        raise DomainError(
            "batch", one.shape[1:], f"answers of one shape in both worlds, here {zero.shape[1:]}"
        )
    drawn = np.empty((len(coins), *zero.shape[1:]), dtype=np.result_type(zero, one))
    drawn[coins == 0], drawn[coins == 1] = zero, one
    return drawn


@dataclass(frozen=True)
class Samples:
    """Answers that were drawn already.

    Args:
        zero: Those of world 0.
        one: Those of world 1.
    """

    zero: Outcomes
    one: Outcomes
    name: str = "samples"
    _used: list[int] = field(default_factory=lambda: [0, 0], compare=False, repr=False)

    def features(self, outcomes: Outcomes) -> tuple[Feature, ...]:
        """Everything that can be read from outcomes that look like these."""
        return features_of(outcomes)

    def skip(self, coins: np.ndarray) -> None:
        """Leave out the answers that an earlier run had for these coins."""
        ones = int(np.count_nonzero(coins))
        self._used[:] = [self._used[0] + len(coins) - ones, self._used[1] + ones]

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """The next answer of its world for every coin; ExhaustedError when a world has none left."""
        ones = int(np.count_nonzero(coins))
        begins, wanted = tuple(self._used), (len(coins) - ones, ones)
        taken = [
            each[begin : begin + rows]
            for each, begin, rows in zip((self.zero, self.one), begins, wanted, strict=True)
        ]
        if any(len(part) < rows for part, rows in zip(taken, wanted, strict=True)):
            raise ExhaustedError
        self._used[:] = [begin + rows for begin, rows in zip(begins, wanted, strict=True)]
        return placed(taken[0], taken[1], coins)


@runtime_checkable
class _Stated(Protocol):
    """A measurement that says in which measure its loss is stated."""

    @property
    def output_measure(self) -> Any:
        """The measure of its loss."""
        ...


def claim_of(measurement: Measurement, *, distance: Any = 1) -> Composable:
    """The claim of a measurement: its privacy map, under its output measure.

    Raises:
        DomainError: If the measure is neither pure, approximate nor zero-concentrated.
    """
    loss, measure = (
        measurement.map(distance),
        str(measurement.output_measure) if isinstance(measurement, _Stated) else "",
    )
    match loss:
        case float() | int() if "Concentrated" in measure and "Approx" not in measure:
            return Concentrated(float(loss))
        case float() | int() if "Approx" not in measure and "Renyi" not in measure:
            return BlackBox(float(loss))
        case (float(epsilon), float(delta)) if "Concentrated" not in measure:
            return BlackBox(epsilon, delta=delta)
        case _:
            raise DomainError(
                "measurement",
                measure,
                "a pure, approximate or zero-concentrated loss; give the claim",
            )
