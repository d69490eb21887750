from .account import (
    Contribution as Contribution,
    PlanAccount as PlanAccount,
    PlanCalibration as PlanCalibration,
    account as account,
    calibrate as calibrate,
)
from .curve import (
    Curve as Curve,
    EpsilonCurve as EpsilonCurve,
    Growth as Growth,
    PlanRisk as PlanRisk,
    over_delta as over_delta,
    over_times as over_times,
    risk_of as risk_of,
)
from .plan import Entry as Entry, Plan as Plan, PlanQuestion as PlanQuestion

if True:
    from .plan import PlanEntry as PlanEntry
    from .schema import (
        COMPOSITION as COMPOSITION,
        MECHANISMS as MECHANISMS,
        SELECTION as SELECTION,
        adjacency as adjacency,
        dashed as dashed,
    )
