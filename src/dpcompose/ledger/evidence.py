"""Evidence: roots and states of trees of scopes that a keeper signs, proofs that an entry is under a signed root, and that a
later log extends an earlier one.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpcompose import check
from dpcompose.errors import (
    DomainError,
    EvidenceError,
    MissingExtraError,
    TamperedError,
    UnsupportedError,
)
from dpcompose.ledger import merkle
from dpcompose.ledger.amount import encode, scope_path
from dpcompose.ledger.entry import Entry
from dpcompose.ledger.merkle import HASH_SIZE, WIDTH, Range, leaf_hash
from dpcompose.ledger.scope import AccountNode, is_at_or_below, root_of
from dpcompose.ledger.tables import LedgerTables, node_of, scope_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ED25519 = b"\x01"
_DASH = "\u2014"
MOST_SIGNATURES = 100
_NAME = re.compile(r"[^\s+\x00-\x1f\x7f-\x9f]{1,200}")
_CONTROL = re.compile("[\0-\x09\x0b-\x1f]")


def base64_bytes(text: str) -> bytes:
    """The bytes of a text in base 64, written in the one usual way.

    Raises:
        ValueError: It is not.
    """
    try:
        found = b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if b64encode(found).decode() != text:
        raise ValueError("bits beyond the last byte")
    return found


def require_cryptography() -> None:
    """Raise MissingExtraError if nothing is installed that signs."""
    try:
        import cryptography  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise MissingExtraError("signing and checking signatures", "evidence") from None


def _key_id(name: str, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]


@dataclass(frozen=True)
class VerifierKey:
    """The public key of a signer. Auditors get it by a channel of their own, not from the ledger.

    Args:
        name: Of the signer, such as acme.example/privacy.
        public: 32 bytes.
    """

    name: str
    public: bytes

    @classmethod
    def read(cls, text: str) -> Self:
        """The key that `text` wrote: NAME+ID+KEY.

        Raises:
            DomainError: The text is no key.
        """
        name, public = _read_key(
            text, "key", "NAME+ID+KEY, the line that `dpcompose ledger evidence key` printed"
        )
        return cls(name, public)

    @property
    def text(self) -> str:
        """The key as one line."""
        return _key_text(self.name, self.public, self.public)

    @property
    def id(self) -> bytes:
        """The four bytes by which a signature names it."""
        return _key_id(self.name, self.public)

    def verifies(self, signature: bytes, text: str) -> bool:
        """Whether the signature of the text is this key's."""
        require_cryptography()
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text.encode())
        except (InvalidSignature, ValueError):
            return False
        return True

    @staticmethod
    def opened(note: str, keys: Sequence[VerifierKey]) -> tuple[str, VerifierKey]:
        """The text of a note, and the key of those given that signed it.

        Raises:
            EvidenceError: No such key signed it, or a signature of one is wrong.
        """
        text, found, signatures = note.rpartition("\n\n")
        lines = signatures.removesuffix("\n").split("\n")
        if not (
            found
            and note.endswith("\n")
            and 0 < len(lines) <= MOST_SIGNATURES
            and not _CONTROL.search(note)
        ):
            raise EvidenceError("it is no signed note: a text, an empty line, and signatures")
        signer = None
        for line in lines:
            for key in keys:
                signature = _signature(line, key)
                if signature is None:
                    continue
                if not key.verifies(signature, f"{text}\n"):
                    what = f"the signature of {key.name!r} is not that of this text"
                    raise EvidenceError(f"{what}: one of them was changed")
                signer = signer or key
        if signer is None:
            names = ", ".join(sorted({repr(key.name) for key in keys})) or "no key"
            raise EvidenceError(f"none of the keys given signed it ({names})")
        return f"{text}\n", signer


