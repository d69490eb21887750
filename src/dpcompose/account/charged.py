"""What a charge stands for: the mechanism that its entry names, if exactly that was paid; else what was paid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from dpcompose.account import pricing
from dpcompose.account.scope import Budgeted
from dpcompose.account.tree import Tree
from dpcompose.account.wording import read
from dpcompose.adaptive import Mileage, Odometer, PureFilter
from dpcompose.composition.container import Composable
from dpcompose.errors import DomainError, DPComposeError, UnsupportedError
from dpcompose.guarantee import Adjacency, Priced
from dpcompose.ledger import Amount, Amounts, Entry, Kind, Moment
from dpcompose.mechanism import BlackBox, Concentrated, GaussianDP
from dpcompose.numerics.exact import rounded_up

Costs = Mapping[str, Amount]


@dataclass(frozen=True)
class Standing:
    """What a charge stands for.

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
                found.append(PureFilter(0.0).price(mechanism, adjacency=self.adjacency)["epsilon"])
        return Amount.up(min(found)).fraction if found else None

    def mileage(self, odometer: Odometer, *, deltas: Sequence[float | None]) -> Mileage | None:
        """What it adds to an odometer, cut at the first of these deltas where that is known."""
        for mechanism in self.mechanisms:
            for delta in deltas:
                with suppress(UnsupportedError, DomainError):
                    return odometer.mileage(mechanism, delta=delta, adjacency=self.adjacency)
        return None


def standing(trees: Sequence[Tree]) -> dict[str, Standing]:
    """What every charge in these trees stands for, by the hash of its entry.

    Anybody who charges writes the description of his charge: a number in it is not read, and a mechanism only where its
    price is what was paid. A charge of more, or without a mechanism, is one of what the filters take that amount for.
    """
    found: dict[str, Standing] = {}
    for node, chain in _nodes(trees):
        known: dict[tuple[object, Amounts], Standing] = {}
        for entry in node.charges:
            asked = entry.description.get("mechanism"), entry.cost
            if asked not in known:
                known[asked] = _stands_for(entry, chain)
            found[entry.hash] = known[asked]
    return found


def underpaid(trees: Sequence[Tree], moment: Moment) -> str | None:
    """The first charge that paid less than its mechanism costs, in words: no budget above it promises anything."""
    for node, chain in _nodes(trees):
        if node.kind is Kind.SLOTS and len(chain) > 1:
            paid = moment.balance(node.budget.path).spent
            if _is_short(list(_prices(node.budget.curators, paid, chain[:-1])), paid):
                return f"opening {node.budget.path!r} was charged less above than its slots promise"
        seen: set[tuple[object, Amounts]] = set()
        for entry in node.charges:
            asked = entry.description.get("mechanism"), entry.cost
            if asked in seen:
                continue
            seen.add(asked)
            mechanism = _named(entry)
            if mechanism is not None and _is_short(list(_prices(mechanism, entry.cost, chain)), entry.cost):
                return f"charge {entry.sequence} of {entry.scope!r} paid less than the mechanism it names costs"
    return None


def _nodes(trees: Sequence[Tree]) -> Iterator[tuple[Tree, list[Budgeted]]]:
    """Every scope, with the chain that its charges reach: itself last, the highest first."""
    waiting: list[tuple[Tree, list[Budgeted]]] = [(tree, []) for tree in trees]
    while waiting:
        tree, above = waiting.pop()
        chain = [*above, tree.budget]
        yield tree, chain
        waiting += [(child, [] if tree.kind is Kind.SLOTS else chain) for child in tree.children]


def _stands_for(entry: Entry, chain: Sequence[Budgeted]) -> Standing:
    mechanism, cost = _named(entry), entry.cost
    prices = [] if mechanism is None else list(_prices(mechanism, cost, chain))
    if mechanism is not None and (_is_short(prices, cost) or any(price == dict(cost) for price in prices)):
        return Standing([mechanism], _adjacency(chain))
    adjacency, paid = _adjacency(chain), {name: amount.fraction for name, amount in cost.items()}
    kinds = [each.filter.kind for each in chain if each.filter is not None]
    return Standing([_TAKEN_FOR[kind](paid, adjacency) for kind in kinds if kind in _TAKEN_FOR], adjacency)


def _named(entry: Entry) -> Composable | None:
    """The mechanism that an entry names, if it can be read."""
    text = entry.description.get("mechanism")
    try:
        return None if text is None else read(text)
    except DPComposeError:
        return None


def _prices(mechanism: Priced, cost: Costs, chain: Sequence[Budgeted]) -> Iterator[dict[str, Amount]]:
    """Its prices under the filters of a chain, if there are any: with no delta named, and at the one that was paid."""
    if all(each.filter is None for each in chain):
        return
    for delta in (None, cost["delta"].fraction) if "delta" in cost else (None,):
        try:
            yield pricing.cost(chain, mechanism, delta=delta, adjacency=_adjacency(chain))
        except DPComposeError:
            continue


def _is_short(prices: Sequence[Costs], cost: Costs) -> bool:
    """Whether every price is above what was paid; without a price, nothing is known to be."""
    return bool(prices) and not any(
        all(amount <= cost.get(name, Amount(0)) for name, amount in price.items()) for price in prices
    )


def _adjacency(chain: Sequence[Budgeted]) -> Adjacency:
    """Of its budgets, which are opened under one; `spent` has a number for no other chain."""
    return next((each.adjacency for each in chain if each.filter is not None and each.adjacency), Adjacency.ADD_REMOVE)


TakenFor = Callable[[Mapping[str, Fraction], Adjacency], Priced]


def _black_box(cost: Mapping[str, Fraction], adjacency: Adjacency, *, delta: bool = True) -> Priced:
    lost = cost["delta"] if delta else Fraction(0)
    return BlackBox(rounded_up(cost["epsilon"]), delta=rounded_up(lost), holds_under=adjacency)


def _concentrated(cost: Mapping[str, Fraction], adjacency: Adjacency) -> Priced:
    return Concentrated(rounded_up(cost["rho"]), delta=rounded_up(cost["delta"]), holds_under=adjacency)


def _gaussian(cost: Mapping[str, Fraction], adjacency: Adjacency) -> Priced:
    return GaussianDP(math.nextafter(math.sqrt(rounded_up(cost["mu squared"])), math.inf), holds_under=adjacency)


_TAKEN_FOR: Mapping[str, TakenFor] = {
    "pure": lambda cost, adjacency: _black_box(cost, adjacency, delta=False),
    "basic": _black_box,
    "concentrated": _concentrated,
    "gaussian": _gaussian,
}
"""What a filter takes an amount for, by kind; the others keep their amounts to themselves."""
