"""The real noise path over the exact aggregates of two neighboring tables: no event may tell them apart too well.

python -m campaigns.release.audit [DRAWS] [SESSIONS] [QUESTION ...]      (10^6 draws, 10^4 sessions: half an hour)

For each question the aggregates of a table and of one without a unit are drawn from again and again, by the design that
is charged. Events are fixed before: levels of statistics of each released answer. With probability at least 1 - ALARM
over the whole audit, no event of a private design has an empirical excess P(E) - e^epsilon Q(E) - delta above its
margin; so an excess is a violation. Planted defects must be found.
"""

from __future__ import annotations

import math
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import dpcompose.release as release
from dpcompose import Composition, compose
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.ledger import Ledger
from dpcompose.release import session as asking
from dpcompose.release.aggregate import exact, statement
from dpcompose.release.bounds import Change
from dpcompose.release.design import Design, NoiseStep, Released
from dpcompose.release.noise import DiscreteLaplaceNoise
from dpcompose.release.spend import Spend
from dpcompose.release.table import Table

ALARM = 1e-6
"""The probability that the audit of private designs reports any violation at all, at most."""
DELTA = 1e-3
ROWS = 2
_SPEND = {"epsilon": 1}
_PRIVATE = {"epsilon": 1, "delta": DELTA}
_CITIES = ["a", "b", "c"]

QUESTIONS: dict[str, release.Question] = {
    "count": release.Count(spend=_SPEND),
    "count by keys": release.Count(by="city", keys=_CITIES, spend=_SPEND),
    "count, Gaussian": release.Count(by="city", keys=_CITIES, spend=_PRIVATE),
    "count by private keys": release.Count(by="city", spend=_PRIVATE),
    "units by keys": release.Units(by="city", keys=_CITIES, spend=_SPEND),
    "units by private keys": release.Units(by="city", spend=_PRIVATE),
    "sum": release.Sum("amount", lower=0, upper=3, granularity=1, spend=_SPEND),
    "mean": release.Mean("amount", lower=0, upper=4, granularity=1, spend=_SPEND),
    "histogram": release.Histogram("amount", edges=[0, 2, 4, "1e21"], by="city", keys=_CITIES, spend=_SPEND),
    "quantile": release.Quantile("amount", 0.5, lower=0, upper=4, granularity=1, spend=_SPEND),
}


def neighbors() -> tuple[Table, Table]:
    """A table, and the same with a unit that alone holds a key, shares another, and pulls every number one way."""
    rows = [("p1", "a", 1.0), ("p2", "a", 2.0), ("p2", "b", 0.0), ("p3", "b", 4.0)]
    unit = [("q", "c", 9.0), ("q", "a", 1e20)]
    return _table(rows), _table(rows + unit)


def _table(rows: Sequence[tuple[str, str, float]]) -> Table:
    names = ("person", "city", "amount")
    frame = pa.table(dict(zip(names, (list(cells) for cells in zip(*rows, strict=True)), strict=True)))
    return release.table(frame, unit="person", max_rows_per_unit=ROWS)


Outcome = tuple[Any, ...]


PLACES, LEVELS, LENGTHS = 9, range(-60, 121), range(13)
STATISTICS: dict[str, tuple[Callable[[Outcome], int], range]] = {
    "parts": (len, LENGTHS),
    "sum": (lambda seen: sum(_numbers(seen)), LEVELS),
    "sum mod 4": (lambda seen: sum(_numbers(seen)) % 4, range(4)),
    **{f"has {key}": (lambda seen, key=key: int(key in seen), range(2)) for key in _CITIES},
    **{f"number {place}": (lambda seen, place=place: _at(seen, place), LEVELS) for place in range(PLACES)},
}
"""The events, fixed before anything is drawn: for each statistic "= level" and ">= level"."""
EVENTS = 2 * sum(len(levels) for _, levels in STATISTICS.values())


@dataclass(frozen=True)
class Tally:
    """How often each level of each statistic came, of so many draws."""

    counts: dict[str, Counter[int]]
    draws: int

    @classmethod
    def of(cls, seen: Iterable[Outcome]) -> Tally:
        counts: dict[str, Counter[int]] = {name: Counter() for name in STATISTICS}
        draws = 0
        for times, outcome in ((times, each) for each, times in Counter(seen).items()):
            draws += times
            for name, (statistic, levels) in STATISTICS.items():
                counts[name][min(max(statistic(outcome), levels[0]), levels[-1])] += times
        return cls(counts, draws)

    def chance(self, name: str, level: int, *, above: bool) -> float:
        found = self.counts[name]
        if not above:
            return found[level] / self.draws
        return sum(times for each, times in found.items() if each >= level) / self.draws


@dataclass(frozen=True)
class Excess:
    """The excess that is largest in units of its margin: above the margin it is a violation.

    Args:
        excess: P(E) - e^epsilon Q(E) - delta, as measured.
        margin: What chance explains.
        event: The event, in words.
    """

    excess: float
    margin: float
    event: str

    @property
    def violated(self) -> bool:
        return self.excess > self.margin


