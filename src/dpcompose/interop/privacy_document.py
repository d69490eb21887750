"""`privacy.json`: a privacy statement as a document that a program can verify.

The document is canonical JSON with the SHA-256 digest of its other contents, so a changed byte is
detected. Someone who changes the document and recomputes the digest is detected if the numbers no
longer follow from the mechanisms, which are priced again; or by comparison with a digest published
elsewhere; or by the ledger that has the charges. No document can prove that the stated mechanisms
are those that ran.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from itertools import chain
from typing import Any, cast

from dpcompose import check
from dpcompose.document import checked as decoded
from dpcompose.errors import (
    DomainError,
    DPComposeError,
    EvidenceError,
    StatementError,
    UnknownScopeError,
)
from dpcompose.interop.statement import (
    AttackRisk,
    LedgerEntry,
    Run,
    Statement,
    charged_composition,
    granted,
    one_line,
    priced,
    text_of,
)
from dpcompose.ledger import (
    Anchor,
    Checkpoint,
    Entry,
    Ledger,
    SigningKey,
    VerifierKey,
    is_at_or_below,
    root_of,
    scope_path,
)
from dpcompose.report import above
from dpcompose.values import Adjacency, Bound

FORMAT = "dpcompose privacy statement 1"
_SIGNED = "dpcompose.statement@v1\n"
LARGEST = 1_000_000
"""The largest size of a document, in bytes."""
_TWO_ANCHORS = "it stands on no anchor of the log of its scope, or on two"
LISTED = 20
"""The number of kinds of other charges of a ledger that are listed."""


@dataclass(frozen=True)
class Verified:
    """The result of verifying a privacy statement.

    Args:
        statement: The statement.
        bound: The epsilon, certified again.
        digest: The SHA-256 digest of the document, to be published elsewhere.
        checked: Sentences that name what was verified.
        unchecked: Sentences that name what could not be verified.
    """

    statement: Statement
    bound: Bound
    digest: str
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]


def privacy_json(statement: Statement, *, key: SigningKey | None = None) -> str:
    """The statement as canonical JSON: one line of ASCII that contains its digest.

    Args:
        statement: The statement.
        key: The key that signs the digest, such as that of the ledger's evidence; None for none.
    """
    content = _content(statement) | {"producer": f"dpcompose {version('dpcompose')}"}
    digest = _digest(content)
    signature = {} if key is None else {"signature": key.sign(_SIGNED + digest + "\n")}
    return _canonical(content | {"digest": digest} | signature)


def _content(statement: Statement) -> dict[str, Any]:
    """The statement as plain values, without producer and digest."""
    fields = vars(statement) | {
        "format": FORMAT,
        "adjacency": statement.adjacency.value,
        "epsilon": statement.epsilon,
    }
    for name in ("scope", "checkpoint"):  # documents about chosen charges have neither
        if not fields[name]:
            del fields[name]
    return json.loads(json.dumps(fields, default=_plain))


def _plain(part: Any) -> Any:
    """A part of a statement as plain values."""
    if isinstance(part, Anchor):
        return part.to_json()
    return [part.lower, part.upper] if isinstance(part, Bound) else part.__dict__


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"


def _digest(content: Mapping[str, Any]) -> str:
    own = {name: each for name, each in content.items() if name not in ("digest", "signature")}
    return sha256(_canonical(own).encode()).hexdigest()


def verify(
    document: str | bytes,
    *,
    digest: str | None = None,
    ledger: Ledger | None = None,
    keys: Sequence[VerifierKey] = (),
) -> Verified:
    """Verify a document against its digest, and price its mechanisms again.

    Args:
        document: The output of `privacy_json`, byte for byte.
        digest: The digest as published elsewhere; None to skip that comparison.
        ledger: The ledger that has the charges; None to skip that comparison. The ledger is
            verified too.
        keys: The keys of which one must have signed; none to skip that.

    Raises:
        StatementError: If the document is not canonical, or something in it does not agree.
        TamperedError: If the ledger was changed.
        DomainError: If an argument has the wrong type.
    """
    if not isinstance(document, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("document", document, "the text of a privacy.json, or its bytes")
    content = _read(document)
    own = content["digest"]
    if digest is not None and digest != own:
        raise StatementError(f"its digest is {own}, not the expected {digest}")
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
    if wrong or content.keys() - expected.keys() - {"signature"} != {
        "digest",
        "producer",
    }:
        raise StatementError(
            f"fields that do not follow from its mechanisms: {', '.join(wrong) or 'unknown names'}"
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
    (checked if keys else unchecked).append(_signer(content, stated, keys))
    if ledger is not None:
        check.kind("ledger", ledger, Ledger, "a Ledger, such as Ledger.open('sqlite:ledger.db')")
        try:
            others = _in_ledger(stated, ledger, keys)
        except (DomainError, UnknownScopeError) as error:
            raise StatementError(f"the ledger lacks its scope ({error})") from None
        checked.append("The ledger has these charges, for these mechanisms.")
        if stated.scope:
            checked.append(f"Nothing else was granted in {stated.scope!r} up to its anchor.")
        if others:
            unchecked.append(
                f"The ledger has more charges on these data, which the stated epsilon leaves out: {others}."
            )
    elif stated.entries or stated.scope:
        unchecked.append("The ledger was not given: that it has these charges is not known.")
    return Verified(stated, bound, own, tuple(checked), tuple(unchecked))


def _read(document: str | bytes) -> dict[str, Any]:
    """The contents of a document; StatementError unless it is canonical and has the right digest."""
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
        raise StatementError("its digest does not match its content, so the document was changed")
    return found


def _stated(content: Mapping[str, Any]) -> Statement:
    """The statement that a document describes; one of several exceptions if it describes none."""
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r:.60}")
    text_of("producer", content["producer"])
    runs = decoded(tuple[Run, ...], content["runs"], name="runs")
    for run in runs:
        text_of("name", run.name, empty=True)
    return Statement(
        runs,
        Adjacency(content["adjacency"]),
        check.count("records", content["records"], least=1),
        delta=check.probability("delta", content["delta"]),
        bound=Bound(*content["bound"]),
        risk=AttackRisk(**{name: Bound(*ends) for name, ends in content["risk"].items()}),
        unit=text_of("unit", content["unit"]),
        sampling=text_of("sampling", content["sampling"], empty=True),
        entries=decoded(tuple[LedgerEntry, ...], content["entries"], name="entries"),
        scope=scope_path(content["scope"]) if "scope" in content else "",
        checkpoint=text_of("checkpoint", content.get("checkpoint", ""), empty=True),
        anchor=None if content["anchor"] is None else Anchor.read(content["anchor"]),
    )


def _priced_again(stated: Statement) -> Bound:
    """The certified epsilon; StatementError if a published number, rounded up, is below what is
    certified.
    """
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


def _signer(content: Mapping[str, Any], stated: Statement, keys: Sequence[VerifierKey]) -> str:
    """A sentence about the signature; StatementError if keys are listed and none of them signed."""
    note: Any = content.get("signature", "")
    if not keys:
        signed = "It is signed, and no key was given" if note else "It is not signed"
        return f"{signed}: who published it is not known."
    try:
        text, signer = VerifierKey.opened(note, keys)
        if stated.checkpoint:
            Checkpoint.read(stated.checkpoint, [signer])
    except (EvidenceError, AttributeError) as error:
        raise StatementError(f"no key that was given signed it ({error})") from None
    if text != _SIGNED + content["digest"] + "\n":
        raise StatementError("its signature is that of another document")
    return f"{signer.name} signed it."


def _in_ledger(stated: Statement, ledger: Ledger, keys: Sequence[VerifierKey]) -> str:
    """Verify that the ledger is intact, and granted these mechanisms: in the entries that are
    listed, or, for a statement about a scope, all in all up to its anchor.

    Returns:
        A list, as text, of the other charges of the scopes, of their ancestors and of their
        descendants.

    Raises:
        StatementError: If the ledger lacks a charge, or has it for another mechanism or adjacency,
            or has another in the scope that is stated.
    """
    if bool(stated.entries) == bool(stated.scope):
        raise StatementError(
            "it lists no charges and names no scope, so a ledger cannot confirm it"
        )
    anchor, last = _anchor(stated, keys)
    ledger.verify(anchor)
    scopes = {each.scope for each in stated.entries} or {stated.scope}
    others, charged = Counter[str](), dict[LedgerEntry, Entry | None].fromkeys(stated.entries)
    with ledger.moment() as moment:
        for entry in chain.from_iterable(
            granted(moment, each) for each in set(map(root_of, scopes))
        ):
            own = LedgerEntry(entry.scope, entry.sequence, entry.hash)
            is_stated = bool(stated.scope) and is_at_or_below(entry.scope, stated.scope)
            if own in charged or (is_stated and entry.sequence <= last):
                charged[own] = entry
            elif any(
                is_at_or_below(entry.scope, each) or is_at_or_below(each, entry.scope)
                for each in scopes
            ):
                amounts = ", ".join(
                    f"{currency} {amount}" for currency, amount in entry.cost.items()
                )
                what = entry.description.get("mechanism") or amounts
                others[f"{what} in {entry.scope!r}"] += 1
    entries = [entry for entry in charged.values() if entry is not None]
    if len(entries) < len(charged):
        lost = next(each for each, entry in charged.items() if entry is None)
        raise StatementError(
            f"the ledger has no charge {lost.sequence} of {lost.scope!r} with that hash"
        )
    for entry in entries:
        if entry.description.get("adjacency") != stated.adjacency.value:
            raise StatementError(
                f"charge {entry.sequence} of {entry.scope!r} is priced under another adjacency"
            )
    runs = charged_composition(entries)
    if runs is None or runs != stated.composition:
        left = Counter(dict(runs.parts if runs else ())) - Counter(dict(stated.composition.parts))
        missing = [f"{what!r}, {times:,} times" for what, times in left.items()]
        left_out = f"; it leaves out {one_line('; '.join(missing[:LISTED]))}" if missing else ""
        raise StatementError(
            f"the mechanisms that were charged are not those that are stated{left_out}"
        )
    origin, size, *_ = (*stated.checkpoint.split("\n"), "")  # without a key too
    if stated.checkpoint and (origin.rpartition("/")[2], size) != (
        root_of(stated.scope),
        str(last),
    ):
        raise StatementError(_TWO_ANCHORS)
    listed = [
        one_line(f"{what}, {times:,} time{'s' * (times != 1)}")
        for what, times in others.most_common(LISTED)
    ]
    return "; ".join(
        [*listed, f"and {len(others) - LISTED:,} kinds more"] if len(others) > LISTED else listed
    )


def _anchor(stated: Statement, keys: Sequence[VerifierKey]) -> tuple[Anchor | None, int]:
    """The heads that the ledger must still contain, and for a scope its checkpoint if that is
    signed, and the number of its last entry.
    """
    heads = () if stated.anchor is None else stated.anchor.heads
    if not stated.scope:
        return stated.anchor, 0
    root, ends = root_of(stated.scope), dict(heads)
    size = ends[root].sequence if root in ends else 0
    signed = [Checkpoint.read(stated.checkpoint, keys)] if stated.checkpoint and keys else []
    if not size or any((each.root, each.size) != (root, size) for each in signed):
        raise StatementError(_TWO_ANCHORS)
    return Anchor(heads, tuple(signed)), size
