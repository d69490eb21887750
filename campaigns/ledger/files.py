"""Files of a ledger deleted, flipped or replaced at random moments: nothing acknowledged is lost without an error.

python -m campaigns.ledger.files [--times 1000] [--way "log deleted"]

Half of the times clients have the ledger open, and go on until they are told; half of the times they were killed.
Then the ledger is opened and verified. What was acknowledged must be in it, with its receipt and its redemption, and
the balances must be those of its entries, unless opening or verifying says that something is wrong. The control is a
store that looks neither at its head record nor at the names of its files: it must lose something in silence.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from campaigns.ledger.history import HistoryError, replay, require_acknowledged
from campaigns.ledger.processes import fork, kill
from campaigns.ledger.weak import opened
from campaigns.ledger.work import Diary, prepare, run_stream
from dpcompose.errors import LedgerError
from dpcompose.ledger import sqlite_connection

NAME = "ledger.db"
PART = 250


def delete_log(folder: Path, _: random.Random) -> None:
    """As somebody does who takes it for a leftover."""
    (folder / f"{NAME}-wal").unlink(missing_ok=True)


def delete_beside(folder: Path, _: random.Random) -> None:
    """As somebody does who takes all of them for leftovers."""
    for path in folder.glob(f"{NAME}-*"):
        path.unlink()


def flip_log(folder: Path, rng: random.Random) -> None:
    """One bit."""
    _flip(folder / f"{NAME}-wal", rng)


def replace_log(folder: Path, rng: random.Random) -> None:
    """By an older copy, by nothing, or by noise."""
    older = folder / "older-wal"
    if not older.exists() or rng.random() < 0.2:
        older.write_bytes(rng.choice([b"", rng.randbytes(rng.choice([32, 5000]))]))
    _put(older, folder / f"{NAME}-wal", rng)


def replace_file(folder: Path, rng: random.Random) -> None:
    """By an older copy of the file alone, or by an older backup."""
    _put(folder / rng.choice(["older", "backup"]), folder / NAME, rng)


def _flip(path: Path, rng: random.Random) -> None:
    with suppress(FileNotFoundError), path.open("r+b") as handle:
        size = handle.seek(0, os.SEEK_END)
        if size:
            place = rng.randrange(size)
            handle.seek(place)
            (byte,) = handle.read(1)
            handle.seek(place)
            handle.write(bytes([byte ^ 1 << rng.randrange(8)]))


def _put(source: Path, target: Path, rng: random.Random) -> None:
    """In place of the other file, or written over it."""
    if rng.random() < 0.5:
        source.replace(target)
    else:
        shutil.copyfile(source, target)


WAYS: dict[str, Callable[[Path, random.Random], None]] = {
    "log deleted": delete_log,
    "log flipped": flip_log,
    "log replaced": replace_log,
    "file replaced": replace_file,
    "all beside it deleted": delete_beside,
}


def campaign(way: str, *, times: int, seed: int = 4, weakness: str = "shipped") -> str:
    """Let it happen so many times; HistoryError at the first loss that nobody tells."""
    rng, told = random.Random(f"{way}/{seed}"), Counter[str]()
    began = time.perf_counter()
    memory = Path("/dev/shm")
    for number in range(times):
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
            try:
                told[_once(Path(temporary), WAYS[way], rng, weakness, killed=number % 2 == 0)] += 1
            except HistoryError as error:
                raise HistoryError(f"{way}, time {number}: {error}") from error
    found = ", ".join(f"{what} {count}" for what, count in told.most_common())
    return (
        f"{way} {times} times in {time.perf_counter() - began:.0f} s, no loss in silence: {found}"
    )


def _once(
    folder: Path,
    happen: Callable[[Path, random.Random], None],
    rng: random.Random,
    weakness: str,
    *,
    killed: bool,
) -> str:
    """One life of a ledger; how it ended."""
    url, streams = folder / NAME, ["one", "two"][: rng.choice([1, 2])]
    pages = rng.choice([1000, 1000, 40, 12])  # in the log, after which SQLite begins it anew
    with opened(str(url), weakness) as ledger:
        prepare(ledger, 4000)
    children = [fork(lambda s=s: _charge(url, folder, s, weakness, pages)) for s in streams]
    try:
        moments = sorted(rng.randrange(120) for _ in range(2))
        _wait(folder, streams, moments[0])
        _copy(folder)
        _wait(folder, streams, moments[1])
        if killed:
            for child in children:
                kill(child)
            children = []
        happen(folder, rng)
        time.sleep(0 if killed else rng.random() * 0.05)
        (folder / "stop").touch()
        for child in (
            [] if rng.random() < 0.5 else children
        ):  # half of them close the ledger, if they can
            os.waitpid(child, 0)
            children = [each for each in children if each != child]
    finally:
        for child in children:
            kill(child)
    return _judged(url, [_lines(folder / stream) for stream in streams], weakness)


def _charge(url: Path, folder: Path, stream: str, weakness: str, pages: int) -> None:
    """One client, until it is told that something is wrong."""
    sqlite_connection.SETTINGS = {**sqlite_connection.SETTINGS, "wal_autocheckpoint": pages}
    stop = folder / "stop"
    with suppress(LedgerError), opened(str(url), weakness) as ledger:
        diary = Diary(folder / stream)
        while not stop.exists():
            run_stream(ledger, stream, diary, diary.done() + 1)


def _wait(folder: Path, streams: list[str], lines: int) -> None:
    """Until so many requests were acknowledged, or nobody goes on."""
    deadline = time.monotonic() + 5
    while (
        sum(len(_lines(folder / stream)) for stream in streams) < lines
        and time.monotonic() < deadline
    ):
        time.sleep(0.001)


def _copy(folder: Path) -> None:
    """The copies that are put back later: the file as it is, its log, and a whole backup."""
    shutil.copyfile(folder / NAME, folder / "older")
    with suppress(FileNotFoundError):
        shutil.copyfile(folder / f"{NAME}-wal", folder / "older-wal")
    with (
        closing(sqlite3.connect(folder / NAME)) as source,
        closing(sqlite3.connect(folder / "backup")) as target,
    ):
        source.backup(target)


def _lines(diary: Path) -> list[str]:
    """Return the charges that were acknowledged; a last line that a kill cut off counts for nothing."""
    text = diary.read_text() if diary.exists() else ""
    return text.split("\n")[:-1]


def _judged(url: Path, diaries: list[list[str]], weakness: str) -> str:
    try:
        with opened(str(url), weakness) as ledger:
            try:
                ledger.verify()
            except LedgerError:
                return "told by verify"
    except LedgerError:
        return "told at opening"
    found = replay(str(url))
    acknowledged = sum(require_acknowledged(found, map(json.loads, lines)) for lines in diaries)
    return "nothing lost" if acknowledged else "nothing acknowledged"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--way", choices=sorted(WAYS), default=None)
    asked = parser.parse_args()
    for way in [asked.way] if asked.way else WAYS:
        try:
            campaign(way, times=1000, weakness="unrecorded")
            raise SystemExit(f"the control passed: the campaign finds nothing ({way})")
        except HistoryError as caught:
            print(f"control (no head record): caught: {caught}", flush=True)
        for done in range(0, asked.times, PART):
            print(campaign(way, times=min(PART, asked.times - done), seed=done), flush=True)


if __name__ == "__main__":
    main()
