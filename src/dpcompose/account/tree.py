"""One moment of the ledger as a tree of scopes: what was opened, charged and spent, and what it can cost one person."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial, reduce
from itertools import product
from typing import Any, Self, TypeVar

from dpcompose.account.account import chain_cost
from dpcompose.account.scope import ScopeBudget
from dpcompose.account.target import Costs
from dpcompose.adaptive import Mileage, Odometer, known_pure
from dpcompose.composition import Composable, Composition, compose
from dpcompose.errors import DomainError, DPComposeError, UnsupportedError
from dpcompose.guarantee import Priced
from dpcompose.ledger import (
    Amount,
    Amounts,
    Entry,
    Kind,
    Ledger,
    Moment,
    Scope,
    paths_down_to,
)
from dpcompose.mechanisms import BlackBox, Concentrated, GaussianDP, parse
from dpcompose.pictured import Card
from dpcompose.values import Adjacency, Orientation, rounded_down, rounded_up


@dataclass(frozen=True)
class ExposureStatement(Card):
    """An upper bound on epsilon at the delta asked, or the reason why there is none.

    Args:
        epsilon: In nats; infinite if nothing finite is known.
        regime: What kind of statement it is: "fixed budgets", "sum along the path", "committed schedule", "odometer" or
            "unavailable".
        holds: One sentence: when it holds, or why there is nothing.
        theorem: What gives the number.
        failure: For an odometer, the probability that the loss is larger; it replaces the delta.
    """

    epsilon: float
    regime: str
    holds: str
    theorem: str = ""
    failure: float = 0.0

    @property
    def available(self) -> bool:
        """Whether there is a finite number."""
        return math.isfinite(self.epsilon)


class NoNumberError(Exception):
    """Why there is no number about a person, in one sentence."""


RECORD = "open elsewhere"
"""The name, in an opening's description, of the hashes of the entries that opened budgets in other trees, by path."""

FIXED = "fixed-"
"""How the names of the scopes begin that hold such records."""


