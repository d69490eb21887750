"""The tables of a ledger, and the one step that makes them."""

from __future__ import annotations

from collections.abc import Mapping, Set

from dpcompose.errors import NewerSchemaError, StoreError
from dpcompose.ledger.store import Rows

TABLES: Mapping[str, tuple[str, ...]] = {
    "migration": ("number INTEGER NOT NULL", "name TEXT NOT NULL", "PRIMARY KEY (number)"),
    "scope": (
        "root TEXT NOT NULL",
        "path TEXT NOT NULL",
        "kind TEXT NOT NULL",
        "caps TEXT NOT NULL",
        "slots BIGINT",
        "description TEXT NOT NULL",
        "opened BIGINT NOT NULL",
        "PRIMARY KEY (root, path)",
    ),
    "balance": (
        "root TEXT NOT NULL",
        "path TEXT NOT NULL",
        "spent TEXT NOT NULL",
        "taken BIGINT NOT NULL",
        "closed INTEGER NOT NULL",
        "PRIMARY KEY (root, path)",
    ),
    "entry": (
        "root TEXT NOT NULL",
        "sequence BIGINT NOT NULL",
        "scope TEXT NOT NULL",
        '"key" TEXT',
        "redeems BIGINT",
        "body TEXT NOT NULL",
        "hash TEXT NOT NULL",
        "PRIMARY KEY (root, sequence)",
    ),
}
"""Columns and primary keys. The top-level scope leads every key, so that a distributed database can keep one tree on
one machine."""

UNIQUE: Mapping[str, str] = {"key_is_used_once": "key", "charge_is_redeemed_once": "redeems"}
"""Indexes of entries: below a top-level scope, no two have the same value in that column."""

VERSION = 5
"""The number of the step that makes the tables; a later one will have the next number."""
STEP = (VERSION, "scopes, balances and entries")
EARLIER_STEPS = (
    (1, "scopes, balances and entries"),
    (2, "rounds of schedules, attempts of redemptions"),
    (3, "entries by scope"),
    (4, "times that never run back"),
    (VERSION, "scopes that renew"),
)
"""The record in ledgers that commit aa7d735, or an earlier one, made: the same tables, in five steps."""

RECORDED = "SELECT number, name FROM migration ORDER BY number"
LATEST = "SELECT coalesce(max(number), 0) FROM migration"


def _statements(by_letter: str) -> list[str]:
    """The statements that make the tables and their indexes; SQLite keeps their text, and it is compared."""
    made: list[str] = []
    for name, columns in TABLES.items():
        end = "" if by_letter or name == "migration" else "\n WITHOUT ROWID\n\n"
        made.append(f"CREATE TABLE {name} (\n\t" + ", \n\t".join(columns) + f"\n){end}")
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


def migrate(rows: Rows, *, url: str) -> None:
    """Make the tables where there are none; the caller's transaction holds it all and locks others out.

    Raises:
        StoreError: The schema is a later one, or an earlier one.
    """
    version = version_of(rows, url=url)
    if version or rows.tables():
        require_current(version, url=url)
        return
    for statement in _statements(rows.by_letter):
        rows.run(statement)
    rows.many("INSERT INTO migration (number, name) VALUES (?, ?)", [STEP])


def require_current(version: int, *, url: str) -> None:
    """Raise StoreError unless the schema is the one that this version of dpcompose writes."""
    if version == 0:
        raise no_ledger(url)
    require_known(version, url=url)
    if version != VERSION:
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
