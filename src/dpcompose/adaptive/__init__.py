"""Filters and odometers: guarantees against an adversary who chooses parameters from earlier answers.

A filter is data: limits on exact sums of named currencies, a price for each mechanism, a guarantee for the whole.
"""

from dpcompose.adaptive.advanced import AdvancedFilter
from dpcompose.adaptive.basic import BasicFilter
from dpcompose.adaptive.boundary import Line, Mixture
from dpcompose.adaptive.concentrated import ConcentratedFilter
from dpcompose.adaptive.curators import Curators, Spendings
from dpcompose.adaptive.description import NaturalFilter, from_description
from dpcompose.adaptive.filter import Decision, Filter, Spending
from dpcompose.adaptive.gaussian import GaussianFilter
from dpcompose.adaptive.individual import IndividualFilter, IndividualRound, Records, Round
from dpcompose.adaptive.odometer import Distance, Mileage, Odometer, Reading, RunningSum
from dpcompose.adaptive.pure import PureFilter
from dpcompose.adaptive.renyi import RenyiFilter
from dpcompose.adaptive.total import Total

__all__ = [
    "AdvancedFilter",
    "BasicFilter",
    "ConcentratedFilter",
    "Curators",
    "Decision",
    "Distance",
    "Filter",
    "GaussianFilter",
    "IndividualFilter",
    "IndividualRound",
    "Line",
    "Mileage",
    "Mixture",
    "NaturalFilter",
    "Odometer",
    "PureFilter",
    "Reading",
    "Records",
    "RenyiFilter",
    "Round",
    "RunningSum",
    "Spending",
    "Spendings",
    "Total",
    "from_description",
]
