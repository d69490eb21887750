from .amount import Amount as Amount, Amounts as Amounts
from .entry import Entry as Entry, Head as Head, Receipt as Receipt
from .ledger import Ledger as Ledger, Moment as Moment
from .scope import Balance as Balance, Kind as Kind, Scope as Scope
from .verification import Anchor as Anchor, Verification as Verification

if True:
    from .checkpoint import (
        Checkpoint as Checkpoint,
        SigningKey as SigningKey,
        VerifierKey as VerifierKey,
        opened_note as opened_note,
    )
    from .copying import backup as backup, restore as restore
    from .entry import now as now
    from .evidence import Evidence as Evidence
    from .ledger import file_of as file_of, may_write as may_write
    from .policies import (
        APPROVED as APPROVED,
        DECLINED as DECLINED,
        ENDED as ENDED,
        PERIODS as PERIODS,
        USED as USED,
        ApprovalRequest as ApprovalRequest,
        Left as Left,
        Quota as Quota,
        Reservation as Reservation,
        Threshold as Threshold,
        Tree as Tree,
        later as later,
    )
    from .postgres_connection import (
        pool_of as pool_of,
        transaction as transaction,
    )
    from .requests import (
        Charge as Charge,
        Opening as Opening,
        Outcome as Outcome,
        Request as Request,
    )
    from .scope import (
        AccountNode as AccountNode,
        Renewal as Renewal,
        available as available,
        is_at_or_below as is_at_or_below,
        paths_down_to as paths_down_to,
        root_of as root_of,
        spend as spend,
    )
    from .sqlite_connection import (
        is_of_database as is_of_database,
        sqlite_failure as sqlite_failure,
    )
    from .statements import (
        CLOCK as CLOCK,
        KEPT as KEPT,
        PEOPLE as PEOPLE,
        AskApproval as AskApproval,
        Correct as Correct,
        CountRefusals as CountRefusals,
        Decide as Decide,
        EnforcedCharge as EnforcedCharge,
        EnforcedOpening as EnforcedOpening,
        Import as Import,
        Invite as Invite,
        Probe as Probe,
        Reserve as Reserve,
        Revoke as Revoke,
        SetQuota as SetQuota,
        SetThreshold as SetThreshold,
        Statement as Statement,
        Token as Token,
        TrustClock as TrustClock,
        Unreserve as Unreserve,
        covers as covers,
        skeleton as skeleton,
    )
    from .store import Snapshot as Snapshot, Store as Store
    from .text import (
        description_text as description_text,
        encode as encode,
        scope_path as scope_path,
    )
    from .verification import DisagreementError as DisagreementError, Replay as Replay
