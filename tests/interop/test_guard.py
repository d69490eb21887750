"""The training guard: charged before it runs, refused before it exceeds, resumed free, never above the budget."""

from __future__ import annotations

import copy
import math
import os
import pickle
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any, Unpack

import numpy as np
import pytest
from mpmath import binomial, exp, log, mp, mpf

from campaigns import guard as campaign
from dpcompose import Adjacency, Gaussian, Laplace, compose
from dpcompose.account import open_partition, open_scope
from dpcompose.adaptive import Budget, MenuFilter, PureFilter, RenyiFilter
from dpcompose.errors import (
    AlreadyRedeemedError,
    ClosedScopeError,
    DomainError,
    LedgerError,
    ScopeKindError,
    StepRefusedError,
    StoreError,
    UnsupportedError,
)
from dpcompose.interop.guard import StepKind, TrainingGuard, any_order
from dpcompose.ledger import Ledger
from dpcompose.ledger.entry import Entry
from dpcompose.mechanisms import FixedSizeSample
from dpcompose.report import save

STEP: StepKind = {"sigma": 4.0, "rate": 0.05}
MECHANISM = Gaussian(4.0).sampled(0.05)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(str(tmp_path / "ledger.db")) as opened:
        yield opened


def made(ledger: Ledger | None = None, **given: Any) -> TrainingGuard:
    where = {} if ledger is None else {"ledger": ledger, "scope": "model"}
    return TrainingGuard(**({"epsilon": 1, "delta": 1e-6} | where | given))


def spent_by(guard: TrainingGuard, **kind: Unpack[StepKind]) -> int:
    """Steps until the guard refuses."""
    for number in range(10**6):
        try:
            with guard.step(**kind):
                pass
        except StepRefusedError:
            return number
    raise AssertionError("it never refuses")


def kinds_of(ledger: Ledger) -> list[str]:
    return [
        entry.kind
        for entry in ledger.entries("model")
        if entry.kind in (Entry.GRANTED, Entry.REDEEMED)
    ]


def test_charged_and_redeemed_before_the_block(ledger: Ledger) -> None:
    with made(ledger).step(**STEP):
        assert kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED]
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED]


def test_as_many_as_the_filter_grants_and_as_many_as_were_said() -> None:
    filter = Budget(1, 1e-6, only="renyi")
    ((price, cap),) = zip(filter.price(MECHANISM).values(), filter.caps.values(), strict=True)
    guard = made(filter=filter)
    assert guard.steps_left(**STEP) == cap // price == spent_by(guard, **STEP)
    with (
        pytest.raises(StepRefusedError, match="0 more steps of this kind would fit") as refusal,
        guard.step(**STEP),
    ):
        pytest.fail("a refused step ran")
    assert (refusal.value.steps, refusal.value.fitting) == (1, 0)
    assert guard.steps_left(sigma=20.0, rate=0.05) > 0


def test_memory_and_ledger_grant_the_same(ledger: Ledger) -> None:
    step: StepKind = {"sigma": 12.0, "rate": 0.5}
    left = made().steps_left(**step)
    assert (
        left
        == made(ledger).steps_left(**step)
        == spent_by(made(), **step)
        == spent_by(made(ledger), **step)
        > 20
    )


@pytest.mark.parametrize("epsilon, delta, least, fixed", [(1, 1e-6, 270, 277), (0.5, 1e-5, 74, 76)])
def test_the_first_step_declares_its_kind(
    ledger: Ledger, epsilon: float, delta: float, least: int, fixed: int
) -> None:
    step: StepKind = {"sigma": 1.1, "rate": 0.01}
    guard = made(ledger, epsilon=epsilon, delta=delta)
    assert guard.steps_left(sigma=20.0) > 0  # a question declares nothing
    left = guard.steps_left(**step)
    assert least <= left <= fixed and list(ledger.scopes()) == []
    guard.begin(sigma=1.1, rate=0.01)
    again = made(ledger, epsilon=epsilon, delta=delta)
    assert guard.steps_left(**step) == again.steps_left(**step) == left - 1
    assert spent_by(again, **step) == left - 1
    whole = (Gaussian(1.1).sampled(0.01) * left).delta(epsilon=epsilon)
    assert 0.9 * delta < whole.lower <= whole.upper <= delta


def test_a_plan_of_the_first_kind_is_so_many_steps(ledger: Ledger) -> None:
    guard = made(ledger, run="one")
    guard.begin(**STEP)
    left = guard.steps_left(**STEP)
    guard.plan([(4.0, 0.05, 100)])
    assert guard.steps_left(**STEP) == left == spent_by(guard, **STEP)
    assert guard.epsilon().upper <= 1


