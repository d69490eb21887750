"""Dwork and Roth's statements on composition, one function each, errors included; by number in `STATEMENTS`."""

from dpcompose.book.example_3_7 import Example, example_3_7
from dpcompose.book.lemmas import Deviation, MeanLoss, azuma, kl_bound
from dpcompose.book.promise import Promise, promise
from dpcompose.book.statements import STATEMENTS, Parameter, Statement
from dpcompose.book.theorems import (
    advanced,
    advanced_heterogeneous,
    advanced_per_mechanism,
    advanced_tight,
    basic,
    group,
    optimal,
)
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
    "STATEMENTS",
    "Deviation",
    "Example",
    "MeanLoss",
    "Parameter",
    "Promise",
    "Statement",
    "advanced",
    "advanced_heterogeneous",
    "advanced_per_mechanism",
    "advanced_tight",
    "approximate_max",
    "azuma",
    "basic",
    "example_3_7",
    "extreme_pair",
    "group",
    "kl",
    "kl_bound",
    "max_divergence",
    "one_sided_witness",
    "optimal",
    "promise",
    "smallest_epsilon",
    "symmetric_witness",
    "total_variation",
]
