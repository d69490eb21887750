"""The pair of a mechanism on a Poisson sample, from the losses of the mechanism."""

from __future__ import annotations

from collections.abc import Callable

from dpcompose.loss.atomized import atomized
from dpcompose.loss.atoms import AtomicLoss
from dpcompose.loss.base import Loss, Pair
from dpcompose.loss.product import Product
from dpcompose.numerics.bound import Bound


def sampled_pair(remove: Product, add: Product, rate: float, *, attained: bool) -> Pair:
    """((1 - q) Q + q P, Q) from the remove loss of (P, Q), and (P', (1 - q) P' + q Q') from the add loss of (P', Q').

    In closed form where the loss offers one; otherwise its certified profile is replaced by atoms, once from above and
    once from below, and the two samples enclose the truth.

    Reference: [ZhuDongWang2022, Theorem 11]
    """
    one, two = _closed(remove), _closed(add)
    closed = [loss and loss.sampled(rate, remove=side) for loss, side in ((one, True), (two, False))]
    if closed[0] is not None and closed[1] is not None:
        return Pair(closed[0], closed[1], attained)
    base = _enclosing(remove, one), None if add == remove else _enclosing(add, two)
    (high, low), (high_add, low_add) = base[0], base[1] or base[0]
    above = Pair(high.sampled(rate, remove=True), high_add.sampled(rate, remove=False), False)
    below = Pair(low.sampled(rate, remove=True), low_add.sampled(rate, remove=False))
    return Pair(above.remove, above.add, False, (below,) if attained else ())


def _enclosing(product: Product, closed: Loss | None) -> tuple[AtomicLoss, AtomicLoss]:
    """Atoms above and below."""
    found = closed.enclosing() if closed is not None else None
    return found or atomized(_profiles(product), product.extremes.upper)


def _profiles(product: Product) -> Callable[[list[float]], list[Bound]]:
    return lambda epsilons: product.deltas(epsilons, tolerance=1e-8)


def _closed(product: Product) -> Loss | None:
    """The one loss that the product amounts to, if it does."""
    return product.reduced[0][0] if len(product.reduced) == 1 and product.reduced[0][1] == 1 else None
