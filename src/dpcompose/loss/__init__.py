"""The privacy loss random variable of one ordered pair: one file a family, and the product of independent losses.

A family is a `Loss`; its sum is a `Transform` for floats (`*_sum`) and `Moments` for proofs (`*_moments`).
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
