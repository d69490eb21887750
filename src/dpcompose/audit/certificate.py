"""The certificate of an audit, and the journal from which an interrupted audit continues.

The certificate has the bets and counts, linked by a hash chain, for `check` to verify.

A run that ends at any moment, even by `kill -9`, leaves a journal, one line per batch, written
before the batch is reported. Each line ends with a digest of itself and all lines before it, so
that changes are detected. An incomplete last line is the batch in progress and is dropped. Lines
removed at the end look the same as a kill and are not detected. A mark is written before every
draw: if outcomes were drawn but not recorded, nobody saw them, and the next batch has other coins.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.arm import Member, Paid
from dpcompose.audit.check import FORMAT, MALFORMED, canonical, check
from dpcompose.audit.claim import Pair, Point
from dpcompose.audit.outcome import Outcome, code_of
from dpcompose.errors import DomainError


@dataclass(frozen=True)
class Chain:
    """A hash chain over the bets and counts of all batches so far.

    The coins of a batch are SHAKE-256 of the seed, the previous link and the batch's bets. Unless
    SHAKE is broken, they are fair and independent of the past for whoever chooses the bets.

    Args:
        seed: 32 bytes, secret until the audit ends.
        link: The SHA-256 digest of everything before the next batch.
    """

    seed: bytes
    link: bytes

    @classmethod
    def opened(cls, seed: bytes, header: Any) -> Chain:
        """The chain before the first batch, which begins with the digest of the header."""
        return cls(seed, hashlib.sha256(canonical(header)).digest())

    def coins(self, stakes: Any, rows: int) -> NDArray[np.uint8]:
        """The coins (0 or 1) of the next batch of `rows` rows, derived from its stakes."""
        stream = hashlib.shake_256(self.seed + self.link + canonical(stakes)).digest(-(-rows // 8))
        return np.unpackbits(np.frombuffer(stream, dtype=np.uint8), bitorder="little")[:rows]

    def after(self, stakes: Any, counts: Any) -> Chain:
        """The chain extended by the stakes and counts of a batch."""
        return Chain(self.seed, hashlib.sha256(self.link + canonical([stakes, counts])).digest())


MOST_TOLD = 1 << 20
"""The largest size of the dataset pairs in a certificate, in bytes."""


def header(
    *, subject: str, claim: str, claims: Mapping[int, Sequence[Point]], one_point: bool, alpha: float, seed: bytes,
    environment: Mapping[str, str], pairs: Sequence[Pair] = (),
) -> dict[str, Any]:  # fmt: skip
    """The header of a certificate: everything fixed before the first coin.

    Args:
        subject: The name of the audited mechanism.
        claim: The claim as text.
        claims: The (epsilon, delta) points of the claim at each distance.
        one_point: Whether the claim is a single (epsilon, delta), so that a checker can recompute
            its group privacy.
        alpha: The probability of refuting a true claim.
        seed: The seed of the coins; only its SHA-256 digest is included.
        environment: Software versions, by name.
        pairs: The pairs of datasets. They are included if all are plain data of at most MOST_TOLD
            bytes, so that others can draw again.
    """
    included = {} if (listed := _pairs_as_data(pairs)) is None else {"pairs": listed}
    return included | {
        "subject": subject,
        "claim": claim,
        "claims": [
            {"distance": distance, "points": [_written(point) for point in points]}
            for distance, points in sorted(claims.items())
        ],
        "one_point": one_point,
        "alpha": repr(alpha),
        "seed_sha256": hashlib.sha256(seed).hexdigest(),
        "environment": dict(environment),
    }


def _pairs_as_data(pairs: Sequence[Pair]) -> list[dict[str, Any]] | None:
    try:
        listed = [
            {"zero": datum(pair.zero), "one": datum(pair.one), "distance": pair.distance}
            for pair in pairs
        ]
        return listed if listed and len(canonical(listed)) <= MOST_TOLD else None
    except MALFORMED:
        return None


def pairs_of(header: Mapping[str, Any]) -> tuple[Pair, ...]:
    """The pairs of datasets included in a certificate's header; an empty tuple if it has none.

    Raises one of `MALFORMED` if they are not in the form that `datum` writes.
    """
    return tuple(
        Pair(data_of(each["zero"]), data_of(each["one"]), distance=each["distance"])
        for each in header.get("pairs", ())
    )


def datum(value: Any) -> Any:
    """A dataset as JSON, with the type of each value and the exact bits of each float; TypeError if
    it is not plain data.
    """
    match value:
        case None | bool() | str():
            return value
        case _ if type(value) is int and abs(value) < 10**1000:
            return {"int": str(value)}
        case _ if type(value) is float:
            return {"float": value.hex()}
        case _ if type(value) in (list, tuple):
            return {type(value).__name__: [datum(each) for each in value]}
        case _ if type(value) is dict:
            items = cast("dict[Any, Any]", value).items()
            return {"dict": [[datum(name), datum(each)] for name, each in items]}
        case np.ndarray(ndim=1) if (array := cast("NDArray[Any]", value)).dtype.kind in "fiu":
            return {"array": [array.dtype.str, datum(array.tolist())]}
        case _:
            raise TypeError(f"{type(value).__name__} is no plain data")


def data_of(written: Any) -> Any:
    """The dataset that `datum` wrote as JSON; ValueError if the JSON is not of that form."""
    match written:
        case None | bool() | str():
            return written
        case {"int": str(digits)}:
            return int(digits)
        case {"float": str(digits)}:
            return float.fromhex(digits)
        case {"list": [*items]}:
            return [data_of(each) for each in items]
        case {"tuple": [*items]}:
            return tuple(data_of(each) for each in items)
        case {"dict": [*items]}:
            return {data_of(name): data_of(each) for name, each in items}
        case {"array": [str(dtype), items]} if np.dtype(dtype).kind in "fiu":
            return np.array(data_of(items), dtype=np.dtype(dtype))
        case _:
            raise ValueError(f"{str(written)[:80]} is no dataset")


def _written(point: Point) -> dict[str, str]:
    return {name: getattr(point, name).hex() for name in ("epsilon", "growth", "delta")}


def stakes(*, pair: int, distance: int, rows: int, members: Sequence[Member]) -> dict[str, Any]:
    """The record of a batch's bets, which enters the hash chain before the coins are derived.

    Args:
        pair: The index of the pair of datasets.
        distance: The distance of that pair.
        rows: The number of rows of the batch.
        members: The weighted bets.
    """
    written = [member.written() for member in members]
    return {"pair": pair, "distance": distance, "rows": rows, "members": written}


def counts(paid: Paid) -> dict[str, Any]:
    """The record of a settled batch: its number of rows, and each member's counts by coin and cell."""
    members = [{"zero": each[0].tolist(), "one": each[1].tolist()} for each in paid.counts]
    return {"rows": paid.rows, "members": members}


