"""Training callbacks for other libraries: Transformers' `Trainer`, Lightning, and Flower's server
strategies.

In none of them can a hook undo a step that has begun, since a flag that stops training is read only
after the step. So a step that does not fit the budget is refused by an error before it begins. A
single process also sets the flag once no further step fits, and ends without that error. With
several processes, the first one charges, and its error ends all of them: a process that stopped by
its own flag would leave the others waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, Unpack

from dpcompose.errors import MissingExtraError, UnsupportedError, optional_library
from dpcompose.interop.guard import StepKind, TrainingGuard

Strategy = TypeVar("Strategy")


class _Guarded:
    """A training guard together with the kind of step that is charged to it.

    Raises DomainError or UnsupportedError if the guard cannot charge such a step.
    """

    def __init__(self, guard: TrainingGuard, kind: StepKind) -> None:
        self.guard, self.kind = guard, kind
        guard.steps_left(**kind)  # a bad step is refused now

    def begin(self, is_first: bool, option: str, batches: int) -> None:
        """Charge and redeem a step before it runs, in the first process alone.

        Raises:
            StepRefusedError: If the step does not fit the budget.
            UnsupportedError: If the gradients of several batches are accumulated.
        """
        if batches != 1:
            reason = "a record may be in several of the batches, so their sum is no Poisson sample"
            remedy = f"Change: {option}=1), and larger batches"
            raise UnsupportedError(f"{option}={batches})", reason, remedy)
        if is_first:
            self.guard.begin(**self.kind)

    def ends(self, processes: int) -> bool:
        """Whether no further step fits and training in one process should stop; several processes end by the refusal of
        a step."""
        return processes == 1 and not self.guard.steps_left(**self.kind)


class StepHooks(_Guarded):
    """The two hooks of a Transformers callback, for loops in which every batch is one optimizer
    step.
    """

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        batches = 1
        with suppress(AttributeError):  # arguments of another loop, which accumulates nothing
            batches = args.gradient_accumulation_steps
        option = "TrainingArguments(gradient_accumulation_steps"
        self.begin(state.is_world_process_zero, option, batches)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
        control.should_training_stop |= self.ends(args.world_size)
        return control


class BatchHooks(_Guarded):
    """The two hooks of a Lightning callback, for loops in which every batch is one optimizer step."""

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        option, batches = "Trainer(accumulate_grad_batches", trainer.accumulate_grad_batches
        self.begin(trainer.is_global_zero, option, batches)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        trainer.should_stop |= self.ends(trainer.world_size)


def transformers_callback(guard: TrainingGuard, **kind: Unpack[StepKind]) -> Any:
    """A callback for `transformers.Trainer(callbacks=[...])` that charges each optimizer step to a
    guard.

    Args:
        guard: The training budget.
        kind: The step's noise multiplier `sigma` and sampling `rate`, or its `mechanism`; see
            `StepKind`.

    Raises:
        MissingExtraError: If transformers is not installed.
    """
    return _callback(StepHooks, "TrainerCallback", "transformers", "transformers")(guard, kind)


def lightning_callback(guard: TrainingGuard, **kind: Unpack[StepKind]) -> Any:
    """A callback for `lightning.Trainer(callbacks=[...])`, or pytorch_lightning's, that charges
    each optimizer step to a guard.

    Args:
        guard: The training budget.
        kind: The step's noise multiplier `sigma` and sampling `rate`, or its `mechanism`; see
            `StepKind`.

    Raises:
        MissingExtraError: If Lightning is not installed.
    """
    with suppress(MissingExtraError):
        return _callback(BatchHooks, "Callback", "lightning.pytorch", "lightning")(guard, kind)
    return _callback(BatchHooks, "Callback", "pytorch_lightning", "lightning")(guard, kind)


def guard_strategy(strategy: Strategy, guard: TrainingGuard, **kind: Unpack[StepKind]) -> Strategy:
    """Make a Flower strategy charge each round before any client is contacted; returns the same
    object.

    Its `configure_train` is replaced, so that a round is charged however it is started: by
    `strategy.start`, or by another strategy that wraps this one. A round that does not fit the
    budget raises StepRefusedError.

    Args:
        strategy: A strategy with `configure_train(server_round, arrays, config, grid)`.
        guard: The training budget.
        kind: One round as a mechanism. A fixed number of clients per round, drawn without
            replacement, is no Poisson sample: use `mechanism=FixedSizeSample(...)` and the
            adjacency under which it is stated.

    Raises:
        UnsupportedError: If the strategy is guarded already, since every round would be charged
            twice.
    """
    guarded: Any = strategy
    ask = guarded.configure_train
    if isinstance(ask, GuardedRound):
        raise UnsupportedError(
            "a strategy that is guarded", "every round would be charged twice", "Guard it once"
        )
    guarded.configure_train = GuardedRound(guard, kind, ask)
    return strategy


class GuardedRound(_Guarded):
    """A replacement for a strategy's `configure_train` that charges the round first."""

    def __init__(self, guard: TrainingGuard, kind: StepKind, ask: Callable[..., Any]) -> None:
        super().__init__(guard, kind)
        self.ask = ask

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Charge and redeem the round, then return what the original `configure_train` returns.

        Raises:
            StepRefusedError: If the round does not fit the budget.
        """
        with self.guard.step(**self.kind):
            return self.ask(*arguments, **named)


def _callback(hooks: type[_Guarded], base: str, module: str, extra: str) -> Callable[..., Any]:
    """The class of a callback: the hooks on a base class of a module that an extra installs;
    MissingExtraError without it.
    """
    bases: Any = hooks, vars(optional_library(module, f"A callback for {extra}", extra))[base]
    return type("GuardCallback", bases, {})
