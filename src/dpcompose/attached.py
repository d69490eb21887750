"""Members of a class that a higher room supplies when one of them is first used.

A lower room names the members (`expect`), the higher room defines them in a class of its own
(`supply`), and the package sets how that room is imported (`Attached.load`). So a mechanism's
definition does not import its evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

Supplied = TypeVar("Supplied", bound=type)
_OWN = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__"),
    *("__abstractmethods__", "_abc_impl", "__static_attributes__", "__firstlineno__"),
}


class Attached:
    """A descriptor in place of a member until the room that supplies it is imported.

    Args:
        name: The name of the member.
    """

    @staticmethod
    def load() -> object:
        """Import the rooms that supply the members; the package replaces this function by one that
        does.
        """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        type(self).load()
        return getattr(owner if instance is None else instance, self.name)


def expect(lower: type, names: str) -> None:
    """Declare members of the class `lower` that a package which imports it will define, by names separated by spaces."""
    for name in names.split():
        setattr(lower, name, Attached(name))


def supply(lower: type) -> Callable[[Supplied], Supplied]:
    """Return a class decorator that moves the members of the decorated class into `lower` and
    returns `lower`.
    """

    def moved(higher: Supplied) -> Any:
        for name, member in vars(higher).items():
            if name not in _OWN:
                setattr(lower, name, member)
        return lower

    return moved


class Opens:
    """A budget that can be opened in a ledger."""

    find: ClassVar[Callable[[str], Callable[..., Any]]]
    """A function of the room `account`, by its name."""

    def open(self, ledger: Any, path: str, *, actor: str, **terms: Any) -> Any:
        """Open this budget as a new scope of a ledger, and return the account that charges it.

        Args:
            ledger: The ledger in which the scope is opened.
            path: The path of the new scope; its parent scope must be open.
            actor: Who opens it, recorded in the entry.
            terms: The keywords of `account.open_scope`: an adjacency, the renewal period.
        """
        return Opens.find("open_scope")(ledger, path, filter=self, actor=actor, **terms)
