"""Subjects of an audit: a mechanism of which only its calls are observed, answers drawn beforehand,
or the views of an adversary.

Adaptive interactions are outcomes too: the coin selects a world, and the outcome is the adversary's
view (Definition 3.7). The claim is about the whole interaction. Since the mechanisms of the family
are known, the last number of each outcome is the view's privacy loss, the most informative feature.

Reference: [DworkRoth2014, Definition 3.7]
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from functools import cached_property
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpcompose import check
from dpcompose.audit.calling import NOT_ANEW, Calls, Dataset, Home
from dpcompose.audit.claim import Pair
from dpcompose.audit.outcome import TIMEOUT, Outcome, Outcomes, rows_of
from dpcompose.audit.worker import Maker, Worker
from dpcompose.errors import DomainError
from dpcompose.experiment import Experiment, World


class Source(Protocol):
    """Anything that draws outcomes for an audit: a mechanism that is called, or recorded
    interactions.
    """

    @property
    def name(self) -> str:
        """The name that is recorded in certificates."""
        ...

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """One outcome per coin, in order: row t is drawn on the dataset `pair[coins[t]]`."""
        ...


class Fresh(Enum):
    """How isolated the calls of a subject are from one another."""

    CALL = "call"
    """No isolation: one function is called repeatedly, and state that it retains is audited too."""
    WORKER = "worker"
    """As `CALL`, in a separate process, which is replaced if a call hangs or ends it."""
    INSTANCE = "instance"
    """Each call has a new instance, created by `make`."""
    PROCESS = "process"
    """Each call has a new process that executes the subject's source file again, and no hang lasts."""


class ExhaustedError(Exception):
    """Raised if the answers drawn beforehand are used up; the audit stops with its current wealth."""


