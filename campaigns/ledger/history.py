"""A finished history, read without the ledger's own code and replayed on the exact model."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from campaigns.ledger.model import DONE, Model, Outcome
from campaigns.ledger.work import UNSCHEDULED

ENTRIES = "SELECT root, sequence, key, redeems, body, hash FROM entry ORDER BY root, sequence"
BALANCES = "SELECT path, spent, taken FROM balance"
SCALE = 10**40


class HistoryError(Exception):
    """The history breaks a promise; the message says which."""


def rows(url: str, statement: str) -> Iterator[tuple[Any, ...]]:
    """Rows of a ledger's database, read with the bare driver."""
    if url.startswith("postgresql"):
        import psycopg

        with psycopg.connect(url) as connection:
            yield from connection.execute(statement.encode())
    else:
        connection = sqlite3.connect(url)
        yield from connection.execute(statement)
        connection.close()


def units(costs: dict[str, str] | None) -> dict[str, int]:
    """Exact integers of 1e-40."""
    return {name: int(Fraction(text) * SCALE) for name, text in (costs or {}).items()}


@dataclass
class Replayed:
    """The result of a replay."""

    entries: int = 0
    granted: int = 0
    refused: int = 0
    redeemed: int = 0
    model: Model = field(default_factory=Model)
    keys: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    redeemed_keys: set[str] = field(default_factory=set)


def replay(url: str) -> Replayed:
    """Replay every entry on the model; HistoryError at the first that is not what the model does."""
    found = Replayed()
    heads: dict[str, tuple[int, str]] = {}
    keys: dict[tuple[str, int], str] = {}
    for root, sequence, key, redeems, body, digest in rows(url, ENTRIES):
        last, previous = heads.get(root, (0, "0" * 64))
        fields = json.loads(body)
        _demand(sequence == last + 1 == fields["sequence"], f"{root}/{sequence}: a gap")
        _demand(
            hashlib.sha256(body.encode()).hexdigest() == digest, f"{root}/{sequence}: wrong hash"
        )
        _demand(fields["previous"] == previous, f"{root}/{sequence}: wrong previous hash")
        heads[root] = sequence, digest
        found.entries += 1
        if redeems is not None:
            charged = keys[root, redeems]
            _demand(found.model.redeem(root, charged) == DONE, f"{root}/{sequence}: redeemed twice")
            found.redeemed_keys.add(charged)
            found.redeemed += 1
            continue
        if key is not None:
            _demand(key not in found.keys, f"{root}/{sequence}: the key {key} is used twice")
            keys[root, sequence] = key
            found.keys[key] = fields["kind"], sequence, digest
        _follow(found, fields)
    _compare(found, url)
    return found


def _follow(found: Replayed, fields: dict[str, Any]) -> None:
    if fields["kind"] == "stated":  # it changes no balance
        return
    path, cost = fields["scope"], units(fields.get("cost"))
    if "definition" in fields:
        definition = fields["definition"]
        caps = None if definition["caps"] is None else units(definition["caps"])
        planned = fields["description"].get("budget", {}).get("schedule")
        schedule = (
            None if planned is None else [text for text, times in planned for _ in range(times)]
        )
        outcome = found.model.open(
            path,
            definition["kind"],
            caps,
            definition.get("slots"),
            cost,
            request=path,
            schedule=schedule,
        )
    else:
        said = fields["description"].get("mechanism")
        outcome = found.model.charge(
            path, cost, fields["key"], request=fields["key"], mechanism=said
        )
        found.granted += fields["kind"] == "granted"
        found.refused += fields["kind"] == "refused"
    expected = {"opened": "done", "granted": "done", "refused": "OverdrawnError"}[fields["kind"]]
    _demand(
        outcome.name == expected,
        f"{path}: entry {fields['sequence']} is {fields['kind']}, the model: {outcome}",
    )
    if "short" in fields:
        short = fields["short"]
        amounts = [int(Fraction(short[name]) * SCALE) for name in ("asked", "left")]
        said = Outcome("OverdrawnError", (short["scope"], short["currency"], *amounts))  # type: ignore[arg-type]
        _demand(
            outcome == said, f"{path}: entry {fields['sequence']} says {said}, the model: {outcome}"
        )


def _compare(found: Replayed, url: str) -> None:
    over = list(found.model.over())
    _demand(not over, f"above a cap: {over}")
    for path, spent, taken in rows(url, BALANCES):
        expected, place = found.model.spent(path), found.model.places[path]
        _demand(
            place.schedule is None or taken == place.rounds,
            f"{path}: {taken} rounds, the history has {place.rounds}",
        )
        for name, text in json.loads(spent).items():
            has, must = int(Fraction(text) * SCALE), expected.get(name, 0)
            _demand(
                has == must, f"{path}: the balance of {name} is {has}, the history gives {must}"
            )


def require_acknowledged(found: Replayed, lines: Iterable[list[Any]]) -> int:
    """Every acknowledged line is in the history; how many there were."""
    count = 0
    for key, outcome, sequence, digest, redeemed in lines:
        count += 1
        if outcome == UNSCHEDULED:
            continue  # nothing is written of it, and it may have been asked again
        _demand(key in found.keys, f"{key} was acknowledged and is lost")
        kind, place, hashed = found.keys[key]
        _demand(kind == outcome, f"{key} was acknowledged as {outcome} and is {kind}")
        _demand(
            outcome == "refused" or (place, hashed) == (sequence, digest),
            f"{key} has another receipt",
        )
        _demand(
            not redeemed or outcome == "refused" or key in found.redeemed_keys,
            f"{key}: its redemption is lost",
        )
    return count


def _demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise HistoryError(complaint)
