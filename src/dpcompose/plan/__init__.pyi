from .account import PlanAccount as PlanAccount, Share as Share, account as account
from .calibration import PlanCalibration as PlanCalibration, calibrate as calibrate
from .curve import (
    Curve as Curve,
    EpsilonCurve as EpsilonCurve,
    Growth as Growth,
    over_delta as over_delta,
    over_times as over_times,
)
from .entry import Entry as Entry
from .plan import Plan as Plan
from .question import PlanQuestion as PlanQuestion
from .risk import PlanRisk as PlanRisk, risk_of as risk_of

if True:
    from .entry import PlanEntry as PlanEntry
    from .schema import (
        COMPOSITION as COMPOSITION,
        MECHANISMS as MECHANISMS,
        SELECTION as SELECTION,
        dashed as dashed,
    )
    from .values import adjacency as adjacency
