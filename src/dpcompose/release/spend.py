"""The spend of a question, and exact decimal numbers as typed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral
from typing import Any, cast

from dpcompose.errors import DomainError
from dpcompose.values import double_below

LARGEST = 10**30


def exact(name: str, value: object) -> Fraction:
    """Return the number as a fraction.

    Raises:
        DomainError: If it is no finite number below 10^30 in absolute value, written with at most
            60 characters.
    """
    number = _read(value)
    if number is None or not abs(number) < LARGEST or not number.denominator < LARGEST:
        raise DomainError(name, value, "a decimal number of a size below 10^30")
    return number


def _read(value: object) -> Fraction | None:
    match value:
        case bool():
            return None
        case Fraction():
            return value
        case Integral():
            return Fraction(int(value))
        case float():
            return Fraction(repr(float(value))) if math.isfinite(value) else None
        case Decimal():
            return Fraction(value) if value.is_finite() and abs(value.adjusted()) < 100 else None
        case str() if len(value) <= 60:
            try:
                return _read(Decimal(value))
            except InvalidOperation:
                return None
        case _:
            return None


RESERVE = Fraction(1, 2**40)
"""A relative reserve, so that a thousand rounded-up float prices stay within the spend."""
_LIMITS = {"epsilon": Fraction(100), "rho": Fraction(1000), "delta": Fraction(1, 2)}
SPEND_DOMAIN = "one of {'epsilon': e}, {'rho': r}, {'epsilon': e, 'delta': d} or {'rho': r, 'delta': d}, each > 0"


@dataclass(frozen=True)
class Spend:
    """The most an answer may cost: an amount of epsilon or rho, and a delta.

    Args:
        amount: Exact, > 0.
        currency: "epsilon" or "rho".
        delta: Exact; 0 if none was named.
    """

    amount: Fraction
    currency: str
    delta: Fraction = Fraction(0)

    @classmethod
    def stated(cls, spend: object) -> Spend:
        """Return the spend as typed; a float is read as its shortest decimal.

        Raises:
            DomainError: If it is no such mapping, or a number is not in (0, 100] for epsilon, (0,
                1000] for rho, (0, 1/2] for delta.
        """
        if not isinstance(spend, Mapping) or ("epsilon" in spend) == ("rho" in spend):
            raise DomainError("spend", spend, SPEND_DOMAIN)
        named = cast("Mapping[object, object]", spend)
        if not set(named) <= set(_LIMITS):
            raise DomainError("spend", dict(named), SPEND_DOMAIN)
        amounts = {str(name): exact(f"spend[{name!r}]", value) for name, value in named.items()}
        for name, amount in amounts.items():
            if not 0 < amount <= _LIMITS[name]:
                raise DomainError(
                    f"spend[{name!r}]", named[name], f"a number > 0 and at most {_LIMITS[name]}"
                )
        currency = "rho" if "rho" in amounts else "epsilon"
        return cls(amounts[currency], currency, amounts.get("delta", Fraction(0)))

    def part(self, part: Fraction, *, delta: bool = True) -> Spend:
        """Return this fraction of the amount, with the same fraction of the delta or none."""
        return Spend(self.amount * part, self.currency, self.delta * part if delta else Fraction(0))

    def with_delta(self, delta: Fraction) -> Spend:
        """Return the same amount with another delta."""
        return Spend(self.amount, self.currency, delta)

    def amounts(self, read: Callable[[Fraction], Any] = Fraction) -> dict[str, Any]:
        """Return the amounts by currency, exact by default; `float` and `str` convert them for
        people and ledgers.
        """
        named = {self.currency: self.amount} | ({"delta": self.delta} if self.delta else {})
        return {currency: read(amount) for currency, amount in named.items()}


def below(number: Fraction) -> float:
    """Return a double below `number` by about the reserve. Noise made for it has a price within
    `number`.
    """
    return double_below(number * (1 - RESERVE))
