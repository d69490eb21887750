"""What a release asks of an engine: the few things that ibis does not say the same way everywhere."""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

from dpcompose.errors import EngineError, UnsupportedError
from dpcompose.release.expression import Expression
from dpcompose.release.relation import Relation


@dataclass(frozen=True)
class Statement:
    """An expression, and the words in which its engine is asked for it.

    Args:
        expression: What is asked; small tables that it names live as long as it does.
        words: In the engine's SQL.
    """

    expression: Expression
    words: str

    @property
    def backend(self) -> Any:
        """The connection that it is asked over."""
        return self.expression.get_backend()


class Engine(Protocol):
    """The particulars of one engine; all else is ibis expressions."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def labels(self) -> bool:
        """Whether text units are sorted faster by integers that label them."""
        ...

    def exact_sum(self, column: Expression) -> Expression:
        """The sum of 64-bit integers, in more bits than 2^63 of them can fill."""
        ...

    def letter_by_letter(self, column: Expression) -> Expression:
        """A text column whose values are equal where their code points are, whatever collation was declared.

        Under another one the letters of one row would decide how a group is written, and whether it is that of a key.
        """
        ...

    def readable(self, column: Expression) -> Expression:
        """Whether a text column holds a text: what is no UTF-8 would come out as the same text as something else."""
        ...

    def by_code_point(self, column: Expression) -> Expression:
        """Something that sorts as the code points of a text column do."""
        ...

    def digest(self, column: Expression) -> Expression:
        """The first 32 bits of the MD5 of a text column's UTF-8 bytes, as an integer: what spreads units evenly."""
        ...

    def as_double(self, column: Expression) -> Expression:
        """A decimal column in double precision, without failing on any row."""
        ...

    def among(self, column: Expression, values: Sequence[Any]) -> Expression:
        """Whether a column holds one of these values, however many there are."""
        ...

    def places(self, values: Sequence[str]) -> Expression | None:
        """A table of texts, `value`, and their places, `place`, to join with; None where a comparison does as well."""
        ...

    def numbered(self, rows: Expression, of: Sequence[str], order: Callable[[Expression], Sequence[Any]]) -> Expression:
        """The rows with their place, from 0, among those that are equal in `of`, and the number of those.

        Args:
            rows: Without NULL in the first column of `of`.
            of: The columns.
            order: The sort keys of rows with the same columns.
        """
        ...

    def relation(self, table: Any, backend: Any) -> Relation:
        """What the database says of a table of its own, now."""
        ...

    def require(self, backend: Any) -> None:
        """Raise DomainError if the connection takes different texts for equal, or cannot say all of them."""
        ...

    def rows(self, asked: Statement) -> Sequence[tuple[Any, ...]]:
        """The rows of a small result as plain Python values."""
        ...


def numbered(rows: Expression, of: Sequence[str], order: Callable[[Expression], Sequence[Any]]) -> Expression:
    """As `Engine.numbered` says, each group on its own."""
    import ibis

    window = ibis.window(group_by=of, order_by=order(rows))
    whole = ibis.window(group_by=of, order_by=order(rows), preceding=None, following=None)
    return rows.mutate(place=ibis.row_number().over(window), number=rows.count().over(whole))


def engine_of(expression: Expression, *, foreign: bool) -> Engine:
    """The engine that holds a table.

    Args:
        expression: The table.
        foreign: Whether it was made elsewhere, with whatever is declared there.

    Raises:
        UnsupportedError: If it is none of DuckDB, PostgreSQL and Spark.
    """
    from dpcompose.release.on_duckdb import OnDuckDB
    from dpcompose.release.on_postgresql import OnPostgreSQL
    from dpcompose.release.on_spark import OnSpark

    engines: dict[str, Engine] = {"duckdb": OnDuckDB(foreign=foreign), "postgres": OnPostgreSQL(), "pyspark": OnSpark()}
    name = str(expression.get_backend().name)
    if name not in engines:
        reason = "its sums, orders and comparisons are not known to agree with the others'"
        raise UnsupportedError(f"a table on {name}", reason, "Use DuckDB, PostgreSQL or Spark")
    return engines[name]


@contextmanager
def unsaid() -> Generator[None]:
    """What the libraries below warn of is not for analysts, and might speak of rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def turn(backend: Any) -> Lock:
    """The lock of a connection: its statements run one after the other, whoever shares it."""
    return backend.__dict__.setdefault("dpcompose_turn", Lock())


def run(engine: Engine, asked: Statement) -> Sequence[tuple[Any, ...]]:
    """The rows of a statement; whatever the engine says when it fails stays unsaid, for it may speak of rows.

    Raises:
        EngineError: If the engine failed.
    """
    failed = False
    found: Sequence[tuple[Any, ...]] = ()
    with unsaid(), turn(asked.backend):
        try:
            engine.require(asked.backend)
            found = engine.rows(asked)
        except Exception:
            failed = True
    # Raised out here, so that the engine's own error is not even its context.
    if failed:
        raise EngineError(engine.name)
    return found
