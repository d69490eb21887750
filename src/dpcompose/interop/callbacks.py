"""Training loops of other libraries, guarded: Transformers' `Trainer`, Lightning, Flower's server strategies.

In none of them may a hook take a step back that has begun: a flag that stops training is read after the step. So a
step that does not fit is refused by an error before it begins. A single process sets the flag once no further step
fits, and ends without the error. Of several processes, the first charges and its error ends all: one that stopped by a
flag of its own would leave the others waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol, TypeVar, Unpack

from dpcompose.errors import MissingExtraError, UnsupportedError
from dpcompose.interop.guard import StepKind, TrainingGuard


class TrainingArguments(Protocol):
    """Of Transformers' `TrainingArguments`, the part that is used."""

    @property
    def world_size(self) -> int:
        """How many processes train together."""
        ...

    @property
    def gradient_accumulation_steps(self) -> int:
        """How many batches one optimizer step sums up."""
        ...


class TrainerState(Protocol):
    """Of Transformers' `TrainerState`, the part that is used."""

    is_world_process_zero: bool


class TrainerControl(Protocol):
    """Of Transformers' `TrainerControl`, the part that is used."""

    should_training_stop: bool


class LightningTrainer(Protocol):
    """Of Lightning's `Trainer`, the part that is used."""

    is_global_zero: bool
    world_size: int
    accumulate_grad_batches: int
    should_stop: bool


class FlowerStrategy(Protocol):
    """Of Flower's `Strategy`, the part that is used."""

    configure_train: Callable[..., Any]


Strategy = TypeVar("Strategy", bound=FlowerStrategy)


class _Guarded:
    """A guard and the kind of step that is taken."""

    def __init__(self, guard: TrainingGuard, kind: StepKind) -> None:
        self.guard, self.kind = guard, kind
        guard.steps_left(**kind)  # a bad step is refused now

    def fits(self) -> bool:
        return self.guard.steps_left(**self.kind) > 0


class StepHooks(_Guarded):
    """The two hooks of a Transformers callback, for loops whose every batch is one optimizer step."""

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Charge and redeem, or raise StepRefusedError; the processes of one step charge once, in the first.

        Raises:
            UnsupportedError: If gradients are accumulated.
        """
        with suppress(AttributeError):  # arguments of another loop, which accumulates nothing
            _require_one_batch(
                "TrainingArguments(gradient_accumulation_steps", args.gradient_accumulation_steps
            )
        if state.is_world_process_zero:
            self.guard.begin(**self.kind)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> TrainerControl:
        """Stop the training once no further step fits."""
        if state.is_world_process_zero:
            self.guard.end(**self.kind)
        if args.world_size == 1 and not self.fits():
            control.should_training_stop = True
        return control


class BatchHooks(_Guarded):
    """The two hooks of a Lightning callback, for loops whose every batch is one optimizer step."""

    def on_train_batch_start(
        self, trainer: LightningTrainer, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Charge and redeem, or raise StepRefusedError; the processes of one step charge once, in the first.

        Raises:
            UnsupportedError: If gradients are accumulated.
        """
        _require_one_batch("Trainer(accumulate_grad_batches", trainer.accumulate_grad_batches)
        if trainer.is_global_zero:
            self.guard.begin(**self.kind)

    def on_train_batch_end(
        self, trainer: LightningTrainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stop the training once no further step fits."""
        if trainer.is_global_zero:
            self.guard.end(**self.kind)
        if trainer.world_size == 1 and not self.fits():
            trainer.should_stop = True


def transformers_callback(guard: TrainingGuard, **kind: Unpack[StepKind]) -> Any:
    """A callback for `transformers.Trainer(callbacks=[...])`.

    Args:
        guard: The budget.
        kind: sigma and rate, or a mechanism; see `StepKind`.

    Raises:
        MissingExtraError: If transformers is not installed.
    """
    base = _found("transformers").TrainerCallback
    return type("GuardCallback", (StepHooks, base), {})(guard, kind)


def lightning_callback(guard: TrainingGuard, **kind: Unpack[StepKind]) -> Any:
    """A callback for `lightning.Trainer(callbacks=[...])`, or for that of the package pytorch_lightning.

    Args:
        guard: The budget.
        kind: sigma and rate, or a mechanism; see `StepKind`.

    Raises:
        MissingExtraError: If Lightning is not installed.
    """
    base = _found("lightning.pytorch", "pytorch_lightning").Callback
    return type("GuardCallback", (BatchHooks, base), {})(guard, kind)


def guard_strategy(strategy: Strategy, guard: TrainingGuard, **kind: Unpack[StepKind]) -> Strategy:
    """A Flower strategy, the same object, that charges a round before any client is asked, or raises.

    Its own `configure_train` is replaced, so that every way to start it comes by here: `strategy.start`, and another
    strategy that wraps it. Guard it once.

    Args:
        strategy: With `configure_train(server_round, arrays, config, grid)`.
        guard: The budget.
        kind: A round as a mechanism. Clients drawn without replacement, a fixed number a round, are no Poisson sample:
            `mechanism=FixedSizeSample(...)`, and the adjacency under which it is stated.

    Raises:
        UnsupportedError: If it is guarded already: every round would be charged twice.
    """
    ask = strategy.configure_train
    if isinstance(ask, GuardedRound):
        raise UnsupportedError(
            "a strategy that is guarded", "every round would be charged twice", "Guard it once"
        )
    strategy.configure_train = GuardedRound(guard, kind, ask)
    return strategy


class GuardedRound(_Guarded):
    """`configure_train`, charged first."""

    def __init__(self, guard: TrainingGuard, kind: StepKind, ask: Callable[..., Any]) -> None:
        super().__init__(guard, kind)
        self.ask = ask

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Charge and redeem the round, or raise StepRefusedError; then choose the clients and what they are sent."""
        with self.guard.step(**self.kind):
            return self.ask(*arguments, **named)


def _require_one_batch(option: str, batches: int) -> None:
    """Refuse accumulated gradients: a record in two of the batches is in one step twice."""
    if batches != 1:
        reason = "a record may be in several of the batches, so their sum is no Poisson sample"
        raise UnsupportedError(
            f"{option}={batches})", reason, f"Change: {option}=1), and larger batches"
        )


def _found(*names: str) -> Any:
    """The first of several modules that is installed."""
    for name in names:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in (name, name.partition(".")[0]):
                raise
    library = names[0].partition(".")[0]
    raise MissingExtraError(f"A callback for {library}", library)
