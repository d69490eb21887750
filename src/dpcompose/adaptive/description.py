"""A filter from its plain description: what a ledger stores without knowing the theorem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, cast

from dpcompose.adaptive import natural
from dpcompose.adaptive.advanced import AdvancedFilter
from dpcompose.adaptive.amount import mapping, read
from dpcompose.adaptive.basic import BasicFilter
from dpcompose.adaptive.concentrated import ConcentratedFilter
from dpcompose.adaptive.filter import VERSION, Filter
from dpcompose.adaptive.gaussian import GaussianFilter
from dpcompose.adaptive.pure import PureFilter
from dpcompose.adaptive.renyi import RenyiFilter
from dpcompose.errors import DomainError

FILTERS: dict[str, type[Filter]] = {
    each.kind: each
    for each in (PureFilter, BasicFilter, AdvancedFilter, ConcentratedFilter, RenyiFilter, GaussianFilter)
}


def from_description(description: Mapping[str, Any]) -> Filter:
    """The filter that `Filter.description` described, equal to it in every bit.

    >>> from_description(PureFilter(0.5).description())
    PureFilter(epsilon=0.5)

    Args:
        description: With the keys "filter", "version" and the filter's parameters, numbers as text.

    Raises:
        DomainError: If a key is unknown or missing, or a value is outside its domain.
        UnsupportedError: If it is the natural filter that is asked for.
    """
    description = mapping(description)
    kind = description.get("filter")
    if kind == "natural":
        natural.refuse()
    if not isinstance(kind, str) or kind not in FILTERS:
        raise DomainError("filter", kind, f"one of {', '.join(FILTERS)}")
    version = description.get("version")
    if version not in (1, VERSION):
        raise DomainError("version", version, f"1 or {VERSION}", "A newer dpcompose may have written it")
    values = {key: read(key, text) for key, text in description.items() if key not in ("filter", "version")}
    if version == 1:  # where a float was exactly that double, but for an order, which is still
        values = {key: value if key == "order" else _double(value) for key, value in values.items()}
    known = [field.name for field in fields(cast("Any", FILTERS[kind]))]
    if sorted(values, key=str) != sorted(known):
        raise DomainError("parameters", list(values), f"those of a {kind} filter: {', '.join(known)}")
    return FILTERS[kind](**values)


def _double(value: float | Fraction) -> float | Fraction:
    return Fraction(value) if math.isfinite(value) else value
