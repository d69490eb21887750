from .audit import Repeated as Repeated, again as again, audit as audit
from .check import CertificateError as CertificateError, check as check
from .claim import (
    AuditResult as AuditResult,
    Moment as Moment,
    Pair as Pair,
    Tried as Tried,
    Verdict as Verdict,
)
from .feature import Feature as Feature, Learner as Learner
from .outcome import Outcome as Outcome
from .subject import Source as Source, Subject as Subject, Transcripts as Transcripts

if True:
    from .canary import canaries as canaries
    from .certificate import text_of as text_of
    from .learned import LEARNERS as LEARNERS
    from .subject import Fresh as Fresh, Measurement as Measurement, stated_claim as stated_claim
    from .usual import (
        usual_claim as usual_claim,
        usual_pairs as usual_pairs,
    )
