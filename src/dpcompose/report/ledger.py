"""A ledger for people and for programs: the tree with what is spent and left, its log, its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, cast

from dpcompose.ledger import Amount, Amounts, Balance, Entry, Kind, Receipt, Verification
from dpcompose.report.page import Column, Fact, Page, Table

BAR = 16
"""Cells of a bar."""


def tree_page(balances: Sequence[Balance], *, where: str, headline: str = "") -> Page:
    """Every scope with what is spent and left, currency by currency, and a bar where there is a cap."""
    columns = (
        Column("scope"),
        Column("kind"),
        Column("currency"),
        Column("spent", "right"),
        Column("left", "right"),
        Column("of", "right"),
        Column("", wrap=False),
    )
    shallow = min((balance.scope.path.count("/") for balance in balances), default=0)
    rows = tuple(row for balance in balances for row in _rows(balance, shallow))
    notes = ("Spent is rounded up, left is rounded down; --json has the exact amounts.",) if rows else ()
    headline = headline or f"{where}: {len(balances)} scope{'s' * (len(balances) != 1)}"
    return Page(where, headline, "plain", (), (Table("Scopes", columns, rows, notes),) if rows else ())


def _rows(balance: Balance, shallow: int) -> Iterator[tuple[str, ...]]:
    scope = balance.scope
    depth = scope.path.count("/") - shallow
    name = scope.path if depth == 0 else "  " * depth + scope.path.rpartition("/")[2]
    kind = f"{scope.kind}, closed" if balance.closed else str(scope.kind)
    cells = list(_slots(balance) if scope.kind is Kind.SLOTS else _currencies(balance))
    for number, cell in enumerate(cells or [("", "", "", "", "")]):
        yield (*((name, kind) if number == 0 else ("", "")), *cell)


def _slots(balance: Balance) -> Iterator[tuple[str, ...]]:
    slots = balance.scope.slots or 0
    free = slots - balance.taken
    yield "slots", str(balance.taken), str(free), str(slots), bar(Amount(balance.taken), Amount(slots))
    for name, cap in balance.scope.caps.items():
        yield f"{name} in each", "", "", at_most(cap), ""
    for name, amount in balance.spent.items():
        yield f"{name} for all", at_least(amount), "", "", ""


def _currencies(balance: Balance) -> Iterator[tuple[str, ...]]:
    left = balance.left
    for name, amount in balance.spent.items():
        if name in balance.scope.caps:
            cap = balance.scope.caps[name]
            yield name, at_least(amount), at_most(left[name]), at_most(cap), bar(amount, cap)
        else:
            yield name, at_least(amount), "", "", ""


def bar(spent: Amount, cap: Amount) -> str:
    """How much of a cap is spent, never shown as less than it is; nothing where nothing may be spent."""
    if cap.units == 0:
        return ""
    filled, share = -(-spent.units * BAR // cap.units), -(-spent.units * 100 // cap.units)
    return f"[{'#' * filled}{'.' * (BAR - filled)}] {share:3} %"


def at_least(amount: Amount) -> str:
    """An amount that was spent, rounded up to six digits."""
    return _short(amount, ROUND_CEILING)


def at_most(amount: Amount) -> str:
    """An amount that is left, rounded down to six digits."""
    return _short(amount, ROUND_FLOOR)


def _short(amount: Amount, rounding: str) -> str:
    rounded = Context(prec=6, rounding=rounding).create_decimal(Decimal(str(amount))).normalize()
    return f"{rounded:f}" if -5 < rounded.adjusted() < 7 else f"{rounded:e}"


def balance_document(balance: Balance) -> dict[str, Any]:
    """A scope and its balance, exactly."""
    scope = balance.scope
    return {
        "path": scope.path,
        "kind": str(scope.kind),
        "caps": scope.caps.texts(),
        "spent": balance.spent.texts(),
        "left": balance.left.texts(),
        "slots": scope.slots,
        "taken": balance.taken if scope.kind is Kind.SLOTS else None,
        "closed": balance.closed,
        "opened": scope.opened,
        "description": _without_key(scope.description),
    }


def _without_key(description: dict[str, Any]) -> dict[str, Any]:
    """What a scope holds for, without the key that a release drew for it: this stays in the ledger."""
    said = description.get("release")
    if not (isinstance(said, dict) and "key" in said):
        return description
    return description | {"release": cast("dict[str, Any]", said) | {"key": "(not shown)"}}


def log_page(entries: Iterable[Entry], *, path: str) -> Page:
    """Entries, oldest first."""
    columns = (
        Column("entry", "right"),
        Column("time"),
        Column("kind"),
        Column("scope", wrap=True),
        Column("actor", wrap=True),
        Column("what", wrap=True),
    )
    rows = tuple(
        (str(entry.sequence), entry.time[:19], entry.kind, entry.scope, entry.actor, _said(entry)) for entry in entries
    )
    return Page(path, f"{path}: {len(rows)} entries", "plain", (), (Table("Entries", columns, rows),) if rows else ())


def _said(entry: Entry) -> str:
    said: list[str] = []
    if entry.redeems is not None:
        said.append(f"entry {entry.redeems}")
    if "definition" in entry.fields:
        said.append(str(entry.fields["definition"]["kind"]))
    said += [f"{name} {at_least(amount)}" for name, amount in entry.cost.items()]
    mechanism = entry.description.get("mechanism")
    if isinstance(mechanism, str):
        said.append("".join(letter if letter.isprintable() else "?" for letter in mechanism[:120]))
    if "short" in entry.fields:
        short = entry.fields["short"]
        said.append(f"short of {short['currency']} at {short['scope']}: {short['left']} left")
    if entry.key is not None:
        said.append(f"key {entry.key}")
    return "; ".join(said)


def entry_document(entry: Entry) -> dict[str, Any]:
    """An entry as it was hashed but for the key of a release, and its hash."""
    shown = {"description": _without_key(entry.description)} if "description" in entry.fields else {}
    return {**entry.fields, **shown, "hash": entry.hash}


def receipt_page(receipt: Receipt, *, left: Amounts) -> Page:
    """A charge that was granted."""
    facts = (
        Fact("charged", listed(receipt.cost, at_least)),
        Fact("left here", listed(left, at_most) or "nothing is capped"),
        Fact("key", receipt.key),
        Fact("receipt", receipt.hash),
    )
    return Page(
        receipt.scope,
        f"Granted: entry {receipt.sequence} of {receipt.root}, charged to {receipt.scope}",
        "good",
        facts,
        (),
    )


def receipt_document(receipt: Receipt, *, left: Amounts) -> dict[str, Any]:
    """The same for programs; `receipt` is the text that redeems it."""
    return {
        "granted": True,
        "scope": receipt.scope,
        "sequence": receipt.sequence,
        "key": receipt.key,
        "cost": receipt.cost.texts(),
        "left": left.texts(),
        "receipt": receipt.to_json(),
    }


def verification_page(found: Verification, *, where: str) -> Page:
    """A ledger that agrees with itself."""
    facts = [Fact("entries", f"{found.entries:,}"), Fact("scopes", f"{found.scopes:,}")]
    facts += [Fact(f"head of {root}", f"{head.sequence} {head.hash}") for root, head in found.anchor.heads]
    notes = () if found.anchored else ("No anchor was given: that nothing was cut off the end is not known.",)
    agrees = "Every hash, every decision and every balance agrees"
    return Page(where, agrees + (", and so does the anchor" * found.anchored), "good", tuple(facts), (), notes)


def listed(amounts: Mapping[str, Amount], shown: Callable[[Amount], str]) -> str:
    """Amounts by currency, on one line."""
    return ", ".join(f"{name} {shown(amount)}" for name, amount in amounts.items())
