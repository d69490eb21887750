"""Small examples for tests: a table in memory, a ledger, a session."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import dpcompose.release as release
from campaigns.release import tables
from campaigns.release.marginals import Latest
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.ledger import Ledger
from dpcompose.release import synthetic
from dpcompose.release.query import Query

ROWS = [
    ("ann", "rome", 3.0, 1),
    ("ann", "rome", 5.0, 2),
    ("ann", "oslo", 1.0, 3),
    ("bob", "oslo", 9.0, 4),
    ("bob", None, 2.0, 5),
    ("cyd", "rome", None, 6),
    (None, "rome", 4.0, 7),
]
SCHEMA = pa.schema(
    [("person", pa.string()), ("city", pa.string()), ("amount", pa.float64()), ("age", pa.int64())]
)


OPENED: list[Ledger] = []


def frame(rows: Any = ROWS) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    return pa.table(
        [pa.array(cells, type=each.type) for cells, each in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def table(rows: Any = ROWS, **bounds: Any) -> release.Table:
    return release.table(
        frame(rows), **({"unit": "person", "max_rows_per_unit": 2, "name": "people"} | bounds)
    )


def refill(made: release.Table, rows: Any) -> None:
    """Other rows for a table of `table`, so that statements made for it are asked of them."""
    made.engine.raw.register(made.data.name.strip('"'), frame(rows))


def rows_of(query: Query) -> Any:
    """The rows of a query, as a frame of pandas."""
    import pandas

    return pandas.DataFrame(tables.rows_of(query), columns=query.columns)


def ledger(where: Any = "memory:", epsilon: float = 100.0) -> Ledger:
    made = Ledger.open(where)
    OPENED.append(made)
    open_scope(made, "world", filter=BasicFilter(epsilon, delta=0.1), actor="keeper")
    return made


def session(
    where: Ledger | None = None, rows: Any = ROWS, answers: Any = None, **bounds: Any
) -> release.Session:
    return session_of(table(rows, **bounds), where, answers)


def session_of(
    asked: release.Table, where: Ledger | None = None, answers: Any = None
) -> release.Session:
    kept = ledger() if where is None else where
    return release.Session(asked, ledger=kept, scope="world", actor="ana", answers=answers)


def without_a_model(patch: Any) -> None:
    """Synthetic data with a stand-in for the graphical model, whose library need not be installed."""

    class StandIn(Latest):
        def after(self, measured: Any, *, steps: int = 0) -> Latest:
            return super().after(measured)

    patch.setattr(synthetic, "GraphicalModel", StandIn)
    patch.setattr(synthetic, "require", lambda: None)
