"""Scopes of an account: the words of their budgets, the filters and schedules these mean, and what was charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from dpcompose import check
from dpcompose.account.target import NumericLiteral, exact_text, target_in_words, target_of
from dpcompose.adaptive import Filter, from_description
from dpcompose.errors import DomainError, UnknownScopeError, UnsupportedError
from dpcompose.ledger import Amount, Kind, Ledger, Scope, paths_down_to, scope_path
from dpcompose.mechanisms import parse
from dpcompose.values import Adjacency

if TYPE_CHECKING:
    from dpcompose.adaptive import Curators, Odometer
    from dpcompose.composition import Composable

VERSION = 1
Schedule = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class ScopeBudget:
    """A scope, read.

    Args:
        scope: As the ledger has it.
        filter: Whose caps it has; None if it caps nothing.
        adjacency: Under which its charges are priced; None if it says nothing.
        odometer: Fixed when it was opened, if any.
        schedule: What was committed before the first answer, in order, with counts; empty if nothing was.
        target: The epsilon and delta that it was opened for, as decimals; None if its filter was stated itself.
    """

    scope: Scope
    filter: Filter | None
    adjacency: Adjacency | None
    odometer: Odometer | None
    schedule: tuple[tuple[str, int], ...]
    target: tuple[str, str] | None = None

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """The budget that the description of a scope states.

        Raises:
            UnsupportedError: If it caps something and names no filter: nothing here could price for it.
        """
        budget = scope.description.get("budget")
        if budget is None or list(budget) == ["renew"]:
            if scope.caps:
                remedy = "Open it with account.open_scope"
                raise _unpriced(scope, "it caps amounts and names no filter", remedy)
            return cls(scope, None, None, None, ())
        try:
            read = cls._read(scope, budget)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _unpriced(scope, f"its description cannot be read ({error})") from error
        stated = {} if read.filter is None else read.filter.caps
        if {name: cap.fraction for name, cap in scope.caps.items()} != stated:
            raise _unpriced(scope, "its caps are not those of the filter it names")
        alternatives = [] if read.filter is None else stated_alternatives(read.filter)
        if budget.get("alternatives", []) != alternatives:
            raise _unpriced(scope, "its alternatives are not those of its filter")
        return read

    @classmethod
    def _read(cls, scope: Scope, budget: Mapping[str, Any]) -> Self:
        if budget["version"] != VERSION:
            raise ValueError(f"version {budget['version']!r}")
        odometer = None
        if "odometer" in budget:
            from dpcompose.adaptive import Odometer  # it needs scipy, and few scopes have one

            odometer = Odometer.from_description(budget["odometer"])
        filter = None if budget["filter"] is None else from_description(budget["filter"])
        rows = budget.get("schedule", ())
        schedule = tuple((str(text), check.count("times", times)) for text, times in rows)
        adjacency = Adjacency(budget["adjacency"])
        return cls(scope, filter, adjacency, odometer, schedule, target_of(scope))

    @property
    def path(self) -> str:
        """The path of the scope."""
        return self.scope.path

    @property
    def in_words(self) -> str:
        """Its target, or the filter that it was opened with."""
        own = repr(self.filter) if self.target is None else target_in_words(self.target)
        return own if self.scope.renewal is None else f"{own} {self.scope.renewal.words}"

    @property
    def curators(self) -> Curators:
        """The budget itself, as something that is priced; for slots, all of them."""
        from dpcompose.adaptive import Curators

        if self.filter is None or self.adjacency is None:
            raise _unpriced(self.scope, "it has no budget of its own", "Open it with a filter")
        return Curators(self.scope.slots or 1, filter=self.filter, adjacency=self.adjacency)

    def committed(self, rounds: int) -> list[tuple[Composable, int]]:
        """The first so many rounds of the schedule."""
        found: list[tuple[Composable, int]] = []
        for text, times in self.schedule:
            taken = min(times, rounds)
            rounds -= taken
            if taken:
                found.append((parse(text), taken))
        return found

    @property
    def rounds(self) -> int:
        """How many rounds were committed."""
        return sum(times for _, times in self.schedule)


def _unpriced(scope: Scope, why: str, remedy: str = "Open another scope") -> UnsupportedError:
    return UnsupportedError(f"the scope {scope.path!r}", why, remedy)


def path_in(ledger: Any, path: Any) -> str:
    """`path` as a path, once it is known that the ledger is one."""
    check.kind("ledger", ledger, Ledger, "a Ledger, such as Ledger.open('sqlite:ledger.db')")
    return scope_path(path)


def as_mapping(name: str, value: Any) -> dict[str, Any]:
    """`value` as a mapping to keep, empty for None; what is in it is the ledger's to judge."""
    if value is not None and not isinstance(value, Mapping):
        raise DomainError(name, value, "a mapping of plain values, or None")
    return dict(cast("Mapping[str, Any]", value or {}))


