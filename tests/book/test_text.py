"""The text, passage by passage: each is answered by a call that is made here, and by a page in both languages.

The passages are the rows of docs/questions.md (test_questions.py has them in the order of the text). A passage that has
a number is also put to the command line, by its English and by its Chinese name.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from dpcompose import (
    BlackBox,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
    book,
    calibrate,
    compose,
    release,
)
from dpcompose.adaptive import BasicFilter
from dpcompose.divergence import (
    Density,
    Distribution,
    approximate_max,
    extreme_pair,
    hockey_stick,
    kl,
    max_divergence,
    max_ratio,
    one_sided_witness,
    smallest_epsilon,
    symmetric_witness,
    total_variation,
)
from dpcompose.errors import DomainError, RefusedRoundError
from dpcompose.experiment import (
    Experiment,
    Holds,
    ManyDatabases,
    Query,
    Repeater,
    Round,
    Wanderer,
    World,
)
from dpcompose.guarantee import ApproximateDP
from tests.book.test_proofs import CODE
from tests.book.test_questions import CHINESE, DOCS, ROWS, TEXT
from tests.cli.runner import invoke
from website.languages import CODE as BLOCKS, HEADING, slug

Masses = Mapping[Any, Fraction]
ANSWERS: dict[str, Callable[[], bool]] = {}
"""What is true of a passage, by the words with which its row begins."""
PRINTED: dict[str, str] = {}
"""What stands in the section that answers it, in both languages."""
LN2, E32 = math.log(2), math.exp(-32)


def answers(passage: str, printed: str = "") -> Callable[[Callable[[], bool]], Callable[[], bool]]:
    """The function below says whether the passage's answer is true; `printed` is a part of the answer on the page."""

    def noted(check: Callable[[], bool]) -> Callable[[], bool]:
        assert passage not in ANSWERS, passage
        ANSWERS[passage], PRINTED[passage] = check, printed
        return check

    return noted


def _geometric(a: int, top: int = 4) -> dict[int, dict[int, Fraction]]:
    """A count from 0 to `top` with two-sided geometric noise: neighbors are exactly ln a apart."""
    b = 1 / Fraction(a)
    mass = {False: (1 - b) / (1 + b), True: 1 / (1 + b)}
    rows = range(top + 1)
    return {n: {x: mass[x in (0, top)] * b ** abs(n - x) for x in rows} for n in rows}


def _both(first: Masses, second: Masses) -> dict[Any, Fraction]:
    return {(x, y): p * q for (x, p), (y, q) in product(first.items(), second.items())}


def _after(first: Masses, second: Mapping[Any, Masses]) -> dict[Any, Fraction]:
    """M2(M1(x))."""
    return {r: sum((p * second[m][r] for m, p in first.items()), Fraction(0)) for r in second[0]}


def _near(first: float, second: float, digits: int = 9) -> bool:
    return abs(first - second) <= 10**-digits * max(1.0, abs(second))


def _bob(epsilon: float, others: tuple[str, ...] = ()) -> Query:
    return Query(RandomizedResponse(epsilon), (*others, "Bob"), others, Holds("Bob"))


COUNT, OTHER = _geometric(2), _geometric(3)
OFTEN, FAIR = ({"yes": Fraction(p, 4), "no": Fraction(4 - p, 4)} for p in (3, 2))
UNLIKE = [(OFTEN, FAIR), (COUNT[0], COUNT[3]), (COUNT[1], COUNT[2])]
"""Pairs of distributions, each with the same outcomes."""


# Section 2.3


@answers("two (epsilon, 0) mechanisms", "6, 1")
def _() -> bool:
    attained = (BlackBox(0.5) * 2).epsilon(delta=0)
    return book.basic([(0.5, 0.0)] * 2) == ApproximateDP(1.0) and _near(attained.lower, 1.0)


@answers("k mechanisms: epsilons and deltas", "19, 100")
def _() -> bool:
    total = book.basic([(0.1, 1e-6), (0.2, 2e-6), (0.3, 0.0)])
    return _near(total.epsilon, 0.6) and _near(total.delta, 3e-6, 15)


@answers("group privacy gets weaker", "'16'")
def _() -> bool:
    epsilons = [book.group(0.1, size=k).epsilon for k in (1, 2, 3, 4)]
    return all(_near(b - a, 0.1) for a, b in pairwise(epsilons))


@answers("putting mechanisms on top of each", "4.774567588108")
def _() -> bool:
    pure = (BlackBox(0.1) * 100).epsilon(delta=0).lower
    return _near(pure, 10.0) and book.advanced(0.1, times=100, slack=1e-6).epsilon < 7


