"""The price of one mechanism along a chain of budgets: one per filter, and in each currency the largest of them."""

from __future__ import annotations

from collections.abc import Sequence

from dpcompose.account.scope import Budgeted
from dpcompose.account.typed import Typed, exact
from dpcompose.adaptive.pricing import label
from dpcompose.composition.container import Composable
from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import Adjacency, Priced
from dpcompose.ledger import Amount, Kind, Ledger
from dpcompose.ledger.scope import paths_down_to


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
        UnsupportedError: If a filter has no price for it; or if the chain has a partition, and it is neither a
            one-shot mechanism nor pure.

    Reference: [HenzingerSafaviVadhan2024]
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
    if not isinstance(mechanism, Composable) and any(each.scope.kind is Kind.PARTITION for each in found):
        _pure_alone(mechanism, adjacency)
    return amounts


def _pure_alone(mechanism: Priced, adjacency: Adjacency) -> None:
    """Refuse what is no one-shot mechanism, unless it is pure: a bound on every answer, after every other."""
    typed = mechanism.typed(adjacency=adjacency)
    if typed is None or typed.epsilon is None or typed.delta > 0:
        raise UnsupportedError(
            f"a charge of {label(mechanism)} in a partition",
            "what answers several times may show beforehand where it will fail, and who is put into that child is told"
            " more than its delta or rho, which are averages, says",
            "Charge mechanisms one by one, open slots of pure budgets, or use a scope outside of the partition",
        )


def refuse_unknown(ledger: Ledger, path: str, *, delta: Typed) -> None:
    """Refuse a bare cost with a delta inside a partition: that it was a one-shot mechanism is not known.

    Raises:
        UnsupportedError: If it has a delta, and a scope on the way to it is a partition.
    """
    above = [ledger.balance(each).scope for each in paths_down_to(path)]
    if exact("delta", delta) > 0 and any(scope.kind is Kind.PARTITION for scope in above):
        reason = "it does not say what runs, and in a partition a delta holds for one-shot mechanisms alone"
        raise UnsupportedError(f"a bare cost with a delta at {path!r}", reason, "Charge a mechanism, or a plan file")
