"""`dpcompose ledger`: signed checkpoints, and proofs that can be checked without the ledger."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcompose.cli.ledger_read import keys_of, opened, require_harmless, text_of
from dpcompose.cli.options import Actor, Json, LedgerUrl, TrustedKeys, option
from dpcompose.cli.output import REFUSED, emit_document, error_boundary, write
from dpcompose.cli.streams import stderr, stdout
from dpcompose.errors import DomainError, EvidenceError, printable

if TYPE_CHECKING:
    from dpcompose.ledger import Checkpoint, Evidence, SigningKey, VerifierKey

SecretKey = Annotated[Path | None, option("The file of the secret key that signs.", "FILE")]
Out = Annotated[Path | None, option("Write to a file instead of printing.", "FILE")]
Scope = Annotated[
    str, typer.Argument(metavar="SCOPE", help="A top-level scope.", show_default=False)
]


def key(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Who signs, such as acme.example/privacy.")
    ],
    out: Annotated[Path | None, option("Write the secret key to this new file.", "FILE")] = None,
    json: Json = False,
) -> None:
    """Make a key that signs checkpoints, and print its public half for those who check."""
    from dpcompose.ledger import SigningKey

    with error_boundary():
        if out is None:
            raise DomainError("--out", None, "a new file for the secret key; it is never printed")
        made = SigningKey.generate(name)
        public = made.verifier.text
        try:
            handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise DomainError(
                "--out", str(out), f"a new file that can be written ({error.strerror})"
            ) from None
        with os.fdopen(handle, "w") as file:
            file.write(f"{made.text}\n")
    if json:
        emit_document("ledger key", {"key": public, "secret": str(out)})
    else:
        stdout(f"{public}\n")
        stderr(f"wrote the secret key to {printable(str(out))}; whoever has it can sign")


def announce(
    url: LedgerUrl,
    scope: Scope,
    key: Annotated[str, option("The public key, or a file of it.", "KEY")],
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke it instead.")] = False,
    actor: Actor = "keeper",
) -> None:
    """Record in the log which key signs its checkpoints, or that it does no more."""
    with error_boundary(), opened(url) as ledger:
        from dpcompose.ledger import Evidence

        for each in keys_of([key]):
            (Evidence.revoke_key if revoke else Evidence.announce_key)(
                ledger, scope, each, actor=actor
            )
            stdout(f"{printable(scope)}: {each.text} {'revoked' if revoke else 'announced'}\n")


def checkpoint(
    url: LedgerUrl,
    scope: Annotated[
        str | None, typer.Argument(metavar="[SCOPE]", help="One top-level scope.")
    ] = None,
    key: SecretKey = None,
    out: Out = None,
) -> None:
    """Sign the state of the log now; whoever keeps it sees later whether anything was changed or taken away."""
    with error_boundary():
        require_harmless("--out", out)
    with error_boundary(), opened(url, reading=True) as ledger:
        from dpcompose.ledger import Checkpoint

        signer = _secret(key)
        with ledger.moment() as moment:
            roots = moment.snapshot.roots() if scope is None else [scope]
            notes = [Checkpoint.sign(moment.snapshot, root, signer).note for root in roots]
    with error_boundary():
        _written("".join(notes), out)


def prove(
    url: LedgerUrl,
    scope: Scope,
    entry: Annotated[int | None, option("Prove that this entry is in the log.", "N")] = None,
    since: Annotated[
        Path | None, option("Prove that the log goes on from this checkpoint.", "FILE")
    ] = None,
    checkpoint: Annotated[
        Path | None, option("Under this checkpoint; else a new one is signed.", "FILE")
    ] = None,
    trust: TrustedKeys = None,
    key: SecretKey = None,
    out: Out = None,
) -> None:
    """Write a proof that `check-proof` checks without the ledger: of one entry, or that nothing was changed since."""
    with error_boundary():
        require_harmless("--out", out)
    with error_boundary(), opened(url, reading=True) as ledger:
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
    with error_boundary():
        _written(text, out)


def check_proof(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A proof.", show_default=False)],
    trust: TrustedKeys = None,
    json: Json = False,
) -> None:
    """Check a proof against the keys that you trust; no ledger is needed. Exit status 1: it shows nothing."""
    from dpcompose.ledger import Evidence

    with error_boundary():
        keys = keys_of(trust)
        if not keys:
            raise DomainError(
                "--trust", None, "the public key of the signer, from a source of your own"
            )
        text = text_of("FILE", file)
        try:
            found = Evidence.read(text, keys)
        except EvidenceError as error:
            if json:
                emit_document("ledger check-proof", {"holds": False, "reason": error.reason})
            stderr(f"dpcompose: {printable(str(file))}: {error}")
            raise typer.Exit(REFUSED) from None
    if json:
        emit_document("ledger check-proof", {"holds": True, **_document(found)})
    else:
        stdout(_sentence(found))


def _document(found: Evidence) -> dict[str, Any]:
    later = found.checkpoint
    named: dict[str, Any] = {
        "scope": later.root,
        "entries": later.size,
        "signer": later.signer.text,
    }
    if found.entry is None:
        assert found.earlier is not None, "one of them is there"
        return named | {"kind": "consistency", "since": found.earlier.size}
    return named | {"kind": "inclusion", "entry": dict(found.entry.fields)}


def _sentence(found: Evidence) -> str:
    later, entry = found.checkpoint, found.entry
    who = f"{printable(later.root)}: signed by {printable(later.signer.name)} over {later.size} entries\n"
    if entry is None:
        assert found.earlier is not None, "one of them is there"
        return f"Nothing of the first {found.earlier.size} entries was changed or taken away\n{who}"
    cost = ", ".join(f"{name} {amount}" for name, amount in entry.cost.items())
    what = f"{printable(entry.scope)}, {entry.kind} at {printable(entry.time)} to {printable(entry.actor)}"
    return f"Entry {entry.sequence} is in the log: {what}{f', {cost}' if cost else ''}\n{who}"


def _secret(file: Path | None) -> SigningKey:
    from dpcompose.ledger import SigningKey

    if file is None:
        raise DomainError(
            "--key",
            None,
            "the file of the secret key",
            "Make one: dpcompose ledger key NAME --out FILE",
        )
    return SigningKey.read(text_of("--key", file))


def _checkpoint(argument: str, file: Path, scope: str, keys: Sequence[VerifierKey]) -> Checkpoint:
    from dpcompose.ledger import Checkpoint

    found = [
        each for each in Checkpoint.read_all(text_of(argument, file), keys) if each.root == scope
    ]
    if len(found) != 1:
        raise DomainError(argument, str(file), f"a file with one checkpoint of {scope!r}")
    return found[0]


def _written(text: str, out: Path | None) -> None:
    if out is None:
        stdout(text)
        return
    write("--out", out, text)
    stderr(f"wrote {printable(str(out))}")
