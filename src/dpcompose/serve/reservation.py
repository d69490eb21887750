"""Reservations: room that is kept for somebody for a while. Nothing is charged, and nothing is drawn."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dpcompose.errors import ReservationError
from dpcompose.ledger import Amounts
from dpcompose.serve.database import Run
from dpcompose.serve.request import PricedCharge

LONGEST = 90 * 86400.0
MOST = 100
"""Reservations that one person has at a time."""
_COLUMNS = "id, scope, actor, asked, held, used, expires, ended"


@dataclass
class Reservation:
    """Room for charges of one person in one scope.

    Args:
        id: Made from the actor and the key.
        scope: Where.
        actor: Whose.
        request: The request, as JSON.
        held: The amounts kept.
        used: What its charges have used of them.
        expires: When it ends; what was committed by then stays committed, and nothing is committed later.
        ended: Whether it was given back before.
    """

    id: str
    scope: str
    actor: str
    request: str
    held: Amounts
    used: Amounts
    expires: float
    ended: bool

    @classmethod
    def read(cls, row: tuple[Any, ...]) -> Reservation:
        """The reservation of a row."""
        number, scope, actor, asked, held, used, expires, ended = row
        amounts = Amounts.read(json.loads(held)), Amounts.read(json.loads(used))
        return cls(number, scope, actor, asked, *amounts, expires, bool(ended))

    @property
    def remaining(self) -> dict[str, int]:
        """The amounts that it still keeps, in units."""
        return {
            name: max(units - self.used.units[name], 0) for name, units in self.held.units.items()
        }

    def use(self, cost: Amounts) -> None:
        """One of its charges was made."""
        used = self.used.units
        self.used = Amounts({name: units + cost.units.get(name, 0) for name, units in used.items()})

    def keep_used(self, run: Run) -> None:
        """Write down what its charges have used."""
        run("update service_reservation set used = ? where id = ?", (self.used.text, self.id))

    def require(self, charge: PricedCharge) -> None:
        """Raise ReservationError unless the charge is of this person, in this scope, and fits."""
        if self.actor != charge.who.actor:
            raise ReservationError("there is none of that name")
        if self.scope != charge.scope:
            raise ReservationError(
                f"it is one of {self.scope!r}. Charge that scope, or reserve in this one"
            )
        rest = self.remaining
        if any(units > rest.get(name, 0) for name, units in charge.cost.units.items()):
            raise ReservationError(
                "less of it is left than this charge costs. Charge without it, or reserve more"
            )

    def shown(self) -> dict[str, Any]:
        """For an answer."""
        until = datetime.fromtimestamp(self.expires, UTC).isoformat(timespec="seconds")
        named = {"scope": self.scope, "actor": self.actor, "until": until, "reservation": self.id}
        return {**named, "held": self.held.texts(), "used": self.used.texts()}


def reservations_of(run: Run, root: str, now: float) -> list[Reservation]:
    """Those of a tree that have not ended, the oldest name first."""
    wanted = f"select {_COLUMNS} from service_reservation where root = ? and ended = 0 and expires > ? order by id"
    return [Reservation.read(row) for row in run(wanted, (root, now))]


def reservation_named(run: Run, number: str) -> Reservation | None:
    """The reservation of that name, also one that has ended."""
    rows = run(f"select {_COLUMNS} from service_reservation where id = ?", (number,))
    return Reservation.read(rows[0]) if rows else None


def reserved_again(run: Run, number: str, now: float) -> Reservation:
    """The reservation of that name.

    Raises:
        ReservationError: There is none, or it has ended.
    """
    found = reservation_named(run, number)
    if found is None:
        raise ReservationError("there is none of that name")
    if found.ended or not now < found.expires:
        raise ReservationError("it has ended. Charge without it, or reserve again under a new key")
    return found


def end_expired(run: Run, root: str, now: float) -> None:
    """Let those go that have ended: a tree without terms is charged faster."""
    run(
        "update service_reservation set ended = 1 where root = ? and ended = 0 and expires <= ?",
        (root, now),
    )


def end(run: Run, number: str) -> None:
    """Give it back."""
    run("update service_reservation set ended = 1 where id = ?", (number,))


def keep(run: Run, root: str, reservation: Reservation) -> None:
    """A new reservation."""
    amounts = reservation.held.text, reservation.used.text
    values = (
        reservation.id,
        reservation.scope,
        reservation.actor,
        reservation.request,
        *amounts,
        reservation.expires,
        int(reservation.ended),
    )
    run(
        f"insert into service_reservation (root, {_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (root, *values),
    )