@dataclass(frozen=True)
class Tree:
    """A scope, and what below it is about the person.

    Args:
        chain: The scopes that its charges reach, the highest first; itself the last.
        charges: The entries of its own charges, oldest first.
        children: The scopes below it that are about the person.
        chosen: Whether a path names this scope or one above it: then everything below it is about the person.
        odometer: The nearest one at it or above, with the path and the entry where it was fixed.
        hash: Of the entry that opened it.
        records: For the top-level scope, the entries below it that record hashes of openings elsewhere, with these.
    """

    chain: tuple[ScopeBudget, ...]
    charges: tuple[Entry, ...]
    children: tuple[Tree, ...]
    chosen: bool
    odometer: tuple[str, Odometer, int] | None
    hash: str = ""
    records: tuple[tuple[int, frozenset[str]], ...] = ()

    @classmethod
    def of(cls, ledger: Moment, root: str, paths: Sequence[str], *, priced: bool = False) -> Self:
        """The tree below a top-level scope, of the scopes on the way to the paths and of all below them.

        Args:
            ledger: Where.
            root: The top-level scope.
            paths: Scopes in its tree.
            priced: Whether scopes that cap amounts and name no filter are left out, with all below them.

        Raises:
            UnsupportedError: If there is such a scope, and it is not left out.
        """
        snapshot = ledger.snapshot
        whole = [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]
        above = {each for path in whole for each in paths_down_to(path)[:-1]}
        scopes = [ledger.balance(path).scope for path in above]
        scopes += [each for path in whole for each in ledger.scopes(path)]
        budgets = _budgets(sorted(scopes, key=lambda scope: scope.path), priced=priced)
        charges: defaultdict[str, list[Entry]] = defaultdict(list)
        hashes: dict[str, str] = {}
        of_above = [record for path in above for record in snapshot.records_of(path, below=False)]
        of_whole = [record for path in whole for record in snapshot.records_of(path, below=True)]
        for entry in (record.entry for record in (*of_above, *of_whole)):
            if entry.kind == Entry.GRANTED and entry.scope in budgets:
                charges[entry.scope].append(entry)
            elif entry.kind == Entry.OPENED:
                hashes[entry.scope] = entry.hash
        fixed = f"{root}/{FIXED}"
        notes = [node.scope for node in snapshot.nodes_between(fixed, f"{fixed[:-1]}.")]
        records = [
            (each.opened, _hashes(each.description[RECORD]))
            for each in notes
            if RECORD in each.description
        ]
        below: defaultdict[str, list[str]] = defaultdict(list)
        for path in budgets:
            below[path.rpartition("/")[0]].append(path)

        def built(
            path: str, over: tuple[ScopeBudget, ...], above: tuple[str, Odometer, int] | None
        ) -> Self:
            scope, own = budgets[path].scope, budgets[path].odometer
            chain = (*over, budgets[path])
            reached = () if scope.kind is Kind.SLOTS else chain
            nearest = (path, own, scope.opened) if own is not None else above
            children = tuple(built(child, reached, nearest) for child in below[path])
            chosen = any(path == each or path.startswith(f"{each}/") for each in paths)
            recorded = tuple(records) if path == root else ()
            own_hash, own_charges = hashes.get(path, ""), tuple(charges[path])
            return cls(
                chain, own_charges, children, chosen, nearest, hash=own_hash, records=recorded
            )

        return built(root, (), None)

    @property
    def budget(self) -> ScopeBudget:
        """The scope."""
        return self.chain[-1]

    @property
    def kind(self) -> Kind:
        """The kind of the scope."""
        return self.budget.scope.kind

    @property
    def parts_people(self) -> bool:
        """Whether the person is in one child only, nobody said which: the worst of them counts."""
        return self.kind is Kind.PARTITION and self.chosen

    @property
    def first(self) -> float:
        """The number of the first charge in it; infinite if there is none."""
        return min(
            (entry.sequence for node in self.all() for entry in node.charges[:1]), default=math.inf
        )

    def records_before_charges(self, hashes: Iterable[str]) -> bool:
        """Whether one entry, before the first charge in it, records all of these."""
        return any(
            number < self.first and recorded >= set(hashes) for number, recorded in self.records
        )

    @cached_property
    def standings(self) -> list[Standing]:
        """The standing of each of its charges; those of the same mechanism and cost share one."""
        known: dict[tuple[object, Amounts], Standing] = {}
        requests = [(entry.description.get("mechanism"), entry.cost) for entry in self.charges]
        for entry, request in zip(self.charges, requests, strict=True):
            if request not in known:
                known[request] = Standing(_named(entry), entry.cost, self.chain)
        return [known[request] for request in requests]

    def all(self) -> Iterator[Tree]:
        """This scope and all below it."""
        yield self
        for child in self.children:
            yield from child.all()


def trees_of(ledger: Moment, paths: Sequence[str]) -> list[Tree]:
    """For each top-level scope of some paths one tree, from it down to the scopes of these paths.

    Raises:
        DomainError: If `paths` is no sequence, or an empty one.
        UnknownScopeError: If there is no such scope.
    """
    if isinstance(paths, str) or not isinstance(paths, Sequence) or not paths:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("paths", paths, "a sequence of at least one path")
    inside: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        scope = ledger.balance(path).scope
        inside.setdefault(scope.root, []).append(scope.path)
    return [Tree.of(ledger, root, below) for root, below in inside.items()]


def _budgets(scopes: Sequence[Scope], *, priced: bool) -> dict[str, ScopeBudget]:
    found: dict[str, ScopeBudget] = {}
    for scope in scopes:
        if scope.parent is None or scope.parent in found:
            with suppress(UnsupportedError) if priced else nullcontext():
                found[scope.path] = ScopeBudget.of(scope)
    return found


def _hashes(recorded: Any) -> frozenset[str]:
    """The hashes of a record, which anybody may have written; what cannot be read records nothing."""
    found = recorded.values() if isinstance(recorded, dict) else ()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return frozenset(each for each in found if isinstance(each, str))  # pyright: ignore[reportUnknownVariableType]


