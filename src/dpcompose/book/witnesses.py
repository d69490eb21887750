"""Section 3.5.1 on distributions of your own: its definitions, Remark 3.1, the witnesses of Lemmas 3.17 and 3.18."""

from dpcompose.divergence import (
    approximate_max,
    extreme_pair,
    kl,
    max_divergence,
    one_sided_witness,
    smallest_epsilon,
    symmetric_witness,
    total_variation,
)

__all__ = [
    "approximate_max",
    "extreme_pair",
    "kl",
    "max_divergence",
    "one_sided_witness",
    "smallest_epsilon",
    "symmetric_witness",
    "total_variation",
]