@answers("M2(M1(x)), from x over z to y,", "107/70")
def _() -> bool:
    post = max_ratio(_after(COUNT[1], COUNT), _after(COUNT[2], COUNT))
    released = max_ratio(_both(COUNT[1], COUNT[1]), _both(COUNT[2], COUNT[2]))
    return post <= 2 and released == max_ratio(COUNT[1], COUNT[3]) == 4


@answers("Theorem 2.2: (k epsilon, 0) for", "5.367003e-06")
def _() -> bool:
    return [max_ratio(COUNT[0], COUNT[k]) for k in (1, 2, 3, 4)] == [2, 4, 8, 16]


@answers("the probability is over the coins", "1/12")
def _() -> bool:
    return all(Distribution(law).total == 1 for law in COUNT.values())


@answers("a survey with several members of", "0.181269")
def _() -> bool:
    survey = Laplace(10.0)
    family, person = (each.epsilon(delta=0).upper for each in (survey.group(4), survey))
    return _near(family, 0.4) and _near(person, 0.1)


@answers("composition and group privacy are", "0.393")
def _() -> bool:
    composed = (BlackBox(0.01) * 101).epsilon(delta=1e-6)
    group = Laplace(100.0).group(101).epsilon(delta=1e-6)
    return f"{composed.upper:.3f}" == "0.393" and f"{group.lower:.3f}" == "1.010"


@answers("why can Theorem 3.20 not help a", "1.010")
def _() -> bool:
    # Already at a small delta, and attained: the group's loss has one sign, so that no failure of delta helps.
    group = BlackBox(0.01).group(101)
    return (
        group.epsilon(delta=1e-6).lower
        > 2 * book.optimal(0.01, times=101, total_delta=1e-6).epsilon
    )


@answers("footnote: for healthy teenagers", "480: epsilon 48.0")
def _() -> bool:
    everybody = Laplace(10.0).group(480)
    return (
        _near(everybody.epsilon(delta=0).upper, 48.0)
        and everybody.delta(epsilon=0).lower > 0.999999
    )


@answers("for (epsilon, delta) a group of k", "8.154845e-06")
def _() -> bool:
    printed = 3 * math.exp(2 * 0.5) * 1e-6
    return 0 < book.group(0.5, delta=1e-6, size=3).delta < printed < book.group(0.5, size=3).epsilon


@answers("Section 2.3.1: it protects from", "29, 6")
def _() -> bool:
    # What happens without Bob's data is the middle of what is promised, whatever that is.
    promise = book.promise(ApproximateDP(0.1), utility_range=math.inf)
    return all(promise.expected(u).lower <= u <= promise.expected(u).upper for u in (0.0, 1.0, 1e6))


@answers("nobody controls what else is in", "1, 8")
def _() -> bool:
    return all(
        hockey_stick(COUNT[a], COUNT[b], ratio=2).value == 0
        for n in range(4)
        for a, b in ((n, n + 1), (n + 1, n))
    )


@answers("an incentive may persuade", "95.16")
def _() -> bool:
    least = book.promise(ApproximateDP(0.1), utility_range=math.inf).expected(1000).lower
    return f"{1000 - least:.2f}" == "95.16" and 1000 - least <= 1000 * 0.1


@answers("Section 2.3.1: expected utility", "0.181352667254")
def _() -> bool:
    expected = [sum(x * p for x, p in COUNT[n].items()) for n in range(5)]
    return all(a <= 2 * b and b <= 2 * a for a, b in pairwise(expected))


@answers("the expectation is a sum of u(a)", "29, 6")
def _() -> bool:
    with_bob, without = COUNT[1], COUNT[2]
    terms = all(p <= 2 * without[a] for a, p in with_bob.items())
    signed = {a: -1 if a > 1 else 3 for a in with_bob}  # below 0 the sum says nothing
    sums = [sum(signed[a] * p for a, p in law.items()) for law in (with_bob, without)]
    return terms and sums[0] > 2 * sums[1]


@answers("Delta(A) is the probability", "1.01")
def _() -> bool:
    with pytest.raises(DomainError, match="sum"):
        Distribution({"a": 0.75, "b": 0.26})
    return Distribution({"a": Fraction(3, 4), "b": Fraction(1, 4)}).total == 1


@answers("f(M(x)) is as private as M(x), by", "1, 6")
def _() -> bool:
    rounded = {
        n: {"few": law[0] + law[1], "many": law[2] + law[3] + law[4]} for n, law in COUNT.items()
    }
    return all(
        hockey_stick(rounded[m], rounded[n], ratio=a).value
        <= hockey_stick(COUNT[m], COUNT[n], ratio=a).value
        for m, n in product(COUNT, COUNT)
        for a in (1, Fraction(3, 2), 2)
    )


