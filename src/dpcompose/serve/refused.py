"""Refused charges as entries of the ledger: so many of each actor, and short ones; others are answered alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from dpcompose.ledger import Charge, RequestDecision, View

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
