"""The journal of an audit: one line per batch, written before the batch is reported, so that an
audit can be resumed.

A run that ends at any moment, even by `kill -9`, leaves a journal from which the next run
continues. Each line ends with a digest of itself and all lines before it, so that changes are
detected. An incomplete last line is the batch in progress and is dropped. Lines removed at the end
look the same as a kill and are not detected. A mark is written before every draw: if outcomes were
drawn but not recorded, nobody saw them, and the next batch has other coins.
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
from dpcompose.audit.outcome import Outcome, code_of
from dpcompose.errors import DomainError

FORMAT = "dpcompose-audit-journal-4"
EARLIER = ("dpcompose-audit-journal-3", "dpcompose-audit-journal-2")
"""Older formats that can be read if all answers are numbers."""
_REMEDY = "Begin another journal, or restore this one"
_BOUND = {"bound": True}
_SAME = ("subject", "claim", "claims", "one_point", "alpha")


@dataclass
class Journal:
    """The journal file of one audit.

    Args:
        header: The header of the certificate.
        seed: The seed of the coins, secret until the audit ends.
        entries: The batches of earlier runs.
        lost: How often the next batch was interrupted after its coins were derived.
        pairs: The number of pairs in the journal, which are the first of those requested; None for
            all.
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
        """Create a journal file, or open an existing one to continue its audit.

        Args:
            path: The file.
            header: The header of the requested audit.
            seed: The seed of its coins; an existing journal keeps its own.
            pairs: The pairs of datasets.
            named: Whether the caller chose the seed; it must then be that of the journal.

        Raises:
            DomainError: If the file cannot be written, is damaged, is in use, or belongs to another
                audit.
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
    def _read(
        cls, path: str | Path, whole: bytes, file: int, request: Mapping[str, Any]
    ) -> Journal:
        try:
            texts, link = _followed(whole.split(b"\n"))
            first, *lines = (json.loads(line) for line in texts)
            if first["format"] not in (FORMAT, *EARLIER):
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
                {name: request["header"][name] for name in _SAME}
                | {"pairs": request["pairs"][:number]}
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
    def recorded(self) -> bool:
        """Whether the audit is recorded in a file."""
        return self._file >= 0

    def bind(self) -> None:
        """Record that bets are fixed and outcomes about to be drawn; does nothing without a file."""
        if self.recorded:
            self._write(_BOUND)

    def write(self, entry: Mapping[str, Any]) -> None:
        """Record a settled batch, which then counts whatever happens; does nothing without a file."""
        if self.recorded:
            self._write(entry)

    def _write(self, line: Mapping[str, Any]) -> None:
        text = canonical(line)
        self._link = _linked(self._link, text)
        rest = b"%b %b\n" % (text, self._link)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def close(self) -> None:
        """Close the file and release its lock, so that another run can continue the audit."""
        if self.recorded:
            os.close(self._file)
            self._file = -1


def _linked(link: bytes, text: bytes) -> bytes:
    return hashlib.sha256(link + text).hexdigest().encode()


def _followed(lines: Sequence[bytes]) -> tuple[list[bytes], bytes]:
    """The lines without their digests, and the last digest.

    Raises:
        ValueError: If a line does not match its digest.
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
    """The certificate of the batches recorded in a journal."""
    batches = [{name: entry[name] for name in ("stakes", "counts", "chain")} for entry in entries]
    samples = sum(entry["counts"]["rows"] for entry in entries)
    return written.sealed(
        header, seed, batches, samples=samples, log_wealth=float.fromhex(entries[-1]["log_wealth"])
    )


def _digest(pair: Pair) -> list[Any]:
    """A pair as its distance and the hashes of its datasets, which the journal does not contain."""
    return [pair.distance, *(_code(each) for each in (pair.zero, pair.one))]


def _code(data: Any) -> str:
    return (code_of(data.hex().encode()) if type(data) is float else Outcome.of(data).code).hex()
