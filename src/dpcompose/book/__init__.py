"""Dwork and Roth's statements on composition, one function each; by number in `STATEMENTS`."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
