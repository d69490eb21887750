"""Privacy statements: what a publisher can say about the privacy of a release, from certified
numbers.

Every number is rounded so that the sentence remains true: losses and attackers' gains upward,
attackers' errors downward. Infinite numbers are not published.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from dpcompose import check
from dpcompose.composition import Composable, Composition, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import (
    Anchor,
    Checkpoint,
    Entry,
    Ledger,
    Moment,
    Receipt,
    SigningKey,
    is_at_or_below,
    root_of,
)
from dpcompose.mechanisms import parse, serialize
from dpcompose.plan import Plan
from dpcompose.report import above, exactly
from dpcompose.values import Adjacency, Bound, down, up

LONGEST = 10_000
ISOLATED = "\u2068", "\u2069"
"""First strong isolate and its end: the text between them determines its own direction."""
_MARKED = set(string.punctuation) - set(" ,.;'\"-()=+%/?")


def text_of(name: str, value: Any, *, empty: bool = False) -> str:
    """The value itself if it is text that can be published.

    Args:
        name: The name of the argument in errors.
        value: The value to check.
        empty: Whether empty text is accepted.

    Raises:
        DomainError: If it is not text, is empty or too long, or contains lone surrogates.
    """
    is_text = isinstance(value, str) and len(value) <= LONGEST and (empty or bool(value.strip()))
    if not is_text or any(unicodedata.category(each) == "Cs" for each in value):
        accepted = f"text of 1 to {LONGEST:,} characters, without halves of characters"
        raise DomainError(name, value, accepted)
    return value


def visible(text: str) -> str:
    """The text with each unprintable character replaced by its code point, such as (U+202E); line
    breaks are retained.
    """
    return "".join(
        each if each.isprintable() or each == "\n" else f"(U+{ord(each):04X})"
        for each in text.replace("\r\n", "\n")
    )


def one_line(text: str) -> str:
    """The text on one line of visible characters, directionally isolated if it has right-to-left
    letters.
    """
    line = visible(" ".join(text.split()))
    turned = any(unicodedata.bidirectional(each) in ("R", "AL", "AN") for each in line)
    return line.join(ISOLATED) if turned else line


def markdown(text: str) -> str:
    """The text on one line for Markdown, with all markup characters escaped."""
    escaped = "".join(f"&#{ord(each)};" if each in _MARKED else each for each in one_line(text))
    return re.sub(r"(?i)(www)\.", r"\1&#46;", escaped)


_LATEX_NAMES = ["backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "quotedbl"]
_LATEX = {each: f"\\{each}" for each in "&%$#_{}"} | {
    each: rf"\text{name}{{}}" for each, name in zip('\\~^<>|"', _LATEX_NAMES, strict=True)
}


def latex(text: str) -> str:
    """The text on one line for LaTeX, with all characters that act escaped."""
    return "".join(_LATEX.get(each, each) for each in one_line(text))


_BIBTEX = files("dpcompose.interop") / "statement.bib"
FALSE_POSITIVE_RATE = 0.001
TOLERANCE = 1e-6
"""The tolerance of the attack risks, which are published with three digits."""
_NEIGHBORS = {
    Adjacency.ADD_REMOVE: "are in one of them and not in the other",
    Adjacency.REPLACE: "have other values in the other",
    Adjacency.ZERO_OUT: "are null records in the other",
}


@dataclass(frozen=True)
class Run:
    """A mechanism that ran.

    Args:
        name: Its name in the plan; empty if it has none.
        mechanism: The mechanism as text that `parse` of `dpcompose.mechanisms` reads back.
        times: The number of times it ran.
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
    """A charge in a ledger.

    Args:
        scope: The path of the charged scope.
        sequence: The number of the entry in its chain.
        hash: The hash of the entry.
    """

    scope: str
    sequence: int
    hash: str


@dataclass(frozen=True)
class AttackRisk:
    """Upper bounds for an attacker who sees all outputs and knows all data except those of one
    unit.

    Args:
        advantage: True positive rate minus false positive rate.
        power: The true positive rate at a false positive rate of 1 in 1,000.
        guess: The probability of guessing correctly whether the unit is in the data, at even prior
            odds.
    """

    advantage: Bound
    power: Bound
    guess: Bound


