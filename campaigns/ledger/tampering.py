"""Tampering: a ledger's file is changed behind its back in random ways, and `verify` must say so.

python -m campaigns.ledger.tampering [--tries 10000]

Ways: a bit of a stored value flipped (entries, balances, scopes, migrations), rows deleted, copied, exchanged or
added, the end cut off, a chain written anew with right hashes and right balances, an older copy of the file put back,
bits of the file itself, triggers and dropped indexes. An anchor taken before is kept elsewhere. A change of the file
that leaves every value as it was is no tampering, and is counted apart. The control looks at hashes only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from campaigns.ledger.history import HistoryError
from campaigns.ledger.work import answer, ask, prepare
from dpcompose.errors import LedgerError
from dpcompose.ledger import Anchor, Ledger

COLUMNS = {
    "entry": ("root", "sequence", "scope", "key", "redeems", "body", "hash"),
    "balance": ("root", "path", "spent", "taken", "closed"),
    "scope": ("root", "path", "kind", "caps", "slots", "description", "opened"),
    "migration": ("number", "name"),
}
KEYS = {
    "entry": "root, sequence",
    "balance": "root, path",
    "scope": "root, path",
    "migration": "number",
}
Connection = sqlite3.Connection


class HarmlessError(Exception):
    """This change would not change a value."""


def _row(connection: Connection, rng: random.Random, table: str) -> dict[str, object]:
    rows = connection.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table}").fetchall()
    return dict(zip(COLUMNS[table], rng.choice(rows), strict=True))


def _where(table: str, row: dict[str, object]) -> tuple[str, list[object]]:
    names = KEYS[table].split(", ")
    return " AND ".join(f"{name} = ?" for name in names), [row[name] for name in names]


def flip_value(connection: Connection, rng: random.Random) -> None:
    table = rng.choice(["entry", "entry", "entry", "balance", "balance", "scope", "migration"])
    row = _row(connection, rng, table)
    name = rng.choice(COLUMNS[table])
    where, values = _where(table, row)
    connection.execute(
        f"UPDATE {table} SET {name} = ? WHERE {where}", [_flipped(row[name], rng), *values]
    )


def _flipped(value: object, rng: random.Random) -> object:
    match value:
        case int():
            return value ^ 1 << rng.randrange(20)
        case str() if rng.random() < 0.1:
            return value.encode()
        case str() if value:
            data = bytearray(value.encode())
            place = rng.randrange(len(data))
            data[place] ^= 1 << rng.randrange(7)
            return data.decode(errors="replace")
        case _:
            return rng.choice(["x", 1])


def delete(connection: Connection, rng: random.Random) -> None:
    table = rng.choice(sorted(COLUMNS))
    where, values = _where(table, _row(connection, rng, table))
    connection.execute(f"DELETE FROM {table} WHERE {where}", values)


def copy(connection: Connection, rng: random.Random) -> None:
    row = _row(connection, rng, "entry")
    last = connection.execute(
        "SELECT max(sequence) FROM entry WHERE root = ?", [row["root"]]
    ).fetchone()[0]
    changed = row | {"sequence": last + 1, "key": rng.choice([None, "a new key"]), "redeems": None}
    connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", list(changed.values()))


def exchange(connection: Connection, rng: random.Random) -> None:
    first, second = _row(connection, rng, "entry"), _row(connection, rng, "entry")
    if first == second:
        raise HarmlessError
    for one, other in ((first, second), (second, first)):
        where, values = _where("entry", one)
        connection.execute(
            f"UPDATE entry SET body = ?, hash = ? WHERE {where}",
            [other["body"], other["hash"], *values],
        )


def cut(connection: Connection, rng: random.Random) -> None:
    """The last entries of one chain, as if they had never been."""
    root = rng.choice(["world", "other"])
    last = connection.execute("SELECT max(sequence) FROM entry WHERE root = ?", [root]).fetchone()[
        0
    ]
    keep = last - rng.randint(1, last - 1)
    connection.execute("DELETE FROM entry WHERE root = ? AND sequence > ?", [root, keep])
    _rebuild(connection)


def rewrite(connection: Connection, rng: random.Random) -> None:
    """A granted cost made smaller, every hash after it computed anew, every balance made right."""
    rows = connection.execute("SELECT root, sequence, body FROM entry").fetchall()
    granted = [
        row for row in rows if '"kind":"granted"' in row[2] and '"epsilon":"0"' not in row[2]
    ]
    root, sequence, _ = rng.choice(granted)
    previous = None
    for _, number, body in [row for row in rows if row[0] == root and row[1] >= sequence]:
        fields = json.loads(body)
        if previous is None:
            fields["cost"] = dict.fromkeys(fields["cost"], "0")
        else:
            fields["previous"] = previous
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        if text == body:
            raise HarmlessError
        previous = hashlib.sha256(text.encode()).hexdigest()
        values = [text, previous, root, number]
        connection.execute(
            "UPDATE entry SET body = ?, hash = ? WHERE root = ? AND sequence = ?", values
        )
    _rebuild(connection)


def _rebuild(connection: Connection) -> None:
    """Balances and scopes as the entries that are left give them."""
    from dpcompose.ledger.entry import Record
    from dpcompose.ledger.tables import balance_row
    from dpcompose.ledger.verification import Replay

    connection.execute("DELETE FROM balance")
    for (root,) in connection.execute("SELECT DISTINCT root FROM entry").fetchall():
        replay = Replay(root)
        chosen = "SELECT sequence, scope, key, redeems, body, hash FROM entry WHERE root = ? ORDER BY sequence"
        for row in connection.execute(chosen, [root]).fetchall():
            try:
                replay.follow(Record(*row))
            except Exception:
                break
        for node in replay.balances.values():
            spent = balance_row(node)
            values = [spent[3], spent[4], spent[0], spent[1], spent[2]]
            connection.execute(
                "INSERT INTO balance (root, path, spent, taken, closed) VALUES (?, ?, ?, ?, ?)",
                values,
            )
    connection.execute("DELETE FROM scope WHERE path NOT IN (SELECT path FROM balance)")


def alter_schema(connection: Connection, rng: random.Random) -> None:
    statement = rng.choice(
        [
            "DROP INDEX key_is_used_once",
            "DROP INDEX charge_is_redeemed_once",
            "CREATE TRIGGER quiet AFTER UPDATE ON balance BEGIN UPDATE balance SET spent = OLD.spent; END",
            "CREATE TRIGGER gone AFTER INSERT ON entry BEGIN DELETE FROM entry WHERE sequence = NEW.sequence; END",
            "CREATE TABLE more (x)",
            "CREATE VIEW seen AS SELECT * FROM entry",
        ]
    )
    connection.execute(statement)


ROWS: dict[str, Callable[[Connection, random.Random], None]] = {
    "a value": flip_value,
    "a row deleted": delete,
    "an entry copied": copy,
    "entries exchanged": exchange,
    "the end cut off": cut,
    "history written anew": rewrite,
    "schema": alter_schema,
}


def dump(path: Path) -> object:
    """Every value of the file; None if it cannot be read."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            schema = connection.execute(
                "SELECT type, name, tbl_name, sql FROM sqlite_master"
            ).fetchall()
            tables = [
                connection.execute(f"SELECT * FROM {table}").fetchall() for table in sorted(COLUMNS)
            ]
            sound = connection.execute("PRAGMA integrity_check").fetchall()
            return schema, tables, sound
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def campaign(
    *, tries: int, seed: int = 5, verify: Callable[[Path, Anchor], None] | None = None
) -> str:
    """Tamper so many times; HistoryError at the first that is not found."""
    rng, found, harmless = random.Random(seed), Counter[str](), 0
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        sound, older, target = (
            Path(temporary) / name for name in ("sound.db", "older.db", "target.db")
        )
        anchor = _make(sound, older)
        truth = dump(sound)
        (verify or _verify)(sound, anchor)
        while sum(found.values()) < tries:
            way = rng.choice(
                [*ROWS, "a value", "bits of the file", "bits of the file", "an older copy"]
            )
            shutil.copy(sound, target)
            try:
                _tamper(way, target, older, rng)
            except (HarmlessError, sqlite3.IntegrityError):
                continue
            if dump(target) == truth:
                harmless += 1
                continue
            try:
                (verify or _verify)(target, anchor)
            except LedgerError:
                found[way] += 1
            else:
                if dump(target) != truth:
                    raise HistoryError(f"not found: {way} (try {sum(found.values())})")
                harmless += (
                    1  # opening took the last step of the schema again, whose record was gone
                )
            for path in Path(temporary).glob("target.db*"):
                path.unlink()
    ways = ", ".join(f"{way} {count}" for way, count in found.most_common())
    seconds = time.perf_counter() - began
    return f"{sum(found.values())} of {tries} found in {seconds:.0f} s ({ways}); {harmless} changed no value"


