from .amount import Amount as Amount, Amounts as Amounts
from .entry import Entry as Entry, Receipt as Receipt
from .ledger import Ledger as Ledger, Moment as Moment
from .scope import Balance as Balance, Kind as Kind, Scope as Scope
from .verification import Anchor as Anchor, Verification as Verification

if True:
    from .amount import (
        description_text as description_text,
        encode as encode,
        scope_path as scope_path,
        scope_paths as scope_paths,
    )
    from .copying import backup as backup, restore as restore
    from .entry import SetFact as SetFact, Statement as Statement, later as later, now as now
    from .evidence import (
        Checkpoint as Checkpoint,
        Evidence as Evidence,
        Published as Published,
        SigningKey as SigningKey,
        State as State,
        VerifierKey as VerifierKey,
    )
    from .people import PEOPLE as PEOPLE, Token as Token
    from .policies import (
        ApprovalRequest as ApprovalRequest,
        Left as Left,
        Quota as Quota,
        Reservation as Reservation,
        Threshold as Threshold,
        Tree as Tree,
    )
    from .requests import Charge as Charge
    from .scope import (
        Renewal as Renewal,
        is_at_or_below as is_at_or_below,
        paths_down_to as paths_down_to,
        root_of as root_of,
    )
