"""The certificate of an audit: stakes, counts, and the chain that binds them, for `check` to read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from dpcompose.audit.check import FORMAT
from dpcompose.audit.claim import Point
from dpcompose.audit.coin import canonical
from dpcompose.audit.wealth import Member, Paid


def header(
    *, subject: str, claim: str, claims: Mapping[int, Sequence[Point]], one_point: bool, alpha: float, seed: bytes,
    environment: Mapping[str, str],
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
    """
    return {
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
