"""The laws of every building block on many draws: `python -m campaigns.laws [--draws N] [-k WORDS]`.

A run of the tests makes two draws of each member for each law in `tests/laws`; this makes N, the slow members included.
The words select laws and members as pytest does: `-k "tolerances and Skellam"`. Control: two laws that do not hold, that
an epsilon is below 1e-3 and that a delta is 0, must be refuted with the same draws (`tests/laws/test_draws.py`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

LAWS = Path(__file__).parents[1] / "tests" / "laws"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("-k", dest="words", default="")
    options = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", ""]
    command += [str(LAWS), *(["-k", options.words] if options.words else [])]
    environment = {**os.environ, "DPCOMPOSE_LAW_DRAWS": str(options.draws)}
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
