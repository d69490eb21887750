"""Scopes that renew, against a model that adds up the charges of a period anew each time.

python -m campaigns.ledger.periods [--trees 200] [--requests 60] [--url memory:]

Trees of filters and partitions, renewed each year, quarter, month, week, day or after some hours, or never; clocks that
run on, stand still, jump over a boundary and are set back; charges near the caps. The model shares nothing with the
ledger but the rule that recorded time never runs back.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from unittest import mock

from campaigns.ledger.history import HistoryError
from dpcompose.errors import DPComposeError, OverdrawnError
from dpcompose.ledger import Ledger
from dpcompose.ledger.scope import AccountNode

RENEWALS = ("", "year", "quarter", "month", "week", "day", "PT7H")
START = datetime(1999, 12, 29)
FOREVER = (datetime.min, datetime.max)
Span = tuple[datetime, datetime]


def span(renew: str, at: datetime) -> Span:
    """The period that holds a moment, counted day by day on the calendar."""
    day = datetime(at.year, at.month, at.day)
    match renew:
        case "":
            return FOREVER
        case "year":
            return datetime(at.year, 1, 1), datetime(at.year + 1, 1, 1)
        case "quarter":
            first = datetime(at.year, (at.month - 1) // 3 * 3 + 1, 1)
            return first, span("month", first + timedelta(days=70))[1]
        case "month":
            first = day.replace(day=1)
            return first, (first + timedelta(days=31)).replace(day=1)
        case "week":
            monday = day - timedelta(days=at.weekday())
            return monday, monday + timedelta(days=7)
        case "day":
            return day, day + timedelta(days=1)
        case _:
            first = datetime(1969, 12, 29)
            hours = int((at - first) / timedelta(hours=7))
            while first + hours * timedelta(hours=7) > at:
                hours -= 1
            return first + hours * timedelta(hours=7), first + (hours + 1) * timedelta(hours=7)


@dataclass
class Place:
    """A scope: how it renews, its cap, and the charges made to itself, with their times."""

    kind: str
    renew: str
    cap: int
    charges: list[tuple[datetime, int]] = field(default_factory=list)


@dataclass
class PeriodModel:
    """Everything that was granted."""

    places: dict[str, Place] = field(default_factory=dict)

    def spent(self, path: str, within: Span) -> int:
        """What a scope has spent in a span: of a partition, period by period, the most that one child has."""
        place = self.places[path]
        below = [each for each in self.places if each.rpartition("/")[0] == path]
        if place.kind == "filter":
            own = sum(cost for at, cost in place.charges if within[0] <= at < within[1])
            return own + sum(self.spent(child, within) for child in below)
        spans = {span(place.renew, at) for at in self.times(path)}
        cut = [(max(first, within[0]), min(last, within[1])) for first, last in spans]
        return sum(
            max(self.spent(child, each) for child in below) for each in cut if each[0] < each[1]
        )

    def times(self, path: str) -> Iterator[datetime]:
        for each, place in self.places.items():
            if each == path or each.startswith(f"{path}/"):
                yield from (at for at, _ in place.charges)

    def charge(self, path: str, cost: int, at: datetime) -> tuple[str, int, int] | None:
        """Grant, or say where it is short, what was asked there and what was left."""
        parts = path.split("/")
        chain = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        before = {each: self.spent(each, span(self.places[each].renew, at)) for each in chain}
        self.places[path].charges.append((at, cost))
        for each in chain:
            now, cap = self.spent(each, span(self.places[each].renew, at)), self.places[each].cap
            if now > cap:
                self.places[path].charges.pop()
                return each, now - before[each], cap - before[each]
        return None


def campaign(url: str, *, seed: int, requests: int, weakness: str = "") -> int:
    """One tree, charged so often; HistoryError where the ledger and the model disagree. How many were granted.

    Args:
        url: Where.
        seed: Of what is drawn.
        requests: How many charges are asked.
        weakness: How it is broken on purpose.
    """
    draw, model, granted = random.Random(f"{seed}"), PeriodModel(), 0
    clock = last = START
    with ExitStack() as opened:
        if weakness:
            opened.enter_context(mock.patch.object(AccountNode, "at", _WEAK[weakness]))
        set_clock = opened.enter_context(mock.patch("time.time_ns"))
        ledger = opened.enter_context(Ledger.open(url))
        root = f"world{seed}"
        set_clock.return_value = _nanoseconds(clock)
        for path, place in _tree(draw, root):
            model.places[path] = place
            renew, caps = place.renew or None, {"epsilon": place.cap}
            ledger.scope(path, kind=place.kind, caps=caps, renew=renew, actor="keeper")
        charged = [path for path, place in model.places.items() if place.kind == "filter"]
        for number in range(requests):
            clock = _moved(draw, clock, model)
            last = max(last, clock)
            set_clock.return_value = _nanoseconds(clock)
            path, cost = draw.choice(charged), draw.choice((1, 1, 2, 3, 5))
            expected = model.charge(path, cost, last)
            try:
                ledger.charge(path, cost={"epsilon": cost}, actor="client", key=str(number))
                found, granted = None, granted + 1
            except OverdrawnError as refusal:
                found = refusal.scope, Fraction(str(refusal.requested)), Fraction(str(refusal.left))
            except DPComposeError as error:
                raise HistoryError(f"{path}: {error}") from error
            if found != expected:
                raise HistoryError(
                    f"tree {seed}, request {number} at {last}: {found}, the model says {expected}"
                )
            _compare(ledger, model, last)
        ledger.verify()
    return granted


def _compare(ledger: Ledger, model: PeriodModel, at: datetime) -> None:
    for path, place in model.places.items():
        spent = ledger.balance(path).spent["epsilon"].fraction
        if spent != (expected := model.spent(path, span(place.renew, at))):
            raise HistoryError(f"{path} has spent {spent} at {at}, the model says {expected}")


def _tree(draw: random.Random, root: str) -> Iterator[tuple[str, Place]]:
    """A top-level scope and some below it, renewed as the rules allow."""
    made = {root: Place("filter", draw.choice(RENEWALS), draw.randint(4, 12))}
    for number in range(draw.randint(1, 6)):
        above = draw.choice(list(made))
        parent = made[above]
        kind = draw.choice(("filter", "filter", "partition"))
        parts = above.split("/")
        beyond = {made["/".join(parts[: depth + 1])].renew for depth in range(len(parts))} - {""}
        if kind == "partition" and len(beyond) > 1:
            continue
        renew = draw.choice(RENEWALS)
        if parent.kind == "partition":
            renew = parent.renew
        if kind == "partition" and beyond:
            renew = next(iter(beyond))
            if parent.kind == "partition" and renew != parent.renew:
                continue
        made[f"{above}/{number}"] = Place(kind, renew, draw.randint(3, 10))
    for path in [path for path, place in made.items() if place.kind == "partition"]:
        made[f"{path}/child"] = Place("filter", made[path].renew, draw.randint(3, 10))
    yield from made.items()


def _moved(draw: random.Random, clock: datetime, model: PeriodModel) -> datetime:
    """Another time: a little later, at a boundary, just before it, far ahead, or set back."""
    renew = draw.choice([place.renew for place in model.places.values()])
    boundary = span(renew, clock)[1] if renew else clock
    return draw.choice(
        [
            clock, clock + timedelta(hours=draw.randint(1, 9)), boundary, boundary - timedelta(microseconds=1),
            clock - timedelta(days=draw.randint(0, 40)), clock + timedelta(days=draw.choice((1, 8, 40))),
        ]
    )  # fmt: skip


def _nanoseconds(at: datetime) -> int:
    return (
        (at.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC))
        // timedelta(microseconds=1)
        * 1000
    )


_AT = AccountNode.at


def _late(node: AccountNode, time: str) -> AccountNode:
    """Periods begin an hour late."""
    moment = datetime.fromisoformat(time.removesuffix("Z")) - timedelta(hours=1)
    return _AT(node, f"{moment.isoformat(timespec='microseconds')}Z")


_WEAK = {"never": lambda node, time: node, "late": _late}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--url", default="memory:")
    asked = parser.parse_args()
    granted = sum(
        campaign(asked.url, seed=seed, requests=asked.requests) for seed in range(asked.trees)
    )
    print(
        f"{asked.trees} trees, {asked.trees * asked.requests} charges, {granted} granted: as the model says"
    )


if __name__ == "__main__":
    main()
