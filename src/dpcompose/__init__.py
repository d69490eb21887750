"""dpcompose adds up differential privacy: certified, fast, and in a ledger that cannot be overdrawn.

    mechanism -> privacy loss -> composition -> guarantee -> report

Mechanisms name their losses, `compose` (or `+` and `*`) puts them together, and every question about a composition is
answered by a `Bound`: two floats between which the truth lies. Rooms: `numerics` (numbers with two ends), `contour` and
`proof` (the engines, in floats and in balls), `guarantee` (promises and theorems), `loss` (the privacy loss of one
pair), `mechanism` (the building blocks), `composition`, `divergence`, `book` (Dwork and Roth, executable), `adaptive`
(filters and odometers: parameters chosen along the way), `ledger` (what has been spent), `account` (filters in a
ledger), `release` (answers about tables), `experiment`, `plan` (TOML files), `report`, `cli`. Losses: in nats.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpcompose.pictured import Plot
from dpcompose.version import __version__ as __version__

if TYPE_CHECKING:
    from dpcompose.composition.batch import deltas, epsilons, running_epsilon
    from dpcompose.composition.batch_calibration import Calibrations, calibrations
    from dpcompose.composition.calibrate import Calibration, calibrate
    from dpcompose.composition.composition import Composition, compose
    from dpcompose.composition.group import Group
    from dpcompose.composition.parallel import Parallel, parallel
    from dpcompose.composition.profile import Profile
    from dpcompose.composition.risk import Risk
    from dpcompose.errors import (
        DomainError,
        DPComposeError,
        MissingExtraError,
        PlanError,
        RefusedRoundError,
        UnreachableError,
        UnsupportedError,
    )
    from dpcompose.mechanism import (
        AboveThreshold,
        BlackBox,
        Concentrated,
        DiscreteGaussian,
        DiscreteLaplace,
        DominatingPair,
        Exponential,
        FixedSizeSample,
        Gaussian,
        GaussianDP,
        Laplace,
        MatrixMechanism,
        MixtureOfGaussians,
        NoisyArgmax,
        NoisyMax,
        PermuteAndFlip,
        PrivateSelection,
        RandomAllocation,
        RandomizedResponse,
        RenyiCurve,
        ShuffledEpochs,
        ShuffledReports,
        Skellam,
        Staircase,
        TreeAggregation,
        TruncatedPoisson,
        UnaryEncoding,
    )
    from dpcompose.mechanism.participation import Participation
    from dpcompose.mechanism.secure_aggregation import distributed_discrete_gaussian
    from dpcompose.values.adjacency import Adjacency, Orientation
    from dpcompose.values.bound import Bound, Certificate
    from dpcompose.values.bounds import Bounds


def _picture(name: str) -> Any:
    return getattr(import_module("dpcompose.report"), name)


Plot.find = staticmethod(_picture)
del Plot

__all__ = [
    "AboveThreshold",
    "Adjacency",
    "BlackBox",
    "Bound",
    "Bounds",
    "Calibration",
    "Calibrations",
    "Certificate",
    "Composition",
    "Concentrated",
    "DPComposeError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DomainError",
    "DominatingPair",
    "Exponential",
    "FixedSizeSample",
    "Gaussian",
    "GaussianDP",
    "Group",
    "Laplace",
    "MatrixMechanism",
    "MissingExtraError",
    "MixtureOfGaussians",
    "NoisyArgmax",
    "NoisyMax",
    "Orientation",
    "Parallel",
    "Participation",
    "PermuteAndFlip",
    "PlanError",
    "PrivateSelection",
    "Profile",
    "RandomAllocation",
    "RandomizedResponse",
    "RefusedRoundError",
    "RenyiCurve",
    "Risk",
    "ShuffledEpochs",
    "ShuffledReports",
    "Skellam",
    "Staircase",
    "TreeAggregation",
    "TruncatedPoisson",
    "UnaryEncoding",
    "UnreachableError",
    "UnsupportedError",
    "calibrate",
    "calibrations",
    "compose",
    "deltas",
    "distributed_discrete_gaussian",
    "epsilons",
    "parallel",
    "running_epsilon",
]

_PLACES = {
    "Adjacency": "guarantee.adjacency",
    "Bound": "numerics.bound",
    "Bounds": "numerics.bounds",
    "Calibration": "composition.calibrate",
    "Calibrations": "composition.batch_calibration",
    "Certificate": "numerics.bound",
    "Composition": "composition.composition",
    "DPComposeError": "errors",
    "DomainError": "errors",
    "Group": "composition.group",
    "MissingExtraError": "errors",
    "Orientation": "guarantee.adjacency",
    "Parallel": "composition.parallel",
    "Participation": "mechanism.participation",
    "PlanError": "errors",
    "Profile": "composition.profile",
    "RefusedRoundError": "errors",
    "Risk": "composition.risk",
    "UnreachableError": "errors",
    "UnsupportedError": "errors",
    "calibrate": "composition.calibrate",
    "calibrations": "composition.batch_calibration",
    "compose": "composition.composition",
    "deltas": "composition.batch",
    "distributed_discrete_gaussian": "mechanism.secure_aggregation",
    "epsilons": "composition.batch",
    "parallel": "composition.parallel",
    "running_epsilon": "composition.batch",
}
"""Where names are defined that are no mechanism; a file is read when a name of it is first used."""


def __getattr__(name: str) -> Any:
    """A name of the package, imported when it is first used: `import dpcompose` alone costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'dpcompose' has no attribute {name!r}")
    found = getattr(import_module(f"dpcompose.{_PLACES.get(name, 'mechanism')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
