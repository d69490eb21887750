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
    from .ledger import is_at_or_below as is_at_or_below, may_write as may_write
    from .postgres_connection import (
        pool_of as pool_of,
        transaction as transaction,
    )
    from .recorded_file import RecordedFile as RecordedFile
    from .requests import Charge as Charge, RequestDecision as RequestDecision, View as View
    from .scope import (
        AccountNode as AccountNode,
        Renewal as Renewal,
        available as available,
        paths_down_to as paths_down_to,
        root_of as root_of,
        spend as spend,
    )
    from .sqlite_connection import (
        is_of_database as is_of_database,
        sqlite_failure as sqlite_failure,
    )
    from .text import (
        description_text as description_text,
        encode as encode,
        scope_path as scope_path,
    )
    from .verification import DisagreementError as DisagreementError, Replay as Replay
