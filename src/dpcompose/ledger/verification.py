"""Verifying a ledger: every hash, every decision from the first entry on, every balance, and a kept anchor."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Self

from dpcompose.errors import DomainError, DPComposeError, TamperedError
from dpcompose.files import each_once
from dpcompose.ledger.amount import Amounts, encode, units_of
from dpcompose.ledger.entry import VERSION, Entry, Facts, Head, Record, Request, Statement, is_time
from dpcompose.ledger.evidence import Checkpoint, State, TiledTree, key_path
from dpcompose.ledger.merkle import (
    WIDTH,
    Frontier,
    complete_ranges,
    leaf_hash,
    tile_texts,
)
from dpcompose.ledger.policies import usage
from dpcompose.ledger.requests import Charge, Closing, Opening, chain_of
from dpcompose.ledger.scope import AccountNode, Kind, charged, root_of
from dpcompose.ledger.tables import LedgerTables
from dpcompose.pictured import Card

_OWN = {"actor", "kind", "previous", "scope", "sequence", "time", "version"}
_NAMES = {
    Entry.GRANTED: [_OWN | {"cost", "description", "key"}],
    Entry.REDEEMED: [_OWN | {"redeems"}, _OWN | {"redeems", "attempt"}],
}
"""The names in entries of kinds that are not decided again byte by byte."""


class DisagreementError(Exception):
    """A record that does not follow from those before it."""


@dataclass(frozen=True)
class Base:
    """The signed end of the entries that a verification does not read again.

    Args:
        snapshot: The log.
        checkpoint: What was signed.
        state: The balances and facts at its end, whose digest was signed with it.
    """

    snapshot: LedgerTables
    checkpoint: Checkpoint
    state: State

    @cached_property
    def tree(self) -> TiledTree:
        """The tree of hashes, as its tiles have it."""
        return TiledTree(self.snapshot, self.checkpoint.root)

    def entry(self, sequence: int) -> Entry:
        """An entry under the checkpoint.

        Raises:
            DisagreementError: The stored one is not what was signed.
        """
        found = self.tree.proven(sequence, self.checkpoint)
        if found is None:
            what = f"rests on entry {sequence}, which is not the one that was signed"
            raise DisagreementError(what)
        return Entry.of(found[0])

    def frontier(self, heads: Mapping[int, Head], signed: Mapping[int, set[bytes]]) -> Frontier:
        """The tree of the signed entries, which have these heads and roots.

        Raises:
            DisagreementError: Or other ones.
        """
        size = self.checkpoint.size
        for number, roots in signed.items():
            same = number > size or roots == {*self.tree.hashes([(0, number)])}
            _demand(same, f"comes after {number} that are not those of the checkpoint")
        for number, head in heads.items():
            same = number > size or self.entry(number).hash == head.hash
            _demand(same, f"comes after entry {number}, which is not the one that the anchor has")
        return Frontier(size, self.tree.hashes(complete_ranges(size)))

    def require_unredeemed(self, path: str, actor: str, sequence: int, redemption: int) -> None:
        """Raise DisagreementError unless an entry redeems a signed charge of its actor, and no other does."""
        charge, own = self.entry(sequence), self.snapshot.redemption(self.state.root, sequence)
        is_charge = (charge.kind, charge.scope, charge.actor) == (Entry.GRANTED, path, actor)
        _demand(is_charge, "redeems what is no charge of its actor")
        _demand(own is not None and own.sequence == redemption, "redeems what was redeemed before")


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
        base: The entries that are not followed, if it begins after some.
    """

    root: str
    balances: dict[str, AccountNode] = field(default_factory=dict[str, AccountNode])
    closed: dict[str, int] = field(default_factory=dict[str, int])
    last: Head = field(default_factory=Head)
    form: int = 1
    last_time: str = ""
    stated: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    base: Base | None = None
    _keys: set[str] = field(default_factory=set[str])
    _charged: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _unredeemed: array[int] = field(default_factory=lambda: array("q", [0]))

    @classmethod
    def after(cls, base: Base) -> Self:
        """The chain after the entries under a checkpoint.

        Raises:
            DisagreementError: The log, its tiles or the state are not what was signed.
        """
        root, size = base.checkpoint.root, base.checkpoint.size
        own = (base.state.root, base.state.size, base.state.digest)
        _demand(own == (root, size, base.checkpoint.state), "has another state than was signed")
        _demand(base.snapshot.head(root).sequence >= size, f"is missing, and {size} were signed")
        last = base.entry(size)
        stated: dict[str, dict[str, str]] = {}
        for kind, name, text in base.state.facts:
            stated.setdefault(kind, {})[name] = text
        head, form = Head(size, last.hash), last.fields["version"]
        skipped = array("q", bytes(8 * (size + 1)))
        key = key_path(root, base.checkpoint.signer)
        node = base.state.node(key)
        closed = {key: size} if node is not None and node.closed else {}
        return cls(root, {}, closed, head, form, last.time, stated, base, _unredeemed=skipped)

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

    def follow_on(
        self, snapshot: LedgerTables, most: int, heed: Callable[[], object] = bool
    ) -> bool:
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
        return self.last == end and not list(self.differences(snapshot))

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
            if self.base is not None:
                first = self.base.snapshot.keyed(self.root, record.key)
                _demand(first == record.entry, "uses a key again")
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
            self._state(usage(self, path, fields["actor"], cost, described, time=fields["time"]))
        self._unredeemed.append(
            self._charged.setdefault((path, fields["actor"]), len(self._charged) + 1)
        )

    def _redeemed(self, path: str, actor: str, sequence: int) -> None:
        _demand(0 < sequence < len(self._unredeemed), "redeems what is not there")
        if self.base is not None and sequence <= self.base.state.size:
            self.base.require_unredeemed(path, actor, sequence, self.last.sequence + 1)
            self._unredeemed.append(0)
            return
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
        node = self.balances.get(path)
        return self.base.state.node(path) if node is None and self.base is not None else node

    def differences(self, snapshot: LedgerTables) -> Iterator[str]:
        """Where the stored scopes and balances of the tree are not those that the entries give."""
        if self.base is None:
            nodes = snapshot.nodes_between(self.root, f"{self.root}0")
            own = (node for node in nodes if root_of(node.scope.path) == self.root)
            yield from differences(self.balances, own)
            return
        before, now = self.base.state, State.of(snapshot, self.root)
        if before.scopes.keys() - now.scopes.keys():
            yield f"{self.root}: scopes that the checkpoint has are missing"
        # What was neither changed nor read by an entry since is the same text.
        lines = before.scopes.items() ^ now.scopes.items()
        paths = {*self.balances, *(path for path, _ in lines)}
        expected = {path: node for path in paths if (node := self.node(path)) is not None}
        yield from differences(expected, (n for p in paths if (n := now.node(p)) is not None))

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
class Anchor(Card):
    """The heads of all chains at one moment: the name and the last entry of each top-level scope, in order of names.

    Args:
        heads: By top-level scope.
        checkpoints: Roots that were signed, beside heads or in place of them.
        states: Of checkpoints: a verification begins there.
    """

    heads: tuple[tuple[str, Head], ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    states: tuple[State, ...] = ()

    @classmethod
    def of(cls, snapshot: LedgerTables) -> Anchor:
        """The anchor of this moment."""
        return cls(tuple((root, snapshot.head(root)) for root in snapshot.roots()))

    @property
    def roots(self) -> set[str]:
        """The top-level scopes that it is about."""
        return {root for root, _ in self.heads} | {each.root for each in self.checkpoints}

    def of_root(self, root: str) -> Anchor:
        """The part that is about one top-level scope."""
        heads = tuple((name, head) for name, head in self.heads if name == root)
        own = tuple(each for each in self.checkpoints if each.root == root)
        return Anchor(heads, own, tuple(each for each in self.states if each.root == root))

    def base(self, snapshot: LedgerTables) -> Base | None:
        """The last of the checkpoints with a state, of one tree; None if there is none."""
        signed = {each.state: each for each in self.checkpoints}
        own = [each for each in self.states if each.digest in signed]
        if not own:
            return None
        last = max(own, key=lambda each: each.size)
        return Base(snapshot, signed[last.digest], last)

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
        since: The entries of each tree that were not read again, because a checkpoint has the state after them.
    """

    entries: int
    scopes: int
    anchor: Anchor
    anchored: bool
    since: tuple[tuple[str, int], ...] = ()


def verify(
    snapshot: LedgerTables, *, anchor: Anchor | None, progress: Progress | None
) -> Verification:
    """Follow every entry; raise TamperedError with everything that disagrees."""
    try:
        return _verified(snapshot, anchor, progress)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # A value of another type where text or a number was written: only a change from outside puts it there.
        raise TamperedError(
            [f"a stored value cannot be read ({type(error).__name__}: {error})"]
        ) from error


def _verified(
    snapshot: LedgerTables, anchor: Anchor | None, progress: Progress | None
) -> Verification:
    wanted = Anchor() if anchor is None else anchor
    damage = list(snapshot.damage(pages=not wanted.states))
    signed = {each.state for each in wanted.checkpoints} - {""}
    damage += [
        f"{each.root}: none of the checkpoints signed the state after {each.size} entries"
        for each in wanted.states
        if each.digest not in signed
    ]
    replays, wrong = followed(snapshot, wanted, progress)
    bases = {root: each.base for root, each in replays.items() if each.base is not None}
    balances = {path: node for own in replays.values() for path, node in own.balances.items()}
    problems = damage + wrong
    if not problems:
        if bases:
            for replay in replays.values():
                problems += replay.differences(snapshot)
        else:
            problems += differences(balances, snapshot.nodes())
        facts = {
            (root, kind, *each)
            for root, replay in replays.items()
            for kind, named in replay.stated.items()
            for each in named.items()
        }
        if set(snapshot.every_fact()) != facts:
            problems.append("the facts that are stored are not those that the entries state")
        problems += [
            f"{root}: the tiles of hashes are not those of its entries"
            for root in replays.keys() - bases.keys()
            if snapshot.has_facts()
            and replays[root].last.sequence >= WIDTH
            and not tiles_agree(snapshot, root)
        ]
    if problems:
        raise TamperedError(problems)
    since = tuple((root, base.state.size) for root, base in bases.items())
    heads = tuple((root, replay.last) for root, replay in replays.items())
    entries = sum(head.sequence for _, head in heads) - sum(size for _, size in since)
    scopes = {*balances, *(each for base in bases.values() for each in base.state.scopes)}
    return Verification(entries, len(scopes), Anchor(heads), anchor is not None, since)


def tiles_agree(snapshot: LedgerTables, root: str) -> bool:
    """Whether the tiles of a tree are those of its entries."""
    hashes = {0: [leaf_hash(each.body) for each in snapshot.records(root, after=0, limit=None)]}
    stored = {(level, number): texts for level, number, *texts in snapshot.tiles(root)}
    count = len(stored)
    for level in range(9):
        for number in range(len(hashes[level]) // WIDTH):
            tile = tile_texts(hashes[level][number * WIDTH : (number + 1) * WIDTH])
            if stored.get((level, number)) != [*tile]:
                return False
            hashes.setdefault(level + 1, []).append(bytes.fromhex(tile[1]))
            count -= 1
        hashes.setdefault(level + 1, [])
    return not count


def followed(
    snapshot: LedgerTables, anchor: Anchor, progress: Progress | None
) -> tuple[dict[str, Replay], list[str]]:
    """Every chain, followed up to the first thing that is wrong, and what is wrong with it or with the anchor, in words.

    Balances, and the store itself, are not looked at.
    """
    replays, problems, roots = dict[str, Replay](), list[str](), snapshot.roots()
    total, done = sum(snapshot.head(root).sequence for root in roots), 0
    for root in roots:
        own = anchor.of_root(root)
        replays[root], wrong = _followed(snapshot, root, own, progress, done, total)
        problems += wrong
        done += replays[root].last.sequence
    missing = anchor.roots - {*roots}
    problems += [f"{root}: gone, though the anchor has it" for root in sorted(missing)]
    return replays, problems


def _followed(
    snapshot: LedgerTables,
    root: str,
    wanted: Anchor,
    progress: Progress | None,
    done: int,
    total: int,
) -> tuple[Replay, list[str]]:
    """The chain of one top-level scope, and what is wrong with it, up to the first thing."""
    replay, tree, base = Replay(root), Frontier(), wanted.base(snapshot)
    heads = {head.sequence: head for _, head in wanted.heads}
    signed = {
        size: {c.root_hash for c in wanted.checkpoints if c.size == size}
        for size in {each.size for each in wanted.checkpoints}
    }
    if base is not None:
        try:
            replay, tree = Replay.after(base), base.frontier(heads, signed)
        except DisagreementError as disagreement:
            return replay, [f"{root}: entry {base.state.size} {disagreement}"]
    for record in snapshot.records(root, after=replay.last.sequence, limit=None):
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
            if tree.size in signed and signed[tree.size] != {tree.root}:
                return replay, [
                    f"{root}: the first {tree.size} entries are not those of the checkpoint"
                ]
    last = max((*heads, *signed), default=0)
    if replay.last.sequence < last:
        return replay, [f"{root}: ends at entry {replay.last.sequence}, the anchor has {last}"]
    if base is not None and base.tree.hashes([(0, tree.size)]) != [tree.root]:
        return replay, [f"{root}: the tiles of hashes are not those of its entries"]
    return replay, [problem for each in wanted.checkpoints for problem in _revoked(each, replay)]


def _revoked(checkpoint: Checkpoint, replay: Replay) -> list[str]:
    closed = replay.closed.get(key_path(checkpoint.root, checkpoint.signer), checkpoint.size + 1)
    if closed > checkpoint.size:
        return []
    key = f"the key {checkpoint.signer.text}"
    return [
        f"{checkpoint.root}: {key} signed {checkpoint.size} entries, and entry {closed} revokes it"
    ]
