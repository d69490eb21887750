"""Verifying a ledger: every hash, every decision from the first entry on, every balance, and a kept anchor."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from dpcompose.errors import DomainError, DPComposeError, TamperedError
from dpcompose.files import each_once
from dpcompose.ledger.amount import Amounts, units_of
from dpcompose.ledger.checkpoint import WIDTH, Checkpoint, Frontier, Tile, key_path, leaf_hash
from dpcompose.ledger.entry import VERSION, Entry, Head, Record, is_time
from dpcompose.ledger.requests import Charge, Closing, Opening, chain_of, usage_of
from dpcompose.ledger.rules import Facts, Request, Statement
from dpcompose.ledger.scope import AccountNode, Kind, charged, root_of
from dpcompose.ledger.store import Snapshot
from dpcompose.ledger.text import encode
from dpcompose.pictured import Card

_OWN = {"actor", "kind", "previous", "scope", "sequence", "time", "version"}
_NAMES = {
    Entry.GRANTED: [_OWN | {"cost", "description", "key"}],
    Entry.REDEEMED: [_OWN | {"redeems"}, _OWN | {"redeems", "attempt"}],
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
        closed: The number of the entry that closed a scope.
        last: The last entry followed.
        form: Its version: no entry has an earlier one than those before it.
        last_time: Its recorded time.
        stated: The facts as they must be, by kind and name.
    """

    root: str
    balances: dict[str, AccountNode] = field(default_factory=dict[str, AccountNode])
    closed: dict[str, int] = field(default_factory=dict[str, int])
    last: Head = field(default_factory=Head)
    form: int = 1
    last_time: str = ""
    stated: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _keys: set[str] = field(default_factory=set[str])
    _charged: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _unredeemed: array[int] = field(default_factory=lambda: array("q", [0]))

    def follow(self, record: Record) -> None:
        """Check one more record against all before it, and make its change.

        Raises:
            DisagreementError: Saying what is wrong.
        """
        try:
            self._follow(record, json.loads(record.body))
        except (
            DPComposeError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            IndexError,
            RecursionError,
        ) as error:
            raise DisagreementError(
                f"cannot be followed ({type(error).__name__}: {error})"
            ) from None

    def follow_on(self, snapshot: Snapshot, most: int, heed: Callable[[], object] = bool) -> bool:
        """Follow at most so many more entries; whether all of them, and at the end the balances, agree.

        Args:
            snapshot: The store.
            most: Entries.
            heed: Called before each entry; an error of it ends the work.
        """
        end = snapshot.head(self.root)
        try:
            for record in snapshot.records(self.root, after=self.last.sequence, limit=most):
                heed()
                self.follow(record)
        except DisagreementError:
            return False
        if self.last.sequence < end.sequence:
            return True
        nodes = snapshot.nodes_between(self.root, f"{self.root}0")
        own = (node for node in nodes if root_of(node.scope.path) == self.root)
        return self.last == end and not list(differences(self.balances, own))

    def _follow(self, record: Record, fields: dict[str, Any]) -> None:
        _demand(record.sequence == self.last.sequence + 1, f"follows {self.last.sequence}")
        _demand(sha256(record.body.encode()).hexdigest() == record.hash, "does not have its hash")
        _demand(encode(fields) == record.body, "is not written as entries are")
        _demand(fields["previous"] == self.last.hash, "does not hold the hash of the one before")
        columns = (fields["sequence"], fields["scope"], fields.get("key"), fields.get("redeems"))
        stored = (record.sequence, record.scope, record.key, record.redeems)
        _demand(columns == stored, "is filed under another number, scope, key or charge")
        _demand(root_of(record.scope) == self.root, "belongs to another top-level scope")
        self._in_time(fields["version"], fields["time"])
        if record.key is not None:
            _demand(record.key not in self._keys, "uses a key again")
            self._keys.add(record.key)
        if fields["kind"] in _NAMES:
            _demand(fields.keys() in _NAMES[fields["kind"]], "is not what rules decide")
        if fields["kind"] == Entry.GRANTED:
            self._granted(record.scope, fields)
        elif fields["kind"] == Entry.REDEEMED:
            self._redeemed(record.scope, fields["actor"], fields["redeems"])
        else:
            self._decided(record.entry, fields)
        self.last = Head(record.sequence, record.hash)

    def _in_time(self, form: Any, time: Any) -> None:
        """Check that neither the time nor the version of the form is below that of the entry before."""
        _demand(type(form) is int and 1 <= form <= VERSION, "is of a form that is not known")
        _demand(form >= self.form, f"is of form {form}, and one before it of form {self.form}")
        if form > 1:
            _demand(is_time(time), "has no time")
            _demand(
                time >= self.last_time, f"runs back in time: {time} comes after {self.last_time}"
            )
        self.form, self.last_time = form, time if is_time(time) else ""

    def _granted(self, path: str, fields: Mapping[str, Any]) -> None:
        chain = chain_of(self, path, time=fields["time"])
        cost = {name: units_of(text) for name, text in fields["cost"].items()}
        _demand(chain[-1].scope.kind is Kind.FILTER, "charges a scope that takes no charges")
        chain[-1].require_currencies(cost)
        for node in charged(chain, cost, fields["description"].get("mechanism")):
            self.balances[node.scope.path] = node
        if self.stated:
            described = encode(fields["description"])
            self._state(usage_of(self, path, fields["actor"], cost, described, fields["time"]))
        self._unredeemed.append(
            self._charged.setdefault((path, fields["actor"]), len(self._charged) + 1)
        )

    def _redeemed(self, path: str, actor: str, sequence: int) -> None:
        _demand(0 < sequence < len(self._unredeemed), "redeems what is not there")
        charge = self._charged.get((path, actor))
        _demand(
            self._unredeemed[sequence] == charge,
            "redeems what is no charge of its actor, or redeemed before",
        )
        self._unredeemed[sequence] = 0
        self._unredeemed.append(0)

    def _decided(self, entry: Entry, fields: Mapping[str, Any]) -> None:
        """Decide an opening, a refusal or a closing again by the same rules: the entry must be equal to the byte."""
        decision = _request(fields).decide(self, time=fields["time"])
        expected = decision.entry and decision.entry.in_form(fields["version"])
        _demand(expected == entry, "is not what the rules decide")
        for node in decision.nodes:
            self.balances[node.scope.path] = node
        self._state(decision.facts)
        if entry.kind == Entry.CLOSED:
            self.closed[entry.scope] = entry.sequence
        self._unredeemed.append(0)

    def _state(self, facts: Facts) -> None:
        for (kind, name), text in facts.items():
            if text is None:
                self.stated.get(kind, {}).pop(name, None)
            else:
                self.stated.setdefault(kind, {})[name] = text

    def node(self, path: str) -> AccountNode | None:
        return self.balances.get(path)

    def fact(self, root: str, kind: str, name: str) -> str | None:
        return self.stated.get(kind, {}).get(name)

    def facts(self, root: str, kind: str) -> Mapping[str, str]:
        return self.stated.get(kind, {})

    def keyed(self, root: str, key: str) -> Entry | None:
        """None: `follow` checks that each key is used once."""
        return None

    def entry(self, root: str, sequence: int) -> Entry | None:
        return None

    def redemption(self, root: str, sequence: int) -> Entry | None:
        return None

    def head(self, root: str) -> Head:
        return self.last

    def time(self, root: str) -> str:
        return self.last_time


