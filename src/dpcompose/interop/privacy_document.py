"""`privacy.json`: a statement that a program can check again.

The document is canonical: one form of JSON, whose SHA-256 without the digest is the digest. So a change of one byte is
found. Who changes the document and its digest too is found where the numbers no longer follow from the mechanisms,
which are priced again; or by the digest, published elsewhere; or by the ledger, which has the charges. Otherwise not:
nobody can see from a document whether what it says ran is what ran.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from itertools import chain
from typing import Any, cast

from dpcompose import check
from dpcompose.composition import compose
from dpcompose.errors import DomainError, DPComposeError, StatementError
from dpcompose.interop.statement import (
    AttackRisk,
    LedgerEntry,
    Run,
    Statement,
    one_line,
    priced,
    text_of,
)
from dpcompose.ledger import Anchor, Entry, Ledger, is_at_or_below, root_of
from dpcompose.mechanisms import parse
from dpcompose.report import above
from dpcompose.values import Adjacency, Bound

FORMAT = "dpcompose privacy statement 1"
LARGEST = 1_000_000
"""Bytes of a document."""
LISTED = 20
"""Kinds of other charges of a ledger that are named."""


@dataclass(frozen=True)
class Verified:
    """A statement that was checked.

    Args:
        statement: The statement.
        bound: Epsilon, certified again.
        digest: The digest of the document: publish it elsewhere.
        checked: What was checked, a sentence each.
        unchecked: What was not, a sentence each.
    """

    statement: Statement
    bound: Bound
    digest: str
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]


def privacy_json(statement: Statement) -> str:
    """The document: one line of JSON in ASCII, with its digest."""
    content = _content(statement) | {"producer": f"dpcompose {version('dpcompose')}"}
    return _canonical(content | {"digest": _digest(content)})


def _content(statement: Statement) -> dict[str, Any]:
    """The statement in plain values, but for its producer and digest."""
    fields = asdict(statement) | {
        "format": FORMAT,
        "adjacency": statement.adjacency.value,
        "epsilon": statement.epsilon,
        "bound": _ends(statement.bound),
        "risk": {
            name: _ends(statement.risk.__dict__[name]) for name in AttackRisk.__dataclass_fields__
        },
        "anchor": None if statement.anchor is None else statement.anchor.to_json(),
    }
    return json.loads(json.dumps(fields))


def _ends(bound: Bound) -> list[float]:
    return [bound.lower, bound.upper]


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(
        _canonical({name: each for name, each in content.items() if name != "digest"}).encode()
    ).hexdigest()


def verify(
    document: str | bytes, *, digest: str | None = None, ledger: Ledger | None = None
) -> Verified:
    """Check a document to the last byte, and price it again.

    Args:
        document: What `privacy_json` wrote, byte for byte.
        digest: The digest, as it was published elsewhere.
        ledger: The ledger that has the charges; it is verified too.

    Raises:
        StatementError: If something does not agree.
        TamperedError: If the ledger was changed.
        DomainError: If an argument is of another type.
    """
    if not isinstance(document, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("document", document, "the text of a privacy.json, or its bytes")
    content = _read(document)
    own = content["digest"]
    if digest is not None and digest != own:
        raise StatementError(f"its digest is {own}, and the one given is another")
    try:
        stated = _stated(content)
        expected = _content(stated)
    except (
        DPComposeError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise StatementError(
            f"it does not describe a statement ({type(error).__name__}: {error})"
        ) from None
    wrong = [name for name in expected if content.get(name) != expected[name]]
    if wrong or content.keys() - expected.keys() != {"digest", "producer"}:
        raise StatementError(
            f"it says more than follows from it, or otherwise: {', '.join(wrong) or 'its names'}"
        )
    bound = _priced_again(stated)
    checked = [
        "Every byte agrees with the digest.",
        "The mechanisms, priced again, cost no more than is stated.",
    ]
    unchecked = [
        "That what is stated to have run is what ran, and all that ran, is the publisher's word."
    ]
    if digest is None:
        unchecked.append(
            "No digest was given: that the document is the one first published is not known."
        )
    else:
        checked.append("The digest is the one given.")
    if ledger is not None:
        others = _in_ledger(stated, ledger)
        checked.append("The ledger has these charges, for these mechanisms.")
        if others:
            unchecked.append(
                f"The ledger has more charges on these data, which the stated epsilon leaves out: {others}."
            )
    elif stated.entries:
        unchecked.append("The ledger was not given: that it has these charges is not known.")
    return Verified(stated, bound, own, tuple(checked), tuple(unchecked))


def _read(document: str | bytes) -> dict[str, Any]:
    """The content of a canonical document whose digest is right."""
    try:
        text = document if isinstance(document, str) else document.decode("ascii")
        if len(text) > LARGEST:
            raise StatementError(f"it has more than {LARGEST:,} bytes")
        content: Any = json.loads(text)
        if not isinstance(content, dict) or _canonical(cast("dict[str, Any]", content)) != text:
            raise ValueError("not the canonical form")
    except (ValueError, RecursionError) as error:
        raise StatementError(
            f"it is not canonical JSON, as privacy_json writes it ({error})"
        ) from None
    found = cast("dict[str, Any]", content)
    if found.get("digest") != _digest(found):
        raise StatementError("its digest is not that of its content: something was changed")
    return found


def _stated(content: Mapping[str, Any]) -> Statement:
    """The statement that a document describes; any of many errors if it describes none."""
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r:.60}")
    text_of("producer", content["producer"])
    runs = tuple(Run(**run) for run in content["runs"])
    for run in runs:
        parse(run.mechanism)
        text_of("name", run.name, empty=True)
        check.times(run.times)
    entries = tuple(LedgerEntry(**entry) for entry in content["entries"])
    return Statement(
        runs,
        Adjacency(content["adjacency"]),
        check.count("records", content["records"], least=1),
        delta=check.probability("delta", content["delta"]),
        bound=Bound(*content["bound"]),
        risk=AttackRisk(**{name: Bound(*ends) for name, ends in content["risk"].items()}),
        unit=text_of("unit", content["unit"]),
        sampling=text_of("sampling", content["sampling"], empty=True),
        entries=entries,
        anchor=None if content["anchor"] is None else Anchor.read(content["anchor"]),
    )


def _priced_again(stated: Statement) -> Bound:
    """Epsilon, certified here; the published numbers, rounded up, must not be below what is certified."""
    try:
        bound, risk = priced(stated.runs, stated.adjacency, stated.records, delta=stated.delta)
    except DPComposeError as error:
        raise StatementError(f"its mechanisms cannot be priced ({error})") from None
    pairs = [("epsilon", stated.bound, bound, 6)]
    pairs += [
        (name, stated.risk.__dict__[name], risk.__dict__[name], 3)
        for name in AttackRisk.__dataclass_fields__
    ]
    for name, said, found, digits in pairs:
        claim = float(above(said.upper, digits))
        if not (found.upper <= claim and said.lower <= found.upper and found.lower <= said.upper):
            between = f"between {said.lower!r} and {said.upper!r}"
            raise StatementError(
                f"{name} is stated {between}; certified here is {found.lower!r} to {found.upper!r}"
            )
    return bound


def _in_ledger(stated: Statement, ledger: Ledger) -> str:
    """Check that the ledger is whole, and granted these mechanisms in these entries; what else it granted on the data.

    These are the other charges of the scopes, of those below them, and of those that they are in.
    """
    if not isinstance(ledger, Ledger):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("ledger", ledger, "a Ledger, such as Ledger.open('sqlite:ledger.db')")
    if not stated.entries:
        raise StatementError("it names no charges, so that no ledger can confirm it")
    ledger.verify(stated.anchor)
    charged: list[Any] = []
    with ledger.moment() as moment:
        for each in dict.fromkeys(stated.entries):
            found = [entry for entry in moment.entries(each.scope) if entry.hash == each.hash]
            if not found or (found[0].kind, found[0].scope, found[0].sequence) != (
                Entry.GRANTED,
                each.scope,
                each.sequence,
            ):
                raise StatementError(
                    f"the ledger has no charge {each.sequence} of {each.scope!r} with that hash"
                )
            if found[0].description.get("adjacency") != stated.adjacency.value:
                raise StatementError(
                    f"charge {each.sequence} of {each.scope!r} is priced under another adjacency"
                )
            charged.append(found[0].description.get("mechanism"))
        scopes, own = (
            {each.scope for each in stated.entries},
            {each.hash for each in stated.entries},
        )
        others: Counter[str] = Counter()
        for entry in chain.from_iterable(
            moment.entries(root) for root in {root_of(scope) for scope in scopes}
        ):
            related = any(
                is_at_or_below(entry.scope, each) or is_at_or_below(each, entry.scope)
                for each in scopes
            )
            if entry.kind == Entry.GRANTED and related and entry.hash not in own:
                amounts = ", ".join(
                    f"{currency} {amount}" for currency, amount in entry.cost.items()
                )
                others[f"{entry.description.get('mechanism') or amounts} in {entry.scope!r}"] += 1
    if None in charged or compose(*map(parse, charged)) != stated.composition:
        raise StatementError("the mechanisms that were charged are not those that are stated")
    listed = [
        one_line(f"{what}, {times:,} time{'s' * (times != 1)}")
        for what, times in others.most_common(LISTED)
    ]
    return "; ".join(
        [*listed, f"and {len(others) - LISTED:,} kinds more"] if len(others) > LISTED else listed
    )
