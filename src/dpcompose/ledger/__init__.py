"""A ledger of what was spent, on which data, by whom, and what may still be spent.

It knows no theorem: amounts are exact, named, and add up. Scopes form a tree; a charge asks one of them and all
above it, and is granted by all or by none, before any noise is drawn. Rules are pure (`decision`, `spending`); the
stores are thin.
"""

from dpcompose.ledger.amount import Amount, Amounts
from dpcompose.ledger.entry import Entry, Head, Receipt
from dpcompose.ledger.ledger import Ledger, Moment
from dpcompose.ledger.scope import Balance, Kind, Scope
from dpcompose.ledger.verification import Anchor, Verification

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
