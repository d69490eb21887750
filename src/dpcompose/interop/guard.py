"""A training guard: each step is charged and redeemed before it runs, and a step that would exceed
the budget is refused.

    guard = TrainingGuard(epsilon=2, delta=1e-6, ledger=ledger, scope="city/model", run="first model")
    for batch in loader:
        with guard.step(sigma=1.1, rate=0.01):
            optimizer.step()

A step that is repeated, from a checkpoint or because its result was disliked, is a second release
with fresh noise and is charged again. So the key of a charge consists of the run, the attempt (a
random name of this guard) and an increasing number.
"""

from __future__ import annotations

import itertools
import os
import secrets
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, TypedDict, TypeVar, Unpack, cast

from dpcompose import check, errors
from dpcompose.account import (
    CHOSEN,
    Account,
    NumericLiteral,
    Schedule,
    exact,
    open_scope,
    pure_alone,
)
from dpcompose.adaptive import Budget, Filter, MenuFilter
from dpcompose.composition import Composable, compose
from dpcompose.ledger import Entry, Kind, Ledger, Receipt
from dpcompose.mechanisms import Gaussian, parse, serialize
from dpcompose.plan import TrainingHistory, first_steps
from dpcompose.values import Adjacency, Bound

TYPED = 1 + 1e-12
"""A filter for a target written in decimals satisfies it up to double rounding."""
ORDERS = (1.0, 0.7, 0.45)
"""Renyi orders less 1, of the best one for much noise: lower orders suit less noise."""


Answer = TypeVar("Answer")
Batch = TypeVar("Batch")
Phases = Sequence[tuple[Composable, int]]
"""The mechanisms of a schedule with their numbers of steps."""
TRIES = 8
"""How often a receipt that another attempt redeemed, or whose effect is uncertain, is tried again."""


class StepKind(TypedDict, total=False):
    """The mechanism of a training step: Gaussian noise on a Poisson sample, or another one.

    Args:
        sigma: The noise multiplier: standard deviation of the noise divided by the clipping norm.
        rate: The rate of the Poisson sample, in (0, 1]; by default 1, all records.
        mechanism: The mechanism of the step, instead of `sigma` and `rate`.
        delta: The delta at which the step is charged, for filters that charge (epsilon, delta).
    """

    sigma: float
    rate: float
    mechanism: Composable
    delta: NumericLiteral | None


@dataclass
class _Plan:
    """Steps that were charged together and are used one by one.

    Args:
        receipt: The charge; None once it is redeemed.
        left: The steps that are left.
    """

    receipt: Receipt | None
    left: Counter[Composable]


