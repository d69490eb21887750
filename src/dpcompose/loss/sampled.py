"""The pair of a mechanism on a Poisson sample, from the losses of the mechanism."""

from __future__ import annotations

from collections.abc import Callable

from dpcompose.loss.atomized import atomized
from dpcompose.loss.base import Loss, Pair
from dpcompose.loss.product import Product
from dpcompose.numerics.bound import Bound


def sampled_pair(remove: Product, add: Product, rate: float, *, attained: bool) -> Pair:
    """((1 - q) Q + q P, Q) from the remove loss of (P, Q), and (P', (1 - q) P' + q Q') from the add loss of (P', Q').

    In closed form where the loss offers one; otherwise its certified profile is replaced by atoms, once from above and once from
    below, and the two samples enclose the truth.

    Reference: [ZhuDongWang2022, Theorem 11]
    """
    one, two = _closed(remove), _closed(add)
    closed = [loss and loss.sampled(rate, remove=side) for loss, side in ((one, True), (two, False))]
    if closed[0] is not None and closed[1] is not None:
        return Pair(closed[0], closed[1], attained, () if attained else _nothing(closed[0], closed[1]))
    above, below = [], []
    for product, side in ((remove, True), (add, False)):
        base = _closed(product)
        upper, lower = (base and base.enclosing()) or atomized(_profile(product), product.extremes.upper)
        above.append(upper.sampled(rate, remove=side))
        below.append(lower.sampled(rate, remove=side))
    inside = Pair(below[0], below[1])
    return Pair(above[0], above[1], False, (inside,) if attained else ())


def _closed(product: Product) -> Loss | None:
    return product.reduced[0][0] if len(product.reduced) == 1 and product.reduced[0][1] == 1 else None


def _profile(product: Product) -> Callable[[float], Bound]:
    return lambda epsilon: product.delta(epsilon, tolerance=1e-12)


def _nothing(remove: Loss, add: Loss) -> tuple[Pair, ...]:
    """No attained sub-case is known below a dominating pair on a sample."""
    return ()
