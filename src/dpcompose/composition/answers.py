"""The questions that every composition answers, about one person or a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from dpcompose import check
from dpcompose.composition.comparison import Comparison, theorems
from dpcompose.composition.loss_above import LossAbove, loss_above
from dpcompose.composition.profile import Profile
from dpcompose.composition.question import TOLERANCE, PrivacyQuestion
from dpcompose.composition.risk import Risk, risk
from dpcompose.pictured import Plot
from dpcompose.values import Adjacency, AdjacencyName, Bound, Orientation, OrientationName

Given = ParamSpec("Given")
Answered = TypeVar("Answered")


def takes(name: str) -> Callable[[Callable[Given, Answered]], Callable[Given, Answered]]:
    """A method that takes its number by that keyword says so to whoever leaves the keyword out."""

    def decorated(method: Callable[Given, Answered]) -> Callable[Given, Answered]:
        @wraps(method)
        def asked(*given: Given.args, **named: Given.kwargs) -> Answered:
            if len(given) > 1:
                raise TypeError(f"the number has a name: .{method.__name__}({name}={given[1]!r})")
            return method(*given, **named)

        return asked

    return decorated


class Askable(ABC):
    """Whatever can be asked for its privacy. A member turns the arguments of a question into the question.

    Numbers are read as doubles: a fraction is the double next to it. `total.plot()` draws the privacy profile,
    `total.plot.steps(delta=1e-6)` epsilon over the steps of a composition; see the gallery.
    """

    plot = Plot("privacy_profile", "trade_off", "steps")

    @abstractmethod
    def _question(
        self, adjacency: Adjacency, orientation: Orientation, tolerance: float, proof: bool
    ) -> PrivacyQuestion:
        """The question, ready to be asked."""

    def _asked(
        self, adjacency: AdjacencyName, orientation: OrientationName, tolerance: float, proof: bool
    ) -> PrivacyQuestion:
        """The question of arguments as they were given."""
        members = (
            check.named("adjacency", adjacency, Adjacency),
            check.named("orientation", orientation, Orientation),
        )
        return self._question(*members, tolerance, proof)

    @takes("delta")
    def epsilon(
        self,
        *,
        delta: float,
        adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
        orientation: OrientationName = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Bound:
        """The smallest epsilon >= 0 such that the composition is (epsilon, delta)-differentially private.

        lower <= epsilon <= upper holds with every rounding accounted for; infinite where nothing finite does.

        >>> from dpcompose import Gaussian
        >>> (Gaussian(10.0) * 100).epsilon(delta=1e-5).contains(4.377178095681225)
        True

        Args:
            delta: In [0, 1], read as a double.
            adjacency: What one person's data may change; "add-remove", "replace", "zero-out", or the member.
            orientation: Whether the same world holds the record in every round.
            tolerance: Wanted relative width, in (0, 1); what was reached is in the bound.
            proof: Evaluate in ball arithmetic, every error a theorem (extra `proof`).

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If a part has no sound statement under the adjacency or orientation.

        Reference: [ZhuDongWang2022, Theorem 10]
        """
        return self._asked(adjacency, orientation, tolerance, proof).epsilon(
            check.probability("delta", delta)
        )

    @takes("epsilon")
    def delta(
        self,
        *,
        epsilon: float,
        adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
        orientation: OrientationName = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Bound:
        """The smallest delta such that the composition is (epsilon, delta)-differentially private, at any real epsilon.

        >>> from dpcompose import BlackBox
        >>> (BlackBox(0.1) * 10).delta(epsilon=0.5).contains(0.009929626917388853)
        True

        Args:
            epsilon: In nats; any real number, infinite ones included, read as a double.
            adjacency: What one person's data may change.
            orientation: Whether the same world holds the record in every round.
            tolerance: Wanted relative width of epsilon(delta), in (0, 1).
            proof: Evaluate in ball arithmetic (extra `proof`).

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If a part has no sound statement under the adjacency or orientation.

        Reference: [ZhuDongWang2022, Theorem 10]
        """
        return self._asked(adjacency, orientation, tolerance, proof).delta(
            check.real("epsilon", epsilon)
        )

    def profile(
        self,
        *,
        adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
        orientation: OrientationName = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Profile:
        """The curve delta(epsilon): call it at an array of epsilons; `.tradeoff(alpha)` is its dual."""
        return Profile(self._asked(adjacency, orientation, tolerance, proof))

    @takes("epsilon")
    def loss_above(
        self,
        *,
        epsilon: float,
        adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
        orientation: OrientationName = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> LossAbove:
        """P[loss > epsilon], certified, in both directions: of somebody who is in, and of somebody who is not.

        delta(epsilon) is never more than that: an (epsilon, delta) with delta = P[loss > epsilon] is safe, and loose.

        >>> from dpcompose import Gaussian
        >>> Gaussian(1.0).loss_above(epsilon=1.0).removed.contains(0.3085375387259869)
        True

        Args:
            epsilon: In nats; any real number.
            adjacency: What one person's data may change.
            orientation: SAME: the loss of a game that turns pairs is not that of one pair.
            tolerance: As in `delta`; the probability itself is known to about a millionth where the loss is continuous,
                and where epsilon is one of finitely many losses both P[loss > epsilon] and P[loss >= epsilon] are in
                the bound.
            proof: Not offered.

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If the losses are not those of one pair of neighbors.

        Reference: [DworkRoth2014, Section 3.5.1]
        """
        question = self._asked(adjacency, orientation, tolerance, proof)
        return loss_above(question, check.real("epsilon", epsilon))

    def risk(
        self,
        *,
        prior: float = 0.5,
        false_positive_rate: float = 1e-3,
        adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
        orientation: OrientationName = Orientation.SAME,
        tolerance: float = TOLERANCE,
        proof: bool = False,
    ) -> Risk:
        """The gain of an attacker who sees all answers: true positive rate, advantage, Bayes error, reconstruction."""
        curve = self.profile(
            adjacency=adjacency, orientation=orientation, tolerance=tolerance, proof=proof
        )
        return risk(curve, prior=prior, false_positive_rate=false_positive_rate)

    @takes("delta")
    def compare(
        self,
        *,
        delta: float,
        adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
        orientation: OrientationName = Orientation.SAME,
        tolerance: float = TOLERANCE,
    ) -> tuple[Comparison, ...]:
        """Every theorem that gives a finite epsilon, tightest first; the certified one is always there.

        >>> from dpcompose import BlackBox
        >>> [row.name for row in (BlackBox(0.1) * 100).compare(delta=1e-6)][:2]
        ['certified composition', 'optimal composition of the promises']

        Args:
            delta: In [0, 1].
            adjacency: What one person's data may change.
            orientation: Whether the same world holds the record in every round.
            tolerance: Wanted relative width of the certified interval.

        Raises:
            DomainError: If an argument is outside its domain.
            UnsupportedError: If a part has no sound statement under the adjacency or orientation.
        """
        delta = check.probability("delta", delta)
        return self._theorems(self._asked(adjacency, orientation, tolerance, False), delta)

    def _theorems(self, question: PrivacyQuestion, delta: float) -> tuple[Comparison, ...]:
        """The rows of `compare`."""
        return theorems(question, delta)
