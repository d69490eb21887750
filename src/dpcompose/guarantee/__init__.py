"""Privacy guarantees: pure, approximate, concentrated, Renyi and Gaussian privacy, and the way between them.

One module a notion or theorem, one function a conversion; each says its direction, and rounds that way.
"""

from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.guarantee.gaussian import GaussianTradeoff
from dpcompose.guarantee.priced import Priced, TypedAmounts
from dpcompose.guarantee.renyi import RenyiDP

__all__ = [
    "Adjacency",
    "ApproximateDP",
    "ConcentratedDP",
    "GaussianTradeoff",
    "Orientation",
    "Priced",
    "RenyiDP",
    "TypedAmounts",
]