def test_after_the_first_kind_a_small_budget_grants_others() -> None:
    guard = made()
    guard.begin(**STEP)
    before = guard.steps_left(**STEP)
    others = guard.steps_left(sigma=9.0, rate=0.01)
    assert before > 300 and 0 < others < made().steps_left(sigma=9.0, rate=0.01)
    guard.begin(sigma=9.0, rate=0.01)
    assert guard.steps_left(sigma=9.0, rate=0.01) == others - 1
    assert guard.steps_left(**STEP) < before - 1  # as that budget grants them from now on
    while left := guard.steps_left(**STEP):
        for _ in range(left):
            guard.begin(**STEP)
    assert guard.epsilon(delta=1e-6 / 20).upper <= 1


def exact_divergence(sigma: float, rate: float, order: int) -> Any:
    """Of the sampled Gaussian, at an integer order, the larger direction."""
    mp.dps = 40
    q, s = mpf(rate), mpf(sigma)
    terms = [
        binomial(order, k) * (1 - q) ** (order - k) * q**k * exp(mpf(k * k - k) / (2 * s * s))
        for k in range(order + 1)
    ]
    return log(sum(terms)) / (order - 1)


@pytest.mark.parametrize("seed", range(2))
def test_never_above_whatever_sigma_is_chosen(seed: int) -> None:
    """Sums of exact divergences, for an adversary who chooses each step from what is left."""
    rng, filter = random.Random(seed), RenyiFilter(8.0, budget=0.25)
    guard = made(filter=filter, epsilon=filter.epsilon_at(delta=1e-6))
    grid = [
        (sigma, rate) for sigma in (0.8, 1.0, 1.5, 3.0, 9.0) for rate in (0.001, 0.02, 0.3, 1.0)
    ]
    ran: list[tuple[float, float]] = []
    while fitting := [
        (sigma, rate) for sigma, rate in grid if guard.steps_left(sigma=sigma, rate=rate)
    ]:
        sigma, rate = (
            max(fitting, key=lambda kind: exact_divergence(*kind, 8))
            if seed == 0
            else rng.choice(fitting)
        )
        for _ in range(1 if seed == 0 else rng.randrange(1, 400)):
            try:
                with guard.step(sigma=sigma, rate=rate):
                    ran.append((sigma, rate))
            except StepRefusedError:
                break
    total = sum(exact_divergence(*kind, 8) * ran.count(kind) for kind in set(ran))
    assert 0.99 * 0.25 < total <= 0.25
    fixed = compose(
        *[Gaussian(sigma).sampled(rate) * ran.count((sigma, rate)) for sigma, rate in set(ran)]
    )
    assert fixed.epsilon(delta=1e-6).lower <= guard.target


def divergence(sigma: float, rate: float, order: float) -> float:
    """The same at any order, both directions by a trapezoidal rule, which converges exponentially."""
    x = np.linspace(-40 * sigma, 1 + 40 * sigma, 40_001)
    without, mixed = (
        -x * x / 2 / sigma**2,
        np.log1p(rate * np.expm1((2 * x - 1) / 2 / sigma**2)) - x * x / 2 / sigma**2,
    )
    step = (x[1] - x[0]) / (sigma * math.sqrt(2 * math.pi))
    pairs = ((without, mixed), (mixed, without))
    sums = [np.exp(order * p + (1 - order) * q).sum() * step for p, q in pairs]
    return math.log(max(sums)) / (order - 1)


def test_some_order_of_the_default_filter_is_kept_whatever_is_chosen(ledger: Ledger) -> None:
    filter = any_order(1.0, 1e-6)
    rng = random.Random(5)
    guards = [made(ledger, run=f"run {n}", filter=filter) for n in range(2)]
    kinds = [(1.5, 0.01), (4.0, 0.1), (12.0, 0.6)]
    ran: list[tuple[float, float]] = []
    while any(guards[0].steps_left(sigma=sigma, rate=rate) for sigma, rate in kinds):
        sigma, rate = rng.choice(kinds)
        guard = rng.choice(guards)
        steps = min(guard.steps_left(sigma=sigma, rate=rate), rng.randrange(1, 90))
        if steps and rng.random() < 0.5:
            guard.plan([(sigma, rate, steps)])
        for _ in range(steps):
            guard.begin(sigma=sigma, rate=rate)
            ran.append((sigma, rate))
    assert repr(filter) == "Budget(1, 1e-06, only='renyi')"
    shares = []
    for part in filter.parts:
        spent = sum(divergence(*kind, part.order) * ran.count(kind) for kind in kinds)
        limit = part.cap
        assert limit > 0 and 3 * part.portion <= Fraction(1, 10**6)
        shares.append(spent / float(limit))
    assert 0.9 < min(shares) <= 1


