"""Looking at what was charged under other theorems: a report, which frees no budget."""

from __future__ import annotations

from dataclasses import dataclass

from dpcompose import check
from dpcompose.account.scope import ScopeBudget
from dpcompose.composition import Comparison, compose
from dpcompose.errors import UnsupportedError
from dpcompose.ledger import GRANTED, Ledger
from dpcompose.mechanisms import parse
from dpcompose.values import Adjacency, Orientation

FIXED = "this scope ran a schedule that was committed before the first answer: these numbers hold for it"
SO_FAR = f"{FIXED}, if the number of rounds so far was not chosen from the answers"
CHOSEN = (
    "a report: these numbers hold if every parameter had been fixed before the first answer; they free no budget, and"
    " nothing may be decided by them"
)


@dataclass(frozen=True)
class History:
    """The charges of one scope under every theorem that applies.

    Args:
        path: The scope; its own charges, not those below it.
        delta: The delta of all rows.
        charges: How many.
        rows: One theorem each, the tightest first.
        holds: When these numbers hold.
    """

    path: str
    delta: float
    charges: int
    rows: tuple[Comparison, ...]
    holds: str


def history(ledger: Ledger, path: str, *, delta: float) -> History:
    """The sum of a scope's charges under every theorem, were they fixed in advance; whoever turns pairs.

    Args:
        ledger: Where.
        path: The scope.
        delta: In [0, 1].

    Raises:
        UnknownScopeError: If there is no such scope.
        UnsupportedError: If a charge cannot be read back, or the charges are priced under different adjacencies.
    """
    delta = check.probability("delta", delta)
    with ledger.moment() as moment:
        budget = ScopeBudget.of(moment.balance(path).scope)
        charges = [
            entry
            for entry in moment.entries(path)
            if entry.kind == GRANTED and entry.scope == budget.path
        ]
    texts = [entry.description.get("mechanism") for entry in charges]
    for entry, text in zip(charges, texts, strict=True):
        if text is None:
            raise UnsupportedError(
                f"the history of {path!r}",
                f"charge {entry.sequence} was not written down readably",
                "Read the prices",
            )
    adjacencies = {entry.description.get("adjacency") for entry in charges}
    if len(adjacencies) > 1:
        raise UnsupportedError(
            f"the history of {path!r}", "its charges are priced under different adjacencies"
        )
    adjacency = Adjacency(next(iter(adjacencies))) if adjacencies else Adjacency.ADD_REMOVE
    composition = compose(*[parse(text) for text in texts])
    rows = composition.compare(delta=delta, adjacency=adjacency, orientation=Orientation.FREE)
    kept = bool(budget.schedule) and all(
        text == budget.scope.committed(position) for position, text in enumerate(texts)
    )
    fixed = FIXED if len(charges) == budget.rounds else SO_FAR
    return History(budget.path, delta, len(charges), rows, fixed if kept else CHOSEN)
