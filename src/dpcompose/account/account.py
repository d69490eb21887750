"""The account on a scope: prices mechanisms under its filters and charges them, before anything is drawn."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dpcompose import check
from dpcompose.account.scope import ScopeBudget, adjacency_of, as_mapping, chain
from dpcompose.account.target import Costs, NumericLiteral, both_in_epsilon, exact, fullest
from dpcompose.adaptive import Budget, known_pure, times_within
from dpcompose.errors import (
    DomainError,
    DPComposeError,
    LedgerError,
    OverdrawnError,
    ScopeExistsError,
    ScopeKindError,
    UnknownScopeError,
    UnsupportedError,
    brief,
    few_digits,
)
from dpcompose.guarantee import Priced
from dpcompose.ledger import (
    Amount,
    Amounts,
    Balance,
    Charge,
    Kind,
    Ledger,
    Receipt,
    description_text,
    paths_down_to,
)
from dpcompose.mechanisms import BlackBox, Composable, serialize
from dpcompose.notebook import Listed
from dpcompose.values import Adjacency


def chain_cost(
    budgets: Sequence[ScopeBudget],
    mechanism: Priced,
    *,
    delta: NumericLiteral | None,
    adjacency: Adjacency,
) -> dict[str, Amount]:
    """The largest price that the filters of a chain ask; refused if one of them has none.

    A larger amount is a price too, so that filters which share a currency are charged the largest of theirs.

    Args:
        budgets: The chain.
        mechanism: What is to run.
        delta: Where on its curve it is charged; a float is its shortest decimal.
        adjacency: What one person's data may change.

    Raises:
        UnsupportedError: If a filter has no price for it; or if the chain has a partition, and it is neither a
            one-shot mechanism nor pure.

    Reference: [HenzingerSafaviVadhan2024]
    """
    named = None if delta is None else exact("delta", delta)
    amounts: dict[str, Amount] = {}
    for path, filter in [(each.path, each.filter) for each in budgets if each.filter is not None]:
        try:
            price = filter.price(mechanism, delta=named, adjacency=adjacency)
        except UnsupportedError as refusal:
            reason = f"{refusal.reason} (for the {filter.kind} filter of {path!r})"
            raise UnsupportedError(refusal.what, reason, refusal.remedy) from refusal
        for currency, amount in price.items():
            amounts[currency] = max(Amount.up(amount), amounts.get(currency, Amount(0)))
    if not isinstance(mechanism, Composable) and any(
        each.scope.kind is Kind.PARTITION for each in budgets
    ):
        pure_alone(mechanism, adjacency)
    return amounts


def pure_alone(mechanism: Priced, adjacency: Adjacency) -> None:
    """Refuse a mechanism that answers repeatedly, unless it is pure: its bound then holds after any earlier answers."""
    typed = mechanism.typed(adjacency=adjacency)
    if typed is None or typed.epsilon is None or typed.delta > 0:
        raise UnsupportedError(
            f"a charge of {brief(mechanism)} in a partition",
            "it answers several times: its first answers may show in which child a later one tells more than its delta or"
            " rho, which are averages, allow, and a record may then be put there",
            "Charge its mechanisms one by one, use slots with pure budgets (delta = 0), or charge outside the partition",
        )


def as_promise(ledger: Ledger, path: str, cost: Mapping[str, str]) -> BlackBox | None:
    """The mechanism that a bare cost in epsilon stands for in a budget of several theorems; None if it is as written.

    It does not say what runs, so it is priced as whatever is (epsilon, delta)-DP: rho = epsilon tanh(epsilon / 2) would
    hold for a pure mechanism alone, and who thinks in epsilon may run Gaussian noise.

    Raises:
        DomainError: If it has no delta beside epsilon.
    """
    if "epsilon" not in cost or not {*cost} <= {"epsilon", "delta"}:
        return None
    budgets = [each.filter for each in chain(ledger, path) if isinstance(each.filter, Budget)]
    if all(len(each.alternatives) == 1 for each in budgets):
        return None
    if "delta" not in cost:
        domain = "delta=D beside epsilon=E, 0 if it is pure"
        raise DomainError("cost", dict(cost), domain, "A plan that names the mechanism costs less")
    epsilon, delta = (exact(name, cost[name]) for name in ("epsilon", "delta"))
    return BlackBox(epsilon, delta=delta)  # pyright: ignore[reportArgumentType]


if TYPE_CHECKING:
    from dpcompose.adaptive import Odometer

VERSION = 1
MOST_CHARGES = 10**15
MOST_QUOTES = 8
"""Mechanisms whose price an account remembers."""


@dataclass(frozen=True)
class Account(Listed):
    """A scope of a ledger, charged with mechanisms.

    >>> from dpcompose import Gaussian
    >>> from dpcompose.account import open_scope
    >>> ledger = Ledger.open("memory:")
    >>> account = open_scope(ledger, "world", epsilon=1, delta=1e-6, actor="Ada")
    >>> receipt = account.charge(Gaussian(20.0), actor="Ada", key="mean age")
    >>> float(receipt.cost["rho"].fraction) <= 0.00125 * (1 + 1e-14)
    True

    Args:
        ledger: Where.
        scope: Its path.

    Raises:
        UnknownScopeError: If there is no such scope.
        UnsupportedError: If a scope on the chain caps amounts and names no filter.
    """

    ledger: Ledger
    _: KW_ONLY
    scope: str

    def __post_init__(self) -> None:
        _ = self.chain

    @cached_property
    def chain(self) -> list[ScopeBudget]:
        """The scope and the scopes above it that its charges reach, the highest first; each charge checks them again."""
        return chain(self.ledger, self.scope)

    @property
    def adjacency(self) -> Adjacency:
        """Under which every charge is priced."""
        return self._adjacency

    @cached_property
    def _adjacency(self) -> Adjacency:
        return adjacency_of(self.chain, Adjacency.ADD_REMOVE)

    def price(self, mechanism: Priced, *, delta: NumericLiteral | None = None) -> dict[str, Amount]:
        """The cost of a mechanism here, by currency: the largest of the prices of all filters on the chain.

        Args:
            mechanism: A mechanism, a composition, or whatever else answers as `guarantee.Priced` does.
            delta: Where on its curve it is charged to filters of (epsilon, delta); a float is its shortest decimal.

        Raises:
            UnsupportedError: If a filter on the chain has no price for it.
            DomainError: If delta is outside its domain.
        """
        return dict(self.quote(mechanism, delta).cost)

    def remembered(self, mechanism: Priced, delta: NumericLiteral | None) -> Quote | None:
        """The quote of a mechanism, if it is among the last ones."""
        for known in tuple(self._quotes):
            if (
                known.mechanism is mechanism
                and known.delta == delta
                and type(known.delta) is type(delta)
            ):
                return known
        return None

    def remember(self, quote: Quote) -> Quote:
        """Keep a quote among the last ones."""
        check.kind("quote", quote, Quote, "a quote of this account")
        # Of anything that is no mechanism it is not known that it never changes.
        if isinstance(quote.mechanism, Composable):
            self._quotes.append(quote)
        return quote

    def quote(self, mechanism: Priced, delta: NumericLiteral | None) -> Quote:
        """The price of a mechanism, and the words of an entry about it; see `price`."""
        known = self.remembered(mechanism, delta)
        if known is not None:
            return known
        if not any(each.filter is not None for each in self.chain):
            what, remedy = f"a charge of {self.scope!r}", "Open a scope with a filter below it"
            raise UnsupportedError(what, "no filter bounds it, there or above", remedy)
        cost = chain_cost(self.chain, mechanism, delta=delta, adjacency=self.adjacency)
        return self.remember(Quote(self, mechanism, delta, Amounts.of(cost)))

    def detached(self) -> Account:
        """A copy for another process: it prices, and has no ledger to charge."""
        copy = object.__new__(Account)
        vars(copy).update(ledger=None, scope=self.scope, chain=self.chain, odometer=self.odometer)
        return copy

    @cached_property
    def _quotes(self) -> deque[Quote]:
        """The last quotes: a training run charges one mechanism many times, a service a few of them."""
        return deque(maxlen=MOST_QUOTES)

    def left(self) -> dict[str, Amount]:
        """The largest amounts that one charge could still have, each currency by itself, under the whole chain."""
        return dict(self.ledger.available(self.scope))

    def room(self, cost: Costs) -> int:
        """How many more charges of this cost fit, under the whole chain and the alternatives of each filter.

        At most 10^15; none if the scope or one above it is closed.

        Raises:
            DomainError: If the cost is no mapping of amounts.
            CurrencyError: If it leaves out a currency of the chain, or names another one.
        """
        check.kind("cost", cost, Mapping, "amounts by currency")
        for each in cost.values():
            check.kind("cost", each, Amount, "amounts by currency")
        units = {name: amount.units for name, amount in cost.items()}
        with self.ledger.moment() as moment:
            if any(moment.balance(path).closed for path in paths_down_to(self.scope)):
                return 0
            chain = [moment.upcoming(each.path) for each in self.chain]
        chain[-1].node.require_currencies(units)
        met = [each for each in Balance.met_by(chain) for each in each]
        most = min(
            [times_within(sets, spent, units, most_free=MOST_CHARGES) for spent, sets in met]
        )
        return Balance.times_granted(chain, units, most)

    def _in_lines(self) -> tuple[str, list[str]]:
        """The budgets of the chain, and how much of them is spent."""
        budgets = [
            f"{each.path}: {each.in_words}" for each in self.chain if each.filter is not None
        ]
        spent = [self.ledger.balance(path).in_words for path in paths_down_to(self.scope)]
        return f"Account on {self.scope}", budgets + spent

    def charge(
        self,
        mechanism: Priced,
        *,
        actor: str,
        key: str,
        delta: NumericLiteral | None = None,
        description: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Charge a mechanism, durably, before it runs. Redeem the receipt, then draw.

        Args:
            mechanism: A one-shot mechanism with fresh randomness; a composition is one charge and runs to its end.
            actor: Who asks.
            key: The idempotency key: asked again, the same receipt.
            delta: See `price`.
            description: Anything else to keep with it, in plain values.

        Raises:
            UnsupportedError: If a filter on the chain has no price for it, or it is not next on a committed schedule.
            OverdrawnError: If it does not fit; no balance is changed.
            LedgerError: See `Ledger.charge`.
        """
        asked = self.quote(mechanism, delta).charge(actor=actor, key=key, description=description)
        (found,) = charge_together([(self, asked)])
        if isinstance(found, DPComposeError):
            raise found
        return found

    def redeem(self, receipt: Receipt, *, actor: str, nonce: str | None = None) -> None:
        """Use up a receipt before any noise is drawn, wherever the ledger is; see `Ledger.redeem`."""
        self.ledger.redeem(receipt, actor=actor, nonce=nonce)

    @property
    def note(self) -> Mapping[str, Any]:
        """The note with which the scope was opened; empty if there is none."""
        return as_mapping("note", self.chain[-1].scope.description.get("note"))

    def description_of(self, name: str) -> Mapping[str, Any] | None:
        """The description that is kept below the scope under a name; None if there is none.

        Raises:
            DomainError: If the name is no text.
        """
        check.line("name", name)
        with suppress(UnknownScopeError):
            return self.ledger.balance(f"{self.scope}/{name}").scope.description
        return None

    def keep(self, name: str, description: Mapping[str, Any], *, actor: str) -> None:
        """Keep a description below the scope under a name, in a scope without a budget, unless one is kept there.

        Raises:
            ScopeKindError: If the scope takes no charges; below slots, what is kept would be one of them.
        """
        if (kind := self.chain[-1].scope.kind) is not Kind.FILTER:
            raise ScopeKindError(self.scope, kind, "Charge a scope of kind filter below it")
        with suppress(ScopeExistsError):
            self.ledger.scope(f"{self.scope}/{name}", description=description, actor=actor)

    @cached_property
    def odometer(self) -> Odometer | None:
        """The odometer of the scope, or of the closest scope above it, across slots and partitions."""
        above = [self.ledger.balance(path).scope for path in paths_down_to(self.scope)[::-1]]
        odometers = (ScopeBudget.of(scope).odometer for scope in above)
        return next((each for each in odometers if each is not None), None)


