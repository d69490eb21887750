"""Statements: what a publisher may say of the privacy of a release, in words that the certified numbers carry.

Every number is rounded so that the sentence stays true: losses and the gains of an attacker upward, errors of an
attacker downward. Nothing infinite is published.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose import check
from dpcompose.composition import Composable, Composition, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Anchor, Receipt
from dpcompose.mechanisms import parse, serialize
from dpcompose.plan import Plan
from dpcompose.report import above, exactly
from dpcompose.values import Adjacency, Bound, down, up

LONGEST = 10_000
ISOLATED = "\u2068", "\u2069"
"""First strong isolate, and its end: the text between orders itself, and nothing around it."""
_INERT = set(" ,.;'\"-()=+%/?")


def text_of(name: str, value: Any, *, empty: bool = False) -> str:
    """`value` as text that can be published.

    Raises:
        DomainError: If it is no text, empty where it must not be, too long, or not encodable.
    """
    known = isinstance(value, str) and len(value) <= LONGEST and (empty or bool(value.strip()))
    if not known or (
        not value.isascii() and any(unicodedata.category(each) == "Cs" for each in value)
    ):
        raise DomainError(
            name, value, f"text of 1 to {LONGEST:,} characters, without halves of characters"
        )
    return value


def visible(text: str) -> str:
    """`text`, its lines kept, with each character that is not printable spelled out, as in (U+202E)."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(
        "".join(each if each.isprintable() else f"(U+{ord(each):04X})" for each in line)
        for line in lines
    )


def one_line(text: str) -> str:
    """`text` on one line of visible characters, isolated where it has letters that run from right to left."""
    line = visible(" ".join(text.split()))
    turned = any(unicodedata.bidirectional(each) in ("R", "AL", "AN") for each in line)
    return line.join(ISOLATED) if turned else line


def markdown(text: str) -> str:
    """`text` on one line, for the middle of a line of Markdown or a cell of a table: nothing in it is markup."""
    marked = set(string.punctuation) - _INERT
    escaped = "".join(f"&#{ord(each)};" if each in marked else each for each in one_line(text))
    return re.sub(r"(?i)(www)\.", r"\1&#46;", escaped)


def yaml(value: Any, indent: str = "") -> str:
    """Mappings, lists, text and numbers as YAML; text always in double quotes."""
    if isinstance(value, Mapping):
        rows = [f"{key}:{_below(each, indent)}" for key, each in value.items()]  # pyright: ignore
        return "\n".join(f"{indent}{row}" for row in rows)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "\n".join(f"{indent}- {yaml(each)}" for each in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str):
        return '"' + "".join(map(_quoted, value)) + '"'
    # A parser of YAML 1.1 takes 1e-06, without a point, for text.
    number = repr(value)
    return number.replace("e", ".0e") if "e" in number and "." not in number else number


def _below(value: Any, indent: str) -> str:
    nested = isinstance(value, Mapping) or (
        isinstance(value, Sequence) and not isinstance(value, str)
    )
    return "\n" + yaml(value, indent + "  ") if nested else " " + yaml(value)


