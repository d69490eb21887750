"""`dpcompose ledger`: looking at what is there, without changing it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcompose.cli.outcome import REFUSED, outcome, say
from dpcompose.cli.output import package_version, require_writable, write
from dpcompose.cli.patience import patience
from dpcompose.errors import DomainError, TamperedError

if TYPE_CHECKING:
    from dpcompose.ledger import Anchor, Ledger

Place = Annotated[
    str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://user@host/database.", envvar="DPCOMPOSE_LEDGER")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
MaybePath = Annotated[
    str | None, typer.Argument(metavar="[PATH]", help="A scope; without it, all of them.", show_default=False)
]


def show(place: Place, path: MaybePath = None, json: Json = False) -> None:
    """Print the tree of scopes with bars of what is spent and left."""
    with outcome(), opened(place) as ledger:
        balances = ledger.balances(path)
    from dpcompose.report.ledger import balance_document, tree_page

    if json:
        print_document({"ledger": place, "scopes": [balance_document(balance) for balance in balances]})
    else:
        _show(tree_page(balances, where=place))


def log(
    place: Place,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A scope; those below it too.")],
    after: Annotated[int, typer.Option(help="Only entries with larger numbers.", min=0)] = 0,
    most: Annotated[int, typer.Option(help="At most so many.", min=1)] = 1000,
    json: Json = False,
) -> None:
    """Print what happened in a scope and below it, oldest first."""
    with outcome(), opened(place) as ledger:
        entries = list(islice(ledger.entries(path, after), most))
    from dpcompose.report.ledger import entry_document, log_page

    if json:
        print_document({"ledger": place, "path": path, "entries": [entry_document(entry) for entry in entries]})
    else:
        _show(log_page(entries, path=path))


def exposure(
    place: Place,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="The scopes whose data hold the person.")],
    delta: Annotated[float, typer.Option(help="At this delta.", metavar="D", show_default=False)],
    json: Json = False,
) -> None:
    """Say what one person, present in all these scopes, is exposed to: what is promised, and what is spent."""
    with outcome(), patience() as progress, opened(place) as ledger:
        from dpcompose.account import exposure as exposure_of

        progress("composing", 0, 1)
        found = exposure_of(ledger, paths=paths, delta=delta)
    from dpcompose.report.exposure import exposure_document, exposure_page

    print_document({"ledger": place} | exposure_document(found)) if json else _show(exposure_page(found))


def verify(
    place: Place,
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
    with outcome(), patience() as progress, opened(place, restored=restored) as ledger:
        wanted = None if anchor is None else _anchor(anchor)
        try:
            found = ledger.verify(wanted, progress)
        except TamperedError as error:
            if json:
                print_document({"ledger": place, "sound": False, "problems": list(error.problems)})
            for problem in error.problems[:20]:
                say(f"dpcompose: {problem}")
            raise typer.Exit(REFUSED) from None
        if keep is not None:
            write("--keep", keep, found.anchor.to_json() + "\n")
    from dpcompose.report.ledger import verification_page

    if json:
        counts = {"entries": found.entries, "scopes": found.scopes, "anchored": found.anchored}
        print_document({"ledger": place, "sound": True, **counts, "anchor": found.anchor.to_json()})
    else:
        _show(verification_page(found, where=place))


def export(
    place: Place,
    path: MaybePath = None,
    out: Annotated[Path | None, typer.Option(help="Write to a .json file.", metavar="FILE", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Write a document for a public registry of deployments: mechanisms, units, totals; no actors and no keys."""
    with outcome():  # before the ledger is open: to look into its file would drop the locks that are on it
        require_writable("--out", out, ".json")
        _require_harmless("--out", out)
    with outcome(), patience() as progress, opened(place) as ledger:
        from dpcompose.report import dumps
        from dpcompose.report.deployments import deployments_document

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
        print(dumps(document))
    else:
        say(f"wrote {out}")


def opened(place: str, *, create: bool = False, restored: bool = False) -> Ledger:
    """The ledger at `place`."""
    from dpcompose.ledger import Ledger

    if place in ("memory:", ":memory:"):
        raise DomainError("LEDGER", place, "a file or a database: what is in memory ends with the command")
    return Ledger.open(place, create=create, restored=restored)


def print_document(document: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    from dpcompose.report import dumps

    print(dumps({"dpcompose": package_version()} | document))


def _anchor(file: Path) -> Anchor:
    from dpcompose.ledger import Anchor

    try:
        return Anchor.read(file.read_text(encoding="utf-8").strip())
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
