"""The certificate of an audit: stakes, counts, and the chain that binds them, for `check` to read."""

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
    """JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


@dataclass(frozen=True)
class Chain:
    """A chain of digests over all stakes and counts so far.

    The coins of a batch are SHAKE-256 of the seed, the chain before, and its stakes. To a bettor who does not invert
    SHAKE they are fair and independent of the past.

    Args:
        seed: 32 bytes, secret until the end.
        link: The digest of all before.
    """

    seed: bytes
    link: bytes

    @classmethod
    def opened(cls, seed: bytes, header: Any) -> Chain:
        """The chain before the first batch."""
        return cls(seed, hashlib.sha256(canonical(header)).digest())

    def coins(self, stakes: Any, rows: int) -> NDArray[np.uint8]:
        """The coins of the next batch, given its stakes."""
        stream = hashlib.shake_256(self.seed + self.link + canonical(stakes)).digest(-(-rows // 8))
        return np.unpackbits(np.frombuffer(stream, dtype=np.uint8), bitorder="little")[:rows]

    def after(self, stakes: Any, counts: Any) -> Chain:
        """The chain after a batch."""
        return Chain(self.seed, hashlib.sha256(self.link + canonical([stakes, counts])).digest())


MOST_TOLD = 1 << 20
"""Bytes of the pairs that a certificate tells."""


def header(
    *, subject: str, claim: str, claims: Mapping[int, Sequence[Point]], one_point: bool, alpha: float, seed: bytes,
    environment: Mapping[str, str], pairs: Sequence[Pair] = (),
) -> dict[str, Any]:  # fmt: skip
    """The header: all that is fixed before the first coin.

    Args:
        subject: The name of the subject.
        claim: The claim in words.
        claims: The points of the claim at every distance.
        one_point: Whether the claim is one (epsilon, delta), so that its groups can be computed anew.
        alpha: The probability of refuting a true claim.
        seed: The seed of the coins, of which only the digest is told.
        environment: Versions, and how the subject is called.
        pairs: The pairs; they are told where all of them are plain data, so that others can draw again.
    """
    told = {} if (listed := _told(pairs)) is None else {"pairs": listed}
    return told | {
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


def _told(pairs: Sequence[Pair]) -> list[dict[str, Any]] | None:
    try:
        listed = [
            {"zero": datum(pair.zero), "one": datum(pair.one), "distance": pair.distance}
            for pair in pairs
        ]
        return listed if listed and len(canonical(listed)) <= MOST_TOLD else None
    except (TypeError, RecursionError):
        return None


def pairs_of(header: Mapping[str, Any]) -> tuple[Pair, ...]:
    """The pairs that a certificate tells; none if it tells none.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, RecursionError: If they are not what `datum` writes.
    """
    return tuple(
        Pair(data_of(each["zero"]), data_of(each["one"]), distance=each["distance"])
        for each in header.get("pairs", ())
    )


def datum(value: Any) -> Any:
    """A dataset as JSON, every float to its last bit and every type told; TypeError where it is no plain data."""
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
    """The dataset that `datum` wrote; ValueError if it did not."""
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
    """The stakes, bound before the coins of a batch."""
    written = [member.written() for member in members]
    return {"pair": pair, "distance": distance, "rows": rows, "members": written}


def counts(paid: Paid) -> dict[str, Any]:
    """The counts that the batch came to."""
    members = [{"zero": each[0].tolist(), "one": each[1].tolist()} for each in paid.counts]
    return {"rows": paid.rows, "members": members}


def sealed(
    header: Mapping[str, Any],
    seed: bytes,
    batches: Sequence[Mapping[str, Any]],
    *,
    samples: int,
    log_wealth: float,
) -> dict[str, Any]:
    """The whole, with a digest over all of it."""
    body = {
        "format": FORMAT,
        "header": header,
        "seed": seed.hex(),
        "batches": list(batches),
        "samples": samples,
        "log_wealth": log_wealth.hex(),
    }
    return body | {"digest": hashlib.sha256(canonical(body)).hexdigest()}


def text_of(certificate: Mapping[str, Any]) -> str:
    """The certificate as it is written to a file."""
    return canonical(certificate).decode()
