"""The exposure of one person: what the fixed budgets promise, and what was spent, each with where it holds.

Promised is the guarantee of the fixed budgets that hold the person, composed by the tightest theorem.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from typing import Any

from dpcompose import check
from dpcompose.account.scope import described
from dpcompose.account.target import NumericLiteral
from dpcompose.account.tree import (
    FIXED,
    RECORD,
    ExposureStatement,
    NoNumberError,
    Tree,
    spending,
    trees_of,
    underpaid,
)
from dpcompose.adaptive import Curators, Filter, Total, delta_without_rounding
from dpcompose.composition import Composable, compose
from dpcompose.errors import DomainError, UnsupportedError, few_digits
from dpcompose.ledger import Kind, Ledger, Renewal
from dpcompose.mechanisms import BlackBox, Concentrated, GaussianDP
from dpcompose.pictured import Card
from dpcompose.values import Adjacency, exact

Budgets = Counter[Curators]
MOST_PERIODS = 10**6
_NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)
Window = NumericLiteral | timedelta
Length = Renewal | Fraction | None
_HOLDS = (
    "whatever is asked, of whichever of these databases, in any order; if these are all the scopes that hold the"
    " person, those that are closed or were never used included"
)
_NATURAL = "a budget that is opened after an answer may be chosen by it (the natural filter)"


@dataclass(frozen=True)
class Exposure(Card):
    """The exposure of one person who is present in these scopes.

    Args:
        paths: The scopes that hold the person.
        delta: The delta of both numbers.
        promised: The guarantee of the fixed budgets: it holds whatever is asked from now on.
        spent: A number on what has been charged so far, and the regime in which it holds.
        adjacency: What one person's data may change, in both numbers; None where the scopes do not agree on it.
        window: The window that was asked, as text; empty for none.
        periods: How many periods of each budget that renews are promised, by path.
    """

    paths: tuple[str, ...]
    delta: float
    promised: ExposureStatement
    spent: ExposureStatement
    adjacency: Adjacency | None
    window: str = ""
    periods: Mapping[str, int] = field(default_factory=dict[str, int])


def exposure(
    ledger: Ledger, *, paths: Sequence[str], delta: float, window: Window | None = None
) -> Exposure:
    """The exposure of a person in all of `paths`, which must be all the scopes that hold the person.

    Which they are must have been fixed before the first charge to any of them; a scope that was never used, that is
    closed or has expired is one of them all the same. To open two and name the one that was used is the natural filter.

    All charges of these scopes, of the scopes below them and, once, of the scopes above them are about the person. Of a
    partition on the way to a path only that child counts, of one below a path the worst child, of slots each one.

    `promised`: the tightest composition of the budgets at the tops, each in full, if all of them were opened before the
    first charge to any of these scopes, to one above them, in a slot or in a child of a partition. Budgets in several
    top-level scopes compose if each tree records so before its first charge (`fix_budgets`).

    A budget that renews is promised for a `window` alone: for every period that it may touch, at most ceil(window) + 1
    of them, wherever it lies. What is charged in the window is what counts; answers may come later.

    `spent`, in all periods so far: for pure charges their sum, along every path; for charges on schedules that were
    committed before the first answer the tight composition; otherwise the readings of odometers whose failure
    probability was fixed at opening; otherwise nothing. Composing charges that were chosen along the way tightly, after
    the fact, is the natural filter, and is not offered.

    Args:
        ledger: Where.
        paths: At least one scope.
        delta: In [0, 1].
        window: How long, if budgets renew: a number of periods, or a duration such as "year" or "P18M".

    Raises:
        UnknownScopeError: If there is no such scope.
        DomainError: If delta or the window is outside its domain, or no path is named.
        UnsupportedError: If a scope caps amounts and names no filter.
    """
    delta = check.probability("delta", delta)
    length = None if window is None else _length(window)
    with ledger.moment() as moment:
        trees = trees_of(moment, paths)
        short = next(underpaid(trees, moment), None)
    stated = {
        node.budget.adjacency
        for tree in trees
        for node in tree.all()
        if node.budget.filter or node.charges
    }
    try:
        if short is not None:
            raise NoNumberError(short)
        promised, periods = _promised(trees, length, delta=delta)
    except NoNumberError as reason:
        promised, periods = _without_number(reason), {}
    try:
        spent = spending(trees, delta=delta)
    except NoNumberError as reason:
        spent = _without_number(reason)
    adjacency = next(iter(stated)) if len(stated) == 1 else None
    parts = tuple(paths), delta, promised, spent, adjacency
    return Exposure(*parts, window=_window_text(length), periods=periods)


def _without_number(reason: NoNumberError) -> ExposureStatement:
    return ExposureStatement(math.inf, "unavailable", str(reason))


def _length(window: Window) -> Length:
    """A window as a duration, or as a number of periods, exactly."""
    if isinstance(window, timedelta) or (isinstance(window, str) and not _NUMBER.fullmatch(window)):
        return Renewal.read(window, name="window")
    if not isinstance(window, str):
        check.positive("window", window)
    if not 0 < (length := Fraction(window)) <= MOST_PERIODS:
        domain = f"more than 0 and at most {MOST_PERIODS} periods, or a duration such as P3Y"
        raise DomainError("window", window, domain)
    return length


def _window_text(length: Length) -> str:
    if isinstance(length, Fraction):
        return f"{few_digits(length, up=True)} periods"
    return "" if length is None else length.text


def _periods(tops: Sequence[Tree], length: Length) -> dict[str, int]:
    """How many periods of each budget that renews the window touches."""
    renewals = {
        top.budget.path: each for top in tops if (each := top.budget.scope.renewal) is not None
    }
    if length is None:
        for path, each in renewals.items():
            endless = f"{path!r} renews {each.words}, and its periods add up without an end"
            raise NoNumberError(f"{endless}: name a window")
        return {}
    if isinstance(length, Fraction) and len(set(renewals.values())) > 1:
        different = "budgets renew after different times"
        raise NoNumberError(f"{different}: name the window as a duration, such as P3Y")
    return {path: each.touched(length) for path, each in renewals.items()}


def _promised(
    trees: Sequence[Tree], length: Length, *, delta: float
) -> tuple[ExposureStatement, dict[str, int]]:
    """The statement for a person in all of these trees, and how many periods of each budget that renews it counts.

    Budgets compose by theorems for what is fixed in advance, so all of them must have been open before the first charge
    in any of the trees. Within one tree the numbers of the entries say so. Between two trees nothing does but an entry
    of the one, before its first charge, that holds the hashes of the other's openings: whoever wrote it, it could not
    be written before them.

    Raises:
        NoNumberError: If there is none.
    """
    tops = [(tree, tops_of(tree)) for tree in trees]
    for tree, own in tops:
        _require_early(tree, own)
        _require_recorded(
            tree, [top for other, found in tops if other is not tree for top in found]
        )
    found = [top for _, own in tops for top in own]
    periods = _periods(found, length)
    budgets: Budgets = Counter()
    for top in found:
        budgets[top.budget.curators] += periods.get(top.budget.path, 1)
    if len({each.adjacency for each in budgets}) > 1:
        raise NoNumberError("the budgets are stated under different adjacencies")
    total = (
        _least(tuple(budgets.items()), delta) if budgets else Total(0.0, "no budget was opened", "")
    )
    if not math.isfinite(total.epsilon):
        nothing = f"the budgets promise nothing finite at delta = {delta!r}"
        raise NoNumberError(f"{nothing}: name a larger one")
    counted = [
        f"; {number} periods of {path!r}, as many as the window may touch"
        for path, number in periods.items()
    ]
    holds, theorem = "".join([_HOLDS, *counted]), f"{total.theorem} {total.reference}".strip()
    return ExposureStatement(total.epsilon, "fixed budgets", holds, theorem), periods


def _require_early(tree: Tree, tops: Sequence[Tree]) -> None:
    """Raise NoNumberError unless the budgets of a tree were fixed before its first charge."""
    charged = [node.charges[0] for node in tree.all() if node.charges]
    first = min(charged, key=lambda entry: entry.sequence, default=None)
    for top in tops:
        if first is not None and not top.budget.scope.opened < first.sequence:
            opened = f"{top.budget.path!r} was opened by entry {top.budget.scope.opened} of {tree.budget.path!r}"
            charge = f"entry {first.sequence} had charged {first.scope!r}"
            raise NoNumberError(f"{opened}, after {charge}: {_NATURAL}")


def _require_recorded(tree: Tree, others: Sequence[Tree]) -> None:
    """Raise NoNumberError unless it shows that budgets of other trees were open before the first charge in this one."""
    if others and not tree.records_before_charges(top.hash for top in others):
        when = "" if tree.first == math.inf else f" before its first charge, entry {tree.first}"
        names = ", ".join(repr(top.budget.path) for top in others)
        unrecorded = f"no entry of {tree.budget.path!r}{when} records that {names} were open"
        remedy = "call account.fix_budgets before the first charge"
        raise NoNumberError(f"{unrecorded}, and {_NATURAL}: {remedy}")


def tops_of(tree: Tree) -> list[Tree]:
    """The scopes whose budgets bound everything about the person in a tree.

    A filter bounds its own charges and everything below it, slots included, which it was charged when they were opened.

    Raises:
        NoNumberError: If something has no bound.
    """
    is_capped, path = tree.budget.filter is not None, tree.budget.path
    if tree.chosen if tree.kind is Kind.SLOTS else is_capped:
        return [tree]
    if tree.kind is Kind.FILTER and (tree.charges or tree.chosen):
        raise NoNumberError(f"{path!r} has no cap of its own, and nothing above it has one")
    if tree.kind is Kind.PARTITION and tree.chosen:
        uncapped = f"{path!r} is a partition without a cap"
        raise NoNumberError(f"{uncapped}: a child opened later may hold the person")
    return [top for child in tree.children for top in tops_of(child)]


@lru_cache(maxsize=1 << 10)
def _least(budgets: tuple[tuple[Curators, int], ...], delta: float) -> Total:
    """The least of all totals, each true at this delta; many people have the same budgets."""
    return min(_totals(budgets, delta), key=lambda total: total.epsilon)


def _totals(budgets: Iterable[tuple[Curators, int]], delta: float) -> Iterable[Total]:
    """Every theorem that applies to these budgets together."""
    counts: Counter[tuple[Filter, Adjacency]] = Counter()
    for each, times in budgets:
        counts[each.filter, each.adjacency] += each.count * times
    if len(counts) == 1:
        ((filter, adjacency), times) = next(iter(counts.items()))
        yield Curators(times, filter=filter, adjacency=adjacency).total(delta=delta)
        return
    omitted = [each for (filter, _), times in counts.items() for each in filter.omitted(times)]
    at = delta_without_rounding(exact(delta), omitted)
    part = delta / (2 * len(counts))
    forms = [_forms(filter, times, part) for (filter, _), times in counts.items()]
    for parts in zip(*forms, strict=True):
        mechanisms = [each for each in parts if each is not None]
        if len(mechanisms) == len(parts):
            found = compose(*mechanisms).epsilon(delta=at)
            yield Total(
                found.upper,
                f"composition of the guarantees, {found.certificate.method}",
                "[VadhanZhang2023]",
            )
    yield Total(math.inf, "none applies", "")


def _forms(filter: Filter, times: int, delta: float) -> tuple[Composable | None, ...]:
    """Three mechanisms that hold for `times` budgets with the same filter together; None where one is not known.

    First zCDP: a rho for all charges inside, and the delta that they leave out of it. Then (epsilon, delta) for each: what
    the filter states, or else what it promises at delta / times. Last the tightest: a Gaussian if the filter is one of
    Gaussian DP, else the (epsilon, delta) if the filter states it, else the rho.
    """
    known, promise = Curators(times, filter=filter).zcdp(), filter.promise()
    concentrated = None if known is None else Concentrated(known.rho, delta=known.delta)
    promised = None
    with suppress(ValueError):
        if promise is None:
            one = BlackBox(filter.epsilon_at(delta=delta / times), delta=delta / times)
        else:
            one = BlackBox(promise.epsilon, delta=promise.delta)
        promised = one * times
    mu = (filter.promised() * times).gdp()
    if mu is not None:
        return concentrated, promised, GaussianDP(mu)
    return concentrated, promised, concentrated if promise is None else promised


def fix_budgets(ledger: Ledger, *, paths: Sequence[str], actor: str) -> tuple[str, ...]:
    """Record in every tree of `paths` that the budgets of the others are open, before anything is charged.

    What one person is promised by budgets in several top-level scopes (`exposure`) holds if all of them were fixed
    before the first answer, and entries of different trees have no order but by what they record. So each tree gets one
    scope that caps nothing, charges nothing, and holds the hashes of the entries that opened the others' budgets. Open
    all budgets first, then call this, then charge. In one tree nothing needs to be recorded.

    Args:
        ledger: Where.
        paths: All scopes that hold the person.
        actor: Who records it.

    Returns:
        The paths of the scopes that hold the records.

    Raises:
        UnsupportedError: If a tree was charged before, if something about the person has no budget, or if a top-level
            scope holds slots, each of whose children is one of them.
        DomainError, LedgerError: See `exposure` and `Ledger.scope`.
    """
    check.line("actor", actor)
    with ledger.moment() as moment:
        trees = trees_of(moment, paths)
    try:
        tops = [(tree, tops_of(tree)) for tree in trees]
    except NoNumberError as reason:
        raise UnsupportedError(f"fixing the budgets of {list(paths)!r}", str(reason)) from None
    missing: list[tuple[str, dict[str, Any]]] = []
    for tree, _ in tops if len(tops) > 1 else ():
        others = {
            top.budget.path: top.hash for other, found in tops if other is not tree for top in found
        }
        if not tree.records_before_charges(others.values()):
            missing.append(_record(tree, others))
    for path, description in missing:
        ledger.scope(path, kind=Kind.FILTER, description=description, actor=actor)
    return tuple(path for path, _ in missing)


def _record(tree: Tree, others: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """The path and the description of the scope that records them."""
    root = tree.budget
    what = f"fixing the budgets with {root.path!r}"
    if tree.first < math.inf:
        reason = (
            f"entry {tree.first} charged it, and what is opened after an answer may be chosen by it"
        )
        raise UnsupportedError(what, reason, "Open other scopes")
    if tree.kind is Kind.SLOTS:
        reason = "each of its children is a slot, and none may hold a record"
        raise UnsupportedError(what, reason, "Open the slots below another scope")
    if root.adjacency is None:
        raise DomainError("paths", root.path, "scopes that were opened with account.open_scope")
    name = sha256("".join(sorted(others.values())).encode()).hexdigest()[:16]
    return f"{root.path}/{FIXED}{name}", described(None, root.adjacency) | {RECORD: others}
