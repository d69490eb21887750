"""A table of answers, recorded before and after a change, and the differences.

    python -m campaigns.answers record FILE [--questions N] [--seed S] [--share I/N]
    python -m campaigns.answers compare BEFORE AFTER

A question is one line of Python that uses public names. It is drawn from the seed alone, so that
two commits have the same questions. Its answer is the returned value as text, with every bit of
every float, or the error that it raises. `compare` counts the equal lines, and prints every pair of
answers that differ: intervals that do not meet (APART: one of the two is wrong), ends that became
wider by more than a relative 1e-12 (WIDER), and all others (CHANGED). Exit status 1 after APART. A
change that only moves or renames code changes no line, on one machine with one thread.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import json
import math
import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

SECONDS = 20
WIDER = 1e-12
DELTAS = (0.5, 1e-2, 1e-5, 1e-6, 1e-8, 1e-10, 1e-15, 1e-30, 1e-100)
SLOW = f"no answer in {SECONDS} s"


def questions(count: int, seed: int) -> Iterator[str]:
    """As many lines of Python, the same for the same seed."""
    rng = Random(seed)
    drawers = [
        (_composition, 12),
        (_closed, 2),
        (_book, 2),
        (_filter, 4),
        (_distribution, 2),
        (_ledger, 1),
    ]
    makers, weights = [maker for maker, _ in drawers], [weight for _, weight in drawers]
    for _ in range(count):
        yield rng.choices(makers, weights)[0](rng)


def _number(rng: Random, low: float, high: float, digits: int = 3) -> str:
    """A number between two powers of ten, with a few digits."""
    return repr(float(f"{10 ** rng.uniform(low, high):.{digits}g}"))


def _mechanism(rng: Random) -> str:
    sensitivity = rng.choice(["", "", "", f", sensitivity={_number(rng, -1, 1)}"])
    response = rng.choice(["", ", categories=3", ", categories=20"])
    leak = rng.choice(["", "", f", delta={_number(rng, -12, -6)}"])
    return rng.choice(
        [
            f"Laplace({_number(rng, -0.5, 2)}{sensitivity})",
            f"Gaussian({_number(rng, -0.5, 2)}{sensitivity})",
            f"DiscreteLaplace({_number(rng, -0.5, 1)}, shift={rng.randint(1, 3)})",
            f"DiscreteGaussian({_number(rng, -0.3, 1)}, shift={rng.randint(1, 3)})",
            f"RandomizedResponse({_number(rng, -2, 1)}{response})",
            f"Exponential({_number(rng, -2, 0.5)})",
            f"BlackBox({_number(rng, -2, 0.5)}{leak})",
            f"Concentrated({_number(rng, -4, 0)})",
            f"GaussianDP({_number(rng, -2, 0.5)})",
            "DominatingPair.atoms(upper=[.25, .25, .5], lower=[.5, .25, .25], adjacency=Adjacency.ADD_REMOVE)",
        ]
    )


def _part(rng: Random, steps: float) -> str:
    times = int(10 ** rng.uniform(0, steps))
    if rng.random() < 0.35:
        item = f"Gaussian({_number(rng, -0.3, 0.8)}).sampled({_number(rng, -4, -0.1)})"
        return f"{item} * {int(10 ** rng.uniform(0, 6))}"
    item = _mechanism(rng)
    if rng.random() < 0.1:
        return f"{item}.sampled({_number(rng, -3, -0.1)}) * {min(times, 50)}"
    return f"{item} * {times}"


def _whole(rng: Random) -> str:
    parts = [_part(rng, 4) for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3, 5]))]
    return f"compose({', '.join(parts)})"


def _adjacency(rng: Random) -> str:
    return f"Adjacency.{rng.choice(['ADD_REMOVE', 'ADD_REMOVE', 'REPLACE', 'ZERO_OUT'])}"


def _words(rng: Random) -> str:
    found = [f"adjacency={_adjacency(rng)}"] if rng.random() < 0.4 else []
    if rng.random() < 0.15:
        found.append("orientation=Orientation.FREE")
    return "".join(f", {word}" for word in found)


def _composition(rng: Random) -> str:
    whole, words = _whole(rng), _words(rng)
    delta, epsilon = (
        rng.choice([*map(repr, DELTAS), _number(rng, -12, -1)]),
        rng.choice([_number(rng, -2, 1), "0.0", "-0.5"]),
    )
    plain = words.replace(", orientation=Orientation.FREE", "")
    return rng.choices(
        [
            f"{whole}.epsilon(delta={delta}{words})",
            f"{whole}.delta(epsilon={epsilon}{words})",
            f"{whole}.renyi({_number(rng, 0.1, 2)}{words})",
            f"{whole}.zcdp({words[2:]})",
            f"{whole}.gdp({words[2:]})",
            f"{whole}.pure({plain[2:]})",
            f"{whole}.approximate({plain[2:]})",
            f"{whole}.compare(delta={delta}{words})",
            f"({_mechanism(rng)} * {rng.randint(1, 99)}).group({rng.randint(2, 5)}).epsilon(delta={delta}{plain})",
            f"{whole}.profile({words[2:]})([0.1, 0.5, {epsilon}])",
            f"({_mechanism(rng)} * {rng.randint(1, 99)}).profile({plain[2:]}).tradeoff([0.01, 0.3])",
            f"parallel({_mechanism(rng)}, {_mechanism(rng)}{plain}).epsilon(delta={delta})",
        ],
        [40, 20, 6, 4, 4, 4, 4, 3, 5, 4, 2, 4],
    )[0]


def _closed(rng: Random) -> str:
    """The conversions of one guarantee into another."""
    delta = rng.choice(list(map(repr, DELTAS)))
    return rng.choice(
        [
            f"ApproximateDP({_number(rng, -2, 1)}, delta={delta}).tradeoff({_number(rng, -3, -0.1)})",
            f"GaussianTradeoff({_number(rng, -2, 1)}).profile({_number(rng, -2, 1)})",
            f"GaussianTradeoff({_number(rng, -2, 1)}).epsilon({delta})",
            f"ConcentratedDP({_number(rng, -4, 1)}).epsilon(delta={delta})",
            f"ConcentratedDP({_number(rng, -4, 1)}).renyi({_number(rng, 0.1, 2)})",
        ]
    )


def _book(rng: Random) -> str:
    epsilon, slack, times = _number(rng, -2, 0), _number(rng, -9, -2), int(10 ** rng.uniform(0, 4))
    leak = rng.choice(["", f", delta={_number(rng, -12, -6)}"])
    return rng.choice(
        [
            f"book.basic([({epsilon}, 0.0), ({_number(rng, -2, 0)}, 1e-9)])",
            f"book.advanced({epsilon}{leak}, times={times}, slack={slack})",
            f"book.advanced_per_mechanism({epsilon}, slack={slack}, times={times})",
            f"book.group({epsilon}{leak}, size={rng.randint(1, 9)})",
            f"book.optimal({epsilon}{leak}, times={min(times, 999)}, total_delta={_number(rng, -5, -2)})",
            f"book.kl_bound({epsilon})",
        ]
    )


def _filter(rng: Random) -> str:
    """Return a filter's decisions on a few mechanisms, one after the other."""
    delta = _number(rng, -8, -4)
    names = ["PureFilter", "BasicFilter", "AdvancedFilter", *[*ONLY][2:]]
    name = rng.choice(names)
    target = f"{name}.for_target({_number(rng, -1, 0.7)}, delta={'0.0' if name == 'PureFilter' else delta})"
    asked = ", ".join(_mechanism(rng) for _ in range(rng.randint(1, 4)))
    return f"decided({target}, [{asked}])"


