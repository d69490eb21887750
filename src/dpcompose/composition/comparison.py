"""The epsilon of a composition at one delta by every theorem that applies to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Literal

from dpcompose.composition.losses import Losses
from dpcompose.composition.question import PrivacyQuestion
from dpcompose.guarantee import (
    ApproximateDP,
    Counted,
    advanced_half_squares,
    advanced_slack,
    concentrated_epsilon,
    gaussian_epsilon,
    group_chained,
    group_printed,
    heterogeneous_epsilon,
    homogeneous_epsilon,
    printed_advanced,
    tight_advanced,
)
from dpcompose.loss import Product, TwoPointLoss
from dpcompose.notebook import Listed
from dpcompose.values import Bound, rounded_up, up

Kind = Literal["certified", "upper bound", "estimate"]
Theorem = Callable[[ApproximateDP], ApproximateDP]
_ADVANCED = (
    ("advanced composition", "[DworkRoth2014, Theorem 3.20]", printed_advanced, True),
    (
        "advanced, tight mean loss",
        "[DworkRothblumVadhan2010, Theorem III.3]",
        tight_advanced,
        False,
    ),
    (
        "advanced, half the squares",
        "[BunSteinke2016, Propositions 1.3 and 1.4]",
        advanced_half_squares,
        False,
    ),
)
"""Advanced composition: name, reference, function, and whether its proof needs equal epsilons."""
_OF_GROUPS = (
    ("geometric sum", "[Vadhan2017, Lemma 2.2]", group_chained),
    ("the book's bound", "[DworkRoth2014, Theorem 2.2]", group_printed),
)
_FEW_STATES = 2**14
_STEPS, _WIDENING = 60, 1.04


@dataclass(frozen=True)
class Comparison(Listed):
    """The epsilon that one theorem gives for a composition at a delta.

    Args:
        name: The name of the theorem.
        reference: The publication and theorem number of its proof.
        epsilon: Its epsilon in nats: an upper bound, except for an estimate.
        kind: "certified" if `lower` is certified too; "upper bound", which may be loose;
            "estimate", which may be too small.
        lower: The certified lower end of epsilon in nats; None for other kinds.
        note: A caveat of the theorem; may be empty.
    """

    name: str
    reference: str
    epsilon: float
    kind: Kind
    lower: float | None = None
    note: str = ""

    def _in_lines(self) -> tuple[str, list[str]]:
        """The epsilon, and the theorem that gives it."""
        sign = "about" if self.kind == "estimate" else "<="
        row = f"{self.kind}: {self.name} {self.reference}"
        return f"epsilon {sign} {self.epsilon!r}", [row]


def theorems(question: PrivacyQuestion, delta: float) -> tuple[Comparison, ...]:
    """Return the theorems that give a finite epsilon at `delta`, by epsilon, estimates last. The
    certified row is always included.

    Reference: [KairouzOhViswanath2015, Theorem 3.3], [Mironov2017, Proposition 1],
    [BunSteinke2016, Lemma 2.3]
    """
    losses, mu = question.losses, question.losses.gdp()
    curve, renyi = question.curve.epsilon(delta), "Renyi, best order and conversion"
    rows = [
        *_promised(_stated(losses), delta, question.tolerance),
        _row(renyi, "[Asoodeh2021, Section III]", curve.upper, "; ".join(curve.certificate.notes)),
        *_zcdp(losses, delta),
        *_gdp(mu, delta),
    ]
    bounds = sorted((row for row in rows if row.epsilon < math.inf), key=lambda row: row.epsilon)
    certified = _certified(
        "certified composition", "[ZhuDongWang2022, Theorem 10]", question.epsilon(delta)
    )
    place = sum(row.epsilon < certified.epsilon for row in bounds)
    return (*bounds[:place], certified, *bounds[place:], *([] if mu else _limit(question, delta)))


def group_theorems(
    whole: PrivacyQuestion, one: PrivacyQuestion, *, size: int, delta: float
) -> tuple[Comparison, ...]:
    """Return the certified epsilon of the group, and the one that Theorem 2.2 derives from the
    profile of one person.

    Theorem 2.2 turns (epsilon, delta(epsilon)) of one person into k epsilon and its delta for k
    people; the smallest k epsilon with a delta at most the target is taken.

    Args:
        whole: The question about the group.
        one: The question about one person.
        size: The number k of people in the group.
        delta: The target, in [0, 1].

    Reference: [DworkRoth2014, Theorem 2.2], [Vadhan2017, Lemma 2.2]
    """
    rows = [_certified("certified group", "[DongRothSu2022, Theorem 2.14]", whole.epsilon(delta))]
    note = "from one (epsilon, delta) of one person under the whole composition"
    start = max(one.epsilon(delta).upper, 1e-6)
    ends = [end for product in one.dominating if start < (end := product.extremes.upper) < math.inf]
    walk = (
        sorted([start * _WIDENING**step for step in range(_STEPS)] + ends)
        if start < math.inf
        else []
    )
    profile = cache(one.delta)
    for name, reference, theorem in _OF_GROUPS:
        epsilon = _best_of_group(profile, walk, partial(theorem, size=size), delta)
        if epsilon < math.inf:
            rows.append(_row(name, reference, epsilon, note))
    return tuple(sorted(rows, key=lambda row: row.epsilon))


def _certified(name: str, reference: str, bound: Bound) -> Comparison:
    note = "; ".join((bound.certificate.method, *bound.certificate.notes))
    return Comparison(name, reference, bound.upper, "certified", bound.lower, note)


def _stated(losses: Losses) -> Counted:
    """Return (largest loss, infinite mass) of each pair with its count; empty if a loss is
    unbounded.
    """
    counted: Counter[ApproximateDP] = Counter()
    for pair, times in () if losses.promises else losses.pairs:
        largest = max(0.0, pair.remove.maximum, pair.add.maximum)
        mass = max(loss.infinite_mass + loss.unplaced_mass for loss in (pair.remove, pair.add))
        if not (largest < math.inf and mass < 1.0):
            return ()
        counted[ApproximateDP(largest, delta=up(mass) if mass > 0.0 else 0.0)] += times
    return tuple(counted.items())


def _promised(stated: Counted, delta: float, tolerance: float) -> list[Comparison]:
    """Return the rows of the theorems that use only the (epsilon, delta) of each mechanism.

    Args:
        stated: (epsilon, delta) of each mechanism, with its count.
        delta: The delta of the composition.
        tolerance: The wanted relative width of epsilon.
    """
    if not stated:
        return []
    reference = (
        "[KairouzOhViswanath2015, Theorem 3.3]"
        if len(stated) == 1
        else "[MurtaghVadhan2016, Theorem 1.5]"
    )
    rows = [
        _row("optimal composition of the promises", reference, _optimal(stated, delta, tolerance))
    ]
    slack = advanced_slack(stated, delta=delta)
    if slack is None:
        return rows
    total = rounded_up(
        sum((Fraction(promise.epsilon) * times for promise, times in stated), Fraction(0))
    )
    rows.append(_row("basic composition", "[DworkRoth2014, Theorem 3.16]", total))
    if 0.0 < slack < 1.0:
        note = (
            ""
            if len(stated) == 1
            else "its proof, with the sum of the squares of different epsilons"
        )
        rows += [
            _row(name, reference, theorem(stated, slack=slack).epsilon, note * cited)
            for name, reference, theorem, cited in _ADVANCED
        ]
    return rows


def _optimal(stated: Counted, delta: float, tolerance: float) -> float:
    """Return the least epsilon of any composition of these (epsilon, delta) guarantees at `delta`,
    in nats.

    It is a binomial sum or an enumeration where these are cheap; else it is evaluated numerically
    to `tolerance`.
    """
    if len(stated) == 1:
        promise, times = stated[0]
        return homogeneous_epsilon(
            delta, epsilon=promise.epsilon, delta=promise.delta, times=times
        ).upper
    if math.prod(times + 1 for _, times in stated) <= _FEW_STATES:
        return heterogeneous_epsilon(delta, promises=stated).upper
    losses = Product(
        tuple((TwoPointLoss(promise.epsilon, promise.delta), times) for promise, times in stated)
    )
    return losses.epsilon(delta, tolerance=max(tolerance, 1e-6)).upper


def _row(name: str, reference: str, epsilon: float, note: str = "") -> Comparison:
    """Return a row of kind "upper bound"."""
    return Comparison(name, reference, epsilon, "upper bound", None, note)


def _zcdp(losses: Losses, delta: float) -> list[Comparison]:
    """Return the row of the conversion from zero-concentrated differential privacy, if all parts
    have a rho.
    """
    promise = losses.zcdp()
    if promise is None:
        return []
    epsilon = concentrated_epsilon(promise, delta=delta)
    note = f"rho = {promise.rho:.6g}" + (
        f", outside a mass of {promise.delta:.6g}" if promise.delta else ""
    )
    return [_row("zero-concentrated", "[BunSteinke2016, Lemma 2.3]", epsilon, note)]


def _gdp(mu: float | None, delta: float) -> list[Comparison]:
    """Return the row of the conversion from Gaussian differential privacy; empty if `mu` is
    None.
    """
    if not mu:
        return []
    epsilon = gaussian_epsilon(delta, mu=mu).upper
    return [_row("Gaussian", "[DongRothSu2022, Corollary 3.3]", epsilon, f"mu = {mu:.6g}")]


def _limit(question: PrivacyQuestion, delta: float) -> list[Comparison]:
    """Return the row of the central limit estimate from the variance of the loss; empty where the
    estimate is void.
    """
    if question.losses.promises or not question.losses.parts or not 0.0 < delta < 1.0:
        return []
    products = [product for product in question.dominating if product.reduced]
    if not products or any(product.infinite.upper > 0.0 for product in products):
        return []
    # The cumulants near order 0 are those of the loss itself.
    variance = max(product.transform.cumulants(1e-6)[2] for product in products)
    if not 0.0 < variance < 1e12:
        return []
    epsilon = gaussian_epsilon(delta, mu=math.sqrt(variance)).upper
    note = f"mu = {math.sqrt(variance):.6g} from the variance of the loss; no bound: the truth may be larger"
    return [
        Comparison(
            "central limit", "[DongRothSu2022, Theorem 3.4]", epsilon, "estimate", None, note
        )
    ]


def _best_of_group(
    profile: Callable[[float], Bound], walk: Sequence[float], theorem: Theorem, delta: float
) -> float:
    """Return the smallest size * epsilon, in nats, at which the theorem's delta for the group is at
    most `delta`.

    Any such value is sound. The delta of the group need not fall with epsilon: the first epsilon of
    `walk` that meets the target is refined by bisection.

    Args:
        profile: delta(epsilon) of one person.
        walk: Increasing epsilons of one person to try.
        theorem: The guarantee of the group from that of one person.
        delta: The target.
    """

    def stated(epsilon: float) -> ApproximateDP:
        return theorem(ApproximateDP(epsilon, delta=profile(epsilon).upper))

    low = 0.0
    for high in walk:
        if stated(high).delta <= delta:
            break
        low = high
    else:
        return math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if not low < middle < high or high - low < 1e-9 * high:
            break
        low, high = (low, middle) if stated(middle).delta <= delta else (middle, high)
    return stated(high).epsilon
