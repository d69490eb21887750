"""Compositions whose parameters lie ten orders apart, against laws: `python -m campaigns.extremes --cases 300`.

Each case has one to four parts, Gaussian or Laplace, sampled or not: rates from 1 to 1e-12, noises from 0.05 to 1e6,
counts from 1 to 10^7, deltas from 0.5 to 1e-300. Once in three a part that costs nearly nothing stands beside ordinary
ones. No oracle is asked, only laws:
  FAILED   a question ends in an exception or a warning
  EMPTY    an answer is no interval of numbers >= 0
  APART    delta(epsilon) at an end of epsilon(delta) is not on its side of delta; the batch and the single answer have
           no number in common; or a batch of many cases answers otherwise than a batch of one
  BELOW    a lower end is below that of some parts alone, or an upper end is
  ABOVE    a lower end is above the upper end of the same composition with one part not sampled
Counted, and no violations:
  LOOSE    an upper end is above that of the same composition with one part not sampled
  SLOW     a question took more than --seconds of processor time, and was left
  WIDE     the upper end is more than twice the lower one
`--adjacency` and `--orientation` are those of all questions. Exit status 1 after a violation.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from random import Random
from typing import Any

import dpcompose
from campaigns.names import NAMES
from dpcompose import Bound, Composition
from dpcompose.errors import UnsupportedError
from dpcompose.values import Bounds

VIOLATIONS = ("failed", "empty", "apart", "below", "above")
CLOSE = 2e-6
"""Ends of answers that are no wider than the library asks of itself may differ by so much of themselves."""
BLOCK = 20
"""Cases that are asked as one batch."""


class OutOfTimeError(Exception):
    """A question took too long."""


@dataclass(frozen=True)
class Case:
    """A composition by the lines of Python of its parts, and what it is asked."""

    parts: tuple[str, ...]
    delta: float

    @property
    def code(self) -> str:
        """The composition as a line of Python."""
        return f"compose({', '.join(self.parts)})"

    def of(self, *parts: str) -> Composition:
        """The composition of these parts; without any, of all."""
        return dpcompose.compose([build(part) for part in parts or self.parts])


def build(part: str) -> Composition:
    """What a line of Python makes."""
    return eval(part, NAMES)


def drawn(number: int, seed: int) -> Case:
    """The case of that number."""
    rng = Random(f"{seed} extremes {number}")
    parts = [_part(rng) for _ in range(rng.choice([1, 2, 2, 3]))]
    if rng.random() < 1 / 3:
        parts = [_ordinary(rng) for _ in range(rng.choice([1, 1, 2]))] + [_free(rng)]
    decades = [(0.3, 12.0), (0.3, 12.0), (12.0, 100.0), (100.0, 300.0)]
    return Case(tuple(dict.fromkeys(parts)), 10 ** -rng.uniform(*rng.choice(decades)))


def _part(rng: Random) -> str:
    noise, times = 10 ** rng.uniform(math.log10(0.05), 6), int(10 ** rng.uniform(0, 7))
    sample = f".sampled({10 ** -rng.uniform(0, 12)!r})" if rng.random() < 0.75 else ""
    return f"{rng.choice(['Gaussian', 'Gaussian', 'Laplace'])}({noise!r}){sample} * {times}"


def _ordinary(rng: Random) -> str:
    """A phase of training of a few epochs."""
    noise, rate, times = (
        rng.uniform(0.7, 12),
        10 ** rng.uniform(-3, -0.3),
        int(10 ** rng.uniform(1, 4)),
    )
    return f"Gaussian({noise!r}).sampled({rate!r}) * {times}"


def _free(rng: Random) -> str:
    """A phase that costs nearly nothing."""
    noise, rate = 10 ** rng.uniform(4, 6), 10 ** -rng.uniform(0, 6)
    return f"Gaussian({noise!r}).sampled({rate!r}) * {int(10 ** rng.uniform(0, 4))}"


@dataclass
class Trial:
    """The questions of a campaign, their limit of time, and its findings."""

    seconds: float
    options: dict[str, Any] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def note(self, kind: str, case: Case, text: str) -> None:
        """Count a finding, and print it."""
        self.counts[kind] += 1
        self.lines.append(f"{kind.upper()} {case.code}, delta {case.delta!r}: {text}")
        print(self.lines[-1], flush=True)

    def read(self, case: Case, question: Callable[..., Any], **number: Any) -> Any:
        """The answer to one question; None if there is none within the time."""
        self.counts["questions"] += 1
        try:
            with limited(self.seconds), warnings.catch_warnings(action="error"):
                answer = question(**number, **self.options)
        except OutOfTimeError:
            self.note("slow", case, f"more than {self.seconds:g} s, {number}")
            return None
        except UnsupportedError:
            self.counts["refused"] += 1
            return None
        except Exception as error:  # whatever it is, it is what the campaign looks for
            self.note("failed", case, f"{type(error).__name__}: {error}, {number}")
            return None
        if isinstance(answer, Bound) and not 0 <= answer.lower <= answer.upper:
            self.note("empty", case, f"{answer}, {number}")
            return None
        return answer

    def one(self, case: Case) -> None:
        """Ask one case, and hold its answers against the laws."""
        whole = case.of()
        self.counts["cases"] += 1
        answer = self.read(case, whole.epsilon, delta=case.delta)
        if answer is None:
            return
        self.counts["wide"] += answer.upper > 2 * answer.lower
        self._inverse(case, whole, answer)
        epsilon = min(answer.upper, 1e3) / 2
        for name, question, number in (
            ("epsilon", partial(dpcompose.epsilon, [whole]), {"delta": case.delta}),
            ("delta", partial(dpcompose.delta, [whole]), {"epsilon": epsilon}),
        ):
            single = answer if name == "epsilon" else self.read(case, whole.delta, epsilon=epsilon)
            batch = self.read(case, question, **number)
            if single is not None and batch is not None and not meet(single, batch[0]):
                self.note("apart", case, f"{name}, alone {single}, as a batch {batch[0]}, {number}")
            if single is not None:
                self._parts(case, name, number, single)

    def _inverse(self, case: Case, whole: Composition, answer: Bound) -> None:
        for end, sign in ((answer.upper, 1), (answer.lower, -1)):
            if not 0 < end < math.inf or (sign > 0 and case.delta == 0):
                continue
            delta = self.read(case, whole.delta, epsilon=end)
            if delta is not None and not (
                delta.lower <= case.delta * (1 + 1e-9)
                if sign > 0
                else delta.upper >= case.delta * (1 - 1e-9)
            ):
                self.note("apart", case, f"epsilon {answer}, and delta({end!r}) = {delta}")

    def _parts(self, case: Case, name: str, number: dict[str, float], whole: Bound) -> None:
        """What some of the parts attain is attained; what a part costs without its sample is enough."""
        for size in range(1, len(case.parts)):
            for some in combinations(case.parts, size):
                part = self.read(case, getattr(case.of(*some), name), **number)
                if part is not None and not part.lower <= whole.lower * (1 + CLOSE):
                    self.note(
                        "below", case, f"{name} {whole}, and of {some} alone {part}, {number}"
                    )
                if part is not None and not part.lower <= whole.upper * (1 + 1e-9):
                    self.note(
                        "below",
                        case,
                        f"{name} {whole}, and of {some} alone {part}, {number}: UNSOUND",
                    )
        for at, each in enumerate(case.parts):
            if ".sampled" in each:
                inner = f"{each[: each.index('.sampled')]} * {each.rpartition(' * ')[2]}"
                others = (*case.parts[:at], inner, *case.parts[at + 1 :])
                plain = self.read(case, getattr(case.of(*others), name), **number)
                if plain is not None and not whole.lower <= plain.upper * (1 + 1e-9):
                    self.note("above", case, f"{name} {whole}, and with {inner} {plain}, {number}")
                elif plain is not None and not whole.upper <= plain.upper * (1 + CLOSE):
                    self.note("loose", case, f"{name} {whole}, and with {inner} {plain}, {number}")

    def together(self, cases: list[Case]) -> None:
        """Ask cases as one batch: each answer is that of a batch of one, to the last bit."""
        wholes, deltas = [case.of() for case in cases], [case.delta for case in cases]
        batch = self.read(cases[0], partial(dpcompose.epsilon, wholes, masked=True), delta=deltas)
        if batch is None:
            return
        for at, case in enumerate(cases):
            one = partial(dpcompose.epsilon, [wholes[at]], masked=True)
            alone = self.read(case, one, delta=case.delta)
            if alone is not None and _ends(alone, 0) != _ends(batch, at):
                self.note(
                    "apart",
                    case,
                    f"in a batch {_ends(batch, at)}, in one of its own {_ends(alone, 0)}",
                )


def _ends(bounds: Bounds, at: int) -> tuple[str, str]:
    return repr(float(bounds.lower[at])), repr(float(bounds.upper[at]))


def meet(one: Bound, other: Bound) -> bool:
    """Whether two answers to one question have a number in common, to a rounding."""
    return max(one.lower, other.lower) <= min(one.upper, other.upper) * (1 + 1e-12)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise in whatever takes more than so much processor time."""

    def stop(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run(numbers: range, seed: int, trial: Trial) -> Trial:
    """All cases of these numbers; those of a block that are quick are asked together too."""
    for first in range(numbers.start, numbers.stop, BLOCK):
        cases = [drawn(number, seed) for number in range(first, min(first + BLOCK, numbers.stop))]
        quick: list[Case] = []
        for case in cases:
            slow = trial.counts["slow"]
            trial.one(case)
            quick += [case] if trial.counts["slow"] == slow else []
        limit, trial.seconds = trial.seconds, trial.seconds * max(len(quick), 1)
        if quick:
            trial.together(quick)
        trial.seconds = limit
    return trial


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="processor time of one question")
    parser.add_argument("--adjacency", default="add-remove")
    parser.add_argument("--orientation", default="same")
    options = parser.parse_args()
    asked: dict[str, Any] = {}
    if (options.adjacency, options.orientation) != ("add-remove", "same"):
        asked = {
            "adjacency": options.adjacency,
            "orientation": dpcompose.Orientation(options.orientation),
        }
    trial = run(
        range(options.first, options.first + options.cases),
        options.seed,
        Trial(options.seconds, asked),
    )
    print(", ".join(f"{kind} {count}" for kind, count in sorted(trial.counts.items())))
    return 1 if any(trial.counts[kind] for kind in VIOLATIONS) else 0


if __name__ == "__main__":
    sys.exit(main())
