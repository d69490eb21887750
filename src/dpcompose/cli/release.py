"""`dpcompose release`: private answers from a table, charged before they are given."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpcompose.cli import release_options as to
from dpcompose.cli.ledger_look import LedgerUrl
from dpcompose.cli.outcome import outcome, say
from dpcompose.cli.output import emit_document, package_version, require_writable, write
from dpcompose.cli.patience import patience
from dpcompose.errors import DomainError, MissingExtraError, PlanError, UnsupportedError
from dpcompose.numerics import check

if TYPE_CHECKING:
    from dpcompose.release import Answer, Question, Session, Table


@dataclass(frozen=True)
class _Asked:
    """One question as options spell it."""

    kinds: dict[str, str | bool | None]
    grid: dict[str, str | None]
    by: Sequence[str]
    keys: Sequence[Any] | None
    spend: dict[str, str] | None

    def all(self, file: Path | None, out: Path | None) -> Sequence[Question]:
        """The questions of the file, or the one that the options spell."""
        from dpcompose.release.file import questions

        spelled = [name for name, value in {**self.kinds, **self.grid}.items() if value not in (None, False)]
        spelled += ["by"] if self.by else []
        if file is not None and spelled:
            raise DomainError("--questions", str(file), f"either that file or --{spelled[0]}, not both")
        asked = questions(file) if file is not None else (self.question(),)
        if self.spend is None and any(question.spend is None for question in asked):
            raise DomainError("--spend", None, "what it may cost, such as epsilon=0.1, or epsilon=0.1,delta=1e-6")
        if out is not None and len(asked) > 1 and out.suffix != ".json":
            raise DomainError("--out", str(out), "a .json file for several questions")
        return asked

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
    table: to.Source,
    unit: to.Unit,
    max_rows: to.MaxRows,
    ledger: LedgerUrl,
    scope: to.Scope,
    actor: to.Actor = "analyst",
    count: to.Count = False,
    units: to.Units = False,
    sum: to.Sum = None,
    mean: to.Mean = None,
    histogram: to.Histogram = None,
    quantile: to.Quantile = None,
    by: to.By = None,
    keys: to.Keys = None,
    lower: to.Lower = None,
    upper: to.Upper = None,
    granularity: to.Granularity = None,
    edges: to.Edges = None,
    q: to.Share = None,
    spend: to.Spend = None,
    questions: to.Questions = None,
    max_groups: to.MaxGroups = None,
    max_rows_per_group: to.MaxRowsPerGroup = None,
    name: to.Name = None,
    schema: to.Schema = None,
    key: to.Key = None,
    answers: to.Answers = None,
    confidence: to.Confidence = 0.95,
    quote: to.Quote = False,
    json: to.Json = False,
    out: to.Out = None,
) -> None:
    """Answer questions about a TABLE privately: charged to a ledger first, with noise of a stated size."""
    with _charged_or_not(), patience() as progress:
        check.open_probability("--confidence", confidence)
        require_writable("--out", out, ".csv", ".parquet", ".json")
        progress("opening the table", 0, 3)
        bounds = {"max_groups_per_unit": max_groups, "max_rows_per_group": max_rows_per_group}
        data = _opened(table, schema, unit=unit, max_rows_per_unit=max_rows, name=name, **bounds)
        kinds = {"count": count, "units": units, "sum": sum, "mean": mean, "histogram": histogram, "quantile": quantile}
        grid = {"lower": lower, "upper": upper, "granularity": granularity, "edges": edges, "q": q}
        named = None if spend is None else dict(_pairs("--spend", spend.split(",")))
        listed = _keys(keys, [data.column(each).kind for each in by or []])
        asked = _Asked(kinds, grid, by or (), listed, named).all(questions, out)
        session = _session(data, ledger, scope=scope, actor=actor, answers=answers)
        shared = session.part(asked, named) if named is not None and questions is not None else None
        if quote:
            _quote(session, asked, shared, confidence, json)
            return
        progress("checking, charging, asking", 1, 3)
        found = session.batch(asked, spend=named if shared else None, key=key)
        left = session.account.left()
    _show(found, confidence, left, json, out)


@contextmanager
def _charged_or_not() -> Generator[None]:
    """As `outcome`, and for what is refused before the charge a word that there was none; other errors say so."""
    before = False
    try:
        with outcome():
            try:
                yield
            except (DomainError, PlanError, UnsupportedError, MissingExtraError):
                before = True
                raise
    except typer.Exit:
        if before:
            say("Nothing was charged")
        raise


def _opened(source: str, schema: Sequence[str] | None, **given: Any) -> Table:
    from dpcompose.release import table

    return table(source, schema=dict(_pairs("--schema", schema or [])), **given)


def _session(data: Table, url: str, **given: Any) -> Session:
    from dpcompose.ledger import Ledger
    from dpcompose.release import Session

    return Session(data, ledger=Ledger.open(url, create=False), **given)


def _quote(session: Session, asked: Sequence[Question], spend: Any, confidence: float, json: bool) -> None:
    from dpcompose.cli.terminal import show
    from dpcompose.report import quote_document, quote_page

    quotes = [session.quote(question, spend=spend) for question in asked]
    left = session.account.left()
    if json:
        emit_document({"command": "release"} | quote_document(quotes, confidence=confidence, left=left))
    else:
        show(quote_page(quotes, confidence=confidence, left=left))


def _show(found: Sequence[Answer], confidence: float, left: Any, json: bool, out: Path | None) -> None:
    from dpcompose.cli.terminal import show
    from dpcompose.report import dumps, release_document, release_page

    document = {"command": "release", "dpcompose": package_version()}
    document |= release_document(found, confidence=confidence, left=left)
    if json:
        emit_document(document)
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
