"""`dpcompose release`: private answers from a table, charged before they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcompose.cli.outcome import outcome, say
from dpcompose.cli.output import package_version, require_writable, write
from dpcompose.cli.patience import patience
from dpcompose.errors import DomainError

if TYPE_CHECKING:
    from dpcompose.release import Answer, Question, Session


@dataclass(frozen=True)
class _Asked:
    """One question as options spell it."""

    kinds: dict[str, str | bool | None]
    grid: dict[str, str | None]
    by: Sequence[str]
    keys: Sequence[Any] | None
    spend: dict[str, str] | None

    def question(self) -> Question:
        from dpcompose.release.file import KINDS

        chosen = [kind for kind, column in self.kinds.items() if column]
        if len(chosen) != 1:
            options = ", ".join(f"--{kind}" for kind in self.kinds)
            raise DomainError("question", chosen or None, f"exactly one of {options}, or --questions FILE")
        kind = chosen[0]
        make, needed, optional = KINDS[kind]
        column = self.kinds[kind]
        grid = {name: value for name, value in self.grid.items() if value is not None}
        fields: dict[str, Any] = {**({"column": column} if isinstance(column, str) else {}), **grid}
        for name in sorted(needed - set(fields)):
            raise DomainError(f"--{name}", None, f"a value; --{kind} needs it")
        for name in sorted(set(fields) - needed - optional):
            raise DomainError(f"--{name}", fields[name], f"nothing beside --{kind}")
        if "edges" in fields:
            fields["edges"] = fields["edges"].split(",")
        return make(**fields, by=tuple(self.by), keys=self.keys, spend=self.spend)


def release(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A Parquet or CSV file, or the URL of a database.")],
    unit: Annotated[list[str], typer.Option(help="The column that names whom privacy is for; may be repeated.")],
    max_rows: Annotated[int, typer.Option(help="Rows kept of one unit.")],
    ledger: Annotated[str, typer.Option(help="The ledger: a file or a URL.")],
    scope: Annotated[str, typer.Option(help="The scope that is charged.")],
    actor: Annotated[str, typer.Option(help="Who asks.", envvar="USER")] = "analyst",
    count: Annotated[bool, typer.Option("--count", help="Ask how many rows there are.")] = False,
    units: Annotated[bool, typer.Option("--units", help="Ask how many units there are.")] = False,
    sum: Annotated[str | None, typer.Option(metavar="COLUMN", help="Ask for a sum.", show_default=False)] = None,
    mean: Annotated[str | None, typer.Option(metavar="COLUMN", help="Ask for a mean.", show_default=False)] = None,
    histogram: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Ask how many rows lie between --edges.", show_default=False)
    ] = None,
    quantile: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Ask for the quantile --q.", show_default=False)
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Group by a column; may be repeated.", show_default=False)
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(help="The groups, a,b,c, or @FILE with one a line. Without: private keys.", show_default=False),
    ] = None,
    lower: Annotated[str | None, typer.Option(help="Smaller values count as this.", show_default=False)] = None,
    upper: Annotated[str | None, typer.Option(help="Larger values count as this.", show_default=False)] = None,
    granularity: Annotated[str | None, typer.Option(help="The step of the grid.", show_default=False)] = None,
    edges: Annotated[str | None, typer.Option(help="Of a histogram: 0,10,100.", show_default=False)] = None,
    q: Annotated[str | None, typer.Option(help="Of a quantile: 0.5 is the median.", show_default=False)] = None,
    spend: Annotated[
        str | None, typer.Option(metavar="epsilon=E[,delta=D]", help="Or rho=R.", show_default=False)
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="A TOML file of questions: one charge, all or nothing.", show_default=False)
    ] = None,
    max_groups: Annotated[int | None, typer.Option(help="Groups in which a unit is kept.", show_default=False)] = None,
    max_rows_per_group: Annotated[
        int | None, typer.Option(help="Rows kept of a unit in one group.", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Option(help="The table in a database.", show_default=False)] = None,
    schema: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=TYPE", help="The type of a text column.", show_default=False)
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Asked again with the same key: the same answer, no charge.", show_default=False)
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="A directory that keeps answers for retries.", show_default=False)
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the errors shown.")] = 0.95,
    quote: Annotated[bool, typer.Option("--quote", help="Say price and error; ask and charge nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answer as .csv, .parquet or .json.", show_default=False),
    ] = None,
) -> None:
    """Answer questions about a TABLE privately: charged to a ledger first, with noise of a stated size."""
    with outcome(), patience() as progress:
        from dpcompose.ledger import Ledger
        from dpcompose.release import Session
        from dpcompose.release import table as opened
        from dpcompose.release.file import questions as read

        require_writable("--out", out, ".csv", ".parquet", ".json")
        progress("opening the table", 0, 3)
        types = dict(_pairs("--schema", schema or []))
        data = opened(
            table,
            unit=unit,
            max_rows_per_unit=max_rows,
            max_groups_per_unit=max_groups,
            max_rows_per_group=max_rows_per_group,
            name=name,
            schema=types,
        )
        kinds = {"count": count, "units": units, "sum": sum, "mean": mean, "histogram": histogram, "quantile": quantile}
        grid = {"lower": lower, "upper": upper, "granularity": granularity, "edges": edges, "q": q}
        named = None if spend is None else dict(_pairs("--spend", spend.split(",")))
        listed = _keys(keys, [data.column(each).kind for each in by or []])
        asked = read(questions) if questions is not None else (_Asked(kinds, grid, by or (), listed, named).question(),)
        if out is not None and len(asked) > 1 and out.suffix != ".json":
            raise DomainError("--out", str(out), "a .json file for several questions")
        session = Session(data, ledger=Ledger.open(ledger, create=False), scope=scope, actor=actor, answers=answers)
        if quote:
            _quote(session, asked, named, confidence, json)
            return
        progress("charging, then asking", 1, 3)
        found = session.batch(asked, spend=named if questions is not None else None, key=key)
        left = session.account.left()
    _show(found, confidence, left, json, out)


def _quote(session: Session, asked: Sequence[Question], spend: Any, confidence: float, json: bool) -> None:
    from dpcompose.cli.terminal import show
    from dpcompose.report import dumps, quote_document, quote_page

    part = None if spend is None else session.part(asked, spend)
    quotes = [session.quote(question, spend=part) for question in asked]
    left = session.account.left()
    if json:
        head = {"command": "release", "dpcompose": package_version()}
        print(dumps(head | quote_document(quotes, confidence=confidence, left=left)))
    else:
        show(quote_page(quotes, confidence=confidence, left=left))


def _show(found: Sequence[Answer], confidence: float, left: Any, json: bool, out: Path | None) -> None:
    from dpcompose.cli.terminal import show
    from dpcompose.report import dumps, release_document, release_page

    document = {"command": "release", "dpcompose": package_version()}
    document |= release_document(found, confidence=confidence, left=left)
    if json:
        print(dumps(document))
    else:
        show(release_page(found, confidence=confidence, left=left))
    if out is not None:
        # The answer has been shown: what fails now loses a file, not an answer.
        with outcome():
            if out.suffix == ".json":
                write("--out", out, dumps(document))
            else:
                found[0].write(out)
        say(f"wrote {out}")


def _pairs(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    found = [tuple(part.strip() for part in text.partition("=")) for text in texts]
    for (name, equals, value), text in zip(found, texts, strict=True):
        if not (name and equals and value):
            raise DomainError(option, text, "NAME=VALUE")
    if len({name for name, _, _ in found}) < len(found):
        raise DomainError(option, ",".join(texts), "different names")
    return [(name, value) for name, _, value in found]


def _keys(text: str | None, kinds: Sequence[str]) -> list[Any] | None:
    """Keys as typed, read as the columns' types."""
    if text is None:
        return None
    if text.startswith("@"):
        try:
            listed = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            raise DomainError("--keys", text, "a file that can be read, one key a line") from None
    else:
        listed = text.split(",")
    if len(kinds) != 1:
        raise DomainError("--keys", text, "a list beside exactly one --by", "Several columns: --questions FILE")
    return [_key(each, kinds[0]) for each in listed]


def _key(text: str, kind: str) -> Any:
    from datetime import date

    readers = {"integer": int, "date": date.fromisoformat, "boolean": {"true": True, "false": False}.__getitem__}
    try:
        return readers.get(kind, str)(text)
    except (ValueError, KeyError):
        raise DomainError("--keys", text, f"keys of type {kind}") from None
