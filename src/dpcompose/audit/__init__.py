"""The audit of a claim by betting on fair coins: refuted, not refuted, or certified."""

from dpcompose.audit.feature import Feature, Learner
from dpcompose.audit.outcome import Outcome
from dpcompose.audit.pair import Pair
from dpcompose.audit.subject import Source, Subject
from dpcompose.audit.verdict import Found, Moment, Tried, Verdict

__all__ = ["Feature", "Found", "Learner", "Moment", "Outcome", "Pair", "Source", "Subject", "Tried", "Verdict"]
