"""The pair of a group of two: the trade-off function of randomized response, iterated."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from itertools import pairwise

from dpcompose.contour.transform import Lattice
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.numerics.elementary import U


def two_in_a_row(epsilon: float, *, delta: float, categories: int) -> Loss:
    """The loss with power curve phi(phi(a)), phi the largest power at level a of k-ary randomized response with delta.

    phi is concave and piecewise linear with slopes e^epsilon, 1 (k > 2) and e^-epsilon after a start at delta; so is
    its iterate, with slopes e^(n epsilon), n from -2 to 2: an atomic loss. A group of two of any mechanism that the
    pair dominates is dominated by it.

    Reference: [DongRothSu2022, Theorem 2.14]
    """
    if epsilon == 0 and delta == 0:
        return TwoPointLoss(0.0)
    # Masses from 1 down to e^(-2 epsilon) stand side by side. Beyond 800 nats the smallest are far below any float.
    with localcontext(Context(prec=60 + math.ceil(0.9 * min(epsilon, 800.0)))):
        growth = Decimal(epsilon).exp()
        rest = 1 - Decimal(delta)
        other = rest / (growth + categories - 1)
        # Level by level: (length of the level, power gained over it in units of length, n).
        pieces = [(other, growth, 1), ((categories - 2) * other, Decimal(1), 0), (other * growth, 1 / growth, -1)]
        segments = [piece for piece in pieces if piece[0] > 0]
        return _iterated(Decimal(delta), segments, epsilon, growth)


def _iterated(start: Decimal, segments: list[tuple[Decimal, Decimal, int]], epsilon: float, growth: Decimal) -> Loss:
    """phi after phi: cut the first curve where its power crosses a corner of the second."""
    corners = [Decimal(0)]
    for length, _, _ in segments:
        corners.append(corners[-1] + length)
    lower: dict[int, Decimal] = {}
    infinite = _power(start, start, segments, corners)
    level, power = Decimal(0), start
    for length, slope, degree in segments:
        top = power + length * slope
        inner = sorted({power, top, *(corner for corner in corners if power < corner < top)})
        for low, high in pairwise(inner):
            second = next((s[2] for s, a, b in zip(segments, corners, corners[1:], strict=False) if a <= low < b), None)
            size = (high - low) / slope
            if second is not None:
                lower[degree + second] = lower.get(degree + second, Decimal(0)) + size
        level, power = level + length, top
    orders = sorted(lower, reverse=True)
    gained = {n: lower[n] * growth**n for n in orders}
    upper, under = [float(gained[n]) for n in orders], [float(lower[n]) for n in orders]
    ratios = [n * epsilon for n in orders]
    logs = [float(gained[n].ln(Context(prec=30))) for n in orders] if epsilon > 300 else []
    missing = float(1 - sum(lower.values(), Decimal(0)))
    for only_p, only_q in ((float(infinite), 0.0), (0.0, missing if missing > 1e-50 else 0.0)):  # but for rounding
        if only_p + only_q > 0:
            upper, under = [*upper, only_p], [*under, only_q]
            ratios, logs = [*ratios, math.inf if only_p > 0 else -math.inf], [*logs, 0.0] if logs else []
    lattice = Lattice(math.gcd(*orders) * epsilon, 0.0)  # with two categories every second place is empty
    return AtomicLoss(Atoms(tuple(upper), tuple(under), tuple(ratios), lattice, 8 * U, log_upper=tuple(logs)))


def _power(
    level: Decimal, start: Decimal, segments: list[tuple[Decimal, Decimal, int]], corners: list[Decimal]
) -> Decimal:
    """phi at a level."""
    power = start
    for (length, slope, _), corner in zip(segments, corners, strict=False):
        power += slope * min(max(level - corner, Decimal(0)), length)
    return power
