"""The tables of a ledger: how they are made, read and written, by statements sent straight to a driver."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, cast

from dpcompose.errors import NewerSchemaError, StoreError, TamperedError
from dpcompose.ledger.amount import Amounts, encode, units_of, units_text
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.entry import Entry, Head, Record
from dpcompose.ledger.front import Front, Vector
from dpcompose.ledger.merkle import WIDTH, leaf_hash, tile_hashes, tile_texts
from dpcompose.ledger.scope import AccountNode, Kind, Scope, root_of

Row = tuple[Any, ...]


class Rows(Protocol):
    """A connection to a database of any kind, inside a transaction. Statements have ? for their values."""

    by_letter: ClassVar[str]
    """The words after a column that have texts compared letter by letter, as indexes of scopes do."""

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row."""
        ...

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows; none of a statement that has no rows."""
        ...

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        """Execute the statement once for each row of values; how many rows of the database it wrote."""
        ...

    def tables(self) -> set[str]:
        """The names of all tables."""
        ...

    def broken(self) -> Iterator[str]:
        """Pages and indexes that the database itself finds broken; it reads all of them."""
        ...


_COLUMNS: Mapping[str, tuple[int, str]] = {
    "migration": (1, "number INTEGER, name TEXT"),
    "scope": (
        2,
        "root TEXT, path TEXT, kind TEXT, caps TEXT, slots BIGINT?, description TEXT, opened BIGINT",
    ),
    "balance": (2, "root TEXT, path TEXT, spent TEXT, taken BIGINT, closed INTEGER"),
    "entry": (
        2,
        'root TEXT, sequence BIGINT, scope TEXT, "key" TEXT?, redeems BIGINT?, body TEXT, hash TEXT',
    ),
    "fact": (3, "root TEXT, kind TEXT, name TEXT, value TEXT"),
    "tile": (3, "root TEXT, level BIGINT, number BIGINT, hashes TEXT, top TEXT"),
}
"""How many of the first columns are the primary key, and the columns; those with a question mark may be NULL. The top-level
scope leads every key, so that a distributed database can keep one tree on one machine."""


def _declared(keys: int, columns: str) -> tuple[str, ...]:
    parts = columns.split(", ")
    names = [part.split()[0] for part in parts]
    declared = [part[:-1] if part.endswith("?") else f"{part} NOT NULL" for part in parts]
    return (*declared, f"PRIMARY KEY ({', '.join(names[:keys])})")


def _insert(table: str) -> str:
    names = [part.split()[0].strip('"') for part in _COLUMNS[table][1].split(", ")]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


TABLES = {name: _declared(*own) for name, own in _COLUMNS.items()}
"""The declarations of columns and primary keys."""

UNIQUE: Mapping[str, str] = {"key_is_used_once": "key", "charge_is_redeemed_once": "redeems"}
"""Indexes of entries: below a top-level scope, no two have the same value in that column."""

VERSION, EARLIER = 6, 5
"""The number of the last step; and of the one from which a ledger is brought up to date."""
STEPS: Mapping[int, tuple[str, tuple[str, ...]]] = {
    EARLIER: ("scopes, balances and entries", ("migration", "scope", "balance", "entry")),
    VERSION: ("facts and tiles", ("fact", "tile")),
}
"""The name of each step, and the tables that it makes."""
_NAMES = tuple((number, name) for number, (name, _) in STEPS.items())
RECORDS_OF_STEPS = (
    _NAMES,
    (
        (1, "scopes, balances and entries"),
        (2, "rounds of schedules, attempts of redemptions"),
        (3, "entries by scope"),
        (4, "times that never run back"),
        (5, "scopes that renew"),
        *_NAMES[1:],
    ),
)
"""What a ledger records of its steps; the second, in ledgers that commit aa7d735 or an earlier one made."""

RECORDED = "SELECT number, name FROM migration ORDER BY number"
LATEST = "SELECT coalesce(max(number), 0) FROM migration"


def _statements(by_letter: str, tables: Sequence[str] = tuple(TABLES)) -> list[str]:
    """The statements that make tables and their indexes; SQLite keeps their text, and it is compared."""
    made: list[str] = []
    for name in tables:
        end = "" if by_letter or name == "migration" else "\n WITHOUT ROWID\n\n"
        made.append(f"CREATE TABLE {name} (\n\t" + ", \n\t".join(TABLES[name]) + f"\n){end}")
    if "tile" in tables and by_letter:
        made.append(f"CREATE INDEX balance_by_path ON balance (root, path{by_letter})")
    if "entry" not in tables:
        return made
    for name, column in UNIQUE.items():
        quoted = '"key"' if column == "key" else column
        made.append(
            f"CREATE UNIQUE INDEX {name} ON entry (root, {quoted}) WHERE {column} IS NOT NULL"
        )
    # Scopes at or below a path are a range of texts, letter by letter, whatever the collation.
    made.append(f"CREATE INDEX entry_of_scope ON entry (root, scope{by_letter}, sequence)")
    if by_letter:  # elsewhere the primary key does
        made.append(f"CREATE INDEX scope_by_path ON scope (root, path{by_letter})")
    return made


def version_of(rows: Rows, *, url: str) -> int:
    """The number of the last step that was applied; 0 for an empty database.

    Raises:
        StoreError: The database holds something that is no ledger.
    """
    names = rows.tables()
    require_own(names, url=url)
    (version,) = (rows.row(LATEST) or (0,)) if names else (0,)
    return version


def require_own(names: Set[str], *, url: str) -> None:
    """Raise StoreError if a database has tables, and they are not those of a ledger."""
    if names and not names >= {"migration", "entry"}:
        raise StoreError(url, "a database that is no ledger", "Choose another file or database")


def migrate(rows: Rows, *, url: str, last: int = VERSION) -> None:
    """Apply the steps up to `last` that are missing; the caller's transaction holds them all and locks others out.

    Raises:
        StoreError: The schema is a later one, or one before the first step that is known.
    """
    version = version_of(rows, url=url)
    if version or rows.tables():
        require_readable(version, url=url)
    for number, (name, tables) in STEPS.items():
        if version < number <= last:
            for statement in _statements(rows.by_letter, tables):
                rows.run(statement)
            rows.many("INSERT INTO migration (number, name) VALUES (?, ?)", [(number, name)])

    if 0 < version < VERSION:
        earlier = LedgerTables(rows)
        for root in earlier.roots():
            earlier.fill_tiles(root, 0, earlier.head(root).sequence)


def require_readable(version: int, *, url: str) -> None:
    """Raise StoreError unless this version of dpcompose can read the schema, or bring it up to date."""
    if version == 0:
        raise no_ledger(url)
    require_known(version, url=url)
    if version not in STEPS:
        what = f"has the schema of an earlier version ({version}; this one reads {VERSION})"
        raise StoreError(
            url, what, "Open it once with commit aa7d735 of dpcompose, which brings it up to date"
        )


def no_ledger(url: str) -> StoreError:
    """The error of a file or database that is empty, and is not to become a ledger."""
    return StoreError(url, "there is no ledger here", "dpcompose ledger init makes one")


def require_known(version: int, *, url: str) -> None:
    """Raise NewerSchemaError unless this version of dpcompose knows that version of the schema."""
    if not version <= VERSION:
        raise NewerSchemaError(url, version, VERSION)


SCOPES = "SELECT root, path, kind, caps, slots, description, opened FROM scope"
BALANCES = "SELECT path, spent, taken, closed FROM balance"
NODES = (
    "SELECT s.root, s.path, kind, caps, slots, description, opened, spent, taken, closed FROM scope s "
    "LEFT JOIN balance b ON s.root = b.root AND s.path = b.path"
)
NODE = f"{NODES} WHERE s.root = ? AND s.path = ?"
KEYED = "SELECT body, hash FROM entry WHERE root = ? AND key = ?"
HASH = "SELECT hash FROM entry WHERE root = ? AND sequence = ?"
NUMBERED = "SELECT body, hash FROM entry WHERE root = ? AND sequence = ?"
REDEEMED = "SELECT body, hash FROM entry WHERE root = ? AND redeems = ?"
HEAD = "SELECT sequence, hash FROM entry WHERE root = ? ORDER BY sequence DESC LIMIT 1"
RECORDS = "SELECT sequence, scope, key, redeems, body, hash FROM entry WHERE root = ?"
ROOTS = "SELECT root FROM scope WHERE root = path"
NEXT_ROOT = "SELECT min(root) FROM entry WHERE root > ?"
ORPHANS = "SELECT root, path FROM balance EXCEPT SELECT root, path FROM scope"
NEW_SCOPE = _insert("scope")
NEW_BALANCE = "INSERT INTO balance (spent, taken, closed, root, path) VALUES (?, ?, ?, ?, ?)"
NEW_ENTRY = _insert("entry")
FACT = "SELECT value FROM fact WHERE root = ? AND kind = ? AND name = ?"
FACTS = "SELECT name, value FROM fact WHERE root = ? AND kind = ?"
TILE = "SELECT hashes FROM tile WHERE root = ? AND level = ? AND number = ?"
TOPS = "SELECT top FROM tile WHERE root = ? AND level = ? AND number >= ? AND number < ? ORDER BY number"
TILES = "SELECT level, number, hashes, top FROM tile WHERE root = ? ORDER BY level, number"
NEW_TILE = _insert("tile")
FACTS_OF = "SELECT kind, name, value FROM fact WHERE root = ?"
EVERY_FACT = "SELECT root, kind, name, value FROM fact"
NEW_FACT = f"{_insert('fact')} ON CONFLICT (root, kind, name) DO UPDATE SET value = excluded.value"
END_FACT = "DELETE FROM fact WHERE root = ? AND kind = ? AND name = ?"
CHANGE = "UPDATE balance SET spent = ?, taken = ?, closed = ? WHERE root = ? AND path = ?"


def scope_row(scope: Scope) -> Row:
    """root, path, kind, caps, slots, description, opened."""
    return (
        scope.root,
        scope.path,
        str(scope.kind),
        scope.caps.text,
        scope.slots,
        scope.description_text,
        scope.opened,
    )


def scope_of(row: Row) -> Scope:
    """The scope of a row as `scope_row` writes it."""
    root, path, kind, caps, slots, description, opened = row
    try:
        if root != root_of(path):
            raise ValueError(root)
        return Scope(path, Kind(kind), Amounts(_units(caps)), slots, description, opened)
    except (ValueError, TypeError, AttributeError):
        raise TamperedError([f"the row of scope {path!r} cannot be read"]) from None


def _units(text: Any) -> dict[str, int]:
    """The amounts of a text that `units_text` wrote; another text of the same amounts is not what was written."""
    units, parts = _spent(text)
    if parts:
        raise ValueError(text)
    return units


def _spent(text: Any) -> tuple[dict[str, int], dict[str, Front]]:
    """The amounts spent, and the fronts of the children that have several vectors."""
    if not isinstance(text, str):
        raise TypeError(text)
    found: Any = json.loads(text)
    own, apart = cast("tuple[Any, Any]", found if type(found) is list else (found, {}))
    spent = _read(own)
    fronts: dict[str, Front] = {
        name: tuple([_read(each) for each in front]) for name, front in apart.items()
    }
    if _spent_text(spent, fronts) != text:  # such as one that names a currency twice
        raise ValueError(text)
    return spent, fronts


def _read(texts: Mapping[str, str]) -> dict[str, int]:
    return {name: units_of(each) for name, each in texts.items()}


def _spent_text(spent: Vector, parts: Mapping[str, Front]) -> str:
    if not parts:
        return units_text(spent)
    fronts = {name: [Amounts(each).texts() for each in front] for name, front in parts.items()}
    return encode([Amounts(spent).texts(), fronts])


def balance_row(node: AccountNode) -> Row:
    """spent, taken, closed, root, path."""
    spent, own = _spent_text(node.spent, node.parts), node.scope
    return (spent, node.taken, int(node.closed), own.root, own.path)


def node_of(scope: Scope, row: Sequence[Any] | None) -> AccountNode:
    """The scope with its balance: spent, taken, closed."""
    try:
        if row is None:
            raise ValueError(scope.path)
        spent, taken, closed = row
        balance, parts = _spent(spent)
        counted = scope.schedule is not None or scope.renewal is not None
        if not (type(taken) is int and taken >= 0 and (counted or taken <= (scope.slots or 0))):
            raise ValueError(taken)
        if scope.kind is not Kind.SLOTS and any(
            balance[name] > cap for name, cap in scope.caps.units.items()
        ):
            raise ValueError(spent)
        return AccountNode(scope, balance, taken, {0: False, 1: True}[closed], parts)
    except (ValueError, TypeError, AttributeError, KeyError):
        raise TamperedError(
            [f"the balance of scope {scope.path!r} is none that a ledger writes"]
        ) from None


def entry_row(record: Record) -> Row:
    """root, sequence, scope, key, redeems, body, hash."""
    return (
        root_of(record.scope),
        record.sequence,
        record.scope,
        record.key,
        record.redeems,
        record.body,
        record.hash,
    )


def entry_of(row: Row | None) -> Entry | None:
    """The entry of a row of body and hash."""
    return None if row is None else Entry(*row)


AT_A_TIME = 1000


@dataclass
class Cached:
    """Rows below one top-level scope, kept for later transactions: the same last entry means the same rows.

    Args:
        head: The last entry when they were read or written.
        nodes: By path.
        time: The recorded time of the last entry; None where it was not read.
        facts: By kind, all of that kind.
    """

    head: Head = field(default_factory=Head)
    nodes: dict[str, AccountNode] = field(default_factory=dict[str, AccountNode])
    time: str | None = None
    facts: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])


Cache = defaultdict[str, Cached]
"""By top-level scope."""


@dataclass
class LedgerTables:
    """The stored ledger: what the rules look at, what readers see at one moment, and where decisions are written.

    Args:
        rows: The connection, inside a transaction.
        cache: Nodes and heads that a store keeps from one transaction to the next.
        inspect: The faults of the database itself, and what was added to it.
    """

    rows: Rows
    cache: Cache = field(default_factory=lambda: defaultdict(Cached))
    inspect: Callable[[Rows], Iterator[str]] = lambda _: iter(())
    _version: int = 0

    def node(self, path: str) -> AccountNode | None:
        """See `View`; asked after `head`, which forgets the scopes of another history."""
        root = root_of(path)
        nodes = self.cache[root].nodes
        if path not in nodes:
            row = self.rows.row(NODE, (root, path))
            if row is None:
                return None
            nodes[path] = node_of(scope_of(row[:7]), row[7:])
        return nodes[path]

    def keyed(self, root: str, key: str) -> Entry | None:
        return entry_of(self.rows.row(KEYED, (root, key)))

    def keyed_all(self, root: str, keys: Sequence[str]) -> dict[str, Entry]:
        """The entries of those of these idempotency keys that have one."""
        count = 1 << (len(keys) - 1).bit_length()  # few statements, which the driver keeps prepared
        marks = ", ".join(["(?)"] * count)
        # A join, because of a list of keys SQLite would walk the whole chain instead of using their index.
        statement = (
            f"WITH own (name) AS (VALUES {marks}) SELECT key, body, hash FROM own CROSS JOIN entry "
        )
        values = [*keys, *[keys[-1]] * (count - len(keys)), root]
        rows = self.rows.run(f"{statement} WHERE root = ? AND key = name", values)
        return {key: Entry(body, hash) for key, body, hash in rows}

    def entry(self, root: str, sequence: int) -> Entry | None:
        return entry_of(self.rows.row(NUMBERED, (root, sequence)))

    def redemption(self, root: str, sequence: int) -> Entry | None:
        return entry_of(self.rows.row(REDEEMED, (root, sequence)))

    def fact(self, root: str, kind: str, name: str) -> str | None:
        row = self.rows.row(FACT, (root, kind, name)) if self.has_facts() else None
        return None if row is None else row[0]

    def facts(self, root: str, kind: str) -> Mapping[str, str]:
        kept = self.cache[root].facts
        if kind not in kept:
            found = self.rows.run(FACTS, (root, kind)) if self.has_facts() else []
            kept[kind] = dict(found)
        return kept[kind]

    def every_fact(self) -> Iterator[tuple[str, str, str, str]]:
        """Every fact of every tree: top-level scope, kind, name and JSON."""
        return iter(self.rows.run(EVERY_FACT) if self.has_facts() else [])

    def state(self, root: str) -> Iterator[str]:
        """Every scope of a tree with its balance as it is stored, and every fact: a line of JSON for each, sorted."""
        rows = self.rows.run(f"{NODES} WHERE s.root = ?", (root,))
        yield from sorted(encode(row[1:]) for row in rows)
        facts = self.rows.run(FACTS_OF, (root,)) if self.has_facts() else []
        named = ({"kind": kind, "name": name, "value": value} for kind, name, value in facts)
        yield from sorted(map(encode, named))

    def has_facts(self) -> bool:
        """Whether the schema has facts and tiles; one of an earlier version can be read."""
        if self._version == 0:
            (self._version,) = self.rows.row(LATEST) or (0,)
        return self._version >= VERSION

    def tile(self, root: str, level: int, number: int) -> list[bytes] | None:
        """The hashes of a full tile of the tree of hashes; None where it is not full."""
        row = self.rows.row(TILE, (root, level, number)) if self.has_facts() else None
        return None if row is None else tile_hashes(row[0])

    def tops(self, root: str, level: int, first: int, stop: int) -> list[bytes]:
        """The roots of full tiles of a level, from one number to before another."""
        return [bytes.fromhex(top) for (top,) in self.rows.run(TOPS, (root, level, first, stop))]

    def tiles(self, root: str) -> Iterator[tuple[int, int, str, str]]:
        """Every tile of a tree: level, number, hashes and root, as they are stored."""
        return iter(self.rows.run(TILES, (root,)) if self.has_facts() else [])

    def fill_tiles(self, root: str, before: int, after: int) -> None:
        """Store the tiles that became full while the log of a tree grew from one number of entries to another."""
        for number in range(before // WIDTH, after // WIDTH):
            records = self.records(root, after=number * WIDTH, limit=WIDTH)
            self._fill(root, 0, number, [leaf_hash(record.body) for record in records])

    def _fill(self, root: str, level: int, number: int, hashes: list[bytes]) -> None:
        self._write(NEW_TILE, [(root, level, number, *tile_texts(hashes))])
        if (number + 1) % WIDTH == 0:
            first = number + 1 - WIDTH
            self._fill(root, level + 1, number // WIDTH, self.tops(root, level, first, number + 1))

    def hash(self, root: str, sequence: int) -> str | None:
        """The hash of an entry; None if there is no such entry."""
        row = self.rows.row(HASH, (root, sequence))
        return None if row is None else row[0]

    def head(self, root: str) -> Head:
        row = self.rows.row(HEAD, (root,))
        head = Head() if row is None else Head(*row)
        self.forget_before(root, head)
        return head

    def forget_before(self, root: str, head: Head) -> None:
        """Forget what was read when another entry was the last one, perhaps of another history."""
        if self.cache[root].head != head:
            self.cache[root] = Cached(head)

    def time(self, root: str) -> str:
        if self.cache[root].time is None:
            last = self.entry(root, self.head(root).sequence)
            self.cache[root].time = "" if last is None else last.time
        return self.cache[root].time or ""

    def nodes(self) -> Iterator[AccountNode]:
        """Every scope with its balance, sorted by path."""
        rows = sorted(self.rows.run(NODES), key=lambda row: row[1])
        return (node_of(scope_of(row[:7]), row[7:]) for row in rows)

    def nodes_between(
        self, start: str, stop: str, *, limit: int | None = None
    ) -> Iterator[AccountNode]:
        """The scopes of one tree with paths from `start` to before `stop`, letter by letter, sorted; the first ones."""
        path, root = f"path{self.rows.by_letter}", root_of(start)
        first = "" if limit is None else f" ORDER BY {path} LIMIT {limit:d}"
        rows = self.rows.run(
            f"{SCOPES} WHERE root = ? AND {path} >= ? AND {path} < ?{first}", (root, start, stop)
        )
        rows.sort(key=lambda row: row[1])
        # Two ranges instead of a join, for which a database may walk all of a tree.
        own = f"{BALANCES} WHERE root = ? AND {path} >= ? AND {path} <= ?"
        stored = self.rows.run(own, (root, start, rows[-1][1])) if rows else []
        balances = {each: balance for each, *balance in stored}
        return (node_of(scope_of(row), balances.get(row[1])) for row in rows)

    def roots(self) -> list[str]:
        """The top-level scopes, sorted; also those that have entries but no scope."""
        return sorted({root for (root,) in self.rows.run(ROOTS)} | set(self._roots_of_entries()))

    def _roots_of_entries(self) -> Iterator[str]:
        """One short look-up for each root, instead of a walk over all entries."""
        last = ""
        while (row := self.rows.row(NEXT_ROOT, (last,))) is not None and row[0] is not None:
            (last,) = row
            yield last

    def records(self, root: str, *, after: int, limit: int | None) -> Iterator[Record]:
        """The records of a top-level scope in order, above the number `after`."""
        while limit is None or limit > 0:
            size = AT_A_TIME if limit is None else min(AT_A_TIME, limit)
            page = self.rows.run(
                f"{RECORDS} AND sequence > ? ORDER BY sequence LIMIT ?", (root, after, size)
            )
            if not page:
                return
            yield from (Record(*row) for row in page)
            after = page[-1][0]
            limit = None if limit is None else limit - len(page)

    def records_of(
        self, path: str, *, below: bool, after: int = 0, limit: int | None = None
    ) -> Iterator[Record]:
        """The records of a scope, and of those below it if `below`, in order, above the number `after`."""
        if below and path == root_of(path):
            return self.records(path, after=after, limit=limit)
        scope, values = f"scope{self.rows.by_letter}", [root_of(path), after, path]
        if below:  # one range, of which an index is used; siblings such as `path-2` lie in it and are left out
            own = f"{scope} >= ? AND {scope} < ? AND (scope = ? OR {scope} > ?)"
            values += [f"{path}0", path, f"{path}/"]
        else:  # a range of one: asked for equality, SQLite walks the whole chain by the primary key instead
            own = f"{scope} >= ? AND {scope} <= ?"
            values += [path]
        # Sorted by a sum, so that no database walks the whole chain in order instead of sorting what it looks for.
        first = "" if limit is None else f" LIMIT {limit:d}"
        statement = f"{RECORDS} AND sequence + 0 > ? AND {own} ORDER BY sequence + 0{first}"
        return (Record(*row) for row in self.rows.run(statement, values))

    def damage(self, *, pages: bool = True) -> Iterator[str]:
        """Faults that the store itself finds in its file: foreign tables or triggers, and broken `pages`."""
        steps = tuple(self.rows.run(RECORDED))
        if steps not in RECORDS_OF_STEPS and steps not in [each[:-1] for each in RECORDS_OF_STEPS]:
            yield "the record of migrations is not that of this version"
        yield from (f"{path}: a balance without a scope" for _, path in self.rows.run(ORPHANS))
        yield from self.inspect(self.rows)
        yield from self.rows.broken() if pages else ()

    def write(self, batch: Batch) -> None:
        """Write what a batch changes."""
        new = {scope.path for scope in batch.scopes}
        changed = {
            path: balance_row(node) for path, node in batch.balances.items() if path not in new
        }
        if batch.scopes:
            self._write(NEW_SCOPE, [scope_row(scope) for scope in batch.scopes])
            self._write(
                NEW_BALANCE, [balance_row(batch.balances[scope.path]) for scope in batch.scopes]
            )
        if changed:
            self._write(CHANGE, list(changed.values()))
        self._write(NEW_ENTRY, [entry_row(record) for record in batch.records])
        for root, head in batch.ends.items():
            new = sum(root_of(each.scope) == root for each in batch.records)
            self.fill_tiles(root, head.sequence - new, head.sequence)
        facts = [
            (root, *at, text) for root, own in batch.changed.items() for at, text in own.items()
        ]
        if facts:
            self._write(NEW_FACT, [row for row in facts if row[3] is not None])
            self.rows.many(END_FACT, [row[:3] for row in facts if row[3] is None])
        # Whether this is committed or not: these are the rows where such an entry is the last one.
        for root, head in batch.ends.items():
            kept = self.cache.pop(root)  # if we are interrupted, everything is read again
            kept.head, kept.time = head, batch.times[root]
            kept.nodes |= {path: batch.balances[path] for path in changed if root_of(path) == root}
            for (kind, name), text in batch.changed.get(root, {}).items():
                own = kept.facts.get(kind, {})
                own.pop(name, None)
                own |= {} if text is None else {name: text}
            self.cache[root] = kept

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        if (written := self.rows.many(statement, rows)) != len(rows):
            what = statement.partition(" (")[0].partition(" SET")[0]
            raise TamperedError(
                [
                    f"{what!r} wrote {written} rows instead of {len(rows)}: a trigger or rule that is not ours"
                ]
            )
