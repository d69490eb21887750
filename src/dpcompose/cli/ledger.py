"""`dpcompose ledger`: budgets that are opened, charged and closed."""

from __future__ import annotations

import json as json_reader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dpcompose.cli import ledger_evidence, ledger_operations, ledger_read
from dpcompose.cli.ledger_read import opened
from dpcompose.cli.options import Actor, Json, LedgerUrl, option, pairs, read_text
from dpcompose.cli.output import REFUSED, emit, emit_document, error_boundary
from dpcompose.cli.streams import progress, stderr, stdout
from dpcompose.errors import DomainError, OverdrawnError, printable

if TYPE_CHECKING:
    from dpcompose.account import BudgetArguments
    from dpcompose.ledger import Ledger, Receipt

app = typer.Typer(no_args_is_help=True, help="Open, charge and audit privacy budgets.")
Path_ = Annotated[
    str, typer.Argument(metavar="PATH", help="A scope, such as world/acme.", show_default=False)
]
Key = Annotated[
    str | None, typer.Option(help="Idempotency key: a repeat returns the same result, free.")
]


@app.command()
def init(url: LedgerUrl, json: Json = False) -> None:
    """Create a ledger (safe to repeat)."""
    with error_boundary(), opened(url, create=True) as ledger:
        scopes = len(ledger.scopes())
    if json:
        emit_document("ledger init", {"ledger": url, "scopes": scopes})
    else:
        stdout(f"{printable(url)}: a ledger with {scopes} scopes\n")


@app.command()
def scope(
    url: LedgerUrl,
    path: Path_,
    kind: Annotated[str, typer.Option(help="filter, slots or partition.")] = "filter",
    filter: Annotated[
        str | None, option("menu, or another filter than the budget of the target, by name.")
    ] = None,
    epsilon: Annotated[str | None, option("The budget's epsilon.")] = None,
    delta: Annotated[str | None, option("The budget's delta; 0 unless named.")] = None,
    only: Annotated[
        str | None, option("One theorem alone: pure, basic, zcdp, renyi or gaussian.")
    ] = None,
    mechanism_delta: Annotated[
        str | None, option("Part of delta reserved for (epsilon, delta) charges.")
    ] = None,
    parameter: Annotated[list[str] | None, option("Instead of a target.", "NAME=VALUE")] = None,
    cap: Annotated[
        list[str] | None, option("A bare cap, without a filter.", "CURRENCY=AMOUNT")
    ] = None,
    slots: Annotated[int | None, option("How many slots.")] = None,
    split: Annotated[
        int | None, option("Divide what is left above into so many equal slots.", "N")
    ] = None,
    price_delta: Annotated[
        str | None, option("The delta at which all slots are charged above.")
    ] = None,
    adjacency: Annotated[str, typer.Option(help="add-remove, replace or zero-out.")] = "add-remove",
    odometer: Annotated[
        str | None, option("Fix an odometer that fails with this probability.", "D")
    ] = None,
    renew: Annotated[
        str | None,
        option(
            "Begin anew each year, quarter, month, week, day, or after a duration such as P30D.",
            "WHEN",
        ),
    ] = None,
    unit: Annotated[str | None, option("The protected unit, in words; kept and exported.")] = None,
    actor: Actor = "keeper",
    key: Key = None,
    json: Json = False,
) -> None:
    """Open a scope. Repeating the command is safe; a budget cannot be changed later.

    --epsilon 1 --delta 1e-6 opens a budget for charges of any kind. Another filter is opened with its own parameters,
    --filter concentrated --parameter rho=0.01 --parameter delta=0. A scope in slots takes a slot, and needs neither.
    """
    from dpcompose.account import BudgetArguments

    with error_boundary("filter", "epsilon", "delta", "slots"), opened(url) as ledger:
        note = {} if unit is None else {"unit": unit}
        stated = {"epsilon": epsilon, "delta": delta, "mechanism_delta": mechanism_delta}
        asked = BudgetArguments(
            kind,
            filter,
            pairs("--parameter", parameter or []),
            {name: text for name, text in stated.items() if text is not None},
            slots=slots,
            price_delta=price_delta,
            adjacency=adjacency,
            odometer=odometer,
            renew=renew,
            note=note,
            only=only,
        )
        if split is not None:
            _split(asked, ledger, path, split, actor=actor, key=key)
        elif cap:
            _require_bare(asked)
            description = {"note": note} if note else None
            caps = pairs("--cap", cap)
            ledger.scope(
                path,
                kind=kind,
                caps=caps,
                renew=renew,
                description=description,
                actor=actor,
                key=key,
            )
        else:
            asked.open(ledger, path, actor=actor, key=key)
        balances = ledger.balances(path.partition("/")[0])
    from dpcompose.report import balance_document, left_of, tree_page

    (balance,) = (each for each in balances if each.scope.path == path)
    emit(
        "ledger scope",
        lambda: balance_document(balance, left_of(balances)[path]),
        lambda: tree_page(balances, where=url, path=path, headline=f"{path}: open"),
        json=json,
    )


