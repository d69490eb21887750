"""The answers of the service, route by route; who may ask was decided before (`permission`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from hashlib import sha256
from time import monotonic
from types import MappingProxyType
from typing import Any, cast

from dpcompose.account import Account, BudgetArguments, Quote, charge_together
from dpcompose.errors import DomainError, DPComposeError, ScopeExistsError, UnsupportedError
from dpcompose.ledger import (
    Amount,
    Amounts,
    Charge,
    Entry,
    Ledger,
    Receipt,
    RequestDecision,
    View,
    root_of,
)
from dpcompose.mechanisms import kinds, parse
from dpcompose.serve.agreement import Agreements
from dpcompose.serve.identity import YEAR, Identities, Identity, Role
from dpcompose.serve.published import Published
from dpcompose.serve.queue import Verifier, computed, page
from dpcompose.serve.request import (
    LONGEST_MECHANISM,
    Answer,
    Fields,
    PricedCharge,
    delta,
    number,
    require_texts,
    text,
)
from dpcompose.serve.terms import Terms

MOST, LONGEST = 10, 4096
"""Entries of one actor in a minute, and the characters of one."""


class Refusals:
    """Counts the entries: whoever has no budget would fill the disk with them."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[int, int]] = {}

    def may_record(self, actor: str) -> bool:
        """Whether one more refusal of an actor is an entry."""
        minute, (last, number) = int(monotonic() // 60), self._counted.get(actor, (0, 0))
        number = number + 1 if minute == last else 1
        self._counted[actor] = minute, number
        return number <= MOST


@dataclass(frozen=True)
class RecordedCharge(Charge):
    """A charge whose refusal is an entry only if it may be.

    Args:
        refusals: Those that are.
    """

    refusals: Refusals = field(kw_only=True, compare=False)

    def decide(self, view: View, *, time: str) -> RequestDecision:
        found = super().decide(view, time=time)
        if found.refusal is None or found.entry is None:
            return found
        is_entry = len(found.entry.body) <= LONGEST and self.refusals.may_record(self.actor)
        return found if is_entry else RequestDecision(refusal=found.refusal)


MOST_ACCOUNTS = 1024
PRICING, READING = (
    ("price", "charge", "reserve", "request"),
    ("verify", "proof", "balances", "entries", "history"),
)
"""The routes that may take long: those that price, and those that read many entries."""
SOON = 0.005
"""Seconds that pricing may take while other charges wait for it."""
_SINGLE = re.compile(r"(\w+)\([^()]{0,100}\)", re.ASCII)
_KEY = re.compile("[0-9a-f]{64}")
PLACE = "release:table"
"""The scope below a scope in which its releases keep what it holds for."""
_NOTED = ("approved", "reservation")
"""What the service notes in an entry, and nobody else."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
parsed = lru_cache(maxsize=512)(parse)
"""A mechanism that is asked again is the same object, whose price an account remembers."""


@dataclass(frozen=True)
class Service:
    """A ledger, and the people who share it.

    Args:
        ledger: Where charges are kept.
        people: Who may ask.
        published: The checkpoints that a keeper signed, if any are published here.
    """

    ledger: Ledger
    people: Identities
    published: Published | None = None
    _accounts: dict[str, Account] = field(default_factory=dict[str, Account])
    _soon: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    _refusals: Refusals = field(default_factory=Refusals)

    def account(self, path: str) -> Account:
        """The account on a scope, remembered: a scope never changes, and a charge checks that."""
        found = self._accounts.get(path)
        if found is None:
            if len(self._accounts) >= MOST_ACCOUNTS:
                self._accounts.clear()
            found = self._accounts[path] = Account(self.ledger, scope=path)
        return found

    @cached_property
    def terms(self) -> Terms:
        """The terms that charges heed besides the budgets."""
        return Terms(self.ledger, self.people.database)

    @cached_property
    def verifier(self) -> Verifier:
        """Verifications that go on from request to request."""
        return Verifier(self.ledger)

    @cached_property
    def agreements(self) -> Agreements:
        """The answers about those terms."""
        return Agreements(self.terms, lambda scope, fields: self.quote(scope, fields).cost, own_key)

    def quick_quote(self, scope: str, fields: Fields) -> Quote | None:
        """The price of a mechanism that is remembered, or computed in no time; None for any other."""
        mechanism, named = parsed(text(fields, "mechanism", most=LONGEST_MECHANISM)), delta(fields)
        account = self.account(scope)
        if self.soon_priced(scope, fields["mechanism"], fields.get("delta")):
            return account.quote(mechanism, named)
        return account.remembered(mechanism, named)

    def quote(self, scope: str, fields: Fields) -> Quote:
        """The price of a mechanism; one that may take long is computed by another process."""
        found = self.quick_quote(scope, fields)
        if found is not None:
            return found
        account, typed, named = self.account(scope), fields["mechanism"], delta(fields)
        seconds, cost, described = computed(account, typed, named)
        if seconds < SOON:
            if len(self._soon) >= MOST_ACCOUNTS:
                self._soon.clear()
            self._soon.add((scope, typed, str(fields.get("delta"))))
        return account.remember(Quote(account, parsed(typed), named, cost, described))

    def price(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The price of a mechanism here."""
        return {"cost": self.quote(scope, fields).cost.texts()}

    def charge(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Charge a mechanism at the server's price, as the identity that asks."""
        try:
            return self._charged(who, scope, fields)
        except (
            ScopeExistsError
        ):  # lost in a failover before a standby had it, and opened again otherwise
            self._accounts.clear()
            return self._charged(who, scope, fields)

    def _charged(self, who: Identity, scope: str, fields: Fields) -> Answer:
        quote = self.quote(scope, fields)
        account, charge = self.ledger_charge(who, quote, fields)
        reserved = (
            None if fields.get("reservation") is None else own_key(who, text(fields, "reservation"))
        )
        named = {
            name: fields[name] for name in ("mechanism", "delta") if fields.get(name) is not None
        }

        def commit(noted: Answer) -> Receipt:
            asked = self.ledger_charge(who, quote, fields, noted) if noted else (account, charge)
            (found,) = charge_together([asked])
            if isinstance(found, DPComposeError):
                raise found
            return found

        return receipted(
            self.terms.charged(
                PricedCharge(who, scope, charge.key, charge.cost, named, reserved), commit
            )
        )

    def ledger_charge(
        self, who: Identity, quote: Quote, fields: Fields, noted: Mapping[str, Any] = NOTHING
    ) -> tuple[Account, Charge]:
        """A charge as the ledger is asked for it, with what the service notes in its entry."""
        described: Any = {} if fields.get("description") is None else fields["description"]
        if not isinstance(described, dict) or any(name in described for name in _NOTED):
            raise DomainError(
                "description", described, f"a mapping without the names {', '.join(_NOTED)}"
            )
        key, description = own_key(who, text(fields, "key")), {**cast("Answer", described), **noted}
        charge = quote.charge(actor=who.actor, key=key, description=description)
        return quote.account, RecordedCharge(**vars(charge), refusals=self._refusals)

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
        try:
            return name in READING or (name in PRICING and self.quick_quote(scope, fields) is None)
        except (DPComposeError, RecursionError, OverflowError, ZeroDivisionError):
            return False  # the answer says why

    def redeem(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Redeem a receipt of the identity that asks; the nonce is made by the process that draws."""
        receipt = Receipt.read(text(fields, "receipt"))
        if receipt.scope != scope:
            raise DomainError("receipt", receipt.scope, "a receipt of that scope")
        self.ledger.redeem(receipt, actor=who.actor, nonce=text(fields, "nonce"))
        return {"redeemed": receipt.sequence}

    def budget(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The adjacency under which a scope is priced, and the note with which it was opened."""
        account = self.account(scope)
        return {"scope": scope, "adjacency": account.adjacency.value, "note": account.note}

    def kept(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The unit and bounds that a scope holds for; null where it was never asked."""
        return {"description": self.account(scope).description_of(_binding_name(fields))}

    def keep(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Keep the unit and bounds that a scope holds for; the first who says them has said them for all."""
        place, described = _binding_name(fields), fields.get("description")
        if not _is_binding(described):
            raise DomainError(
                "description", described, "what a scope holds for, as a release session writes it"
            )
        self.account(scope).keep(place, cast("Answer", described), actor=who.actor)
        return self.kept(who, scope, fields)

    def left(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The most that a charge could still ask, what others reserved left aside."""
        return {"left": self.terms.left([scope])[scope].amounts.texts()}

    def history(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The entries of the identity that asks, the newest first, page by page."""
        found = page(self.ledger, scope, fields, lambda entry: entry.actor == who.actor)
        return {"entries": [shown(each) for each in found.entries], "before": found.before}

    def balances(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The amounts spent at a scope and below it."""
        found = self.ledger.balances(scope)
        return {
            "balances": [{"scope": each.scope.path, "spent": texts(each.spent)} for each in found]
        }

    def entries(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The newest entries of a scope and below it, with their hashes; an actor, a kind and words may be asked."""
        actor, kind, words = (fields.get(name, "") for name in ("actor", "kind", "words"))

        def wanted(entry: Entry) -> bool:
            return (
                actor in ("", entry.actor) and kind in ("", entry.kind) and str(words) in entry.body
            )

        found = page(self.ledger, scope, fields, wanted)
        return {
            "entries": [shown(each) | {"body": each.body} for each in found.entries],
            "before": found.before,
        }

    def verify(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Follow every entry of the own tree, or, with `after`, some of them."""
        root = root_of(self.ledger.balance(scope).scope.path)
        at_once = fields.get("after") is None
        return (
            self.verifier.follow_all(root)
            if at_once
            else self.verifier.follow(who.actor, root, fields)
        )

    def checkpoint(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The checkpoint of the tree that a keeper published."""
        return {"checkpoint": self._published().checkpoint(root_of(scope)).note}

    def proof(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """The proof that an entry of that scope, or below it, is under the checkpoint."""
        entry = text(fields, "entry")
        with self.ledger.moment() as moment:
            moment.balance(scope)
            return {"proof": self._published().proof(moment, scope, entry)}

    def _published(self) -> Published:
        if self.published is None:
            raise UnsupportedError(
                "a proof", "no signed checkpoint is published here", "Ask the keeper"
            )
        return self.published

    def open(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Open a scope, in the words of `dpcompose ledger scope`."""
        words = {name: value for name, value in fields.items() if name != "scope"}
        for name in ("filter", "kind", "adjacency", "odometer", "price_delta"):
            if not isinstance(words.get(name, ""), str):
                raise DomainError(name, words[name], "text")
        for name in ("parameters", "target", "note"):
            require_texts(name, words.get(name, {}))
        try:
            asked = BudgetArguments(**words)
        except TypeError:
            raise DomainError("fields", sorted(words), "the words of a budget") from None
        cost = Amounts.of(asked.cost(self.ledger, scope))
        if cost:
            self.terms.opened(
                who, scope, cost, lambda: asked.open(self.ledger, scope, actor=who.actor)
            )
        else:
            asked.open(self.ledger, scope, actor=who.actor)
        return {"scope": scope}

    def close(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Close a scope for charges."""
        self.ledger.close_scope(scope, actor=who.actor, key=own_key(who, text(fields, "key")))
        return {"closed": scope}

    def invite(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """A token for somebody, in the own subtree; this answer is the only place where it is ever written."""
        role, days = text(fields, "role"), number(fields, "days", most=YEAR / 86400, default=366)
        if role not in set(Role):
            raise DomainError("role", role, ", ".join(Role))
        name, seconds = text(fields, "name"), days * 86400.0
        if fields.get("subject") is None:
            return {"token": self.people.invite(name, Role(role), scope, seconds=seconds)}
        self.people.admit(text(fields, "subject"), name, Role(role), scope, seconds=seconds)
        return {"subject": fields["subject"]}

    def revoke(self, who: Identity, scope: str, fields: Fields) -> Answer:
        """Revoke the tokens that a name has for exactly that scope."""
        return {"revoked": self.people.revoke(text(fields, "name"), scope)}


Handler = Callable[[Service, Identity, str, Fields], Answer]


def _about_terms(answer: Callable[[Agreements, Identity, str, Fields], Answer]) -> Handler:
    @wraps(answer)
    def answered(service: Service, who: Identity, scope: str, fields: Fields) -> Answer:
        return answer(service.agreements, who, scope, fields)

    return answered


HANDLERS: Mapping[str, Handler] = {
    each.__name__: each
    for each in (
        Service.price,
        Service.charge,
        Service.redeem,
        Service.left,
        Service.budget,
        Service.kept,
        Service.keep,
        Service.history,
        Service.balances,
        Service.entries,
        Service.verify,
        Service.checkpoint,
        Service.proof,
        Service.open,
        Service.close,
        Service.invite,
        Service.revoke,
    )
} | {
    each.__name__: _about_terms(each)
    for each in (
        Agreements.reserve,
        Agreements.unreserve,
        Agreements.quota,
        Agreements.threshold,
        Agreements.request,
        Agreements.decide,
        Agreements.requests,
        Agreements.agreed,
    )
}


def _binding_name(fields: Fields) -> str:
    """The name of what is kept below a scope; releases have one."""
    name = text(fields, "name")
    if name != PLACE:
        raise DomainError("name", name, PLACE)
    return name


def _is_binding(described: Any) -> bool:
    match described:
        case {
            "release": {"unit": [*unit], "bounds": [int(), int(), int()], "key": str(key), **more},
            **rest,
        }:
            named = all(_is_column(each) for each in unit)
            return (
                bool(unit) and named and _KEY.fullmatch(key) is not None and not more and not rest
            )
        case _:
            return False


def _is_column(each: object) -> bool:
    match each:
        case [str(), str()]:
            return True
        case _:
            return False


def receipted(receipt: Receipt) -> Answer:
    """The answer to a charge."""
    return {"receipt": receipt.to_json()}


def own_key(who: Identity, key: str) -> str:
    """The ledger's key for the key of an actor: nobody's key is anybody else's."""
    return f"service-{sha256(json.dumps([who.actor, key]).encode()).hexdigest()}"


def texts(amounts: Mapping[str, Amount]) -> dict[str, str]:
    """Amounts as they are stored and shown."""
    return {name: str(amount) for name, amount in amounts.items()}


def shown(entry: Entry) -> Answer:
    """An entry for a list."""
    named = {
        "sequence": entry.sequence,
        "kind": entry.kind,
        "scope": entry.scope,
        "actor": entry.actor,
    }
    cost = entry.cost.texts() if entry.kind in (Entry.GRANTED, Entry.REFUSED) else {}
    mechanism = str(entry.description.get("mechanism", ""))
    return {**named, "time": entry.time, "hash": entry.hash, "cost": cost, "mechanism": mechanism}
