from .batch import delta as delta, epsilon as epsilon, running_epsilon as running_epsilon
from .calibrate import (
    Calibration as Calibration,
    Calibrations as Calibrations,
    calibrate as calibrate,
)
from .choice import Choice as Choice, one_of as one_of
from .comparison import Comparison as Comparison
from .composition import (
    Composable as Composable,
    ComposablePart as ComposablePart,
    Composition as Composition,
    compare as compare,
    compose as compose,
)
from .group import Group as Group
from .growing import GrowingEpsilon as GrowingEpsilon
from .options import Options as Options
from .parallel import Parallel as Parallel, parallel as parallel
from .profile import Curve as Curve, Profile as Profile
from .risk import Risk as Risk

if True:
    from .composition import Sampled as Sampled
    from .losses import gathered as gathered
    from .part import (
        MOST_TIMES as MOST_TIMES,
        GroupLosses as GroupLosses,
        Pairs as Pairs,
        pair_on_sample as pair_on_sample,
    )
    from .risk import risk as risk
    from .target import ATTACKS as ATTACKS
