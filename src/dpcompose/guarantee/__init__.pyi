from .approximate import ApproximateDP as ApproximateDP
from .gaussian import GaussianTradeoff as GaussianTradeoff
from .priced import Priced as Priced, TypedAmounts as TypedAmounts
from .renyi import ConcentratedDP as ConcentratedDP, RenyiDP as RenyiDP

if True:
    from .advanced import (
        Counted as Counted,
        advanced_half_squares as advanced_half_squares,
        advanced_slack as advanced_slack,
        printed_advanced as printed_advanced,
        tight_advanced as tight_advanced,
    )
    from .approximate import (
        checked_epsilon as checked_epsilon,
        mirrored_epsilon as mirrored_epsilon,
        remaining_delta as remaining_delta,
        with_failures as with_failures,
    )
    from .gaussian import (
        gaussian_epsilon as gaussian_epsilon,
        gaussian_mu as gaussian_mu,
        gaussian_profile as gaussian_profile,
        mills_drop as mills_drop,
    )
    from .group import group_chained as group_chained, group_printed as group_printed
    from .heterogeneous import heterogeneous_epsilon as heterogeneous_epsilon
    from .optimal import (
        homogeneous_delta as homogeneous_delta,
        homogeneous_epsilon as homogeneous_epsilon,
    )
    from .power_function import (
        IDENTITY as IDENTITY,
        PowerCurve as PowerCurve,
        enclosing_power as enclosing_power,
        power_mixture as power_mixture,
    )
    from .promise import (
        KnownCurve as KnownCurve,
        RenyiLine as RenyiLine,
        RenyiPromise as RenyiPromise,
    )
    from .renyi import (
        concentrated_epsilon as concentrated_epsilon,
        lossless_epsilon as lossless_epsilon,
        pure_concentrated as pure_concentrated,
        pure_renyi as pure_renyi,
        renyi_delta as renyi_delta,
        renyi_epsilon as renyi_epsilon,
    )
