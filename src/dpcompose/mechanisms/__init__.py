"""Mechanisms: their parameters, and the laws of their privacy losses under each adjacency."""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
