"""Zero-concentrated privacy of a composition: the rho of the parts add up."""

from __future__ import annotations

import math

from dpcompose.composition.container import Composition
from dpcompose.composition.numerical import gathered
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.numerics.bound import UNIT_ROUNDOFF, up


def guarantee(composition: Composition, *, adjacency: Adjacency) -> ConcentratedDP | None:
    """D_order <= rho * order for all orders above 1, outside a mass of delta; None if a part's rho is not known.

    >>> from dpcompose import Gaussian
    >>> round((Gaussian(2.0) * 4).zcdp().rho, 12)
    0.5

    Args:
        composition: What is composed.
        adjacency: What one person's data may change.

    Raises:
        UnsupportedError: If a part has no sound statement under the adjacency.

    Reference: [BunSteinke2016, Lemma 2.3]
    """
    pairs, promises = gathered(composition, adjacency)
    terms: list[float] = []
    for pair, times in pairs:
        rhos = [loss.zcdp for loss in (pair.remove, pair.add)]
        if any(rho is None for rho in rhos):
            return None
        terms.append(times * max(rho for rho in rhos if rho is not None))
    kept = 0.0
    for part, times in promises:
        promise = part.promise(adjacency)
        if promise is None:
            return None
        terms.append(times * promise.rho)
        kept += times * math.log1p(-promise.delta) if promise.delta < 1 else -math.inf
    slack = 1 + 4 * UNIT_ROUNDOFF
    return ConcentratedDP(
        up(math.fsum(terms) * slack) if terms else 0.0,
        delta=min(up(-math.expm1(kept) * (1 + 16 * UNIT_ROUNDOFF)), 1.0) if kept else 0.0,
    )
