"""Fifty analysts at two servers over one database, which share one queue: one charge and one draw for each key.

    python -m campaigns.service.shared --questions 2000 [--kills 5] [--control]

Each analyst asks statements over HTTP under keys, at either server; one in three again at the other one, half of these
at the same time. Meanwhile a server is killed (SIGKILL) and started again, and the keeper opens the tables. In the end
the log has one charge and one redemption for each key of which anything was told, and that was one answer, or that the
key is spent. The control has servers with answers of their own, and must be caught.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from campaigns.service.kills import Servers
from dpcompose.adaptive import PureFilter
from dpcompose.ledger import Ledger
from dpcompose.release import Catalog
from dpcompose.serve import Identities, Identity, Role, Service
from dpcompose.serve.service import own_key

ANALYSTS, VISITS = 50, 400
STATEMENTS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE minutes > 20",
    "SELECT SUM(minutes) AS n FROM visits",
    "SELECT AVG(minutes) AS n FROM visits WHERE ward = 'east'",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
)
AGAIN = {"ReleaseError", "StoreError", "HTTPException", ""}
"""Outcomes after which an analyst asks again: closed tables, a server or a database that is away, a full queue."""


def stated(folder: str) -> dict[str, Any]:
    """The scope, as a file of catalogs says it."""
    table = {"source": f"{folder}/visits.csv", "unit": "person", "max_rows_per_unit": 2}
    table |= {"schema": {"minutes": "int64"}}
    table |= {"ranges": {"minutes": [0, 60], "ward": ["east", "west"]}}
    return {"after": 100.0, "limit": 120.0, "tables": {"visits": table}}


def serve(folder: str, ledger_url: str, people: str, port: int, control: str) -> None:
    """One server, until it is killed; answers leave at once."""
    import uvicorn

    from dpcompose.serve import counter
    from dpcompose.serve.web import application

    counter.Desk.leave = lambda *_, **__: None
    if control:
        counter.Shared = lambda *_: None  # pyright: ignore
    ledger = Ledger.open(ledger_url, create=False)
    answers = Path(folder) / f"answers {port}"
    desks = counter.Counter.open(ledger, answers, {"clinic": stated(folder)})
    service = Service(ledger, Identities(Ledger.open(people)), None, desks)
    app = application(service, rate=1e9)
    uvicorn.run(app, port=port, log_level="critical", access_log=False)


@dataclass
class Report:
    """What was seen.

    Args:
        outcomes: Of single requests.
        told: For each analyst and key, the answers that were told, or that it is spent.
        seconds: Of each answer.
        kills: Of servers.
        problems: Promises that were not kept.
    """

    outcomes: Counter[str] = field(default_factory=Counter[str])
    told: dict[tuple[str, str], set[str]] = field(default_factory=dict[tuple[str, str], set[str]])
    seconds: list[float] = field(default_factory=list[float])
    kills: int = 0
    problems: list[str] = field(default_factory=list[str])


@dataclass
class Analyst:
    """Asks under keys of their own."""

    name: str
    token: str
    servers: Servers
    report: Report
    draw: random.Random
    http: Any

    def work(self, questions: int) -> None:
        """Ask so many questions, some of them again elsewhere."""
        for number in range(questions):
            key, text, at = f"k{number}", self.draw.choice(STATEMENTS), self.draw.randrange(2)
            again = self.draw.random()
            other = threading.Thread(target=self._ask, args=(1 - at, key, text))
            if again < 1 / 6:
                other.start()
            self._ask(at, key, text)
            if 1 / 6 <= again < 1 / 3:
                other.start()
            if again < 1 / 3:
                other.join()

    def _ask(self, at: int, key: str, text: str) -> None:
        for _ in range(2000):
            began, answer = time.monotonic(), self._answer(at, key, text)
            kind = "answer" if "tables" in answer else str(answer.get("error", ""))
            self.report.outcomes[kind or "away"] += 1
            if kind in ("answer", "SpentError"):
                told = kind if kind != "answer" else str(answer["tables"])
                self.report.told.setdefault((self.name, key), set()).add(told)
                self.report.seconds.append(time.monotonic() - began)
            if kind not in AGAIN:
                if kind not in ("answer", "SpentError"):
                    self.report.problems.append(f"{self.name} {key}: {answer}")
                return
            time.sleep(0.2)
        self.report.problems.append(f"{self.name} {key}: no outcome")

    def _answer(self, at: int, key: str, text: str) -> dict[str, Any]:
        import httpx

        fields = {"scope": "clinic", "table": "visits", "sql": text, "key": key}
        fields |= {"spend": {"epsilon": "0.01"}}
        try:
            return self._post("ask", at, fields).json()
        except (httpx.HTTPError, ValueError):
            return {}

    def _post(self, route: str, at: int, fields: dict[str, Any]) -> Any:
        url = f"http://127.0.0.1:{self.servers.ports[at]}/v1/{route}"
        headers = {"authorization": f"Bearer {self.token}"}
        return self.http.post(url, json=fields, headers=headers, timeout=60.0)

    def reopen(self, at: int) -> None:
        """What the keeper does, whose name is in place of an analyst's."""
        self._post("reopen", at, {"scope": "clinic"})


