from .batch import (
    GrowingEpsilon as GrowingEpsilon,
    delta as delta,
    epsilon as epsilon,
    running_epsilon as running_epsilon,
)
from .calibrate import (
    Calibration as Calibration,
    Calibrations as Calibrations,
    calibrate as calibrate,
)
from .comparison import Comparison as Comparison
from .composition import (
    Composable as Composable,
    ComposablePart as ComposablePart,
    Composition as Composition,
    compare as compare,
    compose as compose,
)
from .group import Group as Group
from .parallel import Choice as Choice, Parallel as Parallel, one_of as one_of, parallel as parallel
from .profile import Curve as Curve, Profile as Profile, Risk as Risk

if True:
    from .calibrate import ATTACKS as ATTACKS
    from .composition import Sampled as Sampled
    from .losses import (
        MOST_TIMES as MOST_TIMES,
        GroupLosses as GroupLosses,
        Pairs as Pairs,
        Part as Part,
        gathered as gathered,
        loss_of as loss_of,
        pair_on_sample as pair_on_sample,
    )
    from .profile import entries_of as entries_of, risk as risk
    from .question import Options as Options
