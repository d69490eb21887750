"""Audits of privacy claims by betting on fair coins; the verdict is refuted, not refuted, or
certified.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
