"""Reports: a frozen page, its text, HTML and pictures, and the JSON of the same numbers."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
