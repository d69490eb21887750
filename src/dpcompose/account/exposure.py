"""The exposure of one person: two labelled numbers, one promised and one spent, each with where it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcompose.account import promised, spent
from dpcompose.account.tree import Statement, trees_of, unavailable, underpaid
from dpcompose.guarantee import Adjacency
from dpcompose.ledger import Ledger
from dpcompose.numerics import check


@dataclass(frozen=True)
class Exposure:
    """The exposure of one person who is present in these scopes.

    Args:
        paths: The scopes that hold the person.
        delta: The delta of both numbers.
        promised: The guarantee of the fixed budgets: it holds whatever is asked from now on.
        spent: A number on what has been charged so far, and the regime in which it holds.
        adjacency: What one person's data may change, in both numbers; None where the scopes do not agree on it.
    """

    paths: tuple[str, ...]
    delta: float
    promised: Statement
    spent: Statement
    adjacency: Adjacency | None


def exposure(ledger: Ledger, *, paths: Sequence[str], delta: float) -> Exposure:
    """The exposure of a person in all of `paths`, which must be all the scopes that hold the person.

    Which they are must have been fixed before the first charge to any of them; a scope that was never used, that is
    closed or has expired is one of them all the same. To open two and name the one that was used is the natural filter.

    All charges of these scopes, of the scopes below them and, once, of the scopes above them are about the person. Of a
    partition on the way to a path only that child counts, of one below a path the worst child, of slots each one.

    `promised`: the tightest composition of the budgets at the tops, each in full, if all of them were opened before the
    first charge to any of these scopes, to one above them, in a slot or in a child of a partition. Budgets in several
    top-level scopes compose if each tree records so before its first charge (`fix_budgets`).

    `spent`: for pure charges their sum, along every path; for charges on schedules that were committed before the first
    answer the tight composition; otherwise the readings of odometers whose failure probability was fixed at opening;
    otherwise nothing. Composing charges that were chosen along the way tightly, after the fact, is the natural filter,
    and is not offered.

    Args:
        ledger: Where.
        paths: At least one scope.
        delta: In [0, 1].

    Raises:
        UnknownScopeError: If there is no such scope.
        DomainError: If delta is outside its domain, or no path is named.
        UnsupportedError: If a scope caps amounts and names no filter.
    """
    delta = check.probability("delta", delta)
    with ledger.moment() as moment:
        trees = trees_of(moment, paths)
        short = underpaid(trees, moment)
    stated = {node.budget.adjacency for tree in trees for node in tree.all() if node.budget.filter or node.charges}
    return Exposure(
        tuple(paths),
        delta,
        promised.together(trees, delta=delta) if short is None else unavailable(short),
        spent.together(trees, delta=delta),
        next(iter(stated)) if len(stated) == 1 else None,
    )
