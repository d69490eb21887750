"""One moment of the ledger as a tree of scopes: what was opened, charged and spent, and what it can cost one person."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Self, TypeVar

from dpcompose.account.account import chain_cost
from dpcompose.account.scope import ScopeBudget
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


def unavailable(why: str) -> ExposureStatement:
    """A statement without a number, and its reason."""
    return ExposureStatement(math.inf, "unavailable", why)


RECORD = "open elsewhere"
"""The name, in an opening's description, of the hashes of the entries that opened budgets in other trees, by path."""

FIXED = "fixed-"
"""How the names of the scopes begin that hold such records."""


@dataclass(frozen=True)
class Tree:
    """A scope, and what below it is about the person.

    Args:
        budget: The scope.
        charges: The entries of its own charges, oldest first.
        children: The scopes below it that are about the person.
        chosen: Whether a path names this scope or one above it: then everything below it is about the person.
        odometer: The nearest one at it or above, with the path and the entry where it was fixed.
        hash: Of the entry that opened it.
        records: For the top-level scope, the entries below it that record hashes of openings elsewhere, with these.
    """

    budget: ScopeBudget
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
        scopes = [ledger.balance(path).scope for path in above] + [
            each for path in whole for each in ledger.scopes(path)
        ]
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
        recorded_by = [node.scope for node in snapshot.nodes_between(fixed, f"{fixed[:-1]}.")]
        records = [
            (each.opened, _hashes(each.description[RECORD]))
            for each in recorded_by
            if RECORD in each.description
        ]
        below: defaultdict[str, list[str]] = defaultdict(list)
        for path in budgets:
            below[path.rpartition("/")[0]].append(path)

        def built(path: str, above: tuple[str, Odometer, int] | None) -> Self:
            own = budgets[path].odometer
            nearest = (path, own, budgets[path].scope.opened) if own is not None else above
            children = tuple(built(child, nearest) for child in below[path])
            chosen = any(path == each or path.startswith(f"{each}/") for each in paths)
            recorded = tuple(records) if path == root else ()
            own_hash, own_charges = hashes.get(path, ""), tuple(charges[path])
            return cls(
                budgets[path],
                own_charges,
                children,
                chosen,
                nearest,
                hash=own_hash,
                records=recorded,
            )

        return built(root, None)

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


Costs = Mapping[str, Amount]
Judgement = TypeVar("Judgement")


@dataclass(frozen=True)
class Standing:
    """The mechanisms that a charge stands for.

    Args:
        mechanisms: It is no worse than each of them; none if nothing is known.
        adjacency: Under which it was priced.
    """

    mechanisms: Sequence[Priced]
    adjacency: Adjacency

    @property
    def pure(self) -> Fraction | None:
        """The smallest pure epsilon that is known."""
        found: list[Fraction] = []
        for mechanism in self.mechanisms:
            with suppress(UnsupportedError):
                known = known_pure(mechanism, adjacency=self.adjacency)
                found += [] if known is None else [known]
        return Amount.up(min(found)).fraction if found else None

    def mileage(self, odometer: Odometer, *, deltas: Sequence[float | None]) -> Mileage | None:
        """The mileage it adds to an odometer, cut at the first of these deltas where that is known."""
        for mechanism in self.mechanisms:
            for delta in deltas:
                with suppress(UnsupportedError, DomainError):
                    return odometer.mileage(mechanism, delta=delta, adjacency=self.adjacency)
        return None


def standing(trees: Sequence[Tree]) -> dict[str, Standing]:
    """The standing of every charge in these trees, by the hash of its entry.

    Anybody who charges writes the description of his charge: a number in it is not read, and a mechanism only where its
    price is what was paid. A charge of more, or without a mechanism, is one of what the filters take that amount for.
    """
    return {
        entry.hash: stands
        for node, chain in _nodes(trees)
        for entry, stands in _judged(node, lambda entry, chain=chain: _stands_for(entry, chain))
    }


def _judged(node: Tree, judge: Callable[[Entry], Judgement]) -> Iterator[tuple[Entry, Judgement]]:
    """Each charge of a scope with what is said of it, once for all of the same mechanism and cost."""
    known: dict[tuple[object, Amounts], Judgement] = {}
    for entry in node.charges:
        request = entry.description.get("mechanism"), entry.cost
        if request not in known:
            known[request] = judge(entry)
        yield entry, known[request]


