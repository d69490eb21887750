"""The writes and syncs of a process, recorded by strace at the system call."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from campaigns.ledger.missing import MissingError
from campaigns.ledger.session import NAME

ROOT = Path(__file__).parents[2]
CALLS = (
    "open,openat,creat,lseek,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync_file_range,ftruncate,truncate,"
    "unlink,unlinkat,rename,renameat,renameat2,fallocate,link,linkat,sendfile,copy_file_range"
)
UNDERSTOOD = {
    "open",
    "openat",
    "lseek",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "ftruncate",
    "unlink",
    "rename",
}
_LINE = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_PLACE = re.compile(r"<((?:\\x[0-9a-f]{2})+)>(\(deleted\))?")


@dataclass(frozen=True)
class Event:
    """One call that changes the disk, or an acknowledgement.

    Args:
        kind: create, write, truncate, sync, unlink, rename or acknowledge.
        name: The file's name in the ledger's folder; empty for the folder itself.
        offset: Of a write; of a truncation, the size.
        data: What was written, the new name, or "key hash".
    """

    kind: str
    name: str
    offset: int = 0
    data: bytes = b""


def record(
    folder: Path, weakness: str, first: int, stop: int, *, kill_at_sync: int | None = None
) -> list[Event]:
    """Run one session under strace; with `kill_at_sync`, kill -9 just before its n-th fdatasync.

    Raises:
        MissingError: There is no strace, or it may not trace here.
    """
    if shutil.which("strace") is None:
        raise MissingError("strace is not installed: apt-get install strace")
    log = folder.parent / f"{folder.name}.strace"
    command = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-o", log, "-e", f"trace={CALLS}"]
    if kill_at_sync is None:
        # Other calls are not stopped. A signal at a call would come after it.
        command += ["--seccomp-bpf"]
    else:
        command += ["-e", f"inject=fdatasync:signal=KILL:when={kill_at_sync}"]
    command += [
        sys.executable,
        "-B",
        "-m",
        "campaigns.ledger.session",
        folder,
        weakness,
        str(first),
        str(stop),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if "PTRACE" in run.stderr.decode(errors="replace"):
        raise MissingError(
            f"strace may not trace here: {run.stderr.decode(errors='replace').strip()}"
        )
    if kill_at_sync is None and run.returncode != 0:
        raise RuntimeError(run.stderr.decode(errors="replace")[-2000:])
    events = list(_events(log, folder))
    log.unlink()
    return events


def _events(log: Path, folder: Path) -> Iterator[Event]:
    known: set[str] = set()
    positions: dict[str, int] = {}
    for line in log.read_text().splitlines():
        match = _LINE.match(line)
        if match is None or int(match[3]) < 0:
            continue
        call, arguments, result = match[1], match[2], int(match[3])
        strings = [_text(each) for each in _STRING.findall(arguments)]
        places = [
            (Path(_text(each).decode(errors="replace")), bool(gone))
            for each, gone in _PLACE.findall(arguments)
        ]
        if call == "write" and strings and strings[0].startswith(b"acknowledged "):
            yield Event("acknowledge", "", data=strings[0].removeprefix(b"acknowledged ").strip())
            continue
        by_name = call in ("openat", "open", "rename")
        path = (
            places[-1][0]
            if places and not by_name
            else Path(_first(strings).decode(errors="replace"))
        )
        if path != folder and path.parent != folder:
            continue
        if call not in UNDERSTOOD:
            raise RuntimeError(f"a call that the model does not know: {line[:200]}")
        name = "" if path == folder else path.name
        # The index in shared memory is rebuilt after a power loss, and the file of turns is empty.
        if name.endswith(("-shm", "-turn")) or (places and places[-1][1] and call != "openat"):
            continue
        if call in ("open", "openat"):
            positions[name] = 0
            if "O_CREAT" in arguments and name not in known:
                known.add(name)
                yield Event("create", name)
        elif call == "unlink":
            known.discard(name)
            yield Event("unlink", name)
        elif call == "rename":
            known.add(Path(strings[1].decode()).name)
            yield Event("rename", name, data=Path(strings[1].decode()).name.encode())
        elif call == "lseek":
            positions[name] = result
        elif call in ("fsync", "fdatasync"):
            yield Event("sync", name)
        elif call == "ftruncate":
            yield Event("truncate", name, offset=_numbers(arguments)[-1])
        elif call == "write":
            yield Event("write", name, offset=positions[name], data=strings[0][:result])
            positions[name] += result
        else:
            yield Event("write", name, offset=_numbers(arguments)[-1], data=strings[0][:result])


def _first(strings: list[bytes]) -> bytes:
    return strings[0] if strings else b""


def _text(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


def _numbers(arguments: str) -> list[int]:
    return [int(each) for each in re.findall(r", (\d+)", arguments)]


__all__ = ["NAME", "Event", "record"]
