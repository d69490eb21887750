"""Advice before the first answer: how much of a kind of work each budget of one target would grant."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from threading import Thread

from dpcompose import check
from dpcompose.adaptive import pricing
from dpcompose.adaptive.amount import Number, probability, target
from dpcompose.adaptive.budget import Budget
from dpcompose.adaptive.filter import Filter
from dpcompose.adaptive.menu_filter import MenuFilter
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, DPComposeError
from dpcompose.pictured import Card
from dpcompose.values import Adjacency, exact

Work = Sequence[tuple[Composable, int]]
Requested = Mapping[Composable, int]
MENU_WORK = 1e9
"""So much the search for a menu may take: advice is a matter of seconds."""
SECONDS = 8.0
"""So long the answers are waited for, in seconds of the processor."""
KINDS = ("budget", "pure", "basic", "zcdp", "renyi", "gaussian", MenuFilter.kind)
_TOO_LONG = f"it is not priced within {SECONDS:g} s of the processor: charge it to a budget, which takes its time"


@dataclass(frozen=True)
class FilterAdvice(Card):
    """The part of some work that one filter would grant.

    Args:
        kind: "budget", one theorem that it has alone (see `Budget`), or "menu".
        filter: The filter of the target; None if there is none.
        delta: The delta at which mechanisms are to be charged that have a curve instead of one; None if none needs it.
        work: How much of the work fits, 1 for all of it, as asked in any order; None without a limit.
        alone: How often each mechanism is granted if nothing else is asked; None without a limit.
        refusal: Why there is no filter, or no price for some mechanism; empty if there are.
    """

    kind: str
    filter: Filter | None = None
    delta: Fraction | None = None
    work: Fraction | None = Fraction(0)
    alone: tuple[int | None, ...] = ()
    refusal: str = ""


def advise(
    work: Work, epsilon: Number, *, delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> tuple[FilterAdvice, ...]:
    """The part of some work that each budget of one target would grant, the one that grants most of it first.

    It takes no more than ten seconds of the processor: a budget whose prices are not known by then has none.
    The advice is for whoever has not seen an answer yet: a budget is a promise only if it was fixed beforehand.

    >>> from dpcompose import Gaussian, Laplace
    >>> best = advise([(Laplace(64.0), 60), (Gaussian(50.0), 40)], 1.0, delta=1e-6)
    >>> [each.kind for each in best][:3], best[0].work > 1
    (['menu', 'renyi', 'zcdp'], True)

    Args:
        work: Mechanisms, and how often each is likely to be asked; integers from 0 to 10^15, not all 0.
        epsilon: The target, in nats; above 0.
        delta: The target, in (0, 1).
        adjacency: What one person's data may change.

    Raises:
        DomainError: If an argument is outside its domain.
    """
    check.member("adjacency", adjacency, Adjacency)
    requested: dict[Composable, int] = {}
    for mechanism, times in work:
        pricing.request(mechanism, None, adjacency)
        requested[mechanism] = requested.get(mechanism, 0) + check.times(times)
    requested = {mechanism: times for mechanism, times in requested.items() if times}
    if not requested:
        raise DomainError("work", work, "at least one mechanism that is asked at least once")
    target(epsilon, delta)
    advice = {kind: FilterAdvice(kind, refusal=_TOO_LONG) for kind in KINDS}
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            # The cheapest first; what is not done in time is refused.
            for kind in ("pure", "gaussian", "zcdp", "renyi", "basic", "budget", MenuFilter.kind):
                advice[kind] = _best(kind, requested, epsilon, delta, adjacency)
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=ask, name="advice", daemon=True)
    thread.start()
    end = time.process_time() + SECONDS
    while thread.is_alive() and time.process_time() < end:
        thread.join(0.05)
    if errors:
        raise errors[0]
    return tuple(sorted(dict(advice).values(), key=_order))


def _order(advice: FilterAdvice) -> Fraction | float:
    """Filters that grant more come first."""
    return -math.inf if advice.work is None else -advice.work


def _best(
    kind: str,
    requested: Requested,
    epsilon: Number,
    delta: Number,
    adjacency: Adjacency,
) -> FilterAdvice:
    """The best of the filters of one kind."""
    found = [
        FilterAdvice(kind, refusal="the deltas of the mechanisms leave nothing of the target's")
    ]
    for opened, charged in _candidates(kind, requested, epsilon, delta, adjacency):
        try:
            found.append(replace(_granted(opened(), charged, requested, adjacency), kind=kind))
        except DPComposeError as refusal:
            found.append(FilterAdvice(kind, refusal=str(refusal)))
    return min(reversed(found), key=_order)


def _candidates(
    kind: str,
    requested: Requested,
    epsilon: Number,
    delta: Number,
    adjacency: Adjacency,
) -> Iterator[tuple[Callable[[], Filter], Fraction | None]]:
    """The filters of a kind, and the delta of a charge under each: an equal part of the reserve."""
    if kind == MenuFilter.kind:
        menu, options = list(requested), {"adjacency": adjacency, "work": MENU_WORK}
        yield partial(MenuFilter.for_target, menu, epsilon, delta, **options), None
        return
    whole = exact(probability("delta", delta))
    if kind not in ("basic", "zcdp"):
        yield partial(Budget, epsilon, whole, only=None if kind == "budget" else kind), None
        return
    curves, declared = 0, Fraction(0)
    for mechanism, times in requested.items():
        promise = mechanism.approximate()
        curves += times if promise is None else 0
        declared += 0 if promise is None else exact(promise.delta) * times
    left = whole - declared
    for tenths in () if left <= 0 else (10,) if kind == "basic" else (0, 1, 5):
        charged = left * tenths / 10
        budget = partial(Budget, epsilon, whole, only=kind, reserve=declared + charged)
        yield budget, charged / curves if curves else None


def _granted(
    filter: Filter,
    delta: Fraction | None,
    requested: Requested,
    adjacency: Adjacency,
) -> FilterAdvice:
    """How much fits within one of the filter's sets of limits: the sums are linear, and their order does not matter."""
    state = filter.start(adjacency=adjacency)
    prices = [filter.step(state, mechanism, delta=delta)[1].price for mechanism in requested]
    priced = [(price, times) for price, times in zip(prices, requested.values(), strict=True)]
    whole = {
        each: sum((price[each] * times for price, times in priced), Fraction(0))
        for each in filter.limits
    }
    alone = [_fits(filter, price) for price in prices]
    counts = tuple(None if each is None else math.floor(each) for each in alone)
    return FilterAdvice(filter.kind, filter, delta, _fits(filter, whole), counts)


def _fits(filter: Filter, price: Mapping[str, Fraction]) -> Fraction | None:
    """The largest multiple of a price within one of the filter's sets of limits; None if all are."""
    part = filter.used(price)
    return Fraction(0) if part is None else None if part == 0 else 1 / part
