"""The questions that every composition answers, about one person or a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Unpack

from dpcompose import check, mechanisms
from dpcompose.attached import supply
from dpcompose.composition.comparison import Comparison, theorems
from dpcompose.composition.loss_above import LossAbove, loss_above
from dpcompose.composition.options import Asking, Options, asks
from dpcompose.composition.profile import Profile
from dpcompose.composition.question import PrivacyQuestion
from dpcompose.composition.risk import Risk, risk
from dpcompose.pictured import Plot
from dpcompose.values import Bound


@supply(mechanisms.Askable)
class Askable(ABC):
    """Whatever can be asked for its privacy. A member turns the arguments of a question into the question.

    Numbers are read as doubles: a fraction is the double next to it. `total.plot()` draws the privacy profile,
    `total.plot.steps(delta=1e-6)` epsilon over the steps of a composition; see the gallery.
    """

    plot = Plot("privacy_profile", "trade_off", "steps")

    @abstractmethod
    def _question(self, asking: Asking) -> PrivacyQuestion:
        """The question, ready to be asked."""

    @asks("delta")
    def epsilon(self, *, delta: float, **options: Unpack[Options]) -> Bound:
        """The smallest epsilon >= 0 such that the composition is (epsilon, delta)-differentially private.

        lower <= epsilon <= upper holds with every rounding accounted for; infinite where nothing finite does.

        >>> from dpcompose import Gaussian
        >>> (Gaussian(10.0) * 100).epsilon(delta=1e-5).contains(4.377178095681225)
        True

        Args:
            delta: In [0, 1], read as a double.
            options: Adjacency, orientation, tolerance and proof, as in `Options`.

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If a part has no sound statement under the adjacency or orientation.

        Reference: [ZhuDongWang2022, Theorem 10]
        """
        return self._question(Asking.read(options)).epsilon(check.probability("delta", delta))

    @asks("epsilon")
    def delta(self, *, epsilon: float, **options: Unpack[Options]) -> Bound:
        """The smallest delta such that the composition is (epsilon, delta)-differentially private, at any real epsilon.

        >>> from dpcompose import BlackBox
        >>> (BlackBox(0.1) * 10).delta(epsilon=0.5).contains(0.009929626917388853)
        True

        Args:
            epsilon: In nats; any real number, infinite ones included, read as a double.
            options: Adjacency, orientation, tolerance and proof, as in `Options`.

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If a part has no sound statement under the adjacency or orientation.

        Reference: [ZhuDongWang2022, Theorem 10]
        """
        return self._question(Asking.read(options)).delta(check.real("epsilon", epsilon))

    @asks()
    def profile(self, **options: Unpack[Options]) -> Profile:
        """The curve delta(epsilon): call it at an array of epsilons; `.tradeoff(alpha)` is its dual."""
        return Profile(self._question(Asking.read(options)))

    @asks("epsilon")
    def loss_above(self, *, epsilon: float, **options: Unpack[Options]) -> LossAbove:
        """P[loss > epsilon], certified, in both directions: of somebody who is in, and of somebody who is not.

        delta(epsilon) is never more than that: an (epsilon, delta) with delta = P[loss > epsilon] is safe, and loose.

        >>> from dpcompose import Gaussian
        >>> Gaussian(1.0).loss_above(epsilon=1.0).removed.contains(0.3085375387259869)
        True

        Args:
            epsilon: In nats; any real number.
            options: Adjacency, orientation, tolerance and proof, as in `Options`.

        Raises:
            DomainError: If a number is outside its domain.
            UnsupportedError: If the losses are not those of one pair of neighbors.

        Reference: [DworkRoth2014, Section 3.5.1]
        """
        asked = self._question(Asking.read(options))
        return loss_above(asked, check.real("epsilon", epsilon))

    @asks()
    def risk(
        self,
        *,
        prior: float = 0.5,
        false_positive_rate: float = 1e-3,
        **options: Unpack[Options],
    ) -> Risk:
        """The gain of an attacker who sees all answers: true positive rate, advantage, Bayes error, reconstruction."""
        curve = self.profile(**options)
        return risk(curve, prior=prior, false_positive_rate=false_positive_rate)

    @asks("delta")
    def compare(self, *, delta: float, **options: Unpack[Options]) -> tuple[Comparison, ...]:
        """Every theorem that gives a finite epsilon, tightest first; the certified one is always there.

        >>> from dpcompose import BlackBox
        >>> [row.name for row in (BlackBox(0.1) * 100).compare(delta=1e-6)][:2]
        ['certified composition', 'optimal composition of the promises']

        Args:
            delta: In [0, 1].
            options: Adjacency, orientation, tolerance and proof, as in `Options`.

        Raises:
            DomainError: If an argument is outside its domain.
            UnsupportedError: If a part has no sound statement under the adjacency or orientation.
        """
        delta = check.probability("delta", delta)
        return self._theorems(self._question(Asking.read(options, unproved="a comparison")), delta)

    def _theorems(self, question: PrivacyQuestion, delta: float) -> tuple[Comparison, ...]:
        """The rows of `compare`."""
        return theorems(question, delta)
