"""`dpcompose ledger`: budgets that are opened, charged and closed."""

from __future__ import annotations

import json as json_reader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from dpcompose.cli.command import (
    ARGUMENT,
    Actor,
    Key,
    LedgerUrl,
    Result,
    ScopePath,
    command,
    option,
)
from dpcompose.cli.inputs import opened, pairs, plan_for, read_text
from dpcompose.cli.output import REFUSED, stderr
from dpcompose.errors import DomainError, OverdrawnError, printable

if TYPE_CHECKING:
    from dpcompose.account import BudgetArguments
    from dpcompose.ledger import Ledger, Receipt

LARGEST_NAMES = 10**8
"""Bytes of a file of names of scopes."""


@command("json", doing=None)
def init(url: LedgerUrl) -> Result:
    """Create a ledger (safe to repeat)."""
    with opened(url, create=True) as ledger:
        scopes = len(ledger.scopes())
    return Result(
        lambda: {"ledger": url, "scopes": scopes},
        text=f"{printable(url)}: a ledger with {scopes} scopes\n",
    )


@command("json", missing=("filter", "epsilon", "delta", "slots"), doing=None)
def scope(
    url: LedgerUrl,
    path: ScopePath,
    kind: str = "filter",
    filter: str | None = None,
    epsilon: str | None = None,
    delta: str | None = None,
    only: str | None = None,
    mechanism_delta: str | None = None,
    parameter: list[str] | None = None,
    cap: list[str] | None = None,
    slots: int | None = None,
    price_delta: str | None = None,
    adjacency: str = "add-remove",
    odometer: str | None = None,
    renew: str | None = None,
    unit: str | None = None,
    names: Annotated[Path | None, option(name="--from")] = None,
    actor: Actor = "keeper",
    key: Key = None,
) -> Result:
    """Open a scope. Repeating the command is safe; a budget cannot be changed later.

    --epsilon 1 --delta 1e-6 opens a budget for charges of any kind. Another filter is opened with its own parameters,
    --filter concentrated --parameter rho=0.01 --parameter delta=0. A scope in slots takes a slot, and needs neither.

    Args:
        kind: filter, slots or partition.
        filter: menu, or another filter than the budget of the target, by name.
        epsilon: The budget's epsilon.
        delta: The budget's delta; 0 unless named.
        only: One theorem alone: pure, basic, zcdp, renyi or gaussian.
        mechanism_delta: Part of delta reserved for (epsilon, delta) charges.
        parameter (NAME=VALUE): Instead of a target.
        cap (CURRENCY=AMOUNT): A bare cap, without a filter.
        slots: How many slots.
        price_delta: The delta at which all slots are charged above.
        adjacency: add-remove, replace or zero-out.
        odometer (D): Fix an odometer that fails with this probability.
        renew (WHEN): Begin anew each year, quarter, month, week, day, or after a duration such as P30D.
        unit: The protected unit, in words; kept and exported.
        names (FILE): Open many scopes alike below PATH, one for each line of a file, or of - for standard input.
    """
    from dpcompose.account import BudgetArguments
    from dpcompose.ledger import paths_down_to
    from dpcompose.report import document, left_of, tree_page

    target = {"epsilon": epsilon, "delta": delta, "mechanism_delta": mechanism_delta}
    note, text = {} if unit is None else {"unit": unit}, ""
    with opened(url) as ledger:
        budget = BudgetArguments(
            kind,
            filter,
            pairs("--parameter", parameter or []),
            {name: text for name, text in target.items() if text is not None},
            slots=slots,
            price_delta=price_delta,
            adjacency=adjacency,
            odometer=odometer,
            renew=renew,
            note=note,
            only=only,
        )
        if names is not None:
            if cap or key is not None:
                raise DomainError("--from", str(names), "left out beside --cap and --key")
            lines = read_text("--from", names, most=LARGEST_NAMES).split("\n")
            below = [f"{path}/{line.strip()}" for line in lines if line.strip()]
            opened_now = budget.open_all(ledger, below, actor=actor)
            text = f"{printable(path)}: {opened_now} scopes are open below it\n"
        elif cap:
            _require_alone("--cap, which caps amounts without a filter", budget, "kind", "renew")
            if kind == "slots":
                domain = "filter or partition beside --cap: slots need a filter"
                raise DomainError("kind", kind, domain)
            caps, described = pairs("--cap", cap), {"note": note} if note else None
            ledger.scope(
                path, kind=kind, caps=caps, renew=renew, description=described, actor=actor, key=key
            )
        else:
            budget.open(ledger, path, actor=actor, key=key)
        with ledger.moment() as moment:
            balances = [moment.balance(each) for each in paths_down_to(path)]
    return Result(
        lambda: document(balances[-1], left_of(balances)[path]),
        lambda: tree_page(balances, where=url, path=path, headline=f"{path}: open"),
        text,
    )


