"""Pages and documents of a ledger: the tree of budgets, the log, receipts, checks, and an export for registries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from dpcompose.errors import few_digits
from dpcompose.ledger import (
    Amount,
    Amounts,
    Balance,
    Entry,
    Kind,
    Receipt,
    Scope,
    Verification,
    is_at_or_below,
    paths_down_to,
)
from dpcompose.report.layout import Heading, Page, PageTable, headings
from dpcompose.report.number import above, below, members, trimmed

BAR = 16
"""Cells of a bar."""
Epsilons = tuple[float, float] | None
_ROUNDED = (
    "Left is what the scope and all above it leave. Spent is rounded up, left is rounded down; --json has the exact "
    "amounts. An epsilon is that of the amount alone, at the delta of the scope: two do not add up to that of both."
)


def tree_page(
    balances: Sequence[Balance],
    *,
    where: str = "",
    path: str | None = None,
    headline: str = "",
    zeros: bool = False,
) -> Page:
    """Every scope with the amounts spent and left, currency by currency, and a bar where there is a cap.

    Args:
        balances: Of all scopes of a tree: what is left in one is never more than what is left above it.
        where: The ledger.
        path: Of a scope, if only it and those below it are shown.
        headline: In place of the number of scopes.
        zeros: Whether amounts that are 0 of 0 are shown too.
    """
    left, where = left_of(balances), where or balances[0].scope.path
    balances = [
        balance for balance in balances if path is None or is_at_or_below(balance.scope.path, path)
    ]
    texts = headings("scope", "kind", "currency", ">spent", ">left", ">of")
    columns = (*texts, Heading("", bar=True))
    shallow = min((balance.scope.path.count("/") for balance in balances), default=0)
    rows = tuple(
        row
        for balance in balances
        for row in _rows(balance, shallow, left[balance.scope.path], zeros)
    )
    notes = (_ROUNDED,) if rows else ()
    headline = headline or f"{where}: {len(balances)} scope{'s' * (len(balances) != 1)}"
    return Page(
        where,
        headline,
        "plain",
        (),
        (
            PageTable(
                "Scopes", columns, rows, notes, tuple(row[-1].count("#") / BAR for row in rows)
            ),
        )
        if rows
        else (),
    )


def left_of(balances: Sequence[Balance]) -> dict[str, Amounts]:
    """The most that a charge of each scope could still ask, by its path; `balances` have those above it too."""
    own = {each.scope.path: each for each in balances}
    return {
        path: Balance.available([own[each] for each in paths_down_to(path) if each in own])
        for path in own
    }


def main_currency(scopes: Iterable[Scope]) -> str:
    """The currency in which budgets are drawn: the first with a cap above 0 that is not delta, if there is one.

    Without any cap it is empty.
    """
    capped = [
        (units == 0, name == "delta", name)
        for scope in scopes
        for name, units in scope.caps.units.items()
    ]
    return min(capped, key=lambda each: each[:2], default=(True, True, ""))[2]


def used_of(balance: Balance, currency: str) -> tuple[int, int]:
    """The units spent of a budget, and those of its cap; of slots, how many are taken, and how many there are."""
    if balance.scope.kind is Kind.SLOTS:
        return balance.taken, balance.scope.slots or 0
    return balance.spent.units.get(currency, 0), balance.scope.caps.units[currency]


def _rows(balance: Balance, shallow: int, left: Amounts, zeros: bool) -> Iterator[tuple[str, ...]]:
    scope = balance.scope
    depth = scope.path.count("/") - shallow
    name = scope.path if depth == 0 else "  " * depth + scope.path.rpartition("/")[2]
    kind = f"{scope.kind}, closed" if balance.closed else str(scope.kind)
    cells = list(_slots(balance) if scope.kind is Kind.SLOTS else _currencies(balance, left, zeros))
    for number, cell in enumerate(cells or [("", "", "", "", "")]):
        yield (*((name, kind) if number == 0 else ("", "")), *cell)


def _slots(balance: Balance) -> Iterator[tuple[str, ...]]:
    slots = balance.scope.slots or 0
    free = slots - balance.taken
    yield (
        "slots",
        str(balance.taken),
        str(free),
        str(slots),
        bar(Amount(balance.taken), Amount(slots)),
    )
    for name, cap in balance.scope.caps.items():
        yield f"{name} in each", "", "", at_most(cap), ""
    for name, amount in balance.spent.items():
        yield f"{name} for all", at_least(amount), "", "", ""


def _currencies(balance: Balance, left: Amounts, zeros: bool) -> Iterator[tuple[str, ...]]:
    target, both_ends, part = _in_epsilon(balance, left)
    if target is not None and (part is not None or "epsilon" not in balance.scope.caps):
        both = ("", "") if both_ends is None else (above(both_ends[0], 4), below(both_ends[1], 4))
        yield (
            "epsilon",
            *map(trimmed, both),
            " at ".join(few_digits(each, up=False) for each in target),
            "" if part is None else bar(Amount.up(part), Amount.of(1)),
        )
    if balance.period is not None:
        yield (
            "period",
            *balance.period,
            balance.scope.renewal.words if balance.scope.renewal else "",
            "",
        )
    # Several theorems are read together; of counts and plain amounts each is one.
    together = part is not None and target is not None
    for name, amount in balance.spent.items():
        if name in balance.scope.caps:
            cap = balance.scope.caps[name]
            if together or not (zeros or cap.units or amount.units):
                continue
            yield name, at_least(amount), at_most(left[name]), at_most(cap), bar(amount, cap)
        elif not together:
            yield name, at_least(amount), at_most(left[name]) if name in left else "", "", ""


def _in_epsilon(
    balance: Balance, left: Amounts
) -> tuple[tuple[str, str] | None, Epsilons, Fraction | None]:
    """The target of a scope, the epsilons that are spent and left, and the part of several theorems that is spent.

    Each is None if its scope has none.
    """
    scope = balance.scope
    budget = scope.description.get("budget", {})
    filter: Mapping[str, Any] = budget.get("filter") or {}
    if not ("target" in budget or scope.alternatives or filter.get("filter") == "menu"):
        return None, None, None
    # Amounts are shown without the theory, which takes fifty times as long to load as Python.
    from dpcompose.account import balance_in_epsilon, target_of, used

    return target_of(scope), balance_in_epsilon(balance, left), used(balance)


def bar(spent: Amount, cap: Amount) -> str:
    """The spent part of a cap as a bar, rounded up, but full only where the cap is spent; empty where the cap is 0."""
    if cap.units == 0:
        return ""
    filled = min(-(-spent.units * BAR // cap.units), BAR - (spent.units < cap.units))
    share = -(-spent.units * 100 // cap.units)
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {share:3} %"


def at_least(amount: Amount) -> str:
    """An amount that was spent, rounded up to six digits."""
    return few_digits(amount, up=True)


def at_most(amount: Amount) -> str:
    """An amount that is left, rounded down to six digits."""
    return few_digits(amount, up=False)


def balance_document(balance: Balance, left: Amounts) -> dict[str, Any]:
    """A scope and its balance, exactly; `left` is what it and all above it leave."""
    scope, (target, both_ends, _) = balance.scope, _in_epsilon(balance, left)
    return {
        "path": scope.path,
        "kind": str(scope.kind),
        "caps": scope.caps.texts(),
        "spent": balance.spent.texts(),
        "left": left.texts(),
        "target": None if target is None else {"epsilon": target[0], "delta": target[1]},
        "epsilon": None if both_ends is None else {"spent": both_ends[0], "left": both_ends[1]},
        "slots": scope.slots,
        "taken": balance.taken if scope.kind is Kind.SLOTS else None,
        "renew": None if scope.renewal is None else scope.renewal.text,
        "period": None if balance.period is None else list(balance.period),
        "closed": balance.closed,
        "opened": scope.opened,
        "description": _without_key(scope.description),
    }


def _without_key(description: dict[str, Any]) -> dict[str, Any]:
    """The description of a scope without the secret key of a release, which stays in the ledger."""
    release = description.get("release")
    if not (isinstance(release, dict) and "key" in release):
        return description
    return description | {"release": cast("dict[str, Any]", release) | {"key": "(not shown)"}}


def log_page(entries: Iterable[Entry], *, path: str) -> Page:
    """Entries, oldest first."""
    columns = headings(">entry", "time", "kind", "~scope", "~actor", "~what")
    rows = tuple(
        (
            str(entry.sequence),
            entry.time[:19],
            entry.kind,
            entry.scope,
            entry.actor,
            _details(entry),
        )
        for entry in entries
    )
    tables = (PageTable("Entries", columns, rows),) if rows else ()
    return Page(path, f"{path}: {len(rows)} entries", "plain", (), tables)


def _details(entry: Entry) -> str:
    details: list[str] = []
    if entry.redeems is not None:
        details.append(f"entry {entry.redeems}")
    if "definition" in entry.fields:
        details.append(str(entry.fields["definition"]["kind"]))
    details += [f"{name} {at_least(amount)}" for name, amount in entry.cost.items()]
    mechanism = entry.description.get("mechanism")
    if isinstance(mechanism, str):
        details.append(
            "".join(letter if letter.isprintable() else "?" for letter in mechanism[:120])
        )
    if "short" in entry.fields:
        short = entry.fields["short"]
        details.append(
            f"short of {short['currency']} at {short['scope']}: {few_digits(short['left'], up=False)} left"
        )
    if entry.key is not None:
        details.append(f"key {entry.key}")
    return "; ".join(details)


def entry_document(entry: Entry) -> dict[str, Any]:
    """An entry as it was hashed but for the key of a release, and its hash."""
    shown = (
        {"description": _without_key(entry.description)} if "description" in entry.fields else {}
    )
    return {**entry.fields, **shown, "hash": entry.hash}


def price_page(
    path: str,
    cost: Mapping[str, Amount],
    *,
    left: Mapping[str, Amount],
    epsilon: Epsilons,
    fits: bool,
    percent: Epsilons = None,
) -> Page:
    """The price of a charge in a scope, and what is left there; in percent of a budget of several theorems."""
    facts = _asked_and_left("would ask", cost, left, percent)
    if epsilon is not None and (fits or epsilon[0] > epsilon[1]):
        facts.append(
            (
                "epsilon",
                f"{trimmed(above(epsilon[0], 4))} asked, {trimmed(below(epsilon[1], 4))} left",
            )
        )
    headline = (
        f"{path}: it fits; nothing was charged"
        if fits
        else f"{path}: it does not fit; nothing was charged"
    )
    return Page(path, headline, "good" if fits else "bad", tuple(facts), ())


def _asked_and_left(
    label: str, cost: Mapping[str, Amount], left: Mapping[str, Amount] | None, percent: Epsilons
) -> list[tuple[str, str]]:
    """The facts of a cost and of what is left: every currency, or what the budget itself counts."""
    if percent is not None:
        return [(label, f"{percent[0]:g} % of the budget"), ("left here", f"{percent[1]:g} %")]
    here = [] if left is None else [("left here", listed(left, at_most) or "nothing is capped")]
    return [(label, listed(cost, at_least)), *here]


def receipt_page(
    receipt: Receipt, *, left: Amounts | None = None, percent: Epsilons = None
) -> Page:
    """A charge that was granted; in percent of a budget of several theorems."""
    facts = (
        *_asked_and_left("charged", receipt.cost, left, percent),
        ("key", receipt.key),
        ("receipt", receipt.hash),
    )
    headline = f"Granted: entry {receipt.sequence} of {receipt.root}, charged to {receipt.scope}"
    following = "run the mechanism, then redeem the receipt: dpcompose ledger redeem"
    return Page(receipt.scope, headline, "good", facts, (), following=following)


def receipt_document(receipt: Receipt, *, left: Amounts) -> dict[str, Any]:
    """The same for programs; `receipt` is the text that redeems it."""
    return {
        "granted": True,
        **members(receipt, "scope sequence key"),
        "cost": receipt.cost.texts(),
        "left": left.texts(),
        "receipt": receipt.to_json(),
    }


def verification_page(result: Verification, *, where: str = "The ledger") -> Page:
    """The result of a verification that found no fault."""
    facts = [("entries", f"{result.entries:,}"), ("scopes", f"{result.scopes:,}")]
    facts += [
        (f"head of {root}", f"{head.sequence} {head.hash}") for root, head in result.anchor.heads
    ]
    unseen = "No anchor was given: entries removed from the end would go unnoticed; use --anchor."
    notes = () if result.anchored else (unseen,)
    notes += tuple(
        f"{root}: the first {size:,} entries, which were signed, were not read again, nor their prices."
        for root, size in result.since
    )
    agrees = "Every hash, every decision and every balance agrees"
    return Page(
        where,
        agrees + (", and so does the anchor" * result.anchored),
        "good",
        tuple(facts),
        (),
        notes,
    )


def listed(amounts: Mapping[str, Amount], shown: Callable[[Amount], str]) -> str:
    """Amounts by currency, on one line."""
    return ", ".join(f"{name} {shown(amount)}" for name, amount in amounts.items())
