"""The neighboring relations of data sets, and the order of the pairs of neighbors in a composition."""

from __future__ import annotations

from enum import Enum
from typing import Literal


class Adjacency(Enum):
    """The neighboring relation of data sets, such as adding or removing one record."""

    ADD_REMOVE = "add-remove"
    """One data set has one record more than the other (Dwork and Roth's ||x - x'||_1 <= 1)."""
    REPLACE = "replace"
    """The data sets have the same size and differ in the value of one record."""
    ZERO_OUT = "zero-out"
    """In one data set, one record of the other is replaced by a special null record."""


class Orientation(Enum):
    """The order of the pair of neighbors at each query of a composition."""

    SAME = "same"
    """One data set contains the record at every query, the other at none (section 3.5.2)."""
    FREE = "free"
    """The adversary chooses the order at each query (Definition 3.7 as printed)."""


AdjacencyName = Adjacency | Literal["add-remove", "replace", "zero-out"]
OrientationName = Orientation | Literal["same", "free"]
"""A member, or its value as a plan writes it."""