def _quoted(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\n":
        return "\\n"
    code = ord(character)
    return character if character.isprintable() and code < 0x10000 else f"\\U{code:08X}"


FALSE_POSITIVE_RATE = 0.001
TOLERANCE = 1e-6
"""Of the numbers about attackers, which are published with three digits."""
_NEIGHBORS = {
    Adjacency.ADD_REMOVE: "are in one of them and not in the other",
    Adjacency.REPLACE: "have other values in the other",
    Adjacency.ZERO_OUT: "are null records in the other",
}


@dataclass(frozen=True)
class Run:
    """A mechanism that ran.

    Args:
        name: The name in the plan; empty if it has none.
        mechanism: The call that makes it, as `mechanism.text` writes and reads it.
        times: How often it ran.
    """

    name: str
    mechanism: str
    times: int

    @property
    def described(self) -> str:
        """The name, the call and the count."""
        called = f"{self.name}: " if self.name else ""
        return f"{called}{self.mechanism}, {self.times:,} time{'s' * (self.times != 1)}"


@dataclass(frozen=True)
class LedgerEntry:
    """A charge in a ledger: the scope, the number of the entry in its chain, and the hash of the entry."""

    scope: str
    sequence: int
    hash: str


@dataclass(frozen=True)
class AttackRisk:
    """The most that somebody gains who sees every output and knows all data but those of one unit.

    Args:
        advantage: True positive rate minus false positive rate, at most.
        power: The true positive rate at a false positive rate of 1 in 1,000, at most.
        guess: The probability of a right guess whether the unit is in the data, at even odds, at most.
    """

    advantage: Bound
    power: Bound
    guess: Bound


@dataclass(frozen=True)
class Statement:
    """A certified statement about a release; `statement` makes it.

    Args:
        runs: What ran.
        adjacency: What one record may change.
        records: How many records of one unit the data have at most.
        delta: The delta of the guarantee.
        bound: The certified epsilon of one unit.
        risk: What an attacker gains at most.
        unit: The unit of privacy, in the publisher's words.
        sampling: How records were drawn, in the publisher's words; empty if nothing is said.
        entries: The charges in a ledger that paid for it; empty if there were none.
        anchor: The heads of that ledger afterwards, or None.
    """

    runs: tuple[Run, ...]
    adjacency: Adjacency
    records: int
    delta: float
    bound: Bound
    risk: AttackRisk
    unit: str
    sampling: str = ""
    entries: tuple[LedgerEntry, ...] = ()
    anchor: Anchor | None = None

    @property
    def composition(self) -> Composition:
        """Everything that ran."""
        return compose(*(parse(run.mechanism) * run.times for run in self.runs))

    @property
    def epsilon(self) -> str:
        """The epsilon to publish: six digits, rounded up."""
        return above(self.bound.upper)

    @property
    def guarantee(self) -> str:
        """The name of the guarantee with its parameters."""
        pure = f"{self.epsilon}-differentially private"
        return (
            f"({self.epsilon}, {exactly(self.delta)})-differentially private"
            if self.delta > 0
            else pure
        )

    @property
    def neighbors(self) -> str:
        """The sentence that says which data sets are neighbors."""
        amount = "one record" if self.records == 1 else f"at most {self.records} records"
        return f"Two data sets are neighbors if the data of one unit ({amount}) {_NEIGHBORS[self.adjacency]}."

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Everything that was assumed, a sentence each; the last may quote the publisher."""
        counted = "one record" if self.records == 1 else f"{self.records} records"
        found = [
            "Each mechanism ran as stated, at most as often as stated, with fresh and exact noise.",
            "Its stated sensitivity bounds what one record can change.",
            f"No unit has more than {counted} in the data.",
            "All parameters were fixed before the first output, and nothing else was released from these data.",
        ]
        if any(".sampled(" in run.mechanism for run in self.runs):
            found.append(
                "Where a sampling rate is stated, each run draws each record independently (Poisson sampling), at that"
                " rate whatever the number of records."
            )
        if self.sampling:
            found.append(f"The publisher says of the sampling: {one_line(self.sampling)}.")
        return tuple(found)

    @property
    def attacks(self) -> tuple[str, ...]:
        """The most that an attacker gains, a sentence each."""
        return (
            "Whoever sees all outputs and knows all other data tells with an advantage (true minus false positive rate)"
            f" of at most {above(self.risk.advantage.upper, 3)} whether a unit was in the data as stated.",
            f"At a false positive rate of {exactly(FALSE_POSITIVE_RATE)} the true positive rate is at most"
            f" {above(self.risk.power.upper, 3)}.",
            f"A guess from even odds is right with probability at most {above(self.risk.guess.upper, 3)}.",
        )

    @property
    def paragraph(self) -> str:
        """One paragraph of plain text to publish."""
        ran = "; ".join(one_line(run.described) for run in self.runs)
        return " ".join(
            [
                f"The release is {self.guarantee}. The unit of privacy is: {one_line(self.unit)}. {self.neighbors}",
                f"What ran: {ran}.",
                *self.attacks,
                "Assumed:",
                *self.assumptions,
            ]
        )

    @property
    def model_card(self) -> str:
        """A section of a model card, in Markdown."""
        rows = [
            ("Guarantee", self.guarantee),
            ("Unit of privacy", self.unit),
            ("Neighbors", self.neighbors),
            *[("Mechanism", run.described) for run in self.runs],
        ]
        table = [f"| {markdown(name)} | {markdown(value)} |" for name, value in rows]
        listed = [f"- {markdown(sentence)}" for sentence in (*self.attacks, *self.assumptions)]
        return "\n".join(["## Privacy", "", "| | |", "|---|---|", *table, "", *listed, ""])


def statement(
    total: Plan | Composable,
    *,
    unit: str,
    delta: float | None = None,
    sampling: str = "",
    records: int = 1,
    adjacency: Adjacency | None = None,
    receipts: Sequence[Receipt] = (),
    anchor: Anchor | None = None,
) -> Statement:
    """A statement about everything that ran, certified.

    >>> from dpcompose import Gaussian
    >>> stated = statement(Gaussian(20.0) * 100, delta=1e-6, unit="one user")
    >>> stated.guarantee
    '(2.25409, 1e-06)-differentially private'

    Args:
        total: A plan, or a mechanism or composition.
        unit: The unit of privacy, such as "one user".
        delta: In [0, 1); by default the plan's.
        sampling: How records were drawn, in your words, such as "Poisson, as run".
        records: How many records of one unit the data have at most; the guarantee is that of a group of so many.
        adjacency: What one record may change; by default the plan's, or add-remove.
        receipts: The charges in a ledger that paid for it, if any.
        anchor: The heads of the ledger afterwards.

    Raises:
        DomainError: If an argument is outside its domain.
        UnsupportedError: If a mechanism cannot be written down, or no finite epsilon holds.
    """
    if isinstance(total, Plan):
        named = [(entry.name, entry.mechanism, entry.times) for entry in total.entries]
        adjacency = total.adjacency if adjacency is None else adjacency
        given = (
            total.question.value
            if total.question is not None and total.question.fixed == "delta"
            else None
        )
        delta = given if delta is None else delta
    elif isinstance(total, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
        parts: Any = compose(total).parts
        named = [("", part, times) for part, times in parts]
    else:
        raise DomainError("total", total, "a plan, a mechanism or a composition")
    if delta is None:
        raise DomainError(
            "delta", None, "a number in [0, 1)", "Neither the plan nor the call has one"
        )
    runs = tuple(_run(*each) for each in named)
    asked = Adjacency.ADD_REMOVE if adjacency is None else adjacency
    if not isinstance(asked, Adjacency):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("adjacency", adjacency, "a member of Adjacency")
    given_items: tuple[tuple[str, Any, Any], ...] = (
        ("receipts", receipts, Receipt),
        ("anchor", [anchor], Anchor | None),
    )
    for name, items, kind in given_items:
        if not isinstance(items, list | tuple) or not all(isinstance(each, kind) for each in items):  # pyright: ignore
            raise DomainError(name, items, "what a ledger returned")
    unit, sampling = text_of("unit", unit), text_of("sampling", sampling, empty=True)
    bound, risk = priced(runs, asked, check.count("records", records, least=1), delta=delta)
    entries = tuple(LedgerEntry(each.scope, each.sequence, each.hash) for each in receipts)
    return Statement(
        runs, asked, records, delta=float(delta), bound=bound, risk=risk, unit=unit, sampling=sampling,
        entries=entries, anchor=anchor,
    )  # fmt: skip


def _run(name: str, mechanism: Any, times: int) -> Run:
    text = serialize(mechanism)
    if text is None:
        reason = "it cannot be written down and read back, so that nobody could check the statement"
        raise UnsupportedError(
            f"a statement about {mechanism!r:.200}", reason, "State a guarantee of it, a BlackBox"
        )
    return Run(name, text, times)


def priced(
    runs: Sequence[Run], adjacency: Adjacency, records: int, *, delta: float
) -> tuple[Bound, AttackRisk]:
    """Epsilon and the risk of what ran, for a group of so many records.

    Raises:
        UnsupportedError: If no finite epsilon holds.
    """
    if not delta < 1:
        raise DomainError(
            "delta", delta, "a number below 1", "At delta 1 any mechanism may reveal everything"
        )
    whole = compose(*(parse(run.mechanism) * run.times for run in runs))
    asked = whole if records == 1 else whole.group(records)
    bound = asked.epsilon(delta=delta, adjacency=adjacency)
    if not bound.upper < math.inf:
        raise UnsupportedError(
            "a statement", f"no finite epsilon holds at delta = {delta!r}", "Ask at a larger delta"
        )
    found = asked.risk(
        false_positive_rate=FALSE_POSITIVE_RATE, adjacency=adjacency, tolerance=TOLERANCE
    )
    error = found.bayes_error
    guess = Bound(max(down(1 - error.upper), 0.0), min(up(1 - error.lower), 1.0))
    return bound, AttackRisk(found.advantage, found.true_positive_rate, guess)
