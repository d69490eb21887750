"""The two worlds of the experiment."""

from __future__ import annotations

from enum import Enum


class World(Enum):
    """Which of the two databases of every pair is answered about."""

    ZERO = 0
    """The first: the real world, where Bob allows his data to be used, if the first databases hold it."""
    ONE = 1
    """The second: the ideal world, where no answer depends on Bob's data."""
