"""A vector of amounts by currency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from dpcompose.errors import DomainError
from dpcompose.ledger.amount import LIMIT, Amount, require_text, require_units, text_of, typed_units, units_of
from dpcompose.ledger.text import currency_name

MOST_CURRENCIES = 64


def units_text(units: Mapping[str, int]) -> str:
    """Integers of 1e-40 by currency, in order, as `text.encode` writes their texts: no name needs an escape."""
    return "{" + ",".join([f'"{name}":"{text_of(each)}"' for name, each in units.items()]) + "}"


class Amounts(Mapping[str, Amount]):
    """Named amounts, immutable, in the order of their names; `units` are their integers."""

    __slots__ = ("units",)
    units: Mapping[str, int]

    def __init__(self, units: Mapping[str, int]) -> None:
        for name, each in units.items():
            currency_name(name)
            if not (type(each) is int and 0 <= each < LIMIT):
                require_units(f"units of {name}", each)
        ordered = {name: units[name] for name in sorted(units)}
        object.__setattr__(self, "units", MappingProxyType(ordered))

    @classmethod
    def of(
        cls, values: Mapping[str, Amount | int | str | Decimal | Fraction | float] | None, *, name: str = "cost"
    ) -> Amounts:
        """Every value taken exactly, as `Amount.of` does.

        Raises:
            DomainError: A name that is none, or a value that is no amount; the message says which.
        """
        require_text("name", name)
        if values is None:
            return cls({})
        if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(name, values, "a mapping from currencies to amounts")
        if isinstance(values, Amounts):
            return values
        if not len(values) <= MOST_CURRENCIES:
            raise DomainError(name, f"{len(values)} currencies", f"at most {MOST_CURRENCIES} currencies")
        return cls({each: typed_units(f"{name}[{each!r}]", value) for each, value in values.items()})

    @classmethod
    def read(cls, texts: Mapping[str, str]) -> Amounts:
        """The vector that was written as `texts`.

        Raises:
            DomainError: If it is none.
        """
        try:
            return cls({name: units_of(text) for name, text in texts.items()})
        except DomainError:
            raise
        except (AttributeError, TypeError, ValueError):
            raise DomainError("texts", texts, "a mapping from currencies to amounts as they are stored") from None

    @property
    def text(self) -> str:
        """The vector as JSON, as it is stored and hashed."""
        return units_text(self.units)

    def texts(self) -> dict[str, str]:
        """Decimal texts by name, as they are stored and shown."""
        return {name: text_of(units) for name, units in self.units.items()}

    def __getitem__(self, name: str) -> Amount:
        return Amount(self.units[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.units)

    def __len__(self) -> int:
        return len(self.units)

    def __eq__(self, other: object) -> bool:
        return self.units == other.units if isinstance(other, Amounts) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.units.items()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: Amounts are immutable")

    def __reduce__(self) -> tuple[type[Amounts], tuple[dict[str, int]]]:
        return Amounts, (dict(self.units),)

    def __repr__(self) -> str:
        return f"Amounts({self.texts()})"
