"""Divergences between two distributions: of finite ones exactly, of densities by estimate.

Every function reads a finite distribution as a mapping outcome -> mass or as masses in order, with int, Fraction,
Decimal or float masses taken exactly as they are, and returns a `Bound` that contains the truth (an `Exact`, with the
rational `.value`, where the truth is rational). Two `Density` give an `Estimate`, which proves nothing.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
