"""Members that a higher room supplies to a class of a lower one, when one of them is first used.

A lower room says which names are supplied (`expect`), the higher room has them in a class of its own (`supply`), and
the package says how that room is loaded (`Attached.load`). So what a mechanism is needs nothing of how it is answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Supplied = TypeVar("Supplied", bound=type)
_OWN = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__"),
    *("__abstractmethods__", "_abc_impl", "__static_attributes__", "__firstlineno__"),
}


class Attached:
    """Stands for a member until the room that supplies it is loaded.

    Args:
        name: The name of the member.
    """

    @staticmethod
    def load() -> object:
        """Load what supplies all members; the package puts the loading function here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        type(self).load()
        return getattr(owner if instance is None else instance, self.name)


def expect(lower: type, names: str) -> None:
    """Declare members that a higher room supplies; names with spaces between them."""
    for name in names.split():
        setattr(lower, name, Attached(name))


def supply(lower: type) -> Callable[[Supplied], Supplied]:
    """Move the members of the decorated class into `lower`, which takes its place."""

    def moved(higher: Supplied) -> Any:
        for name, member in vars(higher).items():
            if name not in _OWN:
                setattr(lower, name, member)
        return lower

    return moved