@dataclass(frozen=True)
class SigningKey:
    """The secret key of a signer; it stays with the keeper, and is never in a ledger.

    Args:
        name: Of the signer.
        seed: 32 random bytes.
    """

    name: str
    seed: bytes = field(repr=False)

    @classmethod
    def generate(cls, name: str) -> Self:
        """A new key, from the system's randomness.

        Raises:
            DomainError: The name is empty, or has spaces, a plus sign or control characters.
        """
        from secrets import token_bytes

        if not (isinstance(name, str) and _NAME.fullmatch(name)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "name", name, "a name without spaces and plus signs, such as acme.example/privacy"
            )
        return cls(name, token_bytes(32))

    @classmethod
    def read(cls, text: str) -> Self:
        """The key that `text` wrote.

        Raises:
            DomainError: The text is no secret key; it is not repeated.
        """
        start, _, rest = text.partition("KEY+")
        domain = "the secret key that `dpcompose ledger evidence key` wrote"
        if start != "PRIVATE+":
            raise DomainError("key", "this text", domain)
        name, seed = _read_key(rest, "key", domain, secret=True)
        return cls(name, seed)

    @property
    def text(self) -> str:
        """The key as one line: a secret."""
        return f"PRIVATE+KEY+{_key_text(self.name, self.seed, self.verifier.public)}"

    @property
    def verifier(self) -> VerifierKey:
        """The public key that belongs to it."""
        return VerifierKey(self.name, self._private().public_key().public_bytes_raw())

    def sign(self, text: str) -> str:
        """The text as a note with this signature.

        Raises:
            DomainError: The text is empty, has control characters, or does not end with its last line.
        """
        if not (text.endswith("\n") and text.strip() and not _CONTROL.search(text)):
            raise DomainError("text", text, "lines without control characters, each with its end")
        signature = self.verifier.id + self._private().sign(text.encode())
        return f"{text}\n{_DASH} {self.name} {b64encode(signature).decode()}\n"

    def _private(self) -> Ed25519PrivateKey:
        require_cryptography()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed)


def _key_text(name: str, key: bytes, public: bytes) -> str:
    return f"{name}+{_key_id(name, public).hex()}+{b64encode(_ED25519 + key).decode()}"


def _read_key(text: str, argument: str, domain: str, *, secret: bool = False) -> tuple[str, bytes]:
    name, _, rest = text.strip().partition("+")
    identity, _, encoded = rest.partition("+")
    try:
        kind, key = base64_bytes(encoded)[:1], base64_bytes(encoded)[1:]
    except ValueError:
        kind, key = b"", b""
    sound = bool(_NAME.fullmatch(name)) and kind == _ED25519 and len(key) == 32
    if sound:
        public = SigningKey(name, key).verifier.public if secret else key
        sound = _key_id(name, public).hex() == identity
    if not sound:
        raise DomainError(argument, "this text" if secret else text, domain)
    return name, key


def _signature(line: str, key: VerifierKey) -> bytes | None:
    """The signature of a line, if the line names this key."""
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.rpartition(" ")
    try:
        content = base64_bytes(encoded)
    except ValueError:
        raise EvidenceError("a line of signatures cannot be read") from None
    if dash != _DASH or len(content) < 5:
        raise EvidenceError("a line of signatures cannot be read")
    return content[4:] if (name, content[:4]) == (key.name, key.id) else None