def outcome(drawn: Released) -> Outcome:
    """What an analyst sees, as a tuple of small integers: keys, and numbers clamped far out."""
    numbers = [min(max(number, -60), 60) for step in drawn.released for cell in step for number in cell]
    return (*(part for key in drawn.keys for part in key), *numbers)


CHUNK = 20_000


def batched(design: Design, found: Any, draws: int) -> Tally:
    """So many draws of a design: its groups are copied, and one draw of all copies goes the way of a single one."""
    public = design.aggregation.public

    def copied(number: int) -> tuple[Design, Any, range]:
        many = {(copy, *key): numbers for copy in range(number) for key, numbers in found.items()}
        groups = None if public is None else tuple((copy, *key) for copy in range(number) for key in public)
        return replace(design, aggregation=replace(design.aggregation, public=groups)), many, range(number)

    def outcomes() -> Iterator[Outcome]:
        whole, rest = divmod(draws, CHUNK)
        for times, number in ((whole, CHUNK), (1, rest)):
            if times and number:
                several, many, copies = copied(number)
                for _ in range(times):
                    yield from _apart(several.draw(many), copies)

    return Tally.of(outcomes())


def _apart(drawn: Released, copies: range) -> Iterator[Outcome]:
    """What an analyst sees of each copy, as a tuple: the keys, then the numbers, clamped far out."""
    seen: list[tuple[list[Any], list[int]]] = [([], []) for _ in copies]
    for place, key in enumerate(drawn.keys):
        keys, numbers = seen[key[0]]
        keys += key[1:]
        numbers += [min(max(number, LEVELS[0]), LEVELS[-1]) for step in drawn.released for number in step[place]]
    return ((*keys, *numbers) for keys, numbers in seen)


def worst(one: Tally, other: Tally, *, epsilon: float, delta: float, alarm: float) -> Excess:
    """The event whose excess is largest in units of its margin, in either order.

    Empirical Bernstein: each of the 2 EVENTS chances is within sqrt(2 v L / n) + 7 L / (3 (n - 1)) of the truth, v the
    sample variance and L = ln(4 EVENTS / alarm), all together with probability 1 - alarm.
    """
    logarithm = math.log(4 * EVENTS / alarm)
    found = Excess(-math.inf, 1.0, "none")
    for name, (_, levels) in STATISTICS.items():
        for level in levels:
            for above in (True, False):
                p, q = (tally.chance(name, level, above=above) for tally in (one, other))
                spread, others = (_margin(each, min(one.draws, other.draws), logarithm) for each in (p, q))
                event = f"{name} {'>=' if above else '='} {level}"
                for order, x, y, dx, dy in (("first", p, q, spread, others), ("second", q, p, others, spread)):
                    excess = x - math.exp(epsilon) * y - delta
                    margin = dx + math.exp(epsilon) * dy
                    if excess / margin > found.excess / found.margin:
                        found = Excess(excess, margin, f"{event}, {order}")
    return found


def _margin(chance: float, draws: int, logarithm: float) -> float:
    variance = chance * (1 - chance) * draws / (draws - 1)
    return math.sqrt(2 * variance * logarithm / draws) + 7 * logarithm / (3 * (draws - 1))


def _numbers(seen: Outcome) -> list[int]:
    return [part for part in seen if isinstance(part, int)]


def _at(seen: Outcome, place: int) -> int:
    numbers = _numbers(seen)
    return numbers[place] if place < len(numbers) else LEVELS[0]


def price(design: Design, delta: float) -> float:
    """The certified epsilon of what is charged."""
    return compose(design.mechanism).epsilon(delta=delta).upper


def totals(asked: release.Question, table: Table) -> Counter[tuple[Any, ...]]:
    """The exact integers of a question, by group, bin and measure."""
    found = exact(table, asked.design(table).aggregation)
    cells = ((key, bin, numbers) for key, bins in found.items() for bin, numbers in bins.items())
    return Counter({(key, bin, at): n for key, bin, numbers in cells for at, n in enumerate(numbers)})


def audited(asked: release.Question, draws: int, alarm: float) -> Excess:
    """The worst event of one question."""
    first, second = neighbors()
    design = asked.design(first)
    delta = DELTA if design.spend.delta else 0.0
    tallies = [batched(design, exact(table, design.aggregation), draws) for table in (first, second)]
    return worst(tallies[0], tallies[1], epsilon=price(design, delta), delta=delta, alarm=alarm)


