"""What may be asked: plain tables. Anything else could let one unit's rows decide what becomes of other units' rows."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcompose.errors import UnsupportedError
from dpcompose.release.expression import Expression


@dataclass(frozen=True)
class Relation:
    """What an engine says of a table.

    Args:
        name: As the database has it, with its schema.
        plain: Whether its rows are stored as they are: no view, no computed columns, no rows hidden by a policy.
        place: Where it is for good; None if it lives as long as the connection.
    """

    name: str
    plain: bool
    place: str | None


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
            case ops.Project() if all(_is(ops.Field, value, name, node.parent) for name, value in node.values.items()):
                node = node.parent
            case _:
                reason = "one unit's rows can decide there what becomes of other units' rows, and no bound would hold"
                remedy = "Give a table of the database, a frame or a file; columns may be chosen by select and drop"
                raise UnsupportedError(f"an ibis expression with {type(node).__name__}", reason, remedy)


def _is(field: type, value: Any, name: str, parent: Any) -> bool:
    return isinstance(value, field) and (value.name, value.rel) == (name, parent)  # pyright: ignore[reportAttributeAccessIssue]


def unsettled(name: str) -> UnsupportedError:
    """What is said of a table that is not plain, or no longer the one that was opened."""
    reason = "it is a view, or was replaced since it was opened: one unit's rows can decide there what others count"
    remedy = f"Ask the table itself, or let the keeper open a scope with note={{'trust_view': [{name!r}]}}"
    return UnsupportedError(f"the table {name!r}", reason, remedy)
