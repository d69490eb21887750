"""Pages and documents of a ledger: the tree of budgets, the log, receipts, checks, exposures, advice on budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

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
from dpcompose.report.number import above, below, exactly, members, plain, trimmed
from dpcompose.values import rounded_down

if TYPE_CHECKING:
    from dpcompose.account import Exposure
    from dpcompose.adaptive import FilterAdvice

BAR = 16
"""Cells of a bar."""
Epsilons = tuple[float, float] | None
_ROUNDED = (
    "Left is what the scope and all above it leave. Spent is rounded up, left is rounded down; --json has the exact "
    "amounts. An epsilon is that of the amount alone, at the delta of the scope: two do not add up to that of both."
)

TAKE_WHEN = {
    "budget": "always, unless another row is worth the trouble",
    "pure": "delta must be 0",
    "basic": "few answers, with deltas",
    "zcdp": "zero-concentrated privacy must be cited",
    "renyi": "all noise is sampled",
    "gaussian": "all noise is Gaussian",
    "menu": "all that may be asked is known",
}

_READING = (
    "Of the plan: how much of it fits, 1 for all of it. By mechanism: how often, if only that is asked.",
    "The advice holds before the first answer: a budget that is opened after one promises nothing.",
)


def tree_page(
    balances: Sequence[Balance],
    *,
    where: str = "",
    path: str | None = None,
    headline: str = "",
) -> Page:
    """Every scope with the amounts spent and left, currency by currency, and a bar where there is a cap; 0 of 0 is left out.

    Args:
        balances: Of all scopes of a tree: what is left in one is never more than what is left above it.
        where: The ledger.
        path: Of a scope, if only it and those below it are shown.
        headline: In place of the number of scopes.
    """
    left, where = left_of(balances), where or balances[0].scope.path
    balances = [
        balance for balance in balances if path is None or is_at_or_below(balance.scope.path, path)
    ]
    texts = headings("scope", "kind", "currency", ">spent", ">left", ">of")
    columns = (*texts, Heading("", bar=True))
    shallow = min((balance.scope.path.count("/") for balance in balances), default=0)
    lefts = ((balance, left[balance.scope.path]) for balance in balances)
    rows = [row for balance, rest in lefts for row in _rows(balance, shallow, rest)]
    shares = [row[-1].count("#") / BAR for row in rows]
    headline = headline or f"{where}: {len(balances)} scope{'s' * (len(balances) != 1)}"
    return Page(where, headline, tables=[PageTable("Scopes", columns, rows, [_ROUNDED], shares)])


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


def _rows(balance: Balance, shallow: int, left: Amounts) -> Iterator[tuple[str, ...]]:
    scope = balance.scope
    depth = scope.path.count("/") - shallow
    name = scope.path if depth == 0 else "  " * depth + scope.path.rpartition("/")[2]
    kind = f"{scope.kind}, closed" if balance.closed else str(scope.kind)
    cells = list(_slots(balance) if scope.kind is Kind.SLOTS else _currencies(balance, left))
    for number, cell in enumerate(cells or [("", "", "", "", "")]):
        yield (*((name, kind) if number == 0 else ("", "")), *cell)


def _slots(balance: Balance) -> Iterator[tuple[str, ...]]:
    slots, taken = balance.scope.slots or 0, balance.taken
    yield "slots", str(taken), str(slots - taken), str(slots), bar(Amount(taken), Amount(slots))
    for name, cap in balance.scope.caps.items():
        yield f"{name} in each", "", "", at_most(cap), ""
    for name, amount in balance.spent.items():
        yield f"{name} for all", at_least(amount), "", "", ""


def _currencies(balance: Balance, left: Amounts) -> Iterator[tuple[str, ...]]:
    target, both_ends, part = _in_epsilon(balance, left)
    if target is not None and (part is not None or "epsilon" not in balance.scope.caps):
        both = ("", "") if both_ends is None else (above(both_ends[0], 4), below(both_ends[1], 4))
        of = " at ".join(few_digits(each, up=False) for each in target)
        shown = "" if part is None else bar(Amount.up(part), Amount.of(1))
        yield "epsilon", *map(trimmed, both), of, shown
    if balance.period is not None:
        renewal = balance.scope.renewal
        yield "period", *balance.period, renewal.words if renewal else "", ""
    # Several theorems are read together; of counts and plain amounts each is one.
    together = part is not None and target is not None
    for name, amount in balance.spent.items():
        if name in balance.scope.caps:
            cap = balance.scope.caps[name]
            if together or not (cap.units or amount.units):
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
    renewed = {"renew": None} if scope.renewal is None else members(scope, "renew=renewal.text")
    return {
        **members(balance, "path=scope.path kind=scope.kind caps=scope.caps spent"),
        "left": left.texts(),
        "target": target and dict(zip(("epsilon", "delta"), target, strict=True)),
        "epsilon": both_ends and dict(zip(("spent", "left"), both_ends, strict=True)),
        "slots": scope.slots,
        "taken": balance.taken if scope.kind is Kind.SLOTS else None,
        **renewed | members(balance, "period closed opened=scope.opened"),
        "description": _without_key(scope.description),
    }


def _without_key(description: dict[str, Any]) -> dict[str, Any]:
    """The description of a scope without the secret key of a release, which stays in the ledger."""
    release = description.get("release")
    if not (isinstance(release, dict) and "key" in release):
        return description
    return description | {"release": cast("dict[str, Any]", release) | {"key": "(not shown)"}}


def entry_page(entry: Entry) -> Page:
    """One entry alone."""
    return log_page([entry], path=entry.scope)


def log_page(entries: Iterable[Entry], *, path: str) -> Page:
    """Entries, oldest first."""
    rows = [
        (str(each.sequence), each.time[:19], each.kind, each.scope, each.actor, _details(each))
        for each in entries
    ]
    titles = ">entry", "time", "kind", "~scope", "~actor", "~what"
    headline = f"{path}: {len(rows):,} {'entry' if len(rows) == 1 else 'entries'}"
    return Page(path, headline, tables=[PageTable.of("Entries", titles, rows)])


def _details(entry: Entry) -> str:
    details: list[str] = []
    if entry.redeems is not None:
        details.append(f"entry {entry.redeems}")
    if "definition" in entry.fields:
        details.append(str(entry.fields["definition"]["kind"]))
    details += [f"{name} {at_least(amount)}" for name, amount in entry.cost.items()]
    mechanism = entry.description.get("mechanism")
    if isinstance(mechanism, str):
        letters = (letter if letter.isprintable() else "?" for letter in mechanism[:120])
        details.append("".join(letters))
    if short := entry.fields.get("short"):
        left = few_digits(short["left"], up=False)
        details.append(f"short of {short['currency']} at {short['scope']}: {left} left")
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
    """The price of a charge in a scope and what is left there; in percent where the budget applies several theorems at
    once."""
    facts = _asked_and_left("would ask", cost, left, percent)
    if epsilon is not None and (fits or epsilon[0] > epsilon[1]):
        costs, rest = trimmed(above(epsilon[0], 4)), trimmed(below(epsilon[1], 4))
        facts.append(("epsilon", f"{costs} asked, {rest} left"))
    headline = f"{path}: it {'fits' if fits else 'does not fit'}; nothing was charged"
    return Page(path, headline, "good" if fits else "bad", facts)


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
    """A charge that was granted; in percent where the budget applies several theorems at once."""
    facts = _asked_and_left("charged", receipt.cost, left, percent)
    facts += [("key", receipt.key), ("receipt", receipt.hash)]
    headline = f"Granted: entry {receipt.sequence} of {receipt.root}, charged to {receipt.scope}"
    following = "run the mechanism, then redeem the receipt: dpcompose ledger redeem"
    return Page(receipt.scope, headline, "good", facts, following=following)


def receipt_document(receipt: Receipt, *, left: Amounts) -> dict[str, Any]:
    """A granted charge as a document for programs; `receipt` is the text that redeems it."""
    granted = {"granted": True} | members(receipt, "scope sequence key cost")
    return granted | {"left": left.texts(), "receipt": receipt.to_json()}


def verification_page(result: Verification, *, where: str = "The ledger") -> Page:
    """The result of a verification that found no fault."""
    facts = [("entries", f"{result.entries:,}"), ("scopes", f"{result.scopes:,}")]
    heads = result.anchor.heads
    facts += [(f"head of {root}", f"{head.sequence} {head.hash}") for root, head in heads]
    unseen = "No anchor was given: entries removed from the end would go unnoticed; use --anchor."
    notes = [] if result.anchored else [unseen]
    signed = "entries, which were signed, were not read again, nor their prices."
    notes += [f"{root}: the first {size:,} {signed}" for root, size in result.since]
    agrees = "Every hash, every decision and every balance agrees"
    agrees += ", and so does the anchor" * result.anchored
    return Page(where, agrees, "good", facts, notes=notes)


def exposure_page(result: Exposure) -> Page:
    """The promise to a person who is in several scopes, and how much of it is spent, as a page."""
    titles = "", ">epsilon at most", ">but with probability", "regime", "~holds"
    rows: list[tuple[str, ...]] = []
    for name, each in (("promised", result.promised), ("spent", result.spent)):
        failure = above(each.failure) if each.failure else ""
        holds = " ".join(filter(None, (each.holds, each.theorem)))
        rows.append((name, above(each.epsilon), failure, each.regime, holds))
    facts = (
        ("present in", ", ".join(result.paths)),
        ("delta", exactly(result.delta)),
        ("neighbors", plain(result.adjacency) or "not one for all"),
        *([("window", result.window)] if result.window else []),
        *(("periods", f"{number} of {path}") for path, number in result.periods.items()),
    )
    promised = trimmed(above(result.promised.epsilon))
    headline = f"epsilon <= {promised} is promised at delta = {exactly(result.delta)}"
    if not result.promised.available:
        headline = f"Nothing finite is promised at delta = {exactly(result.delta)}"
    note = "Promised: the worst case of all future questions. Spent: charges so far."
    tables = [PageTable.of("At most", titles, rows)]
    return Page("Exposure of one person", headline, facts=facts, tables=tables, notes=[note])


def exposure_document(result: Exposure) -> dict[str, Any]:
    """The promise to a person who is in several scopes, and how much of it is spent, as a document for programs."""
    window = {"window": result.window or None}
    return (
        members(result, "paths delta adjacency")
        | window
        | members(result, "periods promised spent")
    )


def listed(amounts: Mapping[str, Amount], shown: Callable[[Amount], str]) -> str:
    """Amounts by currency, on one line."""
    return ", ".join(f"{name} {shown(amount)}" for name, amount in amounts.items())


def advice_document(
    result: Sequence[FilterAdvice], names: Sequence[str], target: Mapping[str, float]
) -> dict[str, Any]:
    """The advice on filters as a document for programs."""
    rows = [
        {
            "filter": each.kind,
            "open": None if each.filter is None else repr(each.filter),
            "work": "unlimited" if each.work is None else rounded_down(each.work),
            "alone": dict(zip(names, each.alone, strict=False)),
            "charge_delta": None if each.delta is None else float(_charge(each.delta)),
            "refusal": each.refusal or None,
        }
        for each in result
    ]
    return {"target": dict(target), "filters": rows}


def advice_page(
    result: Sequence[FilterAdvice], names: Sequence[str], target: Mapping[str, float]
) -> Page:
    """The advice as a table, the best filter first."""
    best = next((each for each in result if each.filter is not None and each.work != 0), None)
    titles = "budget", ">of the plan", *(f">{name}" for name in names), "~take it when"
    rows = [
        (each.kind, *map(_count, (each.work, *each.alone)), TAKE_WHEN[each.kind])
        for each in result
        if each.filter is not None
    ]
    notes = [f"No {each.kind} budget: {each.refusal}." for each in result if each.refusal]
    notes += [
        f"Charge {each.kind} at delta {_charge(each.delta)} where it asks."
        for each in result
        if each.delta
    ]
    aim = f"epsilon {exactly(target['epsilon'])} at delta {exactly(target['delta'])}"
    tables = [PageTable.of(f"Granted within {aim}", titles, rows)]
    title, notes = "Which budget to open", [*_READING, *notes]
    if best is None:
        return Page(title, "No budget grants any of it", "bad", tables=tables, notes=notes)
    headline = f"Open the {best.kind}: {TAKE_WHEN[best.kind]}"
    return Page(title, headline, tables=tables, notes=notes)


def _count(count: Fraction | int | None) -> str:
    if count is None:
        return "no limit"
    return f"{count:,}" if isinstance(count, int) else below(rounded_down(count), 4)


def _charge(delta: Fraction) -> str:
    """A delta of three digits, rounded down."""
    return below(rounded_down(delta), 3)
