"""The guarantee of the fixed budgets that hold a person: composed by the tightest theorem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from dpcompose.account.statement import Statement, unavailable
from dpcompose.account.tree import Tree
from dpcompose.adaptive import Curators, Filter
from dpcompose.adaptive.total import Total, least
from dpcompose.composition.container import Composable, Composition, compose
from dpcompose.guarantee import Adjacency
from dpcompose.ledger import Kind
from dpcompose.mechanism import BlackBox, Concentrated, GaussianDP

Budgets = Counter[Curators]
_HOLDS = "whatever is asked from now on, of whichever of these databases, in any order"


def together(trees: Sequence[Tree], *, delta: float) -> Statement:
    """The statement for a person in all of these trees."""
    budgets: Budgets = Counter()
    for tree in trees:
        found = budgets_of(tree)
        if isinstance(found, str):
            return unavailable(found)
        budgets.update(found)
    if len({each.adjacency for each in budgets}) > 1:
        return unavailable("the budgets are stated under different adjacencies")
    total = least(_totals(budgets, delta)) if budgets else Total(0.0, "no budget was opened", "")
    if not math.isfinite(total.epsilon):
        return unavailable(f"the budgets promise nothing finite at delta = {delta!r}: name a larger one")
    return Statement(total.epsilon, "fixed budgets", _HOLDS, f"{total.theorem} {total.reference}".strip())


def budgets_of(tree: Tree) -> Budgets | str:
    """The budgets that bound everything about the person in a tree; a sentence if something is bounded by none.

    A filter bounds its own charges and everything below it, slots included, which it was charged when they were opened.
    """
    if tree.kind is Kind.FILTER and tree.budget.filter is not None:
        return Counter([tree.budget.curators])
    if tree.kind is Kind.FILTER and (tree.charges or tree.chosen):
        return f"{tree.budget.path!r} has no cap of its own, and nothing above it has one"
    if tree.kind is Kind.SLOTS and tree.chosen:
        return Counter([tree.budget.curators])
    if tree.kind is Kind.PARTITION and tree.budget.filter is not None:
        return Counter([tree.budget.curators])
    if tree.kind is Kind.PARTITION and tree.chosen:
        return f"{tree.budget.path!r} is a partition without a cap: a child opened later may hold the person"
    found: Budgets = Counter()
    for child in tree.children:
        below = budgets_of(child)
        if isinstance(below, str):
            return below
        found.update(below)
    return found


def _totals(budgets: Budgets, delta: float) -> Iterable[Total]:
    """Every theorem that applies to these budgets together."""
    counts: Counter[tuple[Filter, Adjacency]] = Counter()
    for each, times in budgets.items():
        counts[each.filter, each.adjacency] += each.count * times
    if len(counts) == 1:
        ((filter, adjacency), times) = next(iter(counts.items()))
        yield Curators(times, filter=filter, adjacency=adjacency).total(delta=delta)
        return
    lost = max(len(counts), 1)
    for as_mechanism in (_as_concentrated, _as_promise(delta / (2 * lost)), _as_known(delta / (2 * lost))):
        composition = _composed(counts, as_mechanism)
        if composition is not None:
            found = composition.epsilon(delta=delta)
            yield Total(found.upper, f"composition of the guarantees, {found.certificate.method}", "[VadhanZhang2023]")
    yield Total(math.inf, "none applies", "")


AsMechanism = Callable[[Filter, int], Composable | None]


def _composed(counts: Counter[tuple[Filter, Adjacency]], as_mechanism: AsMechanism) -> Composition | None:
    parts: list[Composable] = []
    for (filter, _), times in counts.items():
        part = as_mechanism(filter, times)
        if part is None:
            return None
        parts.append(part)
    return compose(*parts)


def _as_concentrated(filter: Filter, times: int) -> Composable | None:
    """The sum of rho, which holds for the charges inside, with what they leave out."""
    found = Curators(times, filter=filter).zcdp()
    return None if found is None else Concentrated(found.rho, delta=found.delta)


def _as_promise(share: float) -> AsMechanism:
    """One (epsilon, delta) each: the filter's own, else the one at an equal share of delta."""

    def made(filter: Filter, times: int) -> Composable | None:
        promise = filter.promise()
        try:
            if promise is not None:
                return BlackBox(promise.epsilon, delta=promise.delta) * times
            return BlackBox(filter.epsilon_at(delta=share / times), delta=share / times) * times
        except ValueError:
            return None

    return made


def _as_known(share: float) -> AsMechanism:
    """The closest thing: a Gaussian where it is one, its (epsilon, delta) where it has one, else its rho."""
    promised = _as_promise(share)

    def made(filter: Filter, times: int) -> Composable | None:
        mu = filter.mu_of(times)
        if mu is not None:
            return GaussianDP(mu)
        promise = filter.promise()
        return promised(filter, times) if promise is not None else _as_concentrated(filter, times)

    return made
