"""A summary of one experiment: the measured, the exact and the certified delta, over epsilon."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from dpcompose import check
from dpcompose.errors import RefusedRoundError, UnsupportedError
from dpcompose.experiment.channel import Reals
from dpcompose.experiment.experiment import Experiment, Progress
from dpcompose.experiment.measured import Limits, Measured
from dpcompose.pictured import Card
from dpcompose.values import Bound

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
    report = progress or _silent
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


def _silent(what: str, done: int, total: int) -> None:
    pass


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
    deltas = [
        float(f"{each:.2g}") for each in np.geomspace(0.3, min(0.1, 1.0 / transcripts), DELTAS)
    ]
    for number, delta in enumerate(deltas):
        report("asking every theorem", number + 2, DELTAS + 2)
        for row in game.composition.compare(delta=delta, tolerance=DRAWN):
            if row.kind != "estimate" and row.epsilon < math.inf:
                found.setdefault((row.name, row.reference), []).append((row.epsilon, delta))
    return tuple(
        TheoremCurve(name, reference, tuple(points)) for (name, reference), points in found.items()
    )
