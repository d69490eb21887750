"""Verification of audit certificates, using only the standard library, so that this file can be
read and copied alone.

A valid certificate shows that its counts refute the claim at its alpha: the hash chain is intact,
the coins follow from it, weights and stakes satisfy Theorem 1, and the wealth, rounded down,
reaches 1/alpha. It cannot show that the outcomes came from the mechanism, nor that this was the
only attempt: whoever invents counts can recompute every digest. Placing the bets again on new draws
(`--again`) exposes that.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

FORMAT = "dpcompose-audit-1"
UNIT, WEIGHTS = 1 << 50, 1 << 20
"""The stakes and the weights of a certificate are integers in units of 1 / UNIT and of 1 / WEIGHTS."""
MOST_ROWS = 1 << 30
"""The largest number of rows accepted: deriving the coins of more would take minutes."""
NAMES = {"format", "header", "seed", "batches", "samples", "log_wealth", "digest"}
ROUNDING = 1e-15
"""More than the relative error of `math.log`, and of a correctly rounded quotient."""


MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, MemoryError)  # fmt: skip
"""The exceptions raised while reading data that are not of the form that an audit writes."""


class CertificateError(ValueError):
    """Raised if a certificate is malformed or does not prove what it states."""


def check(text: str) -> dict[str, Any]:
    """Verify an audit certificate.

    Args:
        text: The certificate as canonical JSON.

    Returns:
        A dictionary: `refuted`; `log_wealth`, natural logarithm and rounded down; `samples`;
            `alpha`; `claim`, as text; `claims`, its points; `subject`; `repeated`, whether it
            states that it concerns repeated calls only, which a correct mechanism may answer from
            memory; and `comparable`, whether the claim's text states the same epsilon and delta as
            its points.

    Raises:
        CertificateError: If the certificate is malformed or inconsistent.
    """
    try:
        certificate = json.loads(text, parse_constant=_refuse_number)
        return _checked(certificate, text)
    except CertificateError:
        raise
    except MALFORMED as error:
        raise CertificateError(f"it is malformed: {type(error).__name__}: {error}") from None


def _checked(certificate: dict[str, Any], text: str) -> dict[str, Any]:
    _require(certificate["format"] == FORMAT, f"its format is not {FORMAT}")
    repeated = certificate.get("repeated", False)
    _require(
        set(certificate) - {"repeated"} == NAMES and type(repeated) is bool,
        "its fields are not those of the format",
    )
    _require(
        text.removesuffix("\n") == canonical(certificate).decode(), "it is not in canonical form"
    )
    body = {key: value for key, value in certificate.items() if key != "digest"}
    _require(
        hashlib.sha256(canonical(body)).hexdigest() == certificate["digest"],
        "its digest does not match its contents",
    )
    header, seed = certificate["header"], bytes.fromhex(certificate["seed"])
    _require(
        len(seed) == 32 and hashlib.sha256(seed).hexdigest() == header["seed_sha256"],
        "the seed does not match its digest in the header",
    )
    # Only floats as Python writes them are accepted, since a huge power of ten would take too long
    # to compute.
    _require(
        repr(float(header["alpha"])) == header["alpha"],
        "alpha is not a number in its shortest form",
    )
    alpha = Fraction(header["alpha"])
    _require(0 < alpha < 1, "alpha is not between 0 and 1")
    claims = {
        _count(claim["distance"]): [_point(point) for point in claim["points"]]
        for claim in header["claims"]
    }
    _require(len(claims) == len(header["claims"]), "a distance has two claims")
    _require(type(header["one_point"]) is bool, "one_point is neither true nor false")
    if header["one_point"]:
        for distance, points in claims.items():
            _require(len(points) == 1, "the claim is not one point")
            _grouped(points[0], claims[1][0], distance)
    link, wealth, rows, coins = hashlib.sha256(canonical(header)).digest(), 0.0, 0, 0
    for batch in certificate["batches"]:
        stakes, counts = batch["stakes"], batch["counts"]
        points = claims[stakes["distance"]]
        used = _count(counts["rows"])
        _require(
            used <= _count(stakes["rows"]) <= MOST_ROWS,
            f"a batch has more rows than coins, or more than {MOST_ROWS} coins",
        )
        coins += _count(stakes["rows"])
        _require(coins <= MOST_ROWS, f"there are more than {MOST_ROWS} coins")
        drawn = hashlib.shake_256(seed + link + canonical(stakes)).digest(-(-used // 8))
        heads = (int.from_bytes(drawn, "little") & ((1 << used) - 1)).bit_count()
        wealth += _batch(stakes["members"], counts["members"], points, used, heads)
        rows += used
        link = hashlib.sha256(link + canonical([stakes, counts])).digest()
        _require(link.hex() == batch["chain"], "the chain of digests breaks")
    _require(rows == _count(certificate["samples"]), "the number of rows is not that of the counts")
    _require(
        abs(wealth - float.fromhex(certificate["log_wealth"])) <= 1e-6 * (1 + abs(wealth)),
        "the wealth is not that of the bets and counts",
    )
    goal = -math.log(alpha.numerator / alpha.denominator) * (1 + ROUNDING)
    return {"refuted": wealth >= goal, "log_wealth": wealth, "samples": rows, "alpha": header["alpha"],
            "repeated": repeated, "claim": header["claim"], "claims": header["claims"], "subject": header["subject"],
            "comparable": header["one_point"] and _told_point(header["claim"], claims)}  # fmt: skip


def _told_point(claim: str, claims: dict[int, Any]) -> bool:
    """Whether the claim's text is BlackBox(epsilon) or BlackBox(epsilon, delta=...), and its point
    is no smaller.

    Raises CertificateError if the point promises more privacy than the text.
    """
    told = re.fullmatch(r"BlackBox\(([^,()]+)(?:, delta=([^,()]+))?\)", claim)
    if told is None or 1 not in claims:
        return False
    (epsilon, _, delta) = claims[1][0]
    _require(
        float(told[1]) <= epsilon and Fraction(float(told[2] or 0)) <= delta,
        "its points are smaller than the claim as text states",
    )
    return True


def _batch(
    members: list[Any], counts: list[Any], points: list[Any], rows: int, heads: int
) -> float:
    """The increase of the log wealth by one batch, rounded down.

    Args:
        members: The weighted bets.
        counts: For each member, the rows by coin and cell.
        points: The claim's points at the distance of the pair.
        rows: The number of rows.
        heads: How many of their coins are 1.
    """
    _require(len(members) == len(counts), "the numbers of bets and of counts differ")
    weights = [_count(member["weight"]) for member in members]
    idle = WEIGHTS - sum(weights)
    _require(idle >= 0, "the weights sum to more than 1")
    terms = [math.log(idle / WEIGHTS)] if idle else []
    for member, weight, counted in zip(members, weights, counts, strict=True):
        zero, one = (
            [_count(count) for count in side] for side in (counted["zero"], counted["one"])
        )
        _require(
            sum(one) == heads and sum(zero) == rows - heads, "the counts are not those of the coins"
        )
        _require(
            len(member["cuts"]) + 2 == len(zero) == len(one),
            "the numbers of cells and of counts differ",
        )
        cuts = [float.fromhex(cut) for cut in member["cuts"]]
        _require(all(low < high for low, high in pairwise(cuts)), "the cuts do not increase")
        if weight:
            terms.append(math.log(weight / WEIGHTS) + _paid(member, zero, one, points))
    _require(bool(terms), "the weights sum to 0")
    top = max(terms)
    total = top + math.log(math.fsum(math.exp(term - top) for term in terms))
    return total - ROUNDING * (4 * len(terms) + abs(total) + abs(top))


def _paid(member: dict[str, Any], zero: list[int], one: list[int], points: list[Any]) -> float:
    """The log growth of one member's wealth in a batch, rounded down.

    Raises CertificateError if a factor is not positive, even in a cell without rows.
    """
    sides = [
        [[Fraction(_count(stake), UNIT) for stake in row] for row in member[side]]
        for side in ("f", "g")
    ]
    for side in sides:
        _require(
            len(side) == len(points) and all(len(row) == len(zero) for row in side),
            "the numbers of cells and of stakes differ",
        )
    f, g = sides
    charge = sum(
        (delta * (max(f[j]) + max(g[j])) / 2 for j, (_, _, delta) in enumerate(points)), Fraction(0)
    )
    logs: list[float] = []
    for cell, (tails, heads) in enumerate(zip(zero, one, strict=True)):
        for count, mine, other in ((heads, f, g), (tails, g, f)):
            factor = 1 - charge
            for j, (_, growth, _) in enumerate(points):
                if mine[j][cell] or other[j][cell]:
                    factor += mine[j][cell] - growth * other[j][cell]
            _require(factor > 0, "a factor is not positive")
            if count:
                log = math.log(factor.numerator / factor.denominator)
                logs.append(count * (log - ROUNDING * (1 + abs(log))))
    return math.fsum(logs) - ROUNDING * math.fsum(abs(log) for log in logs)


def _point(point: dict[str, str]) -> tuple[float, Fraction, Fraction]:
    """epsilon, e^epsilon rounded up, and delta of a point; CertificateError if e^epsilon is not
    rounded up.
    """
    epsilon, growth, delta = (float.fromhex(point[name]) for name in ("epsilon", "growth", "delta"))
    _require(0 <= epsilon < 100 and 0 <= delta < 1, "a point is outside its domain")
    exact = Context(prec=60).exp(Decimal(epsilon))
    _require(
        exact <= Decimal(growth) <= exact * (1 + Decimal("1e-12")), "e^epsilon is not rounded up"
    )
    return epsilon, Fraction(growth), Fraction(delta)


def _grouped(
    point: tuple[float, Fraction, Fraction], one: tuple[float, Fraction, Fraction], distance: int
) -> None:
    """Raise CertificateError if a point at a distance is smaller than group privacy of the point at
    1 gives.
    """
    _require(
        Fraction(point[0]) >= distance * Fraction(one[0]), "epsilon at a distance is too small"
    )
    powers = _powers(Decimal(one[0]), distance)
    delta = Decimal(one[2].numerator) / Decimal(one[2].denominator)
    _require(
        Decimal(float(point[2])) * (1 + Decimal("1e-25")) >= delta * powers,
        "delta at a distance is too small",
    )


def _powers(epsilon: Decimal, number: int) -> Decimal:
    """The sum of e^(i epsilon) for i < number, by doubling: S(2m) = S(m) (1 + e^(m epsilon))."""
    exponential, total, reached = Context(prec=60).exp, Decimal(0), 0
    for bit in f"{number:b}":
        total *= 1 + exponential(epsilon * reached)
        reached *= 2
        if bit == "1":
            total += exponential(epsilon * reached)
            reached += 1
    return total


def _count(value: Any) -> int:
    _require(type(value) is int and value >= 0, f"{value!r} is not a count")
    return value


def canonical(value: Any) -> bytes:
    """A value as JSON bytes with sorted keys and no spaces, the form that is hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _refuse_number(text: str) -> None:
    raise CertificateError(f"{text} is not a number of JSON")


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise CertificateError(reason)
