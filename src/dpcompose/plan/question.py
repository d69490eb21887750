"""The question of a plan: epsilon at a delta, or delta at an epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.plan.values import number


@dataclass(frozen=True)
class PlanQuestion:
    """One number is given, the other is asked.

    Args:
        given: The name of the one that is given.
        value: Its value.

    Raises:
        DomainError: If delta is outside [0, 1], or epsilon is negative or infinite.
    """

    given: Literal["delta", "epsilon"]
    value: float

    def __post_init__(self) -> None:
        if not isinstance(self.given, str) or self.given not in ("delta", "epsilon"):  # pyright: ignore
            raise DomainError("given", self.given, "delta or epsilon")
        guard = check.probability if self.given == "delta" else check.nonnegative
        object.__setattr__(self, "value", guard(self.given, self.value))

    @property
    def asked(self) -> str:
        """The number that is asked for."""
        return "epsilon" if self.given == "delta" else "delta"

    @classmethod
    def stated(cls, *, delta: Any = None, epsilon: Any = None) -> PlanQuestion | None:
        """The question stated by one of the two; None if neither is given, DomainError if both are."""
        if delta is None and epsilon is None:
            return None
        if delta is not None and epsilon is not None:
            remedy = "A budget of both is given on the command line, as --epsilon and --delta"
            raise DomainError(
                "epsilon",
                epsilon,
                "only one of delta and epsilon: the other is what is asked for",
                remedy,
            )
        if delta is not None:
            return cls("delta", number("delta", delta))
        return cls("epsilon", number("epsilon", epsilon))
