"""The view model of a page: it reads a bounded number of rows of the ledger; the template draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from heapq import nlargest
from itertools import islice, pairwise
from typing import Any

from dpcompose.account import balance_in_epsilon, target_of
from dpcompose.errors import DPComposeError, StoreError, few_digits
from dpcompose.ledger import (
    PEOPLE,
    Amount,
    Amounts,
    Balance,
    Entry,
    Left,
    Moment,
    is_at_or_below,
    root_of,
)
from dpcompose.report import above, at_least, below, main_currency, trimmed, used_of
from dpcompose.serve.agreement import agreed, requests
from dpcompose.serve.identity import Identity, Role
from dpcompose.serve.queue import Page, page
from dpcompose.serve.service import Service, mechanism_of


def ends_at(points: Sequence[tuple[datetime, float]], left: float) -> datetime | None:
    """The time at which the remaining budget ends if it is spent at the rate of these points.

    None if that cannot be said: nothing is left, or the points span less than a day, which is no rate for a date.
    """
    (first, before), (last, after) = points[0], points[-1]
    span, used = last - first, before - after
    if not (span >= timedelta(days=1) and used > 0 and left > 0):
        return None
    try:
        return last + left / used * span
    except OverflowError:
        return None


MOST_SCOPES, MOST_TREES, MOST_ENTRIES = 25, 10, 1000


def children(moment: Moment, path: str) -> Iterator[str]:
    """The children of a scope, sorted, by one or two index look-ups for each."""
    depth, stop, start = path.count("/") + 2, f"{path}0", f"{path}/"
    while True:
        found = next(moment.snapshot.nodes_between(start, stop, limit=1), None)
        if found is None:
            return
        child = "/".join(found.scope.path.split("/")[:depth])
        if found.scope.path == child:
            yield child
            start = f"{child}!"
        else:  # it is below one that came already
            start = f"{child}0"


def scopes_at(moment: Moment, tops: list[str]) -> tuple[list[str], bool]:
    """The scopes that a page has room for, those nearest to `tops` first, sorted; and whether there are more."""
    found = tops[: MOST_SCOPES + 1]
    for path in found:  # it grows meanwhile: level by level
        room = MOST_SCOPES + 1 - len(found)
        if room <= 0:
            break
        found.extend(islice(children(moment, path), room))
    return sorted(found[:MOST_SCOPES], key=lambda path: path.split("/")), len(found) > MOST_SCOPES


def window(moment: Moment, who: Identity, tops: list[str], *, before: int | None) -> Page:
    """The last entries at and below these scopes that a person may see; of one scope, those with numbers below `before`."""
    tops = tops[:MOST_TREES]
    before = before if len(tops) == 1 else None
    numbers = MOST_ENTRIES // max(len(tops), 1)
    pages = [page(moment, top, before, partial(_may_see, who), numbers) for top in tops]
    entries = [entry for each in pages for entry in each.entries]
    entries.sort(key=lambda entry: (entry.time, entry.sequence), reverse=True)
    return Page(entries, pages[0].before if len(pages) == 1 else None)


def _may_see(who: Identity, entry: Entry) -> bool:
    return who.role is not Role.ANALYST or entry.actor == who.actor


def tops_of(moment: Moment, who: Identity, at: str) -> list[str]:
    """The scopes at which a page begins: the one in the URL, else the person's subtree, else every tree."""
    asked = at or who.subtree
    if asked and who.covers(asked) and moment.snapshot.node(asked) is not None:
        return [asked]
    if who.subtree:
        return [who.subtree] if moment.snapshot.node(who.subtree) is not None else []
    roots = [each for each in moment.snapshot.roots() if each != PEOPLE]
    return [each for each in roots if moment.snapshot.node(each) is not None][: MOST_SCOPES + 1]


LONGEST_LIST = 50
ERRORS = (1, 10, 100, 1000)
SEARCHED = ("actor", "kind", "words")


