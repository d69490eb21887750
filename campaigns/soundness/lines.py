"""delta(epsilon) by vertical lines close to the saddle point: each of them certifies the same
number.

Lines at 0.93, 0.97, 1 and 1.03 of the saddle point have different nodes, aliases and rounding
errors. They use the product of the moment generating functions even where the library uses a closed
form or an enumeration.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from dpcompose.contour import saddle
from dpcompose.contour.contour import Contour, relative_value
from dpcompose.contour.quadrature import draw, placement_of
from dpcompose.contour.saddle import Chart
from dpcompose.contour.transform import Cumulants, Transform, TransformSum
from dpcompose.loss.base import Loss
from dpcompose.loss.product import Product

TILTS = (0.93, 0.97, 1.0, 1.03)
BUDGET = 600
U = 2.0**-53


@dataclass(frozen=True)
class Lines:
    """The lines of one product that were drawn for one epsilon."""

    order: float
    contours: tuple[Contour, ...]
    infinite: tuple[float, float]

    @np.errstate(all="ignore")
    def __call__(self, epsilon: float) -> list[tuple[float, float]]:
        """Two ends around delta(epsilon) by each line."""
        low, high = self.infinite
        found = []
        for contour in self.contours:
            bracket = contour.bracket(epsilon)
            lower, upper = min(max(bracket.lower, 0.0), 1.0), min(max(bracket.upper, 0.0), 1.0)
            found.append(
                (
                    low + (1 - low) * lower * (1 - 8 * U),
                    min(high + (1 - high) * upper * (1 + 8 * U), 1.0),
                )
            )
        return found


def transform(product: Product) -> Transform:
    """Of the finite part, from its factors: neither enumerated nor in closed form."""
    families: dict[type[Loss], list[tuple[Loss, int]]] = defaultdict(list)
    for loss, times in product.group:
        families[type(loss)].append((loss, times))
    merged = [entry for family, members in families.items() for entry in family.combine(members)]
    again: dict[type[Loss], list[tuple[Loss, int]]] = defaultdict(list)
    for loss, times in merged:
        again[type(loss)].append((loss, times))
    terms = [term for family, members in again.items() for term in family.pool(members)]
    return terms[0] if len(terms) == 1 else TransformSum(tuple(terms))


@np.errstate(all="ignore")
def drawn(
    product: Product,
    epsilon: float,
    tolerance: float,
    *,
    tilts: Sequence[float] = TILTS,
    budget: int = BUDGET,
) -> Lines | None:
    """The lines for `epsilon`; None where it is beyond the largest loss, or has no saddle point."""
    infinite = product.infinite.lower, product.infinite.upper
    if not product.reduced or infinite[0] == 1 or not -40 < epsilon < math.inf:
        return None
    variable = transform(product)
    if epsilon >= variable.maximum:
        return None
    middle, contours = saddle.saddle_for_value(variable, epsilon), []
    for chart in _charts(variable, middle, tilts):
        order, (log_m, _, variance) = chart.order, chart.cumulants
        if not (math.isfinite(log_m) and variance > 0):
            continue
        log_mass = min(log_m - order * epsilon + math.log(relative_value(variance, order)), 0.0)
        contours.append(
            draw(
                variable,
                placement_of(
                    variable,
                    order=order,
                    x=epsilon,
                    log_mass=log_mass,
                    tolerance=max(tolerance, 1e-13),
                    most_nodes=budget,
                    chart=chart,
                ),
            )
        )
    return Lines(middle, tuple(contours), infinite) if contours else None


def _charts(variable: Transform, middle: float, tilts: Sequence[float]) -> list[Chart]:
    """One table of moments around the saddle point, seen from each of the lines."""
    wanted = np.array([saddle.shortened(middle * tilt, bits=24) for tilt in tilts])
    around, beside = saddle.around(variable, middle), variable.curve(wanted)
    orders = np.concatenate([around.orders, wanted])
    rows = zip(astuple(around.curve), astuple(beside), strict=True)
    place = np.argsort(orders, kind="stable")
    known = Cumulants(*(np.concatenate(row)[place] for row in rows))
    return [
        Chart(orders[place], known, int(np.flatnonzero(place == at)[0]))
        for at in len(around.orders) + np.arange(len(wanted))
    ]
