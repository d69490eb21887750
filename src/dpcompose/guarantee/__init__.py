"""Privacy guarantees: pure, approximate, concentrated, Renyi and Gaussian privacy, and the way between them.

One module a notion or theorem, one function a conversion; each says its direction, and rounds that way.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
