"""`.open` of a budget: the room that knows ledgers opens it, read when one is. The package says where it is (`find`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable


class Opens:
    """A budget that may be opened in a ledger."""

    find: ClassVar[Callable[[str], Callable[..., Any]]]
    """A function of the room `account`, by its name."""

    def open(self, ledger: Any, path: str, *, actor: str, **terms: Any) -> Any:
        """Open it in a ledger, and return the account on it.

        Args:
            ledger: Where.
            path: The new scope; the one above it must be open.
            actor: Who opens it.
            terms: As `account.open_scope` takes them: an adjacency, when it renews.
        """
        return Opens.find("open_scope")(ledger, path, filter=self, actor=actor, **terms)
