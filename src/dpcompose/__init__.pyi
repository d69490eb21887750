from .composition import (
    Composition as Composition,
    calibrate as calibrate,
    calibrations as calibrations,
    compose as compose,
    deltas as deltas,
    epsilons as epsilons,
    parallel as parallel,
)
from .errors import DPComposeError as DPComposeError
from .ledger import Ledger as Ledger
from .mechanisms import (
    BlackBox as BlackBox,
    Concentrated as Concentrated,
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
    Exponential as Exponential,
    Gaussian as Gaussian,
    GaussianDP as GaussianDP,
    Laplace as Laplace,
    RandomizedResponse as RandomizedResponse,
)
from .values import Adjacency as Adjacency, Bound as Bound, Orientation as Orientation

__version__: str
