"""Parts of which a Renyi curve says more than their losses do, as one pair of distributions.

Renyi divergences add up over adaptive rounds, so all such parts together are one interactive mechanism with one curve.
That curve is converted once (`loss.renyi_pair`), and the pair is composed with the losses of all other parts.

Reference: [Mironov2017, Proposition 1], [VadhanZhang2023, Theorem 1.5]
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dpcompose.composition.part import Pairs
from dpcompose.guarantee import RenyiPromise
from dpcompose.loss import AtomicLoss, GaussianLoss, Group, Loss, Pair, TwoPointLoss, renyi_pair
from dpcompose.numerics import Reals
from dpcompose.values import UNIT_ROUNDOFF, float_sum, up

Promises = Sequence[tuple[RenyiPromise, int]]


def curved(loss: Loss) -> bool:
    """Whether the mechanisms below a loss have lower moments than the loss itself."""
    return type(loss).moments_below([(loss, 1)], np.ones(1)) is not None


def converted(group: Group, promises: Promises) -> Group:
    """Losses that dominate these parts together; empty if there are none.

    Args:
        group: Losses that are `curved`, with their counts.
        promises: The promises of parts without losses. Their deltas are infinite losses of their own.
    """
    if not group and not promises:
        return ()
    curves = tuple((promise, times) for promise, times in promises if promise.rho is None)
    return (
        (_one_pair(group, up(_rho(promises) * (1 + 4 * UNIT_ROUNDOFF)), curves), 1),
        *_failing(promises),
    )


def _rho(promises: Promises) -> float:
    """The sum of the rho that there are."""
    return float_sum(times * promise.rho for promise, times in promises if promise.rho is not None)


@lru_cache(maxsize=32)
def _one_pair(group: Group, rho: float, curves: tuple[tuple[RenyiPromise, int], ...]) -> AtomicLoss:
    families: dict[type[Loss], list[tuple[Loss, int]]] = defaultdict(list)
    for loss, times in group:
        families[type(loss)].append((loss, times))

    @np.errstate(over="ignore")  # infinite: nothing is known
    def moments(orders: Reals) -> Reals:
        total = rho * orders * (orders + 1)
        for family, members in families.items():
            below = family.moments_below(members, orders)
            assert below is not None
            total = total + below
        for promise, times in curves:
            total = total + times * orders * np.array(
                [promise.renyi(_order(each)) for each in orders.tolist()]
            )
        return total * (1 + 16 * UNIT_ROUNDOFF)

    corners = sorted({order - 1 for promise, _ in curves for order in promise.orders})
    return renyi_pair(moments, corners=np.array(corners))


def _order(exponent: float) -> float:
    """The order of an exponent, or a float above it: a divergence grows with its order."""
    order = 1 + exponent
    return order if order - 1 >= exponent else math.nextafter(order, math.inf)


def attained(promises: Promises) -> Pairs:
    """Mechanisms that keep these promises: Gaussian noise with mu^2 / 2 = rho, which fails with probability delta."""
    rho = _rho(promises)
    noise: Group = ((GaussianLoss(math.sqrt(2 * rho), ulps=8), 1),) if 0 < rho < 1e11 else ()
    mechanisms = (*noise, *_failing(promises))
    return tuple((Pair(loss, loss), times) for loss, times in mechanisms)


def _failing(promises: Promises) -> Group:
    return tuple(
        (TwoPointLoss(0.0, promise.delta), times)
        for promise, times in promises
        if promise.delta > 0
    )