def underpaid(trees: Sequence[Tree], moment: Moment) -> Iterator[str]:
    """The charges that paid less than their mechanism costs, in words: no budget above one promises anything."""
    for node, chain in _nodes(trees):
        if node.kind is Kind.SLOTS and len(chain) > 1:
            paid = moment.balance(node.budget.path).spent
            if _is_short(list(_prices(node.budget.curators, paid, chain[:-1])), paid):
                yield f"opening {node.budget.path!r} was charged less above than its slots promise"
        for entry, short in _judged(node, lambda entry, chain=chain: _pays_less(entry, chain)):
            if short:
                yield f"charge {entry.sequence} of {entry.scope!r} paid less than the mechanism it names costs"


def _pays_less(entry: Entry, chain: Sequence[ScopeBudget]) -> bool:
    """Whether a charge paid less than the mechanism that it names."""
    mechanism, cost = _named(entry), entry.cost
    return mechanism is not None and _is_short(list(_prices(mechanism, cost, chain)), cost)


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
        return tuple(
            underpaid([Tree.of(moment, root, [root], priced=True) for root in priced], moment)
        )


def _nodes(trees: Sequence[Tree]) -> Iterator[tuple[Tree, list[ScopeBudget]]]:
    """Every scope, with the chain that its charges reach: itself last, the highest first."""
    waiting: list[tuple[Tree, list[ScopeBudget]]] = [(tree, []) for tree in trees]
    while waiting:
        tree, above = waiting.pop()
        chain = [*above, tree.budget]
        yield tree, chain
        waiting += [(child, [] if tree.kind is Kind.SLOTS else chain) for child in tree.children]


def _stands_for(entry: Entry, chain: Sequence[ScopeBudget]) -> Standing:
    mechanism, cost = _named(entry), entry.cost
    prices = [] if mechanism is None else list(_prices(mechanism, cost, chain))
    if mechanism is not None and (
        _is_short(prices, cost) or any(price == dict(cost) for price in prices)
    ):
        return Standing([mechanism], _adjacency(chain))
    adjacency, paid = _adjacency(chain), {name: amount.fraction for name, amount in cost.items()}
    kinds = [each.filter.kind for each in chain if each.filter is not None]
    taken = [each for kind in kinds for each in _taken_for(kind, paid, adjacency)]
    return Standing(taken, adjacency)


def _named(entry: Entry) -> Composable | None:
    """The mechanism that an entry names, if it can be read."""
    text = entry.description.get("mechanism")
    try:
        return None if text is None else parse(text)
    except DPComposeError:
        return None


def _prices(
    mechanism: Priced, cost: Costs, chain: Sequence[ScopeBudget]
) -> Iterator[dict[str, Amount]]:
    """Its prices under the filters of a chain, if there are any: with no delta named, and at the one that was paid."""
    if all(each.filter is None for each in chain):
        return
    for delta in (None, cost["delta"].fraction) if "delta" in cost else (None,):
        try:
            yield chain_cost(chain, mechanism, delta=delta, adjacency=_adjacency(chain))
        except DPComposeError:
            continue


def _is_short(prices: Sequence[Costs], cost: Costs) -> bool:
    """Whether every price is above what was paid; without a price, nothing is known to be."""
    return bool(prices) and not any(
        all(amount <= cost.get(name, Amount(0)) for name, amount in price.items())
        for price in prices
    )


def _adjacency(chain: Sequence[ScopeBudget]) -> Adjacency:
    """The adjacency of its budgets, which are all opened under one; a chain under several has no number."""
    return next(
        (each.adjacency for each in chain if each.filter is not None and each.adjacency),
        Adjacency.ADD_REMOVE,
    )


def _taken_for(kind: str, cost: Mapping[str, Fraction], adjacency: Adjacency) -> Iterator[Priced]:
    """The mechanism that an amount stands for under a kind of filter; the other kinds have none."""
    amounts = {name: rounded_up(amount) for name, amount in cost.items()}
    match kind:
        case "pure" | "basic":
            lost = amounts["delta"] if kind == "basic" else 0.0
            yield BlackBox(amounts["epsilon"], delta=lost, holds_under=adjacency)
        case "concentrated":
            yield Concentrated(amounts["rho"], delta=amounts["delta"], holds_under=adjacency)
        case "gaussian":
            mu = math.nextafter(math.sqrt(amounts["mu squared"]), math.inf)
            yield GaussianDP(mu, holds_under=adjacency)
        case _:
            pass


