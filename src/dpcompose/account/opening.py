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
    if filter is Budget:
        if epsilon is None:
            raise DomainError("epsilon", epsilon, "a number, the target of the filter")
        total = Fraction(0) if delta is None else exact("delta", delta)
        filter = Budget(exact("epsilon", epsilon), total, only=only)
    elif isinstance(filter, Filter | None) and (epsilon, delta, only) != (None, None, None):
        domain = "left out where the filter itself is given"
        raise DomainError("epsilon, delta and only", (epsilon, delta, only), domain)
    committed = _schedule(schedule)
    if committed and filter is None:
        raise DomainError("schedule", schedule, "none in a scope without a filter")
    target = _target(filter, epsilon, delta)
    stated = _stated(filter, adjacency, odometer, committed, note, target)
    _open(ledger, path, adjacency, stated, renew=renew, actor=actor, key=key)
    return Account(ledger, scope=path)


def _stated(
    filter: Any,
    adjacency: Adjacency,
    odometer: Odometer | None = None,
    schedule: Sequence[tuple[str, int]] = (),
    note: Mapping[str, Any] | None = None,
    target: tuple[NumericLiteral, NumericLiteral] | None = None,
) -> dict[str, Any]:
    """The caps and the description of a scope, once what its guarantee rests on is certain."""
    check.member("adjacency", adjacency, Adjacency)
    if filter is not None:
        remedy = "MenuFilter.for_target(menu, epsilon, delta) makes a menu"
        check.kind("filter", filter, Filter, _FILTER, remedy).start(adjacency=adjacency)
    description = described(filter, adjacency, odometer, schedule, note, target)
    return {"caps": None if filter is None else filter.caps, "description": description}


_FILTER = "a filter itself, such as Budget(1, 1e-6), or None"


