"""Scopes: the nodes of a tree, what they cap, and what has been spent in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, cast

from dpcompose.ledger.amounts import Amounts


class Kind(StrEnum):
    """What a scope does with the spending of its children."""

    FILTER = "filter"
    """Charges and children add up, within the caps."""
    SLOTS = "slots"
    """A fixed number of children with the same fixed caps; what they spend stops here."""
    PARTITION = "partition"
    """Children hold disjoint people: the largest child counts, and only a rise of it goes up."""


@dataclass(frozen=True)
class Scope:
    """A scope as it was opened; it never changes.

    Args:
        path: Its name, such as `world/acme/sales`.
        kind: What it does with its children's spending.
        caps: The most that may be spent, by currency; for slots, in each of them.
        slots: How many children a scope of kind slots has room for; None for the others.
        description_text: What it is, as JSON; a filter's description goes here.
        opened: The sequence number of the entry that opened it.
    """

    path: str
    kind: Kind
    caps: Amounts
    slots: int | None
    description_text: str
    opened: int

    @property
    def root(self) -> str:
        """The top-level scope above it, or itself."""
        return root_of(self.path)

    @property
    def parent(self) -> str | None:
        """The path of the scope above it; None at the top."""
        return self.path.rpartition("/")[0] or None

    @property
    def description(self) -> dict[str, Any]:
        """What it is, as a fresh mapping."""
        return json.loads(self.description_text)

    @cached_property
    def schedule(self) -> Any:
        """What was committed when it was opened, in order: texts of mechanisms with counts; None if nothing was."""
        budget: Any = self.description.get("budget") if '"schedule":' in self.description_text else None
        return cast("dict[str, Any]", budget).get("schedule") or None if isinstance(budget, dict) else None

    def committed(self, place: int) -> str | None:
        """The text of the mechanism that its schedule has at a place, from 0; None beyond its end.

        A schedule that cannot be read has nothing in any place.
        """
        try:
            for text, times in self.schedule:
                if 0 <= place < times and isinstance(text, str):
                    return text
                place -= times
        except (TypeError, ValueError):
            pass
        return None


@dataclass(frozen=True, slots=True)
class Node:
    """A scope and its balance, as the rules see them.

    Args:
        scope: The scope.
        spent: Integers of 1e-40 by currency, for every currency capped in it or above it up to the next slots.
        taken: How many of its slots are taken, or rounds of its schedule.
        closed: Whether it was closed itself.
    """

    scope: Scope
    spent: Mapping[str, int]
    taken: int = 0
    closed: bool = False


@dataclass(frozen=True)
class Balance:
    """What has been spent in a scope, and what is left.

    Args:
        scope: The scope.
        spent: Spent, by currency; for a scope of slots, what opening it charged the chain above.
        taken: How many of its slots are taken, or rounds of its schedule.
        closed: Whether it was closed.
    """

    scope: Scope
    spent: Amounts
    taken: int
    closed: bool

    @classmethod
    def of(cls, node: Node) -> Balance:
        """The balance of a node."""
        return cls(node.scope, Amounts(node.spent), node.taken, node.closed)

    @property
    def left(self) -> Amounts:
        """What this scope's own caps leave (`Ledger.available` heeds those above it too); empty for slots."""
        if self.scope.kind is Kind.SLOTS:
            return Amounts({})
        return Amounts({name: cap - self.spent.units[name] for name, cap in self.scope.caps.units.items()})


def root_of(path: str) -> str:
    """The top-level scope of a path."""
    return path.partition("/")[0]


def paths_down_to(path: str) -> list[str]:
    """The path itself and all above it, the root first."""
    parts = path.split("/")
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