@dataclass
class TiledTree:
    """The tree of hashes of a log, read from tiles and, at the right edge, from the entries: O(log n) for each root.

    Args:
        snapshot: The log.
        root: Its top-level scope.
    """

    snapshot: LedgerTables
    root: str
    _tiles: dict[tuple[int, int], Sequence[bytes]] = field(
        default_factory=dict[tuple[int, int], Sequence[bytes]]
    )

    def hashes(self, ranges: Iterable[Range]) -> list[bytes]:
        """The roots over subtrees."""
        return [merkle.root_over(self._complete, *each) for each in ranges]

    def proven(self, sequence: int, checkpoint: Checkpoint) -> tuple[str, list[bytes]] | None:
        """The body of an entry and its path to the root that was signed; None if what is stored does not lead there."""
        index, size = sequence - 1, checkpoint.size
        path = self.hashes(merkle.inclusion_ranges(index, 0, size))
        for record in self.snapshot.records(self.root, after=index, limit=1):
            root = merkle.root_from_inclusion(leaf_hash(record.body), index, size, path)
            if record.sequence == sequence and root == checkpoint.root_hash:
                return record.body, path
        return None

    def _complete(self, leaves: Range) -> bytes | None:
        """The root over a complete subtree, from the tile whose hashes are next below it."""
        start, stop = leaves
        size = stop - start
        if size & (size - 1):
            return None
        level = max(size.bit_length() - 1, 0) // (WIDTH.bit_length() - 1)
        unit = WIDTH**level
        first = start // unit
        hashes = self._tile(level, first // WIDTH)[first % WIDTH :]
        return merkle.root_hash(hashes[: size // unit])

    def _tile(self, level: int, number: int) -> Sequence[bytes]:
        """The hashes of a tile; of one that is not full those that are there."""
        if (level, number) not in self._tiles:
            tile, first = self.snapshot.tile(self.root, level, number), number * WIDTH
            if tile is not None:
                hashes = tile
            elif level:
                hashes = self.snapshot.tops(self.root, level - 1, first, first + WIDTH)
            else:
                records = self.snapshot.records(self.root, after=first, limit=WIDTH)
                hashes = [leaf_hash(record.body) for record in records]
            self._tiles[level, number] = hashes
        return self._tiles[level, number]


_STATE = "state "
_NOTES = re.compile(r"(?:[^\n]+\n){3,}\n(?:\u2014 [^\n]*\n)+")
_NUMBER = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True)
class Checkpoint:
    """A signed root.

    Args:
        root: The top-level scope.
        size: How many of its entries are under the root.
        root_hash: 32 bytes.
        signer: The key that signed.
        note: The whole, as text.
    """

    root: str
    size: int
    root_hash: bytes
    signer: VerifierKey
    note: str

    @classmethod
    def sign(
        cls, snapshot: LedgerTables, root: str, key: SigningKey, *, state: str = ""
    ) -> Checkpoint:
        """A checkpoint of all entries of one top-level scope, now; with the digest of its `State`, if that is named.

        Raises:
            DomainError: The scope is no top-level one, or has no entries.
        """
        scope_path(root)
        size = snapshot.head(root).sequence
        if not size:
            raise DomainError(
                "scope",
                root,
                f"one of the top-level scopes: {', '.join(snapshot.roots()) or 'none'}",
            )
        (top,) = TiledTree(snapshot, root).hashes([(0, size)])
        text = f"{key.name}/{root}\n{size}\n{b64encode(top).decode()}\n"
        text += f"{_STATE}{state}\n" if state else ""
        return cls(root, size, top, key.verifier, key.sign(text))

    @classmethod
    def read(cls, note: str, keys: Sequence[VerifierKey]) -> Checkpoint:
        """The checkpoint that one of these keys signed.

        Raises:
            EvidenceError: None of them did, or it is no checkpoint.
        """
        text, signer = VerifierKey.opened(note, keys)
        origin, size, encoded, *_ = (*text.split("\n"), "", "", "")
        try:
            root_hash, root = (
                base64_bytes(encoded),
                scope_path(origin.removeprefix(f"{signer.name}/")),
            )
        except ValueError:
            root_hash, root = b"", ""
        own = origin == f"{signer.name}/{root}" and root_of(root) == root
        if not (own and _NUMBER.fullmatch(size) and len(root_hash) == HASH_SIZE):
            raise EvidenceError(
                f"what {signer.name!r} signed is no checkpoint of a top-level scope"
            )
        return cls(root, int(size), root_hash, signer, note)

    @property
    def state(self) -> str:
        """The digest of the state after its entries; empty if none was signed."""
        line = self.note.split("\n", 4)[3]
        return line.removeprefix(_STATE) if line.startswith(_STATE) else ""

    @classmethod
    def read_all(cls, text: str, keys: Sequence[VerifierKey]) -> tuple[Checkpoint, ...]:
        """The checkpoints of a text, one after the other.

        Raises:
            EvidenceError: It is something else, or one of them is signed by none of these keys.
        """
        notes = _NOTES.findall(text)
        if not notes or _NOTES.sub("", text).strip():
            raise EvidenceError("it holds something else than checkpoints")
        return tuple(cls.read(note, keys) for note in notes)


def key_path(root: str, key: VerifierKey) -> str:
    """The scope that announces a key: `world/key-0a1b2c3d`, opened to announce and closed to revoke."""
    check.kind("key", key, VerifierKey, "the public key of a signer")
    return f"{root}/key-{key.id.hex()}"


@dataclass(frozen=True)
class State:
    """Every scope with its balance and every fact of one tree, a line for each.

    Args:
        root: The top-level scope.
        size: After so many entries.
        lines: As `LedgerTables.state` gives them.
    """

    root: str
    size: int
    lines: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: LedgerTables, root: str) -> Self:
        """The state of a tree now."""
        return cls(root, snapshot.head(root).sequence, tuple(snapshot.state(root)))

    @classmethod
    def read_all(cls, text: str) -> tuple[Self, ...]:
        """The states of a text, each as `text` wrote it, with a blank line between two.

        Raises:
            DomainError: It is something else.
        """
        try:
            return tuple(cls._read(each.rstrip("\n").split("\n")) for each in text.split("\n\n"))
        except (ValueError, TypeError, KeyError, RecursionError):
            domain = "what `dpcompose ledger evidence checkpoint --state` wrote"
            raise DomainError("state", f"{text[:40]}...", domain) from None

    @classmethod
    def _read(cls, lines: list[str]) -> Self:
        header = json.loads(lines[0])
        return cls(header["root"], int(header["size"]), tuple(lines[1:]))

    @cached_property
    def text(self) -> str:
        """The state as text."""
        return "\n".join([encode({"root": self.root, "size": self.size}), *self.lines, ""])

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the text in base 64."""
        return b64encode(sha256(self.text.encode()).digest()).decode()

    @cached_property
    def scopes(self) -> dict[str, str]:
        """The lines of scopes by path."""
        own = ((line[2 : line.index('"', 2)], line) for line in self.lines if line[:1] == "[")
        return {json.loads(f'"{path}"') if "\\" in path else path: line for path, line in own}

    @property
    def facts(self) -> Iterator[tuple[str, str, str]]:
        """Kind, name and JSON of each fact."""
        for line in self.lines:
            if line[:1] == "{":
                fact: dict[str, str] = json.loads(line)
                yield fact["kind"], fact["name"], fact["value"]

    def node(self, path: str) -> AccountNode | None:
        """The scope of that path with its balance."""
        line = self.scopes.get(path)
        if line is None:
            return None
        row: list[Any] = json.loads(line)
        return node_of(scope_of((self.root, *row[:6])), tuple(row[6:]))


INCLUSION, CONSISTENCY = "c2sp.org/tlog-proof@v1", "dpcompose.ledger/consistency@v1"
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})", re.ASCII)


@dataclass(frozen=True)
class Evidence:
    """The facts that a valid proof shows.

    Args:
        checkpoint: The checkpoint that the proof is about; of two, the later one.
        entry: The entry that the checkpoint covers; None for a proof about two checkpoints.
        earlier: The checkpoint that `checkpoint` extends; None for a proof about an entry.
    """

    checkpoint: Checkpoint
    entry: Entry | None = None
    earlier: Checkpoint | None = None

    @staticmethod
    def prove_inclusion(snapshot: LedgerTables, sequence: int, checkpoint: Checkpoint) -> str:
        """The text that shows, to who has the signer's key, that an entry is under the checkpoint.

        Args:
            snapshot: The log.
            sequence: The number of the entry.
            checkpoint: The signed one.

        Raises:
            DomainError: The checkpoint does not reach that entry.
            TamperedError: The log is not the one that was signed.
        """
        if not (type(sequence) is int and 1 <= sequence <= checkpoint.size):
            domain = f"an entry of {checkpoint.root!r} under the checkpoint, 1 to {checkpoint.size}"
            raise DomainError("entry", sequence, domain)
        found = _tree(snapshot, checkpoint).proven(sequence, checkpoint)
        if found is None:
            raise _other_log(checkpoint)  # the entry, or a tile, is not what was signed
        body, path = found
        extra = b64encode(body.encode()).decode()
        return (
            f"{INCLUSION}\nextra {extra}\nindex {sequence - 1}\n{_lines(path)}\n{checkpoint.note}"
        )

    @staticmethod
    def prove_consistency(snapshot: LedgerTables, earlier: Checkpoint, later: Checkpoint) -> str:
        """The text that shows that nothing under the earlier checkpoint was changed or taken away before the later one.

        Raises:
            DomainError: They are of two top-level scopes, or the first is not the earlier one.
            TamperedError: The log is not the one that was signed.
        """
        if not (earlier.root == later.root and earlier.size <= later.size):
            checkpoint = f"{earlier.root} with {earlier.size} entries"
            domain = f"an earlier checkpoint of {later.root!r}, of at most {later.size} entries"
            raise DomainError("earlier", checkpoint, domain)
        tree = _tree(snapshot, later)
        if tree.hashes([(0, earlier.size)]) != [earlier.root_hash]:
            raise _other_log(earlier)
        path = _lines(tree.hashes(merkle.consistency_ranges(earlier.size, 0, later.size)))
        return f"{CONSISTENCY}\n{path}\n{earlier.note}{later.note}"

    @classmethod
    def read(cls, text: str, keys: Sequence[VerifierKey]) -> Evidence:
        """The evidence in a proof. It needs no ledger, and trusts nothing in the text but what one of the keys signed.

        Args:
            text: As `prove_inclusion` or `prove_consistency` wrote it.
            keys: Those of the signers that are trusted.

        Raises:
            EvidenceError: The proof does not hold: a signature is missing or wrong, or the hashes do not fit.
        """
        head, separator, notes = text.partition("\n\n")
        kind, *lines = head.split("\n")
        if kind not in (INCLUSION, CONSISTENCY) or not separator:
            raise EvidenceError("it is no proof that `dpcompose ledger evidence prove` wrote")
        checkpoints, checked = (
            Checkpoint.read_all(notes, keys),
            _included if kind == INCLUSION else _consistent,
        )
        try:
            return checked(lines, checkpoints)
        except merkle.ProofError as error:
            raise EvidenceError(str(error)) from None


def _tree(snapshot: LedgerTables, checkpoint: Checkpoint) -> TiledTree:
    tree, size = TiledTree(snapshot, checkpoint.root), checkpoint.size
    whole = snapshot.head(checkpoint.root).sequence >= size
    if not (whole and tree.hashes([(0, size)]) == [checkpoint.root_hash]):
        raise _other_log(checkpoint)
    return tree


def _other_log(checkpoint: Checkpoint) -> TamperedError:
    return TamperedError(
        [f"{checkpoint.root}: its first {checkpoint.size} entries are not those that were signed"]
    )


def _lines(hashes: Sequence[bytes]) -> str:
    return "".join(f"{b64encode(each).decode()}\n" for each in hashes)


def _included(lines: Sequence[str], checkpoints: Sequence[Checkpoint]) -> Evidence:
    extra, index, *hashes = lines if len(lines) > 1 else ("", "")
    found, (checkpoint, *more) = _INDEX.fullmatch(index), checkpoints
    if more or not extra.startswith("extra ") or found is None:
        raise EvidenceError(
            "the entry, its number and one checkpoint are not there as a proof writes them"
        )
    try:
        body = base64_bytes(extra.removeprefix("extra ")).decode()
        entry = Entry.of(body)
        position = entry.root, entry.sequence
    except (ValueError, TamperedError):
        raise EvidenceError("the entry cannot be read") from None
    if position != (checkpoint.root, int(found[1]) + 1) or not position[1] <= checkpoint.size:
        raise EvidenceError("the entry is not the one of that number")
    root = merkle.root_from_inclusion(
        leaf_hash(body), position[1] - 1, checkpoint.size, _hashes(hashes)
    )
    if root != checkpoint.root_hash:
        raise EvidenceError("the entry is not under the root that was signed")
    return Evidence(checkpoint, entry=entry)


def _consistent(lines: Sequence[str], checkpoints: Sequence[Checkpoint]) -> Evidence:
    if len(checkpoints) != 2:
        raise EvidenceError("a proof about two checkpoints holds two, the earlier one first")
    earlier, later = checkpoints
    if earlier.root != later.root or not earlier.size <= later.size:
        raise EvidenceError("the checkpoints are of two top-level scopes, or not in order")
    roots = merkle.roots_from_consistency(
        earlier.root_hash, earlier.size, later.size, _hashes(lines)
    )
    if roots != (earlier.root_hash, later.root_hash):
        raise EvidenceError(
            f"the later checkpoint of {later.root!r} does not go on from the earlier one: a forked log"
        )
    return Evidence(later, earlier=earlier)


def _hashes(lines: Sequence[str]) -> list[bytes]:
    try:
        found = [base64_bytes(line) for line in lines]
    except ValueError:
        found = [b""]
    if any(len(each) != HASH_SIZE for each in found):
        raise EvidenceError("its hashes cannot be read")
    return found


@dataclass(frozen=True)
class Published:
    """The file that `dpcompose ledger evidence checkpoint` writes, and the keys that sign it.

    Args:
        file: Read anew for each question, so that a keeper replaces it at any time.
        keys: Public ones.
    """

    file: Path
    keys: Sequence[VerifierKey]

    def checkpoint(self, root: str) -> Checkpoint:
        """The largest checkpoint of a tree.

        Raises:
            UnsupportedError: There is none that a trusted key signed.
        """
        try:
            found = Checkpoint.read_all(self.file.read_text("utf-8"), self.keys)
        except (OSError, EvidenceError, UnicodeDecodeError):
            found = ()
        own = [each for each in found if each.root == root]
        if not own:
            raise UnsupportedError(
                "a proof", "no signed checkpoint of this tree is published", "Ask its keeper"
            )
        return max(own, key=lambda each: each.size)

    def proof(self, snapshot: LedgerTables, scope: str, entry: int) -> str:
        """The proof that an entry at or below a scope is under the checkpoint of its tree.

        Raises:
            DomainError: There is no such entry there.
        """
        root = root_of(scope)
        for record in snapshot.records(root, after=entry - 1, limit=1):
            if record.sequence == entry and is_at_or_below(record.scope, scope):
                return Evidence.prove_inclusion(snapshot, entry, self.checkpoint(root))
        raise DomainError("entry", entry, f"the number of an entry of {scope!r}")
