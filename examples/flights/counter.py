"""An analyst asks the flights at a counter, over HTTP: she has a token, and no row of the table.

python -m examples.flights.counter [QUESTION ...]

The custodian's side is five lines of a catalog and three commands, which run here. The questions are the twelve of
examples.flights.questions, by the same statements and for the same prices.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from examples.flights.analysts import installed, shown
from examples.flights.questions import SPEND, frames, questions

SCOPE, EPSILON = "flights", 2
CATALOG = """
[flights]
epsilon = {epsilon}
tables.flights = {{ source = "flights.parquet", unit = "tailnum", max_rows_per_unit = 50 }}
public.planes = "planes.parquet"
after = 2.0
limit = 60.0
"""
"""What the custodian writes: an answer leaves two seconds after its charge, or after a minute if it takes longer."""


def dpcompose(*words: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command of dpcompose in a folder."""
    command = [sys.executable, "-m", "dpcompose", *words]
    pipe = subprocess.PIPE
    environment = {**os.environ, "DPCOMPOSE_LEDGER": str(folder / "air.db")}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True
    )


@contextmanager
def counter(folder: Path, rows: int | None = None) -> Iterator[tuple[str, str]]:
    """A counter for the flights, or the first of them, as its address and an analyst's token."""
    import pyarrow.parquet as parquet

    flights, planes, _ = frames(rows)
    parquet.write_table(flights, folder / "flights.parquet")
    parquet.write_table(planes, folder / "planes.parquet")
    (folder / "catalog.toml").write_text(CATALOG.format(epsilon=EPSILON), encoding="utf-8")
    dpcompose("ledger", "init", folder=folder).communicate()
    invited = dpcompose("ledger", "people", "--invite", f"analyst:Ada:{SCOPE}", folder=folder)
    token = invited.communicate()[0].split()[-1]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = dpcompose("serve", "--catalog", "catalog.toml", "--port", str(port), folder=folder)
    try:
        _listening(server, port)
        yield f"http://127.0.0.1:{port}", token
    finally:
        server.terminate()
        server.communicate()


def _listening(server: subprocess.Popen[str], port: int) -> None:
    """Wait until the server answers."""
    while server.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit(server.communicate()[1])


def asked(
    url: str, token: str, chosen: Sequence[int] = range(1, 13)
) -> Iterator[tuple[int, Any, Any]]:
    """The questions by number, as they are asked, and the answers to them."""
    import httpx

    import dpcompose.release as release
    from dpcompose.serve import RemoteSession

    _, aircraft, airports = frames(1)
    planes = release.public(aircraft)
    with httpx.Client(base_url=url, timeout=120.0) as client:
        desk = RemoteSession(url, token, scope=SCOPE, table="flights", client=client)
        listed = questions(desk.table, planes, airports)
        for number in chosen:
            each = listed[number - 1]
            answer = desk.sql(each.sql, spend=SPEND, keys=each.keys)
            yield number, each, answer


def told(chosen: Sequence[int] = (5, 2, 6)) -> Iterator[str]:
    """The story, line by line."""
    with tempfile.TemporaryDirectory() as home, counter(Path(home)) as (url, token):
        yield f"The same flights behind a counter ({url}): Ada has a token, and no row"
        for _, each, answer in asked(url, token, chosen):
            (part,) = getattr(answer, "answers", (answer,))
            cost = part.design.spend.amounts(float)["epsilon"]
            yield f"  {each.sql}\n    {shown(part)}   (epsilon {cost:g} of {EPSILON})"


def main() -> None:
    missing = installed()
    if missing:
        sys.exit(f"this example needs more: {missing}")
    for line in told([int(each) for each in sys.argv[1:]] or range(1, 13)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
