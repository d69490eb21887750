"""How a cost moves up the chain of scopes: sums in filters, maxima in partitions, a stop at slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpcompose.errors import CurrencyError, OverdrawnError, UnsupportedError
from dpcompose.ledger.amount import Amount
from dpcompose.ledger.scope import Kind, Node


def require_currencies(node: Node, cost: Mapping[str, int]) -> None:
    """Raise CurrencyError unless `cost` names exactly the currencies capped on the chain of this scope."""
    expected = node.spent.keys()
    if cost.keys() == expected:
        return
    for name in sorted(cost.keys() - expected):
        raise CurrencyError(node.scope.path, name, sorted(expected), missing=False)
    for name in sorted(expected - cost.keys()):
        raise CurrencyError(node.scope.path, name, sorted(expected), missing=True)


def charged(chain: Sequence[Node], cost: Mapping[str, int], mechanism: Any) -> tuple[Node, ...]:
    """The nodes that change when the last of `chain` is charged `cost` for what is named `mechanism`; see `spend`.

    Raises:
        UnsupportedError: The scope has a schedule, and that is not next on it.
        OverdrawnError: See `spend`.
    """
    own = chain[-1]
    if own.scope.schedule is None:
        return spend(chain, cost)
    expected = own.scope.committed(own.taken)
    if expected is None or mechanism != expected:
        raise UnsupportedError(
            f"round {own.taken + 1} of the schedule of {own.scope.path!r}",
            f"{mechanism or 'a cost without a mechanism'} was asked, and {expected or 'nothing more'} was committed",
            "Open another scope for what is chosen along the way",
        )
    after = replace(own, taken=own.taken + 1)
    return spend([*chain[:-1], after], cost) or (after,)


def spend(chain: Sequence[Node], cost: Mapping[str, int]) -> tuple[Node, ...]:
    """The nodes whose balance changes when the last of `chain` (the root first) is charged `cost`.

    In a filter a cost adds up and goes on. A partition has spent, per currency, the most that one child has, and
    passes on only a rise of that. What happens in a slot stops at its scope of slots.

    Raises:
        OverdrawnError: The first scope from the root down where it does not fit.
    """
    moved: list[tuple[Node, Node]] = []
    rising, child = cost, chain[-1].spent
    for place in range(len(chain) - 1, -1, -1):
        node = chain[place]
        last = place == len(chain) - 1
        if node.scope.kind is Kind.SLOTS and not last:
            break
        before = node.spent
        if node.scope.kind is Kind.PARTITION and not last:
            after = {name: max(units, child[name]) for name, units in before.items()}
            rising = {name: after[name] - units for name, units in before.items()}
        else:
            after = {name: units + rising[name] for name, units in before.items()}
        moved.append((node, Node(node.scope, after, node.taken, node.closed)))
        child = after
    for before, after in reversed(moved):
        _require_room(before, after)
    return tuple(after for before, after in moved if after.spent != before.spent)


def _require_room(before: Node, after: Node) -> None:
    if after.scope.kind is Kind.SLOTS:
        return
    for name, cap in after.scope.caps.units.items():
        if not after.spent[name] <= cap:
            asked, left = after.spent[name] - before.spent[name], cap - before.spent[name]
            raise OverdrawnError(after.scope.path, name, Amount(asked), Amount(left))


def available(chain: Sequence[Node]) -> dict[str, int]:
    """The most that a charge of the last of `chain` (the root first) could still ask, by currency.

    Each currency by itself, all caps of the chain heeded; a currency that nothing caps is left out.
    """
    room: dict[str, int] = {}
    above: Node | None = None
    for node in chain:
        if above is not None and above.scope.kind is Kind.SLOTS:
            room = {}
        if above is not None and above.scope.kind is Kind.PARTITION:
            room = {name: units + above.spent[name] - node.spent[name] for name, units in room.items()}
        if node.scope.kind is not Kind.SLOTS:
            own = {name: cap - node.spent[name] for name, cap in node.scope.caps.units.items()}
            room = {name: min(room.get(name, units), units) for name, units in own.items()} | {
                name: units for name, units in room.items() if name not in own
            }
        above = node
    return room
