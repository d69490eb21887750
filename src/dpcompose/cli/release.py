"""`dpcompose release`: private answers from a table, charged before they are given."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose.cli.command import Actor, LedgerUrl, Result, argument, command, option
from dpcompose.cli.inputs import pairs
from dpcompose.cli.output import Progress, error_boundary, headed, require_writable, stderr, write
from dpcompose.errors import DomainError, MissingExtraError, PlanError, UnsupportedError

if TYPE_CHECKING:
    from dpcompose.ledger import Ledger
    from dpcompose.release import Answer, Question, Session, Table


Options = Mapping[str, str | bool | None]


def _questions(
    data: Table,
    kinds: Options,
    grid: Options,
    *,
    file: Path | None,
    sql: str | None,
    out: Path | None,
    **common: Any,
) -> Sequence[Question]:
    """The questions of the file or of the SELECT, or the one of the options, each of which takes `common`."""
    from dpcompose.release import questions, questions_of_sql

    spelled = [
        name
        for name, value in {**kinds, **grid, "by": common["by"]}.items()
        if value not in (None, False, ())
    ]
    for name, noun, given in (("--questions", "file", file), ("--sql", "SELECT", sql)):
        if given is not None and (spelled or (file is not None and sql is not None)):
            raise DomainError(
                name, str(given), f"either that {noun} or --{[*spelled, 'questions'][0]}, not both"
            )
    if sql is not None:
        asked = questions_of_sql(sql, data, keys=common["keys"])
    else:
        asked = questions(file) if file is not None else (_question(kinds, grid, **common),)
    if common["spend"] is None and any(question.spend is None for question in asked):
        raise DomainError(
            "--spend", None, "what it may cost, such as epsilon=0.1, or epsilon=0.1,delta=1e-6"
        )
    if out is not None and len(asked) > 1 and out.suffix != ".json":
        raise DomainError("--out", str(out), "a .json file for several questions")
    return asked


def _question(kinds: Options, grid: Options, **common: Any) -> Question:
    from dpcompose.release import KINDS, arguments_of

    chosen = [kind for kind, column in kinds.items() if column]
    if len(chosen) != 1:
        options = ", ".join(f"--{kind}" for kind in kinds)
        raise DomainError(
            "question",
            chosen or None,
            f"exactly one of {options}, or --sql SELECT, or --questions FILE",
        )
    kind = chosen[0]
    needed, optional = arguments_of(kind)
    fields: dict[str, Any] = {"column": kinds[kind]} if isinstance(kinds[kind], str) else {}
    fields |= {name: value for name, value in grid.items() if value is not None}
    for name in sorted(needed - set(fields)):
        raise DomainError(f"--{name}", None, f"a value; --{kind} needs it")
    for name in sorted(set(fields) - needed - optional):
        raise DomainError(f"--{name}", fields[name], f"nothing beside --{kind}")
    if "edges" in fields:
        fields["edges"] = fields["edges"].split(",")
    return KINDS[kind](**fields, **common)


@command("json")
def release(
    steps: Progress,
    table: Annotated[
        str, argument("TABLE", "A file, a database's URL, or a name in the catalog.", shown=True)
    ],
    ledger: LedgerUrl,
    scope: Annotated[str, option("The scope that is charged.")],
    unit: Annotated[
        list[str] | None, option("The column of the protected unit; may be repeated.")
    ] = None,
    max_rows: Annotated[int | None, option("Rows kept of one unit.")] = None,
    actor: Actor = "analyst",
    count: Annotated[bool, option("Ask how many rows there are.")] = False,
    units: Annotated[bool, option("Ask how many units there are.")] = False,
    sum: Annotated[str | None, option("Ask for a sum.", "COLUMN")] = None,
    mean: Annotated[str | None, option("Ask for a mean.", "COLUMN")] = None,
    histogram: Annotated[
        str | None, option("Ask how many rows lie between --edges.", "COLUMN")
    ] = None,
    quantile: Annotated[str | None, option("Ask for the quantile --q.", "COLUMN")] = None,
    sql: Annotated[str | None, option("One SELECT, or EXPLAIN and one SELECT.", "SELECT")] = None,
    by: Annotated[
        list[str] | None, option("Group by columns a,b; may be repeated.", "COLUMN")
    ] = None,
    keys: Annotated[
        list[str] | None, option("Groups a,b, or @FILE; one for each --by. Without: private.")
    ] = None,
    lower: Annotated[str | None, option("Smaller values count as this.")] = None,
    upper: Annotated[str | None, option("Larger values count as this.")] = None,
    granularity: Annotated[str | None, option("The step of the grid.")] = None,
    edges: Annotated[str | None, option("Of a histogram: 0,10,100.")] = None,
    q: Annotated[str | None, option("Of a quantile: 0.5 is the median.")] = None,
    spend: Annotated[
        str | None, option("What it may cost; or rho=R.", "epsilon=E[,delta=D]")
    ] = None,
    questions: Annotated[
        Path | None, option("A TOML file of questions: one charge, all or nothing.", "FILE")
    ] = None,
    max_groups: Annotated[int | None, option("Groups in which a unit is kept.")] = None,
    max_rows_per_group: Annotated[int | None, option("Rows kept of a unit in one group.")] = None,
    name: Annotated[str | None, option("The table in a database.")] = None,
    schema: Annotated[list[str] | None, option("The type of a text column.", "COLUMN=TYPE")] = None,
    key: Annotated[
        str | None, option("Idempotency key: a repeat returns the stored answer, free.")
    ] = None,
    answers: Annotated[
        Path | None, option("A directory that keeps answers for retries.", "DIRECTORY")
    ] = None,
    confidence: Annotated[float, option("Of the errors shown.", shown=True)] = 0.95,
    quote: Annotated[bool, option("Print price and error; ask and charge nothing.")] = False,
    out: Annotated[
        Path | None, option("Also write the answer as .csv, .parquet or .json.", "FILE")
    ] = None,
    rows: Annotated[
        Path | None, option("Also write synthetic rows as .csv or .parquet.", "FILE")
    ] = None,
) -> Result:
    """Answer questions about a TABLE privately: charged to a ledger first, with noise of a stated size."""
    with _reporting_no_charge():
        from dpcompose import check
        from dpcompose.release import explains

        check.open_probability("--confidence", confidence)
        require_writable("--out", out, ".csv", ".parquet", ".json")
        steps("opening the table", 0, 3)
        books = _ledger(ledger)
        bounds = {
            "unit": unit,
            "max_rows_per_unit": max_rows,
            "max_groups_per_unit": max_groups,
            "max_rows_per_group": max_rows_per_group,
            "name": name,
        }
        data = _opened(table, schema, books, scope, bounds)
        kinds = {
            "count": count,
            "units": units,
            "sum": sum,
            "mean": mean,
            "histogram": histogram,
            "quantile": quantile,
        }
        grid = {"lower": lower, "upper": upper, "granularity": granularity, "edges": edges, "q": q}
        named = None if spend is None else pairs("--spend", spend.split(","))
        columns = _columns(data, by or [])
        listed = _keys(keys or [], [data.column(each).kind for each in columns])
        common = {"by": columns, "keys": listed, "spend": named}
        batch = _questions(data, kinds, grid, file=questions, sql=sql, out=out, **common)
        _require_rows(rows, batch)
        session = _session(data, books, scope=scope, actor=actor, answers=answers)
        shared = session.part(batch, named) if named is not None and (questions or sql) else None
        if quote or (sql is not None and explains(sql)):
            return _quoted(session, batch, shared, confidence)
        steps("checking, charging, asking", 1, 3)
        answered = session.batch(batch, spend=named if shared else None, key=key)
        return _answered(answered, confidence, session.account.left(), out, rows)


def _require_rows(rows: Path | None, asked: Sequence[Question]) -> None:
    """Refuse rows that could not be written, before anything is charged."""
    require_writable("--rows", rows, ".csv", ".parquet")
    if rows is not None and [each.kind for each in asked] != ["synthetic data"]:
        raise DomainError(
            "--rows", str(rows), "one question of kind synthetic data, in --questions FILE"
        )


@contextmanager
def _reporting_no_charge() -> Generator[None]:
    """The error boundary, with a line that nothing was charged after an error before the charge."""
    before = False
    try:
        with error_boundary():
            try:
                yield
            except (DomainError, PlanError, UnsupportedError, MissingExtraError):
                before = True
                raise
    except SystemExit:
        if before:
            stderr("Nothing was charged")
        raise


def _opened(
    source: str, schema: Sequence[str] | None, ledger: Ledger, scope: str, given: Mapping[str, Any]
) -> Table:
    """The table of the options; without a unit and bounds, the one that the scope's catalog calls so."""
    from dpcompose.release import Catalog, table

    if schema or any(each is not None for each in given.values()):
        for option, name in (("--unit", "unit"), ("--max-rows", "max_rows_per_unit")):
            if given[name] is None:
                domain = "a value, or no option of the table at all where the scope has a catalog"
                raise DomainError(option, None, domain)
        return table(source, schema=pairs("--schema", schema or []), **given)
    return Catalog(ledger, scope).table(source)


