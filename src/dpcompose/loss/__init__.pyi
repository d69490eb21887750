from .allocation import AllocationLoss as AllocationLoss
from .atomic import AtomicLoss as AtomicLoss, AtomsAbove as AtomsAbove
from .atomic_moments import EncodingLaw as EncodingLaw, ResponseLaw as ResponseLaw
from .atomize import (
    LAST_EPSILON as LAST_EPSILON,
    MOST_KINKS as MOST_KINKS,
    above_values as above_values,
    atomized as atomized,
    envelope as envelope,
)
from .atoms import TINY as TINY, Atoms as Atoms
from .base import Loss as Loss, Pair as Pair
from .bounded_range import BoundedRangeLoss as BoundedRangeLoss, attained_losses as attained_losses
from .concentration import least_rho as least_rho
from .discrete_gaussian import DiscreteGaussianLoss as DiscreteGaussianLoss
from .fixed_size_sample import FixedSizeSampleLoss as FixedSizeSampleLoss
from .gaussian import GaussianLoss as GaussianLoss, gaussian_sum as gaussian_sum
from .gaussian_mixture import (
    LEAST_WEIGHT as LEAST_WEIGHT,
    GaussianMixture as GaussianMixture,
    binomial_mixture as binomial_mixture,
)
from .group import (
    NODES as NODES,
    EnclosedPower as EnclosedPower,
    atoms_of as atoms_of,
    chained as chained,
    curves_of as curves_of,
    grouped as grouped,
)
from .laplace import LaplaceLoss as LaplaceLoss, discrete_laplace as discrete_laplace
from .largest_batch import largest_batch as largest_batch
from .mixture_grid import OpposedMixtures as OpposedMixtures
from .mixture_loss import MixtureLoss as MixtureLoss
from .product import Group as Group, Product as Product, Readings as Readings
from .proved_product import ProvedProduct as ProvedProduct
from .renyi_pair import renyi_pair as renyi_pair
from .replaced_gaussian import ReplacedGaussianLoss as ReplacedGaussianLoss
from .sampled import SampledLoss as SampledLoss, sampled_pair as sampled_pair
from .sampled_gaussian import SampledGaussianLoss as SampledGaussianLoss
from .sampled_gaussian_growing import Growing as Growing
from .sampled_gaussian_many import (
    SampledGaussianQuestion as SampledGaussianQuestion,
    sampled_gaussian_ends as sampled_gaussian_ends,
)
from .sampled_gaussian_running import MOST_PHASES as MOST_PHASES, running_sampled_gaussian as running_sampled_gaussian
from .shuffled_reports import ShuffledReportsLoss as ShuffledReportsLoss, shuffled_responses as shuffled_responses
from .skellam import skellam as skellam
from .two_point import TwoPointLoss as TwoPointLoss
