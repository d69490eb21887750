"""Renyi divergences of a composition, and what they imply where some part has no privacy loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.composition.container import Part
from dpcompose.composition.free import Rounds
from dpcompose.composition.numerical import Question
from dpcompose.errors import DomainError
from dpcompose.guarantee import failure, renyi
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.guarantee.root import minimum
from dpcompose.loss.product import Product
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF, Bound, Certificate, up


def divergence(asked: Question, order: float) -> Bound:
    """D_order = log E e^((order - 1) L) / (order - 1), the larger of the two directions; the parts' divergences add up.

    Infinite where a loss may be, and never above the largest loss. A part known only by its curve has a divergence of
    at least 0.

    >>> from dpcompose import Gaussian
    >>> (Gaussian(2.0) * 4).renyi(8.0).contains(4.0)
    True

    Args:
        asked: The composition under an adjacency.
        order: Finite, > 1.

    Raises:
        DomainError: If the order is outside its domain.

    Reference: [Mironov2017, Proposition 1]
    """
    order = check.finite("order", order)
    if not order > 1:
        raise DomainError("order", order, "a finite number > 1")
    # A pair that different mechanisms attain at different epsilons has the moments of none of them.
    low = 0.0 if asked.alone else max((_at(product, order, -1.0) for product in asked.below), default=0.0)
    high = Curve.of(asked).divergence(order)
    if not asked.promises and not Curve.of(asked).lost:
        high = min(high, Curve.of(asked).largest)
    return Bound(
        min(max(low, 0.0), max(high, 0.0)), max(high, 0.0), Certificate("moment generating function", unit="absolute")
    )


def _at(product: Product, order: float, side: float) -> float:
    """One direction's divergence, its error added (side 1) or taken off (side -1)."""
    if product.infinite.upper > 0:
        return math.inf if side > 0 or product.infinite.lower > 0 else 0.0
    if not product.reduced:
        return 0.0
    line = product.transform.line(order - 1, np.zeros(1))
    value = float(line.log[0].real + line.error[0] if side > 0 else line.floor[0]) / (order - 1)
    return value + side * 8 * UNIT_ROUNDOFF * abs(value)


@dataclass(frozen=True)
class Curve:
    """The best upper bounds for a composition with parts that have no loss: one order at a time, over all orders.

    Args:
        products: The losses, one product a direction.
        promises: The parts without, with their counts.
        adjacency: Under which the promises are taken.
        rounds: In place of the products, where every round may be turned: at each order the largest moment of its
            alternatives counts, whatever was chosen before.
    """

    products: tuple[Product, ...]
    promises: tuple[tuple[Part, int], ...]
    adjacency: Adjacency
    rounds: Rounds = ()

    @classmethod
    def of(cls, asked: Question) -> Curve:
        """The curve of a question."""
        return cls(asked.above, asked.promises, asked.adjacency, asked.rounds)

    @cached_property
    def _steps(self) -> list[tuple[Product, ...]]:
        """What is added up, each a set of alternatives: the whole in both directions, or round by round."""
        if not self.rounds:
            return [tuple(product for product in self.products if product.reduced)]
        return [tuple(Product(((loss, times),)) for loss in losses) for losses, times in self.rounds]

    @property
    def largest(self) -> float:
        """The largest finite loss, rounded up."""
        ends = [max((product.extremes.upper for product in step), default=0.0) for step in self._steps]
        return ends[0] if len(ends) == 1 else up(math.fsum(ends) * (1 + 4 * UNIT_ROUNDOFF))

    @cached_property
    def _stated(self) -> tuple[tuple[ConcentratedDP, int], ...]:
        found = [(part.promise(self.adjacency), times) for part, times in self.promises]
        return tuple((promise, times) for promise, times in found if promise is not None)

    @cached_property
    def _failures(self) -> list[tuple[float, int]]:
        stated = [(promise.delta, times) for promise, times in self._stated]
        # An alternative that loses less outright is dominated by one with the same finite part that loses as much.
        return [*stated, *((max((product.infinite.upper for product in step), default=0.0), 1) for step in self._steps)]

    def divergence(self, order: float) -> float:
        """An upper bound on the divergence of an order, both directions; infinite where a mass may be lost outright."""
        return math.inf if self.lost else self._kept(order)

    @property
    def lost(self) -> bool:
        """Whether some mass may be lost outright: then every divergence may be infinite."""
        return any(delta > 0 for delta, _ in self._failures)

    def _kept(self, order: float) -> float:
        """log E e^((order - 1) L) / (order - 1) of what is not lost outright, rounded up."""
        rho = math.fsum(times * promise.rho for promise, times in self._stated)
        moments = [max((_finite_moment(product, order) for product in step), default=0.0) for step in self._steps]
        moment = moments[0] if len(moments) == 1 else up(math.fsum(moments) * (1 + 4 * UNIT_ROUNDOFF))
        return up(moment + up(rho * order * (1 + 4 * UNIT_ROUNDOFF)))

    def epsilon(self, delta: float) -> Bound:
        """An upper end for epsilon; the lower end is 0."""
        rest = failure.remaining(delta, self._failures)
        certificate = Certificate("Renyi divergences, the best order", unit="epsilon")
        if rest is None or rest.lower <= 0:
            return Bound(0.0, math.inf, certificate)
        if not any(mass > 0 for mass, _ in self._failures[len(self._stated) :]):
            return Bound(0.0, renyi.best_epsilon(self._kept, delta=rest.lower).epsilon, certificate)

        # With mass lost in the pair, only the moment itself may be used: the rest of Q need not have mass one.
        def at(point: float) -> float:
            order = 1 + math.exp(point)
            return renyi.optimal_moment_epsilon(max(self._kept(order), 0.0), order=order, delta=rest.lower)

        return Bound(0.0, at(minimum(at, start=2.0, step=1.0, limit=32.0, steps=40)), certificate)

    def delta(self, epsilon: float) -> Bound:
        """An upper end for delta; the lower end is 0."""
        certificate = Certificate("Renyi divergences, the best order")

        def at(point: float) -> float:
            order = 1 + math.exp(point)
            return renyi.optimal_moment_delta(max(self._kept(order), 0.0), order=order, epsilon=epsilon)

        finite = at(minimum(at, start=2.0, step=1.0, limit=32.0, steps=40)) if epsilon >= 0 else 1.0
        return Bound(0.0, failure.combined(Bound(0.0, finite), self._failures, certificate).upper, certificate)


def _finite_moment(product: Product, order: float) -> float:
    if not product.reduced:
        return 0.0
    line = product.transform.line(order - 1, np.zeros(1))
    return up((float(line.log[0].real) + float(line.error[0])) / (order - 1))
