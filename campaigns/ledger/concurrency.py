"""Many client processes, many operations, with kills; the history must be one that the exact model can have.

python -m campaigns.ledger.concurrency [--postgres] [--clients 64] [--threads 8] [--operations 1000000] [--kills 500]

The control is a store that checks balances before it takes the lock: its history must not replay.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from campaigns.ledger.history import HistoryError, replay, require_acknowledged
from campaigns.ledger.processes import in_threads, run_with_kills
from campaigns.ledger.server import server
from campaigns.ledger.weak import opened
from campaigns.ledger.work import Diary, prepare, run_stream


def campaign(
    url: str,
    folder: Path,
    *,
    clients: int,
    threads: int,
    operations: int,
    kills: int,
    weakness: str = "shipped",
) -> str:
    """Run it, and say what was found; HistoryError if a promise was broken."""
    with opened(url) as ledger:
        prepare(ledger, operations)
    each = -(-operations // (clients * threads))
    streams = [f"{client}.{thread}" for client in range(clients) for thread in range(threads)]

    def client(number: int) -> Callable[[], None]:
        mine = streams[number * threads : (number + 1) * threads]

        def work() -> None:
            with opened(url, weakness) as ledger:
                in_threads(
                    [lambda s=s: run_stream(ledger, s, Diary(folder / s), each) for s in mine]
                )

        return work

    began = time.perf_counter()
    works = [client(number) for number in range(clients)]
    hit = run_with_kills(works, kills=kills, pause=0.1, rng=random.Random(6))
    seconds = time.perf_counter() - began
    found = replay(url)
    acknowledged = sum(
        require_acknowledged(found, Diary(folder / stream).lines()) for stream in streams
    )
    if acknowledged != each * len(streams):
        raise HistoryError(f"{acknowledged} of {each * len(streams)} requests were answered")
    with opened(url) as ledger:
        ledger.verify()
    return (
        f"{clients} processes of {threads} threads, {acknowledged} requests acknowledged in {seconds:.0f} s, "
        f"{hit} kills; {found.entries} entries ({found.granted} granted, {found.refused} refused, "
        f"{found.redeemed} redeemed) replay exactly; no cap exceeded, no acknowledgement lost, no key twice"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--postgres",
        action="store_true",
        help="on a PostgreSQL server of its own instead of SQLite",
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--operations", type=int, default=None, help="10^6; with --postgres 10^5")
    parser.add_argument("--kills", type=int, default=500)
    asked = parser.parse_args()
    operations = asked.operations or (10**5 if asked.postgres else 10**6)
    sizes = {
        "clients": asked.clients,
        "threads": asked.threads,
        "operations": operations,
        "kills": asked.kills,
    }
    with tempfile.TemporaryDirectory() as folder:
        if asked.postgres:
            with server() as running:
                print(campaign(running.create("campaign"), Path(folder), **sizes), flush=True)
            return
        control = Path(folder) / "control"
        control.mkdir()
        try:
            campaign(
                str(control / "ledger.db"),
                control,
                clients=8,
                threads=1,
                operations=800,
                kills=0,
                weakness="checking",
            )
            raise SystemExit("the control passed: the campaign finds nothing")
        except HistoryError as caught:
            print(f"control (balances read before the lock): caught: {caught}", flush=True)
        print(campaign(str(Path(folder) / "ledger.db"), Path(folder), **sizes), flush=True)


if __name__ == "__main__":
    main()