@pytest.mark.parametrize("kept", [False, True])
def test_threads_run_no_step_too_many(ledger: Ledger, kept: bool) -> None:
    guards = [made(ledger, run=f"run {n}") for n in range(2)] if kept else [made()] * 2
    step: StepKind = {"sigma": 12.0, "rate": 0.5}
    ran: list[int] = []
    fits = guards[0].steps_left(**step)

    def work(guard: TrainingGuard) -> None:
        ran.append(spent_by(guard, **step))

    threads = [Thread(target=work, args=(guard,)) for guard in guards * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(ran) == fits > 20


def test_two_guards_of_one_scope_share_it(ledger: Ledger) -> None:
    first, second = made(ledger, run="one"), made(ledger, run="two")
    before = first.steps_left(**STEP)
    for guard in (first, second, first):
        guard.begin(**STEP)
    assert first.steps_left(**STEP) == second.steps_left(**STEP) == before - 3


def test_a_step_that_runs_again_is_charged_again(ledger: Ledger) -> None:
    for _ in range(2):  # from one checkpoint, twice
        guard = made(ledger, run="one")
        for _ in range(2):
            guard.begin(**STEP)
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED] * 4


def killed(monkeypatch: pytest.MonkeyPatch, guard: TrainingGuard, **kind: Any) -> None:
    """A step of which only the charge is made."""
    with monkeypatch.context() as patched:
        patched.setattr(
            TrainingGuard, "_redeem", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            guard.begin(**kind)


def test_charged_and_not_redeemed_is_resumed_free(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(monkeypatch, made(ledger, run="one"), **STEP)
    other, again = made(ledger, run="two"), made(ledger, run="one")
    left = other.steps_left(**STEP)
    assert again.steps_left(**STEP) == left + 1
    again.begin(sigma=3.0, rate=0.05)
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.GRANTED, Entry.REDEEMED], (
        "another kind of step is not what was charged"
    )
    again.begin(**STEP)
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.GRANTED, Entry.REDEEMED, Entry.REDEEMED]
    again.begin(**STEP)
    assert kinds_of(ledger)[4:] == [Entry.GRANTED, Entry.REDEEMED], "once"


def test_a_charge_that_another_attempt_resumed_is_charged_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, redeem = made(ledger, run="one"), TrainingGuard._redeem
    thieves: list[TrainingGuard] = []

    def robbed(own: TrainingGuard, receipt: Any) -> None:
        if not thieves:
            thieves.append(made(ledger, run="one"))
            thieves[0].begin(**STEP)
        redeem(own, receipt)

    monkeypatch.setattr(TrainingGuard, "_redeem", robbed)
    first.begin(**STEP)
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED, Entry.GRANTED, Entry.REDEEMED], (
        "two steps, two charges"
    )


def test_a_cheaper_charge_under_the_same_name_is_not_taken(ledger: Ledger) -> None:
    guard = made(ledger)
    guard.begin(**STEP)
    nothing = dict.fromkeys(ledger.available("model"), 0)
    said = {"mechanism": str(MECHANISM), "note": {"run": "one"}}
    ledger.charge("model", cost=nothing, description=said, actor="training guard", key="forged")
    before = guard.steps_left(**STEP)
    made(ledger, run="one").begin(**STEP)
    assert guard.steps_left(**STEP) == before - 1


def test_a_fork_and_a_copy_are_refused() -> None:
    guard = made()
    child = os.fork()
    if not child:
        status = 1
        try:
            guard.begin(**STEP)
        except UnsupportedError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copied(guard)


def test_the_steps_that_fit_heed_a_committed_schedule(ledger: Ledger) -> None:
    schedule = [(MECHANISM, 2), (Gaussian(9.0), 1), (MECHANISM, 1)]
    open_scope(
        ledger,
        "model",
        epsilon=1,
        delta=1e-6,
        only="renyi",
        schedule=schedule,
        actor="keeper",
    )
    guard = made(ledger)
    left: list[tuple[int, int]] = []
    for sigma in (4.0, 4.0, 9.0, 4.0):
        left.append((guard.steps_left(**STEP), guard.steps_left(sigma=9.0)))
        guard.begin(sigma=sigma, rate=0.05 if sigma == 4.0 else 1.0)
    assert left == [(2, 0), (1, 0), (0, 1), (1, 0)]
    assert guard.steps_left(**STEP) == 0
    with pytest.raises(UnsupportedError, match="nothing more was committed"), guard.step(**STEP):
        pytest.fail("it ran")


