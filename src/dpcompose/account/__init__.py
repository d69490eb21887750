"""Where theory meets the ledger: budgets with filters, accounts that price and charge, what a person is exposed to."""

from dpcompose.account.charging import Account
from dpcompose.account.opening import open_partition, open_scope, open_slots, take_slot

__all__ = ["Account", "open_partition", "open_scope", "open_slots", "take_slot"]
