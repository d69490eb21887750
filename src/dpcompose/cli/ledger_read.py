"""`dpcompose ledger`: the commands that only read."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose.cli.command import (
    ARGUMENT,
    KeptAnchor,
    LedgerUrl,
    PlanFile,
    Result,
    TrustedKeys,
    argument,
    command,
    option,
)
from dpcompose.cli.inputs import anchor_in, opened, plan_for, typed
from dpcompose.cli.output import DONE, REFUSED, Progress, write
from dpcompose.errors import DomainError, TamperedError

if TYPE_CHECKING:
    from dpcompose.report import Picture

MaybePath = Annotated[str | None, argument("[PATH]", "A scope; without it, all of them.")]


@command("json", "csv", "html")
def show(url: LedgerUrl, html: Path | None, path: MaybePath = None) -> Result:
    """Print the tree of scopes with the amounts spent and left."""
    from dpcompose.ledger import is_at_or_below, paths_down_to
    from dpcompose.report import document, left_of, tree_page

    with opened(url, reading=True) as ledger:
        above = [] if path is None else [ledger.balance(each) for each in paths_down_to(path)[:-1]]
        balances = (*above, *ledger.balances(path))
        pictures: Sequence[Picture] = ()
        if html is not None:
            from dpcompose.report import budget_pictures

            roots = [balance.scope.path for balance in balances if balance.scope.parent is None]
            one = path if path is not None or len(roots) != 1 else roots[0]
            charged = None if one is None else (ledger.entries(one), ledger.balance(one))
            pictures = budget_pictures(ledger.balances(path), charged)
    left = left_of(balances)
    shown = [each for each in balances if path is None or is_at_or_below(each.scope.path, path)]
    return Result(
        lambda: {
            "ledger": url,
            "scopes": [document(each, left[each.scope.path]) for each in shown],
        },
        lambda: tree_page(balances, where=url, path=path),
        pictures=lambda: pictures,
    )


@command("json", "csv")
def log(
    url: LedgerUrl,
    path: Annotated[str, ARGUMENT],
    after: Annotated[int, option(min=0)] = 0,
    most: Annotated[int, option(min=1)] = 1000,
    tail: Annotated[int | None, option(min=1)] = None,
    actor: str | None = None,
    since: str | None = None,
) -> Result:
    """Print the log of a scope and of the scopes below it, oldest first.

    Args:
        path (PATH): A scope; those below it too.
        after: Only entries with larger numbers.
        most: At most so many.
        tail: Only the last so many.
        actor (NAME): Only entries of this actor.
        since (TIME): Only entries from this day or time on (ISO 8601, UTC).
    """
    from dpcompose.report import document, log_page

    with opened(url, reading=True) as ledger:
        begin = typed(
            "--since", since, _moment, "a day or a time such as 2026-01-31 or 2026-01-31T12:00"
        )
        chosen = (
            entry
            for entry in ledger.entries(path, after)
            if (actor is None or entry.actor == actor)
            and (begin is None or datetime.fromisoformat(entry.time) >= begin)
        )
        entries = list(islice(chosen, most)) if tail is None else list(deque(chosen, tail))
    return Result(
        lambda: {"ledger": url, "path": path, "entries": [document(entry) for entry in entries]},
        lambda: log_page(entries, path=path),
    )


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@command("json", doing="pricing the plan")
def price(
    url: LedgerUrl,
    path: Annotated[str, ARGUMENT],
    plan: PlanFile,
    delta: str | None = None,
) -> Result:
    """Say what a PLAN would be charged in a scope, and whether it fits; charges nothing.

    Args:
        path (PATH): A scope.
        delta: The delta at which the plan would be charged.
    """
    from dpcompose.account import Account, charge_in_epsilon, charge_in_percent
    from dpcompose.report import price_page

    with opened(url, reading=True) as ledger:
        account = Account(ledger, scope=path)
        cost = account.price(plan_for(account, plan).composition(), delta=delta)
        left = ledger.available(path)
        epsilon = charge_in_epsilon(account.chain, cost, left)
        percent, fits = charge_in_percent(ledger, path, cost), account.room(cost) > 0
    stated: dict[str, Any] = {"ledger": url, "scope": path, "fits": fits, "left": left.texts()}
    stated["cost"] = {name: str(amount) for name, amount in cost.items()}
    stated["epsilon"] = epsilon and dict(zip(("asked", "left"), epsilon, strict=True))
    return Result(
        lambda: stated,
        lambda: price_page(path, cost, left=left, epsilon=epsilon, fits=fits, percent=percent),
        status=DONE if fits else REFUSED,
    )


@command("json")
def exposure(
    steps: Progress,
    url: LedgerUrl,
    paths: Annotated[list[str], ARGUMENT],
    delta: float,
    window: str | None = None,
) -> Result:
    """Report the worst-case and spent epsilon of someone in all these scopes.

    Args:
        paths (PATH...): The scopes whose data hold the person.
        delta (D): At this delta.
        window (W): For budgets that renew: so many of their periods, or a duration such as P3Y.
    """
    from dpcompose.account import exposure as exposure_of
    from dpcompose.report import document, page

    with opened(url, reading=True) as ledger:
        steps("composing", 0, 1)
        person = exposure_of(ledger, paths=paths, delta=delta, window=window)
    return Result(lambda: {"ledger": url} | document(person), lambda: page(person))


@command("json", files={"keep": ()})
def verify(
    steps: Progress,
    url: LedgerUrl,
    anchor: KeptAnchor = None,
    trust: TrustedKeys = None,
    state: Path | None = None,
    keep: Path | None = None,
    restored: bool = False,
) -> Result:
    """Check every hash, decision, balance and price; with --anchor, also that no entry is gone.

    Args:
        state (FILE): Begin at the checkpoints of --anchor, with the balances that `checkpoint --state` wrote.
        keep (FILE): Write the new anchor to a file.
        restored: Accept a file that was restored from a copy and may lack entries.
    """
    from dpcompose.account import underpaid_charges
    from dpcompose.report import page

    with opened(url, restored=restored, reading=not restored) as ledger:
        wanted = None if anchor is None else anchor_in(anchor, trust, state)
        if wanted is None and state is not None:
            raise DomainError("--state", str(state), "left out without --anchor")
        try:
            checked = ledger.verify(wanted, steps)
            steps("pricing charges anew", 0, 1)
            if not checked.since and (short := underpaid_charges(ledger)):
                raise TamperedError(short)
        except TamperedError as error:
            problems = list(error.problems)
            return Result(
                lambda: {"ledger": url, "sound": False, "problems": problems},
                remarks=[f"dpcompose: {problem}" for problem in problems[:20]],
                status=REFUSED,
            )
    new = checked.anchor.to_json()
    if keep is not None:
        write("--keep", keep, new + "\n")
    counts = {"entries": checked.entries, "scopes": checked.scopes, "anchored": checked.anchored}
    counts |= {"since": dict(checked.since)} if checked.since else {}
    return Result(
        lambda: {"ledger": url, "sound": True, **counts, "anchor": new},
        lambda: page(checked, where=url),
    )
