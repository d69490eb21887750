"""A multiset of parts becomes a guarantee: certified numerically, or by the theorems that apply."""

from dpcompose.composition.calibrate import Calibration, calibrate
from dpcompose.composition.compare import Comparison, compare
from dpcompose.composition.container import Composable, Composition, Part, compose
from dpcompose.composition.parallel import Parallel, parallel
from dpcompose.composition.profile import Profile

__all__ = [
    "Calibration",
    "Comparison",
    "Composable",
    "Composition",
    "Parallel",
    "Part",
    "Profile",
    "calibrate",
    "compare",
    "compose",
    "parallel",
]
