"""The answers of the service, route by route; who may ask was decided before (`permission`)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, Any, cast

from starlette.exceptions import HTTPException

from dpcompose import errors
from dpcompose.account import Account, BudgetArguments, Quote, charge_together
from dpcompose.ledger import (
    PEOPLE,
    Charge,
    Entry,
    Ledger,
    Published,
    Receipt,
    SetFact,
    Statement,
    encode,
    now,
    root_of,
)
from dpcompose.mechanisms import kinds, parse
from dpcompose.serve import request
from dpcompose.serve.identity import OPERATOR, YEAR, Identities, Identity, Role
from dpcompose.serve.queue import State, Verifier, computed, elsewhere, ledger_of, matching, page
from dpcompose.serve.request import (
    Answer,
    Before,
    Delta,
    Fields,
    Key,
    Mechanism,
    Text,
    line,
    route,
)

RECORDED = 10
"""Refusals of one actor in an hour that are entries of their own."""


@dataclass
class Refusals:
    """Counts refusals by tree and actor: whoever has no budget would fill the disk with entries."""

    _hour: str = ""
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    _over: list[SetFact] = field(default_factory=list[SetFact])

    def may_record(self, path: str, actor: str) -> bool:
        """Whether one more refusal of an actor is an entry."""
        self._begin_hour()
        self._counts[root_of(path), actor] += 1
        return self._counts[root_of(path), actor] <= RECORDED

    def _begin_hour(self) -> None:
        hour = now()[:13]
        if hour != self._hour:
            for (root, actor), count in self._counts.items():
                if count > RECORDED:
                    over = encode([actor, self._hour]), str(count - RECORDED)
                    self._over.append(SetFact(root, OPERATOR, "refusals", *over))
            self._counts.clear()
            self._hour = hour

    def state(self, ledger: Ledger) -> None:
        """Record how many refusals of the hours that are over were no entries of their own."""
        self._begin_hour()
        while self._over:
            ledger.state(self._over.pop())


MOST_ACCOUNTS = 1024
PAGE = 1000
"""Balances of one answer."""
MOST_GAUGES = 1000
"""Scopes of which `/metrics` tells what is spent and left."""
SOON = 0.005
"""Seconds that pricing may take while other charges wait for it."""
_SINGLE = re.compile(r"(\w+)\([^()]{0,100}\)", re.ASCII)
_KEY = re.compile("[0-9a-f]{64}")
CORRECTED = "kept"
"""The kind of descriptions that a keeper corrected, by scope and name."""
PLACE = "release:table"
"""The scope below a scope in which its releases keep what it holds for."""
_NOTED = ("approved", "reservation")
"""What the service notes in an entry, and nobody else."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
THEOREMS = ["pure", "basic", "zcdp", "renyi", "gaussian"]


def _binding(name: str, value: Any) -> Answer:
    match value:
        case {
            "release": {"unit": [*unit], "bounds": [int(), int(), int()], "key": str(key), **more},
            **others,
        } if unit and all(map(_is_column, unit)) and _KEY.fullmatch(key) and not more | others:
            return cast("Answer", value)
        case _:
            domain = "what a scope holds for, as a release session writes it"
            raise errors.DomainError(name, value, domain)


def _is_column(each: object) -> bool:
    match each:
        case [str(), str()]:
            return True
        case _:
            return False


Kept = Annotated[str, line(enum=[PLACE])]
Binding = Annotated[Answer, request.Field({"type": "object", "required": ["release"]}, _binding)]
parsed = lru_cache(maxsize=512)(parse)
"""A mechanism that is asked again is the same object, whose price an account remembers."""


