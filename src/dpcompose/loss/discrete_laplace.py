"""The loss of discrete Laplace noise: D + 1 atoms on a lattice."""

from __future__ import annotations

import math

from dpcompose.contour.transform import Lattice
from dpcompose.errors import UnsupportedError
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atomic_moments import DiscreteLaplaceLaw
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.numerics.elementary import U

LARGEST_LOSS = 600.0


def discrete_laplace(scale: float, shift: int) -> Loss:
    """The loss at an integer shift D of noise like e^(-a |x|), a = 1 / scale: the same in both orders.

    It is a (D - 2 x) for x = 0 .. D.

    P(a D) = 1 / (1 + e^-a), P(-a D) = e^(-a D) / (1 + e^-a), P(a (D - 2 x)) = tanh(a / 2) e^(-a x) between. For D = 1
    it is randomized response.
    """
    rate, shift = 1 / scale, abs(shift)
    if shift == 1:
        return TwoPointLoss(rate, ulps=0 if math.frexp(scale)[0] == 0.5 else 1)
    if not rate * shift <= LARGEST_LOSS:
        raise UnsupportedError(
            f"DiscreteLaplace({scale!r}, shift={shift})",
            f"its loss of {rate * shift:.4g} nats is beyond {LARGEST_LOSS:g}",
            "Use BlackBox(shift / scale)",
        )
    whole = 1 / (1 + math.exp(-rate))
    masses = [
        whole,
        *(math.tanh(rate / 2) * math.exp(-rate * x) for x in range(1, shift)),
        whole * math.exp(-rate * shift),
    ]
    ratios = tuple(rate * (shift - 2 * x) for x in range(shift + 1))
    relative_error = U * (24 + 4 * rate * shift)
    law = DiscreteLaplaceLaw(scale, shift)
    lattice = Lattice(2 * rate, rate * shift)
    return AtomicLoss(Atoms(tuple(masses), tuple(reversed(masses)), ratios, lattice, relative_error, law=law))
