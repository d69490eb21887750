"""A multiset of parts becomes a guarantee: certified numerically, or by the theorems that apply."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
