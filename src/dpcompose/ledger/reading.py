"""Reading one moment of a SQL database: every statement sees the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from dpcompose.ledger.entry import Entry, Head
from dpcompose.ledger.schema import BALANCE, ENTRY, MIGRATION, SCOPE, STEPS
from dpcompose.ledger.scope import AccountNode, root_of
from dpcompose.ledger.store import Record, entry_of, node_of, scope_of

AT_A_TIME = 1000


@dataclass(frozen=True)
class ReadModel:
    """A snapshot of a SQL database.

    Args:
        connection: Inside a transaction that sees one moment.
        inspect: What the database finds wrong with its own file, and what was added to it.
    """

    connection: Connection
    inspect: Callable[[Connection], Iterator[str]]

    def node(self, path: str) -> AccountNode | None:
        return next(self._nodes(SCOPE.c.root == root_of(path), SCOPE.c.path == path), None)

    def nodes(self) -> Iterator[AccountNode]:
        return self._nodes()

    def nodes_between(
        self, start: str, stop: str, *, limit: int | None = None
    ) -> Iterator[AccountNode]:
        path = self._by_letter(SCOPE.c.path)
        return self._nodes(SCOPE.c.root == root_of(start), path >= start, path < stop, limit=limit)

    def _nodes(
        self, *conditions: ColumnElement[bool], limit: int | None = None
    ) -> Iterator[AccountNode]:
        joined = SCOPE.outerjoin(
            BALANCE, (SCOPE.c.root == BALANCE.c.root) & (SCOPE.c.path == BALANCE.c.path)
        )
        wanted = select(SCOPE, BALANCE.c.spent, BALANCE.c.taken, BALANCE.c.closed).select_from(
            joined
        )
        if limit is not None:
            wanted = wanted.order_by(self._by_letter(SCOPE.c.path)).limit(limit)
        rows = [tuple(row) for row in self.connection.execute(wanted.where(*conditions))]
        return (node_of(scope_of(row[:7]), row[7:]) for row in sorted(rows, key=lambda row: row[1]))

    def head(self, root: str) -> Head:
        last = (
            select(ENTRY.c.sequence, ENTRY.c.hash)
            .where(ENTRY.c.root == root)
            .order_by(ENTRY.c.sequence.desc())
        )
        row = self.connection.execute(last.limit(1)).first()
        return Head() if row is None else Head(*tuple(row))

    def keyed(self, root: str, key: str) -> Entry | None:
        found = select(ENTRY.c.body, ENTRY.c.hash).where(ENTRY.c.root == root, ENTRY.c.key == key)
        row = self.connection.execute(found).first()
        return entry_of(None if row is None else tuple(row))

    def roots(self) -> list[str]:
        with_scope = select(SCOPE.c.root).where(SCOPE.c.root == SCOPE.c.path)
        found = set(self.connection.execute(with_scope).scalars())
        return sorted(found | set(self._roots_of_entries()))

    def _roots_of_entries(self) -> Iterator[str]:
        """One short look-up for each root, instead of a walk over all entries."""
        last = ""
        while True:
            following = select(func.min(ENTRY.c.root)).where(ENTRY.c.root > last)
            root = self.connection.execute(following).scalar_one()
            if root is None:
                return
            yield root
            last = root

    def records(self, root: str, *, after: int, limit: int | None) -> Iterator[Record]:
        while limit is None or limit > 0:
            wanted = (
                select(*(ENTRY.c[name] for name in Record.__match_args__))
                .where(ENTRY.c.root == root, ENTRY.c.sequence > after)
                .order_by(ENTRY.c.sequence)
                .limit(AT_A_TIME if limit is None else min(AT_A_TIME, limit))
            )
            page = self.connection.execute(wanted).all()
            if not page:
                return
            yield from (Record(*row) for row in page)
            after = page[-1].sequence
            limit = None if limit is None else limit - len(page)

    def records_of(
        self, path: str, *, below: bool, after: int = 0, limit: int | None = None
    ) -> Iterator[Record]:
        if below and path == root_of(path):
            return self.records(path, after=after, limit=limit)
        # Sorted by a sum, so that no database walks the whole chain in order instead of sorting what it looks for.
        number, scope = ENTRY.c.sequence + 0, self._by_letter(ENTRY.c.scope)
        wanted = (
            select(*(ENTRY.c[name] for name in Record.__match_args__)).order_by(number).limit(limit)
        )
        wanted = wanted.where(ENTRY.c.root == root_of(path), number > after)
        if below:  # one range, of which an index is used; siblings such as `path-2` lie in it and are left out
            own = (scope >= path) & (scope < f"{path}0") & ((scope == path) | (scope > f"{path}/"))
        else:  # a range of one: asked for equality, SQLite walks the whole chain by the primary key instead
            own = (scope >= path) & (scope <= path)
        return (
            Record(*row) for row in self.connection.execute(wanted.where(own)).yield_per(AT_A_TIME)
        )

    def _by_letter(self, column: ColumnElement[str]) -> ColumnElement[str]:
        """A column of paths, compared as the index compares them: letter by letter."""
        return column.collate("C") if self.connection.dialect.name == "postgresql" else column

    def count(self, root: str) -> int:
        return self.connection.execute(
            select(func.count()).where(ENTRY.c.root == root)
        ).scalar_one()

    def damage(self) -> Iterator[str]:
        applied = self.connection.execute(
            select(MIGRATION.c.number, MIGRATION.c.name).order_by(MIGRATION.c.number)
        )
        if [tuple(row) for row in applied] != [(step.number, step.name) for step in STEPS]:
            yield "the record of migrations is not that of this version"
        orphans = select(BALANCE.c.root, BALANCE.c.path).except_(select(SCOPE.c.root, SCOPE.c.path))
        yield from (
            f"{path}: a balance without a scope" for _, path in self.connection.execute(orphans)
        )
        yield from self.inspect(self.connection)
