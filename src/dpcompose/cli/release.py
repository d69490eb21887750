"""`dpcompose release`: private answers from a table, charged before they are given."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose.cli.command import ARGUMENT, Actor, LedgerUrl, Result, command
from dpcompose.cli.inputs import pairs
from dpcompose.cli.output import Progress, headed, require_writable, write
from dpcompose.errors import DomainError, MissingExtraError, PlanError, UnsupportedError

if TYPE_CHECKING:
    from dpcompose.ledger import Ledger
    from dpcompose.release import Answer, Question, Table


def _questions(
    data: Table,
    file: Path | None,
    sql: str | None,
    spend: Mapping[str, str] | None,
    out: Path | None,
) -> Sequence[Question]:
    """The questions of the file or of the SELECT."""
    from dpcompose.release import Session, questions_of_sql

    if (file is None) == (sql is None):
        raise DomainError("--sql", sql, "a SELECT, or --questions with a file, one of them")
    read = Session.read_questions
    batch = read(file) if file is not None else questions_of_sql(sql or "", data)
    if spend is None and any(question.spend is None for question in batch):
        raise DomainError(
            "--spend", None, "what it may cost, such as epsilon=0.1, or epsilon=0.1,delta=1e-6"
        )
    if out is not None and len(batch) > 1 and out.suffix != ".json":
        raise DomainError("--out", str(out), "a .json file for several questions")
    return batch


@command("json")
def release(
    steps: Progress,
    table: Annotated[str, ARGUMENT],
    ledger: LedgerUrl,
    scope: str,
    unit: list[str] | None = None,
    max_rows: int | None = None,
    actor: Actor = "analyst",
    sql: str | None = None,
    spend: str | None = None,
    questions: Path | None = None,
    max_groups: int | None = None,
    max_rows_per_group: int | None = None,
    name: str | None = None,
    schema: list[str] | None = None,
    key: str | None = None,
    answers: Path | None = None,
    confidence: float = 0.95,
    quote: bool = False,
    out: Path | None = None,
    rows: Path | None = None,
) -> Result:
    """Answer questions about a TABLE privately: charged to a ledger first, with noise of a stated size.

    Args:
        table (TABLE): A file, a database's URL, or a name in the catalog.
        scope: The scope that is charged.
        unit: The column of the protected unit; may be repeated.
        max_rows: Rows kept of one unit.
        sql (SELECT): One SELECT, or EXPLAIN and one SELECT.
        spend (epsilon=E[,delta=D]): What it may cost; or rho=R.
        questions (FILE): A TOML file of questions: one charge, all or nothing.
        max_groups: Groups in which a unit is kept.
        max_rows_per_group: Rows kept of a unit in one group.
        name: The table in a database.
        schema (COLUMN=TYPE): The type of a text column.
        key: Idempotency key: a repeat returns the stored answer, free.
        answers (DIRECTORY): A directory that keeps answers for retries.
        confidence: Of the errors shown.
        quote: Print price and error; ask and charge nothing.
        out (FILE): Also write the answer as .csv, .parquet or .json.
        rows (FILE): Also write synthetic rows as .csv or .parquet.
    """
    with _reporting_no_charge():
        from dpcompose import check
        from dpcompose.ledger import Ledger
        from dpcompose.release import Explanation, Session

        check.open_probability("--confidence", confidence)
        require_writable("--out", out, ".csv", ".parquet", ".json")
        steps("opening the table", 0, 3)
        books = Ledger.open(ledger, create=False)
        bounds: dict[str, Any] = {"unit": unit, "max_rows_per_unit": max_rows, "name": name}
        bounds |= {"max_groups_per_unit": max_groups, "max_rows_per_group": max_rows_per_group}
        data = _opened(table, schema, books, scope, bounds)
        named = None if spend is None else pairs("--spend", spend.split(","))
        batch = _questions(data, questions, sql, named, out)
        require_writable("--rows", rows, ".csv", ".parquet")
        if rows is not None and [each.kind for each in batch] != ["synthetic data"]:
            domain = "one question of kind synthetic data, in --questions FILE"
            raise DomainError("--rows", str(rows), domain)
        session = Session(data, ledger=books, scope=scope, actor=actor, answers=answers)
        shared = None if named is None else session.part(batch, named)
        if quote or (sql is not None and Explanation.is_requested(sql)):
            quotes = session.explain(batch, spend=shared).quotes
            return Result.of(quotes, confidence=confidence, left=session.account.left())
        steps("checking, charging, asking", 1, 3)
        answered = session.batch(batch, spend=named if shared else None, key=key)
        return _answered(answered, confidence, session.account.left(), out, rows)


@contextmanager
def _reporting_no_charge() -> Generator[None]:
    """Add to an error before the charge that nothing was charged."""
    try:
        yield
    except (DomainError, PlanError, UnsupportedError, MissingExtraError) as error:
        error.add_note("Nothing was charged")
        raise


def _opened(
    source: str, schema: Sequence[str] | None, ledger: Ledger, scope: str, bounds: Mapping[str, Any]
) -> Table:
    """The table of the options; without a unit and bounds, the one that the scope's catalog calls so."""
    from dpcompose.release import Catalog, table

    if schema or any(each is not None for each in bounds.values()):
        for option, name in (("--unit", "unit"), ("--max-rows", "max_rows_per_unit")):
            if bounds[name] is None:
                domain = "a value, or no option of the table at all where the scope has a catalog"
                raise DomainError(option, None, domain)
        return table(source, schema=pairs("--schema", schema or []), **bounds)
    return Catalog(ledger, scope).table(source)


def _answered(
    answers: Sequence[Answer], confidence: float, left: Any, out: Path | None, rows: Path | None
) -> Result:
    """The answers, and the files of the answer and of synthetic rows."""
    from dpcompose.document import dumps
    from dpcompose.release import SyntheticData

    result = Result.of(answers, confidence=confidence, left=left)

    put = answers[0].write
    if out is not None and out.suffix == ".json":
        put = partial(write, "--out", text=dumps(headed("release", result.document())))
    files = ((out, put), (rows, SyntheticData(answers[0]).write)) if rows else ((out, put),)
    return replace(result, files=files, costly=True)
