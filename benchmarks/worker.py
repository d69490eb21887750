"""One system in its own process: cases in as JSON lines, times and answers out. Importing the system is not timed.

Times are the processor's, not the clock's: what else the machine does is not measured. It is the thread's, because an
armed timer makes that of the process coarse; every system is limited to one thread.

`python -m benchmarks.worker SYSTEM` first says {"version": ...}, or {"missing": ...} if the system is not installed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import resource
import signal
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from benchmarks.case import Answer, Case, NotOfferedError, Part

WARM_UP = Case("warm-up", "none", (Part("gaussian", 2.5, 7, 0.15),), 1e-3)
"""Asked once before the first case, so that what a system imports on its first question is not timed."""


class OutOfTimeError(BaseException):
    """Raised in the middle of a turn; no system catches it."""


def main() -> None:
    """Answer until standard input ends."""
    signal.signal(signal.SIGPROF, _out_of_time)
    warnings.simplefilter("ignore")
    out, sys.stdout = (
        sys.stdout,
        sys.stderr,
    )  # whatever a system prints must not be taken for an answer
    try:
        system = importlib.import_module(f"benchmarks.systems.{sys.argv[1]}")
        system.solve(WARM_UP)
    except ImportError as missing:
        _say(out, {"missing": str(missing)})
        return
    _say(out, {"version": f"{system.PACKAGE} {version(system.PACKAGE)}"})
    for line in sys.stdin:
        request = json.loads(line)
        _say(
            out,
            _turn(
                system,
                Case.from_json(request["case"]),
                share=request["share"],
                patience=request["patience"],
            ),
        )


def _turn(system: ModuleType, case: Case, *, share: float, patience: float) -> dict[str, Any]:
    """Calls until `share` seconds are spent, at least one: seconds of each, the answer, the peak of memory in bytes."""
    seconds: list[float] = []
    _forget_peak()
    signal.setitimer(signal.ITIMER_PROF, patience)
    try:
        gc.collect()
        while sum(seconds) < share:
            start = time.thread_time()
            answer = system.solve(case)
            seconds.append(time.thread_time() - start)
        peak = _peak()
        signal.setitimer(signal.ITIMER_PROF, 0)
        answer = getattr(system, "confirmed", _unchanged)(case, answer)
    except OutOfTimeError:
        return {"over": patience}
    except NotOfferedError as reason:
        return {"not_offered": str(reason)}
    except Exception as error:  # whatever a system raises is its answer
        return {"failure": f"{type(error).__name__}: {error}"[:200]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {
        "seconds": seconds,
        "upper": float(answer.upper),
        "lower": float(answer.lower),
        "method": answer.method,
        "peak": peak,
    }


def _out_of_time(*_: object) -> None:
    raise OutOfTimeError


def _unchanged(_: Case, answer: Answer) -> Answer:
    return answer


def _forget_peak() -> None:
    """On Linux the peak starts anew; elsewhere it stays that of the whole process so far, which is no smaller."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        return (
            next(
                int(line.split()[1])
                for line in status.read_text().splitlines()
                if line.startswith("VmHWM")
            )
            * 1024
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def _say(out: TextIO, record: dict[str, Any]) -> None:
    print(json.dumps(record), file=out, flush=True)


if __name__ == "__main__":
    main()
