"""The page and the document of an experiment: the measured delta beside the certified one."""

from __future__ import annotations

from typing import Any

from dpcompose.composition import Composable
from dpcompose.composition.container import Part
from dpcompose.experiment import Summary
from dpcompose.report.document import bound_document
from dpcompose.report.number import above, below, exactly, interval, near
from dpcompose.report.page import Fact, Heading, Page, PageTable

SHOWN = 9


def experiment_page(found: Summary, *, adversary: str, budget: str = "") -> Page:
    """The experiment for people.

    Args:
        found: The results.
        adversary: The name of the adversary.
        budget: A claim that the experiment refutes, or empty.
    """
    game, limits = found.game, found.at
    low, high = below(float(limits.lower[0]), 4), above(float(limits.upper[0]), 4)
    headline = f"delta at epsilon = {exactly(found.epsilon)}: between {low} and {high}"
    facts = [
        Fact("adversary", f"{adversary}, {game.rounds} round{'s' * (game.rounds != 1)}"),
        Fact("family", "; ".join(dict.fromkeys(_label(each) for each in game.family))),
        Fact("neighbors", f"{game.adjacency.value}, orientation {game.orientation.value}"),
        Fact("measured", f"{near(float(limits.estimate[0]))} from {found.transcripts:,} transcripts in each world"),
        Fact("certified", f"delta <= {above(found.certified.upper)} for every adversary with this family"),
    ]
    if found.exact is not None:
        low, high = interval(found.exact)
        facts.append(Fact("exact", f"{low} <= delta <= {high} for this adversary, every view solved"))
    notes = [
        "The limits hold for all epsilons and both directions together, "
        f"except with probability {exactly(found.measured.failure)}."
    ]
    notes += [budget] if budget else []
    if not found.sound:
        notes.append("What was measured is above what is certified: a defect, please report it with the seed.")
    tone = "plain" if found.sound else "bad"
    return Page("The k-fold experiment", headline, tone, tuple(facts), (_curve(found), _promised(found)), tuple(notes))


def experiment_document(found: Summary, *, adversary: str, seed: int) -> dict[str, Any]:
    """The experiment for programs: every number in full precision."""
    edges, zero, one = found.measured.histogram()
    return {
        "adversary": adversary,
        "rounds": found.game.rounds,
        "family": [_label(each) for each in found.game.family],
        "adjacency": found.game.adjacency.value,
        "orientation": found.game.orientation.value,
        "transcripts": found.transcripts,
        "seed": seed,
        "failure": found.measured.failure,
        "epsilon": found.epsilon,
        "delta": {
            "lower": float(found.at.lower[0]),
            "estimate": float(found.at.estimate[0]),
            "upper": float(found.at.upper[0]),
        },
        "certified": bound_document(found.certified),
        "exact": None if found.exact is None else bound_document(found.exact),
        "sound": found.sound,
        "curve": {
            "epsilon": found.epsilons.tolist(),
            "lower": found.curve.lower.tolist(),
            "estimate": found.curve.estimate.tolist(),
            "upper": found.curve.upper.tolist(),
            "certified": found.ceiling.tolist(),
            "exact": None if found.walked is None else found.walked.tolist(),
        },
        "theorems": [
            {"theorem": each.name, "reference": each.reference, "points": [list(point) for point in each.points]}
            for each in found.theorems
        ],
        "losses": {"edges": edges.tolist(), "world_0": zero.tolist(), "world_1": one.tolist()},
    }


def _label(mechanism: Composable) -> str:
    return mechanism.label if isinstance(mechanism, Part) else repr(mechanism)


def _curve(found: Summary) -> PageTable:
    columns = [Heading("epsilon", "right"), Heading("delta, at least", "right"), Heading("estimate", "right")]
    columns += [Heading("at most", "right")] + ([Heading("exact", "right")] if found.walked is not None else [])
    columns.append(Heading("certified", "right"))
    rows: list[tuple[str, ...]] = []
    for place in range(0, len(found.epsilons), (len(found.epsilons) - 1) // (SHOWN - 1)):
        limits = found.curve
        row = [
            exactly(float(found.epsilons[place])), below(float(limits.lower[place]), 4),
            near(float(limits.estimate[place]), 4), above(float(limits.upper[place]), 4),
        ]  # fmt: skip
        row += [] if found.walked is None else [above(float(found.walked[place]), 6)]
        rows.append((*row, above(float(found.ceiling[place]), 4)))
    return PageTable("What the adversary tells apart", tuple(columns), tuple(rows))


def _promised(found: Summary) -> PageTable:
    """The epsilon of each theorem at the middle one of its deltas."""
    points = [(each, each.points[len(each.points) // 2]) for each in found.theorems]
    delta = points[0][1][1] if points else 0.0
    rows = sorted(
        ((point[0], each.name, each.reference) for each, point in points if point[1] == delta),
    )
    columns = (Heading("theorem", wrap=True), Heading("epsilon", "right"), Heading("reference"))
    cells = tuple((name, above(epsilon), reference) for epsilon, name, reference in rows)
    return PageTable(f"What the theorems promise of every adversary at delta = {exactly(delta)}", columns, cells)
