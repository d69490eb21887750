from .account import (
    Contribution as Contribution,
    EpsilonCurve as EpsilonCurve,
    Growth as Growth,
    PlanAccount as PlanAccount,
    PlanCalibration as PlanCalibration,
    PlanRisk as PlanRisk,
    TrainingHistory as TrainingHistory,
    account as account,
    calibrate as calibrate,
    over_delta as over_delta,
    over_times as over_times,
    risk_of as risk_of,
)
from .plan import Plan as Plan, PlanEntry as PlanEntry, PlanQuestion as PlanQuestion

if True:
    from .account import first_steps as first_steps
    from .schema import (
        COMPOSITION as COMPOSITION,
        MECHANISMS as MECHANISMS,
        SELECTION as SELECTION,
        adjacency as adjacency,
        dashed as dashed,
    )