def test_the_steps_that_fit_heed_the_whole_chain(ledger: Ledger) -> None:
    """Two filters with a partition between, whose largest child is another one."""
    open_scope(ledger, "city", filter=RenyiFilter(8.0, budget=0.02), actor="keeper")
    open_partition(ledger, "city/wards", filter=RenyiFilter(8.0, budget=0.015), actor="keeper")
    wards = [f"city/wards/{name}" for name in ("north", "south")]
    for ward in wards:
        open_scope(ledger, ward, filter=Budget(2, 1e-6, only="renyi", orders=[8.0]), actor="keeper")
    south, north = (
        TrainingGuard(epsilon=2, delta=1e-6, ledger=ledger, scope=ward) for ward in wards
    )
    for guard, steps in ((south, 3), (north, 9), (south, None), (north, None)):
        left = guard.steps_left(**STEP)
        assert left > 12 or steps is None
        for _ in range(left if steps is None else steps):
            guard.begin(**STEP)
        assert guard.steps_left(**STEP) == left - (left if steps is None else steps)
    with pytest.raises(StepRefusedError):
        south.begin(**STEP)


def test_the_block_that_fails_keeps_its_charge() -> None:
    guard = made()
    before = guard.steps_left(**STEP)
    with pytest.raises(ZeroDivisionError), guard.step(**STEP):
        raise ZeroDivisionError
    assert guard.steps_left(**STEP) == before - 1
    context = guard.step(**STEP)
    with context:
        pass
    with pytest.raises((RuntimeError, AttributeError)), context:
        pytest.fail("one charge, two blocks")


def test_a_plan_is_one_charge_and_an_extra_step_another(ledger: Ledger) -> None:
    guard = made(ledger, run="one")
    guard.plan([(6.0, 0.05, 3), (4.0, 0.05, 2)])
    assert kinds_of(ledger) == [Entry.GRANTED]
    for sigma in (6.0, 4.0, 6.0, 6.0, 4.0):
        guard.begin(sigma=sigma, rate=0.05)
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED]
    guard.begin(**STEP)
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED] * 2
    ledger.verify()


def test_a_plan_is_resumed_free_until_its_first_step(ledger: Ledger) -> None:
    for _ in range(2):
        guard = made(ledger, run="one")
        guard.plan([(MECHANISM, 3)])
    assert kinds_of(ledger) == [Entry.GRANTED]
    guard.begin(**STEP)
    made(ledger, run="one").plan([(MECHANISM, 3)])
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED, Entry.GRANTED]


def test_a_plan_that_another_attempt_began_is_not_run(ledger: Ledger) -> None:
    first, second = made(ledger, run="one"), None
    first.plan([(MECHANISM, 2)])
    second = made(ledger, run="one")
    second.plan([(MECHANISM, 2)])
    second.begin(**STEP)
    with pytest.raises(AlreadyRedeemedError):
        first.begin(**STEP)
    first.begin(**STEP)
    assert kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED, Entry.GRANTED, Entry.REDEEMED]


def test_a_whole_plan_has_the_price_of_its_composition() -> None:
    steps = 100
    whole = (MECHANISM * steps).epsilon(delta=1e-6).upper
    guard = made(epsilon=2, filter=Budget(2, 1e-6, only="basic"))
    guard.plan([(4.0, 0.05, steps)], delta=9e-7)
    assert guard.steps_left(**STEP) == steps
    assert spent_by(guard, **STEP | {"delta": 1e-8}) - steps >= 0
    assert whole < guard.target
    with pytest.raises(StepRefusedError) as refusal:
        made(epsilon=0.3, filter=Budget(0.3, 1e-6, only="basic")).plan(
            [(4.0, 0.05, steps)], delta=1e-6
        )
    fits = refusal.value.fitting
    assert refusal.value.steps == steps and 0 < fits < steps
    made(epsilon=0.3, filter=Budget(0.3, 1e-6, only="basic")).plan([(4.0, 0.05, fits)], delta=1e-6)


