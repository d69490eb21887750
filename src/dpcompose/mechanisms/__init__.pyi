from .allocation import RandomAllocation as RandomAllocation
from .batches import FixedSizeSample as FixedSizeSample, ShuffledEpochs as ShuffledEpochs
from .discrete import (
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
    Skellam as Skellam,
)
from .dominating_pair import DominatingPair as DominatingPair
from .exponential import Exponential as Exponential
from .gaussian import Gaussian as Gaussian
from .guaranteed import (
    BlackBox as BlackBox,
    Concentrated as Concentrated,
    GaussianDP as GaussianDP,
    RenyiCurve as RenyiCurve,
)
from .laplace import Laplace as Laplace
from .local import ShuffledReports as ShuffledReports, UnaryEncoding as UnaryEncoding
from .matrix import MatrixMechanism as MatrixMechanism
from .mixtures import MixtureOfGaussians as MixtureOfGaussians, TruncatedPoisson as TruncatedPoisson
from .participation import Participation as Participation
from .private_selection import PrivateSelection as PrivateSelection
from .randomized_response import RandomizedResponse as RandomizedResponse
from .secure_aggregation import distributed_discrete_gaussian as distributed_discrete_gaussian
from .selection import (
    AboveThreshold as AboveThreshold,
    NoisyArgmax as NoisyArgmax,
    NoisyMax as NoisyMax,
    PermuteAndFlip as PermuteAndFlip,
)
from .staircase import Staircase as Staircase
from .tree import TreeAggregation as TreeAggregation

if True:
    from .base import Stated as Stated
    from .composable import (
        Askable as Askable,
        Composable as Composable,
        ComposablePart as ComposablePart,
    )
    from .parameter import arguments_of as arguments_of
    from .part import Part as Part, Unsampled as Unsampled
    from .text import arguments as arguments, kinds as kinds, parse as parse, serialize as serialize