@answers("e^epsilon is about 1 + epsilon", "1.1052")
def _() -> bool:
    return all(math.exp(e) > 1 + e and math.exp(-e) >= 1 - e for e in (0.01, 0.1, 1.0, 3.0))


@answers("the promise does not depend on")
def _() -> bool:
    rng = random.Random(1)
    people = [[rng.randint(0, 100) for _ in COUNT] for _ in range(50)]
    sums = [[sum(u[x] * p for x, p in COUNT[n].items()) for n in (1, 2)] for u in people]
    return all(a <= 2 * b and b <= 2 * a for a, b in sums)


# Section 3.5


@answers("algorithms are built from private", "30, 1")
def _() -> bool:
    nested, flat = compose(compose(Gaussian(2.0) * 3, Laplace(5.0)), Laplace(5.0)), None
    flat = compose(Gaussian(2.0) * 3, Laplace(5.0) * 2)
    return _near(nested.epsilon(delta=1e-6).upper, flat.epsilon(delta=1e-6).upper)


@answers("the mean of repeated Laplace", "Laplace")
def _() -> bool:
    game = Experiment(
        Repeater(Query(Laplace(5.0), ("Alice", "Bob"), ("Alice",))),
        family=[Laplace(5.0)],
        rounds=2000,
    )
    views = game.play(World.ZERO, transcripts=5, rng=np.random.default_rng(1))
    costs = [(Laplace(5.0) * k).epsilon(delta=1e-6).lower for k in (1, 100, 2000)]
    return (
        bool(np.all(np.round(views.answers.mean(axis=0)) == 2))
        and costs == sorted(costs)
        and costs[-1] > 40
    )


@answers("how exactly do epsilon and delta")
def _() -> bool:
    total = compose(Gaussian(1.0).sampled(0.005) * 1000, Laplace(20.0) * 10)
    return total.epsilon(delta=1e-8).width < 1e-8 and total.delta(epsilon=1.5).width < 1e-12


@answers("Theorem 3.14: epsilon_1 +", "6, 1")
def _() -> bool:
    pair = max_ratio(_both(COUNT[1], OTHER[1]), _both(COUNT[2], OTHER[2]))
    return pair == max_ratio(COUNT[1], COUNT[2]) * max_ratio(OTHER[1], OTHER[2]) == 6


@answers("the probability of a pair is a", "'inf'")
def _() -> bool:
    coin = {0: Fraction(2, 3), 1: Fraction(1, 3)}
    shared = [{(x ^ c, c): p for c, p in coin.items()} for x in (0, 1)]
    fresh = [_both({x ^ c: p for c, p in coin.items()}, coin) for x in (0, 1)]
    return max_ratio(*shared) == math.inf and max_ratio(*fresh) == 2


@answers("each factor is at most e^epsilon_i", "'3'")
def _() -> bool:
    factors = [
        max(COUNT[1][x] / COUNT[2][x] for x in COUNT),
        max(OTHER[1][x] / OTHER[2][x] for x in OTHER),
    ]
    return factors == [2, 3]


@answers("by symmetry, the ratio is at", "('3', '3')")
def _() -> bool:
    pair = _both(COUNT[1], OTHER[1]), _both(COUNT[2], OTHER[2])
    least = min(p / pair[1][r] for r, p in pair[0].items())
    return max_ratio(*reversed(pair)) == 6 and least == Fraction(1, 6)


@answers("Corollary 3.15: the sum of", "12.5")
def _() -> bool:
    return book.basic([(0.125, 0.0)] * 100).epsilon == 12.5


@answers("Theorem 3.16: the sums of", "19, 100")
def _() -> bool:
    return book.basic([(0.5, 0.0), (0.25, 1e-6)]) == ApproximateDP(0.75, delta=1e-6)


@answers("the proof of Theorem 3.16 is in", "0.6400")
def _() -> bool:
    half = Fraction(1, 10)
    left = {"bob": half, "up": (1 - half) * 2 / 3, "down": (1 - half) / 3}
    right = {"no bob": half, "up": left["down"], "down": left["up"]}
    lost = hockey_stick(_both(left, left), _both(right, right), ratio=4).value
    return lost == 1 - (1 - half) ** 2 <= 2 * half


@answers("composition is automatic: the")
def _() -> bool:
    budget, state, granted = BasicFilter(1.0, delta=0.0), None, list[bool]()
    state = budget.start()
    for epsilon in (0.5, 0.25, 0.5, 0.25):  # chosen along the way: what does not fit is refused
        state, decision = budget.step(state, BlackBox(epsilon))
        granted.append(decision.granted)
    return granted == [True, True, False, True]


# Section 3.5.1


