"""The privacy profile delta(epsilon) of a composition, and its dual, the power of the best test at
each level.

With H(a) = delta(ln a), the larger of both orders of the pair, the largest power at level (type I
error) alpha is

    phi(alpha) = inf over a >= 0 of H(a) + a alpha,    and f = 1 - phi is the trade-off function.

H is convex and decreasing, has slope >= -1, and H(a) = 1 - a + a H(1 / a), because the H of the
other order is that of the complementary test. So a >= 1 is enough: f(alpha) = max(1 - D, S) with

    D = inf over a >= 1 of H(a) + a alpha,    S = sup over a >= 1 of (1 - alpha - H(a)) / a.

Both keep their relative accuracy, D where the power is small, S where the type II error is.

Enclosure, from L_i <= H(a_i) <= U_i at nodes 1 = a_0 < a_1 < ... : U_i at every node bounds D from
above and S from below. Between a_i and a_(i+1), convexity puts H above two straight lines, both
extended: the one from (a_(i-1), U_(i-1)) through (a_i, L_i), and the one from (a_(i+2), U_(i+2))
through (a_(i+1), L_(i+1)). Along a straight line H + a alpha and (1 - alpha - H) / a are monotone
in a, so the extremes over the larger of the two lines are at the nodes, with L_i, or where the
lines meet. That point may be rounded: at any a between the nodes take the smaller of the two lines.
To the right of the true intersection that is the left line. Its value misses the extreme only if
the objective increases along that line, and then the extreme is at the left node. The same holds on
the other side.

Reference: [DongRothSu2022, Proposition 2.12]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcompose import check
from dpcompose.composition.question import PrivacyQuestion
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.loss import Product
from dpcompose.notebook import Listed
from dpcompose.pictured import Card, Plot
from dpcompose.values import UNIT_ROUNDOFF, UNIT_ROUNDOFF as U, Bound, Certificate, down, up


@dataclass(frozen=True)
class Curve(Card):
    """Certified lower and upper ends of a function at several points, in two arrays of one
    shape.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def entries_of(
    name: str, values: ArrayLike, guard: Callable[[str, Any], float]
) -> NDArray[np.float64]:
    """Return the entries of an array of any shape, each checked by `guard` before numpy converts
    it.

    Args:
        name: The name of the argument, for errors.
        values: The array.
        guard: Returns the checked entry, or raises a DomainError.

    Raises:
        DomainError: If an entry is outside its domain, or the array is masked or ragged.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise DomainError(name, values, "no masked array", "Leave the masked entries out")
    try:
        entries = np.asarray(values, dtype=object)
    except ValueError:
        raise DomainError(name, values, "numbers in an array with rows of one length") from None
    elements: list[Any] = entries.ravel().tolist()
    return np.array([guard(name, value) for value in elements], dtype=np.float64).reshape(
        entries.shape
    )


@dataclass(frozen=True)
class Profile(Listed):
    """The privacy profile: certified bounds on delta as a function of epsilon.

    Args:
        question: The question about a composition under one adjacency.
    """

    question: PrivacyQuestion
    plot = Plot("privacy_profile", "trade_off")

    def __call__(self, epsilon: ArrayLike) -> Curve:
        """Return bounds on delta at each entry of an array of epsilons, in nats, of any shape.

        Raises:
            DomainError: If an entry is not a real number.
        """
        points = entries_of("epsilon", epsilon, check.real)
        bounds = self.question.deltas(points.ravel().tolist())
        lower = np.array([bound.lower for bound in bounds]).reshape(points.shape)
        upper = np.array([bound.upper for bound in bounds]).reshape(points.shape)
        return Curve(lower, upper)

    def _in_lines(self) -> tuple[str, list[str]]:
        """Delta at a few epsilons."""
        at = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
        upper = self(at).upper.tolist()
        rows = [
            f"delta <= {most!r} at epsilon = {epsilon:g}"
            for epsilon, most in zip(at, upper, strict=True)
        ]
        return "Profile", rows

    def tradeoff(self, alpha: ArrayLike) -> Curve:
        """Return the smallest type II error at each type I error: f(alpha) = sup over epsilon of 1
        - delta - e^epsilon alpha.

        delta is the larger of both orders of the pair, so f is the convex hull of the smaller of
        the two orders' trade-offs, and its own inverse. Both ends are good relative to f, however
        small it is.

        >>> from dpcompose import Gaussian
        >>> curve = Gaussian(1.0).profile().tradeoff(0.05)
        >>> bool(curve.lower <= 0.7404889771585559 <= curve.upper)
        True

        Args:
            alpha: Type I errors in [0, 1], an array of any shape.

        Raises:
            DomainError: If an entry is outside [0, 1].

        Reference: [DongRothSu2022, Proposition 2.12]
        """
        test = self._test(alpha)
        return Curve(test.error_lower, test.error_upper)

    def power(self, alpha: ArrayLike) -> Curve:
        """Return the largest power (true positive rate) at each level alpha: 1 - f(alpha), accurate
        relative to the power.

        Args:
            alpha: Levels (false positive rates) in [0, 1], an array of any shape.

        Raises:
            DomainError: If an entry is outside [0, 1].
        """
        test = self._test(alpha)
        return Curve(test.power_lower, test.power_upper)

    def _test(self, alpha: ArrayLike) -> BestTest:
        """Return the best test at the levels `alpha`."""
        levels = entries_of("alpha", alpha, check.probability)

        def ends(epsilon: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            curve = self(epsilon)
            return curve.lower, curve.upper

        return best_test(
            levels,
            profile=ends,
            infinite=self._infinite,
            kinks=self._kinks,
            tolerance=self.question.tolerance,
        )

    @cached_property
    def _infinite(self) -> Bound:
        """The probability of an infinite loss."""
        return self.question.delta(math.inf)

    @property
    def _kinks(self) -> tuple[float, ...]:
        """The largest losses in nats, at which the profile has a kink."""
        return tuple(
            product.extremes.upper
            for product in self.question.dominating
            if math.isfinite(product.extremes.upper)
        )


Reals = NDArray[np.float64]
Ends = Callable[[Reals], tuple[Reals, Reals]]
"""Maps epsilons >= 0 to the lower and the upper ends of delta there."""

FARTHEST = 700.0
ROUNDS = 24
_ROUNDING = 16 * U
_NEGLIGIBLE = 1e-13
_TOGETHER = 8
"""The number of nodes of the first grid that are evaluated in one call, from the left."""


@dataclass(frozen=True)
class BestTest:
    """Certified bounds on the power and type II error of the best test at several levels; arrays of
    their shape.

    Args:
        power_lower: Lower end of the power, accurate relative to the power.
        power_upper: Upper end of the power.
        error_lower: Lower end of the type II error, accurate relative to the error.
        error_upper: Upper end of the type II error.
    """

    power_lower: Reals
    power_upper: Reals
    error_lower: Reals
    error_upper: Reals


def best_test(
    alpha: Reals, *, profile: Ends, infinite: Bound, kinks: tuple[float, ...] = (), tolerance: float
) -> BestTest:
    """Return the largest power at each level, over all pairs with this profile, and the smallest
    type II error.

    Args:
        alpha: Levels in [0, 1], any shape.
        profile: Returns bounds on delta, the larger of both orders, at finite epsilons >= 0.
        infinite: The probability of an infinite loss, the limit of delta.
        kinks: Epsilons at which the profile may have kinks, such as the largest loss.
        tolerance: The wanted width, relative to the smaller of power and error; limited by the
            width of the profile.
    """
    levels = np.unique(alpha[(alpha > 0.0) & (alpha < 1.0)])
    # At level 0 only infinite losses are detected; at level 1 everything is.
    nothing = [
        infinite.lower,
        infinite.upper,
        _complement(infinite.upper, -1.0),
        _complement(infinite.lower, 2.0),
    ]
    columns = [np.array([nothing]).T, np.array([[1.0], [1.0], [0.0], [0.0]])]
    if len(levels):
        start = _Nodes.of(levels, profile, kinks)
        columns.insert(1, _refined(start, levels, profile, infinite.lower, tolerance))
    known = np.concatenate([[0.0], levels, [1.0]])
    return BestTest(*(np.hstack(columns)[:, np.searchsorted(known, alpha)] + 0.0))


def _complement(value: float, toward: float) -> float:
    return min(max(math.nextafter(1.0 - value, toward), 0.0), 1.0) if value > 0.0 else 1.0


def _refined(
    nodes: _Nodes, levels: Reals, profile: Ends, infinite: float, tolerance: float
) -> Reals:
    """Return the enclosures after adding nodes where they are widest.

    The rows are the lower and upper ends of the power and of the type II error.
    """
    search = _TestSearch(nodes, levels, infinite, tolerance)
    found = np.array([[0.0], [1.0], [0.0], [1.0]]) * np.ones(len(levels))
    for effort in range(ROUNDS):
        now = search.enclosed()
        best, least = np.maximum(found, now), np.minimum(found, now)
        found = np.array([best[0], least[1], best[2], least[3]])
        more = search.wanted(found, effort)
        if not len(more):
            break
        search = replace(search, nodes=search.nodes.joined(more, profile))
    return found


@dataclass(frozen=True)
class _Nodes:
    """Points of the profile: increasing epsilons from 0, with the lower and upper ends of delta at
    them.
    """

    epsilon: Reals
    lower: Reals
    upper: Reals

    @classmethod
    def of(cls, levels: Reals, profile: Ends, kinks: tuple[float, ...]) -> _Nodes:
        """Return a coarse grid of nodes, up to an epsilon beyond which no level has its optimum.

        That is where a alpha exceeds 1 and (1 - alpha - H) / a can only fall. Where H is negligible
        against alpha and 1 - alpha, only a alpha and (1 - alpha) / a matter, and the upper end of H
        at the node is used beyond it.
        """
        top, half = min(1.0 - math.log(float(levels[0])), FARTHEST), 0.5 * (1.0 - float(levels[-1]))

        def high(epsilon: float) -> bool:
            return float(profile(np.array([epsilon]))[1][0]) > half

        # H is decreasing: a cheap evaluation at epsilon 1 that is already small bounds H at the
        # end.
        while top < FARTHEST and high(min(top - 1.0, 1.0)) and high(top - 1.0):
            top = min(2.0 * top, FARTHEST)
        inside = [kink for kink in kinks if 0.0 < kink < top]
        grid = np.unique(
            np.concatenate([[0.0], np.geomspace(1e-6, top, 36), np.linspace(0.0, top, 25), inside])
        )
        lower, upper = np.zeros(len(grid)), np.ones(len(grid))
        negligible = _NEGLIGIBLE * min(float(levels[0]), 1.0 - float(levels[-1]))
        for start in range(0, len(grid), _TOGETHER):
            if start and upper[start - 1] <= negligible:
                upper[start:] = upper[start - 1]
                break
            asked = slice(start, start + _TOGETHER)
            lower[asked], upper[asked] = profile(grid[asked])
        return cls(grid, lower, upper)

    def joined(self, epsilon: Reals, profile: Ends) -> _Nodes:
        """Return these nodes together with the profile at more epsilons."""
        lower, upper = profile(epsilon)
        every = np.concatenate([self.epsilon, epsilon])
        order = np.argsort(every)
        joined = (
            np.concatenate([old, new])[order]
            for old, new in ((self.lower, lower), (self.upper, upper))
        )
        return _Nodes(every[order], *joined)

    def corners(self, infinite: float) -> tuple[Reals, Reals]:
        """Return lower bounds on the profile between nodes: the epsilons where the two supporting
        lines of each cell meet, and the last line meets the limit, with the lines' values there.
        """
        at, low, high = self.epsilon, self.lower, self.upper
        # By the symmetry of H, the node to the left of 0 mirrors the first node to the right.
        mirrored = -math.expm1(-at[1]) + math.exp(-at[1]) * high[1]
        before, above = np.concatenate([[-at[1]], at[:-1]]), np.concatenate([[mirrored], high[:-1]])
        slope = np.maximum(above - low, 0.0) / -np.expm1(before - at)
        width = np.expm1(np.diff(at))
        falls, rises = slope[:-1] * width, np.zeros(len(at) - 1)
        rises[:-1] = (
            np.maximum(low[1:-1] - high[2:], 0.0) * -np.expm1(-np.diff(at))[:-1] / width[1:]
        )
        proper = falls > rises
        share = np.where(
            proper, (low[:-1] - low[1:] - rises) / np.where(proper, falls - rises, 1.0), 0.0
        )
        share = np.clip(share, 0.0, 1.0)
        lines = np.minimum(low[:-1] - falls * share, low[1:] + rises * (1.0 - share))
        # If rounding errors make the lines cross on the wrong side, only the monotonicity of H is
        # used.
        values = np.where(proper, lines - 64 * U * (low[:-1] + falls + rises), low[1:])
        points = at[:-1] + np.log1p(share * width)
        if slope[-1] > 0.0:
            points = np.append(
                points, at[-1] + math.log1p(max(low[-1] - infinite, 0.0) / slope[-1])
            )
            values = np.append(values, infinite)
        return points, np.maximum(values, infinite)


@dataclass(frozen=True)
class _TestSearch:
    """The enclosures at all levels, computed from the nodes, and the choice of further nodes."""

    nodes: _Nodes
    levels: Reals
    infinite: float
    tolerance: float

    def _lower_boundary(self) -> tuple[Reals, Reals, Reals]:
        """Return the epsilons where D or S can be extreme, with the objectives of D and of S there;
        one row for each level.
        """
        corners, low = self.nodes.corners(self.infinite)
        at, low = (
            np.concatenate([self.nodes.epsilon, corners]),
            np.concatenate([self.nodes.lower, low]),
        )
        alpha, ratio = self.levels[:, None], np.exp(np.minimum(at, FARTHEST + 8.0))
        steep = (low + ratio * alpha * (1.0 - _ROUNDING)) * (1.0 - _ROUNDING)
        return at, steep, ((1.0 - alpha) * (1.0 + _ROUNDING) - low) / ratio * (1.0 + _ROUNDING)

    def enclosed(self) -> Reals:
        """Return the enclosures, with rows: lower and upper end of the power, lower and upper end
        of the type II error.
        """
        alpha, ratio, high = self.levels[:, None], np.exp(self.nodes.epsilon), self.nodes.upper
        _, steep, shallow = self._lower_boundary()
        power_lower, error_upper = (
            np.maximum(np.min(steep, axis=1), 0.0),
            np.maximum(np.max(shallow, axis=1), 0.0),
        )
        power_upper = np.min(high + ratio * alpha * (1.0 + _ROUNDING), axis=1) * (1.0 + _ROUNDING)
        left = ((1.0 - alpha) * (1.0 - _ROUNDING) - high) / ratio * (1.0 - _ROUNDING)
        error_lower = np.maximum(np.max(left, axis=1), 0.0)
        ends = (
            np.minimum(power_lower, np.nextafter(1.0 - error_upper, -1.0)),
            np.minimum(power_upper, np.nextafter(1.0 - error_lower, 2.0)),
            np.maximum(error_lower, np.nextafter(1.0 - power_upper, -1.0)),
            np.maximum(error_upper, np.nextafter(1.0 - power_lower, 2.0)),
        )
        return np.clip(np.array(ends), 0.0, 1.0)

    def wanted(self, enclosure: Reals, effort: int) -> Reals:
        """Return the epsilons of further nodes for the levels whose enclosure is wider than the
        tolerance.

        Args:
            enclosure: The enclosures, rows as in `enclosed`.
            effort: The number of refinements so far.
        """
        power, error = enclosure[:2], enclosure[2:]
        gap = np.minimum(np.ptp(power, axis=0), np.ptp(error, axis=0))
        at, steep, shallow = self._lower_boundary()
        rising = 1.0 - np.min(steep, axis=1) >= np.max(shallow, axis=1)
        worst = at[np.where(rising, np.argmin(steep, axis=1), np.argmax(shallow, axis=1))]
        asked: list[float] = []
        for index in np.flatnonzero(
            gap > self.tolerance * np.minimum(power.max(axis=0), error.max(axis=0))
        ):
            near, noise = self._modeled(
                float(self.levels[index]), rising=bool(rising[index]), effort=effort
            )
            # While the two ends are far apart, refining the upper one is still worth a few rounds.
            if float(gap[index]) > 8.0 * noise or effort < 3:
                asked.extend([*near, float(worst[index])])
                if not power[0, index] > 0.5 * power[1, index]:
                    asked.append(self._middle(float(worst[index])))
        points = np.unique(np.array([point for point in asked if 0.0 < point < FARTHEST]))
        distance = np.abs(self.nodes.epsilon[:, None] - points[None, :]).min(
            axis=0, initial=math.inf
        )
        return points[distance > 1e-9 * points + 1e-14]

    def _middle(self, point: float) -> float:
        """Return the middle of the cell that contains `point`; a node there halves the cell whose
        lower lines are loose.
        """
        at = self.nodes.epsilon
        right = min(max(int(np.searchsorted(at, point)), 1), len(at) - 1)
        return float(at[right - 1] + at[right]) / 2.0

    def _modeled(self, alpha: float, *, rising: bool, effort: int) -> tuple[list[float], float]:
        """Return epsilons around the modeled optimum at level `alpha`, and the uncertainty of the
        objective at the best node.

        The model is a parabola through the logarithms of the objective at three nodes; the epsilons
        are its vertex and a point on either side.

        Args:
            alpha: The level.
            rising: Whether D determines the power; if False, S.
            effort: The number of refinements so far.
        """
        at, ratio, delta = self.nodes.epsilon, np.exp(self.nodes.epsilon), self.nodes.upper
        value = (
            np.log(delta + ratio * alpha)
            if rising
            else at - np.log(np.maximum(1.0 - alpha - delta, 1e-300))
        )
        here = min(max(int(np.argmin(value)), 1), len(at) - 2)
        nearby = slice(here - 1, here + 2)
        errors = (delta - self.nodes.lower)[nearby]
        noise = float((errors if rising else errors / ratio[nearby])[1])
        first, second, third = (float(point) for point in at[nearby])
        left, right = (float(step) for step in np.diff(value[nearby]) / np.diff(at[nearby]))
        bend = (right - left) / (third - first)
        if not bend > 0.0:
            return [], noise
        vertex = min(max((first + second) / 2.0 - left / (2.0 * bend), first), third)
        steep = -float(value[here]) if rising else float(value[here])
        relative = noise * math.exp(min(steep, FARTHEST))
        step = math.sqrt(
            max(self.tolerance / 4.0, 4.0 * relative, 10.0 ** (-3 * effort - 3)) / bend
        )
        points = [vertex - step, vertex, vertex + step]
        # If the best node is close to one end of a steep bracket, the parabola converges slowly, so
        # the longer part is halved too.
        far, end = (
            (first, value[here - 1])
            if second - first > third - second
            else (third, value[here + 1])
        )
        if abs(far - second) > 0.9 * (third - first) and end - value[here] > 0.1:
            points.append((far + second) / 2.0)
        return points, noise


# The gain of an attacker: the best test, the best guess and the best reconstruction from the
# answers.


_TESTED = Certificate("best test against the certified profile", unit="relative power")


@dataclass(frozen=True)
class Risk(Card):
    """The success of the best attacker who sees every answer and knows the data of all other
    people.

    The attacker distinguishes the data set with the person's data from the one without it (or with
    other data, under replacement), in the order that is better for the attacker. Each bound
    contains the supremum over all mechanisms with the stated guarantees and over all attackers.

    Args:
        prior: The probability of the first data set before the answers; for a reconstruction, of
            guessing the secret right.
        false_positive_rate: The accepted probability of naming as a member someone who is not.
        true_positive_rate: The probability of then naming a member as one: 1 -
            f(false_positive_rate).
        advantage: The largest difference of the two rates, delta(0).
        bayes_error: The smallest probability of naming the wrong data set, p (1 - delta(ln((1 - p)
            / p))) with p the smaller of prior and 1 - prior; its lower end is the guarantee.
        reconstruction: The largest probability of reconstructing the secret: 1 - f(prior).
    """

    prior: float
    false_positive_rate: float
    true_positive_rate: Bound
    advantage: Bound
    bayes_error: Bound
    reconstruction: Bound


def risk(profile: Profile, *, prior: float, false_positive_rate: float) -> Risk:
    """Return certified bounds on the success of an attacker who sees answers with this privacy
    profile.

    >>> from dpcompose import Gaussian
    >>> found = risk(Gaussian(1.0).profile(), prior=0.3, false_positive_rate=0.001)
    >>> found.true_positive_rate.contains(0.018298468405656598), found.bayes_error.contains(0.2530043786236346)
    (True, True)

    Args:
        profile: The curve delta(epsilon).
        prior: The probability of the first data set, or of guessing the secret, before the answers;
            in [0, 1].
        false_positive_rate: The false positive rate of the attack, in [0, 1].

    Raises:
        DomainError: If a number is outside [0, 1].

    Reference: [DongRothSu2022, Definition 2.1]; reconstruction: [BalleCherubinHayes2022, Theorem 2]
    """
    prior = check.probability("prior", prior)
    false_positive_rate = check.probability("false_positive_rate", false_positive_rate)
    if not isinstance(profile, Profile):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("profile", profile, "a composition's profile")
    powers = profile.power([false_positive_rate, prior])
    return Risk(
        prior=prior,
        false_positive_rate=false_positive_rate,
        true_positive_rate=_at(powers, 0),
        advantage=_named(profile(0.0), "delta at epsilon 0"),
        bayes_error=_bayes_error(profile, prior),
        reconstruction=_at(powers, 1),
    )


def _at(curve: Curve, index: int) -> Bound:
    """Return the bound at one index of a curve."""
    return Bound(float(curve.lower[index]), float(curve.upper[index]), _TESTED)


def _named(point: Curve, method: str) -> Bound:
    """Return the only bound of a curve, with `method` as its certificate."""
    return Bound(float(point.lower), float(point.upper), Certificate(method))


def _bayes_error(profile: Profile, prior: float) -> Bound:
    """Return bounds on the minimum of prior * (type II error) + (1 - prior) * (type I error) over
    all tests.

    Exchanging prior and 1 - prior exchanges the two orders of the pair.
    """
    rarer = min(prior, 1.0 - prior)
    if rarer == 0.0:
        return Bound(0.0, 0.0, Certificate("nothing to guess"))
    # For a rate below 1e-300 the inverse may overflow, and 1 - rate rounds to 1.
    point = math.log1p((1.0 - 2.0 * rarer) / rarer) if rarer > 1e-300 else -math.log(rarer)
    slack = 0.0 if rarer == 0.5 else 16 * UNIT_ROUNDOFF * (1.0 + point)
    delta = profile(np.array([point + slack, point - slack]))
    lower, upper = rarer * (1.0 - float(delta.upper[1])), rarer * (1.0 - float(delta.lower[0]))
    return Bound(
        max(0.0, down(down(lower))),
        min(rarer, up(up(upper))),
        Certificate("profile at the prior's odds"),
    )


# The probability that the privacy loss is above epsilon, P[L > epsilon], in both directions.
#
# With a = e^epsilon and H(a) = delta(ln a) = E_P[(1 - a e^-L)_+], convex and falling, the right derivative is
# H'(a+) = -E_P[e^-L; L > ln a], so that P[L > epsilon] = delta(epsilon) - a H'(a+). For e0 < epsilon < e1 the slope lies
# between two secants, and a / (e^e1 - a) = 1 / expm1(e1 - epsilon):
#
# (H(a) - H(e^e1)) / expm1(e1 - epsilon)  <=  -a H'(a+)  <=  (H(e^e0) - H(a)) / -expm1(e0 - epsilon).
#
# Each secant takes the certified end of either delta that keeps the inequality; the best of several distances is kept.


FINEST = 1e-13
"""The relative width of the deltas that are computed for the secants."""
_DISTANCES = tuple(10.0**-place for place in range(1, 9))
_SECANT_ROUNDING = 16 * UNIT_ROUNDOFF
_METHOD = Certificate("secants of the certified profile", unit="relative probability")


@dataclass(frozen=True)
class LossAbove:
    """Bounds on P[L > epsilon] for the privacy loss L of the pair of neighbors that attains the
    privacy profile.

    P is the distribution of the answers with the record, Q the one without it.

    Args:
        epsilon: The threshold in nats.
        removed: The probability that ln P / Q exceeds epsilon for answers drawn from P.
        added: The probability that ln Q / P exceeds epsilon for answers drawn from Q.
    """

    epsilon: float
    removed: Bound
    added: Bound

    @property
    def largest(self) -> Bound:
        """Bounds on the larger of `removed` and `added`."""
        return Bound(
            max(self.removed.lower, self.added.lower),
            max(self.removed.upper, self.added.upper),
            _METHOD,
        )


def loss_above(question: PrivacyQuestion, epsilon: float) -> LossAbove:
    """Return bounds on the probability of a loss above `epsilon`, in both directions.

    Raises:
        UnsupportedError: If no single pair attains the profile, or a proof is requested.
    """
    if not question.tight or question.tight_alone or question.asking.proof:
        raise UnsupportedError(
            "the probability of a loss above epsilon",
            "the losses only dominate those of the mechanism: they bound delta, not the probability of a loss",
            "Ask delta(epsilon=...), which holds for every pair; or ask without proof and with Orientation.SAME",
        )
    both = [_above(product, epsilon) for product in question.dominating[:2]]
    return LossAbove(epsilon, both[0], both[-1])


def _above(product: Product, epsilon: float) -> Bound:
    """Return bounds on the probability of a loss above `epsilon` from secants of the profile of one
    direction.
    """

    def at(point: float) -> Bound:
        return product.delta(point, tolerance=FINEST)

    if math.isinf(epsilon):
        here = at(epsilon)
        return Bound(here.lower, here.upper, _METHOD) if epsilon > 0 else Bound(1.0, 1.0, _METHOD)
    here, least, most = at(epsilon), 0.0, math.inf
    for distance in _DISTANCES:
        size = distance * max(1.0, abs(epsilon))
        left, right = epsilon - size, epsilon + size
        if not left < epsilon < right:
            break
        fall = (here.lower - at(right).upper) / math.expm1(right - epsilon)
        rise = (at(left).upper - here.lower) / -math.expm1(left - epsilon)
        least, most = (
            max(least, fall * (1 - _SECANT_ROUNDING)),
            min(most, rise * (1 + _SECANT_ROUNDING)),
        )
    return Bound(
        min(max(down(here.lower + least), 0.0), 1.0), min(up(here.upper + most), 1.0), _METHOD
    )
