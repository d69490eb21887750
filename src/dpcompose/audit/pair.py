"""Two datasets, one for each world, and how many steps of the claim's adjacency they are apart."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpcompose import check


@dataclass(frozen=True)
class Pair:
    """Two datasets that a claim speaks of.

    Args:
        zero: The dataset of world 0.
        one: The dataset of world 1.
        distance: The number of steps from one to the other under the claim's adjacency, at least 1.
    """

    zero: Any
    one: Any
    _: KW_ONLY
    distance: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", check.count("distance", self.distance, least=1))

    def __getitem__(self, coin: int) -> Any:
        """The dataset of a world."""
        return self.one if coin else self.zero
