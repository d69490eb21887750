"""The audit of a claim by betting on fair coins: refuted, not refuted, or certified."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