@answers("a fraction whose denominator is 0", "upper=0.0")
def _() -> bool:
    tells = (
        {"bob": Fraction(1, 10), "": Fraction(9, 10)},
        {"no bob": Fraction(1, 10), "": Fraction(9, 10)},
    )
    ends = [
        approximate_max(*tells, delta=delta).upper
        for delta in (Fraction(1, 10), Fraction(99, 1000))
    ]
    return kl([0.5, 0.5], [1, 0]).lower == math.inf and ends == [0.0, math.inf]


@answers("Definition 3.5: KL divergence", "0.2310490601866484")
def _() -> bool:
    bound = kl(OFTEN, FAIR)
    exact = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    return bound.lower <= exact * (1 + 1e-15) and exact <= bound.upper * (1 + 1e-15)


@answers("sum and integral are two forms of", "0.5")
def _() -> bool:
    zero, one = (
        Density(lambda x, m=m: -((x - m) ** 2) / 2 - math.log(2 * math.pi) / 2) for m in (0.0, 1.0)
    )
    return _near(kl(zero, one).value, 0.5, 6)


@answers("D >= 0, not symmetric, no", "1.758")
def _() -> bool:
    p, q, r = ([Fraction(top, 10), Fraction(10 - top, 10)] for top in (1, 5, 9))
    same, there, back, on, whole = (
        kl(*pair).upper for pair in ((p, p), (p, q), (q, p), (q, r), (p, r))
    )
    return same == 0 < there != back and whole > there + on


@answers("the support of a distribution", "1, 1")
def _() -> bool:
    law = {"a": Fraction(1, 2), "b": Fraction(1, 2), "never": Fraction(0)}
    return max_ratio(law, {"a": 0.5, "b": 0.5}) == 1 and max_ratio({"never": 1.0}, law) == math.inf


@answers("Definition 3.6: max divergence", "2, 1")
def _() -> bool:
    largest = max(p / FAIR[x] for x, p in OFTEN.items())
    bound = max_divergence(OFTEN, FAIR)
    return max_ratio(OFTEN, FAIR) == largest and bound.lower <= math.log(largest) <= bound.upper


@answers("Definition 3.6: delta-approximate", "7, 4")
def _() -> bool:
    delta, outcomes = Fraction(1, 12), list(COUNT)
    events = [[x for x in outcomes if chosen >> x & 1] for chosen in range(1, 32)]
    sums = [(sum(COUNT[1][x] for x in s), sum(COUNT[2][x] for x in s)) for s in events]
    return max_ratio(COUNT[1], COUNT[2], delta=delta) == max(
        (y - delta) / z for y, z in sums if y > delta
    )


@answers("Remark 3.1: privacy is a", "7, 4")
def _() -> bool:
    found = smallest_epsilon(COUNT, delta=Fraction(1, 12), neighbors=[(n, n + 1) for n in range(4)])
    enough = [
        hockey_stick(COUNT[m], COUNT[n], ratio=found.ratio).value
        for m, n in ((0, 1), (1, 0), (2, 3))
    ]
    return found.ratio == Fraction(7, 4) and max(enough) <= Fraction(1, 12)


@answers("statistical distance, and", "3, 4")
def _() -> bool:
    return all(
        total_variation(y, z).value
        == hockey_stick(y, z, ratio=1).value
        == sum(abs(p - z[x]) for x, p in y.items()) / 2
        for y, z in UNLIKE
    )


@answers("Lemma 3.17, part 1", "1, 3")
def _() -> bool:
    near = one_sided_witness(COUNT[1], COUNT[3], ratio=2)
    return near.check() and near.distance == hockey_stick(COUNT[1], COUNT[3], ratio=2).value


@answers("Lemma 3.17, part 2", "1, 9")
def _() -> bool:
    near = symmetric_witness(COUNT[1], COUNT[3], ratio=2)
    one_way = (
        [Fraction(1), Fraction(0)],
        [Fraction(1, 2), Fraction(1, 2)],
    )  # the printed "if" is false
    return near.check() and max_ratio(*one_way) == 2 and max_ratio(*reversed(one_way)) == math.inf


@answers("the proof of Lemma 3.17, part 1,", "27/70")
def _() -> bool:
    y, z, a = CODE["y"], CODE["z"], CODE["a"]
    near = CODE["cut"](y, z, a)
    return (
        sum(near) == 1
        and CODE["within"](near, z, a)
        and CODE["distance"](y, near) == CODE["excess"](y, z, a)
    )


