"""TOML plans of mechanisms: parsing, writing, composition, calibration and cost."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