def sealed(
    header: Mapping[str, Any],
    seed: bytes,
    batches: Sequence[Mapping[str, Any]],
    *,
    log_wealth: float,
    repeated: bool = False,
) -> dict[str, Any]:
    """The complete certificate, with a SHA-256 digest over its contents.

    Args:
        header: What was fixed before the first coin.
        seed: The seed of the coins, now revealed.
        batches: The stakes, counts and chain link of each batch.
        log_wealth: Natural logarithm of the final wealth.
        repeated: Whether a refutation concerns repeated calls only; the field is written if so.
    """
    body = ({"repeated": True} if repeated else {}) | {
        "format": FORMAT,
        "header": header,
        "seed": seed.hex(),
        "batches": [
            {name: batch[name] for name in ("stakes", "counts", "chain")} for batch in batches
        ],
        "samples": sum(batch["counts"]["rows"] for batch in batches),
        "log_wealth": log_wealth.hex(),
    }
    return body | {"digest": hashlib.sha256(canonical(body)).hexdigest()}


def text_of(certificate: Mapping[str, Any]) -> str:
    """The certificate as the canonical JSON text that is written to a file."""
    return canonical(certificate).decode()


JOURNAL = "dpcompose-audit-journal-5"
EARLIER = tuple(f"dpcompose-audit-journal-{version}" for version in (4, 3, 2))
"""Older formats that can be read if all answers are numbers."""
_REMEDY = "Begin another journal, or restore this one"
BOUND = {"bound": True}
"""The journal line that is written when bets are fixed and outcomes are about to be drawn."""
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
        journal = cls(dict(header), seed, _file=file)
        codes, (whole, _, torn) = [_digest(pair) for pair in pairs], text.rpartition(b"\n")
        try:
            if not text:
                first = {"format": JOURNAL, "header": header, "seed": seed.hex(), "pairs": codes}
                journal.write(first)
                return journal
            earlier = cls._read(path, whole, file, {"header": header, "pairs": codes})
            if named and seed != earlier.seed:
                raise DomainError("seed", seed.hex(), f"the seed of the journal {path}, or none")
            if torn:
                os.ftruncate(file, len(whole) + 1)
            return earlier
        except BaseException:
            journal.close()
            raise

    @classmethod
    def _read(
        cls, path: str | Path, whole: bytes, file: int, request: Mapping[str, Any]
    ) -> Journal:
        try:
            texts, link = _followed(whole.split(b"\n"))
            first, *lines = (json.loads(line) for line in texts)
            if first["format"] not in (JOURNAL, *EARLIER):
                raise ValueError(f"its format is not {JOURNAL}")
            header, seed = first["header"], bytes.fromhex(first["seed"])
            same = {name: header[name] for name in _SAME} | {"pairs": first["pairs"]}
            entries = [line for line in lines if line != BOUND]
            lost = next(
                (place for place, line in enumerate(reversed(lines)) if line != BOUND), len(lines)
            )
            if entries:
                wealth = float.fromhex(entries[-1]["log_wealth"])
                check(text_of(sealed(header, seed, entries, log_wealth=wealth)))
        except MALFORMED as error:
            accepted = f"the journal of an audit, undamaged ({type(error).__name__}: {error})"
            raise DomainError("resume", str(path), accepted, _REMEDY) from None
        number = len(first["pairs"]) or None
        own = {name: request["header"][name] for name in _SAME}
        wanted = json.loads(canonical(own | {"pairs": request["pairs"][:number]}))
        for name, stated in same.items():
            if stated != wanted[name]:
                accepted = f"a journal of the same {name}, here {str(stated)[:200]}"
                raise DomainError("resume", str(path), accepted, _REMEDY)
        return cls(header, seed, entries, lost, number, file, link)

    @property
    def recorded(self) -> bool:
        """Whether the audit is recorded in a file."""
        return self._file >= 0

    def write(self, line: Mapping[str, Any]) -> None:
        """Record a settled batch, which then counts whatever happens, or `BOUND`; does nothing
        without a file.
        """
        if not self.recorded:
            return
        text = canonical(line)
        self._link = _linked(self._link, text)
        unwritten = b"%b %b\n" % (text, self._link)
        while unwritten:
            unwritten = unwritten[os.write(self._file, unwritten) :]

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
    texts, link = list[bytes](), b""
    for number, line in enumerate(lines, 1):
        text, _, digest = line.rpartition(b" ")
        link = _linked(link, text)
        if digest != link:
            raise ValueError(f"line {number} was changed")
        texts.append(text)
    return texts, link


def _digest(pair: Pair) -> list[Any]:
    """A pair as its distance and the hashes of its datasets, which the journal does not contain."""
    return [pair.distance, *(_code(each) for each in (pair.zero, pair.one))]


def _code(data: Any) -> str:
    return (code_of(data.hex().encode()) if type(data) is float else Outcome.of(data).code).hex()