def _distribution(rng: Random) -> str:
    size = rng.randint(2, 5)
    one, other = ([rng.randint(1, 99) for _ in range(size)] for _ in range(2))
    rows = ", ".join(f"[Fraction(n, {sum(row)}) for n in {row}]" for row in (one, other))
    name = rng.choice(["kl", "max_divergence", "total_variation"])
    return rng.choice(
        [
            f"divergence.{name}({rows})",
            f"divergence.renyi({rows}, order={_number(rng, 0.1, 1)})",
            f"divergence.hockey_stick({rows}, epsilon={_number(rng, -2, 0)})",
            f"divergence.approximate_max({rows}, delta={_number(rng, -3, -1)})",
        ]
    )


def _ledger(rng: Random) -> str:
    """The chain of hashes after a scope and a few charges, at one moment of time."""
    costs = [f"{rng.randint(0, 40) / 100}" for _ in range(rng.randint(1, 5))]
    return f"hashes(caps={{'epsilon': 1}}, costs={costs})"


ONLY = {
    "PureFilter": "pure",
    "BasicFilter": "basic",
    "ConcentratedFilter": "zcdp",
    "RenyiFilter": "renyi",
    "GaussianFilter": "gaussian",
}


def decided(chosen: Any, mechanisms: Sequence[Any]) -> list[Any]:
    """Every decision of a filter, and what it promises."""
    state, found = chosen.start(), [chosen.guarantee()]
    for mechanism in mechanisms:
        try:
            state, decision = chosen.step(state, mechanism)
        except Exception as error:  # a price that a filter does not have is an answer too
            found.append(_error(error))
        else:
            found.append(decision)
    return found


