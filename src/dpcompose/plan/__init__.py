"""TOML plans: read, checked, written, composed, varied and accounted for."""

from dpcompose.plan.account import PlanAccount, Share, account
from dpcompose.plan.calibration import PlanCalibration, calibrate
from dpcompose.plan.curve import Curve, EpsilonCurve, Growth, over_delta, over_times
from dpcompose.plan.entry import Entry
from dpcompose.plan.plan import Plan
from dpcompose.plan.question import PlanQuestion
from dpcompose.plan.risk import PlanRisk, risk_of

__all__ = [
    "Curve",
    "Entry",
    "EpsilonCurve",
    "Growth",
    "Plan",
    "PlanAccount",
    "PlanCalibration",
    "PlanQuestion",
    "PlanRisk",
    "Share",
    "account",
    "calibrate",
    "over_delta",
    "over_times",
    "risk_of",
]
