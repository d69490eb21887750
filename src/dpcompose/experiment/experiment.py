"""Definition 3.7 as a program: an adversary plays against world 0 or world 1, under a certificate of the whole game."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from typing import Any, Unpack

import numpy as np

from dpcompose import check
from dpcompose.adaptive import Filter, Number
from dpcompose.composition import (
    Comparison,
    Composable,
    Composition,
    Options,
    Profile,
    compose,
    one_of,
)
from dpcompose.errors import DomainError, RefusedRoundError, UnsupportedError
from dpcompose.experiment.adversaries import Adversary, require_adversary
from dpcompose.experiment.channel import Reals, World
from dpcompose.experiment.measured import Limits, Measured, Seed, Tally, Views, coins_of
from dpcompose.experiment.round import Rules, States, checked
from dpcompose.experiment.solved import Solved, answer, chosen, opened, walk
from dpcompose.numerics import largest
from dpcompose.pictured import Card
from dpcompose.values import Adjacency, Bound, Certificate, Orientation

_REMEDY = (
    "A certificate belongs to its game: make an Experiment with the other one, or ask `rounds`"
)


@dataclass(frozen=True)
class Certified:
    """A certificate that belongs to one game: every answer is under the game's adjacency and orientation.

    A question may name both; any other than the game's is refused. Where a filter decides, an upper end is the smaller
    one of what the filter and what the rounds promise, and the lower end of every answer is 0.

    Args:
        rounds: The composition of k rounds, in each any member of the family, which belongs to no game.
        adjacency: The adjacency of the game.
        orientation: The orientation of the game.
        filter: The filter of the game; None where every round is granted.
    """

    rounds: Composition
    adjacency: Adjacency
    orientation: Orientation
    filter: Filter | None = None

    def delta(self, *, epsilon: float, **options: Unpack[Options]) -> Bound:
        """The largest delta of every adversary at an epsilon; its upper end holds for each.

        Raises:
            DomainError: If a number is outside its domain, or the adjacency or orientation is not the game's.
        """
        rounds = self.rounds.delta(epsilon=epsilon, **self._game(options))
        own = self.filter
        return rounds if own is None else _smaller(rounds, _delta_at(own, epsilon), own)

    def epsilon(self, *, delta: float, **options: Unpack[Options]) -> Bound:
        """The largest epsilon of every adversary at a delta; its upper end holds for each. Raises as `delta` does."""
        rounds = self.rounds.epsilon(delta=delta, **self._game(options))
        own = self.filter
        return rounds if own is None else _smaller(rounds, own.epsilon_at(delta=delta), own)

    def profile(self, **options: Unpack[Options]) -> Profile:
        """The curve delta(epsilon) of the rounds, to be called at an array of epsilons. Raises as `delta` does.

        Where a filter decides, its upper ends hold too; its lower ends do not.
        """
        return self.rounds.profile(**self._game(options))

    def compare(self, *, delta: float, **options: Unpack[Options]) -> tuple[Comparison, ...]:
        """Every theorem that applies, tightest first; it takes no `proof`. Raises as `delta` does."""
        rows = self.rounds.compare(delta=delta, **self._game(options))
        if self.filter is None:
            return rows
        total = self.filter.total(1, delta=delta)
        name = f"{self.filter.kind} filter, {total.theorem}"
        own = Comparison(name, total.reference, total.epsilon, "upper bound")
        # Nobody may reach what the rounds would allow without it.
        others = (
            replace(row, kind="upper bound", lower=None) if row.kind == "certified" else row
            for row in rows
        )
        return tuple(sorted((own, *others), key=lambda row: (row.kind == "estimate", row.epsilon)))

    def _game(self, options: Options) -> dict[str, Any]:
        game: dict[str, Any] = {"adjacency": self.adjacency, "orientation": self.orientation}
        for name, own in game.items():
            if options.get(name) not in (None, own):
                raise DomainError(name, options.get(name), f"{own}, that of the game", _REMEDY)
        return {**options, **game}


def _smaller(rounds: Bound, promise: float, filter: Filter) -> Bound:
    """The smaller upper end of both, and no lower one: nobody may reach what the rounds would allow."""
    if rounds.upper <= promise:
        return Bound(min(0.0, rounds.upper), rounds.upper, rounds.certificate)
    return Bound(0.0, promise, Certificate(f"the promise of the {filter.kind} filter"))


def _delta_at(filter: Filter, epsilon: float) -> float:
    """About the least delta, never below it, at which the filter promises epsilon; at most 1."""

    def within(exponent: float) -> bool:
        return filter.epsilon_at(delta=math.exp(-exponent)) <= epsilon

    if not within(0.0):
        return 1.0
    if within(math.inf):
        return 0.0
    return math.exp(-largest(within, low=0.0, high=-math.log(5e-324)))


BLOCK = 1 << 13
"""Transcripts that are played together. Each block has its own random numbers, whatever else is played with it."""
MOST_ROUNDS, MOST_TRANSCRIPTS = 10**6, 10**12
"""Beyond these no game ends."""
MOST_PLAYED, MOST_ANSWERS = 1 << 26, 1 << 30
"""Answers that are held at once while losses are counted, and where all are kept: 0.5 and 8 gigabytes."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Experiment:
    """The k-fold adaptive composition experiment for one adversary.

    For i = 1, ..., k the adversary, who remembers everything, names two adjacent databases and a mechanism of the
    family, and is told the answer of the mechanism about the database of its world. Its view, the answers and its
    coins, is all that it can tell the worlds apart by.

    >>> from dpcompose import RandomizedResponse
    >>> from dpcompose.experiment import Experiment, Holds, Query, Repeater
    >>> query = Query(RandomizedResponse(1.0), ("Bob",), (), Holds("Bob"))
    >>> Experiment(Repeater(query), family=[query.mechanism], rounds=2).solve().delta(0.5).upper <= 0.48
    True

    Args:
        adversary: The adversary that plays.
        family: The mechanisms it may choose from in every round, their parameters fixed. A `BlackBox` stands for every
            mechanism that is proved to keep its promise: [BlackBox(1.0)] is the family of all pure 1.0-DP ones.
        rounds: k, at least 1.
        adjacency: The neighboring relation.
        orientation: FREE: the definition to the letter. SAME: section 3.5.2's reading, the record is in world 0.
        filter: What grants or refuses every mechanism before it answers; a refused one answers nothing (NaN), and its
            transcript goes on. None: all are granted.
        charged_delta: The delta at which the filter charges each mechanism, where it needs one; see `Filter.price`.

    Raises:
        DomainError: If an argument is outside its domain.

    Reference: [DworkRoth2014, Definition 3.7]
    """

    adversary: Adversary
    _: KW_ONLY
    family: Sequence[Composable]
    rounds: int
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    orientation: Orientation = Orientation.FREE
    filter: Filter | None = None
    charged_delta: Number | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.filter, Filter | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("filter", self.filter, "a budget, such as Budget(1.0), or None")
        if self.filter is None and self.charged_delta is not None:
            raise DomainError(
                "charged_delta", self.charged_delta, "None, as there is no filter to charge it"
            )
        require_adversary(self.adversary)
        accepted = "a list of at least one mechanism"
        family = check.several("family", self.family, Composable, accepted)
        object.__setattr__(self, "family", family)
        object.__setattr__(
            self, "rounds", check.count("rounds", self.rounds, least=1, most=MOST_ROUNDS)
        )
        object.__setattr__(self, "adjacency", check.named("adjacency", self.adjacency, Adjacency))
        object.__setattr__(
            self, "orientation", check.named("orientation", self.orientation, Orientation)
        )

    @cached_property
    def composition(self) -> Certified:
        """The certificate for every adversary of this game: k rounds, in each any member of the family.

        >>> from dpcompose import Gaussian
        >>> from dpcompose.experiment import Experiment, Query, Repeater
        >>> query = Query(Gaussian(2.0), ("Bob",), ())
        >>> game = Experiment(Repeater(query), family=[query.mechanism], rounds=4)
        >>> round(game.composition.delta(epsilon=1.0).upper, 6)
        0.126937
        """
        rounds = compose(one_of(*self.family) * self.rounds)
        return Certified(rounds, self.adjacency, self.orientation, self.filter)

    def play(
        self,
        world: World,
        *,
        transcripts: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
    ) -> Views:
        """Play in one world and keep every view: memory grows with transcripts times rounds.

        Args:
            world: The world, which says which database answers.
            transcripts: The number of independent games, at least 1.
            rng: One number is drawn from it; all else follows from that.
            progress: Told what is played, how many transcripts are done, and of how many.

        Raises:
            RefusedRoundError: If the adversary asks what it may not, or fails: with the round's number and the reason.
        """
        count = check.count("transcripts", transcripts, least=1, most=MOST_TRANSCRIPTS)
        if not count * self.rounds <= MOST_ANSWERS:
            most = f"at most {MOST_ANSWERS // self.rounds} of {self.rounds} rounds"
            remedy = "To keep counts alone, which takes no memory, call `measure`"
            raise DomainError("transcripts", count, most, remedy)
        answers, loss, coins = (
            np.full((self.rounds, count), np.nan),
            np.empty(count),
            dict[int, Seed](),
        )
        blocks = self._blocks(world, count, rng, self._rules(), progress)
        for start, coins[start], played, lost in blocks:
            end = start + len(lost)
            answers[: len(played), start:end], loss[start:end] = played, lost
        return Views(world, answers, loss, coins)

    def measure(
        self, *, transcripts: int, rng: np.random.Generator, failure: float = 1e-6, shares: int = 1,
        progress: Progress | None = None,
    ) -> Measured:  # fmt: skip
        """Play in both worlds and count the losses: the same memory for any number of transcripts.

        Args:
            transcripts: The number of independent games in each world, at least 1.
            rng: One number is drawn from it for each world; all else follows from these.
            failure: The probability with which any confidence limit may be wrong, in (0, 1).
            shares: The number of experiments that share this probability.
            progress: Told what is played, how many transcripts are done, and of how many.

        Raises:
            DomainError: If a number is outside its domain.
            RefusedRoundError: If the adversary asks what it may not, or fails.
        """
        count = check.count("transcripts", transcripts, least=1, most=MOST_TRANSCRIPTS)
        failure, shares = (
            check.open_probability("failure", failure),
            check.count("shares", shares, least=1),
        )
        tallies: list[Tally] = []
        rules = self._rules()
        for world, sign in ((World.ZERO, 1.0), (World.ONE, -1.0)):
            found = Tally.of(np.empty(0))
            for *_, lost in self._blocks(world, count, rng, rules, progress):
                found += Tally.of(sign * lost)
            tallies.append(found)
        return Measured(tallies[0], tallies[1], self.rounds, failure, shares, rules.error)

    def solve(self, *, leaves: int = 1 << 18) -> Solved:
        """The exact distributions of the view in both worlds, for mechanisms with finitely many answers.

        Args:
            leaves: The most views to walk.

        Raises:
            RefusedRoundError: If the adversary asks what it may not, or uses coins.
            UnsupportedError: If a mechanism has infinitely many answers, or the tree more leaves.
        """
        return walk(
            self.adversary,
            self.rounds,
            self._rules(),
            leaves=check.count("leaves", leaves, least=1),
        )

    def _rules(self) -> Rules:
        """The rules, with an empty cache of channels."""
        states = self.filter and States(
            self.filter, adjacency=self.adjacency, delta=self.charged_delta
        )
        return Rules(tuple(self.family), self.adjacency, self.orientation, states)

    def _blocks(
        self,
        world: World,
        count: int,
        rng: np.random.Generator,
        rules: Rules,
        progress: Progress | None,
    ) -> Iterator[tuple[int, Seed, Reals, Reals]]:
        """The blocks one after the other, each with its own random numbers; the next one uses the same arrays.

        Of each the first transcript, the seed of its coins, the answers so far as somebody asked, and the losses.
        """
        check.member("world", world, World)
        accepted = "a numpy.random.Generator, such as numpy.random.default_rng(1)"
        check.kind("rng", rng, np.random.Generator, accepted)
        root = int(rng.integers(2**63))
        # A block of many rounds has fewer transcripts, so that it needs no more memory.
        size = min(BLOCK, count, -(-MOST_PLAYED // self.rounds))
        room = np.empty((self.rounds, size))
        for block, start in enumerate(range(0, count, size)):
            if progress is not None:
                progress(f"world {world.value}", start, count)
            seed, noise = (root, world.value, block, 0), coins_of((root, world.value, block, 1))
            answers = room[:, : min(size, count - start)]
            yield start, seed, *self._block(world, coins_of(seed), noise, rules, answers)

    def _block(
        self,
        world: World,
        coins: np.random.Generator,
        noise: np.random.Generator,
        rules: Rules,
        answers: Reals,
    ) -> tuple[Reals, Reals]:
        state, size = opened(self.adversary, coins), answers.shape[1]
        loss, spare, places = np.zeros(size), np.empty(size), np.zeros(size, dtype=np.intp)
        for number in range(self.rounds):
            read = partial(checked, places=places, rules=rules)
            state, groups = chosen(self.adversary, state, answers[:number], read)
            if groups is None:
                return answers[:number], loss
            answer(groups, world, noise, answers[number], loss, spare)
            places = groups.places
        return answers, loss


# The measured, the exact and the certified delta of one experiment, over epsilon.


POINTS, DELTAS, LEAVES = 41, 7, 1 << 12
DRAWN = 1e-4
"""The tolerance of what is drawn; the answer itself has a smaller one."""


@dataclass(frozen=True)
class TheoremCurve:
    """The curve of one theorem.

    Args:
        name: The theorem.
        reference: Its source.
        points: Its pairs (epsilon, delta), by falling delta.
    """

    name: str
    reference: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Summary(Card):
    """The results of an experiment, as a report shows them.

    Args:
        game: The experiment.
        transcripts: The number of games in each world.
        measured: Their losses, counted.
        epsilon: The epsilon that was asked for.
        at: The limits and the estimate there, arrays of one entry.
        certified: The certified delta there, of every adversary with this family.
        exact: delta there, where the tree could be walked.
        epsilons: The epsilons of the curves, shape (m,).
        curve: The limits there.
        ceiling: The certified upper ends there, shape (m,).
        walked: The exact delta there, where known, shape (m,), rounded up, but not above what is certified.
        theorems: The curves of all theorems that apply.
    """

    game: Experiment
    transcripts: int
    measured: Measured
    epsilon: float
    at: Limits
    certified: Bound
    exact: Bound | None
    epsilons: Reals
    curve: Limits
    ceiling: Reals
    walked: Reals | None
    theorems: tuple[TheoremCurve, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing measured or solved is above what is certified."""
        measured = (
            bool(np.all(self.curve.lower <= self.ceiling))
            and float(self.at.lower[0]) <= self.certified.upper
        )
        solved = self.walked is None or bool(np.all(self.walked <= self.ceiling))
        return (
            measured and solved and (self.exact is None or self.exact.lower <= self.certified.upper)
        )


def summarize(
    game: Experiment, *, epsilon: float, transcripts: int, seed: int, failure: float = 1e-6,
    progress: Progress | None = None,
) -> Summary:  # fmt: skip
    """Play the experiment, solve it if possible, and evaluate the theorems.

    Args:
        game: The experiment.
        epsilon: The epsilon at which delta is asked for, in nats.
        transcripts: The number of games in each world.
        seed: The seed of all random numbers, >= 0.
        failure: The probability with which any confidence limit may be wrong.
        progress: Called with the current task, and how much of it is done.

    Raises:
        DomainError: If a number is outside its domain.
        RefusedRoundError: If the adversary asks what it may not, or fails.
    """
    point, rng = (
        check.finite("epsilon", epsilon),
        np.random.default_rng(check.count("seed", seed, least=0)),
    )
    measured = game.measure(transcripts=transcripts, rng=rng, failure=failure, progress=progress)
    report: Progress = progress or (lambda task, done, total: None)
    report("certifying", 0, DELTAS + 2)
    epsilons = _points(game, point, transcripts)
    ceiling = game.composition.profile(tolerance=DRAWN)(epsilons).upper
    report("certifying", 1, DELTAS + 2)
    solved = None
    # Some experiments have infinitely many answers, or coins.
    with suppress(UnsupportedError, RefusedRoundError):
        solved = game.solve(leaves=LEAVES)
    certified = game.composition.profile(tolerance=1e-6).question.delta(point)
    walked = None
    if solved is not None:
        ends = zip(epsilons.tolist(), ceiling.tolist(), strict=True)
        walked = np.array([_below(solved.delta(each), most).upper for each, most in ends])
    return Summary(
        game=game,
        transcripts=transcripts,
        measured=measured,
        epsilon=point,
        at=measured.delta([point]),
        certified=certified,
        exact=None if solved is None else _below(solved.delta(point), certified.upper),
        epsilons=epsilons,
        curve=measured.delta(epsilons),
        ceiling=ceiling,
        walked=walked,
        theorems=_theorems(game, transcripts, report),
    )


def _below(solved: Bound, most: float) -> Bound:
    """The delta of one adversary, which is at most what is certified of every adversary."""
    return Bound(solved.lower, max(solved.lower, min(solved.upper, most)), solved.certificate)


def _points(game: Experiment, epsilon: float, transcripts: int) -> Reals:
    """Epsilons from 0 to where delta is too small to be seen."""
    seen = game.composition.epsilon(delta=min(1.0 / transcripts, 0.5), tolerance=1e-3)
    end = max(epsilon, min(seen.upper, 50.0) if math.isfinite(seen.upper) else 2 * epsilon + 1, 0.1)
    # Short decimals, so that a page shows epsilons without rounding them.
    step = float(f"{end * 1.05 / (POINTS - 1):.2g}")
    return np.array([float(f"{step * place:.9g}") for place in range(POINTS)])


def _theorems(game: Experiment, transcripts: int, report: Progress) -> tuple[TheoremCurve, ...]:
    """The curve of each theorem that applies, at a few deltas."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    deltas = np.geomspace(0.3, min(0.1, 1.0 / transcripts), DELTAS)
    for number, delta in enumerate(float(f"{each:.2g}") for each in deltas):
        report("asking every theorem", number + 2, DELTAS + 2)
        for row in game.composition.compare(delta=delta, tolerance=DRAWN):
            if row.kind != "estimate" and row.epsilon < math.inf:
                found.setdefault((row.name, row.reference), []).append((row.epsilon, delta))
    return tuple(
        TheoremCurve(name, reference, tuple(points)) for (name, reference), points in found.items()
    )
