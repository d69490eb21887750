"""Signed notes: a text, and below it the signatures of those who vouch for it (Ed25519).

The format is that of transparency logs (https://c2sp.org/signed-note), so that their tools read it too.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Self

from dpcompose.errors import DomainError, EvidenceError, MissingExtraError

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
    """The public key of a signer: what those who check are given, by a way of its own.

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


def opened_note(note: str, keys: Sequence[VerifierKey]) -> tuple[str, VerifierKey]:
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


def _signature(line: str, key: VerifierKey) -> bytes | None:
    """The signature of a line, if it says that it is this key's."""
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.rpartition(" ")
    try:
        content = base64_bytes(encoded)
    except ValueError:
        raise EvidenceError("a line of signatures cannot be read") from None
    if dash != _DASH or len(content) < 5:
        raise EvidenceError("a line of signatures cannot be read")
    return content[4:] if (name, content[:4]) == (key.name, key.id) else None
