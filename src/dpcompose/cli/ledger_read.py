"""`dpcompose ledger`: the commands that only read."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcompose.cli.options import Csv, Json, LedgerUrl, PlanFile, TrustedKeys, option, read_plan
from dpcompose.cli.output import (
    REFUSED,
    emit,
    emit_document,
    error_boundary,
    headed,
    package_version,
    require_writable,
    write,
)
from dpcompose.cli.streams import progress, stderr, stdout
from dpcompose.errors import DomainError, EvidenceError, TamperedError
from dpcompose.files import read

if TYPE_CHECKING:
    from dpcompose.account import Account
    from dpcompose.ledger import Anchor, Balance, Ledger, VerifierKey
    from dpcompose.plan import Plan

LARGEST_ANCHOR = 100_000_000
"""Bytes of an anchor, which has a line for each tree."""

MaybePath = Annotated[
    str | None,
    typer.Argument(metavar="[PATH]", help="A scope; without it, all of them.", show_default=False),
]


def show(
    url: LedgerUrl,
    path: MaybePath = None,
    json: Json = False,
    csv: Csv = False,
    html: Annotated[Path | None, option("Write a page with pictures.", "FILE.html")] = None,
) -> None:
    """Print the tree of scopes with the amounts spent and left."""
    with error_boundary(), progress("reading"), opened(url, reading=True) as ledger:
        from dpcompose.ledger import paths_down_to

        require_writable("--html", html, ".html")
        above = [] if path is None else [ledger.balance(each) for each in paths_down_to(path)[:-1]]
        balances = (*above, *ledger.balances(path))
        if html is not None:
            _write_page(html, ledger, balances, path, url)
    from dpcompose.ledger import is_at_or_below
    from dpcompose.report import balance_document, left_of, tree_page

    left = left_of(balances)
    shown = [each for each in balances if path is None or is_at_or_below(each.scope.path, path)]
    emit(
        "ledger show",
        lambda: {
            "ledger": url,
            "scopes": [balance_document(each, left[each.scope.path]) for each in shown],
        },
        lambda: tree_page(balances, where=url, path=path),
        json=json,
        csv=csv,
    )


def _write_page(
    html: Path, ledger: Ledger, balances: Sequence[Balance], path: str | None, url: str
) -> None:
    from dpcompose.report import budget_svgs, html as html_of, require_pictures, tree_page

    require_pictures()
    roots = [balance for balance in balances if balance.scope.parent is None]
    one = path if path is not None or len(roots) != 1 else roots[0].scope.path
    charged = None if one is None else (ledger.entries(one), ledger.balance(one))
    pictures = budget_svgs(ledger.balances(path), charged)
    page = tree_page(balances, where=url, path=path)
    write(
        "--html",
        html,
        html_of(page, pictures=pictures, producer=f"Made by dpcompose {package_version()}."),
    )
    stderr(f"wrote {html}")


def log(
    url: LedgerUrl,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A scope; those below it too.")],
    after: Annotated[int, typer.Option(help="Only entries with larger numbers.", min=0)] = 0,
    most: Annotated[int, typer.Option(help="At most so many.", min=1)] = 1000,
    tail: Annotated[
        int | None, typer.Option(help="Only the last so many.", min=1, show_default=False)
    ] = None,
    actor: Annotated[str | None, option("Only entries of this actor.", "NAME")] = None,
    since: Annotated[
        str | None, option("Only entries from this day or time on (ISO 8601, UTC).", "TIME")
    ] = None,
    csv: Csv = False,
    json: Json = False,
) -> None:
    """Print the log of a scope and of the scopes below it, oldest first."""
    with error_boundary(), progress("reading"), opened(url, reading=True) as ledger:
        begin = None if since is None else _moment(since)
        found = (
            entry
            for entry in ledger.entries(path, after)
            if (actor is None or entry.actor == actor)
            and (begin is None or datetime.fromisoformat(entry.time) >= begin)
        )
        entries = list(islice(found, most)) if tail is None else list(deque(found, tail))
    from dpcompose.report import entry_document, log_page

    emit(
        "ledger log",
        lambda: {
            "ledger": url,
            "path": path,
            "entries": [entry_document(entry) for entry in entries],
        },
        lambda: log_page(entries, path=path),
        json=json,
        csv=csv,
    )


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise DomainError(
            "--since", text, "a day or a time such as 2026-01-31 or 2026-01-31T12:00"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def price(
    url: LedgerUrl,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A scope.", show_default=False)],
    plan: PlanFile,
    delta: Annotated[str | None, option("The delta at which the plan would be charged.")] = None,
    json: Json = False,
) -> None:
    """Say what a PLAN would be charged in a scope, and whether it fits; charges nothing."""
    with error_boundary(), progress("pricing the plan"), opened(url, reading=True) as ledger:
        from dpcompose.account import Account, charge_in_epsilon

        account = Account(ledger, scope=path)
        cost = account.price(plan_for(account, plan).composition(), delta=delta)
        left = ledger.available(path)
        epsilon = charge_in_epsilon(account.chain, cost, left)
        fits = account.room(cost) > 0
    from dpcompose.report import price_page

    document = {
        "ledger": url,
        "scope": path,
        "fits": fits,
        "cost": {name: str(amount) for name, amount in cost.items()},
        "left": left.texts(),
        "epsilon": None if epsilon is None else {"asked": epsilon[0], "left": epsilon[1]},
    }
    emit(
        "ledger price",
        lambda: document,
        lambda: price_page(path, cost, left=left, epsilon=epsilon, fits=fits),
        json=json,
    )
    if not fits:
        raise typer.Exit(REFUSED)


def plan_for(account: Account, plan: Path) -> Plan:
    """The plan, if it is stated under the adjacency of the scope."""

    read = read_plan(plan)
    if read.adjacency is not account.adjacency:
        raise DomainError(
            "adjacency", read.adjacency.value, f"{account.adjacency.value}, as the scope has it"
        )
    return read


def exposure(
    url: LedgerUrl,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="The scopes whose data hold the person.")
    ],
    delta: Annotated[float, option("At this delta.", "D")],
    window: Annotated[
        str | None,
        option("For budgets that renew: so many of their periods, or a duration such as P3Y.", "W"),
    ] = None,
    json: Json = False,
) -> None:
    """Report the worst-case and spent epsilon of someone in all these scopes."""
    with error_boundary(), progress("reading") as steps, opened(url, reading=True) as ledger:
        from dpcompose.account import exposure as exposure_of

        steps("composing", 0, 1)
        found = exposure_of(ledger, paths=paths, delta=delta, window=window)
    from dpcompose.report import exposure_document, exposure_page

    emit(
        "ledger exposure",
        lambda: {"ledger": url} | exposure_document(found),
        lambda: exposure_page(found),
        json=json,
    )


def verify(
    url: LedgerUrl,
    anchor: Annotated[
        Path | None, option("An anchor or a checkpoint that was kept elsewhere.", "FILE")
    ] = None,
    trust: TrustedKeys = None,
    keep: Annotated[Path | None, option("Write the new anchor to a file.", "FILE")] = None,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored", help="Accept a file that was restored from a copy and may lack entries."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check every hash, decision, balance and price; with --anchor, also that no entry is gone."""
    from dpcompose.account import underpaid_charges

    with error_boundary():
        require_harmless("--keep", keep)
    with (
        error_boundary(),
        progress("reading") as steps,
        opened(url, restored=restored, reading=not restored) as ledger,
    ):
        wanted = None if anchor is None else anchor_in(anchor, trust)
        try:
            found = ledger.verify(wanted, steps)
            steps("pricing charges anew", 0, 1)
            if short := underpaid_charges(ledger):
                raise TamperedError(short)
        except TamperedError as error:
            if json:
                emit_document(
                    "ledger verify",
                    {"ledger": url, "sound": False, "problems": list(error.problems)},
                )
            for problem in error.problems[:20]:
                stderr(f"dpcompose: {problem}")
            raise typer.Exit(REFUSED) from None
        if keep is not None:
            write("--keep", keep, found.anchor.to_json() + "\n")
    from dpcompose.report import verification_page

    counts = {"entries": found.entries, "scopes": found.scopes, "anchored": found.anchored}
    emit(
        "ledger verify",
        lambda: {"ledger": url, "sound": True, **counts, "anchor": found.anchor.to_json()},
        lambda: verification_page(found, where=url),
        json=json,
    )


