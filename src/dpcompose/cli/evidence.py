"""`dpcompose ledger evidence` and `ledger admin`: signed checkpoints, proofs that can be checked without the ledger, copies
of a ledger as a whole; and the schemas of all documents.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose.cli.command import (
    ARGUMENT,
    Actor,
    KeptAnchor,
    LedgerUrl,
    Result,
    TrustedKeys,
    argument,
    command,
    option,
)
from dpcompose.cli.inputs import LARGEST_ANCHOR, anchor_in, keys_of, opened, read_text
from dpcompose.cli.output import REFUSED, Progress, stdout, write
from dpcompose.errors import DomainError, EvidenceError, printable

if TYPE_CHECKING:
    from dpcompose.ledger import Checkpoint, Evidence, SigningKey, VerifierKey

SecretKey = Annotated[Path | None, option("The file of the secret key that signs.", "FILE")]
Out = Annotated[Path | None, option("Write to a file instead of printing.", "FILE")]
Root = Annotated[str, argument("SCOPE", "A top-level scope.")]


@command("json", doing=None)
def key(
    name: Annotated[str, ARGUMENT],
    out: Path | None = None,
) -> Result:
    """Make a key that signs checkpoints, and print its public half for those who check.

    Args:
        name (NAME): Who signs, such as acme.example/privacy.
        out (FILE): Write the secret key to this new file.
    """
    from dpcompose.ledger import SigningKey

    if out is None:
        raise DomainError("--out", None, "a new file for the secret key; it is never printed")
    signer = SigningKey.generate(name)
    public = signer.verifier.text
    try:
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise DomainError(
            "--out", str(out), f"a new file that can be written ({error.strerror})"
        ) from None
    with os.fdopen(handle, "w") as file:
        file.write(f"{signer.text}\n")
    return Result(
        lambda: {"key": public, "secret": str(out)},
        text=f"{public}\n",
        remarks=[f"wrote the secret key to {printable(str(out))}; whoever has it can sign"],
    )


@command(doing=None)
def announce(
    url: LedgerUrl,
    scope: Root,
    key: str,
    revoke: bool = False,
    actor: Actor = "keeper",
) -> None:
    """Record in the log which key signs its checkpoints, or that it does no more.

    Args:
        key (KEY): The public key, or a file of it.
        revoke: Revoke it instead.
    """
    with opened(url) as ledger:
        for each in keys_of([key]):
            (ledger.revoke_key if revoke else ledger.announce_key)(scope, each, actor=actor)
            stdout(f"{printable(scope)}: {each.text} {'revoked' if revoke else 'announced'}\n")


@command(files={"out": (), "state": ()}, doing=None)
def checkpoint(
    url: LedgerUrl,
    scope: Annotated[str | None, ARGUMENT] = None,
    key: SecretKey = None,
    out: Out = None,
    state: Path | None = None,
) -> Result:
    """Sign the state of the log now; whoever keeps it sees later whether anything was changed or taken away.

    Args:
        scope ([SCOPE]): One top-level scope.
        state (FILE): Write all balances and policies to a file, and sign their digest: `verify` can begin there.
    """
    with opened(url, reading=True) as ledger:
        from dpcompose.ledger import Checkpoint, State

        signer = _secret(key)
        with ledger.moment() as moment:
            roots = moment.snapshot.roots() if scope is None else [scope]
            states = [] if state is None else [State.of(moment.snapshot, root) for root in roots]
            digests = [each.digest for each in states] or [""] * len(roots)
            notes = [
                Checkpoint.sign(moment.snapshot, root, signer, state=digest).note
                for root, digest in zip(roots, digests, strict=True)
            ]
    if state is not None:
        write("--state", state, "\n".join(each.text for each in states))
    return _signed("".join(notes), out)


@command(files={"out": ()}, doing=None)
def prove(
    url: LedgerUrl,
    scope: Root,
    entry: int | None = None,
    since: Path | None = None,
    checkpoint: Path | None = None,
    trust: TrustedKeys = None,
    key: SecretKey = None,
    out: Out = None,
) -> Result:
    """Write a proof that `check-proof` checks without the ledger: of one entry, or that nothing was changed since.

    Args:
        entry (N): Prove that this entry is in the log.
        since (FILE): Prove that the log goes on from this checkpoint.
        checkpoint (FILE): Under this checkpoint; else a new one is signed.
    """
    with opened(url, reading=True) as ledger:
        from dpcompose.ledger import Checkpoint, Evidence

        if (entry is None) == (since is None):
            raise DomainError(
                "--entry", entry, "a number, or --since with a checkpoint, one of them"
            )
        signer = None if key is None else _secret(key)
        keys = [*keys_of(trust), *([] if signer is None else [signer.verifier])]
        with ledger.moment() as moment:
            if checkpoint is not None:
                under = _checkpoint("--checkpoint", checkpoint, scope, keys)
            else:
                under = Checkpoint.sign(moment.snapshot, scope, _secret(key))
            if entry is not None:
                text = Evidence.prove_inclusion(moment.snapshot, entry, under)
            else:
                assert since is not None, "one of them is given"
                text = Evidence.prove_consistency(
                    moment.snapshot, _checkpoint("--since", since, scope, keys), under
                )
    return _signed(text, out)


@command("json", doing=None)
def check_proof(file: Annotated[Path, ARGUMENT], trust: TrustedKeys = None) -> Result:
    """Check a proof against the keys that you trust; no ledger is needed. Exit status 1: it shows nothing.

    Args:
        file (FILE): A proof.
    """
    from dpcompose.ledger import Evidence

    keys = keys_of(trust)
    if not keys:
        raise DomainError(
            "--trust", None, "the public key of the signer, from a source of your own"
        )
    try:
        proof = Evidence.read(read_text("FILE", file, most=LARGEST_ANCHOR), keys)
    except EvidenceError as error:
        document = {"holds": False, "reason": error.reason}
        remark = f"dpcompose: {printable(str(file))}: {error}"
        return Result(lambda: document, remarks=[remark], status=REFUSED)
    return Result(lambda: {"holds": True, **_document(proof)}, text=_sentence(proof))


def _document(proof: Evidence) -> dict[str, Any]:
    later, entry = proof.checkpoint, proof.entry
    signed = {"scope": later.root, "entries": later.size, "signer": later.signer.text}
    if entry is not None:
        return {**signed, "kind": "inclusion", "entry": dict(entry.fields)}
    return {**signed, "kind": "consistency", "since": _earlier(proof)}


def _sentence(proof: Evidence) -> str:
    later, entry = proof.checkpoint, proof.entry
    who = f"{printable(later.root)}: signed by {printable(later.signer.name)} over {later.size} entries\n"
    if entry is None:
        return f"Nothing of the first {_earlier(proof)} entries was changed or taken away\n{who}"
    cost = "".join(f", {name} {amount}" for name, amount in entry.cost.items())
    what = f"{printable(entry.scope)}, {entry.kind} at {printable(entry.time)} to {printable(entry.actor)}"
    return f"Entry {entry.sequence} is in the log: {what}{cost}\n{who}"


def _earlier(proof: Evidence) -> int:
    assert proof.earlier is not None, "a proof is of an entry or of what came before"
    return proof.earlier.size


def _secret(file: Path | None) -> SigningKey:
    from dpcompose.ledger import SigningKey

    if file is None:
        remedy = "Make one: dpcompose ledger evidence key NAME --out FILE"
        raise DomainError("--key", None, "the file of the secret key", remedy)
    return SigningKey.read(read_text("--key", file, most=LARGEST_ANCHOR))


def _checkpoint(named: str, file: Path, scope: str, keys: Sequence[VerifierKey]) -> Checkpoint:
    from dpcompose.ledger import Checkpoint

    checkpoints = Checkpoint.read_all(read_text(named, file, most=LARGEST_ANCHOR), keys)
    signed = [each for each in checkpoints if each.root == scope]
    if len(signed) != 1:
        raise DomainError(named, str(file), f"a file with one checkpoint of {scope!r}")
    return signed[0]


def _signed(text: str, out: Path | None) -> Result:
    """A text that is printed, or written to a file."""
    shown, put = "" if out else text, partial(write, "--out", text=text)
    return Result(dict, text=shown, files=[(out, put)])


@command(doing=None)
def schema(
    line: Annotated[list[str] | None, ARGUMENT] = None,
) -> None:
    """Print the JSON schema of a command's documents: dpcompose ledger admin schema ledger show.

    Args:
        line ([COMMAND]...): Such as account, or ledger show; left out: the names of all.
    """
    from dpcompose.document import dumps
    from dpcompose.report import DOCUMENTS, schema as schema_of

    stdout((dumps(schema_of(" ".join(line))) if line else "\n".join(DOCUMENTS)) + "\n")


@command("json", files={"keep": ()})
def backup(
    steps: Progress,
    url: LedgerUrl,
    out: Path | None = None,
    keep: Path | None = None,
) -> Result:
    """Copy a ledger that others go on using into a new file, and verify both.

    Args:
        out (FILE): The new file.
        keep (FILE): Write the anchor to a file, to be kept elsewhere.
    """
    if out is None:
        raise DomainError("--out", None, "a new file")
    with opened(url, reading=True) as ledger:
        from dpcompose.ledger import backup as backup_of

        copy = backup_of(ledger, out, progress=steps)
    anchor = copy.anchor.to_json()
    if keep is not None:
        write("--keep", keep, anchor + "\n")
    counts = {"entries": copy.entries, "scopes": copy.scopes}
    return Result(
        lambda: {"ledger": url, "backup": str(out), **counts, "anchor": anchor},
        text=_agreeing(str(out), copy.entries, copy.scopes),
    )


@command("json")
def restore(
    steps: Progress,
    source: Annotated[Path, ARGUMENT],
    url: LedgerUrl,
    anchor: KeptAnchor = None,
    trust: TrustedKeys = None,
    actor: Actor = "keeper",
) -> Result:
    """Make a ledger from a BACKUP where there is none yet; trees that lack entries of the anchor are closed.

    Args:
        source (BACKUP): What `backup` wrote.
    """
    from dpcompose.ledger import restore as restored_from

    wanted = None if anchor is None else anchor_in(anchor, trust)
    restored = restored_from(source, url, anchor=wanted, actor=actor, progress=steps)
    check, lost = restored.verification, restored.lost
    counts = {"entries": check.entries, "scopes": check.scopes, "anchored": anchor is not None}
    short = [{"scope": root, "has": has, "anchor": had} for root, (has, had) in lost.items()]
    remarks = [f"dpcompose: {_lost(root, *sizes)}" for root, sizes in lost.items()]
    if anchor is None:
        unknown = "No anchor was given: whether entries are lost is not known"
        remarks.append(f"{unknown}, and their budget may be given back")
    stated = {"ledger": url, "backup": str(source), **counts, "lost": short}
    stated["anchor"] = check.anchor.to_json()
    text = _agreeing(url, check.entries, check.scopes)
    return Result(lambda: stated, text=text, remarks=remarks)


def _lost(root: str, has: int, had: int) -> str:
    """A sentence on a restored tree that lacks entries: it has `has`, and its anchor `had`."""
    lost = f"what the anchor has after entry {has}, up to {had}, is lost; it is closed"
    following = "Open a new one that leaves out what may have been spent"
    return f"{printable(root)}: {lost if has else 'it is gone'}. {following}"


def _agreeing(where: str, entries: int, scopes: int) -> str:
    return f"{printable(where)}: {entries} entries and {scopes} scopes, which agree\n"
