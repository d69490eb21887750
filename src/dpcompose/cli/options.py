"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcompose.errors import DomainError


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


PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file (TOML).", show_default=False)]
Picture = Annotated[Path | None, option("Write the pictures as PNG.", "FILE.png")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
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
    option("A public key that you trust: NAME+ID+KEY, or a file of such lines. May be repeated.", "KEY"),
]