@app.command()
def charge(
    url: LedgerUrl,
    path: Path_,
    plan: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PLAN]", help="A plan file: one charge for all of it.", show_default=False
        ),
    ] = None,
    cost: Annotated[
        list[str] | None,
        option("Explicit amounts instead of a plan; name every currency.", "CURRENCY=AMOUNT"),
    ] = None,
    key: Key = None,
    delta: Annotated[str | None, option("The delta at which the plan is charged.")] = None,
    actor: Actor = "keeper",
    redeem: Annotated[bool, typer.Option("--redeem", help="Redeem the receipt at once.")] = False,
    json: Json = False,
) -> None:
    """Charge a budget and its parents, atomically, before noise is drawn."""
    with error_boundary(), progress("pricing the plan"), opened(url) as ledger:
        if key is None:
            raise DomainError(
                "--key",
                None,
                "a key that names this request",
                "A repeat with the same key charges nothing",
            )
        try:
            receipt = _charged(ledger, path, plan, cost, key=key, delta=delta, actor=actor)
        except OverdrawnError as refusal:
            refusal = _in_words(refusal, ledger, path, cost)
            if json:
                amounts = {"asked": str(refusal.asked), "left": str(refusal.left)}
                refused = {
                    "granted": False,
                    "scope": refusal.scope,
                    "currency": refusal.currency,
                    **amounts,
                }
                emit_document("ledger charge", refused | {"reason": str(refusal)})
            stderr(f"dpcompose: {refusal}")
            raise typer.Exit(REFUSED) from None
        if redeem:
            ledger.redeem(receipt, actor=actor)
        left = ledger.available(path)
    from dpcompose.report import receipt_document, receipt_page

    emit(
        "ledger charge",
        lambda: receipt_document(receipt, left=left),
        lambda: receipt_page(receipt, left=left),
        json=json,
    )


def _charged(
    ledger: Ledger,
    path: str,
    plan: Path | None,
    cost: list[str] | None,
    *,
    key: str,
    delta: str | None,
    actor: str,
) -> Receipt:
    if (plan is None) == (not cost):
        raise DomainError("PLAN", plan and str(plan), "a plan file or --cost, one of them")
    if cost:
        if delta is not None:
            raise DomainError(
                "--delta", delta, "nothing beside --cost, which is charged as it is written"
            )
        from dpcompose.account import Account, as_promise, refuse_unknown

        amounts = pairs("--cost", cost)
        refuse_unknown(ledger, path, delta=amounts.get("delta", 0))
        promise = as_promise(ledger, path, amounts)
        if promise is not None:
            stderr("dpcompose: priced as a promise; a plan that names the mechanism costs less")
            return Account(ledger, scope=path).charge(promise, actor=actor, key=key)
        return ledger.charge(path, cost=amounts, actor=actor, key=key)
    from dpcompose.account import Account

    assert plan is not None, "there is a plan where there is no cost"
    account = Account(ledger, scope=path)
    read = ledger_read.plan_for(account, plan)
    return account.charge(
        read.composition(), actor=actor, key=key, delta=delta, description={"plan": plan.name}
    )