def _ledger(url: str) -> Ledger:
    from dpcompose.ledger import Ledger

    return Ledger.open(url, create=False)


def _session(data: Table, ledger: Ledger, **given: Any) -> Session:
    from dpcompose.release import Session

    return Session(data, ledger=ledger, **given)


def _quoted(session: Session, batch: Sequence[Question], spend: Any, confidence: float) -> Result:
    from dpcompose.report import document, page

    quotes = session.explain(batch, spend=spend).quotes
    stated: dict[str, Any] = {"confidence": confidence, "left": session.account.left()}
    return Result(lambda: document(quotes, **stated), lambda: page(quotes, **stated))


def _answered(
    answers: Sequence[Answer], confidence: float, left: Any, out: Path | None, rows: Path | None
) -> Result:
    """The answers, and the files of the answer and of synthetic rows."""
    from dpcompose.document import dumps
    from dpcompose.release import SyntheticData
    from dpcompose.report import document, page

    members = document(answers, confidence=confidence, left=left)

    def files() -> Iterator[str]:
        if out is not None and out.suffix == ".json":
            write("--out", out, dumps(headed("release", members)))
        elif out is not None:
            answers[0].write(out)
        if rows is not None:
            SyntheticData(answers[0]).write(rows)
        yield from (str(file) for file in (out, rows) if file is not None)

    return Result(
        lambda: members,
        lambda: page(answers, confidence=confidence, left=left),
        files=files,
        costly=True,
    )