def test_in_a_partition_a_plan_must_be_pure(ledger: Ledger) -> None:
    open_scope(ledger, "city", epsilon=2, delta=1e-6, actor="keeper")
    open_partition(ledger, "city/wards", actor="keeper")
    open_scope(ledger, "city/wards/north", filter=None, actor="keeper")
    guard = TrainingGuard(epsilon=2, delta=1e-6, ledger=ledger, scope="city/wards/north")
    with pytest.raises(UnsupportedError, match="in a partition"):
        guard.plan([(9.0, 0.05, 3)])
    guard.begin(sigma=9.0, rate=0.05)
    guard.plan([(Laplace(50.0), 3)])


def test_the_epsilon_is_that_of_a_fresh_question(ledger: Ledger) -> None:
    for guard in (made(epsilon=3), made(ledger, epsilon=3)):
        assert guard.epsilon().upper == 0
        for number in range(40):
            guard.begin(sigma=4.0 if number % 4 else 3.0, rate=0.05)
        guard.plan([(5.0, 0.1, 7)])
        fresh = compose(
            MECHANISM * 30, Gaussian(3.0).sampled(0.05) * 10, Gaussian(5.0).sampled(0.1) * 7
        )
        assert guard.epsilon() == fresh.epsilon(delta=1e-6)
        assert guard.epsilon(delta=1e-5) == fresh.epsilon(delta=1e-5)
        history = guard.history(points=5)
        assert history.steps == (9, 18, 28, 37, 47)
        assert history.epsilon[-1] == fresh.epsilon(delta=1e-6)
        first = compose(MECHANISM * 6, Gaussian(3.0).sampled(0.05) * 3)
        assert history.epsilon[0] == first.epsilon(delta=1e-6)
        assert [bound.upper for bound in history.epsilon] == sorted(
            bound.upper for bound in history.epsilon
        )


def test_the_history_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install '.[plot]'")
    guard = made(epsilon=3)
    guard.plan([(2.0, 0.05, 30)])
    for name in ("some.png", "none.png"):
        save(tmp_path / name, (guard if name == "some.png" else made()).history(points=4))
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_a_plain_loop_ends_before_the_step_that_exceeds() -> None:
    guard = made()
    total = guard.steps_left(sigma=12.0, rate=0.5)
    assert list(guard.batches(range(10**6), sigma=12.0, rate=0.5)) == [*range(total)]


def test_a_scope_must_promise_what_the_guard_states(ledger: Ledger) -> None:
    for number, only in enumerate(("pure", "basic", "renyi", None)):
        open_scope(ledger, f"at{number}", epsilon=0.3, delta=1e-6, only=only, actor="keeper")
        TrainingGuard(epsilon=0.3, delta=1e-6, ledger=ledger, scope=f"at{number}")
        with pytest.raises(DomainError, match="may spend"):
            TrainingGuard(epsilon=0.29, delta=1e-6, ledger=ledger, scope=f"at{number}")
    open_scope(ledger, "all", filter=None, actor="keeper")
    with pytest.raises(UnsupportedError, match="no filter bounds it"):
        TrainingGuard(epsilon=1, delta=1e-6, ledger=ledger, scope="all")
    open_partition(ledger, "all/parts", filter=PureFilter(1), actor="keeper")
    with pytest.raises(ScopeKindError):
        TrainingGuard(epsilon=1, delta=1e-6, ledger=ledger, scope="all/parts")


def test_a_fixed_size_sample_under_replacement(ledger: Ledger) -> None:
    guard = made(ledger, adjacency=Adjacency.REPLACE)
    round_ = FixedSizeSample(20.0, records=1000, batch=10)
    guard.begin(mechanism=round_)
    assert guard.epsilon() == round_.epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    with pytest.raises(DomainError, match="adjacency"):
        made(ledger, adjacency=Adjacency.ADD_REMOVE)


NAN = math.nan
BAD_STEPS: list[tuple[dict[str, Any], str]] = [
    ({"sigma": NAN}, "sigma"),
    ({"sigma": 0.0}, "sigma"),
    ({"sigma": -1.0}, "sigma"),
    ({"sigma": True}, "sigma"),
    ({"sigma": "1"}, "sigma"),
    ({"sigma": 1.0, "rate": 1.5}, "rate"),
    ({"sigma": 1.0, "rate": 0.0}, "rate"),
    ({"sigma": 1.0, "rate": NAN}, "rate"),
    ({}, "a step"),
    ({"rate": 0.1}, "a step"),
    ({"sigma": 1.0, "noise": 2.0}, "a step"),
    ({"sigma": 1.0, "mechanism": MECHANISM}, "a step"),
    ({"rate": 0.1, "mechanism": MECHANISM}, "a step"),
    ({"mechanism": "Gaussian(1.0)"}, "a step"),
    ({"sigma": 1.0, "delta": -1.0}, "delta"),
]