@dataclass(frozen=True)
class Service:
    """A ledger, and the people who share it.

    Args:
        ledger: Where charges are kept.
        people: Who may ask.
        published: The checkpoints that a keeper signed, if any are published here.
        counter: The tables that are asked here, if there are any.
    """

    ledger: Ledger
    people: Identities
    published: Published | None = None
    counter: Any = None
    _accounts: dict[str, Account] = field(default_factory=dict[str, Account])
    _soon: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    refusals: Refusals = field(default_factory=Refusals)

    def account(self, path: str) -> Account:
        """The account on a scope, remembered: a scope never changes, and a charge checks that."""
        found = self._accounts.get(path)
        if found is None:
            if len(self._accounts) >= MOST_ACCOUNTS:
                self._accounts.clear()
            found = self._accounts[path] = Account(self.ledger, scope=path)
        return found

    def read(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Have work read from a service, which is its first argument.

        A process of its own does it, which opened the ledger for reading; this thread, if the ledger is in memory.
        """
        source = self.ledger.store.source
        if source is None:
            return work(self, *arguments)
        return elsewhere(_read, source, self.published, work, arguments)

    def answer(self, name: str, who: Identity, scope: str, fields: Fields) -> Answer:
        """The answer of a route to an identity that may ask it; raises what the route raises."""
        if request.ROUTES[name].reads and request.ROUTES[name].method == "GET" and name != "verify":
            return self.read(_answer, name, who, scope, fields)
        return _answer(self, name, who, scope, fields)

    @cached_property
    def verifier(self) -> Verifier:
        """Verifications that go on from request to request."""
        return Verifier(self.ledger)

    def quick_quote(self, scope: str, typed: str, delta: str | None) -> Quote | None:
        """The price of a mechanism that is remembered, or computed in no time; None for any other."""
        mechanism, named, account = parsed(typed), request.exact_delta(delta), self.account(scope)
        if self.soon_priced(scope, typed, delta):
            return account.quote(mechanism, named)
        return account.remembered(mechanism, named)

    def quote(self, scope: str, typed: str, delta: str | None) -> Quote:
        """The price of a mechanism; one that may take long is computed by another process."""
        quote = self.quick_quote(scope, typed, delta)
        if quote is not None:
            return quote
        account, named = self.account(scope), request.exact_delta(delta)
        seconds, cost, described = computed(account, typed, named)
        if seconds < SOON:
            if len(self._soon) >= MOST_ACCOUNTS:
                self._soon.clear()
            self._soon.add((scope, typed, str(delta)))
        return account.remember(Quote(account, parsed(typed), named, cost, described))

    @route("POST", Role.KEEPER, Role.ANALYST)
    def price(
        self, who: Identity, scope: str, *, mechanism: Mechanism, delta: Delta = None
    ) -> Answer:
        """The price of a mechanism here."""
        return {"cost": self.quote(scope, mechanism, delta).cost.texts()}

    @route("POST", Role.ANALYST)
    def charge(
        self,
        who: Identity,
        scope: str,
        *,
        mechanism: Mechanism,
        key: Key,
        delta: Delta = None,
        description: Annotated[
            Answer | None, request.mapping("Anything else to keep with it.")
        ] = None,
        reservation: Annotated[str | None, line("The key of the own reservation to use.")] = None,
    ) -> Answer:
        """Charge a mechanism at the server's price, as the identity that asks."""

        def charged() -> Receipt:
            quote = self.quote(scope, mechanism, delta)
            fields = {"mechanism": mechanism, "key": key, "delta": delta}
            fields |= {"description": description, "reservation": reservation}
            return self.charge_alone(*self.ledger_charge(who, quote, fields))

        try:
            return {"receipt": charged().to_json()}
        except (
            errors.ScopeExistsError
        ):  # lost in a failover before a standby had it, and opened otherwise
            self._accounts.clear()
            return {"receipt": charged().to_json()}

    def ledger_charge(self, who: Identity, quote: Quote, fields: Fields) -> tuple[Account, Charge]:
        """A charge as the ledger is asked for it, with the policies of its tree."""
        described: Mapping[str, Any] = fields["description"] or {}
        if any(name in described for name in _NOTED):
            raise errors.DomainError(
                "description", described, f"a mapping without the names {', '.join(_NOTED)}"
            )
        key, reservation = own_key(who, fields["key"]), fields["reservation"]
        charge = quote.charge(actor=who.actor, key=key, description=described)
        return quote.account, charge.enforced(
            encode(named(fields["mechanism"], fields["delta"])),
            None if reservation is None else own_key(who, reservation),
            self.refusals.may_record,
        )

    def charge_alone(self, account: Account, charge: Charge) -> Receipt:
        """The receipt of one charge; raises its refusal."""
        (outcome,) = self.charge_all([(account, charge)])
        if isinstance(outcome, errors.DPComposeError):
            raise outcome
        return outcome

    def charge_all(
        self, charges: Sequence[tuple[Account, Charge]]
    ) -> Sequence[Receipt | errors.DPComposeError]:
        """The receipt or refusal of each charge, in order; one commit stores all of them.

        All are below one top-level scope. If they cannot be stored, each gets the StoreError.
        """
        try:
            outcomes = charge_together(charges) if charges else []
            if any(isinstance(each, errors.OverdrawnError) for each in outcomes):
                self.refusals.state(self.ledger)
            return outcomes
        except errors.StoreError as error:
            return [error] * len(charges)

    def soon_priced(self, scope: str, mechanism: object, typed_delta: object = None) -> bool:
        """Whether a mechanism is priced in no time: a single simple one, or one that was here before."""
        if not isinstance(mechanism, str):
            return False
        single = _SINGLE.fullmatch(mechanism)
        kind = kinds().get(single[1]) if single else None
        if kind is not None and kind.closed_form:
            return True
        return (scope, mechanism, str(typed_delta)) in self._soon

    def takes_long(self, name: str, scope: str, fields: Fields) -> bool:
        """Whether a route may take long to answer: it reads many entries, or a mechanism is to be priced first."""
        route = request.ROUTES[name]
        if "mechanism" not in route.fields:
            return route.reads
        try:
            return self.quick_quote(scope, fields["mechanism"], fields["delta"]) is None
        except (errors.DPComposeError, RecursionError, OverflowError, ZeroDivisionError):
            return False  # the answer says why

    @route("POST", Role.ANALYST)
    def redeem(
        self,
        who: Identity,
        scope: str,
        *,
        receipt: Annotated[str, line("As the charge gave it.")],
        nonce: Annotated[str, line("Of the process that draws.", most=256)],
    ) -> Answer:
        """Redeem a receipt of the identity that asks; the nonce is made by the process that draws."""
        charged = Receipt.read(receipt)
        if charged.scope != scope:
            raise errors.DomainError("receipt", charged.scope, "a receipt of that scope")
        self.ledger.redeem(charged, actor=who.actor, nonce=nonce)
        return {"redeemed": charged.sequence}

    @route("GET", *Role)
    def budget(self, who: Identity, scope: str) -> Answer:
        """The adjacency under which a scope is priced, and the note with which it was opened."""
        account = self.account(scope)
        note, catalog = account.note, account.note.get("catalog")
        if isinstance(catalog, dict) and who.role is Role.ANALYST:  # its files are the keeper's
            note = {**note, "catalog": {"version": cast("Answer", catalog).get("version", "")}}
        return {"scope": scope, "adjacency": account.adjacency.value, "note": note}

    @route("GET", *Role, name="kept")
    def binding(self, who: Identity, scope: str, *, name: Kept) -> Answer:
        """The unit and bounds that a scope holds for; null where it was never asked."""
        with self.ledger.moment() as moment:
            corrected = moment.snapshot.fact(root_of(scope), CORRECTED, encode([scope, name]))
        if corrected is not None:
            return {"description": json.loads(corrected)}
        described = self.account(scope).description_of(name)
        if described and self.counter is not None and scope in self.counter.desks:
            # Whoever reads rows here needs the key of truncation, and nobody else.
            described = {"release": {**described["release"], "key": ""}}
        return {"description": described}

    @route("POST", Role.KEEPER, Role.ANALYST)
    def keep(self, who: Identity, scope: str, *, name: Kept, description: Binding) -> Answer:
        """Keep the unit and bounds that a scope holds for: the first analyst says them, a keeper corrects them."""
        if who.role is Role.KEEPER:
            stated = CORRECTED, encode([scope, name]), encode(description)
            self.ledger.state(SetFact(scope, who.actor, *stated))
        else:
            self.account(scope).keep(name, description, actor=who.actor)
        return self.binding(who, scope, name=name)

    @route("GET", *Role)
    def left(self, who: Identity, scope: str) -> Answer:
        """The most that a charge could still ask, what others reserved left aside."""
        with self.ledger.moment() as moment:
            return {"left": moment.left([scope])[scope].amounts.texts()}

    def ready(self) -> list[str]:
        """Warnings of a ledger that takes charges; raises StoreError where it cannot be used."""
        self.ledger.store.transact([Statement(PEOPLE, OPERATOR)])
        behind = "the clock is behind a recorded time; ledger people --trust-clock undoes it"
        return [behind] if self.people.ahead > 60 else []

    def gauges(self, who: Identity) -> list[str]:
        """The amounts spent and left of the budgets of a subtree, as Prometheus reads them.

        Raises:
            HTTPException: 403, for an analyst.
        """
        if who.role is Role.ANALYST:
            raise HTTPException(403, "your role may not ask this")
        lines: list[str] = []
        with self.ledger.moment() as moment:
            for balance in moment.some_balances(who.subtree or None, limit=MOST_GAUGES):
                for name, amount in balance.left.items():
                    labels = f'{{scope="{balance.scope.path}",currency="{name}"}}'
                    spent = float(balance.spent[name].fraction)
                    lines += [f"dpcompose_spent{labels} {spent!r}\n"]
                    lines += [f"dpcompose_left{labels} {float(amount.fraction)!r}\n"]
        return lines

    @route("GET", Role.ANALYST, reads=True)
    def history(self, who: Identity, scope: str, *, before: Before = None) -> Answer:
        """The entries of the identity that asks, the newest first, page by page."""
        with self.ledger.moment() as moment:
            found = page(moment, scope, before, lambda entry: entry.actor == who.actor)
        return {"entries": [shown(each) for each in found.entries], "before": found.before}

    @route("GET", Role.KEEPER, Role.AUDITOR, reads=True)
    def balances(
        self, who: Identity, scope: str, *, after: Annotated[str, line(least=0, most=512)] = ""
    ) -> Answer:
        """The amounts spent at a scope and below it, sorted by path; `after` of an answer asks for the next page."""
        with self.ledger.moment() as moment:
            page = moment.some_balances(scope, after=after, limit=PAGE + 1)
        listed = [{"scope": each.scope.path, "spent": each.spent.texts()} for each in page[:PAGE]]
        return {"balances": listed, "after": listed[-1]["scope"] if len(page) > PAGE else None}

    @route("GET", Role.KEEPER, Role.AUDITOR, reads=True)
    def entries(
        self,
        who: Identity,
        scope: str,
        *,
        actor: Text = "",
        kind: Text = "",
        words: Text = "",
        before: Before = None,
    ) -> Answer:
        """The newest entries of a scope and below it, with their hashes; an actor, a kind and words may be asked."""

        with self.ledger.moment() as moment:
            found = page(moment, scope, before, matching(actor, kind, words))
        return {
            "entries": [shown(each) | {"body": each.body} for each in found.entries],
            "before": found.before,
        }

    @route("GET", Role.AUDITOR, reads=True)
    def verify(
        self,
        who: Identity,
        scope: str,
        *,
        after: Annotated[
            int | None, request.integer("Where the last answer stopped.", least=0)
        ] = None,
    ) -> Answer:
        """Follow every entry of the own tree, or, with `after`, some of them."""
        root = root_of(self.ledger.balance(scope).scope.path)
        return self.verifier.follow(who.actor, root, after)

    @route("GET", Role.KEEPER, Role.AUDITOR)
    def checkpoint(self, who: Identity, scope: str) -> Answer:
        """The checkpoint of the tree that a keeper published."""
        return {"checkpoint": self._published().checkpoint(root_of(scope)).note}

    @route("GET", Role.KEEPER, Role.AUDITOR, reads=True)
    def proof(
        self,
        who: Identity,
        scope: str,
        *,
        entry: Annotated[int, request.integer("The number of an entry.")],
    ) -> Answer:
        """The proof that an entry of that scope, or below it, is under the checkpoint."""
        with self.ledger.moment() as moment:
            moment.balance(scope)
            return {"proof": self._published().proof(moment.snapshot, scope, entry)}

    def _published(self) -> Published:
        if self.published is None:
            raise errors.UnsupportedError(
                "a proof", "no signed checkpoint is published here", "Ask the keeper"
            )
        return self.published

    @route("POST", Role.KEEPER, exact=True)
    def open(
        self,
        who: Identity,
        scope: str,
        *,
        kind: Annotated[str, line(enum=["filter", "slots", "partition"])] = "filter",
        filter: Annotated[str | None, line("If it is no budget of the target.")] = None,
        only: Annotated[str | None, line("One theorem alone of the budget.", enum=THEOREMS)] = None,
        parameters: Annotated[
            Mapping[str, str], request.texts("Of the filter, by name.")
        ] = NOTHING,
        target: Annotated[
            Mapping[str, str], request.texts("epsilon, delta, mechanism_delta.")
        ] = NOTHING,
        slots: Annotated[int | None, request.integer()] = None,
        price_delta: Annotated[str | None, line()] = None,
        adjacency: Annotated[str, line(enum=["add-remove", "replace", "zero-out"])] = "add-remove",
        odometer: Annotated[str | None, line()] = None,
        renew: Annotated[
            str | None, line("year, quarter, month, week, day, or a duration.")
        ] = None,
        note: Annotated[Mapping[str, str], request.texts("Anything else to keep.")] = NOTHING,
    ) -> Answer:
        """Open a scope, in the words of `dpcompose ledger scope`."""
        words = {name: value for name, value in locals().items() if name in _WORDS}
        budget = BudgetArguments(**words)
        budget.open(self.ledger, scope, actor=who.actor)
        return {"scope": scope}

    @route("POST", Role.KEEPER)
    def close(self, who: Identity, scope: str, *, key: Key) -> Answer:
        """Close a scope for charges."""
        self.ledger.close_scope(scope, actor=who.actor, key=own_key(who, key))
        return {"closed": scope}

    @route("POST", Role.KEEPER)
    def invite(
        self,
        who: Identity,
        scope: str,
        *,
        name: request.Name,
        role: Annotated[str, line(enum=[str(role) for role in Role])],
        days: Annotated[float, request.number(most=YEAR / 86400)] = 366,
        subject: Annotated[
            str | None, line("At the issuer of identities; then no token is made.", most=255)
        ] = None,
    ) -> Answer:
        """A token for somebody, in the own subtree; this answer is the only place where it is ever written."""
        seconds = days * 86400.0
        if subject is None:
            token = self.people.invite(name, Role(role), scope, seconds=seconds, by=who.actor)
            return {"token": token}
        self.people.admit(subject, name, Role(role), scope, seconds=seconds, by=who.actor)
        return {"subject": subject}

    @route("POST", Role.KEEPER)
    def revoke(self, who: Identity, scope: str, *, name: request.Name) -> Answer:
        """Revoke the tokens that a name has for exactly that scope."""
        return {"revoked": self.people.revoke(name, scope, by=who.actor)}


def _read(state: State, source: str, published: Published | None, work: Any, own: Any) -> Any:
    ledger, service = ledger_of(state, source), state.get("service")
    if service is None or service.ledger is not ledger or service.published != published:
        service = state["service"] = Service(ledger, Identities(ledger), published)
    return work(service, *own)


def _answer(service: Service, name: str, who: Identity, scope: str, fields: Fields) -> Answer:
    return request.ROUTES[name].answer(service, who, scope, fields)


_WORDS = frozenset(request.ROUTES["open"].fields)


def named(mechanism: str, delta: str | None) -> dict[str, str]:
    """The mechanism and delta of a request, as they were written."""
    return {"mechanism": mechanism} | ({} if delta is None else {"delta": delta})


def own_key(who: Identity, key: str) -> str:
    """The ledger's key for the key of an actor: nobody's key is anybody else's."""
    return f"service-{sha256(json.dumps([who.actor, key]).encode()).hexdigest()}"


def shown(entry: Entry) -> Answer:
    """An entry for a list."""
    named = {
        "sequence": entry.sequence,
        "kind": entry.kind,
        "scope": entry.scope,
        "actor": entry.actor,
    }
    cost = entry.cost.texts() if entry.kind in (Entry.GRANTED, Entry.REFUSED) else {}
    named |= {"time": entry.time, "hash": entry.hash}
    return {**named, "cost": cost, "mechanism": mechanism_of(entry)}


def mechanism_of(entry: Entry) -> str:
    """The mechanism that was charged, or the kind of what was stated."""
    stated = entry.fields.get("statement", {}).get("kind", "")
    return str(entry.description.get("mechanism", stated))
