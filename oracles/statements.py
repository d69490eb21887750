"""Statements of the book and of its neighbors, evaluated in ball arithmetic at the working precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

from flint import arb

from oracles import optimal
from oracles.ball import Number, ball, hockey
from oracles.gaussian import upper_tail


def root(function: Callable[[arb], arb], low: Number, high: Number, *, steps: int = 130) -> arb:
    """Where an increasing function changes its sign, by bisection."""
    left, right = ball(low), ball(high)
    assert function(left) < 0 < function(right)
    for _ in range(steps):
        middle = ((left + right) / 2).mid()
        left, right = (left, middle) if function(middle) > 0 else (middle, right)
    return left.union(right)


def theorem_3_20(epsilon: arb, times: int, log_inverse_slack: arb) -> arb:
    """sqrt(2 k ln(1/delta')) epsilon + k epsilon (e^epsilon - 1)."""
    return (2 * times * log_inverse_slack).sqrt() * epsilon + times * epsilon * epsilon.expm1()


def tightened_3_20(epsilon: arb, times: int, log_inverse_slack: arb) -> arb:
    """The same with the true divergence of epsilon-private mechanisms, epsilon tanh(epsilon / 2)."""
    return (2 * times * log_inverse_slack).sqrt() * epsilon + times * epsilon * (epsilon / 2).tanh()


def corollary_3_21(epsilon: arb, times: int, log_inverse_slack: arb) -> arb:
    """epsilon' / (2 sqrt(2 k ln(1/delta')))."""
    return epsilon / (2 * (2 * times * log_inverse_slack).sqrt())


def false_corollary_3_21(epsilon: arb, times: int) -> arb:
    """The delta' above which `times` mechanisms of the corollary's epsilon exceed delta' at `epsilon`."""

    def excess(slack: arb) -> arb:
        each = corollary_3_21(epsilon, times, -slack.log())
        return optimal.pure(epsilon, each.mid(), times) - slack

    return root(excess, ball(99) / 100, ball(9998) / 10000, steps=90)


def simplified_optimum(epsilon: arb, times: int, slack: arb) -> list[arb]:
    """The three branches of Kairouz, Oh and Viswanath's Theorem 3.4 for equal epsilons."""
    drift, square = times * epsilon * (epsilon / 2).tanh(), times * epsilon**2
    middle = (arb(1).exp() + square.sqrt() / slack).log()
    return [times * epsilon, *(drift + (2 * square * log).sqrt() for log in (middle, -slack.log()))]


def group_delta(epsilon: arb, delta: arb, size: int, target: arb) -> arb:
    """Tight delta of a group: the largest phi^size(a) - e^target a, phi the best power of a test at level a.

    phi(a) = min(1, delta + e^epsilon a, 1 - e^-epsilon (1 - delta - a)); the iterate is concave with kinks where an
    iterate meets one of phi's.
    """
    grow = epsilon.exp()
    first, last = (1 - delta) / (1 + grow), 1 - delta

    def power(a: arb) -> arb:
        return (delta + grow * a).min(1 - (1 - delta - a) / grow).min(arb(1))

    def back(y: arb) -> arb:
        return (y - delta) / grow if y <= power(first) else 1 - delta - grow * (1 - y)

    best, levels = arb(0), [arb(0), first, last]
    for _ in range(size):
        for level in levels:
            value = level
            for _ in range(size):
                value = power(value)
            best = best.max(value - target.exp() * level)
        levels = [back(level) for level in levels if level > delta] + levels
    return best


def hockey_stick(upper: Sequence[arb], lower: Sequence[arb], epsilon: arb) -> arb:
    """sum of (P - e^epsilon Q)_+."""
    return sum(
        ((p - epsilon.exp() * q).max(arb(0)) for p, q in zip(upper, lower, strict=True)), arb(0)
    )


def clipped(upper: Sequence[arb], lower: Sequence[arb], epsilon: arb) -> list[arb]:
    """Lemma 3.17 (1): P clipped to e^epsilon Q, what is cut off spread over the slack."""
    grow, cut = epsilon.exp(), hockey_stick(upper, lower, epsilon)
    slack = [(grow * q - p).max(arb(0)) for p, q in zip(upper, lower, strict=True)]
    share = cut / sum(slack, arb(0))
    return [p.min(grow * q) + share * s for p, q, s in zip(upper, lower, slack, strict=True)]


def balanced(upper: Sequence[arb], lower: Sequence[arb], epsilon: arb) -> list[arb]:
    """Lemma 3.17 (2): the first of two distributions within epsilon of each other both ways, sums rebalanced."""
    grow = epsilon.exp()
    first, second = [], []
    for p, q in zip(upper, lower, strict=True):
        high, low = grow * (p + q) / (1 + grow), (p + q) / (1 + grow)
        one, other = (high, low) if p > grow * q else (low, high) if q > grow * p else (p, q)
        first.append(one)
        second.append(other)
    missing = 1 - sum(first, arb(0))
    gap = [
        (b - a if missing > 0 else a - b).max(arb(0)) for a, b in zip(first, second, strict=True)
    ]
    return [a + missing * g / sum(gap, arb(0)) for a, g in zip(first, gap, strict=True)]


def connected_dots(epsilons: Sequence[arb], deltas: Sequence[arb]) -> list[arb]:
    """Masses whose profile interpolates the deltas linearly in a = e^epsilon, from (0, 1) on."""
    nodes, heights = [arb(0), *(epsilon.exp() for epsilon in epsilons)], [arb(1), *deltas]
    slopes = [
        (heights[i + 1] - heights[i]) / (nodes[i + 1] - nodes[i]) for i in range(len(epsilons))
    ]
    after = [*slopes[1:], arb(0)]
    return [
        node * (right - left) for node, left, right in zip(nodes[1:], slopes, after, strict=True)
    ]


def lattice_delta(epsilon: arb, losses: Sequence[arb], masses: Sequence[arb], outside: arb) -> arb:
    """delta of a finite distribution of losses with some mass at infinity."""
    return outside + sum(
        (m * hockey(loss - epsilon) for loss, m in zip(losses, masses, strict=True)), arb(0)
    )


def group_sampled_gaussian(epsilon: arb, size: int, rate: arb, mu: arb) -> arb:
    """The mixture of N(j mu), j binomial, against N(0): their ratio increases."""
    weights = [comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)]

    def ratio(x: arb) -> arb:
        return (
            sum((w * (j * mu * x - (j * mu) ** 2 / 2).exp() for j, w in enumerate(weights)), arb(0))
            - epsilon.exp()
        )

    point = root(ratio, -50, 50, steps=150)
    above = sum((w * upper_tail(point - j * mu) for j, w in enumerate(weights)), arb(0))
    return above - epsilon.exp() * upper_tail(point)
