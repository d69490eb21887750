"""`dpcompose ledger`: what a keeper does to the ledger as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcompose.cli.ledger_read import anchor_in, opened, require_harmless
from dpcompose.cli.options import Actor, Json, LedgerUrl, TrustedKeys, option
from dpcompose.cli.output import emit_document, error_boundary, write
from dpcompose.cli.streams import progress, stderr, stdout
from dpcompose.errors import DomainError, printable


def backup(
    url: LedgerUrl,
    out: Annotated[Path | None, option("The new file.", "FILE")] = None,
    keep: Annotated[
        Path | None, option("Write the anchor to a file, to be kept elsewhere.", "FILE")
    ] = None,
    json: Json = False,
) -> None:
    """Copy a ledger that others go on using into a new file, and verify both."""
    with error_boundary():
        if out is None:
            raise DomainError("--out", None, "a new file")
        require_harmless("--keep", keep)
    with error_boundary(), progress("reading") as steps, opened(url, reading=True) as ledger:
        from dpcompose.ledger import backup as backup_of

        found = backup_of(ledger, out, progress=steps)
        if keep is not None:
            write("--keep", keep, found.anchor.to_json() + "\n")
    counts = {"entries": found.entries, "scopes": found.scopes}
    if json:
        emit_document(
            "ledger backup",
            {"ledger": url, "backup": str(out), **counts, "anchor": found.anchor.to_json()},
        )
    else:
        stdout(
            f"{printable(str(out))}: {found.entries} entries and {found.scopes} scopes, which agree\n"
        )


def restore(
    source: Annotated[
        Path, typer.Argument(metavar="BACKUP", help="What `backup` wrote.", show_default=False)
    ],
    url: LedgerUrl,
    anchor: Annotated[
        Path | None, option("An anchor or a checkpoint that was kept elsewhere.", "FILE")
    ] = None,
    trust: TrustedKeys = None,
    actor: Actor = "keeper",
    json: Json = False,
) -> None:
    """Make a ledger from a BACKUP where there is none yet; trees that lack entries of the anchor are closed."""
    with error_boundary(), progress("reading") as steps:
        from dpcompose.ledger import restore as restored_from

        wanted = None if anchor is None else anchor_in(anchor, trust)
        made = restored_from(source, url, anchor=wanted, actor=actor, progress=steps)
    found, lost = made.verification, made.lost
    counts = {"entries": found.entries, "scopes": found.scopes, "anchored": anchor is not None}
    if json:
        short = [{"scope": root, "has": has, "anchor": had} for root, (has, had) in lost.items()]
        emit_document(
            "ledger restore",
            {
                "ledger": url,
                "backup": str(source),
                **counts,
                "lost": short,
                "anchor": found.anchor.to_json(),
            },
        )
    else:
        stdout(
            f"{printable(url)}: {found.entries} entries and {found.scopes} scopes, which agree\n"
        )
    for root, (has, had) in lost.items():
        what = (
            f"what the anchor has after entry {has}, up to {had}, is lost; it is closed"
            if has
            else "it is gone"
        )
        stderr(
            f"dpcompose: {printable(root)}: {what}. Open a new one that leaves out what may have been spent"
        )
    if anchor is None:
        stderr(
            "No anchor was given: whether entries are lost is not known, and their budget may be given back"
        )
