"""The curve delta(epsilon) of a composition, and its dual."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcompose.composition.question import PrivacyQuestion
from dpcompose.errors import DomainError
from dpcompose.guarantee.best_test import BestTest, best_test
from dpcompose.numerics import check
from dpcompose.numerics.bound import Bound


@dataclass(frozen=True)
class Curve:
    """Two arrays of the same shape between which the truth lies, entry by entry."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def _entries(name: str, given: ArrayLike, guard: Callable[[str, Any], float]) -> NDArray[np.float64]:
    """The entries of an array of any shape, each passed through the guard before numpy could make a number of it."""
    try:
        entries = np.asarray(given, dtype=object)
    except ValueError:
        raise DomainError(name, given, "numbers in an array with rows of one length") from None
    values: list[Any] = entries.ravel().tolist()
    return np.array([guard(name, value) for value in values], dtype=np.float64).reshape(entries.shape)


@dataclass(frozen=True)
class Profile:
    """delta as a function of epsilon, certified at every point where it is asked.

    Args:
        question: The composition under an adjacency.
    """

    question: PrivacyQuestion

    def __call__(self, epsilon: ArrayLike) -> Curve:
        """delta at each entry of an array of epsilons, of any shape; DomainError if an entry is not a real number."""
        return self._at(self.question.fresh(), epsilon)

    def _at(self, question: PrivacyQuestion, epsilon: ArrayLike) -> Curve:
        points = _entries("epsilon", epsilon, check.real)
        bounds = question.deltas(points.ravel().tolist())
        lower = np.array([bound.lower for bound in bounds]).reshape(points.shape)
        upper = np.array([bound.upper for bound in bounds]).reshape(points.shape)
        return Curve(lower, upper)

    def tradeoff(self, alpha: ArrayLike) -> Curve:
        """The smallest type II error at each type I error: f(alpha) = sup over epsilon of 1 - delta - e^epsilon alpha.

        delta is the larger of both orders of the pair, so f is the convex hull of the smaller of the two orders'
        trade-offs, and its own inverse. Both ends are good relative to f, however small it is.

        >>> from dpcompose import Gaussian
        >>> curve = Gaussian(1.0).profile().tradeoff(0.05)
        >>> bool(curve.lower <= 0.7404889771585559 <= curve.upper)
        True

        Args:
            alpha: Type I errors in [0, 1], an array of any shape.

        Raises:
            DomainError: If an entry is outside [0, 1].

        Reference: [DongRothSu2022, Proposition 2.12]
        """
        test = self._test(alpha)
        return Curve(test.error_lower, test.error_upper)

    def power(self, alpha: ArrayLike) -> Curve:
        """The largest power (true positive rate) at each level alpha: 1 - f(alpha), good relative to the power.

        Args:
            alpha: Levels (false positive rates) in [0, 1], an array of any shape.

        Raises:
            DomainError: If an entry is outside [0, 1].
        """
        test = self._test(alpha)
        return Curve(test.power_lower, test.power_upper)

    def _test(self, alpha: ArrayLike) -> BestTest:
        levels = _entries("alpha", alpha, check.probability)
        question = self.question.fresh()

        def ends(epsilon: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            curve = self._at(question, epsilon)
            return curve.lower, curve.upper

        return best_test(
            levels, profile=ends, infinite=self._infinite, kinks=self._kinks, tolerance=self.question.tolerance
        )

    @cached_property
    def _infinite(self) -> Bound:
        return self.question.delta(math.inf)

    @property
    def _kinks(self) -> tuple[float, ...]:
        """The largest losses: there an atom ends the profile."""
        return tuple(
            product.extremes.upper for product in self.question.dominating if math.isfinite(product.extremes.upper)
        )
