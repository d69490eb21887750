"""Answers that left, kept for retries, and receipts redeemed once: no charge is ever drawn for a second time."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import LOCK_EX, flock
from hmac import compare_digest
from pathlib import Path
from threading import Lock
from typing import Any

from dpcompose.errors import AlreadyRedeemedError, DomainError, ReleaseError, StoreError
from dpcompose.files import path_of
from dpcompose.ledger import Receipt
from dpcompose.release.bounding import Redeemer


@dataclass(frozen=True)
class InMemory:
    """Answers of one process."""

    texts: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    turns: dict[str, Lock] = field(default_factory=dict[str, Lock], repr=False)

    def turn(self, receipt: Receipt) -> AbstractContextManager[object]:
        """Wait until nobody else who shares this place works on the answers of a receipt."""
        return self.turns.setdefault(receipt.to_json(), Lock())

    def find(self, receipt: Receipt, seal: bytes) -> list[Any] | None:
        """The answers of a receipt; None if there are none here."""
        text = self.texts.get(receipt.to_json())
        return None if text is None else json.loads(text)

    def keep(self, receipt: Receipt, answers: list[Any], seal: bytes) -> None:
        """Keep the answers of a receipt, sealed with a key."""
        self.texts[receipt.to_json()] = json.dumps(answers)


@dataclass(frozen=True)
class InDirectory:
    """One file an answer, written whole or not at all, and on disk before the answer leaves.

    Args:
        path: The directory; made if it is not there.
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
        """A lock on a file, which ends with its process; the file goes once there is an answer."""
        file = self._file(receipt)
        lock = file.with_suffix(".turn")
        with self._storing(), ExitStack() as opened:
            stream = opened.enter_context(lock.open("w"))
            flock(stream, LOCK_EX)
            kept = opened.pop_all()
        with kept:
            yield
            with suppress(OSError):
                if file.exists():
                    lock.unlink()

    def find(self, receipt: Receipt, seal: bytes) -> list[Any] | None:
        """The answers of a receipt; None if there are none here.

        Raises:
            ReleaseError: If they were damaged, or not sealed with this key.
        """
        file = self._file(receipt)
        try:
            document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if compare_digest(document["seal"], _sealed(receipt, document["answers"], seal)):
                return document["answers"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        raise ReleaseError(
            f"{file}: the stored answer was changed or cannot be read. Nothing was charged now; the charge of this key "
            "is spent. Restore the file, or ask again under a new key, which is charged anew"
        )

    def keep(self, receipt: Receipt, answers: list[Any], seal: bytes) -> None:
        """Keep the answers of a receipt, sealed with a key; durable when it returns."""
        file = self._file(receipt)
        text = json.dumps({"seal": _sealed(receipt, answers, seal), "answers": answers})
        with self._storing():
            partial = file.with_suffix(f".{os.getpid()}.partial")
            with partial.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(file)
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

    def _file(self, receipt: Receipt) -> Path:
        return self.path / f"{hashlib.sha256(receipt.to_json().encode()).hexdigest()}.json"


def _sealed(receipt: Receipt, answers: Any, seal: bytes) -> str:
    """The HMAC of answers and of what was charged for them: the receipt names the request by the hash of its entry."""
    text = json.dumps([receipt.to_json(), answers], sort_keys=True)
    return hmac.new(seal, text.encode(), hashlib.sha256).hexdigest()


AnswerStore = InMemory | InDirectory
"""A store of answers, by receipt."""


def answers_at(directory: str | Path | None) -> AnswerStore:
    """The answers in a directory; of this process alone for None."""
    return InMemory() if directory is None else InDirectory(path_of("answers", directory))


TURNS = 3
"""How often one question asks a ledger that cannot tell."""
_UNTOLD: dict[tuple[int, str], str] = {}
"""The names of attempts that ended without a word, by process and receipt: never written, and never given to two."""


def redeemed(ledger: Redeemer, receipt: Receipt, *, actor: str) -> None:
    """Redeem a receipt, so that who returns from here, and nobody else, draws for it.

    An attempt whose end is not known keeps its name, and who asks next in this process makes the same one again:
    nothing was drawn for it. A name belongs to one attempt at a time, and to one process, however often that is forked.

    Raises:
        AlreadyRedeemedError: It was redeemed by another attempt.
        StoreError: The ledger could not be asked, or could not tell; asked again with the same key, it may.
    """
    place = (os.getpid(), receipt.to_json())
    nonce = _UNTOLD.pop(place, None) or secrets.token_hex(32)
    try:
        for _ in range(TURNS - 1):
            try:
                return ledger.redeem(receipt, actor=actor, nonce=nonce)
            except StoreError as error:
                if not error.uncertain:
                    raise
        return ledger.redeem(receipt, actor=actor, nonce=nonce)
    except AlreadyRedeemedError:
        raise
    except BaseException:
        _UNTOLD[place] = nonce
        raise
