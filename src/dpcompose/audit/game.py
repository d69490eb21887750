"""The state of an audit: its arms, its chain of coins, its wealth, and the ladder and the events beside it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit import certificate as written
from dpcompose.audit.arm import Arm, tallies
from dpcompose.audit.certificate import Chain
from dpcompose.audit.feature import RECURRING, event_in_words
from dpcompose.audit.lower import GROWTH, Ladder
from dpcompose.audit.outcome import Outcomes, Reals
from dpcompose.audit.outcome_text import outcomes_of, text_of_outcomes
from dpcompose.audit.stakes import Cells
from dpcompose.audit.subject import Samples, Source
from dpcompose.audit.table import table_of, words_of
from dpcompose.audit.tried import Converse, unseen
from dpcompose.audit.verdict import Moment, Tried
from dpcompose.audit.wealth import Member, step

SPREAD = 1.5
"""The pair of rank r by hope has about 1 / r^SPREAD of the rows of the first one: half of them go to it."""
LADDER_ROWS = 4096
"""Rows after which the lower bound is computed while the audit goes on."""
ALIKE = 0.95
"""The part of the calls of a batch, about one pair, that fail alike where nothing is audited."""
Entry = dict[str, Any]


@dataclass(frozen=True)
class Batch:
    """A batch whose stakes are bound, and whose coins are tossed.

    Args:
        arm: The place of the pair.
        members: The bets.
        stakes: The bets as they are bound.
        coins: The coins, of which nothing was known before.
    """

    arm: int
    members: tuple[Member, ...]
    stakes: Entry
    coins: NDArray[np.uint8]


@dataclass
class Game:
    """The state of an audit.

    Args:
        arms: The pairs, with their past.
        chain: The chain of coins.
        goal: ln of the wealth at which the claim is refuted.
        ladder: The lower bound on epsilon.
        converse: For each arm, the events tried.
        lost: How often the rows of the next batch were in flight when a run was interrupted: that is bound with its
            stakes, so that it has coins of its own, which no lost row has met.
        unread: What was not looked at, and the most of it in one outcome.
        failed: What the calls did that did not answer, in words; those of a batch that are alike, but not the others.
        answered: Whether any call answered.
    """

    arms: tuple[Arm, ...]
    chain: Chain
    goal: float
    ladder: Ladder
    converse: tuple[Converse, ...]
    lost: int = 0
    log_wealth: float = 0.0
    peak: float = 0.0
    samples: int = 0
    batches: list[Entry] = field(default_factory=list[Entry])
    moments: list[Moment] = field(default_factory=list[Moment])
    unread: dict[str, int] = field(default_factory=dict[str, int])
    failed: Counter[str] = field(default_factory=Counter[str])
    answered: bool = False
    _climbed: int = 0

    def bind(self, most: int) -> Batch:
        """Choose a pair and stakes from the past, bind them, and toss the coins."""
        order = sorted(range(len(self.arms)), key=lambda each: -self.arms[each].hope)
        ranks = {place: rank for rank, place in enumerate(order, 1)}
        place = min(order, key=lambda each: self.arms[each].rows * ranks[each] ** SPREAD)
        arm = self.arms[place]
        rows, members = min(arm.next_rows, most), tuple(arm.members())
        self.ladder.bind(place)
        self.converse[place].bind()
        stakes = written.stakes(pair=place, distance=arm.pair.distance, rows=rows, members=members)
        stakes |= {"lost": self.lost} if self.lost else {}
        return Batch(place, members, stakes, self.chain.coins(stakes, rows))

    def pay(self, batch: Batch, outcomes: Outcomes, *, kept: bool = False) -> Entry:
        """Pay a batch, and let its arm learn from it.

        Args:
            batch: The batch.
            outcomes: What came for each of its coins.
            kept: Whether to tell what was learned too.

        Returns:
            All that `replay` needs to know the batch again: rows as long as the arm keeps them, else counts.
        """
        arm, events = self.arms[batch.arm], self.converse[batch.arm]
        learned = self._learned(batch, outcomes) if kept else None
        self.ladder.count(batch.arm, tallies(self.ladder.books(batch.arm), outcomes, batch.coins))
        events.pay(outcomes, batch.coins)
        places = [member.cells.place(member.feature.score(outcomes)) for member in batch.members]
        paid = step(self.log_wealth, batch.members, arm.points, batch.coins, places, self.goal)
        counts = written.counts(paid)
        entry: Entry = {
            "stakes": batch.stakes,
            "counts": counts,
            "chain": self.chain.after(batch.stakes, counts).link.hex(),
            "log_wealth": paid.log_wealth.hex(),
            "peak": max(self.peak, paid.peak).hex(),
            "factors": [each.hex() for each in paid.factors],
            "evidence": arm.evidence.hex(),
            "hope": arm.hope.hex(),
            "learned": learned,
        }
        self._advance(entry)
        self._look(outcomes)
        arm.learn(outcomes[: paid.rows], batch.coins[: paid.rows])
        return entry

    def _look(self, outcomes: Outcomes) -> None:
        table = table_of(outcomes)
        failures = table.failures.most_common(1)
        self.failed.update(dict(failures))
        self.answered = self.answered or sum(table.failures.values()) < len(outcomes)
        for name, number in table.unread.items():
            self.unread[name] = max(self.unread.get(name, 0), number)

    def _learned(self, batch: Batch, outcomes: Outcomes) -> Entry:
        arm, events = self.arms[batch.arm], self.converse[batch.arm]
        if arm.keeps:
            return {"outcomes": text_of_outcomes(outcomes)}
        counted = {
            "books": arm.books,
            "events": events.books,
            "frozen": self.ladder.books(batch.arm),
        }
        return {
            name: [each.tolist() for each in tallies(books, outcomes, batch.coins)]
            for name, books in counted.items()
        }

    def replay(self, entry: Mapping[str, Any], source: Source) -> None:
        """Go through a batch of an earlier run again: nothing is drawn, and the past is what it was.

        Raises:
            ValueError, KeyError, IndexError, TypeError: If the entry is none of this audit.
        """
        stakes: Entry = entry["stakes"]
        rows, place = int(entry["counts"]["rows"]), int(stakes["pair"])
        arm, events = self.arms[place], self.converse[place]
        coins = self.chain.coins(stakes, stakes["rows"])
        if isinstance(source, Samples):
            source.skip(coins)
        self.ladder.bind(place)
        events.bind()
        known = entry["learned"]
        arm.evidence, arm.hope = float.fromhex(entry["evidence"]), float.fromhex(entry["hope"])
        self._advance(entry)
        if "outcomes" in known:
            outcomes = outcomes_of(known["outcomes"], stakes["rows"])
            self.ladder.count(place, tallies(self.ladder.books(place), outcomes, coins))
            events.pay(outcomes, coins)
            self._look(outcomes)
            arm.learn(outcomes[:rows], coins[:rows])
        else:
            books, tried, frozen = (
                [np.array(each, dtype=np.intp) for each in known.get(name, ())]
                for name in ("books", "events", "frozen")
            )
            if "frozen" not in known:
                # A journal of an earlier version kept the wealth of other bets: these have no bound of their own.
                self.ladder.rungs = ()
            else:
                self.ladder.count(place, frozen)
            events.count(tried)
            arm.count(rows, books)

    def _advance(self, entry: Mapping[str, Any]) -> None:
        stakes, counts = entry["stakes"], entry["counts"]
        self.chain = self.chain.after(stakes, counts)
        self.batches.append({"stakes": stakes, "counts": counts, "chain": entry["chain"]})
        self.log_wealth, self.peak = (
            float.fromhex(entry["log_wealth"]),
            float.fromhex(entry["peak"]),
        )
        self.samples += counts["rows"]
        if self.samples >= LADDER_ROWS and self.samples >= GROWTH * self._climbed:
            self._climbed = self.samples
            self.ladder.climb()
        self.lost = 0
        names = [member["feature"] for member in stakes["members"]]
        factors = tuple(zip(names, map(float.fromhex, entry["factors"]), strict=True))
        self.moments.append(
            Moment(self.samples, self.log_wealth, self.ladder.lower, stakes["pair"], factors)
        )

    def tried(self, alpha: float) -> tuple[Tried, ...]:
        """Every event that was tried, all of them together at alpha."""
        number = sum(len(each.events) for each in self.converse)
        return tuple(tried for each in self.converse for tried in each.excluded(alpha, number))

    def unseen(self, alpha: float) -> float:
        """The probability below which an isolating event would not be seen."""
        return min(unseen(arm.rows, alpha, arm.points[-1]) for arm in self.arms)

    @property
    def silent(self) -> str:
        """The failure of nearly all calls, in words, where none answered and they failed alike; else empty."""
        alike = self.failed.total() >= ALIKE * self.samples and not self.answered
        return next((each for each, _ in self.failed.most_common(1)), "no call") if alike else ""

    @property
    def recurs(self) -> bool:
        """Whether most of the last bets were on answers that came again."""
        bets = [each["stakes"]["members"] for each in self.batches if each["stakes"]["members"]]
        last: list[Entry] = bets[-1] if bets else []
        recurring = sum(each["weight"] for each in last if each["feature"] in RECURRING)
        return 2 * recurring > sum(each["weight"] for each in last)

    @property
    def event(self) -> str:
        """The values of a feature that the last bets were most on, and how often either world had them."""
        last = next((each for each in reversed(self.batches) if each["stakes"]["members"]), None)
        if last is None:
            return "no event"
        pair, best, words = last["stakes"]["pair"], -math.inf, ""
        for member in last["stakes"]["members"]:
            f, g = (np.max(np.array(member[side], dtype=np.float64), axis=0) for side in ("f", "g"))
            zero, one = self._met(pair, member)
            worth = member["weight"] * (f * (one - zero) + g * (zero - one))
            place = int(np.argmax(worth))
            if worth[place] > best:
                best, world = float(worth[place]), int(f[place] >= g[place])
                side = (g, f)[world] * (zero + one > 0)
                # The neighbors of a cell that are bet on as well: the event is the whole of them.
                low = high = place
                while low and place < len(f) - 1 and 2 * side[low - 1] >= side[place]:
                    low -= 1
                while high < len(f) - 2 and 2 * side[high + 1] >= side[place]:
                    high += 1
                edges = [float.fromhex(cut) for cut in member["cuts"]]
                cells = Cells(tuple(edges[max(low - 1, 0) : low] + edges[high : high + 1]))
                inside = int(low > 0) if place < len(f) - 1 else cells.count - 1
                known = words_of(
                    [-math.inf, *edges][min(low, len(edges))],
                    [*edges, math.inf][min(high, len(edges))],
                )
                met = [
                    f"{each[low : high + 1].sum():.0f} of {each.sum():.0f}" for each in (one, zero)
                ]
                event = event_in_words(member["feature"], cells, inside, known)
                words = f"{event}: in {met[0]} answers of world 1, {met[1]} of world 0; too likely in world {world}"
        return words

    def _met(self, pair: int, member: Entry) -> tuple[Reals, Reals]:
        """The rows of either world in the cells of a member, in all batches that had these cells."""
        found = np.zeros((2, len(member["cuts"]) + 2))
        for batch in self.batches:
            counted = zip(batch["stakes"]["members"], batch["counts"]["members"], strict=True)
            for other, counts in counted if batch["stakes"]["pair"] == pair else ():
                if other["feature"] == member["feature"] and other["cuts"] == member["cuts"]:
                    found += counts["zero"], counts["one"]
        return found[0], found[1]
