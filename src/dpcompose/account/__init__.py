"""Where theory meets the ledger: budgets with filters, accounts that price and charge, what a person is exposed to."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