def _columns(data: Table, by: Sequence[str]) -> tuple[str, ...]:
    """Columns as typed: a name of the table, or several with commas between them."""
    names = {column.name for column in data.columns}
    return tuple(name for each in by for name in ([each] if each in names else each.split(",")))


def _keys(texts: Sequence[str], kinds: Sequence[str]) -> list[Any] | None:
    """All combinations of the keys of each column, as typed, read as the columns' types."""
    if not texts:
        return None
    if len(texts) != len(kinds):
        raise DomainError(
            "--keys", list(texts), f"one list for each --by, of which there are {len(kinds)}"
        )
    found = [
        [_key(each, kind) for each in _listed(text)]
        for text, kind in zip(texts, kinds, strict=True)
    ]
    return found[0] if len(found) == 1 else list(product(*found))


def _listed(text: str) -> list[str]:
    if not text.startswith("@"):
        return text.split(",")
    try:
        return Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        raise DomainError("--keys", text, "a file that can be read, one key a line") from None


def _key(text: str, kind: str) -> Any:
    from datetime import date

    readers = {
        "integer": int,
        "date": date.fromisoformat,
        "boolean": {"true": True, "false": False}.__getitem__,
    }
    try:
        return readers.get(kind, str)(text)
    except (ValueError, KeyError):
        raise DomainError("--keys", text, f"keys of type {kind}") from None
