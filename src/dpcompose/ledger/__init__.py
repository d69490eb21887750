"""What has been spent, on which data, by whom; what may still be spent.

It knows no theorem: amounts are exact, named, and add up. Scopes form a tree; a charge asks one of them and all
above it, and is granted by all or by none, before any noise is drawn. Rules are pure (`decision`, `spending`); the
stores are thin.
"""

from dpcompose.ledger.amount import Amount
from dpcompose.ledger.amounts import Amounts
from dpcompose.ledger.anchor import Anchor
from dpcompose.ledger.entry import Entry, Head
from dpcompose.ledger.ledger import Ledger
from dpcompose.ledger.moment import Moment
from dpcompose.ledger.receipt import Receipt
from dpcompose.ledger.scope import Balance, Kind, Scope
from dpcompose.ledger.verification import Verification

__all__ = [
    "Amount",
    "Amounts",
    "Anchor",
    "Balance",
    "Entry",
    "Head",
    "Kind",
    "Ledger",
    "Moment",
    "Receipt",
    "Scope",
    "Verification",
]
