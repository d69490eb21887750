"""The certificate of a game, under its own adjacency and orientation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from dpcompose.composition import Composition
from dpcompose.composition.compare import Comparison
from dpcompose.composition.profile import Profile
from dpcompose.composition.question import TOLERANCE
from dpcompose.errors import DomainError
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.numerics.bound import Bound

_REMEDY = "A certificate belongs to its game: make an Experiment with the other one, or ask `rounds`"


class _Game(TypedDict):
    adjacency: Adjacency
    orientation: Orientation


@dataclass(frozen=True)
class Certified:
    """A certificate that belongs to one game: every answer is under the game's adjacency and orientation.

    A question may name both; any other than the game's is refused.

    Args:
        rounds: The composition of k rounds, in each any member of the family, which belongs to no game.
        adjacency: The adjacency of the game.
        orientation: The orientation of the game.
    """

    rounds: Composition
    adjacency: Adjacency
    orientation: Orientation

    def delta(
        self, *, epsilon: float, adjacency: Adjacency | None = None, orientation: Orientation | None = None,
        tolerance: float = TOLERANCE, proof: bool = False,
    ) -> Bound:  # fmt: skip
        """The largest delta of every adversary at an epsilon; its upper end holds for each.

        Raises:
            DomainError: If a number is outside its domain, or the adjacency or orientation is not the game's.
        """
        game = self._game(adjacency, orientation)
        return self.rounds.delta(epsilon=epsilon, tolerance=tolerance, proof=proof, **game)

    def epsilon(
        self, *, delta: float, adjacency: Adjacency | None = None, orientation: Orientation | None = None,
        tolerance: float = TOLERANCE, proof: bool = False,
    ) -> Bound:  # fmt: skip
        """The largest epsilon of every adversary at a delta; its upper end holds for each. Raises as `delta` does."""
        game = self._game(adjacency, orientation)
        return self.rounds.epsilon(delta=delta, tolerance=tolerance, proof=proof, **game)

    def profile(
        self, *, adjacency: Adjacency | None = None, orientation: Orientation | None = None,
        tolerance: float = TOLERANCE, proof: bool = False,
    ) -> Profile:  # fmt: skip
        """The curve delta(epsilon), to be called at an array of epsilons. Raises as `delta` does."""
        return self.rounds.profile(tolerance=tolerance, proof=proof, **self._game(adjacency, orientation))

    def compare(
        self, *, delta: float, adjacency: Adjacency | None = None, orientation: Orientation | None = None,
        tolerance: float = TOLERANCE,
    ) -> tuple[Comparison, ...]:  # fmt: skip
        """Every theorem that applies, tightest first. Raises as `delta` does."""
        return self.rounds.compare(delta=delta, tolerance=tolerance, **self._game(adjacency, orientation))

    def _game(self, adjacency: Adjacency | None, orientation: Orientation | None) -> _Game:
        if adjacency is not None and adjacency is not self.adjacency:
            raise DomainError("adjacency", adjacency, f"{self.adjacency}, that of the game", _REMEDY)
        if orientation is not None and orientation is not self.orientation:
            raise DomainError("orientation", orientation, f"{self.orientation}, that of the game", _REMEDY)
        return {"adjacency": self.adjacency, "orientation": self.orientation}
