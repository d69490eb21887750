from .atomic import AtomicLoss as AtomicLoss
from .atomize import atomized as atomized, envelope as envelope
from .atoms import Atoms as Atoms
from .base import Loss as Loss, Pair as Pair
from .bounded_range import BoundedRangeLoss as BoundedRangeLoss
from .discrete_noise import DiscreteGaussianLoss as DiscreteGaussianLoss
from .gaussian import GaussianLoss as GaussianLoss
from .group import grouped as grouped
from .laplace import LaplaceLoss as LaplaceLoss, discrete_laplace as discrete_laplace
from .product import Product as Product
from .proved_product import ProvedProduct as ProvedProduct
from .sampled import sampled_pair as sampled_pair
from .sampled_gaussian import (
    ReplacedGaussianLoss as ReplacedGaussianLoss,
    SampledGaussianLoss as SampledGaussianLoss,
)
from .two_point import TwoPointLoss as TwoPointLoss

if True:
    from .allocation import AllocationLoss as AllocationLoss
    from .atom_moments import EncodingLaw as EncodingLaw, ResponseLaw as ResponseLaw
    from .atomic import AtomsAbove as AtomsAbove
    from .atomize import (
        LAST_EPSILON as LAST_EPSILON,
        MOST_KINKS as MOST_KINKS,
        above_values as above_values,
    )
    from .atoms import TINY as TINY
    from .batches import FixedSizeSampleLoss as FixedSizeSampleLoss, largest_batch as largest_batch
    from .bounded_range import attained_losses as attained_losses
    from .discrete_noise import skellam as skellam
    from .gaussian import gaussian_sum as gaussian_sum
    from .gaussian_mixture import (
        LEAST_WEIGHT as LEAST_WEIGHT,
        GaussianMixture as GaussianMixture,
        OpposedMixtures as OpposedMixtures,
        binomial_mixture as binomial_mixture,
    )
    from .group import (
        NODES as NODES,
        EnclosedPower as EnclosedPower,
        atoms_of as atoms_of,
        chained as chained,
        curves_of as curves_of,
    )
    from .mixture_loss import MixtureLoss as MixtureLoss
    from .product import Group as Group, Readings as Readings
    from .renyi_pair import least_rho as least_rho, renyi_pair as renyi_pair
    from .sampled_gaussian_growing import Growing as Growing
    from .sampled_gaussian_many import (
        SampledGaussianQuestion as SampledGaussianQuestion,
        sampled_gaussian_ends as sampled_gaussian_ends,
    )
    from .shuffled_reports import (
        ShuffledReportsLoss as ShuffledReportsLoss,
        shuffled_responses as shuffled_responses,
    )
