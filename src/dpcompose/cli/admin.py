"""`dpcompose ledger admin`: a ledger as a whole, copied and restored; and the schemas of all documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dpcompose.cli.command import (
    ARGUMENT,
    Actor,
    KeptAnchor,
    LedgerUrl,
    Result,
    TrustedKeys,
    command,
)
from dpcompose.cli.inputs import anchor_in, opened
from dpcompose.cli.output import Progress, stdout, write
from dpcompose.errors import DomainError, printable


@command(doing=None)
def schema(
    line: Annotated[list[str] | None, ARGUMENT] = None,
) -> None:
    """Print the JSON schema of a command's documents: dpcompose ledger admin schema ledger show.

    Args:
        line ([COMMAND]...): Such as account, or ledger show; left out: the names of all.
    """
    from dpcompose.document import dumps
    from dpcompose.report import DOCUMENTS, schema as schema_of

    stdout((dumps(schema_of(" ".join(line))) if line else "\n".join(DOCUMENTS)) + "\n")


@command("json", files={"keep": ()})
def backup(
    steps: Progress,
    url: LedgerUrl,
    out: Path | None = None,
    keep: Path | None = None,
) -> Result:
    """Copy a ledger that others go on using into a new file, and verify both.

    Args:
        out (FILE): The new file.
        keep (FILE): Write the anchor to a file, to be kept elsewhere.
    """
    if out is None:
        raise DomainError("--out", None, "a new file")
    with opened(url, reading=True) as ledger:
        from dpcompose.ledger import backup as backup_of

        copy = backup_of(ledger, out, progress=steps)
    anchor = copy.anchor.to_json()
    if keep is not None:
        write("--keep", keep, anchor + "\n")
    counts = {"entries": copy.entries, "scopes": copy.scopes}
    return Result(
        lambda: {"ledger": url, "backup": str(out), **counts, "anchor": anchor},
        text=_agreeing(str(out), copy.entries, copy.scopes),
    )


@command("json")
def restore(
    steps: Progress,
    source: Annotated[Path, ARGUMENT],
    url: LedgerUrl,
    anchor: KeptAnchor = None,
    trust: TrustedKeys = None,
    actor: Actor = "keeper",
) -> Result:
    """Make a ledger from a BACKUP where there is none yet; trees that lack entries of the anchor are closed.

    Args:
        source (BACKUP): What `backup` wrote.
    """
    from dpcompose.ledger import restore as restored_from

    wanted = None if anchor is None else anchor_in(anchor, trust)
    restored = restored_from(source, url, anchor=wanted, actor=actor, progress=steps)
    check, lost = restored.verification, restored.lost
    counts = {"entries": check.entries, "scopes": check.scopes, "anchored": anchor is not None}
    short = [{"scope": root, "has": has, "anchor": had} for root, (has, had) in lost.items()]
    remarks = [
        f"dpcompose: {printable(root)}: "
        + (
            f"what the anchor has after entry {has}, up to {had}, is lost; it is closed"
            if has
            else "it is gone"
        )
        + ". Open a new one that leaves out what may have been spent"
        for root, (has, had) in lost.items()
    ]
    if anchor is None:
        remarks.append(
            "No anchor was given: whether entries are lost is not known, and their budget may be given back"
        )
    return Result(
        lambda: {
            "ledger": url,
            "backup": str(source),
            **counts,
            "lost": short,
            "anchor": check.anchor.to_json(),
        },
        text=_agreeing(url, check.entries, check.scopes),
        remarks=remarks,
    )


def _agreeing(where: str, entries: int, scopes: int) -> str:
    return f"{printable(where)}: {entries} entries and {scopes} scopes, which agree\n"