def hashes(caps: Mapping[str, int], costs: Sequence[str]) -> list[str]:
    """The hashes of a ledger in memory whose clock stands still."""
    from dpcompose.errors import OverdrawnError
    from dpcompose.ledger import Ledger, batch

    for module in (batch,):
        module.now = lambda: "2030-01-31T12:00:00.000000Z"  # pyright: ignore[reportAttributeAccessIssue]
    ledger, refused = Ledger.open("memory:"), 0
    ledger.scope("world", caps=caps, actor="Ada")
    for place, cost in enumerate(costs):
        try:
            ledger.charge("world", cost={"epsilon": cost}, actor="Ada", key=str(place))
        except OverdrawnError:  # an entry as well
            refused += 1
    return [*(entry.hash for entry in ledger.entries("world")), f"{refused} refused"]


def names() -> dict[str, Any]:
    """Everything that a question may name."""
    import dpcompose
    from dpcompose import adaptive, book, divergence
    from dpcompose.guarantee.approximate import ApproximateDP
    from dpcompose.guarantee.gaussian import GaussianTradeoff
    from dpcompose.guarantee.renyi import ConcentratedDP

    found = {name: getattr(room, name) for room in (adaptive, dpcompose) for name in room.__all__}
    found |= {
        each.__name__: each
        for each in (ApproximateDP, ConcentratedDP, GaussianTradeoff, Fraction, decided, hashes)
    }
    # Questions of earlier trees name the budget of one theorem as those trees did.
    for name, only in ONLY.items():
        found[name] = SimpleNamespace(
            for_target=lambda epsilon, delta, only=only: adaptive.Budget(epsilon, delta, only=only)
        )
    found["AdvancedFilter"] = SimpleNamespace(
        for_target=lambda epsilon, delta: adaptive.AdvancedFilter(epsilon, delta, delta)
    )
    return {**found, "book": book, "divergence": divergence}


