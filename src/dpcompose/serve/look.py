"""The view model of a page: it reads a bounded number of rows of the ledger; the template draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property, partial
from heapq import nlargest
from itertools import islice
from typing import Any

from dpcompose.account import balance_in_epsilon, target_of
from dpcompose.errors import DPComposeError, StoreError, few_digits
from dpcompose.ledger import (
    PEOPLE,
    Amounts,
    Balance,
    Entry,
    Kind,
    Left,
    Moment,
    paths_down_to,
    root_of,
)
from dpcompose.notebook import written
from dpcompose.report import above, at_least, below, trimmed
from dpcompose.serve.agreement import agreed, requests
from dpcompose.serve.identity import Identity, Role
from dpcompose.serve.queue import Page, Verifier, matching, page
from dpcompose.serve.service import Service, mechanism_of


def ends_at(points: Sequence[tuple[datetime, float]], left: float) -> datetime | None:
    """The time at which the remaining budget ends if it is spent at the rate of these points.

    None if that cannot be said: nothing is left, or the points span less than a week, which is no rate for a date.
    """
    (first, before), (last, after) = points[0], points[-1]
    span, used = last - first, before - after
    if not (span >= timedelta(days=7) and used > 0 and left > 0):
        return None
    try:
        return last + left / used * span
    except OverflowError:
        return None


def in_percent(part: Fraction) -> float:
    """A part in percent, rounded up to one digit after the point."""
    return -(-1000 * part // 1) / 10


def when(time: str) -> str:
    """A recorded time to the minute, with its zone; empty for none."""
    return f"{time[:10]}\u00a0{time[11:16]}\u00a0UTC" if time else ""


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


LONGEST_LIST, MOST_PEOPLE, MOST_WEEKS = 50, 200, 12
NAMES = {"/": "Budget", "/ask": "Ask", "/people": "People", "/log": "Log", "/proofs": "Proofs"}
"""Pages, by path."""
CLOSED = ("/people", "/proofs")
"""Those that an analyst may not see."""
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
        asks: Whether there are tables that this person may ask.
    """

    service: Service
    moment: Moment
    who: Identity
    query: Mapping[str, str]
    asks: bool = False

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
        return [each for each in paths_down_to(self.focus)[:-1] if self.who.covers(each)]

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
        both = balance_in_epsilon(balance, self.left[balance.scope.path].amounts)
        if target is None or both is None:
            return None
        of, delta = (few_digits(each, up=False) for each in target)
        spent, left = trimmed(above(both[0], 3)), trimmed(below(both[1], 3))
        return {"spent": spent, "left": left, "of": of, "delta": delta}

    def percent(self, balance: Balance) -> tuple[float, float] | None:
        """The parts of a budget that were spent and that are reserved, in percent; None without a cap."""
        if balance.scope.kind is Kind.SLOTS:
            return in_percent(Fraction(balance.taken, balance.scope.slots or 1)), 0.0
        held, spent = self.left[balance.scope.path].reserved, balance.fullest
        before = balance.scope.used(spent)
        both = balance.scope.used({name: held.get(name, 0) + u for name, u in spent.items()})
        if before is None or both is None:
            return None
        return in_percent(before), min(in_percent(both - before), 100.0)

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
        is_wanted = matching(*(self.query[name] for name in SEARCHED))
        return list(islice(filter(is_wanted, self.window.entries), LONGEST_LIST))

    @cached_property
    def granted(self) -> list[Entry]:
        """The charges of the window."""
        return [each for each in self.window.entries if each.kind == Entry.GRANTED]

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """The entries that were searched, as the log shows them: what was charged, or why it was refused."""
        return [(*self._who_and_when(each, each.kind), _amounts(each)) for each in self.entries]

    def _who_and_when(self, entry: Entry, *kind: str) -> tuple[Any, ...]:
        named = (*kind, entry.scope, entry.actor, mechanism_of(entry))
        return (entry.sequence, when(entry.time), *named)

    @cached_property
    def people(self) -> list[tuple[str, ...]]:
        """Everybody who was invited in the subtree, the newest first."""
        rows: list[tuple[str, ...]] = []
        for _, each in self.service.people.listed(self.who.subtree)[:MOST_PEOPLE]:
            gone = f"{when(each.revoked)} by {each.revoked_by}" if each.revoked else ""
            where, at, until = each.subtree or "all scopes", when(each.at), when(each.until)
            rows.append((each.name, each.role, where, at, each.by, until, gone))
        return rows

    @cached_property
    def course(self) -> list[tuple[Entry, Fraction, Fraction]]:
        """The charges of the window and the parts of the budget used before and after each, the oldest first.

        Of a scope that renews, those of its period; none for an analyst, who sees the own charges alone.
        """
        if not self.focus or self.who.role is Role.ANALYST or self.query["before"]:
            return []
        balance, found = self.moment.balance(self.focus), list[tuple[Entry, Fraction, Fraction]]()
        begin, units = (balance.period or ("",))[0], balance.fullest
        after = balance.scope.used(units)
        for each in self.granted:
            if after is None or each.time < begin:
                break
            cost = each.cost.units
            units = {name: max(spent - cost.get(name, 0), 0) for name, spent in units.items()}
            before = balance.scope.used(units) or Fraction(0)
            found.append((each, before, after))
            after = before
        return found[::-1]

    @cached_property
    def register(self) -> list[tuple[Any, ...]]:
        """The charges of the window, the oldest first, with their percent of the budget where that is known."""
        parts = {entry.sequence: in_percent(after - before) for entry, before, after in self.course}
        return [(*self._who_and_when(e), parts.get(e.sequence, "")) for e in self.granted[::-1]]

    def _sums(self, of: Callable[[Entry], str]) -> list[tuple[str, str, float]]:
        """The percent of the budget that the charges of the window used, by a name that each has."""
        sums: dict[str, Fraction] = {}
        for entry, before, after in self.course:
            sums[of(entry)] = sums.get(of(entry), Fraction(0)) + after - before
        return [(name, f"{in_percent(part):g} %", in_percent(part)) for name, part in sums.items()]

    @cached_property
    def weeks(self) -> list[tuple[str, str, float]]:
        """The percent of the budget that was used in each of the last weeks."""
        return self._sums(lambda entry: f"Week of {_monday(entry)}")[-MOST_WEEKS:]

    @cached_property
    def totals(self) -> list[tuple[str, list[tuple[str, str, float]]]]:
        """The percent of the budget that was used by analyst and by mechanism, the largest first."""
        sums = [
            ("analyst", self._sums(lambda entry: entry.actor)),
            ("mechanism", self._sums(mechanism_of)),
        ]
        return [(title, nlargest(8, own, lambda each: each[2])) for title, own in sums if own]

    @cached_property
    def end(self) -> str:
        """The day on which nothing is left at the rate of the window; empty where that cannot be said."""
        if not self.course:
            return ""
        (first, before, _), (*_, now), balance = (
            self.course[0],
            self.course[-1],
            self.moment.balance(self.focus),
        )
        room = self.left[self.focus].amounts.units
        most = balance.scope.used({n: u + room.get(n, 0) for n, u in balance.fullest.items()})
        start, last = (datetime.fromisoformat(each) for each in (first.time, self.time))
        left = min(most or now, Fraction(1)) - now
        end = ends_at([(start, float(1 - before)), (last, float(1 - now))], float(left))
        renewed = (balance.period or ("", "9999"))[1]
        return "" if end is None or not end.isoformat() < renewed else end.date().isoformat()

    @property
    def time(self) -> str:
        """The time that an entry would record now."""
        return self.moment.now(root_of(self.focus))

    @property
    def head(self) -> Any:
        """The number and hash of the last entry of the tree."""
        return self.moment.snapshot.head(root_of(self.focus))

    @property
    def pages(self) -> list[tuple[str, str]]:
        """The pages that this person may see, with their names."""
        closed = {
            *(CLOSED if self.who.role is Role.ANALYST else ()),
            *(() if self.asks else ("/ask",)),
        }
        return [each for each in NAMES.items() if each[0] not in closed]

    @property
    def statements(self) -> list[tuple[str, ...]]:
        """The statements among the charges of the window: when, which, and what each cost."""
        noted = [(each, each.description.get("note", {})) for each in self.granted]
        asked = [
            (when(each.time), note["sql"], _amounts(each)) for each, note in noted if "sql" in note
        ]
        return asked[:LONGEST_LIST]

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
    def verified(self) -> str:
        """When the whole ledger was verified, how long ago, and what came of it."""
        last = Verifier.last(self.moment)
        if not last:
            return "The whole ledger was not verified yet: the service does so each week."
        now = datetime.fromisoformat(self.moment.now(PEOPLE))
        days = (now - datetime.fromisoformat(last["at"])).days
        age = "1 day" if days == 1 else f"{days} days"
        agrees = "agreed" if last["agrees"] else "did not agree: its keeper must look"
        return f"The whole ledger was verified {age} ago ({when(last['at'])}), and {agrees}."

    @cached_property
    def signed(self) -> dict[str, str] | None:
        """The checkpoint of the tree that is published, and how old it is."""
        published = self.service.published
        if published is None or not self.focus or self.who.role is Role.ANALYST:
            return None
        root = root_of(self.focus)
        try:
            found = published.checkpoint(root)
            hours = (datetime.now(UTC).timestamp() - published.file.stat().st_mtime) / 3600
        except (DPComposeError, OSError):
            return None
        return {
            "size": str(found.size),
            "hours": f"{max(hours, 0):.0f}",
            "signer": found.signer.text,
            "root": root,
        }


def _monday(entry: Entry) -> str:
    day = datetime.fromisoformat(entry.time).date()
    return (day - timedelta(days=day.weekday())).isoformat()


def _amounts(entry: Entry) -> str:
    """The amounts of a charge, or the one that a refusal was short of."""
    if entry.kind == Entry.REFUSED:
        short = entry.fields["short"]
        left = f"{few_digits(short['left'], up=False)} of {short['currency']}"
        above = "" if short["scope"] == entry.scope else f"more than is left in {entry.scope}: "
        return f"{above}{left} left in {short['scope']}"
    amounts = [f"{at_least(each)} of {name}" for name, each in entry.cost.items() if each.units]
    more = f" and {len(amounts) - 3} more" if len(amounts) > 3 else ""
    return written(", ".join(amounts[:3]) + more)
