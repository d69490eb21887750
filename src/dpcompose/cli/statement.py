"""`dpcompose statement`: the privacy of a plan as a publisher states it, and whether a published statement holds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose.cli.command import ARGUMENT, PlanFile, Result, TrustedKeys, command
from dpcompose.cli.inputs import keys_of, opened, read_bytes, read_plan
from dpcompose.cli.output import write

if TYPE_CHECKING:
    from dpcompose.interop import Verified
    from dpcompose.report import Page


@command(
    "json",
    files={"card": (".md",), "privacy": (".json",)},
    missing=("delta",),
    doing="certifying the plan",
)
def write_statement(
    plan: PlanFile,
    unit: str,
    delta: float | None = None,
    sampling: str = "",
    records: int = 1,
    card: Path | None = None,
    privacy: Path | None = None,
) -> Result:
    """Write a paragraph to publish about the privacy of a PLAN, with certified numbers, all rounded to stay true.

    Args:
        unit (TEXT): The unit of privacy, such as "one user".
        delta (D): The delta of the guarantee; by default the plan's.
        sampling (TEXT): How records were drawn, in your words.
        records: The most records of one unit in the data.
        card (FILE.md): Write a section of a model card.
        privacy (FILE.json): Write the document that `dpcompose statement verify` checks.
    """
    from dpcompose.interop import privacy_json, statement
    from dpcompose.report import members

    stated = statement(read_plan(plan), unit=unit, delta=delta, sampling=sampling, records=records)
    files = (
        (card, partial(write, "--card", text=stated.model_card)),
        (privacy, partial(write, "--privacy", text=privacy_json(stated))),
    )
    document = partial(members, stated, "epsilon delta paragraph")
    return Result(document, text=f"{stated.paragraph}\n", files=files)


@command("json", doing="pricing the mechanisms again")
def verify(
    file: Annotated[Path, ARGUMENT],
    digest: str | None = None,
    ledger: str | None = None,
    trust: TrustedKeys = None,
) -> Result:
    """Check a privacy.json to the last byte, and price its mechanisms again; exit status 1 if it does not hold.

    Args:
        file (FILE): A privacy.json.
        digest (HEX): Its digest, as it was published elsewhere.
        ledger (URL): The ledger that has the charges, to be verified too.
    """
    from dpcompose.interop import LARGEST, verify as verified

    content = read_bytes("FILE", file, most=LARGEST)
    keys = keys_of(trust)
    if ledger is None:
        checked = verified(content, digest=digest, keys=keys)
    else:
        with opened(ledger, reading=True) as charged:
            checked = verified(content, digest=digest, ledger=charged, keys=keys)
    return Result(lambda: _document(checked), lambda: _page(checked, str(file)))


def _document(checked: Verified) -> dict[str, Any]:
    from dpcompose.report import members

    stated = "epsilon=statement.epsilon delta=statement.delta certified=bound unit=statement.unit"
    return members(checked, f"{stated} digest checked unchecked")


def _page(checked: Verified, source: str) -> Page:
    from dpcompose.interop import one_line
    from dpcompose.report import Page

    stated = checked.statement
    facts = [("unit of privacy", one_line(stated.unit)), ("digest", checked.digest)]
    facts += [("mechanism", one_line(run.described)) for run in stated.runs]
    notes = [*checked.checked, *(f"Not checked: {sentence}" for sentence in checked.unchecked)]
    return Page(source, f"The release is {stated.guarantee}", "good", facts, notes=notes)
