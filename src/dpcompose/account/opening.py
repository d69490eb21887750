"""Opening scopes: budgets with their filters, partitions and schedules, and scopes of slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any

from dpcompose import check
from dpcompose.account.account import Account, chain_cost
from dpcompose.account.scope import (
    ScopeBudget,
    as_opened,
    budgets_above,
    described,
    path_in,
    require_same_adjacency,
    stated_alternatives,
)
from dpcompose.account.target import NumericLiteral, exact
from dpcompose.adaptive import (
    FILTERS,
    Budget,
    Curators,
    Filter,
    MenuFilter,
    Odometer,
    for_target,
    from_description,
)
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, UnknownScopeError, UnsupportedError
from dpcompose.ledger import Amount, Kind, Ledger, Scope, scope_paths
from dpcompose.mechanisms import parse, serialize
from dpcompose.values import Adjacency, AdjacencyName, rounded_down


def open_scope(
    ledger: Ledger,
    path: str,
    *,
    filter: Filter | type[Filter] | None = Budget,
    epsilon: NumericLiteral | None = None,
    delta: NumericLiteral | None = None,
    only: str | None = None,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    odometer: Odometer | None = None,
    schedule: Sequence[tuple[Composable, int] | Composable] = (),
    renew: str | timedelta | None = None,
    note: Mapping[str, Any] | None = None,
    actor: str,
    key: str | None = None,
) -> Account:
    """Open a budget and return the account on it. Repeating it is safe; a budget cannot be changed later.

    Args:
        ledger: Where.
        path: The new scope; the one above it must be open.
        filter: The budget, such as Budget(1, 1e-6); by default the Budget of epsilon and delta. Or a menu; or None, a
            scope that groups others and caps nothing itself.
        epsilon: The target, if no filter is stated; a float is read as its shortest decimal.
        delta: The target, likewise.
        only: One theorem alone, for whoever must cite it; see `Budget`.
        adjacency: What one person's data may change; the same along the whole chain of scopes.
        odometer: For a number on what is spent that holds at all times; its failure probability is fixed here.
        schedule: What will be charged, in this order, mechanisms or pairs (mechanism, times), if that is committed
            before the first answer: nothing else can be charged then, and what is spent composes tightly.
        renew: When the budget begins anew: "year", "quarter", "month", "week", "day" of the calendar in UTC, or a
            duration such as "P30D". What the filter guarantees, it guarantees of one period: periods add up, and
            `exposure(..., window=w)` says to what. Committed here, like everything else.
        note: Anything else to keep, in plain values.
        actor: Who opens it.
        key: An idempotency key.

    Raises:
        DomainError: If an argument is outside its domain.
        UnsupportedError: If the adjacency or the schedule has no sound statement.
        LedgerError: See `Ledger.scope`.
    """
    adjacency = check.named("adjacency", adjacency, Adjacency)
    require_same_adjacency(ledger, path, adjacency)
    budget = _filter_of(filter, epsilon, delta, adjacency, only)
    committed = _schedule(schedule)
    if committed and budget is None:
        raise DomainError("schedule", schedule, "none in a scope without a filter")
    target = _target(budget, epsilon, delta)
    stated = _stated(budget, described(budget, adjacency, odometer, committed, note, target))
    ledger.scope(path, renew=renew, actor=actor, key=key, **as_opened(ledger, path, stated))
    return Account(ledger, scope=path)


def _stated(budget: Filter | None, description: Mapping[str, Any]) -> dict[str, Any]:
    return {"caps": None if budget is None else budget.caps, "description": description}


def open_scopes(
    ledger: Ledger,
    paths: Iterable[str],
    *,
    filter: Filter | None,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    odometer: Odometer | None = None,
    renew: str | timedelta | None = None,
    note: Mapping[str, Any] | None = None,
    actor: str,
) -> int:
    """Open many scopes with equal budgets, in few commits; how many they are. Repeating it is safe.

    Args:
        ledger: Where.
        paths: The new scopes; those above each must be open, or stand before it.
        filter: The budget of each of them, such as Budget(1, 1e-6); see `open_scope`, as for all that follows.
        adjacency: What one person's data may change.
        odometer: Of each of them.
        renew: When each begins anew.
        note: Of each of them.
        actor: Who opens them.

    Raises:
        DomainError: If an argument is outside its domain; then none is opened.
        LedgerError: See `Ledger.open_scopes`.
    """
    adjacency = check.named("adjacency", adjacency, Adjacency)
    budget = _filter_of(filter, None, None, adjacency)
    description = described(budget, adjacency, odometer, (), note, _target(budget, None, None))
    return _open_alike(ledger, paths, adjacency, renew, actor, _stated(budget, description))


def _open_alike(
    ledger: Ledger,
    paths: Iterable[str],
    adjacency: Adjacency,
    renew: str | timedelta | None,
    actor: str,
    stated: Mapping[str, Any],
) -> int:
    """Open scopes that differ in their paths alone, outside of slots, under the adjacency of those above."""
    new = scope_paths(paths)
    for parent in {path_in(ledger, path).rpartition("/")[0] for path in new} - {"", *new}:
        require_same_adjacency(ledger, f"{parent}/new", adjacency)
        if (above := ledger.balance(parent).scope).kind is Kind.SLOTS:
            raise DomainError(
                "paths",
                f"{parent}/...",
                "scopes outside of slots",
                f"Take slots of {above.path} one by one",
            )
    stated = as_opened(ledger, new[0], stated) if new else stated
    return ledger.open_scopes(new, renew=renew, actor=actor, **stated)


def open_partition(
    ledger: Ledger,
    path: str,
    *,
    filter: Filter | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    renew: str | timedelta | None = None,
    note: Mapping[str, Any] | None = None,
    actor: str,
    key: str | None = None,
) -> Scope:
    """Open a scope whose children hold disjoint people: the budgets above count what one person may have met.

    That is what is spent in one child of it, and in one of each other partition below the same budget: a charge is
    granted where every such sum is within. More than 64 sums, none below another, count as the largest of each amount.

    Sound where each unit of privacy, with all its rows, is in one child for good, the names of the children are public,
    and every charge on a child reads only that child's people. Replacing a record changes two children: refused.

    In which child somebody is may depend on earlier answers. That is fine for one-shot charges with fresh noise: what a
    charge answers is drawn after its people are known, so the (epsilon, delta), rho or divergence of each holds
    whatever was seen before. What goes on answering may show early that it is about to fail, and a person who is then
    put into that child meets the failure itself and not its delta; of many children one nearly always shows it. So
    inside a partition slots, and whatever else is no mechanism, must be pure, and are refused otherwise.

    Args:
        ledger: Where.
        path: The new scope.
        filter: A cap on the largest child; None for none but those above.
        adjacency: What one person's data may change: add-remove or zero-out.
        renew: When it begins anew; its children then do so too.
        note: Anything else to keep.
        actor: Who opens it.
        key: An idempotency key.

    Raises:
        UnsupportedError: Under replace.
        DomainError, LedgerError: See `open_scope`.

    Reference: [HenzingerSafaviVadhan2024]
    """
    if adjacency is Adjacency.REPLACE:
        raise UnsupportedError(
            f"a partition at {path!r} under replace",
            "a replaced record may leave one child and enter another, and both pay",
            "State it under add-remove, or open one filter for all",
        )
    filter = _filter_of(filter, None, None, adjacency)
    require_same_adjacency(ledger, path, adjacency)
    stated = _stated(filter, described(filter, adjacency, None, (), note))
    if _has_fronts(ledger, path, filter):
        stated["description"]["budget"]["fronts"] = True
    return ledger.scope(
        path, kind=Kind.PARTITION, renew=renew, actor=actor, key=key, **as_opened(ledger, path, stated)
    )  # fmt: skip


def _has_fronts(ledger: Ledger, path: str, filter: Filter | None) -> bool:
    """Whether a budget at a partition or above has alternatives; of one that exists, whether it was opened so."""
    with suppress(UnknownScopeError):
        return ledger.balance(path).scope.has_fronts
    above = [each.filter for each in budgets_above(ledger, path)]
    return any(each is not None and stated_alternatives(each) for each in (*above, filter))


def _filter_of(
    filter: Any,
    epsilon: NumericLiteral | None,
    delta: NumericLiteral | None,
    adjacency: Adjacency,
    only: str | None = None,
) -> Filter | None:
    if filter is Budget:
        if epsilon is None:
            raise DomainError("epsilon", epsilon, "a number, the target of the filter")
        total = Fraction(0) if delta is None else exact("delta", delta)
        return Budget(exact("epsilon", epsilon), total, only=only)
    if not isinstance(filter, Filter | None):
        remedy = "MenuFilter.for_target(menu, epsilon, delta) makes a menu"
        raise DomainError(
            "filter", filter, "a filter itself, such as Budget(1, 1e-6), or None", remedy
        )
    if not (epsilon is None and delta is None and only is None):
        domain = "left out where the filter itself is given"
        raise DomainError("epsilon, delta and only", (epsilon, delta, only), domain)
    if filter is not None:  # what its guarantee rests on is checked before anything is charged
        filter.start(adjacency=adjacency)
    return filter


def _target(
    budget: Filter | None, epsilon: NumericLiteral | None, delta: NumericLiteral | None
) -> tuple[NumericLiteral, NumericLiteral] | None:
    """The target that is recorded, for readings: what was typed, or that of the budget."""
    if epsilon is not None:
        return epsilon, 0 if delta is None else delta
    if not isinstance(budget, Budget) or budget.epsilon is None or budget.delta is None:
        return None
    epsilon, delta = (
        each if isinstance(each, float) else str(Amount.down(each))
        for each in (budget.epsilon, budget.delta)
    )
    return epsilon, delta


def _schedule(schedule: Sequence[tuple[Composable, int] | Composable]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    if not isinstance(schedule, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "schedule", schedule, "a list of mechanisms, or of pairs (mechanism, times)"
        )
    for item in schedule:
        if isinstance(item, tuple) and len(item) != 2:  # pyright: ignore[reportUnnecessaryComparison]
            raise DomainError("schedule", item, "each a mechanism, or a pair (mechanism, times)")
        mechanism, times = item if isinstance(item, tuple) else (item, 1)
        text = serialize(mechanism)
        if text is None:
            raise UnsupportedError(
                f"a schedule with {mechanism!r}",
                "it cannot be written down for a later process to read",
                "Charge it without schedule",
            )
        found.append((text, check.count("times", times, least=1)))
    return found


@dataclass(frozen=True)
class BudgetArguments:
    """A budget in words; amounts are decimal text, taken exactly.

    Args:
        kind: filter, slots or partition.
        filter: The name of a filter other than a `Budget`, such as menu; None for the Budget of the target, or, without
            one, for a scope that caps nothing itself.
        parameters: The filter's own parameters by name; empty with a target.
        target: epsilon, delta and mechanism_delta of a target, those that were given.
        slots: For slots, how many.
        price_delta: For slots, the delta at which they are charged to filters of (epsilon, delta).
        adjacency: add-remove, replace or zero-out.
        odometer: The probability that the reading of its odometer is ever exceeded; None for no odometer.
        renew: When it begins anew, such as year; None for never.
        note: Anything else to keep.
        only: One theorem alone of a Budget; see there.
    """

    kind: str = "filter"
    filter: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    target: Mapping[str, str] = field(default_factory=dict[str, str])
    slots: int | None = None
    price_delta: str | None = None
    adjacency: str = "add-remove"
    odometer: str | None = None
    renew: str | None = None
    note: Mapping[str, Any] = field(default_factory=dict[str, Any])
    only: str | None = None

    def open(self, ledger: Ledger, path: str, *, actor: str, key: str | None = None) -> Scope:
        """Open it; in a scope of slots, take a slot.

        Raises:
            DomainError: A word that is none, or one that does not go with the others.
            UnsupportedError, LedgerError: See `open_scope`, `open_slots`, `open_partition`, `take_slot`.
        """
        adjacency = self._adjacency()
        common: dict[str, Any] = {"note": self.note, "actor": actor, "key": key}
        parent = path_in(ledger, path).rpartition("/")[0]
        if parent and ledger.balance(parent).scope.kind is Kind.SLOTS:
            self._as_slot(ScopeBudget.of(ledger.balance(parent).scope))
            take_slot(ledger, path, odometer=self._odometer(), **common)
            return ledger.balance(path).scope
        common["adjacency"] = adjacency
        self._nothing_ignored()
        match self.kind:
            case Kind.SLOTS:
                chosen = self._filter()
                if chosen is None or self.slots is None:
                    raise DomainError(
                        "slots", self.slots, "a number of slots, and the filter that each has"
                    )
                return open_slots(
                    ledger, path, slots=self.slots, filter=chosen, delta=self.price_delta, **common
                )
            case Kind.PARTITION:
                return open_partition(
                    ledger, path, filter=self._filter(), renew=self.renew, **common
                )
            case Kind.FILTER:
                require_same_adjacency(ledger, path, common["adjacency"])
                stated = as_opened(ledger, path, self._stated())
                return ledger.scope(path, renew=self.renew, actor=actor, key=key, **stated)
            case _:
                raise DomainError("kind", self.kind, ", ".join(Kind))

    def open_all(self, ledger: Ledger, paths: Iterable[str], *, actor: str) -> int:
        """Open it at many paths; see `open_scopes`."""
        if self.kind != Kind.FILTER:
            raise DomainError("kind", self.kind, "filter: others are opened one by one")
        self._nothing_ignored()
        adjacency = self._adjacency()
        return _open_alike(ledger, paths, adjacency, self.renew, actor, self._stated())

    def _adjacency(self) -> Adjacency:
        words = [each.value for each in Adjacency]
        if self.adjacency not in words:
            raise DomainError("adjacency", self.adjacency, ", ".join(words))
        return Adjacency(self.adjacency)

    def _stated(self) -> dict[str, Any]:
        """The caps and the description of a scope of kind filter."""
        budget, adjacency = self._filter(), Adjacency(self.adjacency)
        target = _target(budget, self.target.get("epsilon"), self.target.get("delta"))
        _filter_of(budget, None, None, adjacency)
        described_as = described(budget, adjacency, self._odometer(), (), self.note, target)
        return _stated(budget, described_as)

    def _as_slot(self, slots: ScopeBudget) -> None:
        """Refuse words that a slot does not take: its budget was fixed with the slots."""
        if self != BudgetArguments(
            note=self.note, adjacency=self.adjacency, odometer=self.odometer
        ):
            raise DomainError(
                "filter", self.filter, "nothing in a slot: its budget was fixed with the slots"
            )
        fixed = None if slots.adjacency is None else slots.adjacency.value
        if self.adjacency not in (fixed, BudgetArguments.adjacency):
            raise DomainError(
                "adjacency", self.adjacency, f"{fixed}, which was fixed with the slots"
            )

    def _nothing_ignored(self) -> None:
        """Refuse words that do not go with the kind: whoever wrote them would believe that they count."""
        for name, value, kind in (
            ("slots", self.slots, Kind.SLOTS),
            ("price_delta", self.price_delta, Kind.SLOTS),
            ("odometer", self.odometer, Kind.FILTER),
        ):
            if value is not None and self.kind != kind:
                raise DomainError(
                    name, value, f"left out: it goes with kind {kind}, not {self.kind}"
                )
        if self.renew is not None and self.kind == Kind.SLOTS:
            raise DomainError("renew", self.renew, "left out: slots are charged once and for good")

    def _odometer(self) -> Odometer | None:
        return (
            None
            if self.odometer is None
            else Odometer(rounded_down(exact("odometer", self.odometer)))
        )

    def _filter(self) -> Filter | None:
        """The budget in these words; None without any, in a scope that groups others."""
        has_name = self.filter not in (None, "budget")
        if self.only is not None and has_name:
            raise DomainError("only", self.only, f"left out beside the filter {self.filter}")
        if has_name and self.filter not in list(FILTERS):
            raise DomainError("filter", self.filter, ", ".join(FILTERS))
        if self.filter == MenuFilter.kind:
            return self._menu()
        if self.parameters:
            if self.filter is None or not has_name:
                raise DomainError(
                    "filter", self.filter, f"the name of a filter: {', '.join(FILTERS)}"
                )
            if self.target:
                domain = "left out where a target epsilon is given"
                raise DomainError("parameters", dict(self.parameters), domain)
            typed = {name: _typed(name, text) for name, text in self.parameters.items()}
            return from_description({"filter": self.filter, "version": 1, **typed})
        if not self.target and self.filter is None and self.only is None:
            return None
        if "epsilon" not in self.target:
            raise DomainError("epsilon", None, "the target of the budget, or its own parameters")
        target = {name: exact(name, text) for name, text in self.target.items()}
        epsilon, delta = target["epsilon"], target.get("delta", Fraction(0))
        kept = target.get("mechanism_delta", Fraction(0))
        if self.filter is not None and has_name:
            return for_target(self.filter, epsilon, delta, kept)
        return Budget(epsilon, delta, only=self.only, reserve=kept or None)

    def _menu(self) -> MenuFilter:
        """A menu for a target; its members are calls, with semicolons between them."""
        stated = {**self.parameters, **self.target}
        if sorted(stated) != ["delta", "epsilon", "menu"]:
            raise DomainError(
                "parameters",
                stated,
                "menu, and the target epsilon and delta",
                "menu='Laplace(9.0); ...'",
            )
        members = [parse(text.strip()) for text in stated["menu"].split(";")]
        target = {name: exact(name, stated[name]) for name in ("epsilon", "delta")}
        return MenuFilter.for_target(
            members, target["epsilon"], target["delta"], adjacency=Adjacency(self.adjacency)
        )


def _typed(name: str, text: str) -> str:
    """A number of a stored description as an exact fraction 'n/d': its decimal digits, not the double nearest to them."""
    return text if "/" in text else "{}/{}".format(*exact(name, text).as_integer_ratio())


def open_slots(
    ledger: Ledger,
    path: str,
    *,
    slots: int,
    filter: Filter,
    delta: NumericLiteral | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    note: Mapping[str, Any] | None = None,
    actor: str,
    key: str | None = None,
) -> Scope:
    """Open a fixed number of equal budgets, and charge all of them, once and for good, to the whole chain above.

    What they are together is the tightest composition of their guarantees (`Curators`), a one-time price for each
    filter above. Take one with `take_slot`; what is spent in it stops there.

    Args:
        ledger: Where.
        path: The new scope.
        slots: How many.
        filter: Which each of them has.
        delta: At which the total is charged to filters that charge (epsilon, delta); a float is its shortest decimal.
        adjacency: What one person's data may change.
        note: Anything else to keep.
        actor: Who opens it.
        key: An idempotency key.

    Raises:
        UnsupportedError: If a filter above has no price for them.
        DomainError, LedgerError: See `open_scope`.
    """
    curators = Curators(check.count("slots", slots, least=1), filter=filter, adjacency=adjacency)
    if stated_alternatives(filter):
        raise UnsupportedError(
            f"slots with a {filter.kind} filter",
            "their caps are one set of amounts",
            "Open each as a scope of its own",
        )
    require_same_adjacency(ledger, path, adjacency)
    above = budgets_above(ledger, path)
    return ledger.scope(
        path,
        kind=Kind.SLOTS,
        caps=filter.caps,
        slots=slots,
        cost=chain_cost(above, curators, delta=delta, adjacency=adjacency),
        description=described(filter, adjacency, None, (), note) | {"mechanism": repr(curators)},
        actor=actor,
        key=key,
    )


def take_slot(
    ledger: Ledger, path: str, *, odometer: Odometer | None = None, note: Mapping[str, Any] | None = None, actor: str,
    key: str | None = None,
) -> Account:  # fmt: skip
    """Take the next free slot under the name `path`, and return the account on it; it is never given back."""
    parent = path_in(ledger, path).rpartition("/")[0]
    above = ScopeBudget.of(ledger.balance(parent).scope) if parent else None
    if above is None or above.scope.kind is not Kind.SLOTS or above.adjacency is None:
        raise DomainError("path", path, "a name in a scope of slots, such as world/slots/ada")
    description = described(above.filter, above.adjacency, odometer, (), note)
    ledger.scope(path, kind=Kind.FILTER, description=description, actor=actor, key=key)
    return Account(ledger, scope=path)
