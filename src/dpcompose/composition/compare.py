"""Every theorem that applies to a composition, side by side at one delta."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpcompose.composition import gdp, zcdp
from dpcompose.composition.container import TOLERANCE, Composition, Pairs, compose
from dpcompose.composition.numerical import Question, gathered, question
from dpcompose.guarantee import advanced, concentrated, gaussian
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.guarantee.advanced import Counted
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.heterogeneous import heterogeneous_epsilon
from dpcompose.guarantee.optimal import homogeneous_epsilon
from dpcompose.loss.product import Product
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.numerics import check
from dpcompose.numerics.bound import up
from dpcompose.numerics.exact import rounded_up

Kind = Literal["certified", "upper bound", "estimate"]
_FEW_STATES = 2**14


@dataclass(frozen=True)
class Comparison:
    """What one theorem says about a composition at the delta that was asked.

    Args:
        name: The theorem, in words.
        reference: Where it is proved.
        epsilon: Its epsilon: an upper bound, except for an estimate.
        kind: "certified" has a lower end too; an "upper bound" may be loose; an "estimate" may be too small.
        lower: The lower end of a certified interval, else None.
        note: What to know about it; may be empty.
    """

    name: str
    reference: str
    epsilon: float
    kind: Kind
    lower: float | None = None
    note: str = ""


def compare(
    composition: Composition,
    *,
    delta: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    orientation: Orientation = Orientation.SAME,
    tolerance: float = TOLERANCE,
) -> tuple[Comparison, ...]:
    """Every theorem that gives a finite epsilon at this delta, tightest first; certified always there, estimates last.

    >>> from dpcompose import BlackBox
    >>> [row.name for row in compare(BlackBox(0.1) * 100, delta=1e-6)][:2]
    ['certified composition', 'optimal composition of the promises']

    Args:
        composition: What is composed.
        delta: In [0, 1].
        adjacency: What one person's data may change.
        orientation: Whether the same world holds the record in every round.
        tolerance: Wanted relative width of the certified interval.

    Raises:
        DomainError: If an argument is outside its domain.
        UnsupportedError: If a part has no sound statement under the adjacency or orientation.

    Reference: [KairouzOhViswanath2015, Theorem 3.3], [Mironov2017, Proposition 1], [BunSteinke2016, Lemma 2.3]
    """
    delta = check.probability("delta", delta)
    composition = compose(composition)
    asked = question(composition, adjacency, orientation, tolerance, False)
    pairs, promises = gathered(composition, adjacency)
    stated = () if promises else _stated(pairs)
    rows = [
        *_promised(stated, delta, tolerance),
        *_renyi(asked, delta),
        *_zcdp(composition, adjacency, delta),
        *_gdp(composition, adjacency, delta),
    ]
    bounds = sorted((row for row in rows if row.epsilon < math.inf), key=lambda row: row.epsilon)
    certified = _certified(asked, delta)
    place = sum(row.epsilon < certified.epsilon for row in bounds)
    return (*bounds[:place], certified, *bounds[place:], *_limit(asked, composition, adjacency, delta))


def _certified(asked: Question, delta: float) -> Comparison:
    bound = asked.epsilon(delta)
    return Comparison(
        "certified composition",
        "[ZhuDongWang2022, Theorem 10]",
        bound.upper,
        "certified",
        bound.lower,
        "; ".join((bound.certificate.method, *bound.certificate.notes)),
    )


def _stated(pairs: Pairs) -> Counted:
    """What each pair promises: its largest loss, and its infinite mass; empty if one promises nothing."""
    counted: Counter[ApproximateDP] = Counter()
    for pair, times in pairs:
        losses = (pair.remove, pair.add)
        largest = max(0.0, *(loss.maximum for loss in losses))
        mass = max(loss.infinite_mass + loss.unplaced_mass for loss in losses)
        if not (largest < math.inf and mass < 1.0):
            return ()
        counted[ApproximateDP(largest, delta=up(mass) if mass > 0.0 else 0.0)] += times
    return tuple(counted.items())


def _promised(stated: Counted, delta: float, tolerance: float) -> list[Comparison]:
    """Theorems that know only (epsilon, delta) of each mechanism."""
    if not stated:
        return []
    reference = "[KairouzOhViswanath2015, Theorem 3.3]" if len(stated) == 1 else "[MurtaghVadhan2016, Theorem 1.5]"
    rows = [_row("optimal composition of the promises", reference, _optimal(stated, delta, tolerance))]
    slack = advanced.slack_of(stated, delta=delta)
    if slack is None:
        return rows
    total = rounded_up(sum((Fraction(promise.epsilon) * times for promise, times in stated), Fraction(0)))
    rows.append(_row("basic composition", "[DworkRoth2014, Theorem 3.16]", total))
    if 0.0 < slack < 1.0:
        note = "" if len(stated) == 1 else "its proof, with the sum of the squares of different epsilons"
        printed, tight, half = advanced.printed, advanced.tight, advanced.half_squares
        rows += [
            _row("advanced composition", "[DworkRoth2014, Theorem 3.20]", printed(stated, slack=slack).epsilon, note),
            _row(
                "advanced, tight mean loss",
                "[DworkRothblumVadhan2010, Theorem III.3]",
                tight(stated, slack=slack).epsilon,
            ),
            _row(
                "advanced, half the squares",
                "[BunSteinke2016, Propositions 1.3 and 1.4]",
                half(stated, slack=slack).epsilon,
            ),
        ]
    return rows


def _optimal(stated: Counted, delta: float, tolerance: float) -> float:
    """The least epsilon for these promises: a binomial sum, an enumeration, or the contour of their losses."""
    if len(stated) == 1:
        promise, times = stated[0]
        return homogeneous_epsilon(delta, epsilon=promise.epsilon, delta=promise.delta, times=times).upper
    if math.prod(times + 1 for _, times in stated) <= _FEW_STATES:
        return heterogeneous_epsilon(delta, promises=stated).upper
    losses = Product(tuple((TwoPointLoss(promise.epsilon, promise.delta), times) for promise, times in stated))
    return losses.epsilon(delta, tolerance=max(tolerance, 1e-6)).upper


def _row(name: str, reference: str, epsilon: float, note: str = "") -> Comparison:
    return Comparison(name, reference, epsilon, "upper bound", None, note)


def _renyi(asked: Question, delta: float) -> list[Comparison]:
    bound = asked.curve.epsilon(delta)
    notes = "; ".join(bound.certificate.notes)
    return [_row("Renyi, best order and conversion", "[Asoodeh2021, Section III]", bound.upper, notes)]


def _zcdp(composition: Composition, adjacency: Adjacency, delta: float) -> list[Comparison]:
    promise = zcdp.guarantee(composition, adjacency=adjacency)
    if promise is None:
        return []
    epsilon = concentrated.best_epsilon(promise, delta=delta)
    note = f"rho = {promise.rho:.6g}" + (f", outside a mass of {promise.delta:.6g}" if promise.delta else "")
    return [_row("zero-concentrated", "[BunSteinke2016, Lemma 2.3]", epsilon, note)]


def _gdp(composition: Composition, adjacency: Adjacency, delta: float) -> list[Comparison]:
    mu = gdp.mu(composition, adjacency=adjacency)
    if not mu:
        return []
    epsilon = gaussian.epsilon(delta, mu=mu).upper
    return [_row("Gaussian", "[DongRothSu2022, Corollary 3.3]", epsilon, f"mu = {mu:.6g}")]


def _limit(asked: Question, composition: Composition, adjacency: Adjacency, delta: float) -> list[Comparison]:
    """The central limit estimate from the variance of the loss, where it is neither exact nor void."""
    if asked.promises or not composition.parts or not 0.0 < delta < 1.0 or gdp.mu(composition, adjacency=adjacency):
        return []
    products = [product for product in asked.above if product.reduced]
    if not products or any(product.infinite.upper > 0.0 for product in products):
        return []
    # The cumulants next to order 0 are those of the loss itself.
    variance = max(product.transform.cumulants(1e-6)[2] for product in products)
    if not 0.0 < variance < 1e12:
        return []
    epsilon = gaussian.epsilon(delta, mu=math.sqrt(variance)).upper
    note = f"mu = {math.sqrt(variance):.6g} from the variance of the loss; no bound: the truth may be larger"
    return [Comparison("central limit", "[DongRothSu2022, Theorem 3.4]", epsilon, "estimate", None, note)]
