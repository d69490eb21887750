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
        read_checkpoints as read_checkpoints,
    )
    from .copying import backup as backup, restore as restore
    from .entry import (
        GRANTED as GRANTED,
        OPENED as OPENED,
        REDEEMED as REDEEMED,
        REFUSED as REFUSED,
        now as now,
    )
    from .evidence import (
        Evidence as Evidence,
        announce_key as announce_key,
        check_proof as check_proof,
        consistency_proof as consistency_proof,
        inclusion_proof as inclusion_proof,
        revoke_key as revoke_key,
    )
    from .ledger import file_of as file_of, is_at_or_below as is_at_or_below
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
        require_currencies as require_currencies,
        root_of as root_of,
        spend as spend,
    )
    from .sqlite_connection import (
        is_database as is_database,
        is_of_database as is_of_database,
        may_write as may_write,
        sqlite_failure as sqlite_failure,
    )
    from .store import Snapshot as Snapshot
    from .text import (
        description_text as description_text,
        each_once as each_once,
        encode as encode,
        line_of_text as line_of_text,
        scope_path as scope_path,
    )
    from .verification import (
        DisagreementError as DisagreementError,
        Replay as Replay,
        differences as differences,
    )
