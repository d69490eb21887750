"""`dpcompose ask`: private answers in SQL about one file, at a prompt, in one shot, or from standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose.cli.command import ARGUMENT, command, option
from dpcompose.cli.inputs import pairs, typed
from dpcompose.cli.output import stderr, stdout
from dpcompose.errors import DomainError, DPComposeError, MissingExtraError

if TYPE_CHECKING:
    from dpcompose.release import Session
    from dpcompose.report import Heading

HELP = """\
SELECT ...;          asks, over as many lines as you like; the price is shown before anything is charged
.tables              the table and its columns
.budget              what is left
.history             what was asked, and what it cost
.spend 5%            the price of each statement from here on: a part of the budget, or an epsilon
.error 100           how far each number may be off from here on; the price follows
.save answer.csv     writes the last answer, as CSV or Parquet
.quit                ends, as Ctrl-D does"""
CONFIDENCE = 0.95


@command(doing=None)
def ask(
    file: Annotated[str, ARGUMENT],
    person: str | None = None,
    budget: str | None = None,
    column: list[str] | None = None,
    max_rows: Annotated[int | None, option(min=1)] = None,
    spend: str | None = None,
    error: str | None = None,
    select: Annotated[str | None, option(name="-c")] = None,
    server: str | None = None,
    token_file: Path | None = None,
    dummy: bool = False,
) -> None:
    """Ask a table in SQL, privately: the price first, then the answer with its error. The ledger of a file stands beside it.

    Args:
        file (TABLE): A CSV or Parquet file, whose table is called as the file is; with --server SCOPE/TABLE.
        person (COLUMN): The column that names the person.
        budget (EPSILON): The epsilon that all answers may cost together.
        column (NAME=KIND[,...]): What is known of a column: minutes=float, age=int,0,120, clinic=str,north,south.
        max_rows: Rows kept of one person (10).
        spend: The price of a statement: 5% of the budget (if nothing is said), or an epsilon.
        error (NUMBER): How far each number may be off, instead of a price.
        select (SELECT): Ask this, and end.
        server (URL): A service that has the table and the budget.
        token_file (FILE): Your token there, in a file that nobody else may read; or else DPCOMPOSE_TOKEN.
        dummy: Ask made-up rows, for nothing.
    """
    typed = sys.stdin is not None and sys.stdin.isatty() and select is None  # pyright: ignore[reportUnnecessaryComparison]
    if server is None:
        for name, value in (("--token-file", token_file), ("--dummy", dummy or None)):
            if value is not None:
                raise DomainError(name, str(value), "left out without --server")
        session = _of_file(Path(file), typed, person, budget, column, max_rows)
        history = f"{Path(file).resolve()}.ledger-typed"
    else:
        if (person, budget, column, max_rows) != (None, None, None, None):
            domain = "nothing of person, budget, columns or rows: its keeper said them"
            raise DomainError("--server", server, domain)
        session, history = _of_service(server, token_file, file, dummy), ""
    counter = Counter(session, _amount(spend), _number(error))
    try:
        if select is not None:
            counter.answer(select, asking=False)
        else:
            if typed:
                _remember(history, session)
            counter.run(typed)
    finally:
        if session.ledger is not None:
            session.ledger.close()


def _of_file(
    file: Path,
    typed: bool,
    person: str | None,
    budget: str | None,
    column: list[str] | None,
    max_rows: int | None,
) -> Session:
    from dpcompose.release import open

    if not os.path.exists(f"{file}.ledger") and file.is_file():
        person = _needed("person", person, "the column that names the person", file, typed)
        budget = _needed("budget", budget, "an epsilon for all answers, such as 2", file, typed)
        if typed and column is None and file.suffix.lower() == ".csv":
            stderr(
                "Columns are text unless you say more: minutes=float, age=int,0,120, clinic=str,north,south"
            )
            column = input("columns (several with spaces, or none): ").split()
    known = {name: _values(text) for name, text in pairs("--column", column or []).items()}
    epsilon = _number(budget, "--budget")
    return open(
        file, person=person, budget=epsilon, columns=known or None, max_rows_per_person=max_rows
    )


def _of_service(server: str, token_file: Path | None, name: str, dummy: bool) -> Session:
    try:
        from dpcompose.serve import RemoteSession
    except ModuleNotFoundError:
        raise MissingExtraError("A table behind a service", "serve") from None

    scope, _, table = name.rpartition("/")
    if not scope:
        raise DomainError("table", name, "SCOPE/TABLE, such as clinic/visits")
    session = RemoteSession.dummy if dummy else RemoteSession
    return session(server, _token(token_file), scope=scope, table=table)


def _token(file: Path | None) -> str:
    """The token of a file that only its owner reads, or of the environment; it is never an argument."""
    if file is None:
        token = os.environ.get("DPCOMPOSE_TOKEN", "")
    else:
        try:
            if file.stat().st_mode & 0o077:
                domain, remedy = "a file that only you may read", f"chmod 600 {file}"
                raise DomainError("--token-file", str(file), domain, remedy)
            token = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise DomainError("--token-file", str(file), "a file that can be read") from None
    token = token.strip()
    if not (token.isascii() and token.isprintable() and token):
        raise DomainError("--token-file", "no token", "the token that your keeper gave you, alone")
    return token


def _needed(name: str, value: str | None, what: str, file: Path, typed: bool) -> str:
    if value is not None:
        return value
    if not typed:
        line = f"dpcompose ask {file} --person COLUMN --budget 2"
        raise DomainError(f"--{name}", None, what, f"Type {line}")
    return input(f"{name} ({what}): ").strip()


def _values(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _number(text: str | None, name: str = "--error") -> float | None:
    return typed(name, text, float, "a number, such as 100")


def _amount(text: str | None) -> Any:
    """A price as it is typed: a part of the budget, or an epsilon."""
    if text is None or text.endswith("%"):
        return text
    return {"epsilon": text.removeprefix("epsilon=")}


def _remember(history: str, session: Session) -> None:
    """Keys of the line, names that Tab completes, and the statements that were typed, in a file if one is named."""
    try:
        import atexit
        import readline
    except ImportError:
        return
    if history:
        with suppress(OSError):
            os.close(os.open(history, os.O_CREAT | os.O_RDWR, 0o600))
            readline.read_history_file(history)
            atexit.register(readline.write_history_file, history)
    names = ["SELECT", "FROM", "WHERE", "GROUP BY", "COUNT(*)", "AVG(", "SUM(", session.table.name]
    names += [each.name for each in session.table.columns]

    def completed(start: str, index: int) -> str | None:
        found = [each for each in names if each.lower().startswith(start.lower())]
        return found[index] if index < len(found) else None

    readline.set_completer(completed)
    readline.parse_and_bind("tab: complete")


@dataclass
class Counter:
    """A session at a prompt.

    Args:
        session: Who answers.
        spend: The price of a statement; None for 5 % of the budget, or for what the error needs.
        error: How far each number may be off; None where the price is given.
    """

    session: Session
    spend: Any = None
    error: float | None = None
    last: Any = field(default=None, init=False)

    def run(self, typed: bool) -> None:
        """Answer lines until there are no more; an error ends it unless a person typed the line."""
        if typed:
            stderr("Ask in SQL, and end with a semicolon; .help says more.")
        for line in self._lines(typed):
            try:
                if not line.startswith("."):
                    self.answer(line, asking=typed)
                elif not self._command(line):
                    return
            except KeyboardInterrupt:
                stderr("")
            except DPComposeError as error:
                if not typed:
                    raise
                stderr(f"{error}")

    def _lines(self, typed: bool) -> Iterator[str]:
        """Statements up to their semicolon, and lines that begin with a point."""
        waiting = ""
        while True:
            prompt = ("... " if waiting else f"{self.session.table.name}> ") if typed else ""
            try:
                line = input(prompt)
            except KeyboardInterrupt:
                waiting = ""
                stderr("")
                continue
            except EOFError:
                break
            if waiting or (line.strip() and not line.lstrip().startswith(".")):
                waiting += f"{line}\n"
                if not line.rstrip().endswith(";"):
                    continue
                line, waiting = waiting, ""
            if line.strip():
                yield line.strip()
        if waiting.strip() and not typed:
            yield waiting.strip()

    def answer(self, text: str, *, asking: bool) -> None:
        """Say the price, ask for leave, and print the answer; nothing is charged by Ctrl-C before that."""
        options: dict[str, Any] = {"spend": self.spend, "error": self.error}
        if self.spend is None and self.error is None:
            options["spend"] = "5%"
        explained = self.session.explain(text, **options)
        if text.lstrip().lower().startswith("explain"):
            stdout(f"{explained}\n")
            return
        stderr(explained.in_words(CONFIDENCE))
        if asking:
            try:
                input("Enter to ask, Ctrl-C to leave it: ")
            except (KeyboardInterrupt, EOFError):
                stderr("\nNothing was charged")
                return
        before = self.session.account.left()
        try:
            self.last = self.session.sql(text, **options)
        except KeyboardInterrupt:
            charged = self.session.account.left() != before
            stderr("The charge stands, without an answer" if charged else "Nothing was charged")
            if not asking:
                raise
            return
        _show(self.last)

    def _command(self, line: str) -> bool:
        """Do what a line that begins with a point says; False if it ends the prompt."""
        word, _, argument = line.partition(" ")
        argument = argument.strip()
        shown = {".tables": self._tables, ".budget": self._budget, ".history": self._history}
        shown[".help"] = partial(stdout, f"{HELP}\n")
        match word:
            case ".quit" | ".exit":
                return False
            case _ if word in shown:
                shown[word]()
            case ".spend":
                self.spend, self.error = _amount(argument), None
            case ".error":
                self.spend, self.error = None, _number(argument)
            case ".save" if self.last is None:
                raise DomainError(".save", argument, "an answer to write: ask first")
            case ".save":
                self.last.write(argument)
                stderr(f"wrote {argument}")
            case _:
                words = [row.split()[0] for row in HELP.splitlines()[1:]]
                raise DomainError("command", word, f"one of .help, {', '.join(words)}")
        return True

    def _tables(self) -> None:
        from dpcompose.report import headings

        table = self.session.table
        rows = [
            (each.name, each.kind, ", ".join(str(end) for end in table.ranges.get(each.name, ())),
             "the person" if each.name in table.unit else "")
            for each in table.columns
        ]  # fmt: skip
        notes = [f"{table.name}: at most {table.bounds.rows:,} rows of one person are kept"]
        if table.public_tables:
            notes.append(f"Public tables to join: {', '.join(table.public_tables)}")
        _print(headings("column", "kind", "known", ""), rows, notes)

    def _budget(self) -> None:
        from dpcompose.account import used

        ledger, gauge = self.session.ledger, ""
        share = None if ledger is None else used(ledger.balance(self.session.scope))
        if share is not None:
            gauge = f"[{'#' * round(20 * share):20}] {float(100 * share):.3g} % spent; "
        stdout(f"{gauge}{self.session.budget_in_words}\n")

    def _history(self) -> None:
        from dpcompose.report import headings

        rows = [
            (entry["time"][:16], str(said), f"{float(cost.get('epsilon', 0)):.4g}")
            for entry, said, cost in self.session.history()
        ]
        _print(headings("time", "statement", "epsilon"), rows)


def _show(answer: Any) -> None:
    """The rows of an answer, its numbers to the right."""
    from dpcompose.report import Heading

    rows = [tuple(row) for row in answer.texts(CONFIDENCE)]
    columns = [
        Heading(each.name, "right" if each.type in ("int64", "double") else "left")
        for each in answer.columns
    ]
    unnamed = len(rows[0]) - len(columns) if rows else 0
    _print([*columns, *[Heading("")] * unnamed], rows)


def _print(
    columns: Sequence[Heading], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> None:
    """A table as all commands show theirs."""
    from dpcompose.report import PageTable, text

    stdout(text(PageTable("", tuple(columns), tuple(map(tuple, rows)), tuple(notes))))
