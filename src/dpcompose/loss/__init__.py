"""The privacy loss random variable of one ordered pair: one file a family, and the product of independent losses.

A family is a `Loss`; its sum is a `Transform` for floats (`*_sum`) and `Moments` for proofs (`*_moments`).
"""

from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atomize import atomized, envelope
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss, Pair
from dpcompose.loss.bounded_range import BoundedRangeLoss
from dpcompose.loss.discrete_gaussian import DiscreteGaussianLoss
from dpcompose.loss.gaussian import GaussianLoss
from dpcompose.loss.group import grouped
from dpcompose.loss.laplace import LaplaceLoss, discrete_laplace
from dpcompose.loss.product import Product
from dpcompose.loss.proved_product import ProvedProduct
from dpcompose.loss.replaced_gaussian import ReplacedGaussianLoss
from dpcompose.loss.sampled import SampledLoss, sampled_pair
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.two_point import TwoPointLoss

__all__ = [
    "AtomicLoss",
    "Atoms",
    "BoundedRangeLoss",
    "DiscreteGaussianLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "Loss",
    "Pair",
    "Product",
    "ProvedProduct",
    "ReplacedGaussianLoss",
    "SampledGaussianLoss",
    "SampledLoss",
    "TwoPointLoss",
    "atomized",
    "discrete_laplace",
    "envelope",
    "grouped",
    "sampled_pair",
]
