"""Random compositions, one generator for each regime; all numbers come from the given random
source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from random import Random

from campaigns.soundness import subject
from campaigns.soundness.subject import Item, Parts


def gaussians(rng: Random) -> Parts:
    kinds = rng.randint(1, 5)
    parts = []
    for times in _times(rng, kinds, 9):
        sensitivity = _sensitivity(rng)
        sigma = sensitivity * math.sqrt(kinds * times) / _spread(rng)
        item = subject.normal(sigma, sensitivity=sensitivity)
        parts.append(
            (subject.gaussian_promise(sensitivity / sigma) if rng.random() < 0.3 else item, times)
        )
    return tuple(parts)


def correlated(rng: Random) -> Parts:
    """Runs of a few steps under correlated noise: encoded by a matrix, or on the nodes of a tree."""

    def item(size: float, _: int) -> Item:
        steps = rng.randint(1, 6)
        if rng.random() < 0.5:
            steps, restart = 2 * steps, rng.choice([None, rng.randint(1, 2 * steps)])
            return subject.tree(
                steps / size, steps, rng.randint(1, steps), rng.randint(1, 4), restart=restart
            )
        strategy = [
            [rng.random() + 0.1 if j <= i else 0.0 for j in range(steps)] for i in range(steps)
        ]
        return subject.correlated(strategy, steps / size, rng.randint(1, steps), rng.randint(1, 4))

    return _some(rng, item, rng.randint(1, 2), 4)


def few_laplace(rng: Random) -> Parts:
    def item(size: float, _: int) -> Item:
        sensitivity = _sensitivity(rng)
        return subject.laplace(sensitivity / size, sensitivity=sensitivity)

    return _some(rng, item, rng.randint(1, 2), 1.5)


def many_laplace(rng: Random) -> Parts:
    times = int(10 ** rng.uniform(2.5, 9))
    return (
        (
            subject.laplace(
                1 / max(_spread(rng) / math.sqrt(times), rng.choice([110, 450, 450]) / times)
            ),
            times,
        ),
    )


def different_laplace(rng: Random) -> Parts:
    """Several scales, without anything smoother among them."""
    return _some(
        rng,
        lambda size, _: subject.laplace(1 / size),
        rng.choice([3, 3, 4, 5, 12]),
        rng.choice([4, 7]),
    )


def promises(rng: Random) -> Parts:
    """One (epsilon, delta), up to 10^8 times."""
    (times,) = _times(rng, 1, 8)
    return ((subject.promise(_spread(rng) / math.sqrt(times), _leak(rng, times)), times),)


def different_promises(rng: Random) -> Parts:
    kinds = rng.randint(2, 5)
    return _some(
        rng, lambda size, times: subject.promise(size, _leak(rng, times)), kinds, 4 / kinds
    )


def two_term_mixtures(rng: Random) -> Parts:
    def item(size: float, times: int) -> Item:
        makers: list[Callable[[], Item]] = [
            lambda: subject.laplace(1 / size),
            lambda: subject.promise(size, _leak(rng, times)),
            lambda: subject.response(size, 2),
        ]
        return rng.choice(makers)()

    return _some(rng, item, rng.randint(2, 3), 1.0)


def exponentials(rng: Random) -> Parts:
    return _some(rng, lambda size, _: subject.bounded_range(size), rng.randint(1, 2), 1.5)


def selections(rng: Random) -> Parts:
    """Noisy maxima, sparse vectors and votes: their upper ends are those of other families."""
    kinds = ("laplace", "exponential", "gumbel", "AboveThreshold", "NoisyArgmax")
    return _some(
        rng, lambda size, _: subject.selection(size, rng.choice(kinds)), rng.randint(1, 2), 1.5
    )


def responses(rng: Random) -> Parts:
    return _some(
        rng, lambda size, _: subject.response(size, rng.randint(2, 20)), 1, rng.choice([3, 3, 3, 6])
    )


def staircases(rng: Random) -> Parts:
    gammas = (None, 0.0, 0.5, round(rng.uniform(0, 1), 3))
    return _some(
        rng, lambda size, _: subject.staircase(size, rng.choice(gammas)), 1, rng.choice([2, 3])
    )


def skellams(rng: Random) -> Parts:
    def item(size: float, _: int) -> Item:
        shift = rng.choice([1, 1, 2])
        return subject.skellam((shift / min(max(size, 0.4), 10.0)) ** 2, shift)

    return _some(rng, item, 1, 0.7)


def local_randomizers(rng: Random) -> Parts:
    """Encodings, and shuffles of a few reports, where a value is replaced."""

    def item(size: float, times: int) -> Item:
        if times > 2 or rng.random() < 0.5:
            keep = rng.uniform(0.2, 0.9)
            return subject.encoding(keep, keep / (keep + (1 - keep) * math.exp(size)))
        return subject.shuffled(min(size, 5.0), rng.randint(2, 7))

    return _some(rng, item, 1, rng.choice([0.5, 2]))


def discrete(rng: Random) -> Parts:
    def item(size: float, _: int) -> Item:
        shift = rng.choice([1, 1, 2, 5])
        if rng.random() < 0.5:
            return subject.discrete_laplace(max(shift / size, 0.02), shift)
        return subject.discrete_gaussian(max(shift / size, 0.2), shift)

    return _some(rng, item, 1, rng.choice([3, 3, 3, 3, 3, 3, 3, 4]))


def sgd(rng: Random) -> Parts:
    times = int(10 ** rng.uniform(1.5, 9))
    return ((_step(rng, times), times),)


def short_sgd(rng: Random) -> Parts:
    times = rng.randint(2, 30)
    return (
        (
            subject.sampled_normal(
                10 ** rng.uniform(-0.3, 0.7), rng.choice([0.01, 0.1, rng.uniform(0.003, 0.6)])
            ),
            times,
        ),
    )


def rare_sgd(rng: Random) -> Parts:
    """Samples so rare that large losses are rare and decide, once in five of two kinds."""
    kinds = 2 if rng.random() < 0.2 else 1
    return tuple(
        (
            subject.sampled_normal(10 ** rng.uniform(-0.5, 1), 10 ** rng.uniform(-6, -3)),
            int(10 ** rng.uniform(1, 8)),
        )
        for _ in range(kinds)
    )


def random_shifts(rng: Random) -> Parts:
    """Sums that a record moves by a random amount: two to five shifts, weights from tiny to all."""
    shifts = sorted(
        {round(rng.uniform(0.05, 4), 3) for _ in range(rng.randint(2, 4))}
        | {rng.choice([0.0, 0.01])}
    )
    parts = [max(1, int(2 ** rng.uniform(0, 40))) for _ in shifts]
    parts[parts.index(max(parts))] += 2**50 - sum(parts)
    weights = tuple(part / 2**50 for part in parts)
    return (
        (
            subject.mixture(10 ** rng.uniform(-0.5, 1.3), tuple(shifts), weights),
            int(10 ** rng.uniform(0, 4)),
        ),
    )


def rare_shifts(rng: Random) -> Parts:
    """Far shifts of tiny weights, near-equal ones among them, in any order of size; once in two a single answer."""
    far, sigma = 10 ** rng.uniform(-1, 1.5), 10 ** rng.uniform(-1, 1)
    shifts = {
        round(far * rng.choice([1.0, 1 + 1 / 64, rng.uniform(0, 1.2)]) * 2**20) / 2**20
        for _ in range(4)
    }
    shifts |= {0.0} if rng.random() < 0.8 else set()
    tiny = [
        10 ** -rng.choice([rng.uniform(3, 17), rng.uniform(3, 100), rng.uniform(100, 289)])
        for _ in shifts
    ]
    heavy = 0 if rng.random() < 0.7 else rng.randrange(len(tiny))
    weights = [1.0 if at == heavy else weight for at, weight in enumerate(tiny)]
    weights[heavy] = 1 - math.fsum(weight for at, weight in enumerate(weights) if at != heavy)
    times = 1 if rng.random() < 0.5 else int(10 ** rng.uniform(0.3, 9))
    placed = tuple(shift * sigma for shift in sorted(shifts))
    return ((subject.mixture(sigma, placed, tuple(weights)), times),)


def capped_batches(rng: Random) -> Parts:
    """Poisson samples that are cut where they are large, rarely or nearly always."""
    records = rng.randint(2, 60)
    rate, batch = rng.randint(1, 60) / 64, rng.randint(1, records - 1)
    return (
        (
            subject.capped(10 ** rng.uniform(-0.3, 1), rate, records, batch),
            int(10 ** rng.uniform(0, 3)),
        ),
    )


def phases(rng: Random) -> Parts:
    """DP-SGD whose noise and rate change."""
    kinds = rng.choice([2, 2, 3, 3, 4, 6])
    return tuple((_step(rng, times * kinds), times) for times in _times(rng, kinds, 6))


def sgd_together(rng: Random) -> Parts:
    """DP-SGD that is asked as a batch, of the sizes that people run."""
    return ((_run(rng), int(10 ** rng.uniform(1.3, 5.5))),)


def phases_together(rng: Random) -> Parts:
    """Two or three phases of it."""
    return tuple(
        (_run(rng), int(10 ** rng.uniform(1.0, 4.5))) for _ in range(rng.choice([2, 2, 3]))
    )


def short_replaced(rng: Random) -> Parts:
    return (
        (
            subject.replaced_normal(10 ** rng.uniform(-0.3, 0.7), rng.uniform(0.003, 0.6)),
            rng.randint(1, 30),
        ),
    )


def replaced_sgd(rng: Random) -> Parts:
    times = int(10 ** rng.uniform(2, 6))
    item = _step(rng, times)
    sigma, rate = (float(number) for number in item.code[len("Gaussian(") : -1].split(").sampled("))
    return ((subject.replaced_normal(sigma, rate), times),)


def edges_of_sgd(rng: Random) -> Parts:
    """DP-SGD where nearly everybody or hardly anybody is sampled, with little noise or with much."""
    sigma, rate, times = _edge(rng)
    return ((subject.sampled_normal(sigma, rate), times),)


def replaced_edges(rng: Random) -> Parts:
    """The same where a record is replaced."""
    sigma, rate, times = _edge(rng)
    return ((subject.replaced_normal(sigma, rate), times),)


def little_noise(rng: Random) -> Parts:
    """A few steps whose sampled part is far from the other one: the total is a count of hits, and what they cost."""
    sigma, rate, times = _little(rng)
    return ((subject.sampled_normal(sigma, rate), times),)


def little_noise_together(rng: Random) -> Parts:
    """The same, asked as a batch, once in three with a second phase."""
    return tuple(
        (subject.sampled_normal(sigma, rate), times)
        for sigma, rate, times in [_little(rng) for _ in range(rng.choice([1, 1, 2]))]
    )


def replaced_little_noise(rng: Random) -> Parts:
    """The same where a record is replaced."""
    sigma, rate, times = _little(rng)
    return ((subject.replaced_normal(sigma, rate), times),)


def replaced(rng: Random) -> Parts:
    """Unsampled noise where one record is replaced: twice the shift."""

    def item(size: float, _: int) -> Item:
        shift = rng.choice([1, 1, 2])
        makers: list[Callable[[], Item]] = [
            lambda: subject.laplace(2 / size, records=2),
            lambda: subject.normal(2 / size, records=2),
            lambda: subject.discrete_laplace(max(2 * shift / size, 0.02), shift, records=2),
            lambda: subject.discrete_gaussian(max(2 * shift / size, 0.2), shift, records=2),
        ]
        return rng.choice(makers)()

    return _some(rng, item, 1, 2)


def groups_of_three(rng: Random) -> Parts:
    """Three people at once: noise on a value that moves three times as far."""

    def item(size: float, _: int) -> Item:
        shift = rng.choice([1, 1, 2])
        makers: list[Callable[[], Item]] = [
            lambda: subject.laplace(3 / size, records=3),
            lambda: subject.normal(3 / size, records=3),
            lambda: subject.bounded_range(size / 3, records=3),
            lambda: subject.discrete_laplace(max(3 * shift / size, 0.02), shift, records=3),
            lambda: subject.discrete_gaussian(max(3 * shift / size, 0.2), shift, records=3),
        ]
        return rng.choice(makers)()

    return _some(rng, item, 1, 2)


def pairs(rng: Random) -> Parts:
    """Two to four masses against as many, nowhere symmetric, some against nothing; a profile once in a hundred."""
    if rng.random() < 0.01:
        size, times = _spread(rng), rng.randint(1, 20)
        inner = rng.choice([subject.laplace, subject.normal])(math.sqrt(times) / size)
        return ((subject.profiled(inner, error=1e-11), times),)

    def item(size: float, _: int) -> Item:
        first = _masses(rng, rng.randint(2, 4))
        moved = [mass * math.exp(size * rng.gauss(0, 1)) for mass in first]
        second = [max(1, round(mass * 2**20 / sum(moved))) for mass in moved]
        second[second.index(max(second))] += 2**20 - sum(second)
        rows = [first, second]
        if rng.random() < 0.2 and first[-1] > 100:
            leak = rng.randint(1, 50)
            rows = [[leak, *first[:-1], first[-1] - leak], [0, *second]]
        return subject.points(rows[0], rows[1])

    return _some(rng, item, rng.randint(1, 2), 1.3)


def sampled_together(rng: Random) -> Parts:
    """Several promises on one sample, a few times."""
    size = 10 ** rng.uniform(-1.5, 0.3)
    item = subject.together(
        size, size * rng.uniform(0.2, 3), rng.randint(1, 3), 10 ** rng.uniform(-2, -0.1)
    )
    return ((item, rng.randint(1, 3)),)


def many_kinds(rng: Random) -> Parts:
    """Dozens of different items, a Gaussian among them."""
    kinds, leaky = rng.randint(10, 60), rng.random() < 0.3
    size = _spread(rng) / math.sqrt(kinds)
    makers: list[Callable[[float], Item]] = [
        lambda each: subject.laplace(1 / each),
        lambda each: subject.normal(1 / each),
        lambda each: subject.promise(each, _leak(rng, 1) if leaky else 0.0),
        lambda each: subject.response(each, 3),
    ]
    parts = [(rng.choice(makers)(min(size * rng.uniform(0.3, 1.5), 4.0)), 1) for _ in range(kinds)]
    return (*parts, (subject.normal(1 / size), 1))


def sampled_once(rng: Random) -> Parts:
    scale, rate = 10 ** rng.uniform(-0.5, 1.5), 10 ** rng.uniform(-4, -0.01)
    makers: list[Callable[[], Item]] = [
        lambda: subject.sampled_normal(scale, rate),
        lambda: subject.sampled_laplace(scale, rate),
        lambda: subject.sampled_promise(1 / scale, _leak(rng, 1), rate),
        lambda: subject.sampled_response(1 / scale, rng.randint(2, 9), rate),
    ]
    return ((rng.choice(makers)(), 1),)


def sampled_atoms(rng: Random) -> Parts:
    """Sampled answers; once in two hundred sampled Laplace noise, which the library encloses by atoms as well."""
    noise = rng.random() < 1 / 200

    def item(size: float, times: int) -> Item:
        rate = 10 ** rng.uniform(-1.5, -0.05)
        if noise:
            return subject.sampled_laplace(max(rate / size, 0.3), rate)
        if rng.random() < 0.6:
            return subject.sampled_promise(min(size / rate, 3.0), _leak(rng, times), rate)
        return subject.sampled_response(min(size / rate, 3.0), rng.randint(3, 6), rate)

    return _some(rng, item, rng.randint(1, 2), 1.3)


def mixtures(rng: Random) -> Parts:
    """Several kinds, with enough Gaussian noise among them for the truth to be narrow."""
    times = int(10 ** rng.uniform(1.5, rng.choice([6, 9])))
    parts = [(_step(rng, times), times)] if rng.random() < 0.6 else []
    wide = math.sqrt(times) * 10 ** rng.uniform(-0.5, 1.0)
    parts.append((subject.normal(max(wide, 0.3)), rng.randint(1, times)))
    makers: list[Callable[[float, int], Item]] = [
        lambda size, _: subject.laplace(1 / size),
        lambda size, many: subject.promise(size, _leak(rng, many)),
        lambda size, _: subject.response(size, rng.randint(2, 9)),
        lambda size, _: subject.discrete_laplace(max(1 / size, 0.1), 1),
        lambda size, _: subject.discrete_gaussian(max(1 / size, 0.4), 1),
        lambda size, _: subject.sampled_laplace(max(0.2 / size, 0.3), 0.2),
        lambda size, _: subject.sampled_promise(min(3 * size, 3.0), 0.0, 0.3),
    ]
    for maker in rng.sample(makers, rng.randint(1, 3)):
        many = int(10 ** rng.uniform(0, 3))
        parts.append((maker(_spread(rng) / math.sqrt(many) / 2, many), many))
    return tuple(parts)


def asymmetric_atoms(rng: Random) -> Parts:
    """Pairs with masses from tiny to huge on a sample of nearly everybody, a few times or many."""
    if rng.random() < 0.3:
        rare = Fraction(1, 2 ** rng.randint(10, 50))
        rows = [
            [1 - rare, rare],
            rng.choice([[Fraction(1, 2)] * 2, [Fraction(1, 4), Fraction(3, 4)]]),
        ]
    else:
        kinds = rng.choice([2, 2, 3])
        rows = [_scattered(rng, kinds), _scattered(rng, kinds)]
    times = rng.choice([1, 1, 2, 3, 20, 70]) if len(rows[0]) == 2 else rng.randint(1, 4)
    return ((subject.sampled_points(rows[0], rows[1], _nearly_all(rng)), times),)


def vast_losses(rng: Random) -> Parts:
    """Totals from 500 to 10^5 nats, of few outcomes: masses far below the floats."""

    def item(each: float) -> Item:
        makers: list[Callable[[], Item]] = [
            lambda: subject.promise(each, _leak(rng, 1)),
            lambda: subject.response(min(each, 300.0), rng.choice([2, 3, 5, 20, 10**6])),
            lambda: subject.discrete_laplace(1 / min(each, 900.0), 1),
            lambda: subject.discrete_laplace(
                (shift := rng.randint(2, 7)) / min(each, 590.0), shift
            ),
            lambda: subject.sampled_promise(each, _leak(rng, 1), _nearly_all(rng)),
            lambda: subject.sampled_promise(each, _leak(rng, 1), 10 ** rng.uniform(-12, -0.01)),
            lambda: subject.sampled_response(min(each, 300.0), rng.randint(3, 6), _nearly_all(rng)),
            lambda: subject.together(each * 0.7, each * 0.3, 1, 10 ** rng.uniform(-6, -0.1)),
        ]
        return subject.vast(rng.choice(makers)())

    total, kinds = 10 ** rng.uniform(2.7, 5), rng.choice([1, 1, 1, 2])
    if rng.random() < 0.3:  # many small ones
        times = rng.randint(100, 2000)
        return ((subject.vast(subject.promise(total / times, 0.0)), times),)
    most = rng.choice([2, 5, 20]) if kinds == 1 else 4
    return tuple(
        (item(total / kinds / times), times)
        for times in (rng.randint(1, most) for _ in range(kinds))
    )


def vast_replaced(rng: Random) -> Parts:
    """The same where a record is replaced."""
    epsilon, times = 10 ** rng.uniform(2.4, 4.7), rng.choice([1, 1, 2, 3])
    categories = rng.choice([2, 2, 3, 50, 10**6])
    return (
        (
            subject.replaced_response(
                epsilon if categories == 2 else min(epsilon, 300.0), categories
            ),
            times,
        ),
    )


def many_sampled_laplace(rng: Random) -> Parts:
    """Laplace noise of many scales, each on its own sample."""
    kinds = rng.choice([2, 2, 3, 3, 4, 4, 6, 12, 40])
    size = _spread(rng) / math.sqrt(kinds)
    rates = [10 ** rng.uniform(-2, -0.02) for _ in range(kinds)]
    return tuple(
        (subject.sampled_laplace(max(rate / size * rng.uniform(0.6, 1.4), 0.3), rate), 1)
        for rate in rates
    )


def many_sgd(rng: Random) -> Parts:
    """Sampled Gaussian noise, every scale and every rate different."""
    return tuple(
        (subject.sampled_normal(sigma, rate), times) for sigma, rate, times in _phases(rng)
    )


def many_replaced(rng: Random) -> Parts:
    """The same where a record is replaced."""
    return tuple(
        (subject.replaced_normal(sigma, rate), times) for sigma, rate, times in _phases(rng)
    )


def many_exponentials(rng: Random) -> Parts:
    """Exponential mechanisms, every range different."""
    kinds = rng.choice([9, 17, 33])
    size = _spread(rng) / math.sqrt(kinds)
    return tuple(
        (subject.bounded_range(size * rng.uniform(0.3, 1.7)), rng.choice([1, 1, 3]))
        for _ in range(kinds)
    )


def exponentials_among_others(rng: Random) -> Parts:
    """Exponential mechanisms with enough Gaussian noise among them for lines to end."""
    others = (
        (subject.normal(1 / _spread(rng)), 1),
        (subject.laplace(1 / _spread(rng)), rng.randint(1, 9)),
    )
    return (*exponentials(rng), *others[: rng.randint(1, 2)])


FAMILIES: dict[str, Callable[[Random], Parts]] = {
    maker.__name__: maker
    for maker in (
        gaussians,
        correlated,
        few_laplace,
        many_laplace,
        different_laplace,
        promises,
        different_promises,
        two_term_mixtures,
        exponentials,
        selections,
        responses,
        staircases,
        skellams,
        local_randomizers,
        discrete,
        sgd,
        short_sgd,
        rare_sgd,
        random_shifts,
        rare_shifts,
        capped_batches,
        phases,
        sgd_together,
        phases_together,
        short_replaced,
        replaced,
        replaced_sgd,
        edges_of_sgd,
        replaced_edges,
        little_noise,
        little_noise_together,
        replaced_little_noise,
        groups_of_three,
        pairs,
        sampled_together,
        many_kinds,
        sampled_once,
        sampled_atoms,
        mixtures,
        asymmetric_atoms,
        vast_losses,
        vast_replaced,
        many_sampled_laplace,
        many_sgd,
        many_replaced,
        many_exponentials,
        exponentials_among_others,
    )
}


def _run(rng: Random) -> Item:
    return subject.sampled_normal(
        round(10 ** rng.uniform(-0.3, 0.9), 3), round(10 ** rng.uniform(-3.3, -0.2), 5)
    )


def _scattered(rng: Random, kinds: int) -> list[Fraction]:
    """Positive masses of very different sizes, every one a float, that add up to 1."""
    reach = rng.choice([1, 3, 10, 20])
    small = [
        Fraction(rng.randint(1, 255), 2 ** (9 + rng.randint(0, 2 * reach)))
        for _ in range(kinds - 1)
    ]
    masses = [*small, 1 - sum(small)]
    rng.shuffle(masses)
    return masses


def _nearly_all(rng: Random) -> float:
    """A rate from 0.9 to 1 - 1e-16."""
    return min(1 - 10 ** -rng.uniform(1, 16), 1 - 2.0**-53)


def _masses(rng: Random, kinds: int) -> list[int]:
    """Positive masses in 2^-20 that add up to 1."""
    cuts = sorted(rng.sample(range(100, 2**20 - 100), kinds - 1))
    return [high - low for low, high in pairwise([0, *cuts, 2**20])]


def _spread(rng: Random) -> float:
    """The standard deviation of a total loss."""
    return 10 ** rng.uniform(-1.5, 1.0)


def _times(rng: Random, kinds: int, decades: float) -> list[int]:
    return [max(1, int(10 ** rng.uniform(0, decades))) for _ in range(kinds)]


def _sensitivity(rng: Random) -> float:
    return 1.0 if rng.random() < 0.6 else 10 ** rng.uniform(-2, 2)


def _leak(rng: Random, times: int) -> float:
    return 0.0 if rng.random() < 0.7 else 10 ** rng.uniform(-12, -3) / times


def _some(rng: Random, maker: Callable[[float, int], Item], kinds: int, decades: float) -> Parts:
    """Different items whose spreads add up to a random one; an item's size is the loss of one of its steps."""
    spread = _spread(rng) / math.sqrt(kinds)
    return tuple(
        (maker(spread / math.sqrt(times) * rng.uniform(0.6, 1.4), times), times)
        for times in _times(rng, kinds, decades)
    )


