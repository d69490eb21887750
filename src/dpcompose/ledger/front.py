"""Fronts: what people below a scope may have spent, without those who spent no more of anything than another one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

Vector = Mapping[str, int]
"""Integers of 1e-40 by currency."""

Front = tuple[Vector, ...]
"""Vectors of the same currencies, none of them below another."""

MOST_VECTORS = 64


def largest(vectors: Sequence[Vector]) -> dict[str, int]:
    """The largest amount of each currency by itself."""
    return {name: max(each[name] for each in vectors) for name in vectors[0]}


def maximal(vectors: Iterable[Vector], currencies: Iterable[str]) -> Front:
    """The vectors that are below no other, of these currencies alone, sorted.

    Where these are more than 64, neighbors in this order are put together, and the largest of each amount is in the
    place of a group.
    """
    names = list(currencies)
    rows = sorted({tuple([each[name] for name in names]) for each in vectors}, reverse=True)
    kept = _below_no_other(rows)
    if len(kept) > MOST_VECTORS:
        size = math.ceil(len(rows) / MOST_VECTORS)
        groups = [rows[start : start + size] for start in range(0, len(rows), size)]
        tops = {tuple(map(max, zip(*group, strict=True))) for group in groups}
        kept = _below_no_other(sorted(tops, reverse=True))
    return tuple([dict(zip(names, row, strict=True)) for row in kept])


def _below_no_other(rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those of sorted rows that are below no other; if there are more than 64, the first 65 of them."""
    kept: list[tuple[int, ...]] = []
    for row in rows:  # what is above it came before it
        if not any(all(map(int.__le__, row, above)) for above in kept):
            kept.append(row)
        if len(kept) > MOST_VECTORS:
            break
    return kept


def summed(one: Front, other: Front) -> Front:
    """The sums of a vector of each, of the currencies of the first one."""
    sums = [{name: first[name] + more[name] for name in first} for first in one for more in other]
    return (sums[0],) if len(sums) == 1 else maximal(sums, sums[0])
