"""The curve delta(epsilon) of a composition, and its dual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcompose.composition.numerical import Question
from dpcompose.numerics import check


@dataclass(frozen=True)
class Curve:
    """Two arrays of the same shape between which the truth lies, entry by entry."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True)
class Profile:
    """delta as a function of epsilon, certified at every point where it is asked.

    Args:
        question: The composition under an adjacency.
    """

    question: Question

    def __call__(self, epsilon: ArrayLike) -> Curve:
        """delta at each entry of an array of epsilons, of any shape."""
        points = np.asarray(epsilon, dtype=np.float64)
        bounds = [self.question.delta(check.real("epsilon", float(point))) for point in points.ravel()]
        lower = np.array([bound.lower for bound in bounds]).reshape(points.shape)
        upper = np.array([bound.upper for bound in bounds]).reshape(points.shape)
        return Curve(lower, upper)
