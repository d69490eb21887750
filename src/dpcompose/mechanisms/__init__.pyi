from .batches import (
    FixedSizeSample as FixedSizeSample,
    RandomAllocation as RandomAllocation,
    ShuffledEpochs as ShuffledEpochs,
)
from .dominating_pair import DominatingPair as DominatingPair
from .guaranteed import (
    BlackBox as BlackBox,
    Concentrated as Concentrated,
    GaussianDP as GaussianDP,
    RenyiCurve as RenyiCurve,
    distributed_discrete_gaussian as distributed_discrete_gaussian,
)
from .local import (
    RandomizedResponse as RandomizedResponse,
    ShuffledReports as ShuffledReports,
    UnaryEncoding as UnaryEncoding,
)
from .matrix import MatrixMechanism as MatrixMechanism, TreeAggregation as TreeAggregation
from .mixtures import MixtureOfGaussians as MixtureOfGaussians, TruncatedPoisson as TruncatedPoisson
from .noise import (
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
    Gaussian as Gaussian,
    Laplace as Laplace,
    Skellam as Skellam,
    Staircase as Staircase,
)
from .participation import Participation as Participation
from .private_selection import PrivateSelection as PrivateSelection
from .selection import (
    AboveThreshold as AboveThreshold,
    Exponential as Exponential,
    NoisyArgmax as NoisyArgmax,
    NoisyMax as NoisyMax,
    PermuteAndFlip as PermuteAndFlip,
)

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
