"""One random composition: whether all known intervals for its delta(epsilon) and epsilon(delta)
agree.

At the epsilon of the first question and at both ends of the second, the library's answer is one
interval around the true delta; the lines (`lines`), the lattice (`tilted`) and, if it is to be
proved, ball arithmetic (`verdicts`) give others. Each two of them must intersect: no lower end may
be above an upper one.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from random import Random
from typing import Any

from flint import arb

import dpcompose
from campaigns.names import NAMES
from campaigns.soundness import elementary, lines, subject, verdicts
from campaigns.soundness.families import FAMILIES
from dpcompose import Bound
from dpcompose.composition.question import Asking, PrivacyQuestion, ask
from dpcompose.errors import UnsupportedError
from oracles import tilted

REPLACING = {"local_randomizers", "replaced", "replaced_sgd", "replaced_edges"}
REPLACING |= {"short_replaced", "vast_replaced", "many_replaced", "replaced_little_noise"}
TOLERANCES = {1e-3: 3, 1e-6: 3, 1e-9: 3, 1e-12: 1}
WIDE = 0.5
Asked = tuple[Bound | None, float]
Interval = tuple[str, float, float]


TOGETHER = ("sgd_together", "phases_together", "little_noise_together")
"""Families that are asked as a batch, whose arrays answer them where they can."""


@dataclass(frozen=True)
class Case:
    """A composition and what it is asked."""

    family: str
    number: int
    seed: int

    @cached_property
    def rng(self) -> Random:
        return Random(f"{self.seed} {self.family} {self.number}")

    @cached_property
    def parts(self) -> subject.Parts:
        return FAMILIES[self.family](self.rng)

    @cached_property
    def code(self) -> str:
        """The composition as a line of Python."""
        return subject.code(self.parts) + (".group(3)" if self.family == "groups_of_three" else "")

    @cached_property
    def options(self) -> dict[str, object]:
        tolerance = self.rng.choices([*TOLERANCES], [*TOLERANCES.values()])[0]
        if self.family in REPLACING:
            return {"tolerance": tolerance, "adjacency": dpcompose.Adjacency.REPLACE}
        return {"tolerance": tolerance}

    @cached_property
    def delta(self) -> float:
        decades = [(0.3, 12.0), (0.3, 12.0), (12.0, 100.0), (100.0, 300.0)]
        return 10 ** -self.rng.uniform(*self.rng.choice(decades))

    def epsilon(self, answer: Bound | None) -> float:
        """Near the one that belongs to delta, between it and 0, negative, 0, or next to the largest loss."""
        scale = answer.upper if answer is not None and 0 < answer.upper < math.inf else 1.0
        largest = subject.largest(self.parts)
        if self.rng.random() < 0.15 and largest < math.inf:
            return largest * (1 - 10 ** self.rng.uniform(-16, -1))
        factor = self.rng.choice(
            [1.0, 1.0, self.rng.uniform(0.3, 1.1), self.rng.uniform(0, 1), 0.0, None]
        )
        return scale * (-self.rng.uniform(0, 0.5) if factor is None else factor)


@dataclass
class Findings:
    """The findings about one composition: counts that add up, and lines to be printed."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=partial(defaultdict, float))
    lines: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        self.counts += other.counts
        for kind, spent in other.seconds.items():
            self.seconds[kind] += spent
        self.lines += other.lines

    def note(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        self.lines.append(f"{kind.upper()} {text}")


def examine(case: Case, *, prove: bool = False, proof: bool = False) -> Findings:
    """Ask both questions and hold all intervals against each other, with `prove` those of ball arithmetic too."""
    found = Findings()
    parts, options = case.parts, {**case.options, "proof": proof}
    composition = eval(case.code, NAMES)
    delta = case.delta
    asked = _asked(found, case, composition, "epsilon", options, delta=delta)
    epsilon = case.epsilon(asked)
    answer = _asked(found, case, composition, "delta", options, epsilon=epsilon)
    found.counts["compositions"] += 1
    claims: list[tuple[str, float, float, float]] = []
    if asked is not None:
        claims.append((f"epsilon(delta={delta!r}", asked.upper, 0.0, delta))
        if asked.lower > 0:
            claims.append((f"epsilon(delta={delta!r}", asked.lower, delta, 1.0))
    if answer is not None:
        claims.append((f"delta(epsilon={epsilon!r}", epsilon, answer.lower, answer.upper))
    truth = None
    if prove and asked is not None and answer is not None:
        start = time.process_time()
        truth = lru_cache(maxsize=None)(lambda place: subject.delta(place, parts))
        _prove(found, case, composition, (asked, delta), (answer, epsilon), truth)
        found.seconds["balls"] += time.process_time() - start
    _compare(found, case, composition, claims, truth)
    if case.family != "groups_of_three":
        _beside_theorems(found, case, (asked, delta), (answer, epsilon))
    return found


def _beside_theorems(found: Findings, case: Case, first: Asked, second: Asked) -> None:
    """No answer is above what an elementary theorem says, by more than its tolerance; for delta: of a smaller delta."""
    start, tolerance = time.process_time(), case.options["tolerance"]
    assert isinstance(tolerance, float)
    (asked, delta), (answer, epsilon) = first, second
    known = elementary.Theorems(case.parts, case.options)
    rows: list[tuple[str, float, float]] = []
    if asked is not None:
        rows.append((f"epsilon(delta={delta!r}", asked.upper, delta))
    if answer is not None and epsilon > 0 and 1e-300 < answer.upper < 1:
        rows.append((f"delta(epsilon={epsilon!r}", epsilon, answer.upper * (1 - 1e-6)))
    for text, place, mass in rows:
        theorem, smaller = known.least(mass)
        found.counts["theorems"] += 1
        if smaller < place * (1 - max(tolerance, 1e-6)) - 1e-9:
            found.note(
                "loose",
                f"{case.code}.{text}, **{case.options}): {place!r} is above {smaller!r} by {theorem}",
            )
    found.seconds["theorems"] += time.process_time() - start


def _asked(
    found: Findings,
    case: Case,
    composition: dpcompose.Composition,
    asked: str,
    options: dict[str, object],
    **question: float,
) -> Bound | None:
    start = time.process_time()
    try:
        with warnings.catch_warnings(action="error"):
            if case.family in TOGETHER and not options["proof"]:
                batch = {name: value for name, value in options.items() if name != "proof"}
                answer = getattr(dpcompose, asked)([composition], **question, **batch)[0]
            else:
                answer = getattr(composition, asked)(**question, **options)
        found.counts["answers"] += 1
        vacuous = answer.upper == math.inf or (
            answer.lower <= 0 and answer.upper >= 1 and asked == "delta"
        )
        found.counts["without news"] += vacuous
        found.counts["over 1% wide"] += not vacuous and answer.width > 0.01 * abs(answer.upper)
        return answer
    except UnsupportedError as error:
        found.note("refused", f"{case.code}.{asked}(**{question}, **{options})  # {error}")
    except Exception as error:  # whatever it is, it is what the campaign looks for
        found.note(
            "failed",
            f"{case.code}.{asked}(**{question}, **{options})  # {type(error).__name__}: {error}",
        )
    finally:
        found.seconds["answers"] += time.process_time() - start
    return None


def _compare(
    found: Findings,
    case: Case,
    composition: dpcompose.Composition,
    claims: list[tuple[str, float, float, float]],
    truth: verdicts.Truth | None,
) -> None:
    """The claims against lines, lattice and, where there is one, the truth."""
    try:
        question = _question(case, composition)
    except UnsupportedError:
        return
    opinions = _Opinions(case, question, found)
    for text, place, low, high in claims:
        if not math.isfinite(place):
            continue
        known = [("answer", low, high), *opinions(place)]
        if truth is not None:
            known.append(("ball", *ends(truth(place))))
        if subject.dominating(case.parts):
            known = [known[0], *((name, 0.0, upper) for name, _, upper in known[1:])]
        for name, lower, upper in known:
            found.counts[name] += 1
            found.counts[f"{name} wide"] += upper - lower > WIDE * upper
        least, most = max(known, key=lambda row: row[1]), min(known, key=lambda row: row[2])
        if least[1] > most[2]:
            found.note(
                "apart",
                f"{case.code}.{text}, **{case.options}): at {place!r} {least} against {most}",
            )


def _question(case: Case, composition: Any) -> PrivacyQuestion:
    adjacency: Any = case.options.get("adjacency", dpcompose.Adjacency.ADD_REMOVE)
    tolerance: Any = case.options["tolerance"]
    asking = Asking(adjacency, tolerance=tolerance)
    if case.family == "groups_of_three":
        return composition._question(asking)
    return ask(composition.parts, asking)


class _Opinions:
    """Intervals around delta at any epsilon, from lines and lattices that are drawn once and again where they fail."""

    def __init__(self, case: Case, question: PrivacyQuestion, found: Findings) -> None:
        self.case, self.question, self.found = case, question, found
        self.drawn: list[tuple[float, list[lines.Lines | None]]] = []
        self.lattices: list[tilted.Enclosure | None] | None = None

    def __call__(self, place: float) -> Iterator[Interval]:
        start = time.process_time()
        rows = [line(place) if line else [] for line in self._lines(place)]
        middle = time.process_time()
        self.found.seconds["lines"] += middle - start
        self.found.counts["line"] += sum(map(len, rows))
        self.found.counts["line wide"] += sum(
            high - low > WIDE * high for row in rows for low, high in row
        )
        if rows and all(rows):
            # One direction by all its lines, and the larger direction.
            ends = [(max(low for low, _ in row), min(high for _, high in row)) for row in rows]
            for direction, (low, high) in enumerate(ends):
                if low > high:
                    self.found.note(
                        "apart",
                        f"{self.case.code} at {place!r}, direction {direction}: {rows[direction]}",
                    )
            least = max(low for low, _ in ends) if self.question.tight else 0.0
            yield "lines", least, max(high for _, high in ends)
        lattices = self._lattices(place)
        if lattices and all(lattices):
            values = [lattice(place) for lattice in lattices if lattice]
            yield "lattice", max(low for low, _ in values), max(high for _, high in values)
        self.found.seconds["lattice"] += time.process_time() - middle

    def _lines(self, place: float) -> list[lines.Lines | None]:
        """Those drawn for a place close by, or new ones: four for the first place, one for others."""
        for near, known in self.drawn:
            if abs(near - place) <= 1e-3 * abs(place):
                return known
        tilts = lines.TILTS if not self.drawn else lines.TILTS[self.case.number % 2 * 3 :][:1]
        tolerance = float(str(self.case.options["tolerance"]))
        new = []
        for product in self.question.dominating:
            try:
                new.append(lines.drawn(product, place, tolerance, tilts=tilts))
            except (ArithmeticError, ValueError) as error:
                new.append(None)
                self.found.note(
                    "no line", f"{self.case.code} at {place!r}: {type(error).__name__}: {error}"
                )
        self.drawn.append((place, new))
        return new

    def _lattices(self, place: float) -> list[tilted.Enclosure | None]:
        """One for each direction, tilted for the first place; of what needs more than one lattice, every second."""
        if self.lattices is None:
            orders = [line.order if line else 1.0 for line in self.drawn[0][1]] or [1.0]
            points = tilted.POINTS if len(self.case.parts) < 8 else tilted.POINTS // 4
            staged = any(times > tilted.MOST[1] for _, times in self.case.parts)
            skipped = staged and self.case.number % 2 == 1
            rows = zip(
                [] if skipped else subject.in_cells(self.case.parts),
                subject.infinite(self.case.parts),
                strict=False,
            )
            self.lattices = [
                tilted.enclosure(
                    row,
                    order=orders[at % len(orders)],
                    target=self.case.delta,
                    infinite=infinite,
                    points=points,
                )
                for at, (row, infinite) in enumerate(rows)
            ]
        return self.lattices


def _prove(
    found: Findings,
    case: Case,
    composition: dpcompose.Composition,
    first: tuple[Bound, float],
    second: tuple[Bound, float],
    truth: verdicts.Truth,
) -> None:
    """Both answers against ball arithmetic; where its balls are too wide, against the library's own proof."""
    rows = [
        (
            verdicts.epsilon_verdict(*first, case.parts, truth),
            f"epsilon(delta={first[1]!r}",
            first[0],
        ),
        (
            verdicts.delta_verdict(*second, case.parts, truth),
            f"delta(epsilon={second[1]!r}",
            second[0],
        ),
    ]
    shown = [
        f"{case.code}.{text}, **{case.options}): [{bound.lower!r}, {bound.upper!r}], {said}"
        for (_, said), text, bound in rows
    ]
    worst = max((verdict for (verdict, _), _, _ in rows), key=verdicts.WORST.index)
    found.counts["tried"] += 1
    if worst == "outside":
        for ((verdict, _), _, _), line in zip(rows, shown, strict=True):
            if verdict == "outside":
                found.note("outside", line)
    elif worst != "open":
        found.counts["proved"] += 1
        found.counts["vacuous"] += worst == "vacuous"
    else:
        found.note(
            "unproved",
            next(line for (row, line) in zip(rows, shown, strict=True) if row[0][0] == "open"),
        )
        try:
            options = {**case.options, "proof": True}
            own = [
                composition.epsilon(delta=first[1], **options),
                composition.delta(epsilon=second[1], **options),
            ]
        except UnsupportedError:
            return
        ahead = [
            max(each.lower, row[2].lower) <= min(each.upper, row[2].upper)
            for each, row in zip(own, rows, strict=True)
        ]
        inside = [
            row[2].lower <= each.lower and each.upper <= row[2].upper
            for each, row in zip(own, rows, strict=True)
        ]
        found.counts["own proof"] += all(inside)
        for meets, each, line in zip(ahead, own, shown, strict=True):
            if not meets:
                found.note(
                    "apart", f"{line} against its own proof [{each.lower!r}, {each.upper!r}]"
                )


def ends(value: arb) -> tuple[float, float]:
    """Two floats around a ball."""
    return math.nextafter(float(value.lower()), -math.inf), math.nextafter(
        float(value.upper()), math.inf
    )
