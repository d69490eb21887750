"""The price of one mechanism along a chain of budgets: one per filter, and in each currency the largest of them."""

from __future__ import annotations

from collections.abc import Sequence

from dpcompose.account.scope import Budgeted
from dpcompose.account.typed import Typed, exact
from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import Adjacency, Priced
from dpcompose.ledger import Amount


def cost(
    found: Sequence[Budgeted], mechanism: Priced, *, delta: Typed | None, adjacency: Adjacency
) -> dict[str, Amount]:
    """What every filter of a chain asks; the whole is refused if one of them cannot price.

    A larger amount is a price too, so that filters which share a currency are charged the largest of theirs.

    Args:
        found: The chain.
        mechanism: What is to run.
        delta: Where on its curve it is charged; a float is its shortest decimal.
        adjacency: What one person's data may change.

    Raises:
        UnsupportedError: If a filter has no price for it.
    """
    named = None if delta is None else exact("delta", delta)
    amounts: dict[str, Amount] = {}
    for each in found:
        if each.filter is None:
            continue
        try:
            asked = each.filter.price(mechanism, delta=named, adjacency=adjacency)
        except UnsupportedError as refusal:
            raise UnsupportedError(
                refusal.what, f"{refusal.reason} (for the {each.filter.kind} filter of {each.path!r})", refusal.remedy
            ) from refusal
        for currency, amount in asked.items():
            amounts[currency] = max(Amount.up(amount), amounts.get(currency, Amount(0)))
    return amounts