def export(
    url: LedgerUrl,
    path: MaybePath = None,
    out: Annotated[Path | None, option("Write to a .json file.", "FILE")] = None,
    json: Json = False,
) -> None:
    """Write a document for a public registry of deployments: mechanisms, units, totals; no actors and no keys."""
    # Before the ledger is open: opening its file again would drop the locks on it.
    with error_boundary():
        require_writable("--out", out, ".json")
        require_harmless("--out", out)
    with error_boundary(), progress("reading") as steps, opened(url, reading=True) as ledger:
        from dpcompose.report import deployments_document, dumps

        steps("reading", 0, 1)
        producer = f"dpcompose {package_version()}"
        with ledger.moment() as moment:
            balances = moment.balances(path)
            tops = (
                [path]
                if path is not None
                else [b.scope.path for b in balances if b.scope.parent is None]
            )
            entries = (entry for top in tops for entry in moment.entries(top))
            listed = deployments_document(
                balances, entries, anchor=moment.anchor(), producer=producer
            )
        document = headed("ledger export", listed)
        if out is not None:
            write("--out", out, dumps(document) + "\n")
    if out is None or json:
        stdout(dumps(document) + "\n")
    else:
        stderr(f"wrote {out}")


def opened(
    url: str, *, create: bool = False, restored: bool = False, reading: bool = False
) -> Ledger:
    """The ledger at `url`; if it is only read, it may be where we may not write."""
    from dpcompose.ledger import Ledger, may_write

    if url in ("memory:", ":memory:"):
        raise DomainError(
            "--ledger", url, "a file or a database: what is in memory ends with the command"
        )
    read_only = reading and not may_write(url)
    return Ledger.open(url, create=create, restored=restored, read_only=read_only)


