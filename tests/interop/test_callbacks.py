"""Callbacks, in small loops that call the hooks as the libraries' own loops do, and read the flags where they do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from dpcompose.errors import DomainError, MissingExtraError, StepRefusedError, UnsupportedError
from dpcompose.interop.callbacks import guard_strategy, lightning_callback, transformers_callback
from dpcompose.interop.guard import StepKind, TrainingGuard
from dpcompose.mechanisms import FixedSizeSample
from dpcompose.values.adjacency import Adjacency

STEP: StepKind = {"sigma": 12.0, "rate": 0.5}


class Base:
    """The base class of a library's callbacks: every hook is there."""

    def on_train_begin(self, *arguments: Any, **named: Any) -> None: ...

    def on_step_begin(self, *arguments: Any, **named: Any) -> None: ...

    def on_train_batch_start(self, *arguments: Any, **named: Any) -> None: ...


@pytest.fixture(autouse=True)
def _libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, base in (("transformers", "TrainerCallback"), ("pytorch_lightning", "Callback")):
        module = ModuleType(name)
        setattr(module, base, Base)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "lightning", None)  # a package that is not there


@pytest.fixture
def guard() -> TrainingGuard:
    return TrainingGuard(epsilon=1, delta=1e-6)


@dataclass
class Arguments:
    world_size: int = 1
    gradient_accumulation_steps: int = 1


@dataclass
class State:
    is_world_process_zero: bool = True


@dataclass
class Control:
    should_training_stop: bool = False


@dataclass
class Transformers:
    """As `Trainer` does: the flag is read after the step, whatever `on_step_begin` did with it."""

    callback: Any
    state: State = field(default_factory=State)
    accumulated: int = 1
    arguments: Arguments = field(default_factory=Arguments)
    steps: int = 0

    def train(self, batches: Iterable[int]) -> None:
        control = Control()
        self.callback.on_train_begin(self.arguments, self.state, control)
        for number, _ in enumerate(batches):
            if number % self.accumulated == 0:
                control = (
                    self.callback.on_step_begin(self.arguments, self.state, control, model=None)
                    or control
                )
            if (number + 1) % self.accumulated == 0:
                self.steps += 1
                control = (
                    self.callback.on_step_end(self.arguments, self.state, control, model=None)
                    or control
                )
            if control.should_training_stop:
                return


@dataclass
class Lightning:
    """As the fit loop does: a callback's answer is not looked at, and `should_stop` is read after the batch."""

    callback: Any
    is_global_zero: bool = True
    world_size: int = 1
    accumulate_grad_batches: int = 1
    should_stop: bool = False
    least: int = 0
    steps: int = 0

    def fit(self, batches: Iterable[int]) -> None:
        for number, batch in enumerate(batches):
            self.callback.on_train_batch_start(self, None, batch, number)
            self.steps += 1
            self.callback.on_train_batch_end(self, None, {}, batch, number)
            if self.should_stop and self.steps >= self.least:
                return


