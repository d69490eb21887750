"""Promises about Renyi divergences, of mechanisms of which nothing else is known."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, cast

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.guarantee.approximate import checked_epsilon
from dpcompose.values import UNIT_ROUNDOFF, up

Curve = Callable[[float], float]
_TRIED = (1.001, 1.1, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0, 256.0, 1024.0)
"""Orders at which a function is asked when it is given."""


class RenyiPromise(Protocol):
    """Outside a mass of delta, the Renyi divergence of every order is at most `renyi(order)`, in both directions."""

    @property
    def delta(self) -> float:
        """The mass."""
        ...

    @property
    def rho(self) -> float | None:
        """A rho with `renyi(order)` = rho * order for all orders above 1; None where there is none."""
        ...

    @property
    def orders(self) -> tuple[float, ...]:
        """The corners of the curve, where a search for the best order begins."""
        ...

    def renyi(self, order: float) -> float:
        """The bound, rounded up; infinite where nothing is known."""
        ...


@dataclass(frozen=True)
class KnownCurve:
    """A Renyi curve given as a function of the order, or as values at some orders.

    (order - 1) D_order is convex in the order and 0 at order 1, so that a value between two orders lies below the chord
    of (order - 1) times the values there. A divergence grows with its order: the first value holds below the first
    order. Beyond the last one nothing is known.

    Args:
        curve: The function, or the values.
        orders: The orders of the values, increasing; empty for a function.
        delta: The mass outside which the bounds hold.
    """

    curve: Curve | tuple[float, ...]
    orders: tuple[float, ...]
    delta: float

    @property
    def rho(self) -> None:
        """None: a rho may bound the curve, and is not it."""
        return None

    @classmethod
    def of(cls, curve: Any, orders: Any, delta: float) -> KnownCurve:
        """The same, checked.

        Raises:
            DomainError: If the curve is neither a function nor values at orders, or says nothing, or decreases.
        """
        if callable(curve):
            if orders is not None:
                raise DomainError(
                    "orders",
                    orders,
                    "None with a function",
                    "Give the values at the orders, or no orders",
                )
            known = cls(cast("Curve", curve), (), delta)
            values, tried = [known.renyi(order) for order in _TRIED], _TRIED
        else:
            values = _numbers(
                "curve", curve, "a function of the order, or its values at `orders`, each >= 0"
            )
            tried = _numbers(
                "orders", orders, "the orders of the values of the curve, increasing numbers > 1"
            )
            if not all(one < two for one, two in pairwise([1.0, *tried, math.inf])):
                raise DomainError("orders", orders, "finite, increasing numbers > 1")
            if len(values) != len(tried):
                raise DomainError(
                    "curve", curve, f"{len(tried)} values, one for each of the orders"
                )
            if not min(values) >= 0:
                raise DomainError("curve", curve, "numbers >= 0")
            finite = [value for value in values if value < math.inf]
            known = cls(tuple(finite), tuple(tried[: len(finite)]), delta)
        if not all(one <= two * (1 + 1e-9) for one, two in pairwise(values)):
            remedy = "A Renyi divergence grows with its order: the smallest value from an order on holds there too"
            raise DomainError(
                "curve", curve, "values that do not decrease as the order grows", remedy
            )
        if not min(values) < math.inf:
            raise DomainError("curve", curve, "a curve that is finite at some order")
        return known

    def renyi(self, order: float) -> float:
        """The function, which is infinite where it overflows, or the chord, rounded up."""
        order = check.order(order)
        if callable(self.curve):
            try:
                return checked_epsilon("curve", self.curve(order))
            except ArithmeticError:
                return math.inf
        after = bisect_left(self.orders, order)
        if after == len(self.orders):
            return math.inf
        if after == 0 or self.orders[after] == order:
            return self.curve[after]
        low, high, at = self.orders[after - 1] - 1, self.orders[after] - 1, order - 1
        chord = low * self.curve[after - 1] * (high - at) + high * self.curve[after] * (at - low)
        return (
            up(chord / ((high - low) * at) * (1 + 32 * UNIT_ROUNDOFF))
            if self.curve[after] > 0
            else 0.0
        )


@dataclass(frozen=True)
class RenyiLine:
    """Renyi divergences of at most xi + rho * order, rounded up.

    Args:
        rho: How much the bound grows with the order.
        xi: Its value at order 0.
    """

    rho: float
    xi: float

    def __call__(self, order: float) -> float:
        return up(self.xi + up(self.rho * order))


def _numbers(name: str, value: Any, domain: str) -> list[float]:
    """A sequence of real numbers, which may be infinite."""
    try:
        items = [] if isinstance(value, str | bytes | dict) else list(cast("Sequence[Any]", value))
    except TypeError:
        items = []
    if not items:
        raise DomainError(name, value, domain)
    return [check.real(name, item) for item in items]
