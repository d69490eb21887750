"""Injected I/O errors: every n-th call on the ledger's files fails, once or from then on, and the ledger is looked at.

python -m campaigns.ledger.faults [--charges 12] [--every 1]

Faults: EIO and ENOSPC, once and lasting, and writes that stop half-way. After each: what was acknowledged is there,
nothing is half done, the same key asked again charges once, and the ledger verifies. A full disk leaves the open
ledger usable; an I/O error stops it until it is opened again. The control ignores errors: it must lose something.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from campaigns.ledger.history import HistoryError, replay, require_acknowledged
from campaigns.ledger.missing import MissingError
from campaigns.ledger.processes import fork
from campaigns.ledger.weak import opened
from campaigns.ledger.work import Diary
from dpcompose.errors import StoreError, UnknownScopeError
from dpcompose.ledger import Ledger

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Fault:
    """The call that fails: the error (0: half a write), and whether it lasts."""

    name: str
    code: int
    lasting: bool


FAULTS = (
    Fault("EIO once", errno.EIO, False),
    Fault("EIO lasting", errno.EIO, True),
    Fault("ENOSPC once", errno.ENOSPC, False),
    Fault("ENOSPC lasting", errno.ENOSPC, True),
    Fault("half a write", 0, False),
)


def shim(folder: Path) -> Path:
    """The library, compiled.

    Raises:
        MissingError: There is no C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise MissingError("a C compiler is not installed: apt-get install gcc libc6-dev")
    library = folder / "faults.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", library, HERE / "faults.c", "-ldl"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise MissingError(f"the C compiler cannot build the shim: {run.stderr.strip()[:300]}")
    return library


def campaign(*, charges: int, every: int, weakness: str = "shipped") -> str:
    """Run it in a process with the shim; its last line. HistoryError with what it found broken."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "disk"
        environment = os.environ | {
            "LD_PRELOAD": str(shim(Path(temporary))),
            "FAULTS_FOLDER": str(folder),
        }
        command = [
            sys.executable,
            "-m",
            "campaigns.ledger.faults",
            "--inside",
            folder,
            "--charges",
            str(charges),
        ]
        command += ["--every", str(every), "--weakness", weakness]
        run = subprocess.run(
            command,
            env=environment,
            cwd=HERE.parents[1],
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode != 0:
        raise HistoryError((run.stderr.strip().splitlines() or ["no message"])[-1])
    return run.stdout.strip().splitlines()[-1]


def inside(folder: Path, *, charges: int, every: int, weakness: str) -> str:
    """All faults at all calls, one client process for each."""
    faults = ctypes.CDLL(None)
    began, runs, refused = time.perf_counter(), 0, 0
    folder.mkdir(exist_ok=True)
    for fault in FAULTS:
        at = 1
        while True:
            child = fork(
                lambda at=at, fault=fault: _told(folder, faults, fault, at, charges, weakness)
            )
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status != 0:
                raise HistoryError(f"{fault.name} at call {at}: {(folder / 'broken').read_text()}")
            reached, errors = (int(each) for each in (folder / "calls").read_text().split())
            if reached < at:
                break
            _require_sound(folder, fault, at, charges)
            runs, refused, at = runs + 1, refused + errors, at + every
    seconds = time.perf_counter() - began
    return f"{runs} faults in {seconds:.0f} s, {refused} errors raised: nothing acknowledged lost, nothing half done"


def _told(
    folder: Path, faults: ctypes.CDLL, fault: Fault, at: int, charges: int, weakness: str
) -> None:
    """The client, and what it found broken."""
    try:
        _client(faults, folder, fault, at, charges, weakness)
    except BaseException as error:
        faults.faults_arm(0, 0, 0)
        (folder / "broken").write_text(str(error))
        os._exit(1)


def _client(
    faults: ctypes.CDLL, folder: Path, fault: Fault, at: int, charges: int, weakness: str
) -> None:
    """Open, charge, close; with the fault on the way."""
    shutil.rmtree(folder)
    folder.mkdir()
    diary, errors, full = Diary(folder.parent / "diary"), 0, False
    os.truncate(diary.path, 0)
    faults.faults_arm(at, fault.code, int(fault.lasting))
    try:
        with opened(str(folder / "ledger.db"), weakness) as ledger:
            ledger.scope("world", caps={"epsilon": charges}, actor="keeper")
            for number in range(charges):
                try:
                    receipt = ledger.charge(
                        "world", cost={"epsilon": 1}, actor="client", key=str(number)
                    )
                    diary.note([receipt.key, "granted", receipt.sequence, receipt.hash, False])
                except UnknownScopeError:
                    raise HistoryError("a scope was opened and is lost") from None
                except StoreError as error:
                    if full and not fault.lasting:
                        raise HistoryError(
                            f"a full disk stopped the ledger for longer than it was full: {error}"
                        ) from None
                    errors, full = errors + 1, "the disk is full" in str(error)
                    _require_words(error, fault)
    except StoreError as error:
        errors += 1
        _require_words(error, fault)
    reached = faults.faults_calls()
    faults.faults_arm(0, 0, 0)
    (folder / "calls").write_text(f"{reached} {errors}")


def _require_words(error: StoreError, fault: Fault) -> None:
    said = str(error)
    if not any(
        word in said
        for word in ("disk", "cannot be", "I/O", "Input/output", "No space", "damaged", "locked")
    ):
        raise HistoryError(f"{fault.name}: not a clear error: {said}")


def _require_sound(folder: Path, fault: Fault, at: int, charges: int) -> None:
    """Everything acknowledged is there; the rest can be asked again; the sum is exact."""
    url, diary = folder / "ledger.db", Diary(folder.parent / "diary")
    try:
        with Ledger.open(url) as ledger:
            ledger.scope("world", caps={"epsilon": charges}, actor="keeper")
            require_acknowledged(replay(str(url)), diary.lines())
            for number in range(charges):
                ledger.charge("world", cost={"epsilon": 1}, actor="client", key=str(number))
            ledger.verify()
            if ledger.balance("world").spent["epsilon"].fraction != charges:
                raise HistoryError("a charge was applied twice, or half")
    except (HistoryError, StoreError) as broken:
        raise HistoryError(f"{fault.name} at call {at}: {broken}") from None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--charges", type=int, default=12)
    parser.add_argument("--every", type=int, default=1, help="only every so many calls")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--weakness", default="shipped", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    sizes = {"charges": asked.charges, "every": asked.every}
    if asked.inside is not None:
        print(inside(asked.inside, weakness=asked.weakness, **sizes))
        return
    try:
        campaign(charges=4, every=3, weakness="careless")
        raise SystemExit("the control passed: the campaign finds nothing")
    except HistoryError as caught:
        print(f"control (errors ignored): caught: {caught}", flush=True)
    print(campaign(**sizes))


if __name__ == "__main__":
    main()