Charged = Mapping[str, Standing]
MOST_ALTERNATIVES = 64
BETWEEN = "; if no odometer was chosen from answers in another top-level scope"
NATURAL = "composing charges that were chosen along the way tightly, after the fact, is unsound (the natural filter)"


def spending(trees: Sequence[Tree], *, delta: float) -> ExposureStatement:
    """The statement for a person in all of these trees."""
    nodes = [node for tree in trees for node in tree.all()]
    if not any(node.charges for node in nodes):
        return ExposureStatement(0.0, "sum along the path", "nothing was charged")
    # That a partition parts people depends on the adjacency, too.
    adjacencies = {node.budget.adjacency for node in nodes if node.charges or node.parts_people}
    if len(adjacencies) > 1:
        return unavailable("the charges are priced under different adjacencies")
    charged = standing(trees)
    pure = _met(trees, lambda tree: _pure(tree, charged), operator.add, max)
    if pure is not None:
        return ExposureStatement(
            rounded_up(pure), "sum along the path", "along every path: all charges are pure", "sum"
        )
    committed = _committed(trees, delta, next(iter(adjacencies)) or Adjacency.ADD_REMOVE)
    if committed is not None:
        return committed
    return _odometers(trees, charged)


Met = TypeVar("Met")
Merge = Callable[[Met, Met], Met | None]


def _merged(values: Iterable[Met | None], merge: Merge[Met]) -> Met | None:
    """All of these merged, one after the other; None if one of them, or a merger, is None."""
    found, *others = values
    for each in others:
        found = None if found is None or each is None else merge(found, each)
    return found


def _met(
    trees: Sequence[Tree], own: Callable[[Tree], Met | None], both: Merge[Met], either: Merge[Met]
) -> Met | None:
    """All that a person met in these trees: of a scope its own and all below it, of a partition what either child has."""

    def met(tree: Tree) -> Met | None:
        below = [met(child) for child in tree.children]
        if tree.parts_people and below:
            return _merged(below, either)
        return _merged([own(tree), *below], both)

    return _merged(map(met, trees), both)


# Pure charges


def _pure(tree: Tree, charged: Charged) -> Fraction | None:
    """The sum of the epsilons of a scope itself; None if a charge is not pure."""
    found = [charged[entry.hash].pure for entry in tree.charges]
    known = [each for each in found if each is not None]
    return sum(known, Fraction(0)) if len(known) == len(found) else None


# Committed schedules


def _committed(
    trees: Sequence[Tree], delta: float, adjacency: Adjacency
) -> ExposureStatement | None:
    """The composition of what was charged, if all of it stood on schedules committed before the first answer.

    Before the first one about the person in any of the scopes: a schedule that is committed after an answer elsewhere
    was chosen from it. Between two top-level scopes nothing orders the entries, so that only one may have charges.
    """
    charged = [tree for tree in trees if tree.first < math.inf]
    scheduled = [node for tree in trees for node in tree.all() if node.budget.schedule]
    if len(charged) > 1 or any(node not in charged[0].all() for node in scheduled):
        return None
    if any(node.budget.scope.opened > charged[0].first for node in scheduled):
        return None
    alternatives = _met(trees, _own_schedule, _joined, _listed)
    if alternatives is None:
        return None

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


def _own_schedule(tree: Tree) -> list[Alternative] | None:
    """The composition of a scope itself; None if a charge was not on a schedule."""
    if not tree.charges and not tree.budget.schedule:
        return [(compose(), compose())]
    texts = [entry.description.get("mechanism") for entry in tree.charges]
    if any(
        text is None or text != tree.budget.scope.committed(position)
        for position, text in enumerate(texts)
    ):
        return None
    done = compose(*[mechanism * times for mechanism, times in tree.budget.committed(len(texts))])
    whole = compose(
        *[mechanism * times for mechanism, times in tree.budget.committed(tree.budget.rounds)]
    )
    return [(done, whole)]


