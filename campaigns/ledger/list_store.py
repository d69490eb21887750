"""A store in lists and dictionaries, without SQL: the model of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from threading import RLock
from typing import Any

from dpcompose.errors import DPComposeError
from dpcompose.ledger.amount import encode
from dpcompose.ledger.entry import Entry, Head, Outcome, Record, Request, now
from dpcompose.ledger.merkle import WIDTH, leaf_hash, root_hash, tile_texts
from dpcompose.ledger.scope import AccountNode, is_at_or_below, root_of
from dpcompose.ledger.store import Store
from dpcompose.ledger.tables import balance_row, scope_row


@dataclass
class ListStore(Store):
    """Entries in lists, balances in a dictionary, one lock around both."""

    _nodes: dict[str, AccountNode] = field(default_factory=dict[str, AccountNode])
    _entries: defaultdict[str, list[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _heads: dict[str, Head] = field(default_factory=dict[str, Head])
    _times: dict[str, str] = field(default_factory=dict[str, str])
    _keys: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _redemptions: dict[tuple[str, int], Entry] = field(default_factory=dict[tuple[str, int], Entry])
    _facts: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    _lock: RLock = field(default_factory=RLock)

    def __post_init__(self) -> None:
        super().__init__("lists", None)

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        with self.snapshot():
            return [self._outcome(request) for request in requests]

    def _outcome(self, request: Request) -> Outcome:
        root = root_of(request.path)
        time = now(self.time(root))
        try:
            decision = request.decide(self, time=time)
        except DPComposeError as error:
            return error
        if decision.entry is not None:
            self._append(request, decision.entry)
            self._times[root] = time
        for (kind, name), text in decision.facts.items():
            self._facts.pop((root, kind, name), None)
            if text is not None:
                self._facts[root, kind, name] = text
        self._nodes.update({node.scope.path: node for node in decision.nodes})
        return decision

    def _append(self, request: Request, entry: Entry) -> None:
        root = root_of(request.path)
        self._entries[root].append((entry.body, entry.hash))
        sequence = len(self._entries[root])
        self._heads[root] = Head(sequence, entry.hash)
        if request.key is not None:
            self._keys[root, request.key] = sequence
        if request.redeems is not None:
            self._redemptions[root, request.redeems] = entry

    @contextmanager
    def snapshot(self) -> Generator[Any]:
        with self._lock:
            self._require_usable()
            yield self

    def node(self, path: str) -> AccountNode | None:
        return self._nodes.get(path)

    def keyed(self, root: str, key: str) -> Entry | None:
        sequence = self._keys.get((root, key))
        return None if sequence is None else self.entry(root, sequence)

    def entry(self, root: str, sequence: int) -> Entry | None:
        entries = self._entries.get(root, [])
        return Entry(*entries[sequence - 1]) if 1 <= sequence <= len(entries) else None

    def redemption(self, root: str, sequence: int) -> Entry | None:
        return self._redemptions.get((root, sequence))

    def fact(self, root: str, kind: str, name: str) -> str | None:
        return self._facts.get((root, kind, name))

    def facts(self, root: str, kind: str) -> dict[str, str]:
        return {name: text for (*at, name), text in self._facts.items() if at == [root, kind]}

    def every_fact(self) -> Iterator[tuple[str, str, str, str]]:
        return iter([(*at, text) for at, text in self._facts.items()])

    def has_facts(self) -> bool:
        return True

    def tile(self, root: str, level: int, number: int) -> list[bytes] | None:
        hashes = self._level(root, level)[number * WIDTH : (number + 1) * WIDTH]
        return hashes if len(hashes) == WIDTH else None

    def tops(self, root: str, level: int, first: int, stop: int) -> list[bytes]:
        return self._level(root, level + 1)[first:stop]

    def tiles(self, root: str) -> Iterator[tuple[int, int, str, str]]:
        for level in range(4):
            for number in range(len(self._level(root, level + 1))):
                tile = self.tile(root, level, number)
                assert tile is not None
                yield level, number, *tile_texts(tile)

    def _level(self, root: str, level: int) -> list[bytes]:
        if not level:
            return [leaf_hash(body) for body, _ in self._entries.get(root, [])]
        below = self._level(root, level - 1)
        cuts = [below[at : at + WIDTH] for at in range(0, len(below), WIDTH)]
        return [root_hash(cut) for cut in cuts if len(cut) == WIDTH]

    def head(self, root: str) -> Head:
        return self._heads.get(root, Head())

    def time(self, root: str) -> str:
        return self._times.get(root, "")

    def roots(self) -> list[str]:
        return sorted(self._entries)

    def nodes(self) -> Iterator[AccountNode]:
        return iter([self._nodes[path] for path in sorted(self._nodes)])

    def nodes_between(
        self, start: str, stop: str, *, limit: int | None = None
    ) -> Iterator[AccountNode]:
        return islice((node for node in self.nodes() if start <= node.scope.path < stop), limit)

    def records_of(
        self, path: str, *, below: bool, after: int = 0, limit: int | None = None
    ) -> Iterator[Record]:
        records = self.records(root_of(path), after=after, limit=None)
        own = (
            each
            for each in records
            if each.scope == path or (below and is_at_or_below(each.scope, path))
        )
        return islice(own, limit)

    def records(self, root: str, *, after: int, limit: int | None) -> Iterator[Record]:
        entries = self._entries.get(root, [])
        stop = len(entries) if limit is None else min(len(entries), after + limit)
        return (_record(Entry(*each)) for each in islice(entries, after, stop))

    def state(self, root: str) -> Iterator[str]:
        own = [node for node in self.nodes() if node.scope.root == root]
        yield from sorted(encode([*scope_row(e.scope)[1:], *balance_row(e)[:3]]) for e in own)
        facts = ((kind, name, text) for (of, kind, name), text in self._facts.items() if of == root)
        yield from sorted(encode({"kind": k, "name": n, "value": v}) for k, n, v in facts)

    def damage(self, *, pages: bool = True) -> Iterator[str]:
        return iter(())


def _record(entry: Entry) -> Record:
    named = entry.sequence, entry.scope, entry.key, entry.redeems
    return Record(*named, entry.body, entry.hash)