@dataclass(frozen=True)
class Standing:
    """The mechanisms that a charge is known to be no worse than.

    Anybody who charges writes the description of his charge: a number in it is not read, and a mechanism only where its
    price is what was paid. A charge of more, or without a mechanism, is one of what the filters take that amount for.

    Args:
        named: The mechanism that its entry names, if it can be read.
        cost: What was paid.
        chain: The scopes that were charged, the highest first.
    """

    named: Composable | None
    cost: Amounts
    chain: Sequence[ScopeBudget]

    @cached_property
    def _prices(self) -> list[dict[str, Amount]]:
        return [] if self.named is None else _prices(self.named, self.cost, self.chain)

    @property
    def is_short(self) -> bool:
        """Whether it paid less than the mechanism that it names costs."""
        return _is_short(self._prices, self.cost)

    @cached_property
    def mechanisms(self) -> Sequence[Priced]:
        """It is no worse than each of them; none if nothing is known."""
        cost = dict(self.cost)
        if self.named is not None and (self.is_short or cost in self._prices):
            return [self.named]
        paid = {name: rounded_up(amount.fraction) for name, amount in cost.items()}
        kinds = [each.filter.kind for each in self.chain if each.filter is not None]
        taken = [_taken_for(kind, paid, _adjacency(self.chain)) for kind in kinds]
        return [each for each in taken if each is not None]

    @cached_property
    def pure(self) -> Fraction | None:
        """The smallest pure epsilon that is known."""
        found: list[Fraction] = []
        for mechanism in self.mechanisms:
            with suppress(UnsupportedError):
                known = known_pure(mechanism, adjacency=_adjacency(self.chain))
                found += [] if known is None else [known]
        return Amount.up(min(found)).fraction if found else None

    def mileage(self, odometer: Odometer) -> Mileage | None:
        """The mileage it adds to an odometer, cut at the delta that was paid where no other is known."""
        paid = [rounded_down(self.cost["delta"].fraction)] if "delta" in self.cost else []
        for mechanism, delta in product(self.mechanisms, [None, *paid]):
            with suppress(UnsupportedError, DomainError):
                return odometer.mileage(mechanism, delta=delta, adjacency=_adjacency(self.chain))
        return None


def underpaid(trees: Sequence[Tree], moment: Moment) -> Iterator[str]:
    """The charges that paid less than their mechanism costs, in words: no budget above one promises anything."""
    for node in [node for tree in trees for node in tree.all()]:
        if node.kind is Kind.SLOTS and len(node.chain) > 1:
            paid = moment.balance(node.budget.path).spent
            if _is_short(_prices(node.budget.curators, paid, node.chain[:-1]), paid):
                yield f"opening {node.budget.path!r} was charged less above than its slots promise"
        for entry, stands in zip(node.charges, node.standings, strict=True):
            if stands.is_short:
                yield f"charge {entry.sequence} of {entry.scope!r} paid less than the mechanism it names costs"


def underpaid_charges(ledger: Ledger) -> tuple[str, ...]:
    """Every charge whose amounts are below the price of the mechanism that it names, priced anew, in words.

    `Account.charge` writes none; whoever writes amounts and a description of their own can. Nothing is known of charges
    that name no mechanism, nor whether the mechanism that is named is the one that ran.
    """
    with ledger.moment() as moment:
        priced = [
            root
            for root in moment.snapshot.roots()
            if _budgets([moment.balance(root).scope], priced=True)
        ]
        trees = [Tree.of(moment, root, [root], priced=True) for root in priced]
        return tuple(underpaid(trees, moment))


def _named(entry: Entry) -> Composable | None:
    """The mechanism that an entry names, if it can be read."""
    text = entry.description.get("mechanism")
    with suppress(DPComposeError):
        return None if text is None else parse(text)
    return None


def _prices(
    mechanism: Priced, cost: Costs, chain: Sequence[ScopeBudget]
) -> list[dict[str, Amount]]:
    """Its prices under the filters of a chain, if there are any: with no delta named, and at the one that was paid."""
    prices: list[dict[str, Amount]] = []
    if all(each.filter is None for each in chain):
        return prices
    for delta in (None, cost["delta"].fraction) if "delta" in cost else (None,):
        with suppress(DPComposeError):
            prices.append(chain_cost(chain, mechanism, delta=delta, adjacency=_adjacency(chain)))
    return prices


def _is_short(prices: Sequence[Costs], cost: Costs) -> bool:
    """Whether every price is above what was paid; without a price, nothing is known to be."""
    none = Amount(0)
    paid = [all(each <= cost.get(name, none) for name, each in price.items()) for price in prices]
    return bool(prices) and not any(paid)


def _adjacency(chain: Sequence[ScopeBudget]) -> Adjacency:
    """The adjacency of its budgets, which are all opened under one; a chain under several has no number."""
    return next(
        (each.adjacency for each in chain if each.filter is not None and each.adjacency),
        Adjacency.ADD_REMOVE,
    )


