"""Which nodes of a line matter: cheap bounds on |M| tell before M is evaluated."""

from __future__ import annotations

import math

import numpy as np

from dpcompose.contour.transform import Sum, Transform
from dpcompose.numerics.elementary import Reals

NEGLIGIBLE = 52.0
# So many nodes are not worth another look.
_FEW = 24


def audible(transform: Transform, order: float, frequency: Reals, variance: float) -> Reals:
    """The nodes that cheap bounds on |M(order + iu) / M(order)| leave above e^(-NEGLIGIBLE)."""
    if len(frequency) <= 64:
        return frequency
    # First whole blocks, then node by node.
    edges = frequency[8] * 1.2 ** np.arange(math.ceil(math.log(frequency[-1] / frequency[8]) / math.log(1.2)) + 1)
    blocks = transform.log_envelope(order, edges) - variance * edges**2 / 2
    block = np.searchsorted(edges, frequency, side="right") - 1
    frequency = frequency[(block < 0) | ~(blocks[block] <= -NEGLIGIBLE)]
    loud = -variance * frequency**2 / 2
    for term in terms_of(transform):
        bounds = getattr(term, "log_bounds", None)
        for bound in bounds(order) if bounds is not None else ():
            if len(frequency) <= _FEW:
                break
            loud = loud + np.minimum(bound(frequency), 0.0)
            keep = ~(loud <= -NEGLIGIBLE)
            frequency, loud = frequency[keep], loud[keep]
    return frequency


def terms_of(transform: Transform) -> tuple[Transform, ...]:
    """The summands of a sum, or the transform itself."""
    return transform.terms if isinstance(transform, Sum) else (transform,)
