"""A multiset of parts becomes a guarantee: certified numerically, or by the theorems that apply."""

from dpcompose.composition.batch import deltas, epsilons, running_epsilon
from dpcompose.composition.batch_calibration import Calibrations, calibrations
from dpcompose.composition.calibrate import Calibration, calibrate
from dpcompose.composition.choice import Choice, one_of
from dpcompose.composition.compare import Comparison
from dpcompose.composition.composition import Composable, ComposablePart, Composition, compare, compose
from dpcompose.composition.group import Group
from dpcompose.composition.growing import GrowingEpsilon
from dpcompose.composition.parallel import Parallel, parallel
from dpcompose.composition.part import Part
from dpcompose.composition.profile import Curve, Profile
from dpcompose.composition.risk import Risk

__all__ = [
    "Calibration",
    "Calibrations",
    "Choice",
    "Comparison",
    "Composable",
    "ComposablePart",
    "Composition",
    "Curve",
    "Group",
    "GrowingEpsilon",
    "Parallel",
    "Part",
    "Profile",
    "Risk",
    "calibrate",
    "calibrations",
    "compare",
    "compose",
    "deltas",
    "epsilons",
    "one_of",
    "parallel",
    "running_epsilon",
]
