"""The natural filter, which is unsound: it is here to say so."""

from __future__ import annotations

from typing import Any, NoReturn

from dpcompose.errors import UnsupportedError

REASON = (
    "stopping when the exact composition of the parameters so far would exceed the budget is unsound if they are chosen"
    " from earlier answers. Budget (1.5, 0.05): randomized response with epsilon 1, then, if it answers yes, another"
    " with epsilon 0.611490968801848951918, if no, a (0, 0.05) mechanism. Each branch composes to (1.5, 0.05) exactly,"
    " and the interaction has delta(1.5) = 0.0634470710684997560374, against 0.05"
)


class NaturalFilter:
    """Refused: no filter stops when the exact composition so far would exceed the budget.

    The continuations' privacy profiles cross: each branch keeps below the budget at one epsilon, and the choice between
    them is itself informative. Composition theorems for parameters fixed in advance do not become filters.

    Raises:
        UnsupportedError: Always, with the counter-example.

    Reference: [TranKoskelaRaisaHonkela2026]
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        refuse()


def refuse() -> NoReturn:
    """Raise the refusal."""
    raise UnsupportedError(
        "the natural filter",
        REASON,
        "Use ConcentratedFilter, or fixed sub-budgets (Curators), which compose by the tightest theorem",
    )