class TrainingGuard:
    """A privacy budget for training, charged before every step.

    >>> guard = TrainingGuard(epsilon=2, delta=1e-6)
    >>> for number in range(3):
    ...     with guard.step(sigma=1.1, rate=0.01):
    ...         pass                                        # clip, add noise, optimizer.step()
    >>> guard.steps_left(sigma=1.1, rate=0.01)
    1302
    >>> guard.epsilon().upper < 1
    True

    Without a ledger the budget is held in the memory of this process. With one, any number of
    processes share the scope. An existing scope must allow at most (epsilon, delta); a missing one
    is opened.

    Only the filter decides which steps may run, so sigma, rate and the time to stop may depend on
    earlier outputs. Nothing is refunded, since an exception in a step may itself depend on the
    data.

    Args:
        epsilon: The largest epsilon that may be spent, in nats; above 0.
        delta: The largest delta that may be spent, in (0, 1).
        ledger: The ledger that holds the budget; None for the memory of this process.
        scope: The path of a scope of the ledger; required with a ledger.
        filter: A filter or a class of filters; by default that of the scope. A missing scope is
            opened at the first step, for its kind: nearly as many of them are granted as a fixed
            schedule may have, and steps of other kinds while a `Budget` of a small part of delta
            grants all. It is opened as a `Budget` of Renyi divergences if a plan comes first.
        adjacency: The neighboring relation; by default that of the scope, and add-remove for a new
            one.
        actor: Who charges and redeems; the same in every attempt of a run.
        run: The name of a run that can be resumed: charges of an earlier attempt that were not
            redeemed are used first. Workers that train separate models need separate runs.

    Raises:
        DomainError: If an argument is outside its domain, or the scope allows more than (epsilon,
            delta).
        LedgerError: If the ledger lacks the scope and cannot open it.

    Reference: [FeldmanZrnic2021, Theorem 4.3], [Haney2023]
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        ledger: Ledger | None = None,
        scope: str | None = None,
        filter: Filter | type[Filter] | None = None,
        adjacency: Adjacency | None = None,
        actor: str = "training guard",
        run: str | None = None,
    ) -> None:
        self.target = check.positive("epsilon", epsilon)
        self.delta = check.open_probability("delta", delta)
        if adjacency is not None:
            check.member("adjacency", adjacency, Adjacency)
        self._actor = check.line("actor", actor)
        self.attempt = secrets.token_hex(16)
        self.run = self.attempt if run is None else check.line("run", run)
        check.line("run", self._key(10**15))
        if (ledger is None) != (scope is None):
            accepted = "both, or neither for a budget in memory"
            raise errors.DomainError("ledger and scope", (ledger, scope), accepted)
        self._known: dict[Composable, Composable] = {}
        self._filter, self._adjacency = filter, adjacency
        self._ledger = Ledger.open("memory:") if ledger is None else ledger
        self.scope = "guard" if scope is None else scope
        self._process = os.getpid()
        self._numbers, self._lock, self._reading = itertools.count(1), Lock(), Lock()
        self._plans: list[_Plan] = []
        self._read = 0
        self._charges: list[tuple[Composable, int]] = []
        self._unredeemed: list[tuple[str, Receipt]] = []
        self._account: Account | None = None
        try:
            self._account = self._checked(Account(self._ledger, scope=self.scope))
        except errors.UnknownScopeError:
            if filter is not None:
                self._open(None)
        if run is not None and self._account is not None:
            self._unredeemed = self._left_by_earlier_attempts()

    @property
    def account(self) -> Account:
        """The account on the scope; it is opened for any kind of step if it was not open."""
        return self._account or self._open(None)

    @property
    def adjacency(self) -> Adjacency:
        """The neighboring relation."""
        stated = self._adjacency or Adjacency.ADD_REMOVE
        return stated if self._account is None else self._account.adjacency

    @contextmanager
    def step(self, **kind: Unpack[StepKind]) -> Generator[None]:
        """Context that charges and redeems one step durably before its block runs.

        Args:
            kind: The noise multiplier `sigma` and sampling `rate`, or the `mechanism`; see
                `StepKind`. The block must release one answer of that mechanism.

        Raises:
            StepRefusedError: If the step does not fit the budget. Nothing is spent, and the block
                does not run.
            DomainError, UnsupportedError: If the arguments describe no step, or the filter cannot
                price it.
            LedgerError: If the ledger refuses or fails. The block does not run.
        """
        self.begin(**kind)
        yield

    def begin(self, **kind: Unpack[StepKind]) -> None:
        """Charge and redeem one step, for loops that call hooks; the step may run once this
        returns.

        Args:
            kind: The noise multiplier `sigma` and sampling `rate`, or the `mechanism`; see
                `StepKind`.

        Raises:
            The same errors as `step`.
        """
        asked, delta = self._step(kind)
        self._require_own_process()
        with self._lock:
            if self._account is None:
                self._open(asked if delta is None else None)
            if self._take_planned(asked):
                return
        # Another process may have resumed the charge, and runs its step.
        _retried(lambda: self._redeem(self._receipt(asked, delta)), errors.AlreadyRedeemedError)

    def plan(
        self, schedule: Sequence[tuple[float, float, int] | tuple[Composable, int]], *,
        delta: NumericLiteral | None = None,
    ) -> None:  # fmt: skip
        """Charge a fixed schedule at once; its steps then run without charges of their own.

        Sigma, rate and the number of steps are fixed. A step of another kind, or beyond the
        schedule, is a new charge, and stopping early refunds nothing. The first step redeems the
        whole plan. A run that is killed before that step resumes the plan without a new charge;
        killed later, it loses the remaining steps. So charge a long schedule in pieces, for example
        between two checkpoints.

        Args:
            schedule: Triples (sigma, rate, steps), or pairs (mechanism, steps).
            delta: The delta at which the whole schedule is charged, for filters that charge
                (epsilon, delta).

        Raises:
            StepRefusedError: If the schedule does not fit; the error states how many of its steps
                would.
            UnsupportedError: If the scope is inside a partition and the schedule is not pure (delta
                > 0): early answers can reveal a coming failure, and people assigned to the scope
                afterwards would not be covered by delta.
        """
        phases = [self._phase(item) for item in schedule]
        whole = first_steps(phases, _total(phases))
        if not whole.parts:
            raise errors.DomainError("schedule", schedule, "steps, such as [(1.1, 0.01, 1000)]")
        self._require_own_process()
        if any(each.scope.kind is Kind.PARTITION for each in self.account.chain):
            pure_alone(whole, self.account.adjacency)
        receipt = self._receipt(whole, delta, phases)
        left = Counter[Composable]()
        for mechanism, steps in phases:
            left[mechanism] += steps
        with self._lock:
            self._plans.append(_Plan(receipt, left))

    def batches(self, batches: Iterable[Batch], **kind: Unpack[StepKind]) -> Generator[Batch]:
        """The batches of a training loop, each charged before it is yielded; they end before the
        first that does not fit.

        Args:
            batches: The batches.
            kind: The kind of step that uses a batch; see `StepKind`.
        """
        for batch in batches:
            try:
                self.begin(**kind)
            except errors.StepRefusedError:
                return
            yield batch

    def steps_left(self, **kind: Unpack[StepKind]) -> int:
        """The number of further steps of one kind that fit: planned, resumed and new ones, at most
        10^15 new ones.

        Other processes on the same scope may take them first.

        Args:
            kind: The noise multiplier `sigma` and sampling `rate`, or the `mechanism`; see
                `StepKind`.
        """
        asked, delta = self._step(kind)
        if self._account is None and delta is None and (budget := self._for_kind(asked)):
            return budget.total_weight
        with self._lock:
            charged = sum(plan.left[asked] for plan in self._plans)
            label = _label(asked, delta) if self._unredeemed else ""
            charged += sum(text == label for text, _ in self._unredeemed)
        try:
            return charged + self._room(asked, delta)
        except errors.UnsupportedError:
            if charged:
                return charged  # a planned step may have no price by itself
            raise

    def epsilon(self, *, delta: float | None = None) -> Bound:
        """The certified epsilon of all charges so far, as if they had been fixed in advance.

        With a ledger, the charges of all processes on the scope are included. Use it for reports,
        not for decisions: if steps were chosen from earlier answers, the guarantee is the guard's
        (epsilon, delta).

        Args:
            delta: The delta at which epsilon is computed; by default that of the guard.
        """
        asked = self.delta if delta is None else delta
        whole = compose(*[each * times for each, times in self._all_charges()])
        return whole.epsilon(delta=asked, adjacency=self.adjacency)

    def history(self, *, points: int = 50) -> TrainingHistory:
        """The certified epsilon at up to `points` evenly spaced numbers of charged steps; see
        `epsilon`.
        """
        asked: Any = {"adjacency": self.adjacency, "points": points, "target": self.target}
        return TrainingHistory.of(self._all_charges(), self.delta, holds=CHOSEN, **asked)

    def _for_kind(self, mechanism: Composable) -> MenuFilter | None:
        """The filter of a scope that is opened for one kind of step; None if none grants it once."""
        try:
            return _menu_of_one(mechanism, self.target, self.delta, adjacency=self.adjacency)
        except (errors.DomainError, errors.UnsupportedError):
            return None

    def _open(self, mechanism: Composable | None) -> Account:
        """Open the scope, for a kind of step if there is one, unless another worker was first."""
        filter: Filter | type[Filter] | None = self._filter
        if filter is None and mechanism is not None:
            filter = self._for_kind(mechanism)
        filter = any_order(self.target, self.delta) if filter is None else filter
        options: dict[str, Any] = {"adjacency": self.adjacency, "actor": self._actor}
        if not isinstance(filter, Filter):
            options |= {"epsilon": self.target, "delta": self.delta}
        try:
            account = open_scope(self._ledger, self.scope, filter=filter, **options)
        except errors.ScopeExistsError:
            account = Account(self._ledger, scope=self.scope)
        self._account = self._checked(account)
        return self._account

    def _checked(self, account: Account) -> Account:
        """The account itself, if the innermost filter has the requested kind and satisfies the
        target; DomainError, ScopeKindError or UnsupportedError otherwise.
        """
        kind = account.chain[-1].scope.kind
        if kind is not Kind.FILTER:
            remedy = "Take a scope of kind filter, such as one below it"
            raise errors.ScopeKindError(self.scope, kind, remedy)
        own = next((each.filter for each in account.chain[::-1] if each.filter is not None), None)
        if own is None:
            what = f"a guard of {self.scope!r}"
            raise errors.UnsupportedError(what, "no filter bounds it", "Open it with a filter")
        promised = own.epsilon_at(delta=min(self.delta * TYPED, 1.0))
        if self._filter not in (None, own, type(own)):
            wrong = "filter", self._filter, f"that of the scope, {type(own).__name__}, or None"
        elif self._adjacency not in (None, account.adjacency):
            accepted = f"{account.adjacency}, that of the scope {self.scope!r}"
            wrong = "adjacency", self._adjacency, accepted
        elif not promised <= self.target * TYPED:
            accepted = f"at least what the scope {self.scope!r} may spend: {promised:.6g} at delta {self.delta:.6g}"
            wrong = "epsilon", self.target, accepted
        else:
            return account
        raise errors.DomainError(*wrong, "State that, or open another scope")

    def _room(self, mechanism: Composable, delta: NumericLiteral | None) -> int:
        """The number of further charges of this mechanism that fit the scope and all of its
        ancestors; at most 10^15.
        """
        most = self.account.room(self.account.price(mechanism, delta=delta))
        own = self.account.chain[-1]
        if most and own.schedule:
            with self._ledger.moment() as moment:
                taken = moment.upcoming(own.path).taken
            most = min(most, _scheduled(own.schedule, taken, serialize(mechanism)))
        return most

    def _left_by_earlier_attempts(self) -> list[tuple[str, Receipt]]:
        """The charges of the run that were not redeemed, with what they are for."""
        charges: dict[int, tuple[str, Receipt]] = {}
        own = (self.scope, self._actor, self.run)
        for entry in self._ledger.entries(self.scope):
            stated, note = entry.description, entry.description.get("note")
            run = cast("dict[str, Any]", note).get("run") if isinstance(note, dict) else None
            if entry.kind == Entry.REDEEMED and entry.redeems is not None:
                charges.pop(entry.redeems, None)
            elif entry.kind == Entry.GRANTED and (entry.scope, entry.actor, run) == own:
                label = f"{stated.get('mechanism')} at {stated.get('delta')}"
                charges[entry.sequence] = label, Receipt.of(entry)
        return list(charges.values())

    def _resumed(self, mechanism: Composable, delta: NumericLiteral | None) -> Receipt | None:
        """The receipt of an unredeemed earlier charge that covers the current price; None if there
        is none.
        """
        if not self._unredeemed:
            return None
        label, price = _label(mechanism, delta), self.account.price(mechanism, delta=delta)
        with self._reading:
            for index, (text, receipt) in enumerate(self._unredeemed):
                if text == label and all(
                    receipt.cost[name] >= amount for name, amount in price.items()
                ):
                    return self._unredeemed.pop(index)[1]
        return None

    def _redeem(self, receipt: Receipt) -> None:
        """Redeem a charge under a random nonce that is not stored, so that another attempt at the
        same receipt is refused.
        """
        nonce = secrets.token_hex(32)
        _retried(lambda: self._ledger.redeem(receipt, actor=self._actor, nonce=nonce))

    def _all_charges(self) -> list[tuple[Composable, int]]:
        """All charges of the scope itself, by every process, with counts; only new entries are read
        from the ledger.
        """
        with self._reading:
            for entry in (
                self._ledger.entries(self.scope, after=self._read) if self._account else ()
            ):
                if entry.kind == Entry.GRANTED and entry.scope == self.scope:
                    for part, times in compose(self._charged_mechanism(entry)).parts:
                        again = self._charges and self._charges[-1][0] == part
                        before = self._charges.pop()[1] if again else 0
                        self._charges.append((part, before + times))
                self._read = entry.sequence
            return list(self._charges)

    def _charged_mechanism(self, entry: Entry) -> Composable:
        text = entry.description.get("mechanism")
        if not isinstance(text, str):
            reason = f"charge {entry.sequence} names no mechanism to be read back"
            remedy = "Read the amounts that were charged"
            raise errors.UnsupportedError(f"the epsilon of {self.scope!r}", reason, remedy)
        return _parsed(text)

    def _step(self, kind: StepKind) -> tuple[Composable, NumericLiteral | None]:
        """The mechanism and the delta of a step; DomainError if the arguments describe none.

        Equal Gaussian steps are returned as one object, so that their price is computed once.
        """
        sigma, mechanism = kind.get("sigma"), kind.get("mechanism")
        if (sigma is None) == (mechanism is None) or not set(
            kind
        ) <= StepKind.__annotations__.keys():
            accepted = "sigma and rate, or mechanism, and delta where one is charged"
            raise errors.DomainError("a step", dict(kind), accepted)
        if mechanism is None:
            mechanism = Gaussian(cast("float", sigma)).sampled(kind.get("rate", 1.0))
            mechanism = self._known.setdefault(mechanism, mechanism)
        elif "rate" in kind or not isinstance(mechanism, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
            accepted = "a mechanism that has its rate, such as Gaussian(1.1).sampled(0.01)"
            raise errors.DomainError("a step", dict(kind), accepted)
        return mechanism, kind.get("delta")

    def _phase(self, item: tuple[Any, ...]) -> tuple[Composable, int]:
        if not isinstance(item, tuple) or len(item) not in (2, 3):  # pyright: ignore[reportUnnecessaryIsInstance]
            accepted = "triples (sigma, rate, steps), or pairs (mechanism, steps)"
            raise errors.DomainError("schedule", item, accepted)
        by_rate: StepKind = {"sigma": item[0], "rate": item[1]}
        kind: StepKind = {"mechanism": item[0]} if len(item) == 2 else by_rate
        return self._step(kind)[0], check.count("steps", item[-1], least=1)

    def _require_own_process(self) -> None:
        """Raise UnsupportedError in a forked process, which would run the same charged steps as its
        parent.
        """
        if os.getpid() != self._process:
            reason = "this process was forked off, and both would run what was charged once"
            remedy = "Make a guard in each process, on one ledger"
            raise errors.UnsupportedError("this training guard", reason, remedy)

    def _take_planned(self, mechanism: Composable) -> bool:
        """Use one step of a plan and return True, or return False if no plan has this mechanism
        left.

        The first step of a plan redeems it.
        """
        plan = next((plan for plan in self._plans if plan.left[mechanism] > 0), None)
        if plan is None:
            return False
        if plan.receipt is not None:
            self._plans.remove(plan)
            self._redeem(plan.receipt)
            plan.receipt = None
            self._plans.append(plan)
        plan.left[mechanism] -= 1
        return True

    def _receipt(
        self,
        mechanism: Composable,
        delta: NumericLiteral | None,
        phases: Phases = (),
    ) -> Receipt:
        """The receipt of an unredeemed earlier charge of this run, or of a new charge.

        Args:
            mechanism: What is charged at once.
            delta: The delta at which it is charged.
            phases: The mechanisms of its steps with their numbers; none if it is one step.

        Raises:
            StepRefusedError: If a new charge does not fit the budget.
        """
        number = next(self._numbers)
        note = {"run": self.run, "attempt": self.attempt, "step": number}
        options: Any = {"actor": self._actor, "key": self._key(number), "description": note}
        resumed = self._resumed(mechanism, delta)
        try:
            return resumed or _retried(
                lambda: self.account.charge(mechanism, delta=delta, **options)
            )
        except errors.OverdrawnError as refusal:
            fitting = self._fitting(phases, delta) if phases else self._room(mechanism, delta)
            amounts = (
                errors.few_digits(refusal.requested, up=True),
                errors.few_digits(refusal.left, up=False),
            )
            where, steps = (refusal.scope, refusal.currency), _total(phases) or 1
            raise errors.StepRefusedError(*where, *amounts, steps=steps, fitting=fitting) from None

    def _key(self, number: int) -> str:
        return f"{self.run}/{self.attempt}/{number}"

    def _fitting(self, phases: Phases, delta: NumericLiteral | None) -> int:
        """The largest number of first steps of a schedule that fits the budget as one charge."""
        return bisect(
            range(1, _total(phases)),
            False,
            key=lambda each: not self._room(first_steps(phases, each), delta),
        )


def _total(phases: Phases) -> int:
    return sum(steps for _, steps in phases)


_menu_of_one = lru_cache(maxsize=16)(MenuFilter.for_kind)
_parsed = lru_cache(maxsize=4096)(parse)


@lru_cache(maxsize=16)
def any_order(epsilon: float, delta: float) -> Budget:
    """A filter on Renyi divergences at several orders: the best one for much noise, and lower ones
    for less.
    """
    best = Budget(epsilon, delta, only="renyi").parts[0].order
    return Budget(epsilon, delta, only="renyi", orders=[1 + (best - 1) * share for share in ORDERS])


def _label(mechanism: Composable, delta: NumericLiteral | None) -> str:
    """A text that identifies a mechanism and the delta at which it is charged."""
    return f"{serialize(mechanism)} at {None if delta is None else exact('delta', delta)}"


def _scheduled(schedule: Schedule, taken: int, text: str | None) -> int:
    """The number of next rounds of a committed schedule that have one mechanism.

    Args:
        schedule: Mechanisms, as text, with their numbers of rounds.
        taken: The number of rounds already taken.
        text: The mechanism, as text.
    """
    ends = itertools.accumulate(times for _, times in schedule)
    rounds = zip(schedule, ends, strict=True)
    ahead = [(each, end) for (each, times), end in rounds if times and end > taken]
    same = itertools.takewhile(lambda item: item[0] == text, ahead)
    return max((end for _, end in same), default=taken) - taken


def _retried(
    action: Callable[[], Answer], passing: type[errors.LedgerError] = errors.StoreError
) -> Answer:
    """Run an idempotent action again, up to `TRIES` times, while it raises an error that passes: a
    StoreError that leaves its effect uncertain, or an error of the kind `passing`.
    """
    for _ in range(TRIES - 1):
        try:
            return action()
        except passing as error:
            if isinstance(error, errors.StoreError) and not error.uncertain:
                raise
    return action()
