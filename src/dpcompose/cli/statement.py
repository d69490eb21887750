"""`dpcompose statement` and `dpcompose verify`: what a publisher says of a plan, and whether it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcompose.cli.ledger_read import opened
from dpcompose.cli.options import Json, PlanFile, option, read_plan
from dpcompose.cli.output import emit, emit_document, error_boundary, require_writable, write
from dpcompose.cli.streams import progress, stderr, stdout
from dpcompose.errors import DomainError
from dpcompose.files import path_of, read

if TYPE_CHECKING:
    from dpcompose.interop import Verified
    from dpcompose.report import Page

LedgerToAsk = Annotated[
    str | None, option("The ledger that has the charges, to be verified too.", "URL")
]


def statement(
    plan: PlanFile,
    unit: Annotated[str, option('The unit of privacy, such as "one user".', "TEXT")],
    delta: Annotated[
        float | None, option("The delta of the guarantee; by default the plan's.", "D")
    ] = None,
    sampling: Annotated[str, option("How records were drawn, in your words.", "TEXT")] = "",
    records: Annotated[int, typer.Option(help="The most records of one unit in the data.")] = 1,
    card: Annotated[Path | None, option("Write a section of a model card.", "FILE.md")] = None,
    privacy: Annotated[
        Path | None, option("Write the document that `dpcompose verify` checks.", "FILE.json")
    ] = None,
    json: Json = False,
) -> None:
    """Write a paragraph to publish about the privacy of a PLAN, with certified numbers, all rounded to stay true."""
    with error_boundary("delta"), progress("certifying the plan"):
        from dpcompose.interop import privacy_json, statement as stated

        require_writable("--card", card, ".md")
        require_writable("--privacy", privacy, ".json")
        found = stated(read_plan(plan), unit=unit, delta=delta, sampling=sampling, records=records)
        for name, path, text in (
            ("--card", card, found.model_card),
            ("--privacy", privacy, privacy_json(found)),
        ):
            if path is not None:
                write(name, path, text)
                stderr(f"wrote {path}")
    if json:
        emit_document(
            "statement",
            {"epsilon": found.epsilon, "delta": found.delta, "paragraph": found.paragraph},
        )
    else:
        stdout(found.paragraph + "\n")


def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A privacy.json.", show_default=False)
    ],
    digest: Annotated[
        str | None, option("Its digest, as it was published elsewhere.", "HEX")
    ] = None,
    ledger: LedgerToAsk = None,
    json: Json = False,
) -> None:
    """Check a privacy.json to the last byte, and price its mechanisms again; exit status 1 if it does not hold."""
    with error_boundary(), progress("pricing the mechanisms again"):
        from dpcompose.interop import LARGEST, verify as verified

        try:
            content = read(path_of("FILE", file), most=LARGEST)
        except OSError as error:
            raise DomainError(
                "FILE", str(file), f"a file that can be read ({error.strerror})"
            ) from None
        if ledger is None:
            found = verified(content, digest=digest)
        else:
            with opened(ledger, reading=True) as kept:
                found = verified(content, digest=digest, ledger=kept)
    emit("verify", lambda: _document(found), lambda: _page(found, str(file)), json=json)


def _document(found: Verified) -> dict[str, Any]:
    from dpcompose.report import bound_document

    stated = found.statement
    return {
        "epsilon": stated.epsilon,
        "delta": stated.delta,
        "certified": bound_document(found.bound),
        "unit": stated.unit,
        "digest": found.digest,
        "checked": list(found.checked),
        "unchecked": list(found.unchecked),
    }


def _page(found: Verified, source: str) -> Page:
    from dpcompose.interop import one_line
    from dpcompose.report import Fact, Page

    stated = found.statement
    facts = [("unit of privacy", one_line(stated.unit)), ("digest", found.digest)]
    facts += [("mechanism", one_line(run.described)) for run in stated.runs]
    notes = (*found.checked, *(f"Not checked: {sentence}" for sentence in found.unchecked))
    return Page(
        source,
        f"The release is {stated.guarantee}",
        "good",
        tuple(Fact(*each) for each in facts),
        (),
        notes,
    )