@dataclass(frozen=True, eq=False)
class Quote:
    """A mechanism's price on an account, and the words of an entry about it.

    Args:
        account: The account.
        mechanism: The mechanism.
        delta: See `Account.price`.
        cost: The price.
        described: The description, where it was computed already.
    """

    account: Account
    mechanism: Priced
    delta: NumericLiteral | None
    cost: Amounts
    described: Mapping[str, Any] | None = None

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """The mechanism as text, with the bounds that an odometer and the total of a path need."""
        if self.described is not None:
            return self.described
        mechanism, adjacency = self.mechanism, self.account.adjacency
        text = serialize(mechanism) if isinstance(mechanism, Composable) else None
        found: dict[str, Any] = {"version": VERSION, "mechanism": text}
        found["adjacency"] = adjacency.value
        if text is None:
            found["opaque"] = repr(mechanism)[:200]
        named = None if self.delta is None else exact("delta", self.delta)
        if named is not None:
            found["delta"] = str(named)
        with suppress(UnsupportedError, DomainError):
            if (pure := known_pure(mechanism, adjacency=adjacency)) is not None:
                found["pure"] = str(Amount.up(pure))
        if (odometer := self.account.odometer) is not None:
            with suppress(UnsupportedError, DomainError):
                added = odometer.mileage(mechanism, delta=named, adjacency=adjacency)
                found["mileage"] = added.description()
        return found

    @cached_property
    def recorded(self) -> str:
        """The description as it is stored."""
        return description_text(self.description)

    def charge(
        self, *, actor: str, key: str, description: Mapping[str, Any] | None = None
    ) -> Charge:
        """The charge that `Account.charge` asks of the ledger, at this price."""
        note = as_mapping("description", description)
        recorded = description_text({**self.description, "note": note}) if note else self.recorded
        named = check.line("actor", actor), check.line("key", key)
        scopes = tuple([each.scope for each in self.account.chain])
        return Charge(self.account.scope, self.cost, recorded, *named, scopes)