def _make(sound: Path, older: Path) -> Anchor:
    """A ledger with some history, an older copy of it, and the anchor."""
    with Ledger.open(sound) as ledger:
        prepare(ledger, 400)
        for number in range(40):
            answer(ledger, ask("early", number))
    shutil.copy(sound, older)
    with Ledger.open(sound) as ledger:
        for number in range(40):
            answer(ledger, ask("late", number))
        ledger.close_scope("other/lab", actor="keeper", key="closes the lab")
        for path, renew in (
            ("renewed", "year"),
            ("renewed/daily", "day"),
            ("renewed/by hours", "PT7H"),
        ):
            ledger.scope(path.replace(" ", "-"), caps={"epsilon": 1}, renew=renew, actor="keeper")
        for number in range(6):
            ledger.charge("renewed/daily", cost={"epsilon": 0.1}, actor="client", key=str(number))
        return ledger.anchor()


def _tamper(way: str, target: Path, older: Path, rng: random.Random) -> None:
    if way == "an older copy":
        shutil.copy(older, target)
    elif way == "bits of the file":
        data = bytearray(target.read_bytes())
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        target.write_bytes(data)
    else:
        with closing(sqlite3.connect(target)) as connection, connection:
            ROWS[way](connection, rng)


def _verify(path: Path, anchor: Anchor) -> None:
    with Ledger.open(path, create=False) as ledger:
        ledger.verify(anchor)


def _hashes_only(path: Path, anchor: Anchor) -> None:
    """Verify as a ledger would that trusts its balances: the control."""
    from dpcompose.errors import TamperedError

    with closing(sqlite3.connect(path)) as connection:
        try:
            for body, digest in connection.execute("SELECT body, hash FROM entry"):
                if hashlib.sha256(body.encode()).hexdigest() != digest:
                    raise TamperedError(["hash"])
        except (sqlite3.Error, AttributeError, UnicodeDecodeError):
            raise TamperedError(["damaged"]) from None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tries", type=int, default=10_000)
    asked = parser.parse_args()
    try:
        campaign(tries=200, verify=_hashes_only)
        raise SystemExit("the control passed: the campaign finds nothing")
    except HistoryError as caught:
        print(f"control (hashes only): caught: {caught}", flush=True)
    print(campaign(tries=asked.tries), flush=True)


if __name__ == "__main__":
    main()
