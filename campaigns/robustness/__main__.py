"""python -m campaigns.robustness [--plans 10000] [--only NAME] [--every 1]"""

from __future__ import annotations

import argparse
import sys

from campaigns.robustness import run


def main() -> None:
    """Run all of it, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=10_000)
    parser.add_argument("--only", default="", help="callables whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="one value in so many")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts, found = run.calls(asked.every, only=asked.only)
    print(f"{counts.callables} callables, {counts.parameters} parameters, {counts.calls} calls", flush=True)
    if not asked.only:
        found += run.plans(asked.plans, seed=asked.seed)
        found += run.commands()
    for each in found:
        print(each)
    print(f"{len(found)} findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
