"""What the theorems say of a game, under its own adjacency and orientation."""

from __future__ import annotations

from dataclasses import dataclass

from dpcompose.composition import Composition
from dpcompose.composition.compare import Comparison
from dpcompose.composition.container import TOLERANCE
from dpcompose.composition.profile import Profile
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.numerics.bound import Bound


@dataclass(frozen=True)
class Certified:
    """A certificate that belongs to one game: it takes neither adjacency nor orientation, for these are the game's.

    Args:
        composition: The rounds, in each any member of the family.
        adjacency: Of the game.
        orientation: Of the game.
    """

    composition: Composition
    adjacency: Adjacency
    orientation: Orientation

    def delta(self, *, epsilon: float, tolerance: float = TOLERANCE) -> Bound:
        """The largest delta of every adversary at an epsilon; its upper end holds for each."""
        return self.composition.delta(
            epsilon=epsilon, adjacency=self.adjacency, orientation=self.orientation, tolerance=tolerance
        )

    def epsilon(self, *, delta: float, tolerance: float = TOLERANCE) -> Bound:
        """The largest epsilon of every adversary at a delta; its upper end holds for each."""
        return self.composition.epsilon(
            delta=delta, adjacency=self.adjacency, orientation=self.orientation, tolerance=tolerance
        )

    def profile(self, *, tolerance: float = TOLERANCE) -> Profile:
        """The curve delta(epsilon), to be called at an array of epsilons."""
        return self.composition.profile(adjacency=self.adjacency, orientation=self.orientation, tolerance=tolerance)

    def compare(self, *, delta: float, tolerance: float = TOLERANCE) -> tuple[Comparison, ...]:
        """Every theorem that applies, tightest first."""
        return self.composition.compare(
            delta=delta, adjacency=self.adjacency, orientation=self.orientation, tolerance=tolerance
        )
