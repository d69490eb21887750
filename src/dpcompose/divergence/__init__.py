"""Divergences between two distributions: of finite ones exactly, of densities by estimate.

Every function reads a finite distribution as a mapping outcome -> mass or as masses in order, with int, Fraction,
Decimal or float masses taken exactly as they are, and returns a `Bound` that contains the truth (an `Exact`, with the
rational `.value`, where the truth is rational). Two `Density` give an `Estimate`, which proves nothing.
"""

from dpcompose.divergence.density import Density, Estimate
from dpcompose.divergence.distribution import Distribution
from dpcompose.divergence.enclosure import Exact
from dpcompose.divergence.hockey_stick import hockey_stick, total_variation
from dpcompose.divergence.maximum import approximate_max, max_divergence, max_ratio
from dpcompose.divergence.neighbors import SmallestEpsilon, smallest_epsilon
from dpcompose.divergence.renyi_divergence import kl, renyi
from dpcompose.divergence.witnesses import (
    OneSidedWitness,
    SymmetricWitness,
    extreme_pair,
    one_sided_witness,
    symmetric_witness,
)

__all__ = [
    "Density",
    "Distribution",
    "Estimate",
    "Exact",
    "OneSidedWitness",
    "SmallestEpsilon",
    "SymmetricWitness",
    "approximate_max",
    "extreme_pair",
    "hockey_stick",
    "kl",
    "max_divergence",
    "max_ratio",
    "one_sided_witness",
    "renyi",
    "smallest_epsilon",
    "symmetric_witness",
    "total_variation",
]
