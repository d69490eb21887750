"""The runbook of the service: every command on its page is typed, and what the container runs is run."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
from campaigns.ledger.missing import MissingError

pytestmark = pytest.mark.slow

DEPLOY = Path(__file__).parents[2] / "deploy"
PAGE = (DEPLOY / "README.md").read_text("utf-8")
LINES = re.findall(
    r"^([$#]) (.+)$", "".join(re.findall(r"^```\n(.*?)^```$", PAGE, re.M | re.S)), re.M
)
STANDS_IN = """
set -euo pipefail
stop() {{ if [ -f pid ]; then kill "$(cat pid)"; while kill -0 "$(cat pid)" 2>/dev/null; do sleep .05; done; rm pid; fi; }}
trap stop EXIT
python3() {{ if [ "$1 $2" != "-m venv" ]; then {python} "$@"; fi; }}
useradd() {{ :; }}
docker() {{ :; }}
git() {{ :; }}
journalctl() {{ tail -n "$4" log; }}
install() {{ cmp "$3" dpcompose.service && cp "$3" installed; }}
systemctl() {{
    if [ "$1" = stop ] || [ "$1" = restart ]; then stop; fi
    if [ "$1" = start ] || [ "$1" = restart ]; then
        ! grep -q '^ExecStart=/opt' installed
        $(sed -n 's/^ExecStart=//p' installed) --port {port} >>log 2>&1 & echo $! >pid
    fi
}}
"""
"""What belongs to the machine is stood in for: users, packages, and systemd, of which the unit's command is run."""


def _free() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _programs(folder: Path) -> None:
    """The programs of an environment in which everything is installed."""
    folder.mkdir(parents=True)
    extras = r'case "$*" in *".[serve,evidence,postgres]"*) ;; *) exit 1 ;; esac'
    for name, text in {
        "dpcompose": f'exec "{sys.executable}" -m dpcompose "$@"',
        "pip": extras,
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def _typed(lines: list[str], folder: Path, port: int) -> subprocess.CompletedProcess[str]:
    """Type lines into a shell, after those that stand in for the machine."""
    home, programs = folder / "home", folder / "opt"
    home.mkdir(parents=True)
    _programs(programs / "bin")
    script = STANDS_IN.format(port=port, python=sys.executable) + "\n".join(lines)
    for name, own in {
        "/var/lib/dpcompose": home,
        "/opt/dpcompose": programs,
        "/etc/systemd/system": home,
        "localhost:8000": f"localhost:{port}",
    }.items():
        script = script.replace(name, str(own))
    run = ["timeout", "600", "bash", "-c", script]
    return subprocess.run(run, cwd=home, capture_output=True, text=True, check=False)


def _sections() -> dict[str, list[str]]:
    """The lines that are typed, by the heading above them."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return {
        title: re.findall(
            r"^[$#] (.+)$", "".join(re.findall(r"^```\n(.*?)^```$", text, re.M | re.S)), re.M
        )
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "curl", "seq"))), reason="the runbook is typed into a shell"
)
def test_every_command_of_the_runbook_runs(tmp_path: Path):
    sections = _sections()
    own = [line for title, lines in sections.items() if "PostgreSQL" not in title for line in lines]
    assert len(own) > 50 and sum(map(len, sections.values())) == len(LINES)
    done = _typed(own, tmp_path, _free())
    assert done.returncode == 0, done.stdout + done.stderr
    home = tmp_path / "home"
    assert done.stdout.count('{"status":"ready","reasons":[]}') == 3
    assert done.stdout.count('"receipt"') == 1 and done.stdout.count('"cost"') == 1
    assert done.stdout.count("Every hash, every decision and every balance agrees") == 3
    assert "Entry 4 is in the log" in done.stdout and 'dpcompose_left{scope="city"' in done.stdout
    assert "Grace of every scope: revoked" in _people(home) and "is closed" not in done.stderr
    assert len(set((home / "tokens.txt").read_text().split())) == 50
    secret = [each for each in home.iterdir() if each.is_file() and each.stat().st_mode & 0o077]
    assert {each.name for each in secret} <= {"log", "pid"}


def _people(home: Path) -> str:
    asked = [sys.executable, "-m", "dpcompose", "ledger", "people", "--ledger", home / "city.db"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


@pytest.mark.server
def test_the_failover_of_the_runbook_runs(tmp_path: Path):
    from campaigns.ledger.failover import pair

    (lines,) = [lines for title, lines in _sections().items() if "PostgreSQL" in title]
    at = next(number for number, line in enumerate(lines) if "pg_promote" in line)
    try:
        with pair() as servers:
            one, two = servers.primary, servers.standby
            named = [
                line.replace("one.example", str(one.home)).replace("two.example", str(two.home))
                for line in [f'PATH="/opt/dpcompose/bin:$PATH:{one.binaries}"', *lines]
            ]
            before = _typed(named[: at + 1], tmp_path / "before", 0)
            assert before.returncode == 0, before.stdout + before.stderr
            one.kill(servers.running.pop(one.home))
            shutil.copy(tmp_path / "before" / "home" / "heads.json", tmp_path)
            then = [*named[:2], f"cp {tmp_path}/heads.json .", *named[at + 1 :]]
            after = _typed(then, tmp_path / "after", 0)
            assert after.returncode == 0, after.stdout + after.stderr
            assert "Every hash, every decision and every balance agrees" in after.stdout
    except MissingError as error:
        pytest.skip(str(error))


@contextmanager
def _running(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, cwd=folder, text=True, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_what_the_container_runs_serves_a_ledger_and_makes_none(tmp_path: Path):
    lines = (DEPLOY / "Containerfile").read_text("utf-8").splitlines()
    words = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines if line[:1] != "#"}
    runs = [line.removeprefix("RUN ") for line in lines if line.startswith("RUN ")]
    assert runs[0].startswith("pip install") and runs[1].startswith("useradd")
    done = _typed(
        [each.replace("/src", ".") for each in [f"PATH={tmp_path}/opt/bin:$PATH", *runs]],
        tmp_path,
        0,
    )
    assert done.returncode == 0, done.stderr
    program, *options = json.loads(words["CMD"])
    port, home = _free(), tmp_path / "volume"
    home.mkdir()
    served = [sys.executable, "-m", program, *options, "--port", str(port)]
    refused = subprocess.run(served, cwd=home, capture_output=True, text=True, check=False)
    assert refused.returncode and "there is no such ledger" in refused.stderr
    (made,) = [line for line in LINES if "docker run --rm" in line[1]]
    init = made[1].partition(" dpcompose dpcompose ")[2].split()
    subprocess.run([sys.executable, "-m", "dpcompose", *init], cwd=home, check=True)
    health = json.loads(words["HEALTHCHECK"].removeprefix("CMD "))
    with _running([sys.executable, "-m", program, *options, "--port", str(port)], home):
        for _ in range(100):
            time.sleep(0.1)
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready") as answer:
                    assert json.load(answer)["status"] == "ready"
                    break
            except (urllib.error.URLError, ConnectionError):
                continue
        check = [sys.executable, *(each.replace("8000", str(port)) for each in health[1:])]
        assert subprocess.run(check, check=False).returncode == 0
    assert subprocess.run(check, capture_output=True, check=False).returncode
