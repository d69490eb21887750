"""Checkpoints: heads of chains as notes that a keeper signs, over Merkle trees of the entries."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol, Self

from dpcompose.errors import DomainError, EvidenceError, MissingExtraError
from dpcompose.ledger.entry import Head, Record
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.text import scope_path

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
                    raise EvidenceError(
                        f"the signature of {key.name!r} is not that of this text: one of them was changed"
                    )
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


HASH_SIZE = 32
EMPTY = sha256(b"").digest()
"""The root of the tree without leaves."""


class ProofError(ValueError):
    """A list of hashes that is not that of a tree of this size."""


def leaf_hash(body: str) -> bytes:
    """The hash of a leaf: the text of an entry."""
    return sha256(b"\0" + body.encode()).digest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def _split(size: int) -> int:
    """The largest power of two below `size`, for sizes from 2."""
    return 1 << (size - 1).bit_length() - 1


WIDTH = 256
"""Hashes of a tile."""


@dataclass(frozen=True)
class Tile:
    """A full tile of the tree of hashes: so many hashes of one level side by side, and the root over them.

    Args:
        hashes: Of level 0 those of leaves; of a higher one the roots of tiles of the level below.
        top: Their root.
    """

    hashes: Sequence[bytes]
    top: bytes

    @classmethod
    def of(cls, hashes: Sequence[bytes]) -> Self:
        """The tile of these hashes."""
        return cls(hashes, root_hash(hashes))

    @classmethod
    def read(cls, hashes: str, top: str) -> Self:
        """The tile of a row."""
        data = bytes.fromhex(hashes)
        cut = [data[at : at + HASH_SIZE] for at in range(0, len(data), HASH_SIZE)]
        return cls(cut, bytes.fromhex(top))

    @property
    def texts(self) -> tuple[str, str]:
        """The tile for a row."""
        return b"".join(self.hashes).hex(), self.top.hex()


@dataclass
class Frontier:
    """A tree that grows by one leaf at a time and keeps nothing but the roots of its complete subtrees.

    Args:
        size: How many leaves it has.
    """

    size: int = 0
    _complete: list[bytes] = field(default_factory=list[bytes])

    def add(self, leaf: bytes) -> None:
        """Take one more leaf: each complete pair of subtrees becomes one."""
        self.size += 1
        complete = self.size
        while not complete & 1:
            leaf = _node_hash(self._complete.pop(), leaf)
            complete >>= 1
        self._complete.append(leaf)

    @property
    def root(self) -> bytes:
        """The root of the tree so far."""
        if not self._complete:
            return EMPTY
        *others, root = self._complete
        for left in reversed(others):
            root = _node_hash(left, root)
        return root


def root_hash(leaves: Iterable[bytes]) -> bytes:
    """The root of the tree of these leaves."""
    tree = Frontier()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root


class Log(Protocol):
    """The entries and tiles of a store at one moment."""

    def head(self, root: str) -> Head:
        """The last entry below a top-level scope."""
        ...

    def roots(self) -> list[str]:
        """The top-level scopes, sorted; also those that have entries but no scope."""
        ...

    def records(self, root: str, *, after: int, limit: int | None) -> Iterator[Record]:
        """The records of a top-level scope in order, above the number `after`."""
        ...

    def tile(self, root: str, level: int, number: int) -> Tile | None:
        """A full tile of the tree of hashes; None where it is not full."""
        ...

    def tops(self, root: str, level: int, first: int, stop: int) -> list[bytes]:
        """The roots of full tiles of a level, from one number to before another."""
        ...


@dataclass
class TiledTree:
    """The tree of hashes of a log, read from tiles and, at the right edge, from the entries: O(log n) for each root.

    Args:
        snapshot: The log.
        root: Its top-level scope.
    """

    snapshot: Log
    root: str
    _tiles: dict[tuple[int, int], Sequence[bytes]] = field(
        default_factory=dict[tuple[int, int], Sequence[bytes]]
    )

    def hashes(self, ranges: Iterable[Range]) -> list[bytes]:
        """The roots over subtrees."""
        return [root_over(self._complete, *each) for each in ranges]

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
        return root_hash(hashes[: size // unit])

    def _tile(self, level: int, number: int) -> Sequence[bytes]:
        """The hashes of a tile; of one that is not full those that are there."""
        if (level, number) not in self._tiles:
            tile, first = self.snapshot.tile(self.root, level, number), number * WIDTH
            if tile is not None:
                hashes = tile.hashes
            elif level:
                hashes = self.snapshot.tops(self.root, level - 1, first, first + WIDTH)
            else:
                records = self.snapshot.records(self.root, after=first, limit=WIDTH)
                hashes = [leaf_hash(record.body) for record in records]
            self._tiles[level, number] = hashes
        return self._tiles[level, number]


Range = tuple[int, int]
"""The first leaf of a subtree, and the one after its last."""


def root_over(hashes: Callable[[Range], bytes | None], start: int, stop: int) -> bytes:
    """The root over a range of leaves, from the hashes of the subtrees that have one.

    Raises:
        ProofError: There is a leaf in none of them.
    """
    found = hashes((start, stop))
    if found is not None:
        return found
    if stop - start == 1:
        raise ProofError("a hash that the proof needs is missing")
    split = start + _split(stop - start)
    return _node_hash(root_over(hashes, start, split), root_over(hashes, split, stop))


def inclusion_ranges(index: int, start: int, stop: int) -> list[Range]:
    """The subtrees that lead from one leaf to the root over a range, the leaf's neighbor first."""
    if stop - start == 1:
        return []
    split = start + _split(stop - start)
    if index < split:
        return [*inclusion_ranges(index, start, split), (split, stop)]
    return [*inclusion_ranges(index, split, stop), (start, split)]


