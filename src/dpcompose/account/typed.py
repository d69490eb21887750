"""Numbers as a person types them: a float is its shortest decimal, so 0.1 is one tenth."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from dpcompose.ledger import Amount

Typed = int | float | str | Decimal | Fraction


def exact(name: str, value: Typed) -> Fraction:
    """Exactly what was typed.

    Raises:
        DomainError: Negative, infinite, no number, or not a multiple of 1e-40.
    """
    return Amount.of(value, name=name).fraction