def _taken_for(kind: str, paid: Mapping[str, float], adjacency: Adjacency) -> Priced | None:
    """The mechanism that an amount stands for under a kind of filter; the other kinds have none."""
    match kind:
        case "pure" | "basic":
            lost = paid["delta"] if kind == "basic" else 0.0
            return BlackBox(paid["epsilon"], delta=lost, holds_under=adjacency)
        case "concentrated":
            return Concentrated(paid["rho"], delta=paid["delta"], holds_under=adjacency)
        case "gaussian":
            mu = math.nextafter(math.sqrt(paid["mu squared"]), math.inf)
            return GaussianDP(mu, holds_under=adjacency)
        case _:
            return None


MOST_ALTERNATIVES = 64
BETWEEN = "; if no odometer was chosen from answers in another top-level scope"
NATURAL = "composing charges that were chosen along the way tightly, after the fact, is unsound (the natural filter)"


def spending(trees: Sequence[Tree], *, delta: float) -> ExposureStatement:
    """The statement for a person in all of these trees.

    Raises:
        NoNumberError: If there is none.
    """
    nodes = [node for tree in trees for node in tree.all()]
    if not any(node.charges for node in nodes):
        return ExposureStatement(0.0, "sum along the path", "nothing was charged")
    # That a partition parts people depends on the adjacency, too.
    adjacencies = {node.budget.adjacency for node in nodes if node.charges or node.parts_people}
    if len(adjacencies) > 1:
        raise NoNumberError("the charges are priced under different adjacencies")
    with suppress(NoNumberError):
        pure = rounded_up(_met(trees, _pure, operator.add, max))
        holds = "along every path: all charges are pure"
        return ExposureStatement(pure, "sum along the path", holds, "sum")
    with suppress(NoNumberError):
        return _committed(trees, delta, next(iter(adjacencies)) or Adjacency.ADD_REMOVE)
    return _odometers(trees)


Met = TypeVar("Met")
Merge = Callable[[Met, Met], Met]


def _met(
    trees: Sequence[Tree], own: Callable[[Tree], Met], both: Merge[Met], either: Merge[Met]
) -> Met:
    """All that a person met in these trees: of a scope its own and all below it, of a partition what either child has."""

    def met(tree: Tree) -> Met:
        below = [met(child) for child in tree.children]
        if tree.parts_people and below:
            return reduce(either, below)
        return reduce(both, below, own(tree))

    return reduce(both, map(met, trees))


def _pure(tree: Tree) -> Fraction:
    """The sum of the epsilons of a scope itself."""
    known = [each.pure for each in tree.standings if each.pure is not None]
    if len(known) < len(tree.charges):
        raise NoNumberError("a charge is not pure")
    return sum(known, Fraction(0))


# Committed schedules


def _committed(trees: Sequence[Tree], delta: float, adjacency: Adjacency) -> ExposureStatement:
    """The composition of what was charged, if all of it stood on schedules committed before the first answer.

    Before the first one about the person in any of the scopes: a schedule that is committed after an answer elsewhere
    was chosen from it. Between two top-level scopes nothing orders the entries, so that only one may have charges.
    """
    charged = [tree for tree in trees if tree.first < math.inf]
    scheduled = [node for tree in trees for node in tree.all() if node.budget.schedule]
    if len(charged) > 1 or any(
        node not in charged[0].all() or node.budget.scope.opened > charged[0].first
        for node in scheduled
    ):
        raise NoNumberError("a schedule was committed after an answer")
    alternatives = _met(trees, _own_schedule, _joined, _listed)

    def epsilon(each: Composition) -> float:
        # Nobody recorded that the same world held the record in every round.
        return each.epsilon(delta=delta, adjacency=adjacency, orientation=Orientation.FREE).upper

    done, whole = (
        max(epsilon(each) for each in alternative)
        for alternative in zip(*alternatives, strict=True)
    )
    finished = all(len(node.charges) == node.budget.rounds for tree in trees for node in tree.all())
    holds = (
        "the schedules were committed before the first answer, and are finished"
        if finished
        else "the schedules were committed before the first answer; for the rounds so far, if their number was not"
        f" chosen from the answers; for the whole schedules, always: epsilon {whole!r}"
    )
    return ExposureStatement(
        done, "committed schedule", holds, "composition of the schedules, certified"
    )


Alternative = tuple[Composition, Composition]
"""The charges so far, and the whole schedules."""


