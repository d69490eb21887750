"""The composition experiment of Definition 3.7: adversaries, worlds and views, measured and solved exactly."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
