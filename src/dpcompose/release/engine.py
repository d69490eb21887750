"""The few things that ibis does not say the same way on every engine, and which tables may be asked."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false
# ibis types its expressions only in part.

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from threading import Lock
from typing import Any

from dpcompose.errors import EngineError, UnsupportedError

Expression = Any
"""An ibis expression: ibis types its own only in part, so nothing is claimed of them."""
Order = Callable[[Expression], Sequence[Any]]


@dataclass(frozen=True)
class Relation:
    """An engine's account of a table.

    Args:
        name: As the database has it, with its schema.
        plain: Whether its rows are stored as they are: no view, no computed columns, no rows hidden by a policy.
        place: Where it is for good; None if it lives as long as the connection.
        unique: Columns that no two of its rows agree in, where the database keeps it so.
    """

    name: str
    plain: bool
    place: str | None
    unique: tuple[frozenset[str], ...] = ()


def base(data: Expression) -> Any:
    """The table of the database, or the frame, of which `data` has some columns by name.

    Raises:
        UnsupportedError: If it is any other expression: ibis has many, so what is not known to be sound is refused.
    """
    import ibis.expr.operations as ops

    node: Any = data.op()
    while True:
        match node:
            case ops.DatabaseTable() | ops.InMemoryTable():
                return node
            case ops.DropColumns():
                node = node.parent
            case ops.Project() if all(
                _is(ops.Field, value, name, node.parent) for name, value in node.values.items()
            ):
                node = node.parent
            case _:
                reason = "one unit's rows can decide there what becomes of other units' rows, and no bound would hold"
                remedy = "Give a table of the database, a frame or a file; columns may be chosen by select and drop"
                raise UnsupportedError(
                    f"an ibis expression with {type(node).__name__}", reason, remedy
                )


def _is(field: type, value: Any, name: str, parent: Any) -> bool:
    return isinstance(value, field) and (value.name, value.rel) == (name, parent)  # pyright: ignore[reportAttributeAccessIssue]


def unsettled(name: str) -> UnsupportedError:
    """The refusal of a table that is not plain, or no longer the one that was opened."""
    reason = "it is a view, or was replaced since it was opened: one unit's rows can decide there what others count"
    remedy = f"Ask the table itself, or let the keeper open a scope with note={{'trust_view': [{name!r}]}}"
    return UnsupportedError(f"the table {name!r}", reason, remedy)


@dataclass(frozen=True)
class EngineStatement:
    """An expression, and the words in which its engine is asked for it.

    Args:
        expression: What is asked; small tables that it names live as long as it does.
        words: In the engine's SQL.
        backend: The connection that it is asked over.
    """

    expression: Expression
    words: str
    backend: Any


class Engine(ABC):
    """The particulars of one engine; all else is ibis expressions."""

    name: str
    """The name in messages."""
    labels: bool = False
    """Whether texts are sorted faster by integers that label them."""
    scattered: bool = False
    """Whether private keys may be too many for the machine that asks."""

    def exact_sum(self, column: Expression) -> Expression:
        """The sum of 64-bit integers, in more bits than 2^63 of them can fill."""
        return column.sum()

    @abstractmethod
    def binary_collation(self, column: Expression) -> Expression:
        """A text column whose values are equal where their code points are, whatever collation was declared.

        Under another one the letters of one row would decide how a group is written, and whether it is that of a key.
        """

    def readable(self, column: Expression) -> Expression:
        """Whether a text column holds a text: what is no UTF-8 would come out as the same text as something else."""
        return column.notnull()

    def by_code_point(self, column: Expression) -> Expression:
        """Something that sorts as the code points of a text column do."""
        return column

    @abstractmethod
    def digest(self, column: Expression) -> Expression:
        """The first 32 bits of the MD5 of a text column's UTF-8 bytes, as an integer: what spreads units evenly."""

    def as_double(self, column: Expression) -> Expression:
        """A decimal column in double precision, without failing on any row."""
        return column.cast("float64")

    def is_in(self, column: Expression, values: Sequence[Any]) -> Expression:
        """Whether a column holds one of these values, however many there are."""
        return column.isin(list(values))

    def dictionary(self, values: Sequence[str]) -> Expression | None:
        """A table of texts, `value`, and their places, `place`, to join with; None where a comparison does as well."""
        return None

    def small(self, rows: Expression) -> Expression:
        """The same rows, expected to be few: what a join keeps in memory, in place of the other side."""
        return rows

    def numbered(self, rows: Expression, of: Sequence[str], order: Order) -> Expression:
        """The rows with their place, from 0, among those that are equal in `of`, and the number of those.

        Args:
            rows: Without NULL in the first column of `of`.
            of: The columns.
            order: The sort keys of rows with the same columns.
        """
        import ibis

        window = ibis.window(group_by=of, order_by=order(rows))
        whole = ibis.window(group_by=of, order_by=order(rows), preceding=None, following=None)
        return rows.mutate(place=ibis.row_number().over(window), number=rows.count().over(whole))

    @abstractmethod
    def relation(self, table: Any, backend: Any) -> Relation:
        """The database's account of a table of its own, now."""

    @abstractmethod
    def require(self, backend: Any) -> None:
        """Raise DomainError if the connection takes different texts for equal, or cannot say all of them."""

    def reconnect(self, backend: Any) -> None:  # noqa: B027
        """Connect again where the connection was lost, and not closed; an embedded engine has none to lose."""

    @abstractmethod
    def rows(self, asked: EngineStatement) -> Sequence[tuple[Any, ...]]:
        """The rows of a small result as plain Python values."""


class _Silence:
    """Warnings are off while any thread is inside: the filters of Python belong to all threads of a process."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._before.close()


_SILENCE = _Silence()


def without_warnings() -> AbstractContextManager[None]:
    """Silence the warnings of the libraries below: they are not for analysts, and might speak of rows."""
    return _SILENCE


def narrowest(least: int, most: int) -> str:
    """The narrowest type for all integers from `least` to `most`: what is sorted then takes less time and memory."""
    types = {"int16": 2**15, "int32": 2**31}
    return next((type for type, size in types.items() if -size <= least and most < size), "int64")


def turn(backend: Any) -> Lock:
    """The lock of a connection: its statements run one after the other, whoever shares it."""
    return backend.__dict__.setdefault("dpcompose_turn", Lock())


def run(engine: Engine, asked: EngineStatement) -> Sequence[tuple[Any, ...]]:
    """The rows of a statement; whatever the engine says when it fails stays without_warnings, for it may speak of rows.

    Raises:
        EngineError: If the engine failed.
    """
    failed = False
    found: Sequence[tuple[Any, ...]] = ()
    with without_warnings(), turn(asked.backend):
        try:
            engine.require(asked.backend)
            found = engine.rows(asked)
        except Exception:
            failed = True
    # Raised out here, so that the engine's own error is not even its context.
    if failed:
        raise EngineError(engine.name)
    return found
