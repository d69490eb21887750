"""Renewal: a scope whose balance begins anew with every period of the calendar, or of a fixed length, in UTC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Self, cast

from dpcompose.errors import DomainError

_CALENDAR: Mapping[str, tuple[int, int]] = {
    "year": (12, 0), "quarter": (3, 0), "month": (1, 0), "week": (0, 7 * 86400), "day": (0, 86400)
}  # fmt: skip
_ISO = re.compile(
    r"P(?:(\d{1,5})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,8})H)?(?:(\d{1,10})M)?(?:(\d{1,11})S)?)?",
    re.ASCII,
)
_MONDAY = datetime(1969, 12, 29)
"""Where periods of a fixed length are counted from, so that those of seven days are the weeks of the calendar."""

LONGEST_YEARS = 100
_DOMAIN = "year, quarter, month, week, day, or a duration such as P30D or PT12H: whole months, or whole seconds"


@dataclass(frozen=True)
class Renewal:
    """The length of the periods: in months, or in seconds.

    >>> Renewal.read("quarter").index("2030-05-01T00:00:00.000000Z")
    8121
    >>> Renewal.read("quarter").bounds(8121)
    ('2030-04-01', '2030-07-01')

    Args:
        months: Of the calendar; 0 if the length is fixed.
        seconds: Otherwise, the length.
    """

    months: int
    seconds: int

    @classmethod
    def read(cls, value: Any, *, name: str = "renew") -> Self:
        """The renewal that a text or a `timedelta` means; `name` is told where it means none.

        Raises:
            DomainError: It means none, or one longer than a hundred years.
        """
        if isinstance(value, str) and value in _CALENDAR:
            return cls(*_CALENDAR[value])
        found = cls._of(value, name)
        if not (
            0 < found.months <= 12 * LONGEST_YEARS
            or 0 < found.seconds <= LONGEST_YEARS * 365 * 86400
        ):
            raise DomainError(name, value, f"{_DOMAIN}, of at most {LONGEST_YEARS} years")
        return found

    @classmethod
    def _of(cls, value: Any, name: str) -> Self:
        if isinstance(value, timedelta) and not value.microseconds:
            return cls(0, value.days * 86400 + value.seconds)
        match = _ISO.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise DomainError(name, value, _DOMAIN)
        years, months, *fixed = (int(number or 0) for number in match.groups())
        seconds = sum(
            number * each
            for number, each in zip(fixed, (7 * 86400, 86400, 3600, 60, 1), strict=True)
        )
        if (years or months) and seconds:
            raise DomainError(name, value, _DOMAIN)
        return cls(12 * years + months, seconds)

    @property
    def text(self) -> str:
        """The one way to write it: a word of the calendar, or a duration of ISO 8601."""
        for word, each in _CALENDAR.items():
            if each == (self.months, self.seconds):
                return word
        if self.months:
            return f"P{self.months}M" if self.months % 12 else f"P{self.months // 12}Y"
        return f"P{self.seconds // 86400}D" if self.seconds % 86400 == 0 else f"PT{self.seconds}S"

    @property
    def words(self) -> str:
        """Such as "each year" or "each P30D"."""
        return f"each {self.text}"

    def index(self, time: str) -> int:
        """The number of the period that holds a recorded time; later times have no smaller number.

        Raises:
            ValueError: It is no time.
        """
        if self.months:
            return (int(time[:4]) * 12 + int(time[5:7]) - 1) // self.months
        return _seconds(time[:19]) // self.seconds

    def bounds(self, index: int) -> tuple[str, str]:
        """The first moment of a period, and that of the next."""
        if self.months:
            starts = [divmod((index + step) * self.months, 12) for step in (0, 1)]
            first, last = (f"{year:04}-{month + 1:02}-01" for year, month in starts)
            return first, last
        first, last = (
            (_MONDAY + timedelta(seconds=self.seconds * (index + step))) for step in (0, 1)
        )
        short = 10 if self.seconds % 86400 == 0 else 19
        return first.isoformat()[:short], last.isoformat()[:short]

    def touched(self, window: Renewal | Fraction) -> int:
        """The most periods that a window touches, wherever it lies: of a length, or of so many periods.

        All but the first and the last lie in it whole. A window of months ends on the day of the month on which it
        began, or on the last one if that month has no such day.
        """
        if isinstance(window, Fraction):
            return ceil(window) + 1
        if bool(window.months) == bool(self.months):
            return ceil(Fraction(window.months or window.seconds, self.months or self.seconds)) + 1
        longest = _days(window.months, year=366, month=31) * 86400 or window.seconds
        shortest = _days(self.months, year=365, month=28) * 86400 or self.seconds
        return ceil(Fraction(longest, shortest)) + 1


def _days(months: int, *, year: int, month: int) -> int:
    """The days of so many months in a row, each of them and each twelve of them as long as that, or as short."""
    return months // 12 * year + months % 12 * month


@lru_cache(maxsize=1 << 8)
def _seconds(second: str) -> int:
    """From that Monday on; a text is read once, because many charges share a second with the one before."""
    return (datetime.fromisoformat(second) - _MONDAY) // timedelta(seconds=1)


def stated_renewal(description: Mapping[str, Any]) -> Renewal | None:
    """The renewal that a description of a scope commits to; None if the scope does not renew.

    Raises:
        DomainError: It is none that this version knows.
    """
    budget: Any = description.get("budget")
    if not (isinstance(budget, dict) and "renew" in budget):
        return None
    stated: Any = cast("dict[str, Any]", budget)["renew"]
    found = Renewal.read(stated)
    if found.text != stated:
        raise DomainError("renew", stated, f"{found.text!r}, the one way to write it")
    return found
