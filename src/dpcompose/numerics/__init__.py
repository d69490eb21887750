"""Numerical methods with proved errors: elementary functions, sums, tails and roots. Nothing here
is about privacy.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