@dataclass(frozen=True)
class Statement:
    """A certified privacy statement about a release, created by `statement`.

    Args:
        runs: The mechanisms that ran.
        adjacency: The neighboring relation.
        records: The largest number of records of one unit.
        delta: The delta of the guarantee.
        bound: The certified epsilon of one unit.
        risk: Bounds on what an attacker gains.
        unit: The unit of privacy, in the publisher's words.
        sampling: How records were sampled, in the publisher's words; empty if nothing is stated.
        entries: The ledger charges that paid for the release; empty if there are none.
        anchor: The heads of that ledger afterwards, or None.
        scope: The scope of a ledger of which everything granted at or below it, up to the anchor,
            is stated; empty for a statement about chosen charges.
        checkpoint: The checkpoint of that ledger, signed; empty if it is not signed.
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
    scope: str = ""
    checkpoint: str = ""

    @property
    def composition(self) -> Composition:
        """The composition of all mechanisms that ran."""
        return _composed(self.runs)

    @property
    def epsilon(self) -> str:
        """The epsilon to publish, as text: six digits, rounded up."""
        return above(self.bound.upper)

    @property
    def guarantee(self) -> str:
        """The guarantee in words, such as "(1.5, 1e-06)-differentially private"."""
        epsilon = f"({self.epsilon}, {exactly(self.delta)})" if self.delta > 0 else self.epsilon
        return f"{epsilon}-differentially private"

    @property
    def neighbors(self) -> str:
        """A sentence that defines neighboring datasets."""
        amount = "one record" if self.records == 1 else f"at most {self.records} records"
        return f"Two data sets are neighbors if the data of one unit ({amount}) {_NEIGHBORS[self.adjacency]}."

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the guarantee, one sentence each; the last may quote the publisher."""
        counted = "one record" if self.records == 1 else f"{self.records} records"
        sampled = any(".sampled(" in run.mechanism for run in self.runs)
        sentences = {
            "Each mechanism ran as stated, at most as often as stated, with fresh and exact noise.": True,
            "Its stated sensitivity bounds what one record can change.": True,
            f"No unit has more than {counted} in the data.": True,
            "All parameters were fixed before the first output, and nothing else was released from these data.": True,
            "Where a sampling rate is stated, each run draws each record independently (Poisson sampling), at that rate"
            " whatever the number of records.": sampled,
            "No learning rate, stopping rule or published log follows from raw training losses (ReduceLROnPlateau,"
            " early stopping): they read noisy steps, or other data.": sampled,
            f"The publisher says of the sampling: {one_line(self.sampling)}.": bool(self.sampling),
        }
        return tuple(sentence for sentence, holds in sentences.items() if holds)

    @property
    def attacks(self) -> tuple[str, ...]:
        """The bounds on what an attacker gains, one sentence each."""
        return (
            "Whoever sees all outputs and knows all other data tells with an advantage (true minus false positive rate)"
            f" of at most {above(self.risk.advantage.upper, 3)} whether a unit was in the data as stated.",
            f"At a false positive rate of {exactly(FALSE_POSITIVE_RATE)} the true positive rate is at most"
            f" {above(self.risk.power.upper, 3)}.",
            f"A guess from even odds is right with probability at most {above(self.risk.guess.upper, 3)}.",
        )

    @property
    def paragraph(self) -> str:
        """The whole statement as a paragraph of plain text to publish."""
        ran = "; ".join(one_line(run.described) for run in self.runs)
        unit = f"The unit of privacy is: {one_line(self.unit)}."
        stated = f"The release is {self.guarantee}. {unit} {self.neighbors} What ran: {ran}."
        return " ".join([stated, *self.attacks, "Assumed:", *self.assumptions])

    @property
    def model_card(self) -> str:
        """The statement as a model card section in Markdown."""
        stated = {
            "Guarantee": self.guarantee,
            "Unit of privacy": self.unit,
            "Neighbors": self.neighbors,
        }
        rows = [*stated.items(), *(("Mechanism", run.described) for run in self.runs)]
        table = [f"| {markdown(name)} | {markdown(value)} |" for name, value in rows]
        listed = [f"- {markdown(sentence)}" for sentence in (*self.attacks, *self.assumptions)]
        return "\n".join(["## Privacy", "", "| | |", "|---|---|", *table, "", *listed, ""])

    @property
    def latex(self) -> str:
        """The statement as a LaTeX section, with citations of `bibtex`."""
        cited = r"\cite{DworkMcSherryNissimSmith2006, dpcompose}"
        unit = latex(f"The unit of privacy is: {one_line(self.unit)}.")
        stated = f"The release is {latex(self.guarantee)}~{cited}. {unit} {latex(self.neighbors)}"
        ran, assumed = (
            [r"\begin{itemize}", *(rf"  \item {latex(each)}" for each in items), r"\end{itemize}"]
            for items in ([run.described for run in self.runs], self.assumptions)
        )
        attacks = " ".join(latex(sentence) for sentence in self.attacks)
        lines = [
            r"\section*{Privacy}",
            stated,
            "What ran:",
            *ran,
            attacks,
            "Assumed:",
            *assumed,
            "",
        ]
        return "\n".join(lines)

    @property
    def bibtex(self) -> str:
        """The entries that `latex` cites."""
        return _BIBTEX.read_text("utf-8") % version("dpcompose")


def _composed(runs: Sequence[Run]) -> Composition:
    return compose(*(parse(run.mechanism) * run.times for run in runs))


def charged_composition(charges: Sequence[Entry]) -> Composition | None:
    """The composition of charges, as their entries say; None if one of them names no mechanism."""
    counts = Counter(entry.description.get("mechanism") for entry in charges)
    charged = (parse(text) * times for text, times in counts.items())
    return None if None in counts else compose(*charged)


