"""Runs over calls, plans and commands. Each returns a list of findings, one line each."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from campaigns.robustness import commands as broken_commands, plans as drawn_plans
from campaigns.robustness.cases import Case, cases
from campaigns.robustness.judge import MOST_CALLS, judged
from campaigns.robustness.values import VALUES


@dataclass
class Counts:
    """How much was tried."""

    callables: int = 0
    parameters: int = 0
    calls: int = 0


def calls(
    every: int = 1,
    *,
    only: str = "",
    share: tuple[int, int] = (1, 1),
    subjects: Iterable[Case] | None = None,
    work: int = MOST_CALLS,
) -> tuple[Counts, list[str]]:
    """Every parameter of every public callable by every bad value, or one in `every`; of share (1, 4), a quarter."""
    (part, parts), counts, found = share, Counts(), []
    with (
        TemporaryDirectory() as beside,
        chdir(beside),
    ):  # for files that a call makes by a name it was given
        for place, case in enumerate(cases() if subjects is None else subjects):
            if only in case.name and place % parts == part - 1:
                counts.callables += 1
                found += list(_tried(case, every, counts, work))
    return counts, found


def _tried(case: Case, every: int, counts: Counts, work: int) -> Iterator[str]:
    wrong = judged(case.make(), case.good(), "Any", "good", work=work)
    if wrong:
        yield f"{case.name}: with good arguments: {wrong}"
    for parameter, takes in case.takes().items():
        counts.parameters += 1
        offset = zlib.crc32(f"{case.name}.{parameter}".encode())
        for place, value in enumerate(VALUES):
            if (place + offset) % every:
                continue
            counts.calls += 1
            wrong = judged(
                case.make(), case.good() | {parameter: value.make()}, takes, value.kind, work=work
            )
            if wrong:
                yield f"{case.name}({parameter}={value.label}): {wrong}"
                print(
                    f"{case.name}({parameter}={value.label}): {wrong}", file=sys.stderr, flush=True
                )


def plans(number: int, *, seed: int) -> list[str]:
    """Plans drawn at random."""
    return drawn_plans.run(number, seed=seed)


def commands() -> list[str]:
    """Commands with broken streams."""
    return broken_commands.run()
