"""Sums over atoms: what masses may be off by must be inside the stated error."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms

ERROR = 1e-9


@pytest.mark.parametrize("seed", range(40))
def test_masses_off_as_a_whole(seed: int) -> None:
    """Most of P on the infinite loss and negative losses elsewhere: M is below 1, and so much for cancellation."""
    rng = Random(seed)
    for _ in range(20):
        weights = [rng.random() for _ in range(rng.randrange(1, 6))]
        lower = [weight / sum(weights) for weight in weights]
        ratio = [-(10 ** rng.uniform(-4, 0.5)) for _ in lower]
        upper = [q * math.exp(r) for q, r in zip(lower, ratio, strict=True)]
        side = rng.choice([-1, 1]) * ERROR
        moved = AtomicLoss(
            Atoms(
                (*(p * (1 + side) for p in upper), 1 - math.fsum(upper)),
                (*(q * (1 - side) for q in lower), 0.0),
                (*(r * (1 + rng.choice([-1, 0, 1]) * ERROR) for r in ratio), math.inf),
                None,
                ERROR,
            )
        )
        frequencies = np.array([0.0, 1.0, 30.0])
        for order in (5.0, 50.0, 500.0):
            line = moved.transform(1).line(order, frequencies)
            for u, log, error in zip(frequencies, line.log, line.error, strict=True):
                waves = [
                    p * np.exp((order + 1j * u) * r) for p, r in zip(upper, ratio, strict=True)
                ]
                truth, value = abs(sum(waves)) / math.fsum(upper), sum(waves) / math.fsum(upper)
                if error < 1:
                    assert abs(value - np.exp(log)) <= math.expm1(error) * abs(np.exp(log))
                else:
                    assert truth <= math.exp(log.real + error)


def test_no_floor_where_only_the_modulus_is_known() -> None:
    """An envelope relative to an M(order) that may be 0 says nothing."""
    half = AtomicLoss(
        Atoms((0.5, 1e-3, 0.499), (0.5, 0.5, 0.0), (0.0, math.log(2e-3), math.inf), None, 0.3)
    )
    line = half.transform(1).line(40.0, np.zeros(1))
    assert line.error[0] >= 1
    assert line.floor[0] == -math.inf
    assert half.transform(1).log_envelope(40.0, np.array([1.0, 2.0])).tolist() == [0.0, 0.0]