def consistency_ranges(size: int, start: int, stop: int) -> list[Range]:
    """The subtrees that show that a tree of `stop` leaves goes on from that of the first `size`, whose root is known."""
    if size == stop:
        return [(start, stop)] if start else []
    split = start + _split(stop - start)
    if size <= split:
        return [*consistency_ranges(size, start, split), (split, stop)]
    return [*consistency_ranges(size, split, stop), (start, split)]


def complete_ranges(size: int) -> list[Range]:
    """The largest complete subtrees of a tree of so many leaves, from the left."""
    found: list[Range] = []
    for power in range(size.bit_length() - 1, -1, -1):
        start = found[-1][1] if found else 0
        if size >> power & 1:
            found.append((start, start + (1 << power)))
    return found


def named(ranges: Sequence[Range], hashes: Sequence[bytes]) -> dict[Range, bytes]:
    """The hashes of a proof by their subtrees.

    Raises:
        ProofError: There are more or fewer than such a proof has.
    """
    if len(ranges) != len(hashes):
        raise ProofError(f"it has {len(hashes)} hashes, and such a proof has {len(ranges)}")
    return dict(zip(ranges, hashes, strict=True))


def root_from_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """The root of a tree of `size` leaves that has this leaf at `index`, if the path is right; raises ProofError."""
    hashes = named(inclusion_ranges(index, 0, size), path)
    return root_over({**hashes, (index, index + 1): leaf}.get, 0, size)


def roots_from_consistency(
    root: bytes, size: int, later: int, path: Sequence[bytes]
) -> tuple[bytes, bytes]:
    """The roots of the trees of `size` and of `later` leaves, if the first is `root` and the path is right.

    Raises:
        ProofError: The path is not as long as that between such trees.
    """
    ranges = consistency_ranges(size, 0, later)
    hashes = named(ranges, path)
    if not any(
        stop == size for _, stop in ranges
    ):  # the earlier tree is a subtree of the later one
        hashes[0, size] = root
    return root_over(hashes.get, 0, size), root_over(hashes.get, 0, later)


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
    def sign(cls, snapshot: Log, root: str, key: SigningKey, *, state: str = "") -> Checkpoint:
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
    return f"{root}/key-{key.id.hex()}"
