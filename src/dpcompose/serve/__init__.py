"""The custodian's service: a ledger behind identities, with prices that are the server's, and pages that show it."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
