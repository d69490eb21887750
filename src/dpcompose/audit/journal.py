"""The journal of an audit: a line for every batch, written before anybody is told of it, to go on from.

A run that ends at any time, also by `kill -9`, leaves its journal: the next run goes through it and tosses the coins
that come after. A line that was not written whole is the batch in flight; any other damage is an error: each line ends
with a digest of it and of all before it. Lines cut off at the end cannot be told from a kill. Rows in flight are lost,
and were on nobody's screen; a mark before every draw tells that they were, and the next coins are others.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcompose.audit import certificate as written
from dpcompose.audit.certificate import canonical
from dpcompose.audit.check import CertificateError, check
from dpcompose.audit.claim import Pair
from dpcompose.audit.outcome import Reading, code_of, read
from dpcompose.errors import DomainError

FORMAT, EARLIER = "dpcompose-audit-journal-3", "dpcompose-audit-journal-2"
"""The format that is written, and one that is read too, of rows without channels."""
_REMEDY = "Begin another journal, or restore this one"
_BOUND = {"bound": True}
_SAME = ("subject", "claim", "claims", "one_point", "alpha")


@dataclass
class Journal:
    """The open file of one audit.

    Args:
        header: The header of the certificate.
        seed: The seed of the coins, secret until the end.
        entries: The batches of earlier runs.
        lost: How often the next batch was in flight when a run ended.
        pairs: How many pairs it began with, the first ones of those that are asked for; None: all.
    """

    header: dict[str, Any]
    seed: bytes
    entries: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    lost: int = 0
    pairs: int | None = None
    _file: int = -1
    _link: bytes = b""

    @classmethod
    def opened(
        cls,
        path: str | Path,
        header: Mapping[str, Any],
        seed: bytes,
        pairs: Sequence[Pair],
        *,
        named: bool,
    ) -> Journal:
        """Begin a journal, or go on with the one that is there.

        Args:
            path: The file.
            header: The header of the audit that is asked for.
            seed: Its seed; one that is there has its own.
            pairs: Its pairs.
            named: Whether the seed was named, so that it has to be the one of the journal.

        Raises:
            DomainError: If the file cannot be written, is damaged, is in use, or belongs to another audit.
        """
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            text = Path(path).read_bytes()
        except BlockingIOError:
            raise DomainError(
                "resume", str(path), "a journal that no other audit writes to now"
            ) from None
        except OSError as error:
            raise DomainError(
                "resume", str(path), f"a file that can be written ({error.strerror})"
            ) from None
        found = cls(dict(header), seed, _file=file)
        try:
            return found._gone_on(path, text, [_digest(pair) for pair in pairs], named=named)
        except BaseException:
            found.close()
            raise

    def _gone_on(self, path: str | Path, text: bytes, pairs: list[Any], *, named: bool) -> Journal:
        whole, _, torn = text.rpartition(b"\n")
        if not text:
            self._write(
                {"format": FORMAT, "header": self.header, "seed": self.seed.hex(), "pairs": pairs}
            )
            return self
        found = self._read(path, whole, self._file, {"header": self.header, "pairs": pairs})
        if named and self.seed != found.seed:
            raise DomainError("seed", self.seed.hex(), f"the seed of the journal {path}, or none")
        if torn:
            os.ftruncate(self._file, len(whole) + 1)
        return found

    @classmethod
    def _read(cls, path: str | Path, whole: bytes, file: int, asked: Mapping[str, Any]) -> Journal:
        try:
            texts, link = _followed(whole.split(b"\n"))
            first, *lines = (json.loads(line) for line in texts)
            if first["format"] not in (FORMAT, EARLIER):
                raise ValueError(f"its format is not {FORMAT}")
            header, seed = first["header"], bytes.fromhex(first["seed"])
            same = {name: header[name] for name in _SAME} | {"pairs": first["pairs"]}
            entries = [line for line in lines if line != _BOUND]
            lost = next(
                (place for place, line in enumerate(reversed(lines)) if line != _BOUND), len(lines)
            )
            if entries:
                check(written.text_of(_sealed(header, seed, entries)))
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
            CertificateError,
        ) as error:
            raise DomainError(
                "resume",
                str(path),
                f"the journal of an audit, undamaged ({type(error).__name__}: {error})",
                _REMEDY,
            ) from None
        number = len(first["pairs"]) or None
        wanted = json.loads(
            canonical(
                {name: asked["header"][name] for name in _SAME} | {"pairs": asked["pairs"][:number]}
            )
        )
        for name, there in same.items():
            if there != wanted[name]:
                raise DomainError(
                    "resume",
                    str(path),
                    f"a journal of the same {name}, here {str(there)[:200]}",
                    _REMEDY,
                )
        return cls(header, seed, entries, lost, number, file, link)

    @property
    def kept(self) -> bool:
        """Whether there is a file."""
        return self._file >= 0

    def bind(self) -> None:
        """Say that stakes are bound, and rows about to be drawn."""
        if self.kept:
            self._write(_BOUND)

    def write(self, entry: Mapping[str, Any]) -> None:
        """Add a batch, where there is a file: from here on it counts, whatever happens."""
        if self.kept:
            self._write(entry)

    def _write(self, line: Mapping[str, Any]) -> None:
        text = canonical(line)
        self._link = _linked(self._link, text)
        rest = b"%b %b\n" % (text, self._link)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def close(self) -> None:
        """Let another run go on with it."""
        if self.kept:
            os.close(self._file)
            self._file = -1


def _linked(link: bytes, text: bytes) -> bytes:
    return hashlib.sha256(link + text).hexdigest().encode()


def _followed(lines: Sequence[bytes]) -> tuple[list[bytes], bytes]:
    """The lines without their digests, and the last digest.

    Raises:
        ValueError: One is another.
    """
    found, link = list[bytes](), b""
    for number, line in enumerate(lines, 1):
        text, _, digest = line.rpartition(b" ")
        link = _linked(link, text)
        if digest != link:
            raise ValueError(f"line {number} was changed")
        found.append(text)
    return found, link


def _sealed(
    header: dict[str, Any], seed: bytes, entries: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The certificate of what is in a journal."""
    batches = [{name: entry[name] for name in ("stakes", "counts", "chain")} for entry in entries]
    samples = sum(entry["counts"]["rows"] for entry in entries)
    return written.sealed(
        header, seed, batches, samples=samples, log_wealth=float.fromhex(entries[-1]["log_wealth"])
    )


def _digest(pair: Pair) -> list[Any]:
    """A pair by digests of its datasets: a journal does not carry them."""
    return [pair.distance, *(_code(each) for each in (pair.zero, pair.one))]


def _code(data: Any) -> str:
    value = read(data)
    return (value.code if isinstance(value, Reading) else code_of(value.hex().encode())).hex()
