"""Guarantees that bound Renyi divergences, for mechanisms without a known privacy loss
distribution.
"""

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
"""Orders at which a curve given as a function is checked."""


class RenyiPromise(Protocol):
    """A guarantee on Renyi divergences.

    Outside a mass of `delta`, the divergence of every order, in both directions, is at most
    `renyi(order)`.
    """

    @property
    def delta(self) -> float:
        """The probability outside which the bounds hold."""
        ...

    @property
    def rho(self) -> float | None:
        """The rho with `renyi(order)` = rho * order for all orders above 1; None if there is none."""
        ...

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders at which the slope of the curve jumps; a search over orders starts from them."""
        ...

    def renyi(self, order: float) -> float:
        """The bound on the divergence of this order, in nats, rounded up; may be infinite."""
        ...


@dataclass(frozen=True)
class KnownCurve:
    """A bound on Renyi divergences that is a function of the order, or values at some orders.

    (order - 1) D_order is convex in the order and 0 at order 1, so that between two listed orders
    it lies below its chord. A divergence does not decrease with its order, so that the first value
    holds below the first order. Beyond the last order the bound is infinite.

    Args:
        curve: The function of the order, or the values at `orders`, in nats.
        orders: The orders of the values, increasing, > 1; empty for a function.
        delta: The probability outside which the bounds hold, in [0, 1].
    """

    curve: Curve | tuple[float, ...]
    orders: tuple[float, ...]
    delta: float

    @property
    def rho(self) -> None:
        """None: no zCDP guarantee is equal to a listed curve."""
        return None

    @classmethod
    def of(cls, curve: Any, orders: Any, delta: float) -> KnownCurve:
        """A KnownCurve from a function, or from values at `orders`, with its arguments checked.

        Raises:
            DomainError: If the curve is neither a function of the order nor numbers >= 0 with as
                many increasing orders > 1, is infinite everywhere, or decreases.
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
        """The bound on the divergence of order `order`, in nats, rounded up; may be infinite.

        Raises DomainError if the order is not finite and above 1, or the function returns no number
        >= 0.
        """
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
    """The Renyi curve xi + rho * order, in nats; a call returns it at one order, rounded up.

    Args:
        rho: The slope of the bound in the order; >= 0.
        xi: The bound at order 0.
    """

    rho: float
    xi: float

    def __call__(self, order: float) -> float:
        return up(self.xi + up(self.rho * order))


def _numbers(name: str, value: Any, domain: str) -> list[float]:
    """The elements of `value` as floats, infinite ones included.

    Raises DomainError, which calls it `name`, if `value` is not a sequence of real numbers or is
    empty.
    """
    try:
        items = [] if isinstance(value, str | bytes | dict) else list(cast("Sequence[Any]", value))
    except TypeError:
        items = []
    if not items:
        raise DomainError(name, value, domain)
    return [check.real(name, item) for item in items]
