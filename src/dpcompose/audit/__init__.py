"""The audit of a claim by betting on fair coins: refuted, not refuted, or certified."""

from dpcompose.audit.again import again
from dpcompose.audit.audit import audit
from dpcompose.audit.check import CertificateError, check
from dpcompose.audit.feature import Feature, Learner
from dpcompose.audit.outcome import Outcome
from dpcompose.audit.pair import Pair
from dpcompose.audit.primitives import Primitives
from dpcompose.audit.replay import Replayed, modelled, replay
from dpcompose.audit.subject import Source, Subject
from dpcompose.audit.transcript import Interaction, Transcripts
from dpcompose.audit.verdict import Found, Moment, Tried, Verdict

__all__ = [
    "CertificateError",
    "Feature",
    "Found",
    "Interaction",
    "Learner",
    "Moment",
    "Outcome",
    "Pair",
    "Primitives",
    "Replayed",
    "Source",
    "Subject",
    "Transcripts",
    "Tried",
    "Verdict",
    "again",
    "audit",
    "check",
    "modelled",
    "replay",
]
