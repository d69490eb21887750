"""Divergences between two distributions: exact for finite ones, estimated for densities.

A finite distribution is a mapping outcome -> mass or a sequence of masses (int, Fraction, Decimal
or float, each taken exactly). For two of them, every function returns a `Bound` that contains the
divergence; it is an `Exact`, with the rational `.value`, if the divergence is rational. For two
`Density`, `kl`, `hockey_stick` and `total_variation` return an `Estimate`, which has no proved
error.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
