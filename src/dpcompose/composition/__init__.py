"""Privacy of compositions of mechanisms: certified numerical bounds, and the theorems that apply."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
