"""The work that clients do in campaigns: a tree of scopes, and a stream of requests that can be resumed after a kill.

A stream's n-th request is a function of the stream and n, so a client that was killed asks the same thing again.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcompose.errors import AlreadyRedeemedError, OverdrawnError, UnsupportedError
from dpcompose.ledger import Ledger

Costs = dict[str, str]
PLANNED, MECHANISMS = "other/planned", ("Gaussian(30.0)", "Gaussian(60.0)")
"""A scope with a schedule in which two mechanisms take turns: whoever asks for the wrong one gets nothing."""

UNSCHEDULED = "unscheduled"
AMOUNTS = ("0.1", "0.25", "1e-30", "0.003", "3e-40", "1", "0")


@dataclass(frozen=True)
class Place:
    """A scope to open: its path and how."""

    path: str
    kind: str = "filter"
    caps: Costs | None = None
    slots: int | None = None
    cost: Costs | None = None
    description: dict[str, Any] | None = None

    def given(self) -> dict[str, Any]:
        given = {"kind": self.kind, "caps": self.caps, "slots": self.slots, "cost": self.cost}
        return given | {"description": self.description}


def tree(operations: int) -> tuple[Place, ...]:
    """Two top-level scopes with every kind below them, whose caps are reached after most of so many operations."""
    most = f"{max(operations // 8, 1)}"
    small = f"{max(operations // 80, 1)}"
    both = {"epsilon": most, "delta": "1e-6"}
    return (
        Place("world", caps=both),
        Place("world/acme", caps={"epsilon": most}),
        Place("world/acme/sales", caps={"epsilon": small}),
        Place("world/acme/staff", caps={"epsilon": small}),
        Place("world/regions", "partition"),
        Place("world/regions/north", caps={"epsilon": small}),
        Place("world/regions/south"),
        Place("world/slots", "slots", {"rho": small}, 2, {"epsilon": "0.5", "delta": "0"}),
        Place("world/slots/a"),
        Place("world/slots/b"),
        Place("other", caps={"epsilon": most}),
        Place("other/lab", caps={"epsilon": small}),
        Place(
            PLANNED, description={"budget": {"schedule": [[text, 1] for text in MECHANISMS] * 500}}
        ),
    )


CHARGED = {
    "world/acme/sales": ("delta", "epsilon"),
    "world/acme/staff": ("delta", "epsilon"),
    "world/regions/north": ("delta", "epsilon"),
    "world/regions/south": ("delta", "epsilon"),
    "world/slots/a": ("rho",),
    "world/slots/b": ("rho",),
    "other/lab": ("epsilon",),
    "other": ("epsilon",),
    PLANNED: ("epsilon",),
}


def prepare(ledger: Ledger, operations: int) -> None:
    """Open the tree."""
    for place in tree(operations):
        ledger.scope(place.path, actor="keeper", **place.given())


@dataclass(frozen=True)
class Ask:
    """One charge of a stream."""

    path: str
    cost: Costs
    key: str
    redeems: bool
    mechanism: str | None = None


def ask(stream: str, number: int) -> Ask:
    """The n-th request of a stream."""
    rng = random.Random(f"{stream}/{number}")
    path = rng.choice(sorted(CHARGED))
    cost = {name: "1e-30" if name == "delta" else rng.choice(AMOUNTS) for name in CHARGED[path]}
    redeems, mechanism = rng.random() < 0.1, rng.choice(MECHANISMS) if path == PLANNED else None
    return Ask(path, cost, f"{stream}-{number}", redeems, mechanism)


class Diary:
    """The requests acknowledged to one stream: one line for each request, written at once; it outlives its writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def note(self, line: list[Any]) -> None:
        os.write(self._handle, (json.dumps(line) + "\n").encode())

    def lines(self) -> Iterator[list[Any]]:
        """Return the lines that were written; a last line that a kill cut off counts for nothing."""
        for text in self.path.read_text().splitlines(keepends=True):
            if text.endswith("\n"):
                yield json.loads(text)

    def done(self) -> int:
        """How many requests were answered; a torn last line is cut off."""
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            os.truncate(self.path, len(whole))
        return whole.count(b"\n")


def run_stream(ledger: Ledger, stream: str, diary: Diary, stop: int) -> None:
    """Ask from where the diary ends, up to the request `stop`; every so often ask the one before again."""
    for number in range(diary.done(), stop):
        asked = ask(stream, number)
        diary.note(answer(ledger, asked))
        if number % 16 == 15:
            answer(ledger, ask(stream, number - 1))


def answer(ledger: Ledger, asked: Ask) -> list[Any]:
    """The ledger's acknowledgement: key, outcome, sequence, hash, redeemed."""
    said = {} if asked.mechanism is None else {"mechanism": asked.mechanism}
    try:
        receipt = ledger.charge(
            asked.path, cost=asked.cost, description=said, actor="client", key=asked.key
        )
    except OverdrawnError:
        return [asked.key, "refused", 0, "", False]
    except UnsupportedError:
        return [asked.key, UNSCHEDULED, 0, "", False]
    if asked.redeems:
        with suppress(AlreadyRedeemedError):
            ledger.redeem(receipt, actor="client")
    return [asked.key, "granted", receipt.sequence, receipt.hash, asked.redeems]
