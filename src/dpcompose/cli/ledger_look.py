"""`dpcompose ledger`: looking at what is there, without changing it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcompose.cli.outcome import REFUSED, emit, outcome, say
from dpcompose.cli.output import emit_document, package_version, require_writable, write
from dpcompose.cli.patience import patience
from dpcompose.errors import DomainError, TamperedError
from dpcompose.files import read

if TYPE_CHECKING:
    from dpcompose.ledger import Anchor, Ledger

LARGEST_ANCHOR = 100_000_000
"""Bytes of an anchor; it has a line for each tree."""

LedgerUrl = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="A file, or postgresql://user@host/database.",
        envvar="DPCOMPOSE_LEDGER",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
MaybePath = Annotated[
    str | None, typer.Argument(metavar="[PATH]", help="A scope; without it, all of them.", show_default=False)
]


def show(url: LedgerUrl, path: MaybePath = None, json: Json = False) -> None:
    """Print the tree of scopes with bars of what is spent and left."""
    with outcome(), opened(url) as ledger:
        balances = ledger.balances(path)
    from dpcompose.report.ledger import balance_document, tree_page

    if json:
        emit_document({"ledger": url, "scopes": [balance_document(balance) for balance in balances]})
    else:
        _show(tree_page(balances, where=url))


def log(
    url: LedgerUrl,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A scope; those below it too.")],
    after: Annotated[int, typer.Option(help="Only entries with larger numbers.", min=0)] = 0,
    most: Annotated[int, typer.Option(help="At most so many.", min=1)] = 1000,
    json: Json = False,
) -> None:
    """Print what happened in a scope and below it, oldest first."""
    with outcome(), opened(url) as ledger:
        entries = list(islice(ledger.entries(path, after), most))
    from dpcompose.report.ledger import entry_document, log_page

    if json:
        emit_document({"ledger": url, "path": path, "entries": [entry_document(entry) for entry in entries]})
    else:
        _show(log_page(entries, path=path))


def exposure(
    url: LedgerUrl,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="The scopes whose data hold the person.")],
    delta: Annotated[float, typer.Option(help="At this delta.", metavar="D", show_default=False)],
    json: Json = False,
) -> None:
    """Say what one person, present in all these scopes, is exposed to: what is promised, and what is spent."""
    with outcome(), patience() as progress, opened(url) as ledger:
        from dpcompose.account import exposure as exposure_of

        progress("composing", 0, 1)
        found = exposure_of(ledger, paths=paths, delta=delta)
    from dpcompose.report.exposure import exposure_document, exposure_page

    emit_document({"ledger": url} | exposure_document(found)) if json else _show(exposure_page(found))


def verify(
    url: LedgerUrl,
    anchor: Annotated[
        Path | None, typer.Option(help="An anchor that was kept elsewhere.", metavar="FILE", show_default=False)
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Write the new anchor to a file.", metavar="FILE", show_default=False)
    ] = None,
    restored: Annotated[
        bool, typer.Option("--restored", help="Go on with a file that was put back, and may lack entries.")
    ] = False,
    json: Json = False,
) -> None:
    """Check every hash, decide every entry again, compare every balance; with --anchor, that nothing is gone."""
    with outcome():
        _require_harmless("--keep", keep)
    with outcome(), patience() as progress, opened(url, restored=restored) as ledger:
        wanted = None if anchor is None else _anchor(anchor)
        try:
            found = ledger.verify(wanted, progress)
        except TamperedError as error:
            if json:
                emit_document({"ledger": url, "sound": False, "problems": list(error.problems)})
            for problem in error.problems[:20]:
                say(f"dpcompose: {problem}")
            raise typer.Exit(REFUSED) from None
        if keep is not None:
            write("--keep", keep, found.anchor.to_json() + "\n")
    from dpcompose.report.ledger import verification_page

    if json:
        counts = {"entries": found.entries, "scopes": found.scopes, "anchored": found.anchored}
        emit_document({"ledger": url, "sound": True, **counts, "anchor": found.anchor.to_json()})
    else:
        _show(verification_page(found, where=url))


def export(
    url: LedgerUrl,
    path: MaybePath = None,
    out: Annotated[Path | None, typer.Option(help="Write to a .json file.", metavar="FILE", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Write a document for a public registry of deployments: mechanisms, units, totals; no actors and no keys."""
    with outcome():  # before the ledger is open: to look into its file would drop the locks that are on it
        require_writable("--out", out, ".json")
        _require_harmless("--out", out)
    with outcome(), patience() as progress, opened(url) as ledger:
        from dpcompose.report import dumps
        from dpcompose.report.ledger import deployments_document

        progress("reading", 0, 1)
        producer = f"dpcompose {package_version()}"
        with ledger.moment() as moment:
            balances = moment.balances(path)
            tops = [path] if path is not None else [b.scope.path for b in balances if b.scope.parent is None]
            entries = (entry for top in tops for entry in moment.entries(top))
            document = deployments_document(balances, entries, anchor=moment.anchor(), producer=producer)
        if out is not None:
            write("--out", out, dumps(document) + "\n")
    if out is None or json:
        emit(dumps(document) + "\n")
    else:
        say(f"wrote {out}")


def opened(url: str, *, create: bool = False, restored: bool = False) -> Ledger:
    """The ledger at `url`."""
    from dpcompose.ledger import Ledger

    if url in ("memory:", ":memory:"):
        raise DomainError("--ledger", url, "a file or a database: what is in memory ends with the command")
    return Ledger.open(url, create=create, restored=restored)


def _anchor(file: Path) -> Anchor:
    from dpcompose.ledger import Anchor

    try:
        return Anchor.read(read(file, most=LARGEST_ANCHOR).decode().strip())
    except OSError as error:
        raise DomainError("--anchor", str(file), f"a file that can be read ({error.strerror})") from None
    except ValueError:
        raise DomainError("--anchor", str(file), "a file that `dpcompose ledger verify --keep` wrote") from None


def _require_harmless(option: str, file: Path | None) -> None:
    """Raise DomainError before anything is done if `file` cannot be written, or belongs to a ledger, perhaps."""
    if file is None:
        return
    require_writable(option, file, file.suffix.lower())
    from dpcompose.ledger.sqlite_file import is_database, is_of_database

    if is_database(file) or is_of_database(file):
        raise DomainError(option, str(file), "a file of its own, not one of a database, which would be written over")


def _show(page: Any) -> None:
    from dpcompose.cli.terminal import show as show_page

    show_page(page)