@answers("the proof of Lemma 3.17, part 2,", "meet(y, z, a)")
def _() -> bool:
    y, z, a = CODE["y"], CODE["z"], CODE["a"]
    first, second = CODE["meet"](y, z, a)
    largest = max(CODE["excess"](y, z, a), CODE["excess"](z, y, a))
    return CODE["within"](first, second, a) and CODE["distance"](y, first) * (1 + a) == largest


@answers("Lemma 3.18: the mean loss", "0.462117157260")
def _() -> bool:
    bound, (y, z) = book.kl_bound(1.0), extreme_pair(epsilon=1.0)
    return kl(y, z).upper <= bound.tight * (1 + 1e-12) and _near(bound.book, math.e - 1)


@answers("D(Z", "0.924234")
def _() -> bool:
    return all(kl(z, y).lower >= 0 and kl(y, z).upper > 0 for y, z in UNLIKE)


@answers("the logarithms of an outcome", "0.924234")
def _() -> bool:
    whole = [kl(y, z).upper + kl(z, y).upper for y, z in UNLIKE]
    lines = [sum(float(z[x] - p) * math.log(z[x] / p) for x, p in y.items()) for y, z in UNLIKE]
    return all(map(_near, whole, lines))


@answers("the absolute log ratio is at most", "0.924234")
def _() -> bool:
    for y, z in UNLIKE:
        a = max(max_ratio(y, z), max_ratio(z, y))
        for x, p in y.items():
            low, high = sorted((p, z[x]))
            if high > a * low or high - low != abs(p - z[x]) or high - low > (a - 1) * low:
                return False
    return True


@answers("the sum of min(Y, Z) is at most 1", "1.718282")
def _() -> bool:
    return all(
        sum(min(p, z[x]) for x, p in y.items()) == 1 - total_variation(y, z).value <= 1
        for y, z in UNLIKE
    )


@answers("Lemma 3.19: Azuma's inequality", "0.1384")
def _() -> bool:
    bound = book.azuma(2.0, times=100, size=0.5, drift=0.1)
    return _near(bound.threshold, 100 * 0.1 + 2 * 10 * 0.5) and _near(
        bound.probability, math.exp(-2)
    )


@answers("its hypothesis is about each C_i,", "0.1736")
def _() -> bool:
    exceeds, limit = CODE["exceeds"], 12 * 0.25 * math.expm1(0.25) + 0.5 * 12**0.5 * 0.25
    goes_on, stops = (exceeds(12, 0, limit, 0.25, each) for each in (False, True))
    return goes_on < stops <= math.exp(-(0.5**2) / 2)


# Section 3.5.2


@answers("we want parameters that get worse", "6.308230950513")
def _() -> bool:
    few, many = (book.advanced(1e-4, times=k, slack=1e-6).epsilon for k in (100, 10_000))
    return 9.9 < many / few < 10.2  # a hundred times as many: ten times as much


@answers("scenario 1: one database, used", "0.441211438")
def _() -> bool:
    solved = Experiment(Repeater(_bob(1.0)), family=[RandomizedResponse(1.0)], rounds=5).solve()
    return _near(solved.delta(2.0).upper, (RandomizedResponse(1.0) * 5).delta(epsilon=2.0).upper)


def _databases(*others: tuple[str, ...]) -> float:
    asked = [_bob(0.5, each) for each in others]
    return (
        Experiment(ManyDatabases(asked), family=[RandomizedResponse(0.5)], rounds=len(asked))
        .solve()
        .delta(1.0)
        .upper
    )


@answers("scenario 2: many databases that", "0.094895111946")
def _() -> bool:
    return _near(_databases(("Alice",), ("Carol", "Dave"), (), ("Eve",)), 0.094895111946)


@answers("new databases are made all the", "0.094895111946")
def _() -> bool:
    return _databases((), (), (), ()) == _databases(("A",), ("B",) * 2, ("C",) * 3, ("D",) * 9)


class Persistent:
    """Asks gently until an answer speaks for Bob, then sharply."""

    queries = (_bob(0.2), _bob(1.0))

    def first(self, rng: Any) -> None:
        """No coins."""

    def choose(self, state: None, answers: Any) -> tuple[None, Round]:
        return None, Round(self.queries, np.any(answers == 1.0, axis=0).astype(int))


@answers("the adversary may influence", "0.3378")
def _() -> bool:
    game = Experiment(
        Persistent(), family=[each.mechanism for each in Persistent.queries], rounds=3
    )
    return 0 < game.solve().delta(1.0).upper <= game.composition.delta(epsilon=1.0).upper


@answers("experiment b")
def _() -> bool:
    game = Experiment(Repeater(_bob(3.0)), family=[RandomizedResponse(3.0)], rounds=4)
    rng = np.random.default_rng(1)
    means = [
        float(game.play(world, transcripts=500, rng=rng).answers.mean())
        for world in (World.ZERO, World.ONE)
    ]
    return means[0] > 0.9 and means[1] < 0.1


