"""The states of one filter in many transcripts at once."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcompose.adaptive.amount import Number
from dpcompose.adaptive.filter import Filter, Spending
from dpcompose.guarantee import Priced
from dpcompose.values import Adjacency

Places = NDArray[np.intp]
REFUSED, UNKNOWN = -1, -2


@dataclass
class States:
    """Every state that some transcript has reached, each asked once for each mechanism.

    A transcript is the place of its state; all begin at place 0. The filter decides on exact sums, and states with the
    same sums are one, so that a step of a million transcripts costs a few decisions and a look into a table.

    >>> import numpy as np
    >>> from dpcompose import BlackBox
    >>> from dpcompose.adaptive import PureFilter, States
    >>> states, places = States(PureFilter(1.0)), np.zeros(4, dtype=int)
    >>> places = states.step(places, BlackBox(0.75))
    >>> states.step(places, BlackBox(0.5)).tolist(), [str(states.of(place).left["epsilon"]) for place in places]
    ([-1, -1, -1, -1], ['1/4', '1/4', '1/4', '1/4'])

    Args:
        filter: The filter.
        adjacency: The neighboring relation of all charges.
        delta: The delta at which a mechanism is charged; see `Filter.price`.
    """

    filter: Filter
    _: KW_ONLY
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    delta: Number | None = None
    _states: list[Spending] = field(init=False)
    _known: dict[tuple[Fraction, ...], int] = field(init=False)
    _moves: dict[Priced, Places] = field(init=False, default_factory=dict[Priced, Places])

    def __post_init__(self) -> None:
        first = self.filter.start(adjacency=self.adjacency)
        self._states, self._known = [first], {tuple(first.spent.values()): 0}

    def of(self, place: int) -> Spending:
        """The state at a place."""
        return self._states[place]

    def step(self, places: Places, mechanism: Priced) -> Places:
        """Ask for one more mechanism in every transcript: the places after it, -1 where it is refused.

        Args:
            places: The places before, none refused; any shape.
            mechanism: See `Filter.price`.

        Raises:
            DomainError: If delta is outside its domain.
            UnsupportedError: If no finite price is proved.
        """
        moves = self._moves.get(mechanism, np.empty(0, dtype=np.intp))
        if len(moves) < len(self._states):
            more = np.full(2 * len(self._states) - len(moves), UNKNOWN)
            moves = self._moves[mechanism] = np.concatenate([moves, more])
        found = moves[places]
        new = np.unique(places[found == UNKNOWN])
        for place in new.tolist():
            moves[place] = self._after(place, mechanism)
        return moves[places] if len(new) else found

    def _after(self, place: int, mechanism: Priced) -> int:
        state, decision = self.filter.step(self._states[place], mechanism, delta=self.delta)
        if not decision.granted:
            return REFUSED
        found = self._known.setdefault(tuple(state.spent.values()), len(self._states))
        if found == len(self._states):
            self._states.append(state)
        return found
