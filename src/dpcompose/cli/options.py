"""Options and arguments that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcompose.errors import DomainError
from dpcompose.files import read

if TYPE_CHECKING:
    from dpcompose.plan import Plan


def option(text: str, metavar: str | None = None) -> Any:
    """An option with that help, whose default is not shown."""
    return typer.Option(help=text, metavar=metavar, show_default=False)


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """`epsilon=0.1`, several times, as a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if not (name and value) or name in found:
            raise DomainError(option, text, "name=value, each name once")
        found[name] = value
    return found


def read_text(name: str, source: str | Path) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        DomainError: If it cannot be read, is larger than ten million bytes, or is not UTF-8.
    """
    try:
        stated = str(source) == "-"
        if stated and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise DomainError(name, "-", "standard input, which is closed")
        content = (
            sys.stdin.buffer.read(LARGEST_TEXT + 1)
            if stated
            else read(Path(source), most=LARGEST_TEXT)
        )
        if len(content) > LARGEST_TEXT:
            raise DomainError(name, str(source), f"at most {LARGEST_TEXT:,} bytes")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise DomainError(
            name, str(source), f"a file that can be read ({error.strerror})"
        ) from None
    except UnicodeDecodeError as error:
        raise DomainError(
            name, str(source), f"UTF-8 text; byte {error.start} is not valid"
        ) from None


def read_plan(path: Path) -> Plan:
    """The plan in a file, or on standard input for `-`."""
    from dpcompose.plan import Plan

    return (
        Plan.parse(read_text("PLAN", "-"), source="standard input")
        if str(path) == "-"
        else Plan.read(path)
    )


LARGEST_TEXT = 10**7
PICTURES = (".png", ".svg", ".pdf")
PlanFile = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN", help="A plan file (TOML), or - for standard input.", show_default=False
    ),
]
Picture = Annotated[
    Path | None, option("Write the pictures; the name ends in .png, .svg or .pdf.", "FILE")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print the tables as CSV.")]
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
Actor = Annotated[str, typer.Option(help="Who asks.", envvar="USER")]
TrustedKeys = Annotated[
    list[str] | None,
    option(
        "A public key that you trust: NAME+ID+KEY, or a file of such lines. May be repeated.", "KEY"
    ),
]
