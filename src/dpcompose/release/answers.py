"""Stores of released answers, which serve retries, and receipts that are redeemed once: noise is
drawn once for a charge.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import LOCK_EX, flock
from hmac import compare_digest
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from dpcompose.errors import DomainError, DPComposeError, ReleaseError, StoreError
from dpcompose.files import path_of
from dpcompose.ledger import Receipt
from dpcompose.release.bounding import Redeemer

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


class Shelf(ABC):
    """A store of answers as encrypted texts, each authenticated by a key of its scope.

    What was not stored whole must not show a draw, since the charge of a draw that nobody was shown
    may be answered by no other. So answers are written under a key of their own. It is in memory
    only, until one step shows the text: then it is visible, and the key stands beside it.
    """

    attempted = staticmethod(attempted)

    @abstractmethod
    def turn(self, receipt: Receipt) -> AbstractContextManager[object]:
        """Lock the answers of a receipt against all other users of this store."""

    @abstractmethod
    def read(self, name: str) -> tuple[str, str, str] | None:
        """Return the key and text of this name, and where it is; None if nothing is shown there."""

    @abstractmethod
    def write(self, name: str, text: str) -> None:
        """Write a text durably, without its key."""

    @abstractmethod
    def show(self, name: str, key: str) -> None:
        """Show the written text, in one durable step."""

    def find(self, receipt: Receipt, seal: bytes) -> list[Any] | None:
        """Return the answers of a receipt; None if there are none.

        Raises:
            ReleaseError: If the text is damaged or was not authenticated with this key.
        """
        stored = self.read(_name(receipt))
        if stored is None:
            return None
        key, text, where = stored
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            document: dict[str, Any] = json.loads(text)
            if not key:  # commit aa7d735 stored answers in plain
                plain = json.dumps([receipt.to_json(), document["answers"]], sort_keys=True)
                if compare_digest(document["seal"], _digest(plain.encode(), seal)):
                    return document["answers"]
            own, hidden = bytes.fromhex(key), bytes.fromhex(document["answers"])
            if compare_digest(document["seal"], _sealed(receipt, own + hidden, seal)):
                return json.loads(_hidden(hidden, own, seal))
        raise ReleaseError(
            f"{where}: the stored answer was changed or cannot be read. Nothing was charged now; the charge of this "
            "key is spent. Restore it, or ask again under a new key, which is charged anew"
        )

    def keep(self, receipt: Receipt, answers: list[Any], seal: bytes) -> None:
        """Store the answers of a receipt, authenticated with the key `seal`; they are durable when
        this returns.
        """
        key = secrets.token_bytes(32)
        hidden = _hidden(json.dumps(answers).encode(), key, seal)
        document = {"seal": _sealed(receipt, key + hidden, seal), "answers": hidden.hex()}
        self.write(_name(receipt), json.dumps(document))
        self.show(_name(receipt), key.hex())


@dataclass(frozen=True)
class InDirectory(Shelf):
    """A shelf with one file for each answer, written atomically and synced to disk before the
    answer is released. The key of a file is in its name.

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
        lock = self.path / f"{_name(receipt)}.turn"
        with self._storing(), ExitStack() as opened:
            stream = opened.enter_context(lock.open("w"))
            flock(stream, LOCK_EX)
            kept = opened.pop_all()
        with kept:
            yield
            with suppress(OSError):
                if self.read(_name(receipt)) is not None:
                    lock.unlink()

    def read(self, name: str) -> tuple[str, str, str] | None:
        file, text = next(self.path.glob(f"{name}*.json"), None), ""
        if file is None:
            return None
        with suppress(OSError, ValueError):
            text = file.read_text(encoding="utf-8")
        return file.suffixes[0].removesuffix(".json").removeprefix("."), text, str(file)

    def write(self, name: str, text: str) -> None:
        with self._storing(), self._partial(name).open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())

    def show(self, name: str, key: str) -> None:
        with self._storing():
            self._partial(name).replace(self.path / f"{name}.{key}.json")
            directory = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def _partial(self, name: str) -> Path:
        return self.path / f"{name}.{os.getpid()}.partial"

    @contextmanager
    def _storing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise ReleaseError(
                f"{self.path}: the answer could not be stored ({error.strerror}): the charge stands, and no answer "
                "left. Make room or give the directory back, and ask again under a new key, which is charged anew"
            ) from None


def _name(receipt: Receipt) -> str:
    return hashlib.sha256(receipt.to_json().encode()).hexdigest()


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


AnswerStore = InMemory | Shelf
"""A store of released answers by receipt."""


def answers_at(store: str | Path | Shelf | None) -> AnswerStore:
    """Return a store of answers: this one, one in this directory, or for None one in memory."""
    if isinstance(store, Shelf):
        return store
    return InMemory() if store is None else InDirectory(path_of("answers", store))