def charge_together(charges: Sequence[tuple[Account, Charge]]) -> list[Receipt | DPComposeError]:
    """Charges of accounts on one tree, in that order, durable with one commit: the receipt of each, or its refusal.

    Raises:
        StoreError: They could not be made durable.
    """
    found = charges[0][0].ledger.charge_together([charge for _, charge in charges])
    return [
        _in_words(each, account, charge)
        for each, (account, charge) in zip(found, charges, strict=True)
    ]


def _in_words(
    outcome: Receipt | DPComposeError, account: Account, charge: Charge
) -> Receipt | DPComposeError:
    if type(outcome) is not OverdrawnError:
        return outcome
    with suppress(LedgerError):  # others were charged with it
        return refusal_in_words(outcome, account.ledger, account.scope, cost=dict(charge.cost))
    return outcome


def nearest_target(budgets: Sequence[ScopeBudget]) -> ScopeBudget | None:
    """The budget of a chain, the highest first, that was opened for a target and is nearest to the last scope."""
    return next((each for each in reversed(budgets) if each.target is not None), None)


def charge_in_epsilon(
    budgets: Sequence[ScopeBudget], cost: Costs, left: Costs
) -> tuple[float, float] | None:
    """Both what a charge asks and what is left, in epsilon at the delta of the nearest target, if there is one."""
    budget = nearest_target(budgets)
    if budget is None or budget.filter is None or budget.target is None:
        return None
    return both_in_epsilon(budget.filter, budget.target, cost, left)


