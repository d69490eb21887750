"""The ledger's rules, written a second time and naively: exact numbers, and everything summed anew each time.

It shares no code with the ledger. `Model` says what each request must lead to; an `Outcome` is comparable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

Exact = Fraction | int
Costs = Mapping[str, Exact]


@dataclass(frozen=True)
class Outcome:
    """The name of an error or "done"; for OverdrawnError: where, what, asked and left."""

    name: str
    short: tuple[str, str, Exact, Exact] | None = None


DONE = Outcome("done")


@dataclass
class Place:
    """One scope: its caps, and what was charged to itself."""

    kind: str
    caps: dict[str, Exact]
    slots: int | None = None
    closed: bool = False
    direct: dict[str, Exact] = field(default_factory=dict)
    request: object = None
    schedule: list[str] | None = None
    rounds: int = 0


@dataclass
class Model:
    """Everything that was opened and granted."""

    places: dict[str, Place] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[object, Outcome]] = field(default_factory=dict)
    below: dict[str, list[str]] = field(default_factory=dict)
    granted: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """Charges by root and key, and by which attempt they were redeemed: None if not yet, empty if it had no name."""

    def open(
        self,
        path: str,
        kind: str,
        caps: Costs | None,
        slots: int | None,
        cost: Costs,
        *,
        request: object,
        schedule: list[str] | None = None,
    ) -> Outcome:
        above = path.rpartition("/")[0]
        if path in self.places:
            return DONE if self.places[path].request == request else Outcome("ScopeExistsError")
        bad = self._not_open(above) if above else None
        if bad is not None:
            return bad
        parent = self.places.get(above)
        slot_of = parent if parent is not None and parent.kind == "slots" else None
        if slot_of is not None:
            if kind != "filter":
                return Outcome("ScopeKindError")
            if caps is not None and dict(caps) != slot_of.caps:
                return Outcome("CurrencyError")
            caps = slot_of.caps
        place = Place(kind, dict(caps or {}), slots, request=request, schedule=schedule)
        if slot_of is not None and len(self._children(above)) == slot_of.slots:
            return Outcome("OverdrawnError", (above, "slots", 1, 0))
        if kind == "slots":
            expected = self.currencies(above) if above and slot_of is None else set()
            if set(cost) != expected:
                return Outcome("CurrencyError")
            place.direct = dict(cost)
        before = {each: self.spent(each) for each in _upwards(path) if each in self.places}
        self.places[path] = place
        self.below.setdefault(above, []).append(path)
        outcome = self._judged(path, before)
        if outcome != DONE:
            del self.places[path]
            self.below[above].remove(path)
        return outcome

    def charge(
        self, path: str, cost: Costs, key: str, *, request: object, mechanism: str | None = None
    ) -> Outcome:
        root = path.split("/", maxsplit=1)[0]
        if (root, key) in self.keys:
            earlier, outcome = self.keys[root, key]
            return outcome if earlier == request else Outcome("KeyReusedError")
        outcome = self._charge(path, cost, mechanism)
        if outcome.name in ("done", "OverdrawnError"):
            self.keys[root, key] = request, outcome
        if outcome == DONE:
            self.granted[root, key] = None
        return outcome

    def _charge(self, path: str, cost: Costs, mechanism: str | None) -> Outcome:
        bad = self._not_open(path)
        if bad is not None:
            return bad
        place = self.places[path]
        if place.kind != "filter":
            return Outcome("ScopeKindError")
        if set(cost) != self.currencies(path):
            return Outcome("CurrencyError")
        if place.schedule is not None and place.schedule[place.rounds : place.rounds + 1] != [
            mechanism
        ]:
            return Outcome("UnsupportedError")
        before = {each: self.spent(each) for each in _upwards(path)}
        earlier = dict(place.direct)
        place.direct = {name: earlier.get(name, 0) + amount for name, amount in cost.items()}
        outcome = self._judged(path, before)
        if outcome != DONE:
            place.direct = earlier
        elif place.schedule is not None:
            place.rounds += 1
        return outcome

    def redeem(self, root: str, key: str, attempt: str = "") -> Outcome:
        earlier = self.granted[root, key]
        if earlier is None:
            self.granted[root, key] = attempt
        return (
            DONE
            if earlier is None or (attempt and earlier == attempt)
            else Outcome("AlreadyRedeemedError")
        )

    def close(self, path: str, key: str, *, request: object) -> Outcome:
        root = path.split("/", maxsplit=1)[0]
        if (root, key) in self.keys:
            return DONE if self.keys[root, key][0] == request else Outcome("KeyReusedError")
        bad = self._not_open(path)
        if bad is None:
            self.places[path].closed = True
            self.keys[root, key] = request, DONE
        return bad or DONE

    def currencies(self, path: str) -> set[str]:
        """The currencies that a charge of this scope must name."""
        found: set[str] = set()
        for each in _upwards(path):
            if self.places[each].kind == "slots":
                break
            found |= set(self.places[each].caps)
        return found

    def spent(self, path: str) -> dict[str, Exact]:
        """The amounts that this scope has spent, from all that was ever granted below it."""
        place = self.places[path]
        total = dict(place.direct)
        if place.kind == "slots":
            return total
        for child in self._children(path):
            for name, amount in self.spent(child).items():
                so_far = total.get(name, 0)
                total[name] = max(so_far, amount) if place.kind == "partition" else so_far + amount
        return total

    def over(self) -> Iterator[str]:
        """Scopes above a cap; there are none, ever."""
        for path, place in self.places.items():
            spent = {} if place.kind == "slots" else self.spent(path)
            if any(spent.get(name, 0) > cap for name, cap in place.caps.items()):
                yield path
            if place.kind == "slots" and len(self._children(path)) > (place.slots or 0):
                yield path

    def _judged(self, path: str, before: Mapping[str, dict[str, Exact]]) -> Outcome:
        """Every scope up to the root, or up to the slots, against its caps, as things would be now."""
        affected: list[str] = []
        for each in _upwards(path):
            if self.places[each].kind == "slots" and each != path:
                break
            affected.append(each)
        for each in reversed(affected):
            place, now = self.places[each], self.spent(each)
            for name in [] if place.kind == "slots" else sorted(place.caps):
                had, has = before.get(each, {}).get(name, 0), now.get(name, 0)
                if has > place.caps[name]:
                    return Outcome(
                        "OverdrawnError", (each, name, has - had, place.caps[name] - had)
                    )
        return DONE

    def _not_open(self, path: str) -> Outcome | None:
        for each in reversed(list(_upwards(path))):
            if each not in self.places:
                return Outcome("UnknownScopeError")
            if self.places[each].closed:
                return Outcome("ClosedScopeError")
        return None

    def _children(self, path: str) -> list[str]:
        return self.below.get(path, [])


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]
