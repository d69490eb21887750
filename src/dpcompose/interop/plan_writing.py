"""A composition as a plan: each part becomes a `[[mechanism]]` table."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dpcompose.composition import Composable, ComposablePart, Composition, Sampled, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import RenyiLine
from dpcompose.law import Atoms, Pair
from dpcompose.mechanisms import DominatingPair, PrivateSelection, RenyiCurve, arguments
from dpcompose.plan import COMPOSITION, MECHANISMS, SELECTION, Entry, Plan, PlanQuestion, dashed
from dpcompose.values import Adjacency

Keys = tuple[tuple[str, Any], ...]


def plan_of(
    composition: Composable, *, adjacency: Adjacency, question: PlanQuestion | None = None
) -> Plan:
    """The plan of a composition.

    >>> from dpcompose import Adjacency, Gaussian
    >>> print(plan_of(Gaussian(1.5).sampled(0.25) * 10, adjacency=Adjacency.ADD_REMOVE).toml())
    adjacency = "add-remove"
    <BLANKLINE>
    [[mechanism]]
    name = "gaussian"
    kind = "gaussian"
    sigma = 1.5
    rate = 0.25
    times = 10
    <BLANKLINE>

    Raises:
        DomainError: If it has no part.
        UnsupportedError: If a part is given by a function, which no file holds.
    """
    parts = compose(composition).parts
    if not parts:
        raise DomainError(
            "composition",
            "nothing",
            "at least one mechanism",
            "What releases nothing needs no plan",
        )
    tables = [dict(_table(part, times)) for part, times in parts]
    uses = Counter(table["kind"] for table in tables)
    entries: list[Entry] = []
    for position, table in enumerate(tables, start=1):
        kind, times = table.pop("kind"), table.pop("times", 1)
        name = kind if uses[kind] == 1 else f"{kind}-{position}"
        rate = None if "rate" in MECHANISMS[kind].parameters else table.pop("rate", None)
        entries.append(Entry(name, kind, tuple(table.items()), rate, times))
    return Plan(tuple(entries), question, adjacency)


def _table(part: ComposablePart, times: int) -> Keys:
    """The keys of the table of one part that runs so often."""
    rate: Keys = ()
    if isinstance(part, Sampled):
        rate = (("rate", part.rate),)
        keys = _whole(part.base)
    else:
        keys = _stated(part)
    return (*keys, *rate, ("times", times)) if times > 1 else (*keys, *rate)


def _whole(composition: Composition) -> Keys:
    """The table of what runs together: of one mechanism, or of a composition."""
    if composition.count == 1:
        return _table(composition.parts[0][0], 1)
    return (
        ("kind", COMPOSITION),
        ("parts", tuple(_table(part, times) for part, times in composition.parts)),
    )


def _stated(part: ComposablePart) -> Keys:
    match part:
        case PrivateSelection(base=base, tries=tries, shape=shape):
            return (
                ("kind", SELECTION),
                ("base", _whole(compose(base))),
                ("tries", tries),
                ("shape", shape),
            )
        case RenyiCurve(stated=known, holds_under=holds_under) if isinstance(
            known.curve, RenyiLine
        ):
            line = known.curve
            return (
                ("kind", "renyi-line"),
                ("rho", line.rho),
                ("xi", line.xi),
                ("holds_under", holds_under),
            )
        case DominatingPair(pair=Pair(remove=Atoms() as table)) if _is_of(part, table):
            masses = (("upper", table.upper), ("lower", table.lower))
            return (("kind", "dominating-pair"), *masses, ("holds_under", part.holds_under))
        case _:
            try:
                name, given = arguments(part)
            except DomainError:
                reason = "it is given by a function, and a plan holds numbers"
                raise UnsupportedError(
                    repr(part), reason, "Give its values at some points"
                ) from None
            return (("kind", dashed(name)), *given.items())


def _is_of(part: DominatingPair, table: Atoms) -> bool:
    """Whether the masses of a table are all that is known of a pair."""
    return part == DominatingPair.atoms(
        upper=table.upper, lower=table.lower, adjacency=part.holds_under
    )
