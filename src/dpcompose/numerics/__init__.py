"""Numerical methods with proved errors: elementary functions, sums, tails and roots."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