def _own_schedule(tree: Tree) -> list[Alternative]:
    """The composition of a scope itself."""
    if not tree.charges and not tree.budget.schedule:
        return [(compose(), compose())]
    texts = [entry.description.get("mechanism") for entry in tree.charges]
    committed = [tree.budget.scope.committed(position) for position in range(len(texts))]
    if None in texts or texts != committed:
        raise NoNumberError("a charge was not on a schedule")

    def first(rounds: int) -> Composition:
        return compose(*[each * times for each, times in tree.budget.committed(rounds)])

    return [(first(len(texts)), first(tree.budget.rounds))]


def _joined(one: list[Alternative], other: list[Alternative]) -> list[Alternative]:
    """Every choice of one alternative from each, composed, if these are not too many."""
    if len(one) * len(other) > MOST_ALTERNATIVES:
        raise NoNumberError("there are too many schedules")
    return [(done + more, whole + all) for done, whole in one for more, all in other]


def _listed(one: list[Alternative], other: list[Alternative]) -> list[Alternative]:
    """The alternatives of both, if these are not too many."""
    if len(one) + len(other) > MOST_ALTERNATIVES:
        raise NoNumberError("there are too many schedules")
    return one + other


# Odometers


Mileages = dict[str, Mileage]
"""The mileage that each odometer must show, by its path; and at an empty path the pure epsilons that none covers."""


def _odometers(trees: Sequence[Tree]) -> ExposureStatement:
    own: dict[str, Mileages] = {}
    odometers: dict[str, Odometer] = {}
    for tree in trees:
        for node in tree.all():
            if node.odometer is None:
                continue
            path, odometer, opened = node.odometer
            odometers[path] = odometer
            if node.charges and opened > tree.first:
                late = f"the odometer of {path!r} was fixed after the first answer"
                raise NoNumberError(f"{late}, and {NATURAL}")
        own |= {node.budget.path: _own_mileages(node) for node in tree.all()}
    both, either = partial(_merged, both=operator.add), partial(_merged, both=_largest)
    mileages = _met(trees, lambda tree: own[tree.budget.path], both, either)
    total, failure = rounded_up(mileages.pop("").epsilon or Fraction(0)), 0.0
    for path, mileage in mileages.items():
        odometer = odometers[path]
        if not mileage.failure <= Fraction(odometer.mechanism_delta):
            kept = f"the odometer of {path!r} kept {odometer.mechanism_delta!r} for deltas"
            raise NoNumberError(f"{kept}; more was charged")
        reading = odometer.read(mileage)
        total = math.nextafter(total + reading.epsilon, math.inf)
        if reading.failure:
            failure = math.nextafter(failure + reading.failure, math.inf)
    holds = (
        "a bound on the realized loss at all times at once, but with the stated probability, fixed at each odometer's"
        f" opening; not an (epsilon, delta) guarantee{BETWEEN if len(mileages) > 1 < len(trees) else ''}"
    )
    theorem = "; ".join(sorted({odometers[path].boundary.kind for path in mileages}))
    return ExposureStatement(total, "odometer", holds, theorem, min(failure, 1.0))


def _own_mileages(tree: Tree) -> Mileages:
    """The charges of a scope itself: under its odometer, or, if they are pure, by themselves."""
    covered, pure = Mileage(), Mileage()
    for stands in tree.standings:
        mileage = None if tree.odometer is None else stands.mileage(tree.odometer[1])
        if mileage is not None:
            covered += mileage
        elif stands.pure is not None:
            pure += Mileage(epsilon=stands.pure)
        else:
            uncovered = f"no odometer was fixed for the charges of {tree.budget.path!r}"
            raise NoNumberError(f"{uncovered}, and {NATURAL}")
    return {"": pure} | ({} if tree.odometer is None else {tree.odometer[0]: covered})


def _merged(
    one: Mileages, other: Mileages, *, both: Callable[[Mileage, Mileage], Mileage]
) -> Mileages:
    return {
        path: both(one.get(path, Mileage()), other.get(path, Mileage())) for path in one | other
    }


def _largest(one: Mileage, other: Mileage) -> Mileage:
    """The larger of two mileages in every part, so that neither exceeds it."""
    both = None if one.epsilon is None or other.epsilon is None else max(one.epsilon, other.epsilon)
    return Mileage(
        max(one.rho, other.rho), max(one.drift, other.drift), max(one.failure, other.failure), both
    )