def granted(moment: Moment, scope: str, *, last: int | None = None) -> Iterator[Entry]:
    """The charges that were granted at or below a scope, up to an entry of its chain."""
    for entry in moment.entries(root_of(scope)):
        if last is not None and entry.sequence > last:
            return
        if entry.kind == Entry.GRANTED and is_at_or_below(entry.scope, scope):
            yield entry


def scope_statement(
    ledger: Ledger,
    scope: str,
    *,
    unit: str,
    delta: float,
    sampling: str = "",
    records: int = 1,
    key: SigningKey | None = None,
) -> Statement:
    """A certified statement about everything that a ledger granted at a scope and below it.

    Args:
        ledger: The ledger.
        scope: The path of the scope.
        unit: See `statement`.
        delta: The delta of the guarantee, in [0, 1).
        sampling: See `statement`.
        records: See `statement`.
        key: A key of the ledger's evidence, which signs the checkpoint that the statement stands
            on; pass it to `privacy_json` too. None for a statement that is not signed.

    Raises:
        UnsupportedError: If nothing was granted, a charge names no mechanism, or charges are priced
            under different adjacencies.
        UnknownScopeError: If there is no such scope.
    """
    check.kind("ledger", ledger, Ledger, "a Ledger, such as Ledger.open('sqlite:ledger.db')")
    with ledger.moment() as moment:
        moment.balance(scope)
        charges = [*granted(moment, scope)]
        root = root_of(scope)
        anchor = moment.anchor().of_root(root)
        note = "" if key is None else Checkpoint.sign(moment.snapshot, root, key).note
    total, under = (
        charged_composition(charges),
        {each.description.get("adjacency") for each in charges},
    )
    if not charges or total is None or len(under) > 1:
        reason = (
            "nothing was granted, or a charge names no mechanism, or two name other adjacencies"
        )
        raise UnsupportedError(f"a statement about {scope!r}", reason, "State its parts")
    adjacency = Adjacency(under.pop())
    stated = statement(
        total,
        unit=unit,
        delta=delta,
        sampling=sampling,
        records=records,
        adjacency=adjacency,
        anchor=anchor,
    )
    return replace(stated, scope=scope, checkpoint=note)


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
    """A certified privacy statement about everything that ran.

    >>> from dpcompose import Gaussian
    >>> stated = statement(Gaussian(20.0) * 100, delta=1e-6, unit="one user")
    >>> stated.guarantee
    '(2.25409, 1e-06)-differentially private'

    Args:
        total: What ran: a plan, mechanism or composition.
        unit: The unit of privacy, such as "one user".
        delta: The delta of the guarantee, in [0, 1); by default that of the plan.
        sampling: How records were sampled, in your words, such as "Poisson, as run".
        records: The largest number of records of one unit; the guarantee is group privacy for that
            many.
        adjacency: The neighboring relation; by default that of the plan, or add-remove.
        receipts: The receipts of the ledger charges that paid for the release, if any.
        anchor: The heads of the ledger after the release, or None.

    Raises:
        DomainError: If an argument is outside its domain.
        UnsupportedError: If a mechanism cannot be written as text, or no finite epsilon holds.
    """
    if isinstance(total, Plan):
        named = [(entry.name, entry.mechanism, entry.times) for entry in total.entries]
        adjacency = total.adjacency if adjacency is None else adjacency
        question = total.question
        if delta is None and question is not None and question.fixed == "delta":
            delta = question.value
    else:
        check.kind("total", total, Composable, "a plan, a mechanism or a composition")
        named = [("", part, times) for part, times in compose(total).parts]
    if delta is None:
        raise DomainError(
            "delta", None, "a number in [0, 1)", "Neither the plan nor the call has one"
        )
    asked = check.member(
        "adjacency", Adjacency.ADD_REMOVE if adjacency is None else adjacency, Adjacency
    )
    check.kind("receipts", receipts, Sequence, "what a ledger returned")
    for each in receipts:
        check.kind("receipts", each, Receipt, "what a ledger returned")
    if anchor is not None:
        check.kind("anchor", anchor, Anchor, "what a ledger returned")
    runs = tuple(_run(*each) for each in named)
    unit, sampling = text_of("unit", unit), text_of("sampling", sampling, empty=True)
    bound, risk = priced(runs, asked, check.count("records", records, least=1), delta=delta)
    entries = tuple(LedgerEntry(each.scope, each.sequence, each.hash) for each in receipts)
    return Statement(
        runs,
        asked,
        records,
        float(delta),
        bound,
        risk,
        unit=unit,
        sampling=sampling,
        entries=entries,
        anchor=anchor,
    )


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
    """The certified epsilon and the attack risk of what ran, for a group of `records` records.

    Args:
        runs: The mechanisms that ran.
        adjacency: The neighboring relation.
        records: The size of the group.
        delta: The delta of the guarantee.

    Raises:
        DomainError: If delta is not below 1.
        UnsupportedError: If no finite epsilon holds.
    """
    if not delta < 1:
        raise DomainError(
            "delta", delta, "a number below 1", "At delta 1 any mechanism may reveal everything"
        )
    whole = _composed(runs)
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
