"""Privacy guarantees (pure, approximate, concentrated, Renyi, Gaussian) and their conversions.

One module for each notion or theorem, one function for each conversion. A conversion rounds its
result to the safe side, up for a loss and down for an allowance; its docstring says which.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
