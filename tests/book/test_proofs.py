"""docs/proofs.md: the constructions of the proofs on random pairs, in exact fractions; exponentials in balls."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dpcompose import book
from dpcompose.divergence import hockey_stick, one_sided_witness, symmetric_witness
from dpcompose.guarantee import ApproximateDP

PAGE = (Path(__file__).parents[2] / "docs" / "proofs.md").read_text("utf-8")
Masses = list[Fraction]


def _code() -> dict[str, Any]:
    """The functions of the page."""
    names: dict[str, Any] = {}
    for text in re.findall(r"^```python\n(?!>>>)(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(text, names)
    return names


CODE = _code()
excess: Callable[[Masses, Masses, Fraction], Fraction] = CODE["excess"]
distance: Callable[[Masses, Masses], Fraction] = CODE["distance"]
within: Callable[[Masses, Masses, Fraction], bool] = CODE["within"]


def _masses(rng: random.Random, size: int) -> Masses:
    """Masses with small denominators, some of them 0."""
    while not any(weights := [rng.choice((0, 0, 1, 2, 3, 7)) for _ in range(size)]):
        pass
    return [Fraction(weight, sum(weights)) for weight in weights]


def pairs(count: int, seed: int) -> Iterator[tuple[Masses, Masses, Fraction]]:
    rng = random.Random(seed)
    for _ in range(count):
        size = rng.randint(1, 6)
        a = rng.choice((Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5)))
        first = _masses(rng, size)
        yield first, rng.choice((first, _masses(rng, size), _masses(rng, size))), a


def test_part_1_is_the_closest_distribution_below_a_times_z() -> None:
    for y, z, a in pairs(400, 1):
        near = CODE["cut"](y, z, a)
        assert sum(near) == 1 and min(near) >= 0 and within(near, z, a)
        assert distance(y, near) == excess(y, z, a) == hockey_stick(y, z, ratio=a).value
        assert distance(y, near) == one_sided_witness(y, z, ratio=a).distance


def test_part_2_is_the_closest_pair() -> None:
    for y, z, a in pairs(400, 2):
        first, second = CODE["meet"](y, z, a)
        assert sum(first) == sum(second) == 1 and min(*first, *second) >= 0
        assert within(first, second, a) and within(second, first, a)
        least = max(excess(y, z, a), excess(z, y, a)) / (1 + a)
        assert distance(y, first) == distance(z, second) == least
        assert least == symmetric_witness(y, z, ratio=a).distance


def test_one_world_can_be_moved_by_delta_alone() -> None:
    for y, z, a in pairs(400, 3):
        near = CODE["one_world"](y, z, a)
        assert sum(near) == 1 and within(near, z, a) and within(z, near, a)
        assert distance(y, near) == max(excess(y, z, a), excess(z, y, a) / a)


def _views(rounds: int, seed: int) -> tuple[Masses, Masses, Masses, Fraction, Fraction]:
    """The views of an adversary that chooses each pair from all answers, W, the ratio a and the largest delta."""
    rng, a = random.Random(seed), Fraction(2)
    zero, one, moved, delta = [Fraction(1)], [Fraction(1)], [Fraction(1)], Fraction(0)
    for _ in range(rounds):
        after: tuple[Masses, Masses, Masses] = [], [], []
        for masses in zip(zero, one, moved, strict=True):  # a pair of its own after every history
            p, q = _masses(rng, 3), _masses(rng, 3)
            p, q = (
                [(x + y + 6 * z) / 8 for x, y, z in zip(p, q, side, strict=True)] for side in (p, q)
            )
            delta = max(delta, excess(p, q, a), excess(q, p, a))
            for views, mass, law in zip(
                after, masses, (p, q, CODE["one_world"](p, q, a)), strict=True
            ):
                views.extend(mass * x for x in law)
        zero, one, moved = after
    return zero, one, moved, a, delta


@pytest.mark.parametrize("seed", range(6))
def test_deltas_of_adaptive_rounds_multiply(seed: int) -> None:
    zero, one, moved, a, delta = _views(3, seed)
    assert 0 < delta < 1
    for first, second in ((zero, one), (one, zero)):
        assert excess(first, second, a**3) <= 1 - (1 - delta) ** 3 <= 3 * delta
    assert distance(zero, moved) <= 1 - (1 - delta) ** 3


def test_the_product_is_attained_and_below_it_nothing_is_true() -> None:
    a, delta = Fraction(2), Fraction(1, 10)
    up, down = (1 - delta) * a / (1 + a), (1 - delta) / (1 + a)
    y, z = [delta, Fraction(0), up, down], [Fraction(0), delta, down, up]
    for times in (1, 2, 3):
        views = [
            [math.prod(each, start=Fraction(1)) for each in product(law, repeat=times)]
            for law in (y, z)
        ]
        assert excess(views[0], views[1], a**times) == 1 - (1 - delta) ** times


def test_the_theorem_with_its_k_delta_holds_and_needs_it() -> None:
    flint = pytest.importorskip("flint")
    flint.ctx.prec = 200
    times, delta, slack = 200, Fraction(1, 10_000), Fraction(1, 1000)
    size = flint.arb(1) / 10
    total = (
        flint.arb(2 * times) * (flint.arb(slack.denominator) / slack.numerator).log()
    ).sqrt() * size + times * size * (size.exp() - 1)
    assert total < times * size  # better than the sum
    # The worst pair: a mass of delta tells everything, the answers of randomized response otherwise.
    ratio, up = total.exp(), size.exp() / (1 + size.exp())
    tail = flint.arb(0)
    for heads in range(times + 1):
        ways = flint.arb(math.comb(times, heads))
        one = ways * up**heads * (1 - up) ** (times - heads)
        other = ways * (1 - up) ** heads * up ** (times - heads)
        tail += max(one - ratio * other, flint.arb(0))
    good = (1 - flint.arb(delta.numerator) / delta.denominator) ** times
    exact = 1 - good + good * tail
    promised = flint.arb(str(float(times * delta + slack)))
    assert exact < promised and exact > flint.arb(str(float(slack)))
    stated = book.advanced(0.1, delta=float(delta), times=times, slack=float(slack))
    assert abs(stated.epsilon - float(total)) < 1e-12
    assert abs(stated.delta - float(times * delta + slack)) < 1e-15


def test_a_stopper_exceeds_more_often_and_within_the_lemma() -> None:
    a, times = Fraction(5, 4), 12  # losses of +-ln(5/4), answers of exactly known probability

    def exceeds(left: int, steps: int, limit: int, *, stops: bool) -> Fraction:
        if left == 0 or (stops and steps > limit):
            return Fraction(int(steps > limit))
        up = a / (1 + a)
        above, below = (exceeds(left - 1, steps + step, limit, stops=stops) for step in (1, -1))
        return up * above + (1 - up) * below

    size = math.log(a)
    for limit in (3, 5, 7):
        on, stops = (exceeds(times, 0, limit, stops=flag) for flag in (False, True))
        z = (limit - times * math.expm1(size)) / times**0.5
        assert on < stops <= (math.exp(-(z**2) / 2) if z > 0 else 1)


def test_the_price_of_joining_is_the_least() -> None:
    a = 3
    with_bob, without = (
        [Fraction(1, 1 + a), Fraction(a, 1 + a)],
        [Fraction(a, 1 + a), Fraction(1, 1 + a)],
    )
    utility = 1000 / without[0]  # for the answer that Bob's data makes less likely
    lost = utility * (without[0] - with_bob[0])
    promise = book.promise(ApproximateDP(math.log(a)), utility_range=math.inf)
    assert lost == 1000 * (1 - Fraction(1, a))
    assert promise.expected(1000).lower == pytest.approx(float(1000 - lost), rel=1e-12)
    assert lost <= 1000 * math.log(a)
