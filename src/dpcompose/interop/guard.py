"""A guard around training steps: each is charged and redeemed before it runs, and the one that would exceed is refused.

    guard = TrainingGuard(epsilon=2, delta=1e-6, ledger=ledger, scope="city/model", run="first model")
    for batch in loader:
        with guard.step(sigma=1.1, rate=0.01):
            optimizer.step()

A step that runs again, from a checkpoint or because its result was disliked, is a second release with fresh noise: it
is charged again. So a charge is named by the run, the attempt (a random name of this guard) and a number that grows.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock
from typing import Any, TypedDict, TypeVar, Unpack, cast

from dpcompose import check
from dpcompose.account import CHOSEN, NumericLiteral
from dpcompose.adaptive import Filter, shown
from dpcompose.composition import Composable, Composition, compose
from dpcompose.errors import (
    AlreadyRedeemedError,
    DomainError,
    OverdrawnError,
    StepRefusedError,
    UnsupportedError,
)
from dpcompose.interop.step_budget import TrainingTarget
from dpcompose.ledger import Ledger, Receipt
from dpcompose.mechanisms import Gaussian
from dpcompose.values import Adjacency, Bound


@dataclass(frozen=True)
class TrainingHistory:
    """Epsilon after so many steps, at several places.

    Args:
        steps: How many steps were charged at each place, increasing.
        epsilon: The certified epsilon of them.
        delta: At which delta.
        target: The most that may be spent, in nats.
        holds: When these numbers hold.
    """

    steps: tuple[int, ...]
    epsilon: tuple[Bound, ...]
    delta: float
    target: float
    holds: str = CHOSEN


def history_of(
    charges: Sequence[tuple[Composable, int]],
    *,
    target: float,
    delta: float,
    points: int,
    adjacency: Adjacency,
) -> TrainingHistory:
    """Epsilon of the first steps, at evenly spaced places of which the last is the end."""
    whole = sum(times for _, times in charges)
    places = sorted({whole * place // points for place in range(1, points + 1)} - {0})
    epsilon = [first(charges, place).epsilon(delta=delta, adjacency=adjacency) for place in places]
    return TrainingHistory(tuple(places), tuple(epsilon), delta, target)


def first(charges: Sequence[tuple[Composable, int]], steps: int) -> Composition:
    """The first so many steps, as one composition."""
    taken: list[Composable] = []
    for mechanism, times in charges:
        if now := min(times, steps):
            taken.append(mechanism * now)
        steps -= now
    return compose(*taken)


Batch = TypeVar("Batch")
Log = Callable[[float, float, int], object]
"""A logging hook: it is given epsilon so far, the share of the budget that is left, and how many more steps fit."""
TRIES = 8


class StepKind(TypedDict, total=False):
    """A step: Gaussian noise on a Poisson sample, or another mechanism.

    Args:
        sigma: The noise multiplier: the noise over the clipping norm.
        rate: The rate of the Poisson sample, in (0, 1]; by default 1, all records.
        mechanism: In their place: what the step is.
        delta: Where on its curve it is charged, for filters that charge (epsilon, delta).
    """

    sigma: float
    rate: float
    mechanism: Composable
    delta: NumericLiteral | None


@dataclass
class _Plan:
    """Steps that were charged at once and are used up one by one."""

    receipt: Receipt
    left: dict[Composable, int]
    redeemed: bool = False


class TrainingGuard:
    """A budget for training, charged before every step.

    >>> guard = TrainingGuard(epsilon=2, delta=1e-6)
    >>> for number in range(3):
    ...     with guard.step(sigma=1.1, rate=0.01):
    ...         pass                                        # clip, add noise, optimizer.step()
    >>> guard.steps_left(sigma=1.1, rate=0.01)
    765
    >>> guard.epsilon().upper < 1
    True

    Without a ledger the budget is kept in the memory of this process. With one, any number of processes share the
    scope; a scope that exists must promise at most (epsilon, delta), and one that does not is opened.

    Which step may still run is decided by the filter alone, so sigma, rate and the moment to stop may be chosen from
    what was seen. Nothing is refunded: an exception in a step may itself depend on the data.

    Args:
        epsilon: The most that may be spent, in nats; above 0.
        delta: The most that may be spent, in (0, 1).
        ledger: Where it is kept; None for memory.
        scope: The path of a scope of the ledger; with a ledger, it is needed.
        kinds: Pairs (sigma, rate), or mechanisms: everything that may be asked, if that is declared beforehand. Then
            more steps of these kinds are granted, and no others (`MenuFilter`).
        filter: A filter, or a class of filters; by default that of the scope, and for a new one a `Budget` of
            Renyi divergences, which prices any step.
        adjacency: What one person's data may change; by default that of the scope, and add-remove for a new one.
        actor: Who charges and redeems; the same in every attempt of a run.
        run: The name of a run that may be resumed: what an earlier attempt of it charged and did not redeem is used
            first. Workers that train models of their own have runs of their own.
        shard: The rank of this process within one global step whose gradients are summed before they are released.
            That step is one release: shard 0 charges it, the others charge nothing, and none may step without it.
        log: Called after every `log_every` steps.
        log_every: See `log`.

    Raises:
        DomainError: If an argument is outside its domain, or the scope promises less privacy.
        LedgerError: If the ledger has no such scope and cannot open it.

    Reference: [FeldmanZrnic2021, Theorem 4.3], [Haney2023]
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        ledger: Ledger | None = None,
        scope: str | None = None,
        kinds: Sequence[tuple[float, float] | Composable] = (),
        filter: Filter | type[Filter] | None = None,
        adjacency: Adjacency | None = None,
        actor: str = "training guard",
        run: str | None = None,
        shard: int = 0,
        log: Log | None = None,
        log_every: int = 100,
    ) -> None:
        self.target, self.delta = (
            check.positive("epsilon", epsilon),
            check.open_probability("delta", delta),
        )
        if adjacency is not None:
            check.member("adjacency", adjacency, Adjacency)
        self._shard, self._log = check.count("shard", shard, least=0), log
        self._log_every = check.count("log_every", log_every, least=1)
        if not (log is None or callable(log)):
            raise DomainError(
                "log", log, "None, or a function of epsilon, the share left and the steps left"
            )
        actor = check.line("actor", actor)
        self.attempt = secrets.token_hex(16)
        self.run = self.attempt if run is None else check.line("run", run)
        check.line("run", self._key(10**15))
        if (ledger is None) != (scope is None):
            raise DomainError(
                "ledger and scope", (ledger, scope), "both, or neither for a budget in memory"
            )
        if kinds and filter is not None:
            raise DomainError("filter", filter, "None where kinds are declared")
        self._known: dict[Composable, Composable] = {}
        declared = [self._step(_kind(each))[0] for each in kinds]
        target = TrainingTarget(self.target, self.delta, filter, adjacency, declared)
        kept, path = (
            (Ledger.open("memory:"), "guard")
            if ledger is None or scope is None
            else (ledger, scope)
        )
        self._budget = target.budget(kept, path, actor, None if self._shard else run)
        self._process, self._numbers, self._lock = os.getpid(), itertools.count(1), Lock()
        self._plans: list[_Plan] = []
        self._ended = 0

    @contextmanager
    def step(self, **kind: Unpack[StepKind]) -> Generator[None]:
        """Charge and redeem one step, durably; then the block runs, and must release one answer of it.

        Args:
            kind: sigma and rate, or a mechanism; see `StepKind`.

        Raises:
            StepRefusedError: It does not fit; nothing was spent, and the block does not run.
            DomainError, UnsupportedError: It is no step, or has no price here.
            LedgerError: The ledger refuses or fails; the block does not run.
        """
        self.begin(**kind)
        yield
        self.end(**kind)

    def begin(self, **kind: Unpack[StepKind]) -> None:
        """Charge and redeem one step, as `step` does, for loops that call hooks; whoever returns from here may run it.

        Raises:
            As `step`.
        """
        asked, delta = self._step(kind)
        self._require_own_process()
        if self._shard:
            return
        with self._lock:
            if self._take_planned(asked):
                return
        for _ in range(TRIES - 1):
            try:
                self._budget.redeem(self._receipt(asked, delta))
            except AlreadyRedeemedError:
                continue  # another process resumed this charge, and runs its step
            return
        self._budget.redeem(self._receipt(asked, delta))

    def end(self, **kind: Unpack[StepKind]) -> None:
        """Count a step that ran, and call the logging hook if it is due."""
        self._ended += 1
        if self._log is not None and not self._shard and self._ended % self._log_every == 0:
            left = self.steps_left(**kind)
            self._log(self.epsilon().upper, self._budget.share_left(), left)

    def plan(
        self, schedule: Sequence[tuple[float, float, int] | tuple[Composable, int]], *,
        delta: NumericLiteral | None = None,
    ) -> None:  # fmt: skip
        """Charge a fixed schedule at once: steps of these kinds then run without a charge of their own.

        Sigma, rate and the number of steps are frozen. A step of another kind, or one more, is a new charge; stopping
        early refunds nothing. The plan is redeemed by its first step: killed before it, the run resumes the plan free;
        killed after it, the rest is lost, so a long plan is charged piece by piece, such as between two checkpoints.

        Args:
            schedule: Triples (sigma, rate, steps), or pairs (mechanism, steps).
            delta: Where on its curve the whole is charged, for filters that charge (epsilon, delta).

        Raises:
            StepRefusedError: It does not fit, and how many of its steps would.
            UnsupportedError: In a partition, unless it is pure: its first answers may show who is to be put there.
        """
        phases = [self._phase(item) for item in schedule]
        whole = first(phases, sum(steps for _, steps in phases))
        if not whole.parts:
            raise DomainError("schedule", schedule, "steps, such as [(1.1, 0.01, 1000)]")
        self._require_own_process()
        if self._shard:
            return
        typed = whole.typed(adjacency=self._budget.account.adjacency)
        if self._budget.parts_people and (
            typed is None or typed.epsilon is None or typed.delta > 0
        ):
            raise UnsupportedError(
                f"a plan with delta > 0 at {self._budget.name!r}",
                "in a partition, its first answers may show that it will fail, and who is put there afterwards meets"
                " the failure, not its delta",
                "Charge step by step, or use a scope outside of the partition",
            )
        try:
            receipt = self._receipt(whole, delta)
        except StepRefusedError as refusal:
            fitting = self._fitting(phases, delta)
            raise _refused(refusal, sum(steps for _, steps in phases), fitting) from None
        left: dict[Composable, int] = {}
        for mechanism, steps in phases:
            left[mechanism] = left.get(mechanism, 0) + steps
        with self._lock:
            self._plans.append(_Plan(receipt, left))

    def batches(self, batches: Iterable[Batch], **kind: Unpack[StepKind]) -> Generator[Batch]:
        """The batches of a plain loop, each charged before it is given; they end with the first that does not fit."""
        for batch in batches:
            try:
                self.begin(**kind)
            except StepRefusedError:
                return
            yield batch
            self.end(**kind)

    def steps_left(self, **kind: Unpack[StepKind]) -> int:
        """How many more steps of a kind fit, were they the only ones from now on: planned ones, resumed ones, new ones.

        At most 10^15 new ones; another process may take them first.
        """
        asked, delta = self._step(kind)
        with self._lock:
            known = sum(plan.left.get(asked, 0) for plan in self._plans) + self._budget.resumable(
                asked, delta
            )
        try:
            return known + self._budget.room(asked, delta)
        except UnsupportedError:
            if known:
                return known  # a planned step may have no price by itself
            raise

    def epsilon(self, *, delta: float | None = None) -> Bound:
        """The epsilon of everything charged so far, as if it had been fixed in advance: the bound of a fresh question.

        With a ledger, of all charges of the scope, by every process. A report, by which nothing may be decided: if
        steps were chosen from answers, (epsilon, delta) of the guard is what holds.
        """
        charges = self._budget.charges()
        asked = self.delta if delta is None else delta
        return compose(*[each * times for each, times in charges]).epsilon(
            delta=asked, adjacency=self._budget.account.adjacency
        )

    def history(self, *, points: int = 50) -> TrainingHistory:
        """Epsilon over the steps charged so far, at that many places; see `epsilon`."""
        points = check.count("points", points, least=1)
        charges = self._budget.charges()
        adjacency = self._budget.account.adjacency
        return history_of(
            charges, target=self.target, delta=self.delta, points=points, adjacency=adjacency
        )

    def _step(self, kind: StepKind) -> tuple[Composable, NumericLiteral | None]:
        """The mechanism of a step, one object for equal ones, whose price is computed once; and its delta."""
        sigma, mechanism = kind.get("sigma"), kind.get("mechanism")
        if (sigma is None) == (mechanism is None) or not set(
            kind
        ) <= StepKind.__annotations__.keys():
            raise DomainError(
                "a step", dict(kind), "sigma and rate, or mechanism, and delta where one is charged"
            )
        if mechanism is None:
            mechanism = Gaussian(cast("float", sigma)).sampled(kind.get("rate", 1.0))
            mechanism = self._known.setdefault(mechanism, mechanism)
        elif "rate" in kind or not isinstance(mechanism, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "a step",
                dict(kind),
                "a mechanism that has its rate, such as Gaussian(1.1).sampled(0.01)",
            )
        return mechanism, kind.get("delta")

    def _phase(self, item: tuple[Any, ...]) -> tuple[Composable, int]:
        if not isinstance(item, tuple) or len(item) not in (2, 3):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "schedule", item, "triples (sigma, rate, steps), or pairs (mechanism, steps)"
            )
        kind = _kind(item[:2]) if len(item) == 3 else _kind(item[0])
        return self._step(kind)[0], check.count("steps", item[-1], least=1)

    def _require_own_process(self) -> None:
        """A process that was forked off has this guard's memory: both would run what was charged once."""
        if os.getpid() != self._process:
            reason = "this process was forked off, and both would run what was charged once"
            raise UnsupportedError(
                "this training guard", reason, "Make a guard in each process, on one ledger"
            )

    def _take_planned(self, mechanism: Composable) -> bool:
        """Use up a step of a plan, if one has it; the first one redeems the plan."""
        plan = next((plan for plan in self._plans if plan.left.get(mechanism, 0) > 0), None)
        if plan is None:
            return False
        if not plan.redeemed:
            self._plans.remove(plan)
            self._budget.redeem(plan.receipt)
            plan.redeemed = True
            self._plans.append(plan)
        plan.left[mechanism] -= 1
        return True

    def _receipt(self, mechanism: Composable, delta: NumericLiteral | None) -> Receipt:
        """A charge of this run that was never redeemed, or else a new one."""
        number = next(self._numbers)
        note = {"run": self.run, "attempt": self.attempt, "step": number}
        try:
            return self._budget.charge(mechanism, delta, key=self._key(number), note=note)
        except OverdrawnError as refusal:
            raise _refused(refusal, 1, self._budget.room(mechanism, delta)) from None

    def _key(self, number: int) -> str:
        return f"{self.run}/{self.attempt}/{number}"

    def _fitting(
        self, phases: Sequence[tuple[Composable, int]], delta: NumericLiteral | None
    ) -> int:
        """How many of the first steps of a schedule would fit as one charge."""
        low, high = 0, sum(steps for _, steps in phases)
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._budget.room(first(phases, middle), delta) > 0
            low, high = (middle, high) if fits else (low, middle)
        return low


def _kind(item: Any) -> StepKind:
    """A pair (sigma, rate), or a mechanism."""
    match item:
        case (sigma, rate):
            return {"sigma": sigma, "rate": rate}
        case _:
            return {"mechanism": item}


def _refused(refusal: OverdrawnError, steps: int, fitting: int) -> StepRefusedError:
    """The refusal of a ledger or a filter, amounts to six digits."""
    asked, left = shown(Fraction(str(refusal.asked)), Fraction(str(refusal.left)))
    return StepRefusedError(
        refusal.scope, refusal.currency, asked, left, steps=steps, fitting=fitting
    )
