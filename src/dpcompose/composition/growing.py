"""Epsilon of a history that grows: each question pays for what is new, and has the answer that a fresh one has."""

from __future__ import annotations

from collections.abc import Sequence

from dpcompose import check
from dpcompose.composition.batch import sampled_gaussian
from dpcompose.composition.composition import Composable, compose
from dpcompose.composition.options import TOLERANCE, Asking
from dpcompose.loss import Growing, SampledGaussianLoss
from dpcompose.values import Bound, Certificate

_KEPT = Certificate("contour, kept while steps are added")
History = Sequence[tuple[Composable, int]]
"""Mechanisms, with how often each ran, one after the other."""


class GrowingEpsilon:
    """Epsilon at one delta of a history that is asked again and again, under add-remove.

    An answer follows from the history alone, to the last bit. Sampled Gaussians that are added cost what they bring;
    any other history is asked as a composition. Give the same objects again: they are compared.

    >>> from dpcompose import Gaussian
    >>> from dpcompose.composition import GrowingEpsilon
    >>> history = [(Gaussian(1.0).sampled(0.01), 500)]
    >>> growing = GrowingEpsilon(1e-6)
    >>> first = growing.bound(history)
    >>> history.append((Gaussian(1.1).sampled(0.01), 200))
    >>> growing.bound(history) == GrowingEpsilon(1e-6).bound(history) != first
    True

    Args:
        delta: In [0, 1].

    Raises:
        DomainError: If delta is outside its domain.
    """

    def __init__(self, delta: float) -> None:
        self.delta = check.probability("delta", delta)
        self._growing = Growing(self.delta, TOLERANCE)
        self._known: list[tuple[Composable, int]] = []
        self._phases: list[tuple[SampledGaussianLoss, int] | None] = []
        self._answer: Bound | None = None

    def bound(self, history: History) -> Bound:
        """The certified epsilon of the whole history; of none, 0."""
        if self._answer is None or list(history) != self._known:
            self._answer = None
            self._extend(history)
            self._answer = self._asked()
        return self._answer

    def _extend(self, history: History) -> None:
        """Read what is new; start afresh if what is known is no beginning of it."""
        last = max(len(self._known) - 1, 0)
        begun = len(history) >= len(self._known) and list(history[:last]) == self._known[:last]
        for (mechanism, times), (earlier, before) in zip(
            history[last:], self._known[last:], strict=False
        ):
            begun = begun and mechanism is earlier and times >= before
        if not begun:
            last, self._growing = 0, Growing(self.delta, TOLERANCE)
        phases = [_phase(mechanism, times) for mechanism, times in history[last:]]
        self._known[last:], self._phases[last:] = history[last:], phases

    def _asked(self) -> Bound:
        phases = [phase for phase in self._phases if phase is not None]
        if (
            len(phases) == len(self._known)
            and 0 < self.delta < 1
            and sum(times for _, times in phases) > 1
        ):
            lower, upper = self._growing.epsilon(phases)
            if upper - lower <= 10 * TOLERANCE * max(upper, 1e-3):
                return Bound(lower, upper, _KEPT)
        return compose(*(mechanism * times for mechanism, times in self._known)).epsilon(
            delta=self.delta
        )


def _phase(mechanism: Composable, times: int) -> tuple[SampledGaussianLoss, int] | None:
    """Its loss when the record is removed, if it is one sampled Gaussian; else None."""
    times = check.times(times, least=1)
    parts = mechanism._counted()  # pyright: ignore[reportPrivateUsage]
    if len(parts) != 1 or parts[0][1] != 1:
        return None
    loss = sampled_gaussian(parts[0][0], Asking())
    return None if loss is None else (loss, times)