def _phases(rng: Random) -> list[tuple[float, float, int]]:
    """Noise, rate and count of many phases."""
    found: list[tuple[float, float, int]] = []
    kinds = rng.choice([3, 9, 20, 40])
    for _ in range(kinds):
        sigma, times = 10 ** rng.uniform(-0.2, 0.8), rng.choice([1, 1, 1, 7, 50])
        rate = _spread(rng) / math.sqrt(kinds * times * math.expm1(1 / sigma**2))
        found.append((sigma, min(max(rate, 1e-8), 0.9), times))
    return found


def _step(rng: Random, times: int) -> Item:
    """A step of DP-SGD whose loss has about a spread of 0.03 to 10 in `times` steps."""
    sigma = 10 ** rng.uniform(-0.3, 0.8)
    rate = _spread(rng) / math.sqrt(times * math.expm1(1 / sigma**2))
    return subject.sampled_normal(sigma, min(max(rate, 1e-8), 0.9))


def _edge(rng: Random) -> tuple[float, float, int]:
    """Noise, a rate next to 0 or to 1, and how many times."""
    times, rare = int(10 ** rng.uniform(0, 4)), 10 ** rng.uniform(-15, -0.5)
    rate = 1 - rare if rng.random() < 0.7 else rare
    return max(math.sqrt(times) * rate / _spread(rng), 10 ** rng.uniform(-0.8, 0)), rate, times


def _little(rng: Random) -> tuple[float, float, int]:
    """Noise of a thirtieth to a half of the sensitivity, a rate, and how many times."""
    sigma, times = (
        10 ** rng.uniform(math.log10(0.03), math.log10(0.6)),
        int(10 ** rng.uniform(0, 2)),
    )
    return sigma, 10 ** -rng.uniform(0.05, 6), times
