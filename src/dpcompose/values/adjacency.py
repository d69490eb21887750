"""Which data sets are neighbors, and who orients the two worlds."""

from __future__ import annotations

from enum import Enum
from typing import Literal


class Adjacency(Enum):
    """Which data sets are neighbors."""

    ADD_REMOVE = "add-remove"
    """One has one record more than the other (Dwork and Roth's ||x - x'||_1 <= 1)."""
    REPLACE = "replace"
    """They differ in the value of one record; their size is the same."""
    ZERO_OUT = "zero-out"
    """One record is replaced by a special null record."""


class Orientation(Enum):
    """Which of the two neighbors stands in which world."""

    SAME = "same"
    """Bob's data is present in one whole world and absent in the other (section 3.5.2's reading)."""
    FREE = "free"
    """Definition 3.7 to the letter: the adversary orients each pair anew."""


AdjacencyName = Adjacency | Literal["add-remove", "replace", "zero-out"]
OrientationName = Orientation | Literal["same", "free"]
"""A member, or its value, as plans write it."""
