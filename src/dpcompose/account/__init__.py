"""Where theory meets the ledger: budgets with filters, accounts that price and charge, what a person is exposed to."""

from dpcompose.account.account import Account
from dpcompose.account.exposure import Exposure, exposure, fix_budgets
from dpcompose.account.history import History, history
from dpcompose.account.opening import open_partition, open_scope
from dpcompose.account.slots import open_slots, take_slot
from dpcompose.account.tree import ExposureStatement, underpaid_charges

__all__ = [
    "Account",
    "Exposure",
    "ExposureStatement",
    "History",
    "exposure",
    "fix_budgets",
    "history",
    "open_partition",
    "open_scope",
    "open_slots",
    "take_slot",
    "underpaid_charges",
]