@contextmanager
def _working(analysts: list[Analyst], questions: int) -> Iterator[list[threading.Thread]]:
    threads = [threading.Thread(target=each.work, args=(questions,)) for each in analysts]
    for each in threads:
        each.start()
    yield threads
    for each in threads:
        each.join()


def run(questions: int, *, kills: int = 0, seed: int = 0, control: bool = False) -> Report:
    """So many questions by all analysts together."""
    import httpx

    from campaigns.ledger.server import server

    draw, report = random.Random(seed), Report()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        rows = [f"p{n % 200},{('east', 'west')[n % 2]},{n % 60}" for n in range(VISITS)]
        (Path(folder) / "visits.csv").write_text("\n".join(["person,ward,minutes", *rows]))
        url = stack.enter_context(server()).create("city")
        ledger = stack.enter_context(Ledger.open(url))
        tables = stated(folder)["tables"]
        Catalog.define(ledger, "clinic", tables, filter=PureFilter(1e6), actor="keeper")
        people, limits = Identities(ledger), httpx.Limits(max_connections=None)
        http = stack.enter_context(httpx.Client(limits=limits))
        words = "without a queue" if control else ""
        servers = Servers(url, url, 2, words, target=partial(serve, folder))
        stack.callback(lambda: [servers.kill(at) for at in (0, 1)])
        names = {f"analyst{each}": Role.ANALYST for each in range(ANALYSTS)} | {
            "Grace": Role.KEEPER
        }
        *analysts, keeper = (
            Analyst(name, people.invite(name, role, "clinic"), servers, report,
                    random.Random(draw.random()), http)
            for name, role in names.items()
        )  # fmt: skip
        with _working(analysts, max(questions // ANALYSTS, 1)) as threads:
            closed = 0
            for _ in range(kills):
                time.sleep(draw.uniform(0, 4))
                if any(each.is_alive() for each in threads):
                    at = draw.randrange(2)
                    servers.kill(at)
                    servers.start(at)
                    report.kills += 1
                    time.sleep(1.0)  # the survivor, or the one that is there again, sees the mark
                    keeper.reopen(at)
            while kills and any(each.is_alive() for each in threads):
                time.sleep(3.0)
                if (now := report.outcomes["ReleaseError"]) > closed:
                    keeper.reopen(draw.randrange(2))
                closed = now
        _judge(report, ledger)
    return report


def _judge(report: Report, ledger: Ledger) -> None:
    """Compare what was told with the log."""
    entries = list(ledger.entries("clinic"))
    granted = {each.key: each for each in entries if each.kind == "granted"}
    redeemed = Counter(each.redeems for each in entries if each.kind == "redeemed")
    if len(granted) != sum(each.kind == "granted" for each in entries):
        report.problems.append("a key is charged twice")
    if redeemed and max(redeemed.values()) > 1:
        report.problems.append("a charge is redeemed twice")
    for (name, key), told in report.told.items():
        who = Identity(name, Role.ANALYST, "clinic")
        entry = granted.get(own_key(who, f"ask {key}"))
        if len(told) > 1:
            report.problems.append(f"{name} {key}: {len(told)} outcomes {told}")
        if entry is None or redeemed[entry.sequence] != 1:
            report.problems.append(f"{name} {key}: an answer without its charge")
    ledger.verify()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--control", action="store_true")
    asked = vars(parser.parse_args())
    report = run(asked.pop("questions"), **asked)
    seconds = sorted(report.seconds) or [0.0]
    p50, p99 = seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100]
    print(f"{dict(report.outcomes)}, {len(report.told)} keys, {report.kills} kills")
    print(f"an answer took {p50:.2f} s, p99 {p99:.2f} s")
    print(f"{len(report.problems)} problems {report.problems[:5]}")
    return bool(report.problems)


if __name__ == "__main__":
    sys.exit(main())
