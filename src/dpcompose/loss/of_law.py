"""The privacy losses of laws: each law of `dpcompose.law` names a family of this room, which is
imported when a law first needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any

from dpcompose import law as laws
from dpcompose.attached import supply
from dpcompose.contour import Lattice
from dpcompose.law import Law
from dpcompose.loss.atomic import AtomicLoss, AtomsAbove
from dpcompose.loss.atomize import above_values, atomized, envelope
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss
from dpcompose.loss.mixture_loss import MixtureLoss
from dpcompose.loss.product import Product
from dpcompose.values import Bound

_SIMPLE: dict[type[Law], str] = {
    laws.GaussianShift: "gaussian.GaussianLoss",
    laws.GaussianSum: "gaussian.gaussian_sum",
    laws.LaplaceShift: "laplace.LaplaceLoss",
    laws.DiscreteLaplaceShift: "laplace.discrete_laplace",
    laws.DiscreteGaussianShift: "discrete_noise.DiscreteGaussianLoss",
    laws.SkellamShift: "discrete_noise.skellam",
    laws.SampledGaussian: "sampled_gaussian.SampledGaussianLoss",
    laws.ReplacedGaussian: "sampled_gaussian.ReplacedGaussianLoss",
    laws.FixedSizeBatch: "batches.FixedSizeSampleLoss",
    laws.LargestBatch: "batches.largest_batch",
    laws.Allocated: "allocation.AllocationLoss",
    laws.Mixture: "mixture_loss.against_noise",
    laws.Chained: "group.chained",
    laws.TwoPoint: "two_point.TwoPointLoss",
    laws.BoundedRange: "bounded_range.BoundedRangeLoss",
    laws.BoundedRangeAttained: "bounded_range.attained_loss",
    laws.Shuffled: "shuffled_reports.ShuffledReportsLoss",
    laws.ShuffledResponses: "shuffled_reports.shuffled_responses",
    laws.Response: "atom_moments.ResponseLaw",
    laws.Encoding: "atom_moments.EncodingLaw",
}
"""For each law whose fields are the arguments of one function of this room, that function."""
_CHEAP = {
    *(laws.GaussianShift, laws.LaplaceShift, laws.DiscreteLaplaceShift, laws.DiscreteGaussianShift),
    *(laws.SkellamShift, laws.SampledGaussian, laws.ReplacedGaussian, laws.TwoPoint),
    *(laws.BoundedRange, laws.Response, laws.Encoding),
}
"""The laws whose losses are constructed anew for each question; the others are cached."""


@cache
def _function(location: str) -> Callable[..., Any]:
    """Return the function named `file.function` in this room."""
    file, _, name = location.partition(".")
    return getattr(import_module(f"dpcompose.loss.{file}"), name)


def loss_of(law: Any) -> Any:
    """Return the privacy loss of a law; an object that is a privacy loss already is returned
    unchanged.
    """
    if isinstance(law, Loss):
        return law
    return _constructed(law) if type(law) in _CHEAP else _cached(law)


def _constructed(law: Law) -> Any:
    """Return the privacy loss of a law whose fields are the arguments of one function."""
    return _function(_SIMPLE[type(law)])(*vars(law).values())


@lru_cache(maxsize=256)
def _cached(law: Law) -> Any:
    """Return the privacy loss of a law, cached because its construction is costly."""
    match law:
        case laws.Atoms():
            return AtomicLoss(_table(law))
        case laws.AtomsAbove(epsilons=epsilons, deltas=deltas, moment=moment):
            table = above_values(epsilons, deltas)
            return AtomicLoss(table) if moment is None else AtomsAbove(table, moment)
        case laws.AtomsOfProfile(profile=profile, above=above):
            return AtomicLoss(_atomized(profile)[0 if above else 1])
        case laws.AtomsOfParts(parts=parts):
            product = Product(tuple([(loss_of(pair.remove), times) for pair, times in parts]))
            read = partial(product.deltas, tolerance=1e-4)
            return AtomicLoss(atomized(read, product.extremes.upper)[1])
        case laws.Envelope(laws=several):
            return envelope(tuple([loss_of(each) for each in several]))
        case laws.Reversed(law=inner):
            loss = loss_of(inner)
            return loss.reverse if isinstance(loss, AtomicLoss | MixtureLoss) else loss
        case _:
            return _constructed(law)


def _table(law: laws.Atoms) -> Atoms:
    """Return the atoms that a law of listed outcomes states."""
    lattice, formula = law.lattice, law.formula
    stated: dict[str, Any] = {**vars(law), "lattice": lattice and Lattice(*lattice)}
    del stated["formula"]
    return Atoms(**stated, law=formula and loss_of(formula))


@lru_cache(maxsize=1)
def _atomized(profile: Callable[[float], Bound]) -> tuple[Atoms, Atoms]:
    """Return the atoms that dominate a profile and the atoms that it dominates, from one evaluation
    of the profile.
    """
    return atomized(lambda epsilons: [profile(each) for each in epsilons], math.inf)


@supply(Law)
class _Answered(Law):
    """The members of `Law` that this room supplies."""

    def loss(self) -> Any:
        """Return the privacy loss of this law, which has moments and a privacy profile."""
        return loss_of(self)
