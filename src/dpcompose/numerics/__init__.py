"""Numbers with two ends, and the numerical methods that certify them. No privacy words in here."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