class Strategy:
    """As Flower's strategies are: `start` asks its own `configure_train`, and sends what that names."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def configure_train(
        self, server_round: int, arrays: Any, config: Any, grid: Any
    ) -> Iterable[str]:
        for client in ("one", "two"):
            self.asked.append(server_round)
            yield client

    def start(self, grid: Any, initial_arrays: Any, num_rounds: int) -> None:
        for number in range(1, num_rounds + 1):
            list(self.configure_train(number, initial_arrays, {}, grid))


class Wrapper(Strategy):
    """A strategy around another one, such as those that add noise."""

    def __init__(self, inner: Strategy) -> None:
        self.inner = inner

    def configure_train(self, *arguments: Any) -> Iterable[str]:
        return self.inner.configure_train(*arguments)


@pytest.mark.parametrize("accumulated", [1, 3])
def test_transformers_stops_before_the_step_that_exceeds(
    guard: TrainingGuard, accumulated: int
) -> None:
    total = guard.steps_left(**STEP)
    trainer = Transformers(transformers_callback(guard, **STEP), accumulated=accumulated)
    trainer.train(range(10**5))
    assert isinstance(trainer.callback, Base) and trainer.steps == total


def test_transformers_refuses_by_an_error_where_another_took_the_last_step(
    guard: TrainingGuard,
) -> None:
    trainer = Transformers(transformers_callback(guard, **STEP))
    while guard.steps_left(**STEP):
        guard.begin(**STEP)
    with pytest.raises(StepRefusedError):
        trainer.train(range(10))
    assert trainer.steps == 0


def test_the_other_processes_of_a_step_charge_nothing(guard: TrainingGuard) -> None:
    total = guard.steps_left(**STEP)
    Transformers(transformers_callback(guard, **STEP), State(is_world_process_zero=False)).train(
        range(5)
    )
    Lightning(lightning_callback(guard, **STEP), is_global_zero=False).fit(range(5))
    assert guard.steps_left(**STEP) == total


def test_several_processes_end_by_the_error_of_the_first(guard: TrainingGuard) -> None:
    total = guard.steps_left(**STEP)
    first = Transformers(transformers_callback(guard, **STEP), arguments=Arguments(world_size=2))
    with pytest.raises(StepRefusedError):
        first.train(range(10**4))
    second = Lightning(lightning_callback(guard, **STEP), is_global_zero=False, world_size=2)
    second.fit(range(5))
    assert (first.steps, second.steps) == (total, 5)


def test_lightning_stops_before_the_step_that_exceeds(guard: TrainingGuard) -> None:
    total = guard.steps_left(**STEP)
    trainer = Lightning(lightning_callback(guard, **STEP))
    trainer.fit(range(10**5))
    assert isinstance(trainer.callback, Base) and trainer.steps == total


def test_lightning_that_must_go_on_is_refused_by_an_error(guard: TrainingGuard) -> None:
    total = guard.steps_left(**STEP)
    trainer = Lightning(lightning_callback(guard, **STEP), least=10**6)
    with pytest.raises(StepRefusedError):
        trainer.fit(range(10**5))
    assert trainer.steps == total


def test_transformers_with_accumulated_gradients_is_refused(guard: TrainingGuard) -> None:
    trainer = Transformers(
        transformers_callback(guard, **STEP), arguments=Arguments(gradient_accumulation_steps=4)
    )
    total = guard.steps_left(**STEP)
    with pytest.raises(
        UnsupportedError, match=r"Change: TrainingArguments\(gradient_accumulation_steps=1\)"
    ):
        trainer.train(range(10))
    assert trainer.steps == 0 and guard.steps_left(**STEP) == total


def test_lightning_with_accumulated_gradients_is_refused(guard: TrainingGuard) -> None:
    trainer = Lightning(lightning_callback(guard, **STEP), accumulate_grad_batches=4)
    with pytest.raises(UnsupportedError, match="accumulate_grad_batches=1"):
        trainer.fit(range(10))


@pytest.mark.parametrize("wrapped", [False, True])
def test_flower_asks_no_client_before_the_charge(wrapped: bool) -> None:
    guard = TrainingGuard(epsilon=1, delta=1e-6, adjacency=Adjacency.REPLACE)
    kind: StepKind = {"mechanism": FixedSizeSample(8.0, records=100, batch=20)}
    inner = Strategy()
    total, strategy = guard.steps_left(**kind), guard_strategy(inner, guard, **kind)
    assert strategy is inner
    with pytest.raises(StepRefusedError):
        (Wrapper(strategy) if wrapped else strategy).start(None, None, num_rounds=10**4)
    assert len(inner.asked) == 2 * total > 2
    with pytest.raises(UnsupportedError, match="twice"):
        guard_strategy(strategy, guard, **kind)


def test_a_bad_step_is_refused_when_the_callback_is_made(guard: TrainingGuard) -> None:
    for make in (transformers_callback, lightning_callback):
        with pytest.raises(DomainError, match="rate"):
            make(guard, sigma=1.0, rate=2.0)
    with pytest.raises(DomainError, match="sigma"):
        guard_strategy(Strategy(), guard, sigma=0.0)


def test_a_library_that_is_not_there_is_named(
    guard: TrainingGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("transformers", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="transformers"):
        transformers_callback(guard, **STEP)
    with pytest.raises(MissingExtraError, match="lightning"):
        lightning_callback(guard, **STEP)
