"""Stores of released answers, which serve retries, and receipts that are redeemed once: noise is
drawn once for a charge.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import LOCK_EX, flock
from hmac import compare_digest
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeVar, runtime_checkable

from dpcompose.errors import DomainError, DPComposeError, ReleaseError, StoreError
from dpcompose.files import path_of
from dpcompose.ledger import Receipt
from dpcompose.release.bounding import Redeemer


@dataclass(frozen=True)
class InMemory:
    """A store of answers in the memory of one process."""

    texts: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    turns: dict[str, Lock] = field(default_factory=dict[str, Lock], repr=False)

    def turn(self, receipt: Receipt) -> AbstractContextManager[object]:
        """Lock the answers of a receipt against all other users of this store."""
        return self.turns.setdefault(receipt.to_json(), Lock())

    def find(self, receipt: Receipt, seal: bytes) -> list[Any] | None:
        """Return the answers of a receipt; None if this store has none."""
        text = self.texts.get(receipt.to_json())
        return None if text is None else json.loads(text)

    def keep(self, receipt: Receipt, answers: list[Any], seal: bytes) -> None:
        """Store the answers of a receipt, authenticated with the key `seal`."""
        self.texts[receipt.to_json()] = json.dumps(answers)


@dataclass(frozen=True)
class InDirectory:
    """A store with one file for each answer, written atomically and synced to disk before the
    answer is released.

    A file that was not stored whole must not show a draw, since the charge of a draw that nobody
    was shown may be answered by no other. So answers are written under a key of their own. It is in
    memory only, until one step renames the file: then it is visible, and the key is in its name.

    Args:
        path: The directory; created if missing.
    """

    path: Path

    def __post_init__(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DomainError(
                "answers", str(self.path), f"a directory that can be made ({error.strerror})"
            ) from None
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise DomainError("answers", str(self.path), "a directory that can be written")

    @contextmanager
    def turn(self, receipt: Receipt) -> Generator[None]:
        """Lock the answers of a receipt by a lock file. The lock ends with its process; the file is
        removed once an answer exists.
        """
        lock = self.path / f"{name_of(receipt)}.turn"
        with self._storing(), ExitStack() as opened:
            stream = opened.enter_context(lock.open("w"))
            flock(stream, LOCK_EX)
            kept = opened.pop_all()
        with kept:
            yield
            with suppress(OSError):
                if self._stored(receipt) is not None:
                    lock.unlink()

    def find(self, receipt: Receipt, seal: bytes) -> list[Any] | None:
        """Return the answers of a receipt; None if there are none.

        Raises:
            ReleaseError: If the file is damaged or was not authenticated with this key.
        """
        file = self._stored(receipt)
        if file is None:
            return None
        text = ""
        with suppress(OSError, ValueError):
            text = file.read_text(encoding="utf-8")
        _, *key, _ = file.name.split(".")
        return revealed(receipt, key[0] if key else "", text, seal, str(file))

    def keep(self, receipt: Receipt, answers: list[Any], seal: bytes) -> None:
        """Store the answers of a receipt, authenticated with the key `seal`; they are durable when
        this returns.
        """
        key, text = concealed(receipt, answers, seal)
        with self._storing():
            partial = self.path / f"{name_of(receipt)}.{os.getpid()}.partial"
            with partial.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(self.path / f"{name_of(receipt)}.{key}.json")
            directory = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    @contextmanager
    def _storing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise ReleaseError(
                f"{self.path}: the answer could not be stored ({error.strerror}): the charge stands, and no answer "
                "left. Make room or give the directory back, and ask again under a new key, which is charged anew"
            ) from None

    def _stored(self, receipt: Receipt) -> Path | None:
        """Return the file of the answers of a receipt; None if there is none."""
        return next(self.path.glob(f"{name_of(receipt)}*.json"), None)


def name_of(receipt: Receipt) -> str:
    """Return the name under which the answers of a receipt are stored."""
    return hashlib.sha256(receipt.to_json().encode()).hexdigest()


def concealed(receipt: Receipt, answers: list[Any], seal: bytes) -> tuple[str, str]:
    """Return a new key and the answers of a receipt encrypted with it, authenticated with the key
    `seal`. Until the key is stored, the text shows nothing.
    """
    key = secrets.token_bytes(32)
    hidden = _hidden(json.dumps(answers).encode(), key, seal)
    document = {"seal": _sealed(receipt, key + hidden, seal), "answers": hidden.hex()}
    return key.hex(), json.dumps(document)


def revealed(receipt: Receipt, key: str, text: str, seal: bytes, where: str) -> list[Any]:
    """Return the answers of a receipt from their key and text; without a key they are in plain, as
    commit aa7d735 stored them.

    Raises:
        ReleaseError: If the text at this place is damaged or was not authenticated with `seal`.
    """
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        document: dict[str, Any] = json.loads(text)
        if not key:
            plain = json.dumps([receipt.to_json(), document["answers"]], sort_keys=True)
            if compare_digest(document["seal"], _digest(plain.encode(), seal)):
                return document["answers"]
        hidden = bytes.fromhex(document["answers"])
        if compare_digest(document["seal"], _sealed(receipt, bytes.fromhex(key) + hidden, seal)):
            return json.loads(_hidden(hidden, bytes.fromhex(key), seal))
    raise ReleaseError(
        f"{where}: the stored answer was changed or cannot be read. Nothing was charged now; the charge of this key "
        "is spent. Restore it, or ask again under a new key, which is charged anew"
    )


def _sealed(receipt: Receipt, stored: bytes, seal: bytes) -> str:
    """Return the HMAC of stored bytes and their receipt, which names the request by the hash of its
    ledger entry.
    """
    return _digest(receipt.to_json().encode() + stored, seal)


def _digest(text: bytes, seal: bytes) -> str:
    return hmac.new(seal, text, hashlib.sha256).hexdigest()


def _hidden(text: bytes, key: bytes, seal: bytes) -> bytes:
    """Encrypt or decrypt a text with a key that is used once: its sum with the output of SHAKE-256
    on that key and `seal`.
    """
    mask = hashlib.shake_256(hmac.new(seal, key, hashlib.sha256).digest()).digest(len(text))
    return bytes(letter ^ other for letter, other in zip(text, mask, strict=True))


@runtime_checkable
class AnswerStore(Protocol):
    """A store of released answers by receipt."""

    def turn(self, receipt: Receipt) -> AbstractContextManager[object]:
        """Lock the answers of a receipt against all other users of this store."""
        ...

    def find(self, receipt: Receipt, seal: bytes) -> list[Any] | None:
        """Return the answers of a receipt; None if this store has none."""
        ...

    def keep(self, receipt: Receipt, answers: list[Any], seal: bytes) -> None:
        """Store the answers of a receipt, authenticated with the key `seal`; they are durable when
        this returns.
        """
        ...


def answers_at(place: str | Path | AnswerStore | None) -> AnswerStore:
    """Return the store in this directory; for None a store in the memory of this process."""
    if isinstance(place, AnswerStore):
        return place
    return InMemory() if place is None else InDirectory(path_of("answers", place))


T = TypeVar("T")
TURNS = 3
"""How often a ledger is asked that does not say whether it redeemed a charge."""
_UNTOLD: dict[tuple[int, str], str] = {}
"""Nonces of attempts whose outcome is unknown, by process and charge; never stored or shared."""


def attempted(charge: str, redeem: Callable[[str], T]) -> T:
    """Redeem a charge by `redeem(nonce)`. At most one caller ever returns from here, so noise is
    drawn at most once.

    If the outcome of an attempt is unknown, nothing was drawn, and its nonce is remembered: the
    next call in this process repeats the same attempt. A nonce belongs to one attempt at a time and
    to one process, also after a fork.

    Args:
        charge: Names the charge.
        redeem: Redeems it with a nonce.

    Raises:
        AlreadyRedeemedError: If another attempt redeemed the charge.
        StoreError: If the ledger could not be reached or does not know the outcome; a retry with
            the same key may succeed.
    """
    place = (os.getpid(), charge)
    nonce = _UNTOLD.pop(place, None) or secrets.token_hex(32)
    try:
        for _ in range(TURNS - 1):
            try:
                return redeem(nonce)
            except StoreError as error:
                if not error.uncertain:
                    raise
        return redeem(nonce)
    except BaseException as error:
        if isinstance(error, StoreError) or not isinstance(error, DPComposeError):
            _UNTOLD[place] = nonce
        raise


def redeemed(ledger: Redeemer, receipt: Receipt, *, actor: str) -> None:
    """Redeem a receipt; see `attempted`."""
    attempted(receipt.to_json(), lambda nonce: ledger.redeem(receipt, actor=actor, nonce=nonce))
