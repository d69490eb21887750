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
    from .atomize import MOST_KINKS as MOST_KINKS
    from .atoms import TINY as TINY
    from .base import by_family as by_family
    from .gaussian_mixture import OpposedMixtures as OpposedMixtures
    from .group import (
        NODES as NODES,
        EnclosedPower as EnclosedPower,
        atoms_of as atoms_of,
        curves_of as curves_of,
        losses_on_a_line as losses_on_a_line,
    )
    from .mixture_loss import MixtureLoss as MixtureLoss
    from .of_law import loss_of as loss_of
    from .product import POOR as POOR, Group as Group, Readings as Readings, loose as loose
    from .renyi_pair import least_rho as least_rho, renyi_pair as renyi_pair
    from .sampled_gaussian_growing import Growing as Growing
    from .sampled_gaussian_many import (
        SampledGaussianQuestion as SampledGaussianQuestion,
        sampled_gaussian_ends as sampled_gaussian_ends,
    )
