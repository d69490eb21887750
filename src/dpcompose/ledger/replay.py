"""Everything decided once more, from the first entry on, without believing a stored balance."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from dpcompose.errors import DPComposeError
from dpcompose.ledger.amount import Amounts, units_of
from dpcompose.ledger.decision import Request, chain_of
from dpcompose.ledger.entry import CLOSED, GRANTED, REDEEMED, VERSION, Entry, Head
from dpcompose.ledger.requests import Charge, Closing, Opening
from dpcompose.ledger.scope import AccountNode, Kind, charged, require_currencies, root_of
from dpcompose.ledger.store import Record
from dpcompose.ledger.text import encode

REMEMBERED = 10_000
_OWN = {"actor", "kind", "previous", "scope", "sequence", "time", "version"}
_NAMES = {
    GRANTED: [_OWN | {"cost", "description", "key"}],
    REDEEMED: [_OWN | {"redeems"}, _OWN | {"redeems", "attempt"}],
}
"""The names in entries of kinds that are not decided again byte by byte."""


class DisagreementError(Exception):
    """A record that does not follow from those before it."""


@dataclass
class Replay:
    """One chain, followed from its first entry.

    Args:
        root: The top-level scope.
        balances: The nodes as they must be after the entries followed so far.
        last: The last entry followed.
    """

    root: str
    balances: dict[str, AccountNode] = field(default_factory=dict[str, AccountNode])
    last: Head = field(default_factory=Head)
    _keys: set[str] = field(default_factory=set[str])
    _charged: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _units: dict[str, int] = field(default_factory=dict[str, int])
    _unredeemed: array[int] = field(default_factory=lambda: array("q", [0]))

    def follow(self, record: Record) -> None:
        """Check one more record against all before it, and make its change.

        Raises:
            DisagreementError: Saying what is wrong.
        """
        try:
            self._follow(record, json.loads(record.body))
        except (DPComposeError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise DisagreementError(f"cannot be followed ({type(error).__name__}: {error})") from None

    def _follow(self, record: Record, fields: dict[str, Any]) -> None:
        _demand(record.sequence == self.last.sequence + 1, f"follows {self.last.sequence}")
        _demand(sha256(record.body.encode()).hexdigest() == record.hash, "does not have its hash")
        _demand(encode(fields) == record.body, "is not written as entries are")
        _demand(fields["previous"] == self.last.hash, "does not hold the hash of the one before")
        columns = (fields["sequence"], fields["scope"], fields.get("key"), fields.get("redeems"))
        stored = (record.sequence, record.scope, record.key, record.redeems)
        _demand(columns == stored, "is filed under another number, scope, key or charge")
        _demand(root_of(record.scope) == self.root, "belongs to another top-level scope")
        if record.key is not None:
            _demand(record.key not in self._keys, "uses a key again")
            self._keys.add(record.key)
        if fields["kind"] in _NAMES:
            _demand(
                fields.keys() in _NAMES[fields["kind"]] and fields["version"] == VERSION, "is not what rules decide"
            )
        if fields["kind"] == GRANTED:
            self._granted(record.scope, fields)
        elif fields["kind"] == REDEEMED:
            self._redeemed(record.scope, fields["actor"], fields["redeems"])
        else:
            self._decided(record.entry, fields)
        self.last = Head(record.sequence, record.hash)

    def _granted(self, path: str, fields: Mapping[str, Any]) -> None:
        chain = chain_of(self, path)
        cost = {name: self._read(text) for name, text in fields["cost"].items()}
        _demand(chain[-1].scope.kind is Kind.FILTER, "charges a scope that takes no charges")
        require_currencies(chain[-1], cost)
        for node in charged(chain, cost, fields["description"].get("mechanism")):
            self.balances[node.scope.path] = node
        self._unredeemed.append(self._charged.setdefault((path, fields["actor"]), len(self._charged) + 1))

    def _read(self, text: str) -> int:
        """`units_of`, remembered: the same amounts come again and again."""
        units = self._units.get(text)
        if units is None:
            units = units_of(text)
            if len(self._units) < REMEMBERED:
                self._units[text] = units
        return units

    def _redeemed(self, path: str, actor: str, sequence: int) -> None:
        _demand(0 < sequence < len(self._unredeemed), "redeems what is not there")
        charge = self._charged.get((path, actor))
        _demand(self._unredeemed[sequence] == charge, "redeems what is no charge of its actor, or redeemed before")
        self._unredeemed[sequence] = 0
        self._unredeemed.append(0)

    def _decided(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        """Openings, refusals and closings, asked of the same rules again: the answer must be the same to the byte."""
        decision = _request(fields).decide(self, time=fields["time"])
        _demand(decision.entry == entry, "is not what the rules decide")
        for node in decision.nodes:
            self.balances[node.scope.path] = node
        self._unredeemed.append(0)

    def node(self, path: str) -> AccountNode | None:
        return self.balances.get(path)

    def keyed(self, root: str, key: str) -> Entry | None:
        """Nothing: that keys are used once is checked as they come."""
        return None

    def entry(self, root: str, sequence: int) -> Entry | None:
        return None

    def redemption(self, root: str, sequence: int) -> Entry | None:
        return None

    def head(self, root: str) -> Head:
        return self.last


def _demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise DisagreementError(complaint)


def _request(fields: Mapping[str, Any]) -> Request:
    """The request that an entry records."""
    path, actor, key = fields["scope"], fields["actor"], fields.get("key")
    if fields["kind"] == CLOSED:
        return Closing(path, actor, fields["key"])
    cost, description = Amounts.read(fields.get("cost", {})), encode(fields["description"])
    if "definition" not in fields:
        return Charge(path, cost, description, actor, fields["key"])
    definition = fields["definition"]
    caps = None if definition["caps"] is None else Amounts.read(definition["caps"])
    slots = definition.get("slots")
    common: dict[str, Any] = {"cost": cost, "description": description, "actor": actor, "key": key}
    return Opening(path, Kind(definition["kind"]), caps=caps, slots=slots, **common)


def differences(expected: Mapping[str, AccountNode], stored: Iterator[AccountNode]) -> Iterator[str]:
    """Where stored scopes and balances are not those that the entries give."""
    seen: set[str] = set()
    for node in stored:
        path = node.scope.path
        seen.add(path)
        if path not in expected:
            yield f"scope {path} was never opened"
        elif node.scope != expected[path].scope:
            yield f"scope {path} is not as it was opened"
        elif node != expected[path]:
            yield f"the balance of {path} is not what its entries give"
    yield from (f"scope {path} is missing" for path in sorted(expected.keys() - seen))