@answers("a family of mechanisms, and their", "Query")
def _() -> bool:
    with pytest.raises(RefusedRoundError, match="member of the family"):
        Experiment(Repeater(_bob(1.0)), family=[RandomizedResponse(0.5)], rounds=1).solve()
    return _bob(1.0).mechanism == RandomizedResponse(1.0)


@answers("the adversary keeps a state; its", "Laplace(2.0)")
def _() -> bool:
    asked = [Query(Laplace(2.0), ("Bob",), ()), _bob(0.5)]
    game = Experiment(Wanderer(asked, seed=7), family=[each.mechanism for each in asked], rounds=4)
    views = game.play(World.ONE, transcripts=3, rng=np.random.default_rng(1))
    again = [views.questions(game.adversary).of(0) for _ in range(2)]
    return again[0] == again[1] and len(again[0]) == 4


@answers("Bob in the real world, without", "0.018757 < 0.025242")
def _() -> bool:
    twice = RandomizedResponse(1.0).sampled(0.1) * 2
    same, free = (
        twice.delta(epsilon=0.107826, orientation=each).upper
        for each in (Orientation.SAME, Orientation.FREE)
    )
    return same < free


@answers("the adversary cannot tell whether", "0.981702")
def _() -> bool:
    risk = BlackBox(1.0, delta=0.01).risk(prior=0.5, false_positive_rate=0.001)
    return risk.true_positive_rate.upper < 0.0128 and risk.bayes_error.lower > 0.26


@answers("Definition 3.7: epsilon under", "2, 9")
def _() -> bool:
    return _near((BlackBox(0.1) * 7).epsilon(delta=0).upper, 0.7)


@answers("Definition 3.7 with delta", "0.222222222222")
def _() -> bool:
    game = Experiment(
        Repeater(_bob(LN2), _bob(LN2).exchanged), family=[RandomizedResponse(LN2)], rounds=2
    )
    exact, certified = game.solve().delta(LN2), (RandomizedResponse(LN2) * 2).delta(epsilon=LN2)
    return exact.lower <= certified.upper and _near(certified.upper, 2 / 9)


@answers("Theorem 3.20: advanced composition", "6.308230950513")
def _() -> bool:
    formula = math.sqrt(2 * 100 * math.log(1e6)) * 0.1 + 100 * 0.1 * math.expm1(0.1)
    promised = book.advanced(0.1, delta=1e-9, times=100, slack=1e-6)
    return _near(promised.epsilon, formula) and _near(promised.delta, 100 * 1e-9 + 1e-6, 15)


@answers("the proof of Theorem 3.20 is", "one_world(y, z, a)")
def _() -> bool:
    y, z, a = CODE["y"], CODE["z"], CODE["a"]
    near = CODE["one_world"](y, z, a)
    moved = CODE["distance"](y, near)
    return (
        CODE["within"](near, z, a)
        and CODE["within"](z, near, a)
        and moved <= CODE["excess"](y, z, a)
    )


@answers("Corollary 3.21: what each may", "0.008560793995")
def _() -> bool:
    each = book.advanced_per_mechanism(0.9, slack=1e-6, times=100)
    return _near(each, 0.9 / (2 * math.sqrt(2 * 100 * math.log(1e6)))) and (
        book.advanced(each, times=100, slack=1e-6).epsilon <= 0.9
    )


@answers("epsilon* = sqrt(2k ln(1/delta'))", "1.205")
def _() -> bool:
    total, slack = 0.99, math.exp(-0.25)
    each = total / (2 * math.sqrt(2 * math.log(1 / slack)))
    proof = math.sqrt(2 * math.log(1 / slack)) * each + each**2
    return proof < total < book.advanced(each, times=1, slack=slack).epsilon


@answers("does the proof of 3.21 solve a", "first term 0.450000")
def _() -> bool:
    total, root = 0.9, math.sqrt(2 * 100 * math.log(1e6))
    each = book.advanced_per_mechanism(total, slack=1e-6, times=100)
    solved = (-root + math.sqrt(root**2 + 4 * 100 * total)) / (
        2 * 100
    )  # of the quadratic equation: another number
    return (
        _near(root * each, total / 2)
        and 100 * each * math.expm1(each) <= total / 2
        and solved > 1.5 * each
    )


@answers("for better constants apply the", "0.016593")
def _() -> bool:
    each, solved = (
        f(0.9, slack=1e-6, times=100) for f in (book.advanced_per_mechanism, book.advanced_inverse)
    )
    return each < solved and book.advanced(solved, times=100, slack=1e-6).epsilon <= 0.9 * (
        1 + 1e-12
    )


