"""Adaptive marginals on two neighboring tables, audited against the charge with a stand-in for the
graphical model.

Since the model sees only released numbers, the guarantee does not depend on it; the stand-in is
fast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from campaigns.release.audited import AuditedRelease
from dpcompose.audit import Pair, Subject
from dpcompose.mechanisms import Concentrated
from dpcompose.release.aim import AdaptiveMarginals, Columns, Marginal, workload
from dpcompose.release.noise import DiscreteGaussianNoise, Spend

SIZES, CHANGE, RHO = (2, 2), 2, 0.5
OTHERS = ((0, 0, 3), (0, 1, 1), (1, 1, 2))
"""Cells of a table, and how many rows each has."""
UNIT = ((1, 0, 2),)
"""The rows of one unit more, all in a cell that no other has."""


@dataclass(frozen=True)
class Latest:
    """A model that repeats what was measured last of a marginal; of others it guesses the same count everywhere.

    Args:
        sizes: How many values each column has.
        guess: That count.
        large: The number of columns from which a marginal is too large for it.
    """

    sizes: tuple[int, ...]
    guess: float = 1.0
    large: int = 9
    known: Mapping[Columns, Sequence[float]] = field(default_factory=dict[Columns, Sequence[float]])

    def counts(self, columns: Columns) -> Sequence[float]:
        whole = math.prod(self.sizes[column] for column in columns)
        return self.known.get(columns, [self.guess] * whole)

    def megabytes(self, columns: Columns) -> float:
        return math.inf if len(columns) >= self.large else 0.0

    def after(self, measured: Sequence[Marginal]) -> Latest:
        return replace(
            self, known={each.columns: [float(count) for count in each.counts] for each in measured}
        )

    def sample(self, rows: int) -> list[Sequence[int]]:
        cells = list(product(*(range(size) for size in self.sizes)))
        return [
            [cells[row % len(cells)][column] for row in range(rows)]
            for column in range(len(self.sizes))
        ]


@dataclass(frozen=True)
class Weakened(AdaptiveMarginals):
    """A planted defect: noise for so many times less than one unit moves the counts."""

    parts: float = 4.0

    def _noise(self, spend: Spend) -> DiscreteGaussianNoise:
        honest = super()._noise(spend)
        return replace(honest, spread=honest.spread / self.parts)


def rounds(*, parts: float = 1.0) -> AdaptiveMarginals:
    """Four rounds on two columns: both alone, then what is chosen."""
    given: dict[str, Any] = {
        "rho": RHO,
        "change": CHANGE,
        "sizes": SIZES,
        "rounds": 4,
        "megabytes": 1.0,
    }
    given |= {"weights": workload([(0, 1)]), "start": Latest(SIZES)}
    return AdaptiveMarginals(**given) if parts == 1 else Weakened(**given, parts=parts)


def audited_rounds(*, parts: float = 1.0) -> AuditedRelease:
    """All that is released: which marginals were measured, and their noisy counts."""
    step, worlds = rounds(parts=parts), (OTHERS, OTHERS + UNIT)

    def batch(world: int, count: int) -> list[list[float]]:
        return [_seen(step.measured(worlds[world])) for _ in range(count)]

    return AuditedRelease(
        Subject(batch=batch, label="release: adaptive marginals"), Pair(0, 1), Concentrated(RHO)
    )


def _seen(measured: Sequence[Marginal]) -> list[float]:
    """One number for each place that a round can fill; NaN where it has none."""
    found: list[float] = []
    for place in range(4):
        there = place < len(measured)
        counts = list(measured[place].counts) if there else []
        code = float(sum(2**column for column in measured[place].columns)) if there else 0.0
        found += [code, *map(float, counts), *[math.nan] * (4 - len(counts))]
    return found
