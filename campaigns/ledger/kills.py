"""kill -9, again and again: a client charges until it is killed, the next one goes on. Nothing acknowledged is lost.

python -m campaigns.ledger.kills [--cycles 10000]

The control is a store that acknowledges before it commits: it must lose something.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from campaigns.ledger.history import HistoryError, replay, require_acknowledged
from campaigns.ledger.processes import fork, in_threads, kill
from campaigns.ledger.weak import opened
from campaigns.ledger.work import UNSCHEDULED, Diary, prepare, run_stream

FOREVER = 10**9
PART = 1000
FOUND = "SELECT hash FROM entry WHERE key = ? AND root IN ('world', 'other')"


def campaign(folder: Path, *, cycles: int, weakness: str = "shipped", seed: int = 9) -> str:
    """Run it, and say what was found; HistoryError if something acknowledged was lost."""
    url, rng = str(folder / "ledger.db"), random.Random(seed)
    with opened(url) as ledger:
        prepare(ledger, cycles * 50)
    threads = 1 if weakness == "early" else 3
    diaries = [Diary(folder / f"stream-{number}") for number in range(threads)]
    checked = [0] * threads
    began = time.perf_counter()
    for cycle in range(cycles):
        child = fork(lambda: _charge(url, folder, threads, weakness))
        before = sum(diary.path.stat().st_size for diary in diaries)
        deadline = time.monotonic() + 10
        while (
            sum(diary.path.stat().st_size for diary in diaries) == before
            and time.monotonic() < deadline
        ):
            time.sleep(0.0005)
        time.sleep(rng.random() * 0.012)
        kill(child)
        if cycle % 4:
            continue  # the next client finds the log as the killed one left it; a look here would clean it up
        for number, diary in enumerate(diaries):
            checked[number] = _require_new_lines(url, diary, checked[number], cycle)
    seconds = time.perf_counter() - began
    found = replay(url)
    acknowledged = sum(require_acknowledged(found, diary.lines()) for diary in diaries)
    with opened(url) as ledger:
        ledger.verify()
    return (
        f"{cycles} kills in {seconds:.0f} s, {acknowledged} requests acknowledged: none lost; "
        f"{found.entries} entries replay exactly"
    )


def _charge(url: str, folder: Path, threads: int, weakness: str) -> None:
    with opened(url, weakness) as ledger:
        streams = [f"stream-{number}" for number in range(threads)]
        in_threads([lambda s=s: run_stream(ledger, s, Diary(folder / s), FOREVER) for s in streams])


def _require_new_lines(url: str, diary: Diary, offset: int, cycle: int) -> int:
    """Look up what was acknowledged since `offset`; the new offset."""
    with diary.path.open("rb") as handle, closing(sqlite3.connect(url)) as connection:
        handle.seek(offset)
        text = handle.read()
        whole = text[: text.rfind(b"\n") + 1]
        for line in whole.decode().splitlines():
            key, outcome, _, digest, _ = json.loads(line)
            if outcome == UNSCHEDULED:
                continue
            row = connection.execute(FOUND, (key,)).fetchone()
            if row is None or (outcome == "granted" and row[0] != digest):
                raise HistoryError(f"cycle {cycle}: {key} was acknowledged and is lost")
    return offset + len(whole)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cycles", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "control").mkdir()
        try:
            campaign(Path(folder) / "control", cycles=20, weakness="early")
            raise SystemExit("the control passed: the campaign finds nothing")
        except HistoryError as caught:
            print(f"control (acknowledged before the commit): caught: {caught}", flush=True)
        done = 0
        while done < asked.cycles:
            part = min(PART, asked.cycles - done)
            done += part
            place = Path(folder) / str(done)
            place.mkdir()
            print(campaign(place, cycles=part, seed=done), flush=True)
            print(f"{done} cycles", flush=True)


if __name__ == "__main__":
    main()