def _in_words(
    refusal: OverdrawnError, ledger: Ledger, path: str, cost: list[str] | None
) -> OverdrawnError:
    """The refusal of a bare cost in the words of the scope that was named; that of a plan has them already."""
    if not cost:
        return refusal
    from dpcompose.account import refusal_in_words
    from dpcompose.ledger import Amount

    asked = {name: Amount.of(text, name=name) for name, text in pairs("--cost", cost).items()}
    return refusal_in_words(refusal, ledger, path, cost=asked)


@app.command()
def redeem(
    url: LedgerUrl,
    receipt: Annotated[
        str, typer.Argument(metavar="RECEIPT", help="A file, or - : what `charge --json` printed.")
    ],
    actor: Actor = "keeper",
    json: Json = False,
) -> None:
    """Use up the receipt of a charge, before the noise is drawn: one charge pays for one answer."""
    with error_boundary(), opened(url) as ledger:
        from dpcompose.ledger import Receipt

        found = Receipt.read(_receipt(receipt))
        ledger.redeem(found, actor=actor)
    if json:
        emit_document(
            "ledger redeem", {"scope": found.scope, "sequence": found.sequence, "key": found.key}
        )
    else:
        stdout(f"{printable(found.scope)}: entry {found.sequence} is redeemed\n")


def _receipt(source: str) -> str:
    """The text of a receipt: of a file, alone or in the document of a charge."""
    text = read_text("RECEIPT", source)
    try:
        document = json_reader.loads(text)
    except (ValueError, RecursionError):
        raise DomainError(
            "RECEIPT", source, "the receipt of a charge, or the document that has it"
        ) from None
    stated = cast("dict[str, Any]", document).get("receipt") if isinstance(document, dict) else None
    return stated if isinstance(stated, str) else text


@app.command()
def close(
    url: LedgerUrl, path: Path_, key: Key = None, actor: Actor = "keeper", json: Json = False
) -> None:
    """Close a scope for good: nothing more can be charged in it or below it."""
    with error_boundary(), opened(url) as ledger:
        ledger.close_scope(path, actor=actor, key=key or f"close {path}")
    if json:
        emit_document("ledger close", {"ledger": url, "scope": path, "closed": True})
    else:
        stdout(f"{printable(path)}: closed\n")


app.command()(ledger_read.show)
app.command()(ledger_read.price)
app.command()(ledger_read.log)
app.command()(ledger_read.exposure)
app.command()(ledger_read.verify)
app.command()(ledger_read.export)
app.command()(ledger_evidence.key)
app.command()(ledger_evidence.announce)
app.command()(ledger_evidence.checkpoint)
app.command()(ledger_evidence.prove)
app.command()(ledger_operations.backup)
app.command()(ledger_operations.restore)
app.command("check-proof")(ledger_evidence.check_proof)


def _split(
    asked: BudgetArguments, ledger: Ledger, path: str, parts: int, *, actor: str, key: str | None
) -> None:
    """Open equal slots for all that is left in the scope above."""
    from dpcompose.account import BudgetArguments, open_equal_slots

    if asked != BudgetArguments(note=asked.note):
        raise DomainError(
            "--split", parts, "nothing beside it but --unit: it divides what is left above"
        )
    open_equal_slots(ledger, path, parts=parts, note=asked.note, actor=actor, key=key)


def _require_bare(asked: BudgetArguments) -> None:
    """Raise DomainError if something was said that a bare cap leaves unheeded."""
    for name in (
        "filter",
        "parameters",
        "target",
        "slots",
        "price_delta",
        "adjacency",
        "odometer",
        "only",
    ):
        if getattr(asked, name) != getattr(type(asked)(), name):
            raise DomainError(
                name,
                getattr(asked, name),
                "nothing beside --cap, which caps amounts without a filter",
            )
    if asked.kind == "slots":
        raise DomainError(
            "kind", asked.kind, "filter or partition beside --cap: slots need a filter"
        )
