"""Equal budgets, charged above once and for good, and taken one by one."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcompose import check
from dpcompose.account.account import Account, chain_cost
from dpcompose.account.scope import (
    NumericLiteral,
    ScopeBudget,
    budgets_above,
    described,
    path_in,
    require_same_adjacency,
    stated_alternatives,
)
from dpcompose.adaptive import (
    BasicFilter,
    ConcentratedFilter,
    Curators,
    Filter,
    Odometer,
    PureFilter,
)
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Kind, Ledger, Scope
from dpcompose.values import Adjacency


def open_slots(
    ledger: Ledger,
    path: str,
    *,
    slots: int,
    filter: Filter,
    delta: NumericLiteral | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    note: Mapping[str, Any] | None = None,
    actor: str,
    key: str | None = None,
) -> Scope:
    """Open a fixed number of equal budgets, and charge all of them, once and for good, to the whole chain above.

    What they are together is the tightest composition of their guarantees (`Curators`), a one-time price for each
    filter above. Take one with `take_slot`; what is spent in it stops there.

    Args:
        ledger: Where.
        path: The new scope.
        slots: How many.
        filter: Which each of them has.
        delta: At which the total is charged to filters that charge (epsilon, delta); a float is its shortest decimal.
        adjacency: What one person's data may change.
        note: Anything else to keep.
        actor: Who opens it.
        key: An idempotency key.

    Raises:
        UnsupportedError: If a filter above has no price for them.
        DomainError, LedgerError: See `open_scope`.
    """
    curators, cost = price_of_slots(
        ledger, path, slots=slots, filter=filter, delta=delta, adjacency=adjacency
    )
    return ledger.scope(
        path,
        kind=Kind.SLOTS,
        caps=filter.caps,
        slots=slots,
        cost=cost,
        description=described(filter, adjacency, None, (), note) | {"mechanism": repr(curators)},
        actor=actor,
        key=key,
    )


def price_of_slots(
    ledger: Ledger,
    path: str,
    *,
    slots: int,
    filter: Filter,
    delta: NumericLiteral | None,
    adjacency: Adjacency,
) -> tuple[Curators, Mapping[str, Any]]:
    """The slots together, and their cost to the chain above; see `open_slots`."""
    curators = Curators(check.count("slots", slots, least=1), filter=filter, adjacency=adjacency)
    if stated_alternatives(filter):
        raise UnsupportedError(
            f"slots with a {filter.kind} filter",
            "their caps are one set of amounts",
            "Open each as a scope of its own",
        )
    require_same_adjacency(ledger, path, adjacency)
    return curators, chain_cost(
        budgets_above(ledger, path), curators, delta=delta, adjacency=adjacency
    )


def open_equal_slots(
    ledger: Ledger,
    path: str,
    *,
    parts: int,
    note: Mapping[str, Any] | None = None,
    actor: str,
    key: str | None = None,
) -> Scope:
    """Divide what is left in the scope above into equal slots, with filters of its kind; see `open_slots`.

    Raises:
        UnsupportedError: If the scope above has no filter whose amounts can be divided.
        DomainError, LedgerError: See `open_slots`.
    """
    count = check.count("parts", parts, least=1)
    above = path_in(ledger, path).rpartition("/")[0]
    found = [each for each in budgets_above(ledger, path) if each.filter is not None]
    if not found or found[-1].adjacency is None:
        raise UnsupportedError(
            f"equal parts for {path!r}", "no scope above it has a filter", "Open one for a target"
        )
    filter, left = found[-1].filter, ledger.available(above)
    share = {name: left[name].fraction / count for name in left}
    match filter:
        case PureFilter():
            each: Filter = PureFilter(share["epsilon"])
        case BasicFilter():
            each = BasicFilter(share["epsilon"], delta=share["delta"])
        case ConcentratedFilter():
            each = ConcentratedFilter(share["rho"], delta=share["delta"])
        case _:
            reason = f"the amounts of {filter!r} are not divided"
            raise UnsupportedError(
                f"equal parts for {path!r}", reason, "Name the filter of the slots: --kind slots"
            )
    delta = share.get("delta", Fraction(0)) * count
    return open_slots(
        ledger,
        path,
        slots=count,
        filter=each,
        delta=delta,
        adjacency=found[-1].adjacency,
        note=note,
        actor=actor,
        key=key,
    )


def take_slot(
    ledger: Ledger, path: str, *, odometer: Odometer | None = None, note: Mapping[str, Any] | None = None, actor: str,
    key: str | None = None,
) -> Account:  # fmt: skip
    """Take the next free slot under the name `path`, and return the account on it; it is never given back."""
    parent = path_in(ledger, path).rpartition("/")[0]
    above = ScopeBudget.of(ledger.balance(parent).scope) if parent else None
    if above is None or above.scope.kind is not Kind.SLOTS or above.adjacency is None:
        raise DomainError("path", path, "a name in a scope of slots, such as world/slots/ada")
    description = described(above.filter, above.adjacency, odometer, (), note)
    ledger.scope(path, kind=Kind.FILTER, description=description, actor=actor, key=key)
    return Account(ledger, scope=path)