def _demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise DisagreementError(complaint)


def _request(fields: Mapping[str, Any]) -> Request:
    """The request that an entry records."""
    path, actor, key = fields["scope"], fields["actor"], fields.get("key")
    if fields["kind"] == Entry.CLOSED:
        return Closing(path, actor, fields["key"])
    if fields["kind"] == Entry.STATED:
        return Statement.read(path, actor, key, fields["statement"])
    cost, description = Amounts.read(fields.get("cost", {})), encode(fields["description"])
    if "definition" not in fields:
        return Charge(path, cost, description, actor, fields["key"])
    definition = fields["definition"]
    caps = None if definition["caps"] is None else Amounts.read(definition["caps"])
    slots = definition.get("slots")
    common: dict[str, Any] = {"cost": cost, "description": description, "actor": actor, "key": key}
    return Opening(path, Kind(definition["kind"]), caps=caps, slots=slots, **common)


def differences(
    expected: Mapping[str, AccountNode], stored: Iterator[AccountNode]
) -> Iterator[str]:
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


_FORMAT = "dpcompose ledger anchor 1"
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Anchor:
    """The heads of all chains at one moment: the name and the last entry of each top-level scope, in order of names.

    Args:
        heads: By top-level scope.
        checkpoints: Roots that were signed, beside heads or in place of them.
    """

    heads: tuple[tuple[str, Head], ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot) -> Anchor:
        """The anchor of this moment."""
        return cls(tuple((root, snapshot.head(root)) for root in snapshot.roots()))

    @property
    def roots(self) -> set[str]:
        """The top-level scopes that it is about."""
        return {root for root, _ in self.heads} | {each.root for each in self.checkpoints}

    def of_root(self, root: str) -> Anchor:
        """The part that is about one top-level scope."""
        heads = tuple((name, head) for name, head in self.heads if name == root)
        return Anchor(heads, tuple(each for each in self.checkpoints if each.root == root))

    @classmethod
    def read(cls, text: str) -> Anchor:
        """The anchor that `to_json` wrote.

        Raises:
            DomainError: The text is no anchor.
        """
        try:
            document = json.loads(text, object_pairs_hook=each_once)
            if document["format"] != _FORMAT:
                raise ValueError(document["format"])
            heads = {root: _head(**head) for root, head in document["heads"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise DomainError(
                "anchor", text, "the JSON text of an anchor, as `Anchor.to_json` writes it"
            ) from None
        return cls(tuple(sorted(heads.items())))

    def to_json(self) -> str:
        """The anchor as one line of JSON."""
        heads = {root: {"sequence": head.sequence, "hash": head.hash} for root, head in self.heads}
        return encode({"format": _FORMAT, "heads": heads})


def _head(sequence: object, hash: object) -> Head:
    """The head of a chain that has at least one entry: another would be found in every ledger, or in none."""
    if not (
        type(sequence) is int and sequence > 0 and isinstance(hash, str) and _HASH.fullmatch(hash)
    ):
        raise ValueError(sequence, hash)
    return Head(sequence, hash)


Progress = Callable[[str, int, int], None]
"""Told what is being done, after how many of how many steps."""

STEP = 10_000


@dataclass(frozen=True)
class Verification(Card):
    """A ledger that agrees with itself.

    Args:
        entries: How many entries were followed.
        scopes: How many scopes have the balance that their entries give.
        anchor: The heads that were reached; keep them elsewhere.
        anchored: Whether an earlier anchor was given, and found again.
    """

    entries: int
    scopes: int
    anchor: Anchor
    anchored: bool


def verify(snapshot: Snapshot, *, anchor: Anchor | None, progress: Progress | None) -> Verification:
    """Follow every entry; raise TamperedError with everything that disagrees."""
    try:
        return _verified(snapshot, anchor, progress)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A value of another type where text or a number was written: only a change from outside puts it there.
        raise TamperedError(
            [f"a stored value cannot be read ({type(error).__name__}: {error})"]
        ) from error


def _verified(snapshot: Snapshot, anchor: Anchor | None, progress: Progress | None) -> Verification:
    damage = list(snapshot.damage())
    found = followed(snapshot, Anchor() if anchor is None else anchor, progress)
    problems = damage + found.problems
    if not problems:
        problems += differences(found.balances, snapshot.nodes())
        if set(snapshot.every_fact()) != found.facts:
            problems.append("the facts that are stored are not those that the entries state")
        problems += [
            f"{root}: the tiles of hashes are not those of its entries"
            for root in snapshot.roots()
            if snapshot.has_facts()
            and snapshot.count(root) >= WIDTH
            and not tiles_agree(snapshot, root)
        ]
    if problems:
        raise TamperedError(problems)
    heads = Anchor(tuple(found.heads))
    return Verification(found.entries, len(found.balances), heads, anchor is not None)


def tiles_agree(snapshot: Snapshot, root: str) -> bool:
    """Whether the tiles of a tree are those of its entries."""
    hashes = {0: [leaf_hash(each.body) for each in snapshot.records(root, after=0, limit=None)]}
    stored = {(level, number): texts for level, number, *texts in snapshot.tiles(root)}
    count = len(stored)
    for level in range(9):
        for number in range(len(hashes[level]) // WIDTH):
            tile = Tile.of(hashes[level][number * WIDTH : (number + 1) * WIDTH])
            if stored.get((level, number)) != [*tile.texts]:
                return False
            hashes.setdefault(level + 1, []).append(tile.top)
            count -= 1
        hashes.setdefault(level + 1, [])
    return not count


@dataclass
class Followed:
    """The chains of a ledger, each followed up to the first thing that is wrong.

    Args:
        balances: The nodes as they must be.
        heads: The entries that were reached.
        problems: In words; none if every chain is sound.
        entries: How many were followed.
        facts: As they must be.
    """

    balances: dict[str, AccountNode] = field(default_factory=dict[str, AccountNode])
    heads: list[tuple[str, Head]] = field(default_factory=list[tuple[str, Head]])
    problems: list[str] = field(default_factory=list[str])
    entries: int = 0
    facts: set[tuple[str, str, str, str]] = field(default_factory=set[tuple[str, str, str, str]])


def followed(snapshot: Snapshot, anchor: Anchor, progress: Progress | None) -> Followed:
    """Follow every chain and compare it with an anchor; balances, and the store itself, are not looked at."""
    found, total = Followed(), sum(snapshot.count(root) for root in snapshot.roots())
    for root in snapshot.roots():
        replay, problems = _followed(
            snapshot, root, anchor.of_root(root), progress, found.entries, total
        )
        found.problems += problems
        found.balances |= replay.balances
        found.heads.append((root, replay.last))
        own = replay.stated.items()
        found.facts |= {(root, kind, *each) for kind, named in own for each in named.items()}
        found.entries += replay.last.sequence
    missing = anchor.roots - {root for root, _ in found.heads}
    found.problems += [f"{root}: gone, though the anchor has it" for root in sorted(missing)]
    return found


def _followed(
    snapshot: Snapshot, root: str, wanted: Anchor, progress: Progress | None, done: int, total: int
) -> tuple[Replay, list[str]]:
    """The chain of one top-level scope, and what is wrong with it, up to the first thing."""
    replay, tree = Replay(root), Frontier()
    heads = {head.sequence: head for _, head in wanted.heads}
    signed = {
        size: {c.root_hash for c in wanted.checkpoints if c.size == size}
        for size in {each.size for each in wanted.checkpoints}
    }
    for record in snapshot.records(root, after=0, limit=None):
        if progress is not None and replay.last.sequence % STEP == 0:
            progress(f"verifying {root}", done + replay.last.sequence, total)
        try:
            replay.follow(record)
        except DisagreementError as disagreement:
            return replay, [f"{root}: entry {record.sequence} {disagreement}"]
        if record.hash != heads.get(record.sequence, replay.last).hash:
            return replay, [f"{root}: entry {record.sequence} is not the one that the anchor has"]
        if signed:
            tree.add(leaf_hash(record.body))
            if signed.get(tree.size, {tree.root}) != {tree.root}:
                return replay, [
                    f"{root}: the first {tree.size} entries are not those of the checkpoint"
                ]
    last = max((*heads, *signed), default=0)
    if replay.last.sequence < last:
        return replay, [f"{root}: ends at entry {replay.last.sequence}, the anchor has {last}"]
    return replay, [problem for each in wanted.checkpoints for problem in _revoked(each, replay)]


def _revoked(checkpoint: Checkpoint, replay: Replay) -> list[str]:
    closed = replay.closed.get(key_path(checkpoint.root, checkpoint.signer), checkpoint.size + 1)
    if closed > checkpoint.size:
        return []
    key = f"the key {checkpoint.signer.text}"
    return [
        f"{checkpoint.root}: {key} signed {checkpoint.size} entries, and entry {closed} revokes it"
    ]
