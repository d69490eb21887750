"""python -m campaigns.robustness [--plans 10000] [--only NAME] [--every 1] [--share 1/4]"""

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
    parser.add_argument("--share", default="1/1", help="a part of the callables, such as 2/4")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    part, parts = map(int, asked.share.split("/"))
    counts, found = run.calls(asked.every, only=asked.only, share=(part, parts))
    print(
        f"{counts.callables} callables, {counts.parameters} parameters, {counts.calls} calls",
        flush=True,
    )
    if not asked.only and part == 1:
        found += run.plans(asked.plans, seed=asked.seed)
        found += run.commands()
    for each in found:
        print(each)
    print(f"{len(found)} findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
