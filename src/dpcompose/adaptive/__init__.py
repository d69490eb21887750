"""Filters and odometers: guarantees against an adversary who chooses parameters from earlier answers.

A filter is data: limits on exact sums of named currencies, a price for each mechanism, a guarantee for the whole.
"""

from dpcompose.face import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