@pytest.mark.parametrize(("kind", "name"), BAD_STEPS, ids=str)
def test_a_bad_step_is_one_clear_error(kind: dict[str, Any], name: str) -> None:
    guard = made(filter=Budget(1, 1e-6, only="basic"))
    with pytest.raises(DomainError, match=f"^{name}"), guard.step(**kind):
        pytest.fail("it ran")
    assert guard.history().steps == ()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": NAN}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": NAN}, "delta"),
        ({"scope": "model"}, "ledger and scope"),
        ({"ledger": Ledger.open("memory:")}, "ledger and scope"),
        ({"ledger": "model.db", "scope": "model"}, "ledger"),
        ({"ledger": Ledger.open("memory:"), "scope": "a b"}, "path"),
        ({"run": ""}, "run"),
        ({"run": "r" * 250}, "run"),
        ({"actor": "a\nb"}, "actor"),
        ({"adjacency": "replace"}, "adjacency"),
        ({"filter": Fraction}, "filter"),
        ({"filter": MenuFilter}, "filter"),
        ({"filter": RenyiFilter(8.0, budget=3.0)}, "epsilon"),
    ],
    ids=lambda given: given if isinstance(given, str) else "-".join(given),
)
def test_a_bad_guard_is_one_clear_error(given: dict[str, Any], name: str) -> None:
    with pytest.raises(DomainError, match=f"^{name}"):
        TrainingGuard(**({"epsilon": 1, "delta": 1e-6} | given))


def test_what_was_asked_of_a_scope_that_is_there_must_fit(ledger: Ledger) -> None:
    made(ledger).begin(**STEP)
    for given, name in (
        ({"filter": PureFilter}, "filter"),
        ({"delta": 1e-7}, "epsilon"),
    ):
        with pytest.raises(DomainError, match=f"^{name}"):
            made(ledger, **given)
    made(ledger, delta=1e-5, epsilon=1.5)


@pytest.mark.parametrize(
    "schedule",
    [[], [(1.0, 0.1)], [(1.0, 0.1, 0)], [(1.0, 0.1, 1.5)], [3], [(MECHANISM, True)]],
    ids=str,
)
def test_a_bad_plan_is_one_clear_error(schedule: Any) -> None:
    guard = made()
    with pytest.raises(DomainError):
        guard.plan(schedule)
    assert guard.history().steps == ()


def test_a_closed_scope_and_a_ledger_that_is_gone_refuse_the_step(
    ledger: Ledger, tmp_path: Path
) -> None:
    guard = made(ledger)
    guard.begin(**STEP)
    ledger.close_scope("model", actor="keeper", key="over")
    assert guard.steps_left(**STEP) == 0
    with pytest.raises(ClosedScopeError), guard.step(**STEP):
        pytest.fail("it ran")
    gone = TrainingGuard(epsilon=1, delta=1e-6, ledger=ledger, scope="other")
    gone.begin(**STEP)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(StoreError), gone.step(**STEP):
        pytest.fail("it ran")
    ledger.close()
    with pytest.raises(LedgerError), gone.step(**STEP):
        pytest.fail("it ran")


def test_an_uncertain_redemption_is_asked_again_under_its_nonce(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard, redeem, nonces = made(ledger), Ledger.redeem, []

    def uncertain(own: Ledger, receipt: Any, *, actor: str, nonce: str) -> None:
        nonces.append(nonce)
        redeem(own, receipt, actor=actor, nonce=nonce)
        if len(nonces) == 1:
            raise StoreError("ledger.db", "the server went away", uncertain=True)

    monkeypatch.setattr(Ledger, "redeem", uncertain)
    guard.begin(**STEP)
    assert nonces[0] == nonces[1] and kinds_of(ledger) == [Entry.GRANTED, Entry.REDEEMED]


def test_the_campaign_of_kills_in_short(tmp_path: Path) -> None:
    said = campaign.campaign(tmp_path, times=8)
    assert "kills between charge and step" in said


@pytest.mark.parametrize("weakness", campaign.CONTROLS)
def test_the_controls_are_caught(tmp_path: Path, weakness: str) -> None:
    with pytest.raises(campaign.GuardError):
        campaign.campaign(tmp_path, times=60, weakness=weakness)