@command("json", doing="pricing the plan")
def charge(
    url: LedgerUrl,
    path: ScopePath,
    plan: Annotated[Path | None, ARGUMENT] = None,
    cost: list[str] | None = None,
    key: Key = None,
    delta: str | None = None,
    actor: Actor = "keeper",
    redeem: bool = False,
) -> Result:
    """Charge a budget and its parents, atomically, before noise is drawn.

    Args:
        plan ([PLAN]): A plan file: one charge for all of it.
        cost (CURRENCY=AMOUNT): Explicit amounts instead of a plan; name every currency.
        delta: The delta at which the plan is charged.
        redeem: Redeem the receipt at once.
    """
    with opened(url) as ledger:
        if key is None:
            remedy = "A repeat with the same key charges nothing"
            raise DomainError("--key", None, "a key that names this request", remedy)
        try:
            receipt = _charged(ledger, path, plan, cost, key=key, delta=delta, actor=actor)
        except OverdrawnError as refusal:
            return _refused(_in_words(refusal, ledger, path, cost))
        if redeem:
            ledger.redeem(receipt, actor=actor)
        left, percent = ledger.available(path), None
        if plan is not None:  # who names amounts is shown amounts
            from dpcompose.account import charge_in_percent

            percent = charge_in_percent(ledger, path, receipt.cost, charged=True)
    from dpcompose.report import document, page

    return Result(
        lambda: document(receipt, left=left), lambda: page(receipt, left=left, percent=percent)
    )


def _refused(refusal: OverdrawnError) -> Result:
    document = {"granted": False, "scope": refusal.scope, "currency": refusal.currency}
    document |= {"asked": str(refusal.requested), "left": str(refusal.left)}
    document |= {"reason": str(refusal)}
    return Result(lambda: document, remarks=[f"dpcompose: {refusal}"], status=REFUSED)


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
            domain = "nothing beside --cost, which is charged as it is written"
            raise DomainError("--delta", delta, domain)
        from dpcompose.ledger import Amount, paths_down_to

        amounts = pairs("--cost", cost)
        chain = [ledger.balance(each).scope for each in paths_down_to(path)]
        delta_charged = Amount.of(amounts.get("delta", 0), name="delta")
        # Amounts are charged without the theory, where no filter prices them and no delta needs it.
        if delta_charged.units or any("budget" in each.description for each in chain):
            from dpcompose.account import Account, as_promise, refuse_unknown

            refuse_unknown(ledger, path, cost=amounts)
            promise = as_promise(ledger, path, amounts)
            if promise is not None:
                stderr("dpcompose: priced as a promise; a plan that names the mechanism costs less")
                return Account(ledger, scope=path).charge(promise, actor=actor, key=key)
        return ledger.charge(path, cost=amounts, actor=actor, key=key)
    from dpcompose.account import Account

    assert plan is not None, "there is a plan where there is no cost"
    account = Account(ledger, scope=path)
    read = plan_for(account, plan)
    return account.charge(
        read.composition(), actor=actor, key=key, delta=delta, description={"plan": plan.name}
    )


def _in_words(
    refusal: OverdrawnError, ledger: Ledger, path: str, cost: list[str] | None
) -> OverdrawnError:
    """The refusal of a charge, with its amounts as the budget of the scope states them: those of a plan are so already,
    those of --cost are put so here."""
    if not cost:
        return refusal
    from dpcompose.account import refusal_in_words
    from dpcompose.ledger import Amount

    amounts = {name: Amount.of(text, name=name) for name, text in pairs("--cost", cost).items()}
    return refusal_in_words(refusal, ledger, path, cost=amounts)


@command("json", doing=None)
def redeem(
    url: LedgerUrl,
    receipt: Annotated[str, ARGUMENT],
    actor: Actor = "keeper",
) -> Result:
    """Use up the receipt of a charge, before the noise is drawn: one charge pays for one answer.

    Args:
        receipt (RECEIPT): A file, or - : what `charge --json` printed.
    """
    with opened(url) as ledger:
        from dpcompose.ledger import Receipt

        used = Receipt.read(_receipt(receipt))
        ledger.redeem(used, actor=actor)
    return Result(
        lambda: {"scope": used.scope, "sequence": used.sequence, "key": used.key},
        text=f"{printable(used.scope)}: entry {used.sequence} is redeemed\n",
    )


def _receipt(source: str) -> str:
    """The receipt in a file: its whole text, or the field `receipt` of the JSON that a charge printed."""
    text = read_text("RECEIPT", source)
    try:
        document = json_reader.loads(text)
    except (ValueError, RecursionError):
        domain = "the receipt of a charge, or the document that has it"
        raise DomainError("RECEIPT", source, domain) from None
    stated = cast("dict[str, Any]", document).get("receipt") if isinstance(document, dict) else None
    return stated if isinstance(stated, str) else text


@command("json", doing=None)
def close(url: LedgerUrl, path: ScopePath, key: Key = None, actor: Actor = "keeper") -> Result:
    """Close a scope for good: nothing more can be charged in it or below it."""
    with opened(url) as ledger:
        ledger.close_scope(path, actor=actor, key=key or f"close {path}")
    return Result(
        lambda: {"ledger": url, "scope": path, "closed": True},
        text=f"{printable(path)}: closed\n",
    )


def _require_alone(option: str, budget: BudgetArguments, *beside: str) -> None:
    """Raise DomainError if something was typed that the option leaves unheeded: all but what may stand beside it."""
    for name, unset in vars(type(budget)()).items():
        typed = getattr(budget, name)
        if typed != unset and name not in ("note", *beside):
            raise DomainError(name, typed, f"nothing beside {option}")