@runtime_checkable
class Measurement(Protocol):
    """A callable with a privacy map, such as an OpenDP measurement."""

    def __call__(self, data: Any) -> Any: ...

    def map(self, d_in: Any) -> Any:
        """The privacy loss for inputs at distance `d_in`."""
        ...


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit.

    Args:
        call: Maps a dataset to an answer; None if `make` or `batch` is used instead.
        make: Creates the function to call; with `Fresh.INSTANCE`, once for every call.
        batch: Maps a dataset and n to an array of n answers, which the user promises to be
            independent.
        fresh: How isolated the calls are from one another.
        timed: Whether the duration of a call is part of its outcome. The verdict is then about the
            pair (answer, time).
        limit: The time limit of one call, in seconds.
        label: The name in certificates; by default that of the function.
        notes: Remarks about the calls for the report; sentences are added during the audit.
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

    def __post_init__(self) -> None:
        functions = [each for each in (self.call, self.make, self.batch) if each is not None]
        for function in functions or [None]:
            if not callable(function):
                raise DomainError("call", function, "a function from a dataset to an answer")
        check.member("fresh", self.fresh, Fresh)
        check.positive("limit", self.limit)
        if self.fresh is Fresh.INSTANCE and self.make is None:
            raise DomainError("make", None, "a maker of instances, since each call has its own")

    @classmethod
    def samples(cls, zero: Any, one: Any) -> Samples:
        """Answers drawn beforehand, independent and identically distributed in each world; each
        coin takes the next of its world.
        """
        return Samples(np.asarray(zero), np.asarray(one))

    @classmethod
    def measurement(cls, measurement: Measurement) -> Subject:
        """An OpenDP measurement, or any callable with a privacy map, as a subject; its claim is
        `usual_claim(**stated_claim(measurement))`.

        Raises DomainError if it has no privacy map.
        """
        if not isinstance(measurement, Measurement):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("measurement", measurement, "a function with a privacy map")
        return cls(measurement, label=type(measurement).__name__)

    @property
    def name(self) -> str:
        """The label, or else the name of the function, which is recorded in certificates."""
        function = self.call or self.make or self.batch
        if self.label or not isinstance(function, FunctionType):
            return self.label or type(function).__name__
        return f"{function.__module__}:{function.__qualname__}"

    @property
    def isolated(self) -> bool:
        """Whether no call can observe what an earlier one left: promised for `batch`, enforced for
        processes. A cache of the module outlives the instances of a maker.
        """
        return self.batch is not None or self.fresh is Fresh.PROCESS

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """One outcome per coin, in order, on the dataset of the pair that the coin selects.

        Raises:
            DomainError: If `batch` does not return one number or row of numbers for each requested
                answer.
        """
        return self._called(pair, coins) if self.batch is None else self._batched(pair, coins)

    def _called(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        data = pair.zero, pair.one
        if self.fresh is Fresh.WORKER:
            drawn = self._worker.outcomes(data, coins)
        elif self.fresh is Fresh.PROCESS:
            if self._home is None:
                self.notes.add(NOT_ANEW)
            drawn = list[float | Outcome]()
            for row in range(len(coins)):
                worker = self._process(self._anew, patience=0.0)
                drawn += worker.outcomes(data, coins[row : row + 1])
                worker.close()
        else:
            copied = Dataset(pair.zero), Dataset(pair.one)
            with self._calls.open():
                drawn = [self._calls.answer(self._function(), copied[int(coin)]) for coin in coins]
        if all(type(row) is float for row in drawn):
            return np.array(drawn, dtype=np.float64)
        rows = rows_of(drawn)
        failures = [row for row in rows if row.failure]
        if len(failures) == len(rows) and failures[0].failure != TIMEOUT:
            first = failures[0]
            self.notes.add(f"all calls of a batch raised {first.failure}: {first.message[:200]}")
        if any(row.failure == TIMEOUT for row in failures):
            self.notes.add(
                f"calls took longer than their limit of {self.limit:g} seconds; that is an outcome"
            )
        return rows

    @cached_property
    def _home(self) -> Home | None:
        return Home.of(self.call or self.make)

    @cached_property
    def _worker(self) -> Worker:
        again = self._anew if self._home is not None or self.make is not None else None
        return self._process(self._function, again=again)

    def _process(self, function: Maker, **options: Any) -> Worker:
        return Worker(function, self.limit, self.timed, self.notes, **options)

    @cached_property
    def _calls(self) -> Calls:
        return Calls(self.limit, self.timed, self.notes)

    @cached_property
    def _instance(self) -> Callable[[Any], Any]:
        assert self.make is not None
        return self.make()

    def _anew(self) -> Callable[[Any], Any]:
        """The function in a new process, created by executing its source file again if it has one."""
        if self._home is None:
            return self._function()
        return self._home.anew() if self.make is None else self._home.anew()()

    def _function(self) -> Callable[[Any], Any]:
        if self.make is None:
            assert self.call is not None
            return self.call
        return self.make() if self.fresh is Fresh.INSTANCE else self._instance

    def _batched(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        assert self.batch is not None
        ones = int(np.count_nonzero(coins))
        wanted = (len(coins) - ones, ones)
        # If no coin selects a world, its answers are an empty array of the other world's shape.
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
    """Merge the answers of the two worlds into the order of the coins; DomainError if their shapes
    differ.
    """
    if zero.shape[1:] != one.shape[1:]:
        raise DomainError(
            "batch", one.shape[1:], f"answers of one shape in both worlds, here {zero.shape[1:]}"
        )
    drawn = np.empty((len(coins), *zero.shape[1:]), dtype=np.result_type(zero, one))
    drawn[coins == 0], drawn[coins == 1] = zero, one
    return drawn


@dataclass(frozen=True)
class Samples:
    """Answers drawn before the audit.

    Args:
        zero: Answers on the dataset of world 0.
        one: Answers on the dataset of world 1.
        name: The name in certificates.
    """

    zero: Outcomes
    one: Outcomes
    name: str = "samples"
    _used: list[int] = field(default_factory=lambda: [0, 0], compare=False, repr=False)

    def skip(self, coins: np.ndarray) -> None:
        """Skip the answers that an earlier run used for these coins."""
        self._used[:] = self._ends(coins)

    def _ends(self, coins: np.ndarray) -> list[int]:
        ones = int(np.count_nonzero(coins))
        return [self._used[0] + len(coins) - ones, self._used[1] + ones]

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """For each coin, the next unused answer of its world; ExhaustedError if a world has too
        few. `pair` is not used.
        """
        spans = [slice(*each) for each in zip(self._used, self._ends(coins), strict=True)]
        taken = [each[span] for each, span in zip((self.zero, self.one), spans, strict=True)]
        if any(
            len(each) < span.stop for each, span in zip((self.zero, self.one), spans, strict=True)
        ):
            raise ExhaustedError
        self.skip(coins)
        return placed(taken[0], taken[1], coins)


@runtime_checkable
class _Stated(Protocol):
    """A measurement that names the privacy measure in which its loss is expressed."""

    @property
    def output_measure(self) -> Any:
        """The privacy measure, such as OpenDP's MaxDivergence."""
        ...


def stated_claim(measurement: Measurement, *, distance: Any = 1) -> dict[str, float]:
    """The claim of a measurement, as arguments of `usual_claim`: its privacy map at `distance`, read
    in its output measure.

    Raises:
        DomainError: If the measure is neither pure, approximate nor zero-concentrated DP.
    """
    loss = measurement.map(distance)
    measure = str(measurement.output_measure) if isinstance(measurement, _Stated) else ""
    match loss:
        case float() | int() if "Concentrated" in measure and "Approx" not in measure:
            return {"rho": float(loss)}
        case float() | int() if "Approx" not in measure and "Renyi" not in measure:
            return {"epsilon": float(loss)}
        case (float(epsilon), float(delta)) if "Concentrated" not in measure:
            return {"epsilon": epsilon, "delta": delta}
        case _:
            accepted = "a pure, approximate or zero-concentrated loss; give the claim"
            raise DomainError("measurement", measure, accepted)


@dataclass(frozen=True)
class Transcripts:
    """Views of an adversary who plays all rounds of an experiment against one of two worlds.

    Args:
        experiment: The adversary, the family of mechanisms, and the number of rounds.
        seed: Seed of the mechanisms' noise; None for a random one. It is independent of the audit's
            coins.
    """

    experiment: Experiment
    _: KW_ONLY
    seed: int | None = None
    _rng: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        seed = int.from_bytes(os.urandom(16), "little") if self.seed is None else self.seed
        object.__setattr__(self, "_rng", np.random.default_rng(seed))

    @property
    def name(self) -> str:
        """The adversary and the number of rounds."""
        return f"{self.experiment.adversary!r}, {self.experiment.rounds} rounds"

    @property
    def pair(self) -> Pair:
        """The two worlds of the experiment; the adversary chooses the databases."""
        return Pair(World.ZERO, World.ONE)

    def draw(self, pair: Pair, coins: np.ndarray) -> Outcomes:
        """One view per coin: the privacy loss, followed by the answers of all rounds."""
        rows = np.empty((len(coins), self.experiment.rounds + 1))
        for coin in (0, 1):
            asked = np.flatnonzero(coins == coin)
            if len(asked):
                views = self.experiment.play(pair[coin], transcripts=len(asked), rng=self._rng)
                rows[asked] = np.column_stack([views.loss, views.answers.T])
        return rows