def stated_alternatives(filter: Filter) -> list[dict[str, str]]:
    """The alternatives of a filter as a ledger keeps them, rounded down; empty if its limits are all there is."""
    sets = filter.alternatives if filter.has_alternatives else ()
    return [{name: str(Amount.down(caps[name])) for name in sorted(caps)} for caps in sets]


def described(
    filter: Filter | None,
    adjacency: Adjacency,
    odometer: Odometer | None = None,
    schedule: Schedule = (),
    note: Mapping[str, Any] | None = None,
    target: tuple[NumericLiteral, NumericLiteral] | None = None,
) -> dict[str, Any]:
    """The description of a scope, plain values only."""
    stated = None if filter is None else filter.description()
    budget: dict[str, Any] = {"version": VERSION, "filter": stated, "adjacency": adjacency.value}
    if filter is not None and (alternatives := stated_alternatives(filter)):
        budget["alternatives"] = alternatives
    if target is not None:
        named = zip(("epsilon", "delta"), target, strict=True)
        budget["target"] = {name: str(exact_text(name, value)) for name, value in named}
    if odometer is not None:
        from dpcompose.adaptive import Odometer

        check.kind("odometer", odometer, Odometer, "an Odometer, or None")
        budget["odometer"] = odometer.description()
    if schedule:
        budget["schedule"] = [[text, times] for text, times in schedule]
    kept = as_mapping("note", note)
    return {"budget": budget} | ({"note": kept} if kept else {})


def as_opened(ledger: Ledger, path: str, stated: Mapping[str, Any]) -> Mapping[str, Any]:
    """The caps and description of a new scope; those that it was opened with, if it was opened for the same target.

    A limit is searched for, and another version may find another last digit: opening a scope again stays safe.
    """
    with suppress(UnknownScopeError):
        scope = ledger.balance(path).scope
        before, now = map(_without_limits, (scope.description, stated["description"]))
        if before is not None and before == now:
            return {"caps": scope.caps, "description": scope.description}
    return stated


_SEARCHED = {"epsilon", "rho", "budget", "mu", "squares"}
"""The limits of budgets of one theorem, by their names in descriptions."""


def _without_limits(description: Mapping[str, Any]) -> dict[str, Any] | None:
    """The description of a budget for a target without the limits that follow from it; None for another one."""
    budget = dict(description.get("budget", {}))
    filter = dict(budget.get("filter") or {})
    if filter.get("filter") == "budget":
        filter["parts"] = [{**each, "limit": ""} for each in filter["parts"]]
    elif "target" in budget:
        filter |= dict.fromkeys(_SEARCHED & filter.keys(), "")
    else:
        return None
    return {**description, "budget": {**budget, "filter": filter, "alternatives": ""}}


def chain(ledger: Ledger, path: str) -> list[ScopeBudget]:
    """The scope and those above it that its charges reach, the highest first: up to and without a scope of slots."""
    found: list[ScopeBudget] = []
    paths = paths_down_to(path_in(ledger, path))[::-1]
    with ledger.moment() as moment:
        for above in paths:
            scope = moment.balance(above).scope
            if found and scope.kind is Kind.SLOTS:
                break
            found.append(ScopeBudget.of(scope))
    return found[::-1]


def adjacency_of(budgets: Sequence[ScopeBudget], default: Adjacency) -> Adjacency:
    """The adjacency that all budgets of a chain share, and its partitions: that these part people depends on it."""
    counted = [
        each for each in budgets if each.filter is not None or each.scope.kind is Kind.PARTITION
    ]
    stated = {each.adjacency for each in counted if each.adjacency is not None}
    if len(stated) > 1:
        different = sorted(str(each) for each in stated)
        raise DomainError("adjacency", different, "the same along the whole chain of scopes")
    return next(iter(stated), default)


def budgets_above(ledger: Ledger, path: str) -> list[ScopeBudget]:
    """The chain of the scope above `path`, the highest first; empty for a top-level path."""
    parent = path_in(ledger, path).rpartition("/")[0]
    return chain(ledger, parent) if parent else []


def require_same_adjacency(ledger: Ledger, path: str, adjacency: Adjacency) -> None:
    """Raise DomainError unless the adjacency is that of all scopes above."""
    check.member("adjacency", adjacency, Adjacency)
    stated = adjacency_of(budgets_above(ledger, path), adjacency)
    if stated is not adjacency:
        raise DomainError("adjacency", adjacency, f"{stated}, as in the scopes above")


CHOSEN = (
    "a report: these numbers hold if every parameter had been fixed before the first answer; they free no budget, and"
    " nothing may be decided by them"
)
