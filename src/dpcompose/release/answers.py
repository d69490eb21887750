"""Answers that left, kept for retries: the same request is answered by the same numbers, never by a second draw."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dpcompose.errors import DomainError, ReleaseError
from dpcompose.ledger import Receipt


class Answers(Protocol):
    """A place for answers, by receipt."""

    def find(self, receipt: Receipt) -> list[Any] | None:
        """The answers of a receipt; None if there are none here."""
        ...

    def keep(self, receipt: Receipt, answers: list[Any]) -> None:
        """Keep the answers of a receipt; durable when it returns, if the place is."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Answers of one process."""

    kept: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def find(self, receipt: Receipt) -> list[Any] | None:
        text = self.kept.get(receipt.to_json())
        return None if text is None else json.loads(text)

    def keep(self, receipt: Receipt, answers: list[Any]) -> None:
        self.kept[receipt.to_json()] = json.dumps(answers)


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
            raise DomainError("answers", str(self.path), f"a directory that can be made ({error.strerror})") from None
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise DomainError("answers", str(self.path), "a directory that can be written")

    def find(self, receipt: Receipt) -> list[Any] | None:
        file = self._file(receipt)
        try:
            document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return document["answers"] if document["receipt"] == receipt.to_json() else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise ReleaseError(
                f"{file}: the stored answer cannot be read. Nothing was charged now; the charge of this key is spent. "
                "Restore the file, or ask again under a new key, which is charged anew"
            ) from None

    def keep(self, receipt: Receipt, answers: list[Any]) -> None:
        try:
            self._kept(receipt, answers)
        except OSError as error:
            raise ReleaseError(
                f"{self.path}: the answer could not be stored ({error.strerror}): the charge stands, and no answer "
                "left. Make room or give the directory back, and ask again under a new key, which is charged anew"
            ) from None

    def _kept(self, receipt: Receipt, answers: list[Any]) -> None:
        file = self._file(receipt)
        partial = file.with_suffix(f".{os.getpid()}.partial")
        with partial.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps({"receipt": receipt.to_json(), "answers": answers}))
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
        directory = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _file(self, receipt: Receipt) -> Path:
        return self.path / f"{hashlib.sha256(receipt.to_json().encode()).hexdigest()}.json"


def answers_at(place: str | Path | None) -> Answers:
    """The answers in a directory; of this process alone for None."""
    return InMemory() if place is None else InDirectory(Path(place))
