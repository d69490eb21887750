"""Dwork and Roth's statements on composition, one function each, their errors included; by number in `STATEMENTS`."""

from dpcompose.book.advanced import advanced, advanced_heterogeneous, advanced_tight
from dpcompose.book.azuma import Deviation, azuma
from dpcompose.book.basic import basic
from dpcompose.book.example_3_7 import Example, example_3_7
from dpcompose.book.group import group
from dpcompose.book.mean_loss import MeanLoss, kl_bound
from dpcompose.book.optimal import optimal
from dpcompose.book.per_mechanism import advanced_per_mechanism
from dpcompose.book.promise import Promise, promise
from dpcompose.book.statement import Parameter, Statement
from dpcompose.book.statements import STATEMENTS
from dpcompose.book.witnesses import (
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
