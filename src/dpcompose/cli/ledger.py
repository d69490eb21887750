"""`dpcompose ledger`: budgets that are opened, charged and closed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcompose.cli import ledger_look
from dpcompose.cli.ledger_look import LedgerUrl, opened
from dpcompose.cli.outcome import REFUSED, emit, outcome, say
from dpcompose.cli.output import emit_document
from dpcompose.errors import DomainError, OverdrawnError, printable

if TYPE_CHECKING:
    from dpcompose.account.spelling import Spelling
    from dpcompose.ledger import Ledger, Receipt

app = typer.Typer(no_args_is_help=True, help="A ledger of what has been spent, on which data, and what may still be.")
Path_ = Annotated[str, typer.Argument(metavar="PATH", help="A scope, such as world/acme.", show_default=False)]
Actor = Annotated[str, typer.Option(help="Who asks.", envvar="USER")]
Key = Annotated[str | None, typer.Option(help="Asked again with the same key: the same result, once.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def init(url: LedgerUrl, json: Json = False) -> None:
    """Make a ledger where there is none; say where it is."""
    with outcome(), opened(url, create=True) as ledger:
        scopes = len(ledger.scopes())
    if json:
        emit_document({"ledger": url, "scopes": scopes})
    else:
        emit(f"{printable(url)}: a ledger with {scopes} scopes\n")


@app.command()
def scope(
    url: LedgerUrl,
    path: Path_,
    kind: Annotated[str, typer.Option(help="filter, slots or partition.")] = "filter",
    filter: Annotated[
        str | None,
        typer.Option(help="pure, basic, advanced, concentrated, renyi or gaussian.", show_default=False),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="The target of the filter.", show_default=False)] = None,
    delta: Annotated[str | None, typer.Option(help="The target of the filter.", show_default=False)] = None,
    mechanism_delta: Annotated[
        str | None, typer.Option(help="What of delta is kept for the charges.", show_default=False)
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Instead of a target.", show_default=False)
    ] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(metavar="CURRENCY=AMOUNT", help="A bare cap, without a filter.", show_default=False),
    ] = None,
    slots: Annotated[int | None, typer.Option(help="How many slots.", show_default=False)] = None,
    price_delta: Annotated[
        str | None, typer.Option(help="The delta at which all slots are charged above.", show_default=False)
    ] = None,
    adjacency: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    odometer: Annotated[
        str | None,
        typer.Option(metavar="D", help="Fix an odometer that fails with this probability.", show_default=False),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Whom privacy is for, in words; kept and exported.", show_default=False)
    ] = None,
    actor: Actor = "keeper",
    key: Key = None,
    json: Json = False,
) -> None:
    """Open a scope. Opened again in the same words, it is the same scope; it never changes.

    A filter is opened for a target, --filter concentrated --epsilon 1 --delta 1e-6, or with its own parameters,
    --filter concentrated --parameter rho=0.01 --parameter delta=0. A scope in slots takes a slot, and needs neither.
    """
    from dpcompose.account.spelling import Spelling

    with outcome(), opened(url) as ledger:
        note = {} if unit is None else {"unit": unit}
        stated = {"epsilon": epsilon, "delta": delta, "mechanism_delta": mechanism_delta}
        asked = Spelling(
            kind, filter, _pairs("--parameter", parameter or []),
            {name: text for name, text in stated.items() if text is not None},
            slots, price_delta, adjacency, odometer, note,
        )  # fmt: skip
        if cap:
            _require_bare(asked)
            description = {"note": note} if note else None
            ledger.scope(path, kind=kind, caps=_pairs("--cap", cap), description=description, actor=actor, key=key)
        else:
            asked.open(ledger, path, actor=actor, key=key)
        balance = ledger.balance(path)
    from dpcompose.report.ledger import balance_document, tree_page

    emit_document(balance_document(balance)) if json else _show(
        tree_page([balance], where=url, headline=f"{path}: open")
    )


@app.command()
def charge(
    url: LedgerUrl,
    path: Path_,
    plan: Annotated[
        Path | None, typer.Argument(metavar="[PLAN]", help="A plan file: one charge for all of it.", show_default=False)
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(metavar="CURRENCY=AMOUNT", help="A bare cost instead; every currency.", show_default=False),
    ] = None,
    key: Key = None,
    delta: Annotated[
        str | None, typer.Option(help="Where on its curve the plan is charged.", show_default=False)
    ] = None,
    actor: Actor = "keeper",
    redeem: Annotated[bool, typer.Option("--redeem", help="Redeem the receipt at once.")] = False,
    json: Json = False,
) -> None:
    """Charge a scope and all above it, or none of them; before any noise is drawn."""
    with outcome(), opened(url) as ledger:
        if key is None:
            raise DomainError("--key", None, "a key that names this request", "Asked again with it, nothing is charged")
        try:
            receipt = _charged(ledger, path, plan, cost, key, delta, actor)
        except OverdrawnError as refusal:
            if json:
                names = ("scope", "currency", "asked", "left")
                emit_document({"granted": False} | {name: str(getattr(refusal, name)) for name in names})
            say(f"dpcompose: {refusal}")
            raise typer.Exit(REFUSED) from None
        if redeem:
            ledger.redeem(receipt, actor=actor)
        left = ledger.available(path)
    from dpcompose.report.ledger import receipt_document, receipt_page

    emit_document(receipt_document(receipt, left=left)) if json else _show(receipt_page(receipt, left=left))


def _charged(
    ledger: Ledger, path: str, plan: Path | None, cost: list[str] | None, key: str, delta: str | None, actor: str
) -> Receipt:
    if (plan is None) == (not cost):
        raise DomainError("PLAN", plan and str(plan), "a plan file or --cost, one of them")
    if cost:
        if delta is not None:
            raise DomainError("--delta", delta, "nothing beside --cost, which is charged as it is written")
        from dpcompose.account.pricing import refuse_unknown

        amounts = _pairs("--cost", cost)
        refuse_unknown(ledger, path, delta=amounts.get("delta", 0))
        return ledger.charge(path, cost=amounts, actor=actor, key=key)
    from dpcompose.account import Account
    from dpcompose.plan import Plan

    assert plan is not None, "there is a plan where there is no cost"
    read = Plan.read(plan)
    account = Account(ledger, scope=path)
    if read.adjacency is not account.adjacency:
        raise DomainError("adjacency", read.adjacency.value, f"{account.adjacency.value}, as the scope has it")
    return account.charge(read.composition(), actor=actor, key=key, delta=delta, description={"plan": plan.name})


@app.command()
def close(url: LedgerUrl, path: Path_, key: Key = None, actor: Actor = "keeper") -> None:
    """Close a scope for good: nothing more is charged in it or below it."""
    with outcome(), opened(url) as ledger:
        ledger.close_scope(path, actor=actor, key=key or f"close {path}")
    emit(f"{printable(path)}: closed\n")


app.command()(ledger_look.show)
app.command()(ledger_look.log)
app.command()(ledger_look.exposure)
app.command()(ledger_look.verify)
app.command()(ledger_look.export)


def _require_bare(asked: Spelling) -> None:
    """Raise DomainError if something was said that a bare cap leaves unheeded."""
    for name in ("filter", "parameters", "target", "slots", "price_delta", "adjacency", "odometer"):
        if getattr(asked, name) != getattr(type(asked)(), name):
            raise DomainError(name, getattr(asked, name), "nothing beside --cap, which caps amounts without a filter")
    if asked.kind == "slots":
        raise DomainError("kind", asked.kind, "filter or partition beside --cap: slots need a filter")


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    """`epsilon=0.1`, several times, as a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        match = re.fullmatch(r"([^=]+)=([^=]*)", text)
        if match is None or match[1] in found:
            raise DomainError(option, text, "name=value, each name once")
        found[match[1]] = match[2]
    return found


def _show(page: Any) -> None:
    from dpcompose.cli.terminal import show

    show(page)