@answers("Example 3.7: which epsilon_0", "1/715.5106")
def _() -> bool:
    made = calibrate(
        lambda e: BlackBox(e) * 10_000,
        epsilon=1.0,
        delta=E32,
        parameter="increasing",
        bracket=(1e-4, 0.01),
    )
    loose, least, false = (book.example_3_7(1 / odds) for odds in (715.5106, 781, 775))
    return _near(1 / made.value, 715.5106, 6) and least.loss_above_1 < E32 < min(
        loose.loss_above_1_stopping, false.loss_above_1_stopping
    )


@answers("by Theorem 3.20, 1/801 suffices", "1.014347")
def _() -> bool:
    example = book.example_3_7(1 / 801)
    return example.optimum < 1 < example.theorem_3_20 and example.loss_above_1 < E32


@answers("the curators do not coordinate,", "curator")
def _() -> bool:
    one, other = (
        _databases(*order) for order in ([("A",), ("B", "C"), ()], [(), ("A",), ("B", "C")])
    )
    return one == other <= (BlackBox(0.5) * 3).delta(epsilon=1.0).upper * (1 + 1e-12)


@answers("that is essentially the best", "12%")
def _() -> bool:
    best = (BlackBox(1 / 715.5) * 10_000).epsilon(delta=E32)
    return best.lower > 1 and 1 < 801 / 715.5 < 1.12


def _queries(n: int, error: float, delta: float = 1e-6) -> dict[str, float]:
    plan = release.plan(n, accuracy=error / n, epsilon=1.0, delta=delta)
    return {row.method: row.queries for row in plan.rows}


@answers("how many queries can be answered", "9047")
def _() -> bool:
    few, many = (_queries(n, 0.01 * n) for n in (10**5, 10**6))
    uncoordinated = [method for method in many if "coordinated" not in method]
    return len(uncoordinated) == 4 and all(1 <= few[each] < many[each] for each in uncoordinated)


@answers("nontrivial accuracy means high")
def _() -> bool:
    # An error of a tenth of n is no high accuracy; it is nontrivial, and the planner counts the queries.
    return max(_queries(1000, 100).values()) > 10


@answers("nearly n^2 counting queries with", "56050")
def _() -> bool:
    scale = 1000.0
    queries = int(scale**2 / (8 * math.log(1e6)))
    each = book.advanced_per_mechanism(1.0, slack=1e-6, times=queries)
    growth = [max(_queries(n, n**0.95).values()) for n in (10**4, 10**6)]
    return _near(1 / each, scale, 3) and growth[1] / growth[0] > 100**1.8


@answers("nearly n queries with noise", "536,989")
def _() -> bool:
    few, many = (_queries(n, 3 * n**0.45) for n in (10**4, 10**8))
    method = list(few)[1]
    return 0.88 < math.log(many[method] / few[method], 10**4) < 0.92


@answers("with coordinated noise,", "100.0")
def _() -> bool:
    n = 10**8
    plan = release.plan(n, accuracy=0.01, epsilon=1.0, delta=1e-6, domain=2**10)
    (row,) = [row for row in plan.rows if row.method == "coordinated, zCDP"]
    return row.queries > 1e5 * n**2 and row.growth.startswith("e^(n")


@answers("without coordination the bounds", "0.890468")
def _() -> bool:
    optimum = book.optimal(1 / 801, times=10_000, total_delta=E32).epsilon
    return 0.89 < optimum < 1.0144 < 1.15 * optimum