def _joined(one: list[Alternative], other: list[Alternative]) -> list[Alternative] | None:
    """Every choice of one alternative from each, composed; None if there are too many."""
    if len(one) * len(other) > MOST_ALTERNATIVES:
        return None
    return [(done + more, whole + all) for done, whole in one for more, all in other]


def _listed(one: list[Alternative], other: list[Alternative]) -> list[Alternative] | None:
    """The alternatives of both; None if there are too many."""
    return None if len(one) + len(other) > MOST_ALTERNATIVES else one + other


# Odometers


@dataclass(frozen=True)
class _Covered:
    """The mileage that each odometer must show, and the pure epsilons that none covers."""

    mileage: dict[str, tuple[Odometer, Mileage]]
    uncovered: Fraction = Fraction(0)


def _odometers(trees: Sequence[Tree], charged: Charged) -> ExposureStatement:
    own: dict[str, _Covered] = {}
    for tree in trees:
        for node in tree.all():
            if node.charges and node.odometer is not None and node.odometer[2] > tree.first:
                return unavailable(
                    f"the odometer of {node.odometer[0]!r} was fixed after the first answer, and {NATURAL}"
                )
        for node in tree.all():
            cover = _own_cover(node, charged)
            if cover is None:
                return unavailable(
                    f"no odometer was fixed for the charges of {node.budget.path!r}, and {NATURAL}"
                )
            own[node.budget.path] = cover
    either = partial(_covered, mileage=_largest, uncovered=max)
    found = _met(trees, lambda tree: own[tree.budget.path], _covered, either)
    assert found is not None, "every scope is covered"
    total, failure = rounded_up(found.uncovered), 0.0
    for path, (odometer, mileage) in found.mileage.items():
        if not mileage.failure <= Fraction(odometer.mechanism_delta):
            return unavailable(
                f"the odometer of {path!r} kept {odometer.mechanism_delta!r} for deltas; more was charged"
            )
        reading = odometer.read(mileage)
        total = math.nextafter(total + reading.epsilon, math.inf)
        failure = (
            math.nextafter(failure + reading.failure, math.inf) if reading.failure else failure
        )
    return ExposureStatement(
        total,
        "odometer",
        "a bound on the realized loss at all times at once, but with the stated probability, fixed at each odometer's"
        f" opening; not an (epsilon, delta) guarantee{BETWEEN if len(found.mileage) > 1 < len(trees) else ''}",
        "; ".join(sorted({odometer.boundary.kind for odometer, _ in found.mileage.values()})),
        min(failure, 1.0),
    )


def _own_cover(tree: Tree, charged: Charged) -> _Covered | None:
    """The charges of a scope itself: under its odometer, or, if they are pure, by themselves; None if it has neither."""
    total, rest = Mileage(), Fraction(0)
    for entry in tree.charges:
        paid = [rounded_down(entry.cost["delta"].fraction)] if "delta" in entry.cost else []
        stands, deltas = charged[entry.hash], [None, *paid]
        mileage = None if tree.odometer is None else stands.mileage(tree.odometer[1], deltas=deltas)
        if mileage is not None:
            total += mileage
        elif (pure := stands.pure) is not None:
            rest += pure
        else:
            return None
    return _Covered(
        {} if tree.odometer is None else {tree.odometer[0]: (tree.odometer[1], total)}, rest
    )


def _covered(
    one: _Covered,
    other: _Covered,
    *,
    mileage: Callable[[Mileage, Mileage], Mileage] = operator.add,
    uncovered: Callable[[Fraction, Fraction], Fraction] = operator.add,
) -> _Covered:
    """The cover of both, by how mileages and epsilons that are not covered are merged."""
    found = dict(one.mileage)
    for path, (odometer, more) in other.mileage.items():
        found[path] = odometer, mileage(found[path][1], more) if path in found else more
    return _Covered(found, uncovered(one.uncovered, other.uncovered))


def _largest(one: Mileage, other: Mileage) -> Mileage:
    """The larger of two mileages in every part, so that neither exceeds it."""
    both = None if one.epsilon is None or other.epsilon is None else max(one.epsilon, other.epsilon)
    return Mileage(
        max(one.rho, other.rho), max(one.drift, other.drift), max(one.failure, other.failure), both
    )