def _target(
    budget: Any, epsilon: NumericLiteral | None, delta: NumericLiteral | None
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


def _open(
    ledger: Ledger, path: str, adjacency: Adjacency, stated: dict[str, Any], **terms: Any
) -> Scope:
    """Open a scope under the adjacency of those above, as it is stated, or was when it was opened."""
    require_same_adjacency(ledger, path, adjacency)
    return ledger.scope(path, **as_opened(ledger, path, stated), **terms)


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
    target = _target(filter, None, None)
    stated = _stated(filter, adjacency, odometer, note=note, target=target)
    return _open_all(ledger, paths, adjacency, stated, renew=renew, actor=actor)


def _open_all(
    ledger: Ledger, paths: Iterable[str], adjacency: Adjacency, stated: dict[str, Any], **terms: Any
) -> int:
    """Open scopes that differ in their paths alone, outside of slots, under the adjacency of those above."""
    new = scope_paths(paths)
    for parent in {path_in(ledger, path).rpartition("/")[0] for path in new} - {"", *new}:
        require_same_adjacency(ledger, f"{parent}/new", adjacency)
        if (above := ledger.balance(parent).scope).kind is Kind.SLOTS:
            remedy = f"Take slots of {above.path} one by one"
            raise DomainError("paths", f"{parent}/...", "scopes outside of slots", remedy)
    return ledger.open_scopes(
        new, **(as_opened(ledger, new[0], stated) if new else stated), **terms
    )


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
        reason = "a replaced record may leave one child and enter another, and both pay"
        remedy = "State it under add-remove, or open one filter for all"
        raise UnsupportedError(f"a partition at {path!r} under replace", reason, remedy)
    stated = _stated(filter, adjacency, note=note)
    if _has_fronts(ledger, path, filter):
        stated["description"]["budget"]["fronts"] = True
    terms: dict[str, Any] = {"renew": renew, "actor": actor, "key": key}
    return _open(ledger, path, adjacency, stated, kind=Kind.PARTITION, **terms)


def _has_fronts(ledger: Ledger, path: str, filter: Filter | None) -> bool:
    """Whether a budget at a partition or above has alternatives; of one that exists, whether it was opened so."""
    with suppress(UnknownScopeError):
        return ledger.balance(path).scope.has_fronts
    above = [each.filter for each in budgets_above(ledger, path)]
    return any(each is not None and each.has_alternatives for each in (*above, filter))


def _schedule(schedule: Sequence[tuple[Composable, int] | Composable]) -> list[tuple[str, int]]:
    """The mechanisms of a schedule as text, each with how often it comes."""
    found: list[tuple[str, int]] = []
    if not isinstance(schedule, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("schedule", schedule, _SCHEDULE)
    for item in schedule:
        pair = item if isinstance(item, tuple) else (item, 1)
        if len(pair) != 2:
            raise DomainError("schedule", item, _SCHEDULE)
        mechanism, times = pair
        text = serialize(mechanism)
        if text is None:
            reason = "it cannot be written down for a later process to read"
            remedy = "Charge it without schedule"
            raise UnsupportedError(f"a schedule with {mechanism!r}", reason, remedy)
        found.append((text, check.count("times", times, least=1)))
    return found


_SCHEDULE = "a list of mechanisms, or of pairs (mechanism, times)"


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
        common: dict[str, Any] = {"actor": actor, "key": key}
        parent = path_in(ledger, path).rpartition("/")[0]
        if parent and ledger.balance(parent).scope.kind is Kind.SLOTS:
            self._as_slot(ScopeBudget.of(ledger.balance(parent).scope))
            take_slot(ledger, path, odometer=self._odometer(), note=self.note, **common)
            return ledger.balance(path).scope
        adjacency = self._adjacency()
        self._nothing_ignored()
        match self.kind:
            case Kind.SLOTS:
                if (filter := self._filter()) is None or self.slots is None:
                    domain = "a number of slots, and the filter that each has"
                    raise DomainError("slots", self.slots, domain)
                common |= {"note": self.note, "adjacency": adjacency, "delta": self.price_delta}
                return open_slots(ledger, path, slots=self.slots, filter=filter, **common)
            case Kind.PARTITION:
                common |= {"note": self.note, "adjacency": adjacency, "renew": self.renew}
                return open_partition(ledger, path, filter=self._filter(), **common)
            case Kind.FILTER:
                return _open(ledger, path, adjacency, self._stated(), renew=self.renew, **common)
            case _:
                raise DomainError("kind", self.kind, ", ".join(Kind))

    def open_all(self, ledger: Ledger, paths: Iterable[str], *, actor: str) -> int:
        """Open it at many paths; see `open_scopes`."""
        if self.kind != Kind.FILTER:
            raise DomainError("kind", self.kind, "filter: others are opened one by one")
        self._nothing_ignored()
        adjacency, stated = self._adjacency(), self._stated()
        return _open_all(ledger, paths, adjacency, stated, renew=self.renew, actor=actor)

    def _adjacency(self) -> Adjacency:
        words = [each.value for each in Adjacency]
        if self.adjacency not in words:
            raise DomainError("adjacency", self.adjacency, ", ".join(words))
        return Adjacency(self.adjacency)

    def _stated(self) -> dict[str, Any]:
        """The caps and the description of a scope of kind filter."""
        filter, odometer = self._filter(), self._odometer()
        target = _target(filter, self.target.get("epsilon"), self.target.get("delta"))
        return _stated(filter, self._adjacency(), odometer, note=self.note, target=target)

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
        if self.odometer is None:
            return None
        return Odometer(rounded_down(exact("odometer", self.odometer)))

    def _filter(self) -> Filter | None:
        """The budget in these words; None without any, in a scope that groups others."""
        name = None if self.filter == "budget" else self.filter
        if self.only is not None and name is not None:
            raise DomainError("only", self.only, f"left out beside the filter {name}")
        if name is not None and name not in list(FILTERS):
            raise DomainError("filter", name, ", ".join(FILTERS))
        if name == MenuFilter.kind:
            return self._menu()
        if self.parameters:
            if name is None:
                names = ", ".join(FILTERS)
                raise DomainError("filter", self.filter, f"the name of a filter: {names}")
            if self.target:
                domain = "left out where a target epsilon is given"
                raise DomainError("parameters", dict(self.parameters), domain)
            numbers = {each: _typed(each, text) for each, text in self.parameters.items()}
            return from_description({"filter": name, "version": 1, **numbers})
        if not self.target and self.filter is None and self.only is None:
            return None
        if "epsilon" not in self.target:
            raise DomainError("epsilon", None, "the target of the budget, or its own parameters")
        target = {each: exact(each, text) for each, text in self.target.items()}
        epsilon, delta = target["epsilon"], target.get("delta", Fraction(0))
        kept = target.get("mechanism_delta", Fraction(0))
        if name is not None:
            return for_target(name, epsilon, delta, kept)
        return Budget(epsilon, delta, only=self.only, reserve=kept or None)

    def _menu(self) -> MenuFilter:
        """A menu for a target; its members are calls, with semicolons between them."""
        stated = {**self.parameters, **self.target}
        if sorted(stated) != ["delta", "epsilon", "menu"]:
            domain = "menu, and the target epsilon and delta"
            raise DomainError("parameters", stated, domain, "menu='Laplace(9.0); ...'")
        members = [parse(text.strip()) for text in stated["menu"].split(";")]
        target = [exact(name, stated[name]) for name in ("epsilon", "delta")]
        return MenuFilter.for_target(members, *target, adjacency=Adjacency(self.adjacency))


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
    if filter.has_alternatives:
        what, remedy = f"slots with a {filter.kind} filter", "Open each as a scope of its own"
        raise UnsupportedError(what, "their caps are one set of amounts", remedy)
    require_same_adjacency(ledger, path, adjacency)
    cost = chain_cost(budgets_above(ledger, path), curators, delta=delta, adjacency=adjacency)
    stated = _stated(filter, adjacency, note=note)
    stated["description"]["mechanism"] = repr(curators)
    terms: dict[str, Any] = {"slots": slots, "cost": cost, "actor": actor, "key": key}
    return ledger.scope(path, kind=Kind.SLOTS, **stated, **terms)


def take_slot(
    ledger: Ledger, path: str, *, odometer: Odometer | None = None, note: Mapping[str, Any] | None = None, actor: str,
    key: str | None = None,
) -> Account:  # fmt: skip
    """Take the next free slot under the name `path`, and return the account on it; it is never given back."""
    parent = path_in(ledger, path).rpartition("/")[0]
    above = ScopeBudget.of(ledger.balance(parent).scope) if parent else None
    if above is None or above.scope.kind is not Kind.SLOTS or above.adjacency is None:
        raise DomainError("path", path, "a name in a scope of slots, such as world/slots/ada")
    description = described(above.filter, above.adjacency, odometer, note=note)
    ledger.scope(path, kind=Kind.FILTER, description=description, actor=actor, key=key)
    return Account(ledger, scope=path)