@dataclass(frozen=True)
class Look:
    """The view of one person at one moment.

    Args:
        service: What answers.
        moment: Of its ledger.
        who: Who looks.
        query: What was typed into the page, empty where nothing was.
    """

    service: Service
    moment: Moment
    who: Identity
    query: Mapping[str, str]

    @cached_property
    def tops(self) -> list[str]:
        """The scopes at which the page begins."""
        return tops_of(self.moment, self.who, self.query["at"])

    @property
    def focus(self) -> str:
        """The one scope that the page is about, if it is about one."""
        return self.tops[0] if len(self.tops) == 1 else ""

    @cached_property
    def trail(self) -> list[str]:
        """The scopes above the focus that this person may see."""
        parts = self.focus.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        return [each for each in above if self.who.covers(each)]

    @cached_property
    def scopes(self) -> tuple[list[str], bool]:
        """The scopes shown, and whether there are more."""
        return scopes_at(self.moment, self.tops)

    @cached_property
    def left(self) -> Mapping[str, Left]:
        """The amounts left in each of them, as the service answers."""
        return self.moment.left(self.scopes[0])

    @cached_property
    def agreed(self) -> list[Mapping[str, Any]]:
        """The terms of each tree."""
        return [agreed(self.service, self.who, top) for top in self.tops[:10]]

    @cached_property
    def quotas(self) -> list[Mapping[str, Any]]:
        """The quotas that hold at the scopes shown."""
        return [each for terms in self.agreed for each in terms["quotas"]][:LONGEST_LIST]

    @cached_property
    def requests(self) -> list[Mapping[str, Any]]:
        """Requests for approval, the newest first."""
        tops = self.tops[:10]
        return [each for top in tops for each in requests(self.service, self.who, top)["requests"]][
            :LONGEST_LIST
        ]

    @cached_property
    def budgets(self) -> list[Balance]:
        """The balances of the scopes shown."""
        return [self.moment.balance(path) for path in self.scopes[0]]

    def depth(self, balance: Balance) -> int:
        """How far it is below the highest scope shown."""
        highest = min(each.count("/") for each in self.scopes[0])
        return min(balance.scope.path.count("/") - highest, 6)

    def epsilon(self, balance: Balance) -> dict[str, str] | None:
        """A budget in epsilon at the delta of its target; None if it was opened for none."""
        target = target_of(balance.scope)
        if target is None:
            return None
        both = balance_in_epsilon(balance, self.left[balance.scope.path].amounts)
        if both is None:
            return None
        spent, left = trimmed(above(both[0], 3)), trimmed(below(both[1], 3))
        of = few_digits(target[0], up=False)
        return {"spent": spent, "left": left, "of": of, "delta": few_digits(target[1], up=False)}

    def parts(self, balance: Balance, currency: str) -> tuple[int, int, int]:
        """The units of a budget that were spent, that are reserved, and all of them."""
        spent, whole = used_of(balance, currency)
        return spent, self.left[balance.scope.path].reserved.get(currency, 0), max(whole, 1)

    @cached_property
    def window(self) -> Page:
        """The last entries of the scopes shown."""
        before = self.query["before"]
        number = (
            int(before) if before.isdecimal() and before.isascii() and len(before) < 16 else None
        )
        return window(self.moment, self.who, self.tops, before=number)

    @cached_property
    def entries(self) -> list[Entry]:
        """The entries of the window that match the search."""
        actor, kind, words = (self.query[name] for name in SEARCHED)
        found = (
            each
            for each in self.window.entries
            if actor in ("", each.actor) and kind in ("", each.kind) and words in each.body
        )
        return list(islice(found, LONGEST_LIST))

    @cached_property
    def granted(self) -> list[Entry]:
        """The charges of the window."""
        return [each for each in self.window.entries if each.kind == Entry.GRANTED]

    @cached_property
    def largest(self) -> list[Entry]:
        """The largest charges of the window."""
        return nlargest(10, self.granted, lambda entry: max(entry.cost.units.values(), default=0))

    @cached_property
    def refused(self) -> list[Entry]:
        """The refusals of the window, with their reasons."""
        return [each for each in self.window.entries if each.kind == Entry.REFUSED][:10]

    @cached_property
    def totals(self) -> list[tuple[str, list[tuple[str, Amount, float]]]]:
        """The sums of the window by analyst and by mechanism, in the first currency of the scope, as parts of all."""
        if not self.currency:
            return []
        sums = {"analyst": Counter[str](), "mechanism": Counter[str]()}
        for each in self.granted:
            units = each.cost.units.get(self.currency, 0)
            sums["analyst"][each.actor] += units
            sums["mechanism"][mechanism_of(each)[:80]] += units
        return [(title, _parts(own)) for title, own in sums.items()]

    @cached_property
    def currency(self) -> str:
        """The currency in which the budget of the scope that the page is about is drawn; empty where it has none."""
        scopes = [self.moment.balance(self.focus).scope] if self.focus else []
        name = main_currency(scopes)
        return name if any(scope.caps.units.get(name) for scope in scopes) else ""

    @cached_property
    def burn(self) -> dict[str, Any] | None:
        """The part of the budget that was left after each charge of the window, and when it ends at this rate.

        Of a scope that renews, in its period alone.
        """
        if not self.currency or self.who.role is Role.ANALYST or self.query["before"]:
            return None
        balance = self.moment.balance(self.focus)
        begin, renewed = balance.period or ("", "9999")
        own = [
            each
            for each in self.granted[::-1]
            if is_at_or_below(each.scope, self.focus) and each.time >= begin
        ]
        if not len(own) > 1:
            return None
        cap = balance.scope.caps.units[self.currency]
        left = cap - balance.spent.units[self.currency]
        found: list[tuple[datetime, float]] = [
            (datetime.fromisoformat(self.moment.now(root_of(self.focus))), left / cap)
        ]
        for each in own[::-1]:
            found.append((datetime.fromisoformat(each.time), left / cap))
            left = min(cap, left + each.cost.units.get(self.currency, 0))
        points = found[::-1]
        if any(later[0] < earlier[0] for earlier, later in pairwise(points)):
            return None
        end = ends_at(points, self.left[self.focus].amounts.units.get(self.currency, 0) / cap)
        (first, _), (last, _) = points[0], points[-1]
        seconds = max((last - first).total_seconds(), 1.0)
        return {
            "points": [((at - first).total_seconds() / seconds, left) for at, left in points],
            "first": first.date().isoformat(),
            "last": last.date().isoformat(),
            "ends": "" if end is None or not end.isoformat() < renewed else end.date().isoformat(),
        }

    @cached_property
    def fits(self) -> list[dict[str, str]]:
        """How many counts of an accuracy still fit here."""
        if not self.focus or self.moment.balance(self.focus).closed:
            return []
        found: list[dict[str, str]] = []
        for error in ERRORS:  # 95 %: Laplace by ln 20 = 2.9957, Gaussian by 1.95997
            for mechanism in (f"Gaussian({error * 0.5102:.4f})", f"Laplace({error * 0.3338:.4f})"):
                try:
                    _, times = self._priced(self.focus, mechanism)
                except StoreError:
                    raise
                except DPComposeError:
                    continue
                row = {"error": str(error), "times": f"{times or 0:,}", "mechanism": mechanism}
                found.append(row)
                break
        return found

    def _priced(self, scope: str, mechanism: str) -> tuple[Amounts, int | None]:
        """The price of a mechanism, and how often it fits; None if nothing that it costs is capped."""
        cost = self.service.quote(scope, mechanism, None).cost
        left = self.moment.left([scope])[scope].amounts.units
        limits = (
            left[name] // units for name, units in cost.units.items() if units and name in left
        )
        return cost, min(limits, default=None)

    @cached_property
    def price(self) -> str:
        """The price of a question that was typed, or why there is none; empty if none was."""
        scope, mechanism = self.query["scope"], self.query["mechanism"]
        if not (scope and mechanism) or self.who.role is Role.AUDITOR:
            return ""
        if not self.who.covers(scope):
            return "This scope is not yours."
        try:
            cost, times = self._priced(scope, mechanism)
        except StoreError:
            raise
        except (DPComposeError, RecursionError, OverflowError, ZeroDivisionError) as error:
            return str(error)
        said = ", ".join(f"{at_least(amount)} of {name}" for name, amount in cost.items())
        return f"It costs {said}." + (f" It fits {times:,} times." if times is not None else "")

    @cached_property
    def signed(self) -> dict[str, str] | None:
        """The checkpoint of the tree that is published, and how old it is."""
        published = self.service.published
        if published is None or not self.focus or self.who.role is Role.ANALYST:
            return None
        root = root_of(self.focus)
        try:
            found = published.checkpoint(root)
            hours = (datetime.now(UTC).timestamp() - published.signed) / 3600
        except DPComposeError:
            return None
        return {
            "size": str(found.size),
            "hours": f"{max(hours, 0):.0f}",
            "signer": found.signer.text,
            "root": root,
        }


def _parts(sums: Counter[str]) -> list[tuple[str, Amount, float]]:
    """The largest sums, each with its part of all."""
    whole = max(sums.total(), 1)
    return [(name, Amount(units), units / whole) for name, units in sums.most_common(8)]