def sessions(count: int, alarm: float) -> Excess:
    """The worst event of whole sessions: a batch of three questions, charged and answered, on both tables."""
    asked = [QUESTIONS["count"], QUESTIONS["units by keys"], QUESTIONS["sum"]]
    small = [replace(question, spend={"epsilon": "0.5"}) for question in asked]
    ledger = Ledger.open("memory:")
    open_scope(ledger, "world", filter=BasicFilter(1e7, delta=0.5), actor="keeper")

    def played(table: Table) -> Tally:
        session = release.Session(table, ledger=ledger, scope="world", actor="ana")
        # To write the same statements again takes most of a session's time, and tells nothing.
        made = cache(lambda what: statement(table, what))
        with patch.object(asking, "statement", lambda _table, what, _sampling: made(what)):
            return Tally.of(tuple(n for each in session.batch(small) for n in _seen(each)) for _ in range(count))

    tallies = [played(table) for table in neighbors()]
    whole: Composition = compose(*(question.design(neighbors()[0]).mechanism for question in small))
    return worst(tallies[0], tallies[1], epsilon=whole.epsilon(delta=0.0).upper, delta=0.0, alarm=alarm)


def _seen(answer: release.Answer) -> list[int]:
    return [min(max(int(n), -60), 60) for n in answer.columns[-1].cells]


# --- Planted defects: each must be found. ---


def too_little_noise(draws: int) -> Excess:
    """Noise for a sensitivity of 1 where 2 is due."""
    first, second = neighbors()
    honest = QUESTIONS["count"].design(first)
    one = Change(1, 1, 1, 1, box=True)
    design = replace(honest, steps=(NoiseStep(DiscreteLaplaceNoise.costing(one, Spend(Fraction(1), "epsilon"))),))
    tallies = [batched(design, exact(table, design.aggregation), draws) for table in (first, second)]
    return worst(tallies[0], tallies[1], epsilon=price(honest, 0.0), delta=0.0, alarm=ALARM)


def missing_group_dropped(draws: int) -> Excess:
    """Only the groups that have rows come out, without a threshold."""
    first, second = neighbors()
    design = QUESTIONS["count by keys"].design(first)

    def drawn(table: Table) -> Tally:
        found = exact(table, design.aggregation)
        there = replace(design, aggregation=replace(design.aggregation, public=tuple(sorted(found))))
        return batched(there, found, draws)

    tallies = [drawn(table) for table in (first, second)]
    return worst(tallies[0], tallies[1], epsilon=price(design, 0.0), delta=0.0, alarm=ALARM)


def noise_before_clamping(draws: int) -> Excess:
    """Noise for clamped values on a sum of values that were never clamped."""
    first, second = neighbors()
    design = QUESTIONS["sum"].design(first)
    wide = release.Sum("amount", lower=0, upper=30, granularity=1, spend=_SPEND).design(first)
    tallies = [batched(design, exact(table, wide.aggregation), draws) for table in (first, second)]
    return worst(tallies[0], tallies[1], epsilon=price(design, 0.0), delta=0.0, alarm=ALARM)


def float_sum(draws: int) -> Excess:
    """A sum in floating point, on a table built to expose it: one unit's rows decide how all others are rounded.

    In half precision, so that a thousand rows do; doubles do the same with more rows. Below 2048 halves are 1 apart,
    above 2 apart: -0.6 and +0.4 take 1 off there and nothing here. A unit that lifts the sum over 2048 saves 500.
    """
    others = [2047.0, *([-0.6, 0.4] * 500)]
    unit = [1.5, 1.5]
    honest = release.Sum("amount", lower=-3, upper=3, granularity=1, spend=_SPEND).design(neighbors()[0])

    def added(values: Sequence[float]) -> int:
        total = 0.0
        for value in values:
            (total,) = struct.unpack("e", struct.pack("e", total + value))
        return int(total) - 2040

    tallies = [batched(honest, {(): {0: (1, added(rows))}}, draws) for rows in (others, unit + others)]
    return worst(tallies[0], tallies[1], epsilon=price(honest, 0.0), delta=0.0, alarm=ALARM)


PLANTED: dict[str, Callable[[int], Excess]] = {
    "sensitivity 1 where 2 is due": too_little_noise,
    "a missing group dropped": missing_group_dropped,
    "noise before clamping": noise_before_clamping,
    "a float sum": float_sum,
}


def main() -> None:
    draws = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6
    played = int(float(sys.argv[2])) if len(sys.argv) > 2 else 10**4
    chosen = sys.argv[3:] or [*QUESTIONS, "sessions", "planted"]
    alarm = ALARM / (len(QUESTIONS) + 1)
    bad = False
    for name in chosen:
        began = time.perf_counter()
        if name == "planted":
            for planted, plant in PLANTED.items():
                found = plant(min(draws, 10**5))
                bad |= not found.violated
                print(f"planted: {planted:32} {found.excess:+.5f} margin {found.margin:.5f}  {found.event}", flush=True)
            continue
        found = sessions(played, alarm) if name == "sessions" else audited(QUESTIONS[name], draws, alarm)
        bad |= found.violated
        took = time.perf_counter() - began
        print(f"{name:24} {found.excess:+.5f} margin {found.margin:.5f}  {found.event}  {took:.0f} s", flush=True)
    verdict = "a violation, or a plant missed" if bad else "all as it should be"
    print(f"false alarm probability at most {ALARM:g}: {verdict}")
    sys.exit(bad)


if __name__ == "__main__":
    main()