def plain(value: Any) -> Any:
    """The value as JSON, every float to its last bit; certificates, which are words, left out."""
    if isinstance(value, (float, int, str, bool)) or value is None:
        return repr(value) if isinstance(value, float) else value
    if isinstance(value, (Fraction, Decimal, enum.Enum)):
        return str(value)
    if dataclasses.is_dataclass(value):
        rows = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            name: plain(row)
            for name, row in rows.items()
            if name not in ("certificate", "note", "reference")
        }
    if isinstance(value, Mapping):
        return {str(key): plain(row) for key, row in value.items()}
    if callable(value):
        return "a function"
    if isinstance(value, Sequence):
        return [plain(row) for row in value]
    return plain(value.tolist()) if type(value).__module__ == "numpy" else repr(value)


def _error(error: Exception) -> str:
    return f"error {type(error).__name__}"


def answer(question: str, known: Mapping[str, Any]) -> Any:
    """Return a question's answer, or the name of its error."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return plain(eval(question, dict(known)))
    except TimeoutError:
        return SLOW
    except Exception as error:
        return _error(error)
    finally:
        signal.alarm(0)


def record(file: Path, count: int, seed: int, share: str) -> None:
    """Write the questions and their answers, one line each."""
    warnings.simplefilter("error")
    known, (turn, turns) = names(), (int(number) for number in share.split("/"))
    with file.open("w") as lines:
        for place, question in enumerate(questions(count, seed)):
            if place % turns == turn - 1:
                lines.write(json.dumps([question, answer(question, known)]) + "\n")


def _intervals(before: Any, after: Any) -> Iterator[tuple[float, float, float, float]]:
    """The intervals at the same place of two answers."""
    if isinstance(before, dict) and isinstance(after, dict):
        if before.keys() == after.keys() and {"lower", "upper"} <= before.keys():
            ends = [before["lower"], before["upper"], after["lower"], after["upper"]]
            rows = [end if isinstance(end, list) else [end] for end in ends]
            yield from zip(*([float(end) for end in row] for row in rows), strict=True)
        elif before.keys() == after.keys():
            for name in before:
                yield from _intervals(before[name], after[name])
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from _intervals(one, other)


def verdict(before: Any, after: Any) -> str:
    """How two answers to one question differ."""
    if before == after:
        return "equal"
    found = list(_intervals(before, after))
    if any(low > other_high or other_low > high for low, high, other_low, other_high in found):
        return "APART"
    wider = [
        other_high - other_low > high - low + WIDER * max(abs(high), abs(low))
        for low, high, other_low, other_high in found
        if not (math.isinf(high) and math.isinf(other_high))
    ]
    if any(wider):
        return "WIDER"
    return "narrower or as wide" if found else "CHANGED"


def compare(before: Path, after: Path) -> int:
    """Print what differs, and the counts; 1 if two answers exclude each other."""
    rows = [
        dict(json.loads(line) for line in file.read_text().splitlines()) for file in (before, after)
    ]
    counts: Counter[str] = Counter()
    for question, old in rows[0].items():
        if question not in rows[1]:
            counts["missing"] += 1
            continue
        word = verdict(old, rows[1][question])
        counts[word] += 1
        if word.isupper():
            print(
                f"{word}  {question}\n    {json.dumps(old)[:300]}\n    {json.dumps(rows[1][question])[:300]}"
            )
    print(", ".join(f"{count:,} {word}" for word, count in sorted(counts.items())))
    return 1 if counts["APART"] else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    calls = parser.add_subparsers(dest="call", required=True)
    writing = calls.add_parser("record")
    writing.add_argument("file", type=Path)
    writing.add_argument("--questions", type=int, default=20_000)
    writing.add_argument("--seed", type=int, default=1)
    writing.add_argument("--share", default="1/1")
    reading = calls.add_parser("compare")
    reading.add_argument("before", type=Path)
    reading.add_argument("after", type=Path)
    given = parser.parse_args()
    run: Callable[[], int | None]
    if given.call == "record":
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        run = lambda: record(given.file, given.questions, given.seed, given.share)  # noqa: E731
    else:
        run = lambda: compare(given.before, given.after)  # noqa: E731
    sys.exit(run() or 0)


if __name__ == "__main__":
    main()