def keys_of(trust: Sequence[str] | None) -> list[VerifierKey]:
    """The keys that were named, or those in the files that were."""
    from dpcompose.ledger import VerifierKey

    lines: list[str] = []
    for each in trust or ():
        lines += text_of("--trust", Path(each)).splitlines() if Path(each).is_file() else [each]
    return [VerifierKey.read(line) for line in lines if line.strip()]


def text_of(option: str, file: Path) -> str:
    """The text of a file of keys, checkpoints or proofs."""
    try:
        content = read(file, most=LARGEST_ANCHOR)
        if len(content) > LARGEST_ANCHOR:
            raise DomainError(option, str(file), f"a file of at most {LARGEST_ANCHOR:,} bytes")
        return content.decode()
    except OSError as error:
        raise DomainError(
            option, str(file), f"a file that can be read ({error.strerror})"
        ) from None
    except UnicodeDecodeError:
        raise DomainError(option, str(file), "a text file") from None


def anchor_in(file: Path, trust: Sequence[str] | None) -> Anchor:
    """The anchor or the checkpoints of a file."""
    from dpcompose.ledger import Anchor, Checkpoint

    text, keys = text_of("--anchor", file), keys_of(trust)
    try:
        return (
            Anchor.read(text.strip())
            if text.lstrip()[:1] == "{"
            else Anchor((), Checkpoint.read_all(text, keys))
        )
    except DomainError:
        raise DomainError(
            "--anchor", str(file), "a file that `dpcompose ledger verify --keep` wrote"
        ) from None
    except EvidenceError as error:
        remedy = "Name its signer's key by --trust" if not keys else ""
        raise DomainError(
            "--anchor", str(file), f"an anchor or a checkpoint ({error.reason})", remedy
        ) from None


def require_harmless(option: str, file: Path | None) -> None:
    """Raise DomainError if `file` cannot be written, or may belong to a ledger."""
    if file is None:
        return
    require_writable(option, file, file.suffix.lower())
    from dpcompose.ledger import is_of_database

    if is_of_database(file):
        raise DomainError(
            option,
            str(file),
            "a file of its own, not one of a database, which would be written over",
        )
