from .composition import (
    Composition as Composition,
    calibrate as calibrate,
    compose as compose,
    delta as delta,
    epsilon as epsilon,
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