CALLED: dict[str, tuple[str, str, str, str]] = {
    "two (epsilon, 0) mechanisms": ("3.14", "定理3.14", "--epsilon 0.5 --epsilon 0.5", "epsilon = 1;"),
    "Theorem 2.2: (k epsilon, 0) for": ("2.2", "定理 2.2", "--epsilon 0.5 --size 3", "epsilon = 1.5;"),
    "for (epsilon, delta) a group of k": (
        "theorem 2.2", "定理2.2", "--epsilon 0.5 --delta 1e-6 --size 3", "delta = 5.367003",
    ),
    "Section 2.3.1: expected utility": (
        "section 2.3.1", "第2.3.1节", "--epsilon 0.5 --delta 1e-3 --without 0.3 --utility-range 1", "0.18135266",
    ),
    "Theorem 3.14: epsilon_1 +": ("theorem 3.14", "定理3.14", "--epsilon 0.1,0.2", "epsilon = 0.3"),
    "Corollary 3.15: the sum of": ("corollary 3.15", "推论3.15", "--epsilon 0.1,0.2,0.3", "epsilon = 0.6"),
    "Theorem 3.16: the sums of": ("theorem 3.16", "定理3.16", "--epsilon 0.1,0.2 --delta 0,1e-6", "delta = 1e-06"),
    "Definition 3.5: KL divergence": ("definition 3.5", "定义3.5", "--first 0.75,0.25 --second 0.5,0.5", "0.1308"),
    "Definition 3.6: delta-approximate": (
        "definition 3.6", "定义3.6", "--first 0.75,0.25 --second 0.25,0.75 --delta 0.25", "0.6931",
    ),
    "Remark 3.1: privacy is a": ("remark 3.1", "备注3.1", "--first 0.75,0.25 --second 0.5,0.5 --delta 0.25", " = 0"),
    "Lemma 3.17, part 1": ("lemma 3.17", "引理3.17", "--first 0.75,0.25 --second 0.25,0.75 --epsilon 0.5", "distance"),
    "Lemma 3.18: the mean loss": ("lemma 3.18", "引理3.18", "--epsilon 1", "0.46211715"),
    "Lemma 3.19: Azuma's inequality": (
        "lemma 3.19", "引理3.19", "--deviations 2 --times 100 --size 0.5 --drift 0.1", "threshold = 20",
    ),
    "Theorem 3.20: advanced composition": (
        "theorem 3.20", "定理3.20", "--epsilon 0.1 --times 100 --slack 1e-6", "6.30823095",
    ),
    "Corollary 3.21: what each may": ("3.21", "推论3.21", "--epsilon 0.9 --times 100 --slack 1e-6", "0.00856079"),
    "Example 3.7: which epsilon_0": ("example 3.7", "例3.7", "--epsilon 1/801", "0.890468147886"),
}  # fmt: skip
"""The names of a passage's statement in English and Chinese, the options, and a part of what is printed."""
ELSEWHERE = {
    "Definition 3.7: epsilon under": ("definition 3.7", "定义3.7", "compose"),
    "f(M(x)) is as private as M(x), by": ("proposition 2.1", "命题2.1", "book.md"),
    "the probability is over the coins": ("definition 2.2", "定义2.2", "book.md"),
}
"""Statements without a number: what runs them is named."""


def _section(cell: str, language: str) -> str:
    """The section of a page that a link leads to, with what is below it."""
    link = re.fullmatch(r"\[[^\]]+\]\(([\w./-]+\.md)(?:#([^)]+))?\)", cell)
    assert link is not None, cell
    page = DOCS / link[1]
    if language == "zh":
        assert page.name.endswith(".zh.md") or not page.with_suffix(".zh.md").exists(), cell
    text = page.read_text("utf-8")
    if link[2] is None:
        return text
    blank = BLOCKS.sub(lambda block: " " * len(block[0]), text)  # a comment in code is no heading
    heads = [(len(each[1]), each[2], each.start()) for each in HEADING.finditer(blank)]
    (at,) = [place for place, head in enumerate(heads) if slug(head[1]) == link[2]]
    ends = [start for level, _, start in heads[at + 1 :] if level <= heads[at][0]]
    return text[heads[at][2] : min(ends, default=len(text))]


def _row(passage: str) -> int:
    (place,) = [
        place for place, (_, kind, words, _) in enumerate(TEXT) if words == passage and kind
    ]
    return place


def test_every_passage_has_a_call_that_is_made() -> None:
    assert [words for _, _, words, _ in TEXT] == list(ANSWERS)


@pytest.mark.parametrize("passage", ANSWERS)
def test_the_call_gives_the_answer(passage: str) -> None:
    assert ANSWERS[passage]()


@pytest.mark.parametrize("passage", ANSWERS)
def test_the_page_has_the_answer_in_both_languages(passage: str) -> None:
    place = _row(passage)
    for language, rows in (("en", ROWS), ("zh", CHINESE)):
        section = _section(rows[place][1][3], language)
        assert len(section) > 200 and PRINTED[passage] in section, (language, rows[place][1][3])


@pytest.mark.parametrize("passage", CALLED)
def test_the_command_line_has_the_answer_by_both_names(passage: str) -> None:
    english, chinese, options, printed = CALLED[passage]
    pages = [invoke(["theorem", name, *options.split()]) for name in (english, chinese)]
    assert [each.exit_code for each in pages] == [0, 0], pages
    assert printed in pages[0].stdout and pages[0].stdout == pages[1].stdout


@pytest.mark.parametrize("passage", ELSEWHERE)
def test_a_statement_without_a_number_names_what_runs_it(passage: str) -> None:
    english, chinese, named = ELSEWHERE[passage]
    pages = [invoke(["theorem", name]) for name in (english, chinese)]
    assert all(each.exit_code == 3 and named in each.output for each in pages), pages
