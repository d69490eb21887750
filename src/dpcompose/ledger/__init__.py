"""A ledger of what was spent, on which data, by whom, and what may still be spent.

It knows no theorem: amounts are exact, named, and add up. Scopes form a tree; a charge asks one of them and all
above it, and is granted by all or by none, before any noise is drawn. Rules are pure (`decision`, `spending`); the
stores are thin.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
