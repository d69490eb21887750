"""A large ledger: what a look at a little of it costs, and a charge.

    python -m benchmarks.ledger_scale [--scopes 100000] [--entries 1000000] [--folder DIRECTORY]

fills a new SQLite ledger (two minutes at full size where a sync costs little, such as in /dev/shm), then prints
milliseconds of processor: balances of one scope, its log, the exposure of a person in ten scopes, a plain charge, one
on a schedule and one of a budget that renews, looks through a ledger that is opened for reading, pages of balances and
of entries, a proof, a checkpoint with its state, what verifying 10^4 entries after it takes, and opening the file again.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from dpcompose import Laplace
from dpcompose.account import Account, exposure, open_scope, open_scopes
from dpcompose.adaptive import PureFilter
from dpcompose.ledger import Anchor, Charge, Ledger
from dpcompose.ledger.evidence import Checkpoint, Evidence, SigningKey, State
from dpcompose.serve.queue import page

DEPARTMENTS, THREADS = 100, 32


def shared(work: Callable[[int], object], count: int) -> None:
    """The work for 0 to `count`, by threads that share commits."""

    def part(place: int) -> None:
        for number in range(count * place // THREADS, count * (place + 1) // THREADS):
            work(number)

    threads = [threading.Thread(target=part, args=(place,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fill(ledger: Ledger, scopes: int, entries: int) -> None:
    """A tree of three levels, charged evenly."""
    budget = PureFilter(1e6)
    open_scope(ledger, "world", filter=budget, actor="keeper")
    departments = [f"world/d{number}" for number in range(DEPARTMENTS)]
    open_scopes(ledger, departments, filter=budget, actor="keeper")
    paths = [f"world/d{number % DEPARTMENTS}/s{number}" for number in range(scopes)]
    start = time.monotonic()
    open_scopes(ledger, paths, filter=budget, actor="keeper")
    print(f"{scopes} scopes opened in {time.monotonic() - start:.0f} s", flush=True)
    cost = Account(ledger, scope=paths[0]).price(Laplace(1000.0))

    def charge(number: int) -> None:
        ledger.charge(paths[number * 7919 % scopes], cost=cost, actor="Ada", key=str(number))

    shared(charge, entries)


def timed(name: str, question: Callable[[int], object], times: int) -> None:
    question(-1)
    start = time.process_time()
    for number in range(times):
        question(number)
    print(f"{name:32} {(time.process_time() - start) / times * 1e3:9.3f} ms", flush=True)


def pages(ledger: Ledger, path: str) -> None:
    """Pages and proofs, and a verification of 10^4 entries after a checkpoint."""
    key = SigningKey.generate("example/privacy")

    def signed(_: int) -> Anchor:
        with ledger.moment() as moment:
            state = State.of(moment.snapshot, "world")
            note = Checkpoint.sign(moment.snapshot, "world", key, state=state.digest).note
        return Anchor((), Checkpoint.read_all(note, [key.verifier]), (state,))

    def proof(number: int) -> str:
        with ledger.moment() as moment:
            return Evidence.prove_inclusion(moment.snapshot, 1 + 97 * (number + 1), checkpoint)

    def newest(_: int) -> object:
        with ledger.moment() as moment:
            return page(moment, "world", None, lambda entry: True)

    def listed(_: int) -> object:
        with ledger.moment() as moment:
            return moment.some_balances("world", limit=1000)

    anchor = signed(0)
    (checkpoint,) = anchor.checkpoints
    timed("proof that an entry is there", proof, 50)
    timed("page of the newest entries", newest, 10)
    timed("page of 1,000 balances", listed, 10)
    timed("checkpoint with its state", signed, 1)
    charges = [
        Charge.of(path, {"epsilon": "0.001"}, None, actor="Ada", key=f"v{number}")
        for number in range(10_000)
    ]
    for first in range(0, len(charges), 100):
        ledger.charge_together(charges[first : first + 100])
    timed("verify 10^4 after a checkpoint", lambda _: ledger.verify(anchor), 1)

    def opened(_: int) -> None:
        assert ledger.store.source is not None
        with Ledger.open(Path(ledger.store.source)) as again:
            again.balance(path)

    timed("open the file again", opened, 3)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scopes", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=arguments.folder) as folder,
        Ledger.open(Path(folder) / "l.db") as ledger,
    ):
        start = time.monotonic()
        fill(ledger, arguments.scopes, arguments.entries)
        print(f"filled in {time.monotonic() - start:.0f} s")
        ten = [f"world/d{number}/s{number}" for number in range(10)]
        open_scope(
            ledger,
            "world/scheduled",
            filter=PureFilter(1e5),
            schedule=[(Laplace(1000.0), 10**6)],
            actor="keeper",
        )
        open_scope(ledger, "world/plain", filter=PureFilter(1e5), actor="keeper")
        open_scope(ledger, "world/renewed", filter=PureFilter(1e5), renew="day", actor="keeper")
        names = ("plain", "scheduled", "renewed")
        plain, scheduled, renewed = (Account(ledger, scope=f"world/{name}") for name in names)
        noise = Laplace(1000.0)
        timed("balances of one scope", lambda _: ledger.balances(ten[0]), 50)
        timed("balances of a department", lambda _: ledger.balances("world/d1"), 5)
        timed("log of one scope", lambda _: list(ledger.entries(ten[0])), 20)
        timed("exposure of ten scopes", lambda _: exposure(ledger, paths=ten, delta=1e-6), 5)
        timed(
            "plain charge", lambda number: plain.charge(noise, actor="Ada", key=f"p{number}"), 500
        )
        timed(
            "scheduled charge",
            lambda number: scheduled.charge(noise, actor="Ada", key=f"s{number}"),
            500,
        )
        timed(
            "charge that renews",
            lambda number: renewed.charge(noise, actor="Ada", key=f"r{number}"),
            500,
        )
        timed("the most that could be asked", lambda _: ledger.available(ten[0]), 50)
        pages(ledger, ten[0])
        with Ledger.open(Path(folder) / "l.db", read_only=True) as reader:
            timed("balances, opened for reading", lambda _: reader.balances(ten[0]), 50)
            timed(
                "exposure, opened for reading", lambda _: exposure(reader, paths=ten, delta=1e-6), 5
            )


if __name__ == "__main__":
    main()
