"""A disk that loses power: what was synced is there; of the rest any part, in any order, torn at sectors.

A name is durable once its folder was synced, a content once its file was; neither makes the other durable.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise

from campaigns.ledger.trace import Event

SECTOR = 512


@dataclass(eq=False)
class File:
    """The synced contents, and the writes since."""

    durable: bytes = b""
    pending: list[Event] = field(default_factory=list)

    def sync(self) -> None:
        content = bytearray(self.durable)
        for event in self.pending:
            _apply(content, event)
        self.durable, self.pending = bytes(content), []

    def after_power_loss(self, rng: random.Random) -> bytes:
        """One legal content."""
        if not self.pending:
            return self.durable
        content = bytearray(self.durable)
        mode = rng.randrange(5)
        if mode == 0:
            return self.durable
        kept = self.pending if mode == 1 else self.pending[: rng.randrange(len(self.pending) + 1)]
        if mode >= 3:
            share = rng.choice((0.1, 0.5, 0.9))
            kept = [event for event in self.pending if rng.random() < share]
        for event in kept:
            _apply(content, event) if mode != 4 else _torn(content, event, rng)
        return bytes(content)


def _apply(content: bytearray, event: Event) -> None:
    if event.kind == "truncate":
        content[event.offset :] = bytes(max(event.offset - len(content), 0))
        return
    end = event.offset + len(event.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    content[event.offset : end] = event.data


def _torn(content: bytearray, event: Event, rng: random.Random) -> None:
    """Some sectors of a write."""
    if event.kind == "truncate":
        _apply(content, event)
        return
    start, end = event.offset, event.offset + len(event.data)
    edges = [start, *range(start - start % SECTOR + SECTOR, end, SECTOR), end]
    for low, high in pairwise(edges):
        if rng.random() < 0.7:
            _apply(content, Event("write", event.name, low, event.data[low - start : high - start]))


@dataclass
class Disk:
    """One folder."""

    names: dict[str, File] = field(default_factory=dict)
    durable_names: dict[str, File] = field(default_factory=dict)
    changes: list[tuple[str, File | None]] = field(default_factory=list)

    def follow(self, event: Event) -> None:
        """Do what the process did."""
        match event.kind:
            case "create":
                if event.name not in self.names:
                    self.names[event.name] = File()
                    self.changes.append((event.name, self.names[event.name]))
            case "unlink":
                del self.names[event.name]
                self.changes.append((event.name, None))
            case "rename":
                self.names[event.data.decode()] = file = self.names.pop(event.name)
                self.changes += [(event.data.decode(), file), (event.name, None)]
            case "sync" if event.name == "":
                self.durable_names, self.changes = dict(self.names), []
            case "sync":
                self.names[event.name].sync()
            case "write" | "truncate":
                self.names[event.name].pending.append(event)
            case _:
                raise AssertionError(event.kind)

    def after_power_loss(self, rng: random.Random) -> dict[str, bytes]:
        """One legal state: names and contents."""
        names = dict(self.durable_names)
        kept = (
            self.changes
            if rng.random() < 0.4
            else [change for change in self.changes if rng.random() < 0.5]
        )
        for name, file in kept:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        return {name: file.after_power_loss(rng) for name, file in names.items()}
