"""The method `.open` of a budget, which imports the room of ledger accounts on first use; the
package sets `Opens.find`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable


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
