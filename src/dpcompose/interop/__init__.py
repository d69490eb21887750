"""Adapters to other libraries: their events, histories and measurements are read as mechanisms.

Each adapter is imported by its own name and imports its library when it is used, so `import
dpcompose` imports none of them. What has no certified mechanism is refused by name.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
