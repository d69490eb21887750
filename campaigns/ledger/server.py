"""A PostgreSQL server of our own: in a temporary directory, on a socket that only we reach, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from campaigns.ledger.missing import MissingError

UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True)
class Server:
    """A running server.

    Args:
        binaries: The directory of its programs.
        home: Its directory, with data and socket.
        user: The system user it runs as; None: ours.
    """

    binaries: Path
    home: Path
    user: str | None

    def url(self, database: str = "postgres", *, options: str = "") -> str:
        """Where clients find it."""
        extra = f"&options={quote(options)}" if options else ""
        return f"postgresql://ledger@/{database}?host={quote(str(self.home))}{extra}"

    def initialize(self) -> None:
        """Make its directory of data."""
        init = [
            self.binaries / "initdb",
            "-D",
            self.home / "data",
            "-U",
            "ledger",
            "--auth=trust",
            "-E",
            "UTF8",
        ]
        self._run(*init, "--locale=C", "--wal-segsize=1", "--no-sync")

    def copy_from(self, primary: Server) -> None:
        """Make its directory of data a copy of that of a running server, to follow it."""
        shutil.rmtree(self.home / "data", ignore_errors=True)
        self._run(
            *(
                self.binaries / "pg_basebackup",
                "-D",
                self.home / "data",
                "-h",
                primary.home,
                "-U",
                "ledger",
            ),
            *("-R", "-X", "stream", "--checkpoint=fast", "--no-sync"),
        )

    def _run(self, *command: str | Path) -> None:
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, user=self.user, cwd=self.home
        )

    def create(self, database: str) -> str:
        """A new, empty database; its URL."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"'.encode())
        return self.url(database)

    def start(self, *settings: str) -> subprocess.Popen[bytes]:
        """Start the server with these settings and wait until it answers."""
        command = [self.binaries / "postgres", "-D", self.home / "data", "-c", "listen_addresses="]
        command += ["-c", f"unix_socket_directories={self.home}", "-c", "max_connections=300"]
        command += [each for setting in settings for each in ("-c", setting)]
        with (self.home / "log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self.user, cwd=self.home, process_group=0
            )
        for _ in range(600):
            ready = subprocess.run(
                [self.binaries / "pg_isready", "-q", "-h", self.home], check=False
            )
            if ready.returncode == 0:
                return process
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the server does not start:\n{(self.home / 'log').read_text()[-2000:]}")

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """kill -9 the server and its children, stopped ones too, and wait until they are gone."""
        children = [
            int(path.name) for path in Path("/proc").iterdir() if _parent(path) == process.pid
        ]
        for pid in [process.pid, *children]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(60)
        while any(_parent(Path(f"/proc/{pid}")) is not None for pid in children):
            time.sleep(0.01)

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Stop it at once."""
        if process.poll() is None:
            process.send_signal(signal.SIGQUIT)  # at once: the directory is thrown away
            process.wait(60)


def _parent(process: Path) -> int | None:
    """The parent of a process that runs; None if it is gone, or a zombie that somebody else will bury."""
    try:
        _, _, rest = (
            (process / "stat").read_text().rpartition(") ")
            if process.name.isdigit()
            else ("", "", "Z")
        )
    except OSError:
        return None
    state, *others = rest.split()
    return None if state == "Z" else int(others[0])


def find_binaries() -> Path:
    """The directory of PostgreSQL's programs.

    Raises:
        MissingError: There is none.
    """
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda each: int(each.parts[-3].split(".")[0]),
    )
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise MissingError("PostgreSQL's server is not installed: apt-get install postgresql")
    return found[-1].parent if found else Path(str(on_path)).resolve().parent


def _user() -> str | None:
    """The user to run as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    for name in UNPRIVILEGED:
        if name in names:
            return name
    raise MissingError("no unprivileged user to run PostgreSQL as: adduser --system postgres")


@contextmanager
def place(folder: Path | None = None) -> Iterator[Server]:
    """A directory for a server, which is not there yet, in `folder` or where temporary files are; gone afterwards."""
    binaries, user = find_binaries(), _user()
    home = Path(tempfile.mkdtemp(prefix="dpcompose-postgres-", dir=folder))
    try:
        if user is not None:
            shutil.chown(home, user)
        yield Server(binaries, home, user)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def server(*settings: str) -> Iterator[Server]:
    """A server that runs inside the block."""
    with place() as made:
        made.initialize()
        process = made.start(*settings)
        try:
            yield made
        finally:
            made.stop(process)
