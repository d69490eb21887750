"""The view model of a page: it reads a bounded number of rows of the ledger, and draws budgets as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import islice, pairwise
from typing import Any

from markupsafe import Markup

from dpcompose.account import balance_in_epsilon, target_of
from dpcompose.errors import DPComposeError, StoreError, few_digits
from dpcompose.ledger import (
    PEOPLE,
    Amount,
    Balance,
    Entry,
    Left,
    Moment,
    is_at_or_below,
    root_of,
)
from dpcompose.report import above, at_least, at_most, below, main_currency, trimmed, used_of
from dpcompose.serve.agreement import agreed, requests
from dpcompose.serve.identity import Identity, Role
from dpcompose.serve.queue import Page, page
from dpcompose.serve.service import Service, shown

_WIDTH, _HEIGHT, _EDGE = 640.0, 200.0, 34.0
_RECT = '<rect class="{kind}" x="{x:.2f}" y="0" width="{width:.2f}" height="8"/>'


def bar(spent: float, reserved: float, *, label: str) -> Markup:
    """A budget as a bar of its spent, promised and remaining parts, each a fraction of 1."""
    spent = min(max(spent, 0.0), 1.0)
    reserved = min(max(reserved, 0.0), 1.0 - spent)
    parts = [
        _RECT.format(kind="rest", x=0, width=100),
        _RECT.format(kind="spent", x=0, width=100 * spent),
        _RECT.format(kind="promised", x=100 * spent, width=100 * reserved),
    ]
    frame = Markup(
        '<svg class="bar" role="img" aria-label="{}" viewBox="0 0 100 8" preserveAspectRatio="none">'
    )
    return frame.format(label) + Markup("".join(parts) + "</svg>")  # numbers alone


def burn_down(points: Sequence[tuple[datetime, float]], *, label: str) -> Markup:
    """A burn-down chart: the part of the budget that was left after each charge."""
    first, last = points[0][0], points[-1][0]
    seconds = max((last - first).total_seconds(), 1.0)
    wide, high = _WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE
    places = [
        (_EDGE + wide * (at - first).total_seconds() / seconds, _EDGE + high * (1 - left))
        for at, left in points
    ]
    steps = [
        f"M{places[0][0]:.1f} {places[0][1]:.1f}",
        *(f"H{x:.1f}V{y:.1f}" for x, y in places[1:]),
    ]
    floor, end = _HEIGHT - _EDGE, _WIDTH - _EDGE
    form = '<svg class="burn" role="img" aria-label="{}" viewBox="0 0 640 200"><title>{}</title>'
    form += f'<path class="axis" d="M{_EDGE} {_EDGE}V{floor}H{end}"/><path class="line" d="{"".join(steps)}"/>'
    form += '<text x="0" y="40">100 %</text><text x="8" y="170">0 %</text>'
    form += '<text x="34" y="190">{}</text><text class="end" x="606" y="190">{}</text></svg>'
    return Markup(form).format(label, label, first.date().isoformat(), last.date().isoformat())


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
    def budgets(self) -> list[dict[str, Any]]:
        """A scope each, its bars by currency."""
        return [self._budget(self.moment.balance(path)) for path in self.scopes[0]]

    def _budget(self, balance: Balance) -> dict[str, Any]:
        scope, left = balance.scope, self.left[balance.scope.path]
        target = target_of(scope)
        known = None if target is None else balance_in_epsilon(balance, left.amounts)
        epsilon = None
        if target is not None and known is not None:
            spent, rest = trimmed(above(known[0], 3)), trimmed(below(known[1], 3))
            epsilon = {
                "spent": spent,
                "left": rest,
                "of": few_digits(target[0], up=False),
                "delta": target[1],
            }
        depth = scope.path.count("/") - min(each.count("/") for each in self.scopes[0])
        rows = [
            self._currency(balance, name, cap, left)
            for name, cap in scope.caps.items()
            if cap.units
        ]
        state = (
            "closed" if balance.closed else scope.renewal.words if scope.renewal is not None else ""
        )
        return {
            "path": scope.path,
            "depth": min(depth, 6),
            "epsilon": epsilon,
            "rows": rows,
            "state": state,
        }

    def _currency(self, balance: Balance, name: str, cap: Amount, left: Left) -> dict[str, Any]:
        (used, most), reserved = used_of(balance, name), left.reserved.get(name, 0)
        most, path = max(most, 1), balance.scope.path
        label = f"{path}, {name}: {-(-100 * used // most)} % spent, {-(-100 * reserved // most)} % reserved"
        return {
            "currency": name,
            "spent": at_least(balance.spent.get(name, Amount(0))),
            "left": at_most(left.amounts[name]) if name in left.amounts else "",
            "of": at_most(cap),
            "bar": bar(used / most, reserved / most, label=label),
        }

    @cached_property
    def window(self) -> Page:
        """The last entries of the scopes shown."""
        before = self.query["before"]
        number = (
            int(before) if before.isdecimal() and before.isascii() and len(before) < 16 else None
        )
        return window(self.moment, self.who, self.tops, before=number)

    @cached_property
    def entries(self) -> list[dict[str, Any]]:
        """The entries of the window that match the search."""
        actor, kind, words = (self.query[name] for name in SEARCHED)
        found = (
            each
            for each in self.window.entries
            if actor in ("", each.actor) and kind in ("", each.kind) and words in each.body
        )
        return [_row(each) for each, _ in zip(found, range(LONGEST_LIST), strict=False)]

    @cached_property
    def granted(self) -> list[Entry]:
        """The charges of the window."""
        return [each for each in self.window.entries if each.kind == Entry.GRANTED]

    @cached_property
    def largest(self) -> list[dict[str, Any]]:
        """The largest charges of the window."""
        most = sorted(
            self.granted, key=lambda entry: max(entry.cost.units.values(), default=0), reverse=True
        )
        return [_row(each) for each in most[:10]]

    @cached_property
    def refused(self) -> list[dict[str, Any]]:
        """The refusals of the window, with their reasons."""
        return [_row(each) for each in self.window.entries if each.kind == Entry.REFUSED][:10]

    @cached_property
    def totals(self) -> list[tuple[str, list[tuple[str, str, Any]]]]:
        """The sums of the window by analyst and by mechanism, in the first currency of the scope."""
        named: list[tuple[str, Callable[[Entry], str]]] = [
            ("analyst", _actor),
            ("mechanism", _mechanism),
        ]
        return [(title, self._sums(key)) for title, key in named] if self.currency else []

    def _sums(self, key: Callable[[Entry], str]) -> list[tuple[str, str, Any]]:
        sums: dict[str, int] = {}
        for each in self.granted:
            sums[key(each)] = sums.get(key(each), 0) + each.cost.units.get(self.currency, 0)
        most = sorted(sums.items(), key=lambda item: -item[1])[:8]
        whole = max(sum(sums.values()), 1)
        return [
            (
                name,
                at_least(Amount(units)),
                bar(units / whole, 0, label=f"{100 * units // whole} % of these charges"),
            )
            for name, units in most
        ]

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
        return {
            "picture": burn_down(
                points, label=f"{self.currency} left in {self.focus}, after each charge"
            ),
            "ends": "" if end is None or not end.isoformat() < renewed else end.date().isoformat(),
        }

    @cached_property
    def fits(self) -> list[dict[str, str]]:
        """How many counts of an accuracy still fit here."""
        if not self.focus or self.moment.balance(self.focus).closed:
            return []
        left = self.left[self.focus].amounts.units
        found: list[dict[str, str]] = []
        for error in ERRORS:  # 95 %: Laplace by ln 20 = 2.9957, Gaussian by 1.95997
            for mechanism in (f"Gaussian({error * 0.5102:.4f})", f"Laplace({error * 0.3338:.4f})"):
                try:
                    cost = self.service.quote(self.focus, mechanism, None).cost
                except StoreError:
                    raise
                except DPComposeError:
                    continue
                times = min(
                    (
                        left[name] // each
                        for name, each in cost.units.items()
                        if each and name in left
                    ),
                    default=0,
                )
                found.append({"error": str(error), "times": f"{times:,}", "mechanism": mechanism})
                break
        return found

    @cached_property
    def price(self) -> str:
        """The price of a question that was typed, or why there is none; empty if none was."""
        scope, mechanism = self.query["scope"], self.query["mechanism"]
        if not (scope and mechanism) or self.who.role is Role.AUDITOR:
            return ""
        if not self.who.covers(scope):
            return "This scope is not yours."
        try:
            cost = self.service.quote(scope, mechanism, None).cost
            left = self.service.left_in([scope])[scope].amounts.units
        except StoreError:
            raise
        except (DPComposeError, RecursionError, OverflowError, ZeroDivisionError) as error:
            return str(error)
        times = min(
            (left[name] // units for name, units in cost.units.items() if units and name in left),
            default=None,
        )
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


def _actor(entry: Entry) -> str:
    return entry.actor


def _mechanism(entry: Entry) -> str:
    return str(entry.description.get("mechanism", ""))[:80]


def _row(entry: Entry) -> dict[str, Any]:
    found = shown(entry)
    cost = [f"{at_least(amount)} of {name}" for name, amount in entry.cost.items() if found["cost"]]
    short = entry.fields.get("short") if entry.kind == Entry.REFUSED else None
    reason = (
        f"{short['currency']} of {short['scope']}: {at_most(short['left'])} left" if short else ""
    )
    return {
        **found,
        "cost": ", ".join(cost),
        "reason": reason,
        "time": entry.time[:19].replace("T", " "),
    }
