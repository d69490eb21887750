"""Simulated power loss: a real client is recorded at the system call, and its disk is replayed with every kind of loss.

python -m campaigns.ledger.power [--states 100000]

What was synced stays; of the rest any part survives, in any order, torn at sectors; names live and die apart from
contents. Every state is opened with SQLite, and every charge acknowledged before the loss must be there. The recording
has the making of the file, a client killed between its write and its sync, the next client that finds what the
first one left, checkpoints, and the closing. Controls, which must lose: `synchronous` NORMAL and OFF, the journal mode
DELETE, and an opening that does not sync what it finds.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from campaigns.ledger.disk import Disk
from campaigns.ledger.history import HistoryError
from campaigns.ledger.trace import NAME, Event, record
from dpcompose.errors import LedgerError
from dpcompose.ledger import Ledger

CONTROLS = ("normal", "off", "delete", "unsettled")
PART = 10_000
LIVELY = 37
"""The client is killed at this fdatasync: after the file was made, in the middle of a charge."""


@dataclass(frozen=True)
class Recording:
    """A client's life, twice: killed, and to its end."""

    events: list[Event]

    @classmethod
    def of(cls, charges: int, *, weakness: str = "shipped") -> Recording:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "disk"
            folder.mkdir()
            sync = LIVELY if weakness in ("shipped", "unsettled", "delete") else None
            first = record(
                folder, weakness, 0, charges if sync else charges // 2, kill_at_sync=sync
            )
            done = sum(event.kind == "acknowledge" for event in first)
            return cls([*first, *record(folder, weakness, done, charges)])


def campaign(recording: Recording, *, states: int, seed: int = 3) -> str:
    """Lose power `states` times, spread over the recording; HistoryError if something acknowledged was lost."""
    rng, disk = random.Random(seed), Disk()
    acknowledged: dict[str, str] = {}
    done = verified = 0
    began = time.perf_counter()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
        for place, event in enumerate(recording.events):
            if event.kind == "acknowledge":
                key, _, digest = event.data.decode().rpartition(" ")
                acknowledged[key] = digest
            else:
                disk.follow(event)
            while done * len(recording.events) < states * (place + 1):
                folder = Path(temporary) / "state"
                folder.mkdir()
                for name, content in disk.after_power_loss(rng).items():
                    (folder / name).write_bytes(content)
                _require(folder / NAME, acknowledged, place)
                if done % 20 == 0:
                    _require_usable(folder / NAME, acknowledged, place)
                    verified += 1
                shutil.rmtree(folder)
                done += 1
    return (
        f"{done} states after {len(recording.events)} events in {time.perf_counter() - began:.0f} s: all of "
        f"{len(acknowledged)} acknowledged charges found; {verified} of them opened, charged and verified by the ledger"
    )


def _require(path: Path, acknowledged: dict[str, str], place: int) -> None:
    """Everything acknowledged is there, says SQLite itself."""
    found: dict[str, str] = {}
    if path.exists():
        try:
            with closing(sqlite3.connect(path)) as connection:
                found = dict(
                    connection.execute("SELECT key, hash FROM entry WHERE key IS NOT NULL")
                )
        except sqlite3.Error as error:
            if acknowledged:
                raise HistoryError(
                    f"event {place}: SQLite cannot read the state: {error}"
                ) from None
    lost = [key for key, digest in acknowledged.items() if found.get(key) != digest]
    if lost:
        raise HistoryError(f"event {place}: {lost[0]} was acknowledged and is lost")


def _require_usable(path: Path, acknowledged: dict[str, str], place: int) -> None:
    """The ledger opens the state, goes on, and agrees with itself."""
    try:
        with Ledger.open(path) as ledger:
            ledger.scope("world", caps={"epsilon": 10**6}, actor="keeper")
            ledger.scope("world/acme", actor="keeper")
            ledger.charge(
                "world/acme", cost={"epsilon": "0.1"}, actor="client", key="after the loss"
            )
            ledger.verify()
            spent = ledger.balance("world").spent["epsilon"].fraction
    except LedgerError as error:
        raise HistoryError(f"event {place}: the ledger cannot go on: {error}") from error
    if not spent * 10 >= len(acknowledged) + 1:
        raise HistoryError(
            f"event {place}: {spent} spent, {len(acknowledged)} charges acknowledged"
        )


def require_controls_to_lose(*, states: int) -> None:
    """Every weakened setting must lose something."""
    for weakness in CONTROLS:
        try:
            campaign(Recording.of(60, weakness=weakness), states=states)
        except HistoryError as caught:
            print(f"control {weakness}: caught: {caught}", flush=True)
        else:
            raise SystemExit(f"the control {weakness} lost nothing: the campaign finds nothing")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--states", type=int, default=100_000)
    asked = parser.parse_args()
    require_controls_to_lose(states=4000)
    done = 0
    while done < asked.states:  # a new recording and other losses each time
        part = min(PART, asked.states - done)
        done += part
        print("short:", campaign(Recording.of(60), states=part * 4 // 5, seed=done), flush=True)
        print(
            "long, with checkpoints:",
            campaign(Recording.of(700), states=part - part * 4 // 5, seed=done),
            flush=True,
        )
        print(f"{done} states", flush=True)


if __name__ == "__main__":
    main()
