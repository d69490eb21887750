"""The building blocks: parameters, and the losses they have under an adjacency."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
