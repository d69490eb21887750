"""The statements of the book, one function each: composition theorems, lemmas, an example.

Each theorem calls the function of `dpcompose.guarantee` that evaluates the formula and rounds it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, SupportsFloat, runtime_checkable

from dpcompose import check, divergence
from dpcompose.book.statement import Parameter, Statement
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import (
    ApproximateDP,
    advanced_half_squares,
    checked_epsilon,
    group_chained,
    homogeneous_delta,
    homogeneous_epsilon,
    printed_advanced,
    tight_advanced,
)
from dpcompose.pictured import Card
from dpcompose.values import (
    UNIT_ROUNDOFF,
    Bound,
    decimal_context,
    decimal_expm1,
    decimal_tanh,
    down,
    float_above,
    float_below,
    rounded_up,
    up,
)

# The statements about two output distributions: Definitions 2.4, 3.5 and 3.6, Remark 3.1, Lemma 3.17.


Masses = Sequence[float]


@dataclass(frozen=True)
class _Distances:
    part_1: float
    part_2: float


def _least_delta(*, first: Masses, second: Masses, epsilon: float) -> Bound:
    point = checked_epsilon("epsilon", epsilon)
    bounds = [
        divergence.hockey_stick(*pair, epsilon=point) for pair in ((first, second), (second, first))
    ]
    return Bound(max(each.lower for each in bounds), max(each.upper for each in bounds))


def _least_epsilon(*, first: Masses, second: Masses, delta: float) -> Bound:
    return divergence.smallest_epsilon({"first": first, "second": second}, delta=delta).epsilon


def _distances(*, first: Masses, second: Masses, epsilon: float) -> _Distances:
    one = divergence.one_sided_witness(first, second, epsilon=epsilon)
    both = divergence.symmetric_witness(first, second, epsilon=epsilon)
    return _Distances(rounded_up(one.distance), rounded_up(both.distance))


_FIRST = Parameter(
    "first", float, "the masses of Y, one for each outcome, such as 2/3,1/3", many=True
)
_SECOND = Parameter("second", float, "the masses of Z, for the same outcomes", many=True)
_DELTA = Parameter("delta", float, "what is forgiven, in [0, 1]")
_EPSILON = Parameter("epsilon", float, "in nats")

PRIVACY = Statement(
    "definition 2.4", "differential privacy",
    "Y(S) <= e^epsilon Z(S) + delta for every S, in both orders: the least such delta.",
    _least_delta, (_FIRST, _SECOND, _EPSILON),
    ("It is not that the loss is at most epsilon with probability 1 - delta: that asks for more.",),
    reference="[DworkRoth2014, Definition 2.4]", down=("lower",),
)  # fmt: skip
"""Definition 2.4."""

TECHNICALITIES = (
    Statement(
        "definition 3.5", "KL divergence", "D(Y||Z), the mean of the loss ln(Y(x) / Z(x)) under Y.",
        divergence.kl, (_FIRST, _SECOND), ("Not symmetric: the other order has a value of its own.",),
        reference="[DworkRoth2014, Definition 3.5]", down=("lower",),
    ),
    Statement(
        "definition 3.6", "max divergence",
        "D_inf^delta(Y||Z) = max ln((Y(S) - delta) / Z(S)) over the S with Y(S) > delta: the largest loss for delta 0.",
        divergence.approximate_max, (_FIRST, _SECOND, _DELTA),
        ("Printed with Y(S) >= delta, which contradicts Remark 3.1 where Y(S) = delta and Z(S) = 0.",),
        reference="[DworkRoth2014, Definition 3.6]", down=("lower",),
    ),
    Statement(
        "remark 3.1", "privacy is a divergence",
        "(epsilon, delta)-DP is D_inf^delta <= epsilon in both orders: the least such epsilon >= 0.",
        _least_epsilon, (_FIRST, _SECOND, _DELTA),
        ("Of two neighbors; divergence.smallest_epsilon takes a mechanism, and names the pair that attains it.",),
        reference="[DworkRoth2014, Remark 3.1]", down=("lower",),
    ),
    Statement(
        "3.17", "nearby distributions",
        "D_inf^delta(Y||Z) <= epsilon exactly when some Y' within delta of Y has D_inf(Y'||Z) <= epsilon; for both "
        "orders Y' and Z' within delta / (1 + e^epsilon): the least distances.",
        _distances, (_FIRST, _SECOND, _EPSILON),
        (
            "Part 2 is printed with D_inf(Y'||Z') <= epsilon alone, and false so: D_inf(Z'||Y') <= epsilon is needed.",
            "Part 1 needs epsilon >= 0. The witnesses: divergence.one_sided_witness, divergence.symmetric_witness.",
        ),
        reference="[DworkRoth2014, Lemma 3.17]",
    ),
)  # fmt: skip
"""Definitions 3.5 and 3.6, Remark 3.1, Lemma 3.17."""


def group(epsilon: float, *, delta: float = 0.0, size: int) -> ApproximateDP:
    """The guarantee for groups of k = `size` people that (epsilon, delta)-DP implies.

    It is (k epsilon, delta (1 + e^epsilon + ... + e^((k - 1) epsilon))).

    Both numbers are rounded up. With delta = 0 it is the book's (k epsilon, 0). The delta is the
    smallest possible at k epsilon; `guarantee.group.group_delta` returns the smallest at any
    epsilon. For mu-GDP the group's k mu is exact.

    >>> group(0.25, size=4)
    ApproximateDP(epsilon=1.0, delta=0.0)

    Args:
        epsilon: The epsilon for neighbors that differ in one person, in [0, inf].
        delta: The delta for neighbors that differ in one person, in [0, 1].
        size: The number of people, an integer from 1 to 10^5.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Theorem 2.2]
    """
    return group_chained(ApproximateDP(epsilon, delta=delta), size=size)


def basic(promises: Iterable[tuple[float, float]]) -> ApproximateDP:
    """The total (sum epsilon_i, sum delta_i) of basic composition; each sum is rounded up.

    Theorem 3.14 and Corollary 3.15 are the case of zero deltas. It also holds if mechanisms,
    databases and parameters are chosen after seeing earlier answers, as long as the sums stay
    within a budget fixed in advance.

    >>> basic([(0.5, 0.0), (0.25, 1e-6)])
    ApproximateDP(epsilon=0.75, delta=1e-06)

    Args:
        promises: The guarantees of the mechanisms, pairs (epsilon_i, delta_i) in [0, inf] and [0,
            1].

    Raises:
        DomainError: If an element is not such a pair.

    Reference: [DworkRoth2014, Theorem 3.16]
    """
    checked = _promises_of(promises)
    delta = rounded_up(
        min(Fraction(1), sum((Fraction(promise.delta) for promise in checked), Fraction(0)))
    )
    if any(promise.epsilon == math.inf for promise in checked):
        return ApproximateDP(math.inf, delta=delta)
    return ApproximateDP(
        rounded_up(sum((Fraction(promise.epsilon) for promise in checked), Fraction(0))),
        delta=delta,
    )


def advanced(epsilon: float, *, delta: float = 0.0, times: int, slack: float) -> ApproximateDP:
    """The total (epsilon', k delta + slack) of k = `times` (epsilon, delta)-DP mechanisms, by
    Theorem 3.20.

    epsilon' = sqrt(2 k log(1 / slack)) epsilon + k epsilon (e^epsilon - 1). Both numbers are
    rounded up. Mechanisms and databases may be chosen after seeing earlier answers; epsilon and
    delta are fixed in advance. The total is often larger than that of `basic`, always larger than
    that of `optimal`, and does not give the 1/801 of Example 3.7 (see `example_3_7`).

    >>> round(advanced(1 / 801, times=10_000, slack=1.2664165549094176e-14).epsilon, 14)
    1.01434730431488

    Args:
        epsilon: The epsilon of each mechanism; finite, >= 0.
        delta: The delta of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 1 to 10^15.
        slack: The theorem's delta', in (0, 1).

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Theorem 3.20]
    """
    return printed_advanced([_each(epsilon, delta, times)], slack=slack)


def advanced_tight(
    epsilon: float, *, delta: float = 0.0, times: int, slack: float
) -> ApproximateDP:
    """The total (epsilon', k delta + slack) of Theorem 3.20 with the tight mean loss; rounded up.

    epsilon' = sqrt(2 k log(1 / slack)) epsilon + k epsilon tanh(epsilon / 2) for k = `times`.

    The proof is that of Theorem 3.20 with the best constant of Lemma 3.18, so that the total is
    never larger than that of `advanced`.

    >>> round(advanced_tight(0.1, times=100, slack=1e-6).epsilon, 12)
    5.756105519336

    Args:
        epsilon: The epsilon of each mechanism; finite, >= 0.
        delta: The delta of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 1 to 10^15.
        slack: The theorem's delta', in (0, 1).

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRothblumVadhan2010, Theorem III.3]
    """
    return tight_advanced([_each(epsilon, delta, times)], slack=slack)


def advanced_heterogeneous(
    promises: Iterable[tuple[float, float]], *, slack: float
) -> ApproximateDP:
    """The total (epsilon', sum delta_i + slack) of different mechanisms, by way of zCDP; rounded
    up.

    epsilon' = sum epsilon_i^2 / 2 + sqrt(2 log(1 / slack) sum epsilon_i^2).

    (epsilon_i, 0)-DP implies (epsilon_i^2 / 2)-zCDP; the sum of these rho is converted to
    (epsilon', slack). For equal epsilons the total is below that of `advanced`, since epsilon^2 / 2
    < epsilon (e^epsilon - 1).

    >>> round(advanced_heterogeneous([(0.1, 0.0)] * 10, slack=1e-6).epsilon, 11)
    1.71225813627

    Args:
        promises: The guarantees of the mechanisms, pairs (epsilon_i, delta_i) in [0, inf] and [0,
            1].
        slack: The part of the total delta for a large loss, in (0, 1).

    Raises:
        DomainError: If an element is not such a pair, or slack is outside (0, 1).

    Reference: [BunSteinke2016, Propositions 1.3 and 1.4]
    """
    return advanced_half_squares([(promise, 1) for promise in _promises_of(promises)], slack=slack)


def advanced_per_mechanism(epsilon: float, *, slack: float, times: int) -> float:
    """The epsilon_0 of each of k = `times` mechanisms by Corollary 3.21, for a total of `epsilon`.

    The total is (epsilon, k delta + slack) for mechanisms that are (epsilon_0, delta)-DP; epsilon_0
    is rounded down.

    epsilon_0 = epsilon / (2 sqrt(2 k log(1 / slack))). The book requires 0 < epsilon < 1 and slack
    > 0, which is neither necessary nor sufficient: Theorem 3.20 implies the corollary exactly if
    epsilon <= 2 sqrt(2 k L) log(1 + sqrt(2 L / k)), with L = log(1 / slack). At slack 1e-6 this
    allows an epsilon up to 19 at any k; near slack 1 the corollary is false (at epsilon 0.99, k 100
    and slack 0.998 the smallest total delta is 0.99982). Outside that region the function raises
    UnsupportedError.

    >>> round(advanced_per_mechanism(0.9, slack=1e-6, times=100), 15)
    0.008560793994787

    Args:
        epsilon: The total epsilon of the composition, in nats; finite, > 0.
        slack: The delta' of Theorem 3.20, in (0, 1).
        times: The number of mechanisms, an integer from 1 to 10^15.

    Raises:
        DomainError: If a number lies outside its domain.
        UnsupportedError: If Theorem 3.20 does not imply the corollary; the text says whether it is
            false.

    Reference: [DworkRoth2014, Corollary 3.21]
    """
    epsilon, slack = check.positive("epsilon", epsilon), check.open_probability("slack", slack)
    times = check.times(times, least=1)
    logarithm = -math.log(slack)
    width = 2.0 * math.sqrt(2.0 * times * logarithm)
    each = max(0.0, down(epsilon / width * (1.0 - 16 * UNIT_ROUNDOFF)))
    limit = width * math.log1p(math.sqrt(2.0 * logarithm / times)) * (1.0 - 32 * UNIT_ROUNDOFF)
    if not epsilon <= limit:
        raise _refusal(epsilon, slack, times, each, limit)
    return each


def advanced_inverse(epsilon: float, *, slack: float, times: int) -> float:
    """The largest epsilon of each of k = `times` mechanisms with a total of `epsilon` by Theorem
    3.20.

    It inverts the formula of the theorem to the last double and, unlike Corollary 3.21, needs no
    condition.

    >>> each = advanced_inverse(0.9, slack=1e-6, times=100)
    >>> advanced(each, times=100, slack=1e-6).epsilon <= 0.9
    True
    >>> each > advanced_per_mechanism(0.9, slack=1e-6, times=100)
    True

    Args:
        epsilon: The total epsilon of the composition, in nats; finite, > 0.
        slack: The delta' of Theorem 3.20, in (0, 1).
        times: The number of mechanisms, an integer from 1 to 10^15.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Theorem 3.20]
    """
    epsilon, slack = check.positive("epsilon", epsilon), check.open_probability("slack", slack)
    times = check.times(times, least=1)
    low, high = 0.0, min(epsilon, 700.0)
    while (middle := low + (high - low) / 2) not in (low, high):
        if advanced(middle, times=times, slack=slack).epsilon <= epsilon:
            low = middle
        else:
            high = middle
    return high if advanced(high, times=times, slack=slack).epsilon <= epsilon else low


def optimal(epsilon: float, *, delta: float = 0.0, times: int, total_delta: float) -> ApproximateDP:
    """The smallest total (epsilon', total_delta) of k = `times` (epsilon, delta)-DP mechanisms;
    rounded up.

    No theorem from the epsilon and delta of each mechanism alone can give less. epsilon' is
    infinite if total_delta < 1 - (1 - delta)^k. `guarantee.optimal.homogeneous_epsilon` returns
    both ends.

    >>> round(optimal(0.1, times=100, total_delta=1e-6).epsilon, 12)
    4.774567588108

    Args:
        epsilon: The epsilon of each mechanism; in [0, inf].
        delta: The delta of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 0 to 10^15.
        total_delta: The delta of the composition; in [0, 1].

    Raises:
        DomainError: If a number lies outside its domain.
        UnsupportedError: If more than 2^22 terms matter (beyond about 1e11 mechanisms).

    Reference: [KairouzOhViswanath2015, Theorem 3.3]
    """
    bound = homogeneous_epsilon(total_delta, epsilon=epsilon, delta=delta, times=times)
    return ApproximateDP(bound.upper, delta=total_delta)


def _promises_of(pairs: Any) -> list[ApproximateDP]:
    """The pairs (epsilon, delta) as a list of ApproximateDP.

    Raises:
        DomainError: If `pairs` is not an iterable of such pairs.
    """
    try:
        items = list(pairs)
    except TypeError:
        raise DomainError("promises", pairs, "pairs (epsilon, delta)") from None
    return [_promise(item) for item in items]


def _promise(item: Any) -> ApproximateDP:
    try:
        epsilon, delta = item
    except (TypeError, ValueError):
        raise DomainError("promises", item, "each a pair (epsilon, delta)") from None
    return ApproximateDP(epsilon, delta=delta)


def _each(epsilon: float, delta: float, times: int) -> tuple[ApproximateDP, int]:
    return ApproximateDP(check.nonnegative("epsilon", epsilon), delta=delta), check.times(
        times, least=1
    )


def _refusal(
    epsilon: float, slack: float, times: int, each: float, limit: float
) -> UnsupportedError:
    what = f"Corollary 3.21 at epsilon {epsilon!r}, slack {slack!r}, times {times}"
    remedy = "Solve with the optimal theorem instead: book.optimal, or calibrate"
    implied = f"Theorem 3.20 implies it only up to epsilon = {limit:.6g}"
    try:
        truth = homogeneous_delta(epsilon, epsilon=each, times=times)
    except UnsupportedError:
        return UnsupportedError(what, implied, remedy)
    if truth.lower > slack:
        false = f"it is false there: {times} mechanisms of epsilon {each:.6g} have delta({epsilon:g}) = {truth.lower:.12g}"
        return UnsupportedError(what, f"{false}, more than the slack; {implied}", remedy)
    return UnsupportedError(what, f"not proved: {implied}", remedy)


@dataclass(frozen=True)
class MeanLoss(Card):
    """Two upper bounds on a Kullback-Leibler divergence, in nats.

    Args:
        book: The bound as printed in the book.
        tight: The smallest valid bound.
    """

    book: float
    tight: float


def kl_bound(epsilon: float) -> MeanLoss:
    """Upper bounds on the mean of a privacy loss within +-epsilon in both directions; rounded up.

    The bound as printed is epsilon (e^epsilon - 1).

    The tight bound is epsilon tanh(epsilon / 2) = epsilon (e^epsilon - 1) / (e^epsilon + 1),
    attained by randomized response (`divergence.extreme_pair`): less than half of the printed one.

    >>> bound = kl_bound(1.0)
    >>> round(bound.book, 12), round(bound.tight, 12)
    (1.718281828459, 0.46211715726)

    Args:
        epsilon: The bound on the privacy loss, in nats; in [0, inf].

    Raises:
        DomainError: If epsilon is negative or NaN.

    Reference: [DworkRoth2014, Lemma 3.18]
    """
    epsilon = checked_epsilon("epsilon", epsilon)
    if epsilon > 700.0:
        return MeanLoss(math.inf, epsilon)
    with decimal.localcontext(decimal_context(80)):
        each = Decimal(epsilon)
        return MeanLoss(
            float_above(each * decimal_expm1(each)),
            min(epsilon, float_above(each * decimal_tanh(each / 2))),
        )


@dataclass(frozen=True)
class Deviation(Card):
    """A tail bound: P[sum > threshold] <= probability, both rounded up.

    Args:
        threshold: The number that the sum exceeds.
        probability: An upper bound on the probability of that.
    """

    threshold: float
    probability: float


def azuma(deviations: float, *, times: int, size: float, drift: float) -> Deviation:
    """The threshold k drift + z sqrt(k) size of Lemma 3.19 for C_1 + ... + C_k, and its tail bound.

    If |C_i| <= size and E[C_i | past] <= drift, then P[sum C_i > threshold] <= e^(-z^2 / 2).

    This is Hoeffding's form, for C_i within a range of length 2 size; Azuma's, with |C_i - E C_i|
    <= 2 size, would give e^(-z^2 / 8).

    >>> round(azuma(3.0, times=100, size=0.1, drift=0.005).probability, 15)
    0.011108996538242

    Args:
        deviations: The z of the lemma; finite, > 0.
        times: The number of variables, an integer from 1 to 10^15.
        size: The bound on each |C_i|; finite, >= 0.
        drift: The bound on each conditional mean E[C_i | past]; finite, of at most `size` in
            absolute value.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Lemma 3.19]
    """
    deviations, times = check.positive("deviations", deviations), check.times(times, least=1)
    size, drift = check.nonnegative("size", size), check.finite("drift", drift)
    if not abs(drift) <= size:
        raise DomainError(
            "drift",
            drift,
            f"at most the size {size!r} in absolute value: no variable has another mean",
        )
    with decimal.localcontext(decimal_context(80)):
        score = Decimal(deviations)
        reach = score * Decimal(times).sqrt() * Decimal(size)
        # A negative drift may cancel nearly all of the sum, and most of its correct digits.
        threshold = times * Decimal(drift) + reach * (1 + Decimal("1e-70"))
        return Deviation(
            float_above(threshold), float_above((-min(score * score / 2, Decimal(10**6))).exp())
        )


class HasLower(Protocol):
    """A number with a proved lower end, such as a `Bound`."""

    @property
    def lower(self) -> SupportsFloat:
        """A proved lower bound on the number."""
        ...


@runtime_checkable
class HasTradeoff(Protocol):
    """A guarantee, or a profile of a composition, that has a trade-off function."""

    def tradeoff(self, alpha: float, /) -> HasLower:
        """The smallest type II error at type I error `alpha`, for both orders of the pair."""
        ...


@dataclass(frozen=True)
class Promise(Card):
    """The bounds of a guarantee on a person's expected utility, for utilities in [0,
    utility_range].

    Args:
        guarantee: The privacy guarantee of the mechanism.
        utility_range: The largest utility; infinite only if the guarantee has delta 0.
    """

    guarantee: HasTradeoff
    utility_range: float

    def expected(self, without: float) -> Bound:
        """The range of the expected utility, given that it is `without` on a neighboring data set.

        For utilities u in [0, B] and the trade-off function f it is B [f(1 - m / B), 1 - f(m / B)],
        since u / B is a randomized test. No smaller interval holds for every such mechanism. For
        pure guarantees and unbounded utilities it is [e^-epsilon m, e^epsilon m].

        Args:
            without: The expected utility m on one of the two data sets, in [0, utility_range].

        Raises:
            DomainError: If `without` is outside [0, utility_range].
        """
        mean = check.nonnegative("without", without)
        if not mean <= self.utility_range:
            raise DomainError("without", without, f"a number in [0, {self.utility_range!r}]")
        if self.utility_range == math.inf:
            return self._unbounded(mean)
        share = mean / self.utility_range
        # The quotient is rounded, and both ends increase with it.
        low, high = max(0.0, down(share)), min(1.0, up(share))
        lower = float(self.guarantee.tradeoff(min(1.0, up(1.0 - low))).lower) * self.utility_range
        upper = (1.0 - float(self.guarantee.tradeoff(high).lower)) * self.utility_range
        return Bound(max(0.0, down(lower)), min(self.utility_range, up(up(upper))))

    def _unbounded(self, mean: float) -> Bound:
        epsilon = _pure_epsilon(self.guarantee)
        factor = (
            math.exp(min(epsilon, 709.0)) * (1.0 + 8 * UNIT_ROUNDOFF)
            if epsilon < 709.0
            else math.inf
        )
        upper = up(mean * factor) if mean > 0.0 else 0.0
        return Bound(max(0.0, down(mean * math.exp(-epsilon) * (1.0 - 8 * UNIT_ROUNDOFF))), upper)


def promise(profile: HasTradeoff, *, utility_range: float) -> Promise:
    """The bounds that a guarantee puts on expected utilities; `.expected(m)` evaluates them.

    Under pure epsilon-DP the mean of a nonnegative utility changes by a factor of e^epsilon at
    most. With delta > 0 the utility must be bounded, since an event of probability delta can have
    any utility.

    >>> from dpcompose.guarantee.approximate import ApproximateDP
    >>> bound = promise(ApproximateDP(0.5, delta=1e-3), utility_range=1.0).expected(0.3)
    >>> round(bound.lower, 12), round(bound.upper, 12)
    (0.181352667254, 0.49561638121)

    Args:
        profile: An `ApproximateDP`, a `GaussianTradeoff`, or a composition's profile.
        utility_range: The largest utility; > 0, infinite only if the guarantee has delta 0.

    Raises:
        DomainError: If utility_range is not a number > 0, or `profile` has no trade-off function.
        UnsupportedError: If utility_range is infinite and the guarantee is not pure.

    Reference: [DworkRoth2014, Section 2.3.1]
    """
    largest = check.real("utility_range", utility_range)
    if not largest > 0.0:
        raise DomainError("utility_range", utility_range, "a number > 0")
    if not isinstance(profile, HasTradeoff):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "profile", profile, "a guarantee with a trade-off function, such as ApproximateDP"
        )
    if largest == math.inf and not _pure_epsilon(profile) < math.inf:
        raise UnsupportedError(
            "the promise about an unbounded utility",
            "with delta > 0 an event of probability delta may be worth anything",
            "State a finite utility_range, or a pure guarantee",
        )
    return Promise(profile, largest)


def _pure_epsilon(guarantee: HasTradeoff) -> float:
    """The epsilon of a guarantee with delta 0; infinite for any other guarantee."""
    return (
        guarantee.epsilon
        if isinstance(guarantee, ApproximateDP) and guarantee.delta == 0.0
        else math.inf
    )


def gaussian_noise(epsilon: float, *, delta: float) -> float:
    """The noise scale sqrt(2 log(1.25 / delta)) / epsilon of Theorem 3.22, for l2 sensitivity 1;
    rounded up.

    Gaussian noise of a larger sigma is (epsilon, delta)-DP for 0 < epsilon < 1.

    The smallest valid sigma is `calibrate(Gaussian, epsilon=0.5, delta=1e-5)`: 7.0318 instead of
    9.6896. At epsilon 10 the formula is false.

    >>> round(gaussian_noise(0.5, delta=1e-5), 4)
    9.6896

    Args:
        epsilon: The epsilon of the guarantee, in nats, in (0, 1).
        delta: The delta of the guarantee, in (0, 1).

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Theorem 3.22]
    """
    epsilon, delta = (
        check.open_probability("epsilon", epsilon),
        check.open_probability("delta", delta),
    )
    logarithm = math.log(1.25) - math.log(delta)
    return up(math.sqrt(2.0 * logarithm) / epsilon * (1.0 + 16 * UNIT_ROUNDOFF))


TIMES = 10_000
SLACK = math.exp(-32.0)


@dataclass(frozen=True)
class Example(Card):
    """The numbers of Example 3.7: 10,000 mechanisms of one epsilon, at a total delta of e^-32.

    Args:
        theorem_3_20: The total epsilon by Theorem 3.20 as printed, an upper bound like the next
            two.
        theorem_3_20_tight: The total epsilon by Theorem 3.20 with the tight mean loss.
        optimum: The smallest total epsilon that holds for all such mechanisms.
        optimum_delta: The smallest total delta at a total epsilon of 1, rounded up.
        corollary_3_21: The epsilon that Corollary 3.21 allows each mechanism for a total of 1,
            rounded down: 1/1600.
        loss_above_1: An upper bound, for every adversary, on the probability that the total loss
            exceeds 1.
        loss_above_1_response: The probability that the total loss of 10,000 randomized responses
            exceeds 1, rounded down.
        loss_above_1_stopping: That probability for an adversary who stops them as soon as the loss
            exceeds 1, rounded down.
    """

    theorem_3_20: float
    theorem_3_20_tight: float
    optimum: float
    optimum_delta: float
    corollary_3_21: float
    loss_above_1: float
    loss_above_1_response: float
    loss_above_1_stopping: float


def example_3_7(epsilon: float = 1 / 801) -> Example:
    """The numbers of Example 3.7, if each of 10,000 databases runs a mechanism with this epsilon.

    The book says that epsilon = 1/801 each suffices for a total loss of 1 except with probability
    e^-32.

    "Bounded by 1 with probability 1 - e^-32" can be read in two ways. As (1, e^-32)-DP, the
    conclusion of Theorem 3.20: the theorem as printed gives 1.0143 at 1/801, and with the tight
    mean loss 1.0065, so neither certifies 1/801. The claim is true nevertheless: the optimum at
    1/801 is 0.8905.

    Literally, that the loss exceeds 1 with probability e^-32 at most, which is more than (1,
    e^-32)-DP: `loss_above_1` is 0.20 e^-32 at 1/801, and within e^-32 up to 1/781. Since (1 - e^(x
    - 1)) P[L > 1] <= delta(x) for every x < 1, it is the least delta(x) / (1 - e^(x - 1)) over the
    x tried. From below: 10,000 randomized responses exceed e^-32 above 1/768, and above 1/776 so
    does an adversary who ends them as soon as the loss is above 1, before it falls again; losses of
    several sizes do so at 1/776 itself (docs/book.md). So this reading is true to 1/781, false from
    1/776 on, and open between.

    >>> example = example_3_7()
    >>> round(example.theorem_3_20, 6), round(example.theorem_3_20_tight, 6), round(example.optimum, 6)
    (1.014347, 1.006545, 0.890468)

    Args:
        epsilon: The epsilon of each mechanism; finite, >= 0.

    Raises:
        DomainError: If epsilon is not a finite number >= 0.

    Reference: [DworkRoth2014, Example 3.7]
    """
    epsilon = check.nonnegative("epsilon", epsilon)
    response, stopping = _responses_above_1(epsilon)
    return Example(
        theorem_3_20=advanced(epsilon, times=TIMES, slack=SLACK).epsilon,
        theorem_3_20_tight=advanced_tight(epsilon, times=TIMES, slack=SLACK).epsilon,
        optimum=homogeneous_epsilon(SLACK, epsilon=epsilon, times=TIMES).upper,
        optimum_delta=homogeneous_delta(1.0, epsilon=epsilon, times=TIMES).upper,
        corollary_3_21=advanced_per_mechanism(1.0, slack=SLACK, times=TIMES),
        loss_above_1=_loss_above_1(epsilon),
        loss_above_1_response=response,
        loss_above_1_stopping=stopping,
    )


def _loss_above_1(epsilon: float) -> float:
    # Every x below 1 gives a bound. At the book's numbers the best x of this grid is within a
    # percent of the optimum.
    if TIMES * Fraction(epsilon) <= 1:
        return 0.0
    most = 1.0
    for part in range(1, 65):
        point = 1.0 - part / 512
        delta = homogeneous_delta(point, epsilon=epsilon, times=TIMES).upper
        most = min(most, up(delta / -math.expm1(point - 1.0) * (1.0 + 8 * UNIT_ROUNDOFF)))
    return most


def _responses_above_1(epsilon: float) -> tuple[float, float]:
    """P[loss > 1] of 10,000 randomized responses, run to the end and stopped above 1; rounded down.

    The loss is epsilon times a random walk. Reflection at `first`, the first level above 1: a walk
    that reaches it and ends r below it mirrors one that ends r above it, and is e^(-r epsilon)
    times as likely.
    """
    if not epsilon > 0.0:
        return 0.0, 0.0
    first = math.floor(1 / Fraction(epsilon)) + 1
    with decimal.localcontext(decimal_context(80)):
        odds = (-Decimal(epsilon)).exp()
        mass, going_on, stopping = 1 / (1 + odds) ** TIMES, Decimal(0), Decimal(0)
        for successes in range(TIMES, -1, -1):
            beyond = 2 * successes - TIMES - first
            if beyond < 0:
                break
            going_on += mass
            stopping += mass * (1 + odds**beyond) if beyond else mass
            mass *= odds * successes / (TIMES - successes + 1)
        return float_below(going_on), float_below(stopping)
