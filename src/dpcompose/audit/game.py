"""The state of an audit: arms, coin chain, wealth, the lower bound on epsilon, and the events
tested for absence of violation.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit import certificate as written
from dpcompose.audit.arm import Arm, Member, step
from dpcompose.audit.certificate import Chain
from dpcompose.audit.claim import Moment
from dpcompose.audit.feature import event_in_words, table_of, words_of
from dpcompose.audit.lower import GROWTH, Ladder
from dpcompose.audit.outcome import LARGEST, Outcome, Outcomes, Reals, rows_of
from dpcompose.audit.stakes import Cells
from dpcompose.audit.subject import Samples, Source, Subject
from dpcompose.document import decoded, encoded

SPREAD = 1.5
"""The pair of rank r by projected gain gets about 1 / r^SPREAD as many rows as the first pair."""
TELLING, CLEAR = 4.0, 4.0
"""TELLING replaces SPREAD once the first pair's evidence is CLEAR above the bets' threshold."""
LADDER_ROWS = 4096
"""The number of rows from which the lower bound on epsilon is updated during the audit."""
MARGIN = 1e-6
"""A margin on the log wealth: a float here, but rounded down in the certificate."""
MET = 1 << 20
"""The number of rows whose answers are stored; answers of later rows count as recurring."""
ALIKE = 0.95
"""If this fraction of the calls fails in one and the same manner, and none answers, nothing was audited."""
Entry = dict[str, Any]
Scripted = tuple[int, int, tuple[Member, ...]]
"""A batch determined in advance: the index of its pair, its number of rows and its bets."""


@dataclass(frozen=True)
class Batch:
    """A batch whose bets are fixed and whose coins have been derived.

    Args:
        arm: The index of the pair of datasets.
        members: The weighted bets.
        stakes: The record of the bets in the hash chain.
        coins: The coin of each row, 0 or 1.
    """

    arm: int
    members: tuple[Member, ...]
    stakes: Entry
    coins: NDArray[np.uint8]


@dataclass
class Game:
    """The state of an audit.

    Args:
        arms: The pairs of datasets with their past outcomes.
        chain: The hash chain from which coins are derived.
        goal: Natural logarithm of the wealth at which the claim is refuted.
        ladder: The computation of the lower bound on epsilon.
        script: Batches determined in advance, which come first.
        lost: How often an interruption discarded the outcomes of the next batch. The number enters
            the hash chain, so that the next attempt has new coins.
        log_wealth: Natural logarithm of the wealth.
        new_wealth: What the log wealth would be if every answer that came before in this audit, of
            any pair, had been the worst one for the bets.
        peak: The largest log wealth so far.
        samples: The number of rows so far.
        batches: The stakes, counts and chain link of each batch.
        moments: The state after each batch.
        unread: Parts of outcomes that were not read, with the largest number of them in one
            outcome.
        failed: Descriptions of failed calls with their counts; of each batch, only the most
            frequent failure.
        answered: Whether any call returned an answer.
    """

    arms: tuple[Arm, ...]
    chain: Chain
    goal: float
    ladder: Ladder
    script: list[Scripted] = field(default_factory=list[Scripted])
    lost: int = 0
    log_wealth: float = 0.0
    new_wealth: float = 0.0
    peak: float = 0.0
    samples: int = 0
    batches: list[Entry] = field(default_factory=list[Entry])
    moments: list[Moment] = field(default_factory=list[Moment])
    unread: dict[str, int] = field(default_factory=dict[str, int])
    failed: Counter[str] = field(default_factory=Counter[str])
    answered: bool = False
    _climbed: int = 0
    _earlier: set[float] = field(default_factory=set[float])

    def bind(self, most: int) -> Batch:
        """Choose the next pair and its bets from past rows, and derive the coins of at most `most`
        rows.
        """
        if self.script:
            index, rows, members = self.script.pop(0)
        else:
            order = sorted(range(len(self.arms)), key=lambda each: -self.arms[each].hope)
            ranks, first = {arm: rank for rank, arm in enumerate(order, 1)}, self.arms[order[0]]
            spread = TELLING if first.evidence > first.worth + CLEAR else SPREAD
            index = min(order, key=lambda each: self.arms[each].rows * ranks[each] ** spread)
            rows, members = self.arms[index].next_rows, tuple(self.arms[index].members())
        rows, arm = min(rows, most), self.arms[index]
        arm.freeze()
        stakes = written.stakes(pair=index, distance=arm.pair.distance, rows=rows, members=members)
        stakes |= {"lost": self.lost} if self.lost else {}
        return Batch(index, members, stakes, self.chain.coins(stakes, rows))

    def pay(self, batch: Batch, outcomes: Outcomes, *, record: bool = False) -> Entry:
        """Settle a batch: update the wealth, and add the outcomes to the past of the pair.

        Args:
            batch: The batch.
            outcomes: The outcome for each of its coins.
            record: Whether the returned entry should contain what was learned, as a journal needs.

        Returns:
            The journal entry of the batch, from which `replay` restores it: the outcomes while the
            arm stores them, otherwise counts.
        """
        arm = self.arms[batch.arm]
        places = [member.cells.index(member.feature.score(outcomes)) for member in batch.members]
        new = self._meet(outcomes)
        paid = step(
            self.log_wealth, batch.members, arm.points, batch.coins, places, self.goal, new=new
        )
        counts = written.counts(paid)
        entry: Entry = {
            "stakes": batch.stakes,
            "counts": counts,
            "chain": self.chain.after(batch.stakes, counts).link.hex(),
            "log_wealth": paid.log_wealth.hex(),
            "new_wealth": (self.new_wealth + paid.new_growth).hex(),
            "peak": max(self.peak, paid.peak).hex(),
            "factors": [each.hex() for each in paid.factors],
            "evidence": arm.evidence.hex(),
            "hope": arm.hope.hex(),
            "learned": {"outcomes": text_of_outcomes(outcomes)} if record and arm.keeps else None,
        }
        self._advance(entry)
        self._look(outcomes)
        before = {} if arm.keeps or not record else arm.counts
        whole = paid.rows == len(outcomes)
        arm.learn(outcomes if whole else outcomes[: paid.rows], batch.coins[: paid.rows])
        if before:
            entry["learned"] = {
                name: [
                    (now - then).tolist()
                    for now, then in zip(arm.counts[name], counts, strict=True)
                ]
                for name, counts in before.items()
            }
        return entry

    def _meet(self, outcomes: Outcomes) -> NDArray[np.bool_]:
        """For each outcome, whether its answer has not occurred before in this audit, in any pair."""
        new = np.zeros(len(outcomes), dtype=np.bool_)
        if self.samples < MET:
            for row, code in enumerate(table_of(outcomes).answer.tolist()):
                new[row] = code not in self._earlier
                self._earlier.add(code)
        return new

    def _look(self, outcomes: Outcomes) -> None:
        table = table_of(outcomes)
        failures = table.failures.most_common(1)
        self.failed.update(dict(failures))
        self.answered = self.answered or sum(table.failures.values()) < len(outcomes)
        for name, number in table.unread.items():
            self.unread[name] = max(self.unread.get(name, 0), number)

    def replay(self, entry: Mapping[str, Any], source: Source) -> None:
        """Restore a batch of an earlier run from its journal entry, without drawing outcomes.

        Args:
            entry: The entry that `pay` returned.
            source: The subject; answers drawn beforehand that the batch used are skipped.

        Raises:
            ValueError, KeyError, IndexError, TypeError: If the entry does not belong to this audit.
        """
        stakes: Entry = entry["stakes"]
        rows, place = int(entry["counts"]["rows"]), int(stakes["pair"])
        arm, known = self.arms[place], entry["learned"]
        coins = self.chain.coins(stakes, stakes["rows"])
        if isinstance(source, Samples):
            source.skip(coins)
        arm.freeze()
        arm.evidence, arm.hope = float.fromhex(entry["evidence"]), float.fromhex(entry["hope"])
        self._advance(entry)
        if "outcomes" in known:
            outcomes = outcomes_of(known["outcomes"], stakes["rows"])
            self._look(outcomes)
            self._meet(outcomes)
            arm.learn(outcomes[:rows], coins[:rows])
        else:
            arm.count(rows, known)
            self.new_wealth = -math.inf  # after this, recurring answers can no longer be recognized

    def _advance(self, entry: Mapping[str, Any]) -> None:
        stakes, counts = entry["stakes"], entry["counts"]
        self.chain = self.chain.after(stakes, counts)
        self.batches.append({"stakes": stakes, "counts": counts, "chain": entry["chain"]})
        self.log_wealth, self.peak = (
            float.fromhex(entry["log_wealth"]),
            float.fromhex(entry["peak"]),
        )
        self.new_wealth = float.fromhex(entry.get("new_wealth", "-inf"))
        self.samples += counts["rows"]
        if self.samples >= LADDER_ROWS and self.samples >= GROWTH * self._climbed:
            self._climbed = self.samples
            self.ladder.climb(self.arms)
        self.lost = 0
        names = [member["feature"] for member in stakes["members"]]
        factors = tuple(zip(names, map(float.fromhex, entry["factors"]), strict=True))
        self.moments.append(
            Moment(self.samples, self.log_wealth, self.ladder.lower, stakes["pair"], factors)
        )

    @property
    def silent(self) -> str:
        """A description of the common failure if no call answered and nearly all failed alike;
        otherwise empty.
        """
        alike = self.failed.total() >= ALIKE * self.samples and not self.answered
        common = next((each for each, _ in self.failed.most_common(1)), "")
        return (
            common.rpartition(" ")[0] if alike else ""
        )  # the description without the hash of the outcome

    def repeated(self, source: Source) -> bool:
        """Whether the claim is refuted only because of answers that occurred before, with calls
        that were not isolated.

        That does not refute a single call: a correct mechanism may return an answer that it has in
        memory.
        """
        retains = isinstance(source, Subject) and not source.isolated
        return retains and self.log_wealth >= self.goal > self.new_wealth + MARGIN

    @property
    def event(self) -> str:
        """A sentence about the event with the largest recent bets: its feature values, and its
        frequency in each world.
        """
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
                # Neighboring cells that are also bet on belong to the same event.
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
        """The rows of world 0 and of world 1 in each cell of a member's feature, over all batches
        with the same cells.
        """
        rows = np.zeros((2, len(member["cuts"]) + 2))
        for batch in self.batches:
            counted = zip(batch["stakes"]["members"], batch["counts"]["members"], strict=True)
            for other, counts in counted if batch["stakes"]["pair"] == pair else ():
                if other["feature"] == member["feature"] and other["cuts"] == member["cuts"]:
                    rows += counts["zero"], counts["one"]
        return rows[0], rows[1]


def text_of_outcomes(outcomes: Outcomes) -> dict[str, Any]:
    """A batch of outcomes for JSON: plain numbers as their bytes, others as JSON, both compressed
    and in base64.
    """
    if outcomes.dtype.kind in "fiub":
        plain = np.ascontiguousarray(outcomes).astype(outcomes.dtype.newbyteorder("<"))
        form = {"dtype": plain.dtype.str, "shape": list(plain.shape)}
        return form | {"packed": _packed(plain.tobytes())}
    return {"packed": _packed(encoded(rows_of(outcomes.tolist()).tolist()))}


def outcomes_of(text: dict[str, Any], rows: int) -> Outcomes:
    """The outcomes that `text_of_outcomes` serialized.

    Args:
        text: The serialized outcomes.
        rows: The expected number of outcomes.

    Raises:
        ValueError, KeyError, TypeError: If the text is malformed or has another number of outcomes.
    """
    reader = zlib.decompressobj()
    try:
        unpacked = reader.decompress(base64.b64decode(text["packed"], validate=True), LARGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not reader.eof:
        raise ValueError("outcomes that end too early")
    if "dtype" in text:
        dtype = np.dtype(text["dtype"])
        if dtype.kind not in "fiub" or text["shape"][:1] != [rows]:
            raise ValueError(f"the array does not hold the numbers of {rows} outcomes")
        numbers = np.frombuffer(unpacked, dtype=dtype).reshape(text["shape"])
        return numbers.astype(dtype.newbyteorder("="))
    outcomes: Outcomes = np.empty(rows, dtype=object)
    outcomes[:] = decoded(list[Outcome], unpacked)
    return outcomes


def _packed(text: bytes) -> str:
    return base64.b64encode(zlib.compress(text, 1)).decode()
