"""dpcompose audited by itself: its mechanisms, filters, releases and sessions, for any length of
time.

    python -m campaigns.own_audit FOLDER [--seconds 3600] [--only TEXT] [--table]

Every subject has a journal in the folder and an equal part of the time; the next run continues from
there. The probability that any of them is refuted by chance is at most 1e-6, however often the
campaign is stopped and run again. For each kind there is a control, the same subject with half its
claim, which must be refuted. `--table` prints the content of the journals.

Noise on real numbers is simulated in floating point, whose last bits distinguish the two data sets,
as they must; so it is audited on a lattice of 2^-20. What `dpcompose.release` draws are integers,
which are audited as they are.
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.release.audit import QUESTIONS, neighbors
from campaigns.release.audited import audited_question, audited_session
from dpcompose import (
    BlackBox,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
    compose,
)
from dpcompose.account import Account, open_scope
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
)
from dpcompose.audit import AuditResult, Pair, Subject, Transcripts, Verdict, audit
from dpcompose.audit.learned import LEARNERS
from dpcompose.audit.subject import Source
from dpcompose.composition import Composable, one_of
from dpcompose.experiment import Experiment, Greedy, Repeater, Wanderer, about_bob
from dpcompose.ledger import Ledger
from dpcompose.mechanisms import AboveThreshold
from dpcompose.release.sparse_vector import SparseVector

ALPHA = 1e-6
LATTICE = 2.0**20
DELTA = 1e-5


@dataclass(frozen=True)
class Case:
    """One subject.

    Args:
        make: Makes it.
        pair: The worlds.
        claim: What is promised.
        control: A claim that it does not keep; None where another of its kind has one.
    """

    make: Callable[[], Source]
    pair: Pair
    claim: Composable
    _: KW_ONLY
    control: Composable | None = None


@dataclass(frozen=True)
class OnLattice:
    """Transcripts whose answers are rounded to a lattice; the loss is as it is."""

    views: Transcripts

    @property
    def name(self) -> str:
        return f"{self.views.name}, on a lattice"

    def draw(self, pair: Pair, coins: np.ndarray) -> np.ndarray:
        rows = self.views.draw(pair, coins)
        return np.rint(rows * LATTICE) / LATTICE


def played(game: Experiment, claim: Composable, control: Composable | None = None) -> Case:
    views = Transcripts(game)
    return Case(lambda: OnLattice(views), views.pair, claim, control=control)


MECHANISMS: dict[str, tuple[Composable, Composable | None]] = {
    "Laplace": (Laplace(1.0), BlackBox(0.5)),
    "Gaussian": (Gaussian(1.0), Gaussian(2.0)),
    "discrete Laplace": (DiscreteLaplace(1.0), None),
    "discrete Gaussian": (DiscreteGaussian(1.0), None),
    "randomized response": (RandomizedResponse(1.0), None),
    "sampled Gaussian": (Gaussian(1.0).sampled(0.2), None),
    "sampled Laplace": (Laplace(1.0).sampled(0.2), None),
}
FAMILY = (Laplace(2.0), RandomizedResponse(0.4), Gaussian(3.0))
FILTERS: dict[str, tuple[Filter, tuple[Composable, ...], float]] = {
    "pure filter": (PureFilter(1.5), (Laplace(2.0), RandomizedResponse(0.4)), 0.0),
    "basic filter": (BasicFilter(1.5, delta=1e-3), (Laplace(2.0), RandomizedResponse(0.4)), 1e-3),
    "advanced filter": (
        AdvancedFilter(1.5, delta=1e-3, slack=9e-4),
        (Laplace(8.0), RandomizedResponse(0.1)),
        1e-3,
    ),
    "zCDP filter": (ConcentratedFilter(0.1, delta=0), (Gaussian(5.0), Laplace(4.0)), DELTA),
    "Renyi filter": (RenyiFilter(order=8.0, budget=0.6), (Gaussian(5.0), Gaussian(4.0)), DELTA),
    "Gaussian filter": (GaussianFilter(0.6), (Gaussian(5.0), Gaussian(4.0)), DELTA),
}


def cases() -> Iterator[tuple[str, Case]]:
    """Every subject by its name."""
    for name, (mechanism, control) in MECHANISMS.items():
        game = Experiment(
            Repeater(about_bob(mechanism)),
            family=[mechanism],
            rounds=1,
            orientation=Orientation.SAME,
        )
        yield name, played(game, mechanism, control)
    queries = [about_bob(mechanism) for mechanism in FAMILY]
    asked: dict[str, Any] = {"family": FAMILY, "orientation": Orientation.SAME}
    for rounds, adversary in ((2, Greedy(queries, epsilon=0.5)), (8, Wanderer(queries, seed=3))):
        whole: Composition = compose(one_of(*FAMILY) * rounds)
        half = compose(one_of(*FAMILY) * (rounds // 2)) if rounds == 2 else None
        yield (
            f"{type(adversary).__name__}, {rounds} rounds",
            played(Experiment(adversary, rounds=rounds, **asked), whole, half),
        )
    yield from _filtered()
    tables = neighbors()
    for name, question in QUESTIONS.items():
        what = audited_question(question, *tables)
        control = BlackBox(0.5) if name == "count" else None
        yield (
            f"release: {name}",
            Case(lambda what=what: what.subject, what.pair, what.claim, control=control),
        )
    what = audited_session(
        [QUESTIONS["count"], QUESTIONS["units by keys"], QUESTIONS["sum"]], *tables
    )
    yield "release: a session", Case(lambda: what.subject, what.pair, what.claim)
    yield (
        "release: sparse vector",
        Case(lambda: Subject(_sparse(), label="sparse vector"), Pair(0, 1), BlackBox(1.0)),
    )


def _filtered() -> Iterator[tuple[str, Case]]:
    for name, (filter, family, delta) in FILTERS.items():
        queries = [about_bob(mechanism) for mechanism in family]
        claim = BlackBox(filter.epsilon_at(delta=delta), delta=delta)
        game = Experiment(
            Greedy(queries, epsilon=claim.stated.epsilon / 2), family=family, rounds=12, filter=filter,
            orientation=Orientation.SAME,
        )  # fmt: skip
        yield name, played(game, claim, BlackBox(0.5) if name == "pure filter" else None)


def _sparse() -> Callable[[int], list[bool]]:
    """Answers about integers that a record moves by 1 each, some up and some down."""
    ledger = Ledger.open("memory:")
    open_scope(ledger, "audit", filter=PureFilter(1e12), actor="auditor")
    account = Account(ledger, scope="audit")

    def call(world: int) -> list[bool]:
        opened = SparseVector.open(
            account,
            AboveThreshold(1.0, positives=2),
            threshold=0,
            actor="auditor",
            key=str(uuid.uuid4()),
        )
        told: list[bool] = []
        for value in (-1 + world, 1 - world, -1 + world, world, -1 + world, world):
            if not opened.closed:
                told.append(opened.above(value))
        return told

    return call


def run(name: str, case: Case, folder: Path, *, alpha: float, seconds: float) -> AuditResult:
    """Go on with one subject."""
    path = folder / f"{''.join(letter if letter.isalnum() else '-' for letter in name)}.journal"
    asked: dict[str, Any] = {
        "alpha": alpha,
        "samples": 10**9,
        "seconds": seconds,
        "learners": LEARNERS,
    }
    return audit(case.make(), [case.pair], claim=case.claim, resume=path, **asked)


def caught(case: Case) -> bool:
    """Whether the control is refuted."""
    assert case.control is not None
    found = audit(
        case.make(),
        [case.pair],
        claim=case.control,
        alpha=ALPHA,
        samples=200_000,
        seconds=60,
        ladder=False,
    )
    return found.verdict is Verdict.REFUTED


def line(name: str, case: Case, found: AuditResult) -> str:
    excluded = sum(each.excluded for each in found.tried)
    point = case.claim.epsilon(delta=found.delta).upper
    return (
        f"| {name} | {found.verdict.value} | {found.samples:,} | {found.epsilon.lower:.3g} of {point:.3g} at "
        f"{found.delta:g} | {excluded} of {len(found.tried)} | {found.unseen:.1e} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    everything = dict(cases())
    chosen = {name: case for name, case in everything.items() if options.only in name}
    seconds = 0.0 if options.table else options.seconds / len(chosen)
    print(
        "| subject | verdict | draws | epsilon shown, of claimed | events excluded | unseen below |"
    )
    print("|---|---|--:|---|--:|--:|", flush=True)
    failed = False
    for name, case in chosen.items():
        found = run(name, case, options.folder, alpha=ALPHA / len(everything), seconds=seconds)
        good = found.verdict is not Verdict.REFUTED and (
            options.table or case.control is None or caught(case)
        )
        failed |= not good
        print(line(name, case, found) + ("" if good else " <-- WRONG"), flush=True)
    print("FAILED" if failed else "nothing refuted, and every control is")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
