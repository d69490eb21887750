"""Commands whose streams and files are broken: each prints one sentence, sets a status, and leaves
nothing half done.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PLAN = 'delta = 1e-6\n[[mechanism]]\nkind = "gaussian"\nsigma = 30.0\ntimes = 5\n'
COMMANDS = [
    "account plan.toml",
    "account plan.toml --json",
    "account plan.toml --html page.html --plot page.png",
    "account missing.toml",
    "calibrate plan.toml --vary mechanism.gaussian.sigma --epsilon 1 --delta 1e-6",
    "theorem",
    "theorem 3.20 --epsilon 1",
    "experiment repeater plan.toml --transcripts 100",
    "ledger show",
    "ledger charge world plan.toml --key one",
    "ledger log world --json",
    "ledger verify --keep anchor.json",
    "ledger scope new --cap epsilon=1",
    "--help",
    "--version",
    "nothing",
]
STREAMS = {
    "closed output": ">&-",
    "full output": ">/dev/full",
    "no reader": "> >(exit)",
    "closed errors": "2>&-",
    "full errors": "2>/dev/full",
    "closed input": "<&-",
    "all closed": "<&- >&- 2>&-",
    "narrow": "",
    "no space for files": "",
}


def run(commands: list[str] | None = None, streams: dict[str, str] | None = None) -> list[str]:
    """Every command with every stream; what is wrong, a line each."""
    return [
        f"{command} with {name}: {wrong}"
        for command in COMMANDS if commands is None or command in commands
        for name, redirected in (STREAMS if streams is None else streams).items()
        if (wrong := tried(command, name, redirected))
    ]  # fmt: skip


def tried(command: str, name: str, redirected: str) -> str | None:
    """Return the faults of one command in a directory of its own."""
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "plan.toml").write_text(PLAN)
        python = f"{sys.executable} -c 'from dpcompose.cli import main; main()'"
        environment = (
            os.environ
            | {"DPCOMPOSE_LEDGER": "l.db", "USER": "Ada"}
            | ({"COLUMNS": "30"} if name == "narrow" else {})
        )
        setup = f"{python} ledger scope world --filter concentrated --epsilon 1 --delta 1e-6"
        first = f"{python} ledger init && {setup}" if command.startswith("ledger") else "true"
        limit = "ulimit -f 60; trap '' XFSZ; " if name == "no space for files" else ""
        subprocess.run(
            ["bash", "-c", first], cwd=home, env=environment, capture_output=True, check=False
        )
        before = {each.name for each in Path(home).iterdir()}
        line = f"{limit}{python} {command} {redirected}"
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if (
            "Traceback" in done.stderr
            or "a defect" in done.stderr
            or "Exception ignored" in done.stderr
        ):
            return done.stderr[-300:]
        if done.returncode not in (0, 1, 2, 3):
            return f"status {done.returncode}: {done.stderr[-200:]}"
        if "closed output" in name and {each.name for each in Path(home).iterdir()} != before:
            return "something was done"
        left = [each.name for each in Path(home).iterdir() if each.name.startswith(".")]
        return f"{left} was left behind" if left else None
