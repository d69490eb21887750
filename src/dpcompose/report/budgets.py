"""Pictures of a ledger: what was granted day by day and to whom, and the tree of budgets. Axes in, axes out."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from dpcompose.errors import DomainError
from dpcompose.ledger import Amount, Balance, Entry
from dpcompose.report.ledger import main_currency, used_of
from dpcompose.report.picture import COLORS, INK, Picture, figure, message, named, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACTORS = 7
"""Who have a color of their own; the rest share one."""


def burn_down(
    entries: Iterable[Entry],
    balance: Balance,
    *,
    currency: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Charges granted in a scope and below it, by day and actor, and the budget that is left.

    The line of what is left is drawn where the charges add up to what the scope has spent, exactly; children that
    share a budget in another way have bars alone.

    Args:
        entries: Of the scope: `ledger.entries(path)`.
        balance: Of the scope: `ledger.balance(path)`.
        currency: The currency that is drawn; that of `main_currency` if None.
        axes: Where to draw; new ones if None.

    Raises:
        DomainError: If the scope has no budget in this currency.
    """
    currency = main_currency([balance.scope]) if currency is None else currency
    cap = _cap(balance, currency)
    by_day: dict[str, dict[str, Amount]] = defaultdict(dict)
    for entry in entries:
        cost = entry.cost
        if entry.kind == Entry.GRANTED and currency in cost:
            day = by_day[entry.time[:10]]
            day[entry.actor] = day.get(entry.actor, Amount(0)) + cost[currency]
    axes = figure(7.5).subplots() if axes is None else axes
    axes.set(ylabel=currency, title=f"{balance.scope.path}: charges by day and actor")
    if not by_day:
        message(axes, "nothing was charged")
        return style(axes)
    days = sorted(by_day)
    _stacked(axes, [by_day[day] for day in days])
    granted = [sum(amount.units for amount in by_day[day].values()) for day in days]
    if sum(granted) == balance.spent[currency].units:
        left = accumulate(granted, lambda left, spent: left - spent, initial=cap.units)
        heights = [_number(Amount(each)) for each in left]
        steps: dict[str, Any] = {"color": INK, "marker": "o", "drawstyle": "steps-post"}
        axes.plot([-0.5, *range(len(days))], heights, label="left", **steps)
    axes.set_xlim(-0.75, max(len(days), 4) - 0.25)
    axes.set_xticks(range(len(days)), days, rotation=0 if len(days) < 7 else 60)
    return style(axes, "best")


def _stacked(axes: Axes, days: Sequence[dict[str, Amount]]) -> None:
    totals: dict[str, int] = defaultdict(int)
    for day in days:
        for actor, amount in day.items():
            totals[actor] += amount.units
    order = sorted(totals, key=lambda actor: (-totals[actor], actor))
    floor = [0.0] * len(days)
    for box, names in enumerate([*([name] for name in order[:ACTORS]), order[ACTORS:]]):
        sums = (sum(day[name].units for name in names if name in day) for day in days)
        heights = [_number(Amount(each)) for each in sums]
        if names:
            label = named(names[0]) if box < ACTORS else f"{len(names)} others"
            look: dict[str, Any] = {"color": COLORS[box % len(COLORS)], "label": label}
            axes.bar(range(len(days)), heights, bottom=floor, width=0.7, **look)
            floor = [low + high for low, high in zip(floor, heights, strict=True)]


def icicle(
    balances: Sequence[Balance], *, currency: str | None = None, axes: Axes | None = None
) -> Axes:
    """The tree of budgets: a box for each scope, as wide as its part of the budget above it, filled as far as spent.

    Where children are promised more together than the budget above them, their boxes are narrower in proportion.

    Args:
        balances: Of a scope and all below it: `ledger.balances(path)`.
        currency: The currency that is drawn, that of `main_currency` if None; scopes without a budget in it are left
            out.
        axes: Where to draw; new ones if None.
    """
    currency = main_currency([each.scope for each in balances]) if currency is None else currency
    axes = figure(7.5).subplots() if axes is None else axes
    capped = {each.scope.path: each for each in balances if currency in each.scope.caps}
    of = f" of {currency}" if currency else ""
    axes.set(title=f"Budgets{of}: filled as far as spent", xlim=(0, 1))
    axes.set_axis_off()
    if not capped:
        message(axes, f"no scope has a budget{of}")
        return axes
    tops = [path for path, each in capped.items() if each.scope.parent not in capped]
    _boxes(axes, capped, tops, (0.0, 1.0, 0), currency)
    depth = max(path.count("/") for path in capped) - min(path.count("/") for path in capped)
    axes.set_ylim(-depth - 1.0, 0.05)
    axes.title.set_color(INK)
    return axes


def budget_pictures(
    balances: Sequence[Balance], charged: tuple[Iterable[Entry], Balance] | None = None
) -> tuple[Picture, ...]:
    """The tree of budgets, and the charges of one scope by day and actor.

    Args:
        balances: The scopes; their budgets are drawn in the currency of `main_currency`.
        charged: The entries and the balance of the scope whose charges are drawn, if any are.
    """
    currency = main_currency([balance.scope for balance in balances])
    if not currency:
        return ()
    tree = Picture(
        "The tree of budgets",
        f"Each box is a budget of {currency}, filled as far as it is spent.",
        lambda axes: icicle(balances, currency=currency, axes=axes),
    )
    if charged is None or not charged[1].scope.caps.units.get(currency):
        return (tree,)
    entries, balance = list(charged[0]), charged[1]
    days = Picture(
        "Charges",
        f"Charges of {currency} by day and actor, and the budget that is left.",
        lambda axes: burn_down(entries, balance, currency=currency, axes=axes),
    )
    return tree, days


def _boxes(
    axes: Axes,
    capped: dict[str, Balance],
    paths: Sequence[str],
    box: tuple[float, float, int],
    currency: str,
) -> None:
    left, width, depth = box
    caps = {path: _number(_cap(capped[path], currency)) for path in paths}
    parent = capped.get(capped[paths[0]].scope.parent or "") if paths else None
    above = 0.0 if parent is None else _number(_cap(parent, currency)) * (parent.scope.slots or 1)
    whole = max(sum(caps.values()), above)
    for path in paths:
        part = width * caps[path] / whole if whole else width / len(paths)
        used, most = used_of(capped[path], currency)
        filled = part * min(used / most, 1.0) if most else 0.0
        drawn = partial(axes.barh, -depth - 0.5, left=left, height=0.94)
        drawn(part, color=COLORS[4], alpha=0.35, edgecolor="white")
        drawn(filled, color=COLORS[0], alpha=0.55, linewidth=0)
        name, middle = path.rpartition("/")[2], (left + part / 2, -depth - 0.5)
        if part > 0.012 * len(name):
            axes.annotate(name, middle, color=INK, fontsize=9, ha="center", va="center")
        below = [each for each, balance in capped.items() if balance.scope.parent == path]
        if below:
            _boxes(axes, capped, below, (left, part, depth + 1), currency)
        left += part


def _cap(balance: Balance, currency: str) -> Amount:
    if currency not in balance.scope.caps:
        caps = ", ".join(balance.scope.caps) or "none"
        raise DomainError(
            "currency", currency, f"one of the budgets of {balance.scope.path}: {caps}"
        )
    return balance.scope.caps[currency]


def _number(amount: Amount) -> float:
    """For drawing alone."""
    return amount.units / 10**40
