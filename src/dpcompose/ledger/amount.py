"""Whatever may be written into a ledger: text, and exact amounts of currencies.

Text is that of paths, names, keys and descriptions. Amounts are multiples of 1e-40, summed as integers, and vectors of
them by name.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from numbers import Rational
from types import MappingProxyType
from typing import Any, cast

from dpcompose import check
from dpcompose.errors import DomainError

LONGEST_PATH = 512
MOST_BYTES = 1000
"""Of a path in UTF-8: two of them, or one and a key, fit a row of PostgreSQL's index."""

MOST_LEVELS = 16
LONGEST_DESCRIPTION = 64 * 1024
DEEPEST = 32
_PUNCTUATION = set("-_.@+=:~,#")
_CURRENCY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._:+/()-]{0,62}[A-Za-z0-9)])?", re.ASCII)
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*", re.ASCII)

encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""The one way to write JSON here: sorted names, no blanks, ASCII; equal values have equal texts."""


def scope_path(value: object) -> str:
    """`value` as the path of a scope, such as `world/acme/sales`.

    Raises:
        DomainError: Not text, too long or too deep, an empty or odd part, or not in Unicode's form NFC.
    """
    domain = "a path such as world/acme/sales: parts of visible letters, digits and -_.@+=:~,# with / between them"
    if not (isinstance(value, str) and 0 < len(value) <= LONGEST_PATH):
        raise DomainError("path", value, f"{domain}, at most {LONGEST_PATH} characters")
    parts = value.split("/")
    if not len(parts) <= MOST_LEVELS:
        raise DomainError("path", value, f"at most {MOST_LEVELS} levels")
    if _PLAIN_PATH.fullmatch(value):
        return value
    if not all(_is_part(part) for part in parts):
        raise DomainError("path", value, domain)
    if not len(value.encode()) <= MOST_BYTES:
        raise DomainError("path", value, f"{domain}, at most {MOST_BYTES} bytes in UTF-8")
    if not unicodedata.is_normalized("NFC", value):
        raise DomainError(
            "path",
            value,
            "a path in Unicode's normal form NFC",
            "unicodedata.normalize('NFC', path)",
        )
    return value


def scope_paths(paths: Iterable[str]) -> list[str]:
    """Each of them as `scope_path` reads it; one text alone is no list of paths."""
    if isinstance(paths, str) or not isinstance(paths, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("paths", paths, "a list of paths, such as ['world/acme', 'world/city']")
    return [scope_path(path) for path in paths]


def _is_part(part: str) -> bool:
    allowed = all(
        letter in _PUNCTUATION or unicodedata.category(letter)[0] in "LMN" for letter in part
    )
    return bool(part) and part not in (".", "..") and allowed and not check.UNSEEN.search(part)


def currency_name(value: object) -> str:
    """`value` as the name of a currency, such as `epsilon` or `renyi:1.5`."""
    if not (isinstance(value, str) and value != "slots" and _CURRENCY.fullmatch(value)):
        domain = "a name such as epsilon or renyi:1.5, at most 64 characters, not the word slots"
        raise DomainError("currency", value, domain)
    return value


Description = Mapping[str, Any] | None
"""What is opened or charged, in plain values: text, numbers, booleans, None, lists and mappings of these."""


def description_text(value: Description) -> str:
    """`value` as JSON: names are text, values are text, numbers, booleans, None, lists and mappings of these.

    Raises:
        DomainError: Anything else in it, NaN or infinite numbers, or more than 64 KiB of text.
    """
    if value is None:
        return "{}"
    check.kind("description", value, Mapping, "a mapping of plain values")
    text = encode(_plain(value, DEEPEST))
    if not len(text) <= LONGEST_DESCRIPTION:
        raise DomainError(
            "description", f"{len(text)} bytes of JSON", f"at most {LONGEST_DESCRIPTION} bytes"
        )
    return text


def _plain(value: object, depth: int) -> object:
    if value is None or type(value) is bool:
        return value
    if isinstance(value, str):
        return _unicode(value)
    if not depth > 0:
        raise DomainError("description", "...", f"at most {DEEPEST} levels")
    match value:
        case int():
            if not -(10**300) < value < 10**300:
                raise DomainError(
                    "description", "a very long integer", "integers of at most 300 digits"
                )
            return int(value)
        case float():
            if not -float("inf") < value < float("inf"):
                raise DomainError(
                    "description", value, "finite numbers", "write the text 'inf' if it is meant"
                )
            return float(value)
        case Mapping():
            entries = cast(Mapping[object, object], value)
            for name in entries:
                if not isinstance(name, str):
                    raise DomainError("description", name, "names of text")
            return {
                _unicode(cast(str, name)): _plain(each, depth - 1) for name, each in entries.items()
            }
        case list() | tuple():
            return [_plain(each, depth - 1) for each in cast(list[object], value)]
        case _:
            raise DomainError(
                "description", value, "plain values: text, numbers, booleans, None, lists, mappings"
            )


def _unicode(value: str) -> str:
    """`value`, unless it holds halves of surrogate pairs: JSON would join them, and read something else."""
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise DomainError("description", value, "text of Unicode, without lone surrogates")
    return value


PLACES = 40
SCALE = 10**PLACES
LIMIT = SCALE * SCALE
"""Amounts lie below 1e40: their units have at most 80 digits."""

_DOMAIN = "an amount of at least 0 and below 1e40"
_TYPED = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_LONGEST = 200


@dataclass(frozen=True, slots=True, order=True)
class Amount:
    """An exact amount: `units` times 1e-40.

    >>> Amount.of(0.1) + Amount.of("0.2") == Amount.of("3e-1")
    True
    """

    units: int

    def __post_init__(self) -> None:
        require_units("units", self.units)

    @classmethod
    def of(
        cls, value: Amount | int | str | Decimal | Fraction | float, *, name: str = "amount"
    ) -> Amount:
        """Exactly what a person typed; a float is read as its shortest decimal, so 0.1 is one tenth.

        Raises:
            DomainError: Negative, infinite, no number, 1e40 or more, or not a multiple of 1e-40.
        """
        check.kind("name", name, str, "text")
        return value if isinstance(value, Amount) else cls(typed_units(name, value))

    @classmethod
    def up(
        cls, value: Amount | int | Decimal | Fraction | float, *, name: str = "amount"
    ) -> Amount:
        """The least multiple of 1e-40 that is not below `value` (a float is exactly that double): for costs."""
        check.kind("name", name, str, "text")
        return value if isinstance(value, Amount) else cls(_rounded(name, value, up=True))

    @classmethod
    def down(
        cls, value: Amount | int | Decimal | Fraction | float, *, name: str = "amount"
    ) -> Amount:
        """The largest multiple of 1e-40 that is not above `value` (a float is exactly that double): for caps."""
        check.kind("name", name, str, "text")
        return value if isinstance(value, Amount) else cls(_rounded(name, value, up=False))

    @property
    def fraction(self) -> Fraction:
        """The same number as a fraction."""
        return Fraction(self.units, SCALE)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.units + other.units)

    def __sub__(self, other: Amount) -> Amount:
        """The difference; what would be negative is an error."""
        return Amount(_within("difference", f"{self} - {other}", self.units - other.units))

    def __str__(self) -> str:
        return text_of(self.units)


@lru_cache(maxsize=4096)
def text_of(units: int) -> str:
    """The decimal text of so many units, without an exponent and without zeros at its end."""
    whole, rest = divmod(units, SCALE)
    return f"{whole}.{rest:040d}".rstrip("0") if rest else str(whole)


def typed_units(name: str, value: Amount | int | str | Decimal | Fraction | float) -> int:
    """The units of what a person typed; see `Amount.of`."""
    if isinstance(value, Amount):
        return value.units
    # Equal texts are the same amount, and equal floats; an integer may equal a boolean, which is none.
    return (_remembered if type(value) in (str, float) else _units)(name, value)


def _units(name: str, value: object) -> int:
    units = _exact(name, value, typed=True) * SCALE
    if units.denominator != 1:
        remedy = "Amount.up rounds a cost up, Amount.down rounds a cap down"
        raise DomainError(name, sayable(value), "a multiple of 1e-40", remedy)
    return _within(name, value, units.numerator)


_remembered = lru_cache(maxsize=4096)(_units)


@lru_cache(maxsize=4096)
def units_of(text: str) -> int:
    """The units of a text written by `text_of`; ValueError for any other text."""
    whole, point, rest = text.partition(".")
    units = int(whole) * SCALE + (
        int(rest) * 10 ** (PLACES - len(rest)) if point and len(rest) <= PLACES else 0
    )
    if not 0 <= units < LIMIT or text_of(units) != text:
        raise ValueError(text)
    return units


def require_units(name: str, units: object) -> None:
    """Raise DomainError unless `units` is the integer of an amount."""
    if not (type(units) is int and 0 <= units < LIMIT):
        remedy = "Amount.of reads what is typed"
        raise DomainError(
            name,
            sayable(units),
            "a number of 1e-40s: an integer of at least 0 and below 1e80",
            remedy,
        )


def _within(name: str, value: object, units: int) -> int:
    if not 0 <= units < LIMIT:
        raise DomainError(name, sayable(value), _DOMAIN)
    return units


def sayable(value: object) -> object:
    """`value`, or words for a number of so many digits that Python does not print it."""
    if (
        isinstance(value, Rational)
        and max(abs(int(value.numerator)), int(value.denominator)) >= 10**400
    ):
        return "a number of hundreds of digits"
    return value


def _rounded(name: str, value: object, *, up: bool) -> int:
    units = _exact(name, value) * SCALE
    return _within(name, value, -(-units // 1) if up else units // 1)


def _exact(name: str, value: object, *, typed: bool = False) -> Fraction:
    """A number as a fraction; if it was typed, a float is its shortest decimal, and text is read too.

    Exponents that would fill the memory are refused first.
    """
    match value:
        case bool():
            raise DomainError(name, value, _DOMAIN)
        case Rational():
            return Fraction(int(value.numerator), int(value.denominator))
        case float() if math.isfinite(value):
            number = Decimal(float.__repr__(value)) if typed else Decimal(float(value))
        case str() if typed and len(value) <= _LONGEST and _TYPED.fullmatch(value):
            number = Decimal(value)
        case Decimal() if value.is_finite():
            number = value
        case _:
            raise DomainError(name, value, _DOMAIN)
    if number and not -400 <= number.adjusted() < PLACES:
        raise DomainError(name, value, f"{_DOMAIN}, a multiple of 1e-40")
    return Fraction(number)


MOST_CURRENCIES = 64


def units_text(units: Mapping[str, int]) -> str:
    """Integers of 1e-40 by currency, in order, as `text.encode` writes their texts: no name needs an escape."""
    return "{" + ",".join([f'"{name}":"{text_of(each)}"' for name, each in units.items()]) + "}"


Costs = Mapping[str, Amount | int | str | Decimal | Fraction | float]
"""An amount for each currency, as `Amount.of` takes it."""


@dataclass(frozen=True)
class Amounts(Mapping[str, Amount]):
    """Named amounts, immutable, in the order of their names; `units` are their integers."""

    units: Mapping[str, int]

    def __post_init__(self) -> None:
        for name, each in self.units.items():
            currency_name(name)
            require_units(f"units of {name}", each)
        ordered = {name: self.units[name] for name in sorted(self.units)}
        object.__setattr__(self, "units", MappingProxyType(ordered))

    @classmethod
    def of(cls, values: Costs | None, *, name: str = "cost") -> Amounts:
        """Every value taken exactly, as `Amount.of` does.

        Raises:
            DomainError: A name that is none, or a value that is no amount; the message says which.
        """
        check.kind("name", name, str, "text")
        if values is None:
            return cls({})
        check.kind(name, values, Mapping, "a mapping from currencies to amounts")
        if isinstance(values, Amounts):
            return values
        if not len(values) <= MOST_CURRENCIES:
            raise DomainError(
                name, f"{len(values)} currencies", f"at most {MOST_CURRENCIES} currencies"
            )
        return cls(
            {each: typed_units(f"{name}[{each!r}]", value) for each, value in values.items()}
        )

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
            raise DomainError(
                "texts", texts, "a mapping from currencies to amounts as they are stored"
            ) from None

    @cached_property
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

    def __hash__(self) -> int:
        return hash(tuple(self.units.items()))

    def __reduce__(self) -> tuple[type[Amounts], tuple[dict[str, int]]]:
        return Amounts, (dict(self.units),)

    def __repr__(self) -> str:
        return f"Amounts({self.texts()})"
