"""Group privacy: the guarantee for k people that a guarantee for one person implies (Theorem 2.2)."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.guarantee.approximate import ApproximateDP, promise_of
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, down, rounded_down, rounded_up, up

LARGEST = 10**5
_CERTIFICATE = Certificate("trade-off function, iterated", unit="relative delta")


def group_printed(promise: ApproximateDP, *, size: int) -> ApproximateDP:
    """(k epsilon, k e^((k - 1) epsilon) delta), the textbook guarantee for k = `size` people.

    Both numbers are rounded up; delta is at most 1.

    For delta = 0 it is Theorem 2.2; for delta > 0 it is looser than `group_chained`.

    >>> group_printed(ApproximateDP(0.5), size=3)
    ApproximateDP(epsilon=1.5, delta=0.0)

    Args:
        promise: The (epsilon, delta) guarantee for neighbors that differ in one person.
        size: The number of people, an integer from 1 to 10^5.

    Raises:
        DomainError: If promise is not an ApproximateDP, or size not an integer from 1 to 10^5.

    Reference: [DworkRoth2014, Theorem 2.2]
    """
    promise, size = promise_of(promise), _size(size)
    return _scaled(promise, size, math.log(size) + (size - 1) * promise.epsilon)


def group_chained(promise: ApproximateDP, *, size: int) -> ApproximateDP:
    """The guarantee at k epsilon for groups of k = `size` people, with the smallest delta.

    It is (k epsilon, delta (1 + e^epsilon + ... + e^((k - 1) epsilon))).

    Both numbers are rounded up; delta is at most 1.

    The sum is (e^(k epsilon) - 1) / (e^epsilon - 1). At k epsilon no smaller delta holds for every
    (epsilon, delta)-DP mechanism; at smaller epsilons `group_delta` is far smaller.

    >>> round(group_chained(ApproximateDP(0.5, delta=1e-6), size=3).delta * 1e6, 12)
    5.367003099159

    Args:
        promise: The (epsilon, delta) guarantee for neighbors that differ in one person.
        size: The number of people, an integer from 1 to 10^5.

    Raises:
        DomainError: If promise is not an ApproximateDP, or size not an integer from 1 to 10^5.

    Reference: [Vadhan2017, Lemma 2.2]
    """
    promise, size = promise_of(promise), _size(size)
    # sum = e^((k - 1) epsilon) (1 + e^-epsilon + ...) = e^((k - 1) epsilon) expm1(-k epsilon) / expm1(-epsilon)
    if promise.epsilon < 1e-300:
        terms = float(size)
    else:
        terms = math.expm1(-size * promise.epsilon) / math.expm1(-promise.epsilon)
    return _scaled(promise, size, math.log(terms) + (size - 1) * promise.epsilon)


def group_delta(target_epsilon: float, *, promise: ApproximateDP, size: int) -> Bound:
    """The smallest delta at `target_epsilon` for k = `size` people, over all (epsilon, delta)-DP
    mechanisms.

    With phi = 1 - f, where f is the trade-off function of (epsilon, delta)-DP, delta_k is the
    largest phi(phi(...phi(a))) - e^target a over a in [0, 1]. The lower end evaluates this at a
    kink. The upper end is a split of the target, delta_k(target) <= sum_i e^(e_1 + ... + e_(i - 1))
    delta(e_i) with e_1 + ... + e_k = target, which holds for every split, with equality if the e_i
    are the logarithms of the slopes of phi along the iteration from that kink.

    >>> group_delta(1.0, promise=ApproximateDP(0.5, delta=1e-6), size=3).contains(0.2449220662063174)
    True

    Args:
        target_epsilon: In nats; finite, >= 0.
        promise: The (epsilon, delta) guarantee for neighbors that differ in one person.
        size: The number of people, an integer from 1 to 10^5.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DongRothSu2022, Theorem 2.14]
    """
    target, size = check.nonnegative("target_epsilon", target_epsilon), _size(size)
    promise = promise_of(promise)
    if promise.epsilon == math.inf or promise.delta == 1.0:
        return Bound(1.0, 1.0, _CERTIFICATE)
    if promise.epsilon == 0.0:
        total = min(Fraction(1), size * Fraction(promise.delta))
        return Bound(rounded_down(total), rounded_up(total), _CERTIFICATE)
    candidates = [_kink(target, promise, size), _capped(target, promise, size)]
    upper = min(_sum_of_split(split, promise) for _, split in candidates)
    lower = max(_gain(start, target, promise, size) for start, _ in candidates)
    return Bound(min(max(0.0, down(lower)), upper), upper, _CERTIFICATE)


def _size(size: int) -> int:
    number = check.count("size", size, least=1)
    if number > LARGEST:
        raise DomainError("size", size, f"an integer from 1 to {LARGEST}")
    return number


def _scaled(promise: ApproximateDP, size: int, logarithm: float) -> ApproximateDP:
    epsilon = (
        rounded_up(size * Fraction(promise.epsilon)) if promise.epsilon < math.inf else math.inf
    )
    if promise.delta == 0.0 or size == 1:
        return ApproximateDP(epsilon, delta=promise.delta)
    logarithm += math.log(promise.delta)
    error = UNIT_ROUNDOFF * (32.0 + 8.0 * (size * promise.epsilon - math.log(promise.delta)))
    return ApproximateDP(
        epsilon,
        delta=min(1.0, up(math.exp(min(logarithm + error, 1.0)))) if logarithm < 1.0 else 1.0,
    )


def _kink(target: float, promise: ApproximateDP, size: int) -> tuple[float, list[float]]:
    # The kink of the iterated blow-up where its slope passes e^target, and the logarithms of slopes along the way.
    epsilon = promise.epsilon
    inside = Fraction(target) < size * Fraction(epsilon)
    steep = min(size - 1, math.floor((target / epsilon + size) / 2.0)) if inside else size
    start = _preimage(_middle(promise), steep, promise) if inside else 0.0
    if start > 0.0:
        split = [epsilon] * (size - 1) + [0.0]
        split[steep:] = [-epsilon] * (size - steep)
        return start, _completed(split, steep, target)
    # The slope at 0 is below e^target: one e_i may be as large as needed, since delta(e) is delta
    # for every e >= epsilon.
    point, slopes = 0.0, list[float]()
    for _ in range(size):
        slopes.append(epsilon if point < _middle(promise) else -epsilon)
        point = _step(point, promise)
    return 0.0, _completed(slopes, 0, target)


def _capped(target: float, promise: ApproximateDP, size: int) -> tuple[float, list[float]]:
    # The point where the iterated blow-up just reaches 1: 1 - delta before the last step.
    point, slopes, turn = 1.0 - promise.delta, [0.0], _step(_middle(promise), promise)
    for _ in range(size - 1):
        beyond = point > turn
        slopes.append(-promise.epsilon if beyond else promise.epsilon)
        point = _back(point, promise, beyond)
        if not 0.0 < point < 1.0:
            break
    slopes += [promise.epsilon] * (size - len(slopes))
    return min(max(point, 0.0), 1.0), _completed(slopes[::-1], size - 1, target)


def _completed(split: list[float], free: int, target: float) -> list[float]:
    # The free e_i makes the sum equal to the target or slightly less, which is safe since a profile
    # is decreasing.
    others = Counter(split[:free] + split[free + 1 :])
    remaining = Fraction(target) - sum(
        (Fraction(slope) * times for slope, times in others.items()), Fraction(0)
    )
    nearest = float(remaining)
    split[free] = down(nearest) if Fraction(nearest) > remaining else nearest
    return split


def _middle(promise: ApproximateDP) -> float:
    # The kink where the slope of phi changes from e^epsilon to e^-epsilon: (1 - delta) / (1 +
    # e^epsilon).
    return (1.0 - promise.delta) * math.exp(-promise.epsilon) / (1.0 + math.exp(-promise.epsilon))


def _gain(start: float, target: float, promise: ApproximateDP, size: int) -> float:
    # phi^k(a) - e^target a, rounded down.
    lower = _iterated(start, promise, size)
    if start == 0.0:
        return lower
    logarithm = math.log(start)
    return lower - math.exp(min(target + logarithm, 1.0)) * (
        1.0 + UNIT_ROUNDOFF * (32.0 + 4.0 * (target - logarithm))
    )


def _preimage(point: float, steps: int, promise: ApproximateDP) -> float:
    # The start from which `steps` steps of a -> delta + e^epsilon a lead to the point.
    decay = math.exp(-steps * promise.epsilon)
    added = (
        math.expm1(-steps * promise.epsilon)
        / math.expm1(-promise.epsilon)
        * math.exp(-promise.epsilon)
    )
    return decay * point - promise.delta * added


def _back(point: float, promise: ApproximateDP, beyond: bool) -> float:
    if beyond:
        return 1.0 - promise.delta - math.exp(min(promise.epsilon, 700.0)) * (1.0 - point)
    return (point - promise.delta) * math.exp(-promise.epsilon)


def _step(point: float, promise: ApproximateDP) -> float:
    # phi, with its third term written as a sum of positive numbers.
    if point + promise.delta >= 1.0:
        return 1.0
    shallow = -math.expm1(-promise.epsilon) + math.exp(-promise.epsilon) * (promise.delta + point)
    # Above e^700 only a lower bound of the line delta + e^epsilon alpha is computed, which is the
    # end needed here.
    return min(1.0, promise.delta + math.exp(min(promise.epsilon, 700.0)) * point, shallow)


def _iterated(start: float, promise: ApproximateDP, size: int) -> float:
    # phi is increasing: a value rounded down stays below.
    point = start
    for _ in range(size):
        point = _step(point, promise) * (1.0 - 16 * UNIT_ROUNDOFF)
    return point


def _sum_of_split(split: list[float], promise: ApproximateDP) -> float:
    # sum_i e^(e_1 + ... + e_(i - 1)) delta(e_i), rounded up, the outermost step first; delta(e) is that of the class.
    slopes = np.array(split[::-1])
    before = np.concatenate(([0.0], np.cumsum(slopes)[:-1]))
    if float(np.max(before)) > 700.0:
        return 1.0
    epsilon, delta = promise.epsilon, promise.delta
    # delta(e) = delta + (e^epsilon - e^e) (1 - delta) / (1 + e^epsilon) for e between -epsilon and epsilon.
    between = np.clip(slopes, -epsilon, epsilon)
    falling = delta - np.expm1(between - epsilon) * ((1.0 - delta) / (1.0 + math.exp(-epsilon)))
    values = np.where(slopes >= epsilon, delta, falling)
    below = -np.expm1(np.minimum(slopes, 0.0)) + np.exp(np.minimum(slopes, 0.0)) * delta
    values = np.where(slopes < -epsilon, below, values)
    total = float(np.sum(np.exp(before) * values))
    size, reach = len(split), float(np.sum(np.abs(slopes)))
    # The partial sums of slopes err by size reach u at most, the pairwise sum by 60 u.
    error = UNIT_ROUNDOFF * (96.0 + 2.0 * size * (1.0 + reach) + 8.0 * epsilon)
    return min(1.0, up(total * (1.0 + error) + size * 5e-324))
