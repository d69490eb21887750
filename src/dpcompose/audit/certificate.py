"""Writing the certificate of an audit: its bets and counts, linked by a hash chain, for `check` to
verify.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.check import FORMAT
from dpcompose.audit.claim import Pair, Point
from dpcompose.audit.wealth import Member, Paid


def canonical(value: Any) -> bytes:
    """A value as JSON bytes with sorted keys and no spaces, the form that is hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


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
"""The largest size, in bytes, of the pairs of datasets included in a certificate."""


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
    except (TypeError, RecursionError):
        return None


def pairs_of(header: Mapping[str, Any]) -> tuple[Pair, ...]:
    """The pairs of datasets included in a certificate's header; an empty tuple if it has none.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, RecursionError: If they are not in the form
            that `datum` writes.
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
        case _ if type(value) is int:
            return {"int": str(value)} if abs(value) < 10**1000 else _no_datum(value)
        case _ if type(value) is float:
            return {"float": value.hex()}
        case _ if type(value) in (list, tuple):
            return {type(value).__name__: [datum(each) for each in value]}
        case _ if type(value) is dict:
            items = cast("dict[Any, Any]", value).items()
            return {"dict": [[datum(name), datum(each)] for name, each in items]}
        case np.ndarray():
            array = cast("NDArray[Any]", value)
            plain = array.dtype.kind in "fiu" and array.ndim == 1
            return (
                {"array": [array.dtype.str, datum(array.tolist())]} if plain else _no_datum(value)
            )
        case _:
            return _no_datum(value)


def _no_datum(value: Any) -> Any:
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
    return {
        "epsilon": point.epsilon.hex(),
        "growth": point.growth.hex(),
        "delta": point.delta.hex(),
    }


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
    samples: int,
    log_wealth: float,
    repeated: bool = False,
) -> dict[str, Any]:
    """The complete certificate, with a SHA-256 digest over its contents.

    Args:
        header: What was fixed before the first coin.
        seed: The seed of the coins, now revealed.
        batches: The stakes, counts and chain link of each batch.
        samples: The total number of rows.
        log_wealth: Natural logarithm of the final wealth.
        repeated: Whether a refutation concerns repeated calls only; the field is written if so.
    """
    body = ({"repeated": True} if repeated else {}) | {
        "format": FORMAT,
        "header": header,
        "seed": seed.hex(),
        "batches": list(batches),
        "samples": samples,
        "log_wealth": log_wealth.hex(),
    }
    return body | {"digest": hashlib.sha256(canonical(body)).hexdigest()}


def text_of(certificate: Mapping[str, Any]) -> str:
    """The certificate as the canonical JSON text that is written to a file."""
    return canonical(certificate).decode()