def refusal_in_words(
    refusal: OverdrawnError, ledger: Ledger, path: str, *, cost: Costs
) -> OverdrawnError:
    """The refusal of a charge, about the scope that was named: in epsilon, where a budget on its chain has a target.

    Args:
        refusal: What the ledger said, about the first scope from the root down that is short.
        ledger: Where.
        path: The scope that was named.
        cost: What was asked there.
    """
    left, currency = ledger.available(path), refusal.currency
    if currency not in left or not left.keys() <= cost.keys():
        return refusal  # of a promise, which was priced in every currency and is in words already
    budgets: list[ScopeBudget] = []
    with suppress(UnsupportedError):  # caps without a filter have no epsilon
        budgets = chain(ledger, path)
    budget, both = nearest_target(budgets), charge_in_epsilon(budgets, cost, left)
    amounts = f"{currency} {few_digits(cost[currency], up=True)} asked, {few_digits(left[currency], up=False)} left"
    percent = charge_in_percent(ledger, refusal.scope, cost)
    words = f"{percent[0]:g} % of the budget asked, {percent[1]:g} % left" if percent else amounts
    # Each number is the best that one of the theorems says; where these differ, a charge that does
    # not fit may read as the smaller one, and says nothing.
    if both is not None and both[0] > both[1] and budget is not None and budget.target is not None:
        words = (
            f"epsilon {few_digits(both[0], up=True)} asked, {few_digits(both[1], up=False)} left"
        )
        if currency != "epsilon":
            words += f" at delta {few_digits(budget.target[1], up=True)}"
            words += "" if percent else f" ({amounts})"
    short = "" if refusal.scope == path else f"; {refusal.scope} is short"
    budgeted = "" if budget is None else f". The budget of {budget.path} is {budget.in_words}"
    return refusal.reworded(f"{path}: {words}{short}{budgeted}. Nothing was spent; ask for less")


def charge_in_percent(
    ledger: Ledger, path: str, cost: Costs, *, charged: bool = False
) -> tuple[float, float] | None:
    """A cost and what is left of a scope, in percent of a budget that has several sets of limits; None for others.

    Args:
        ledger: Where.
        path: The scope.
        cost: By currency.
        charged: Whether it has been charged: then what is left is what is left after it.

    Raises:
        UnknownScopeError: If there is no such scope.
    """
    balance = ledger.balance(path)
    filter = ScopeBudget.of(balance.scope).filter if balance.scope.alternatives else None
    if filter is None:
        return None
    price = {name: amount.fraction for name, amount in cost.items()}
    spent = before = fullest(filter, balance)
    if charged:
        before = {name: max(each - price.get(name, 0), Fraction(0)) for name, each in spent.items()}
    needed = filter.in_percent(before, price)
    unspent = filter.in_percent(spent, dict.fromkeys(spent, Fraction(0)))
    return None if needed is None or unspent is None else (needed[0], unspent[1])
