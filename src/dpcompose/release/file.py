"""Questions in a TOML file: one [[question]] table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from dpcompose.errors import DomainError, PlanError
from dpcompose.files import load_toml, read_toml
from dpcompose.release.counts import Count, Histogram, Units
from dpcompose.release.quantile import Quantile
from dpcompose.release.question import Question
from dpcompose.release.sums import Mean, Sum

LARGEST_FILE = 1_000_000
_COMMON = {"kind", "by", "keys", "spend"}
_GRID = {"column", "lower", "upper"}

Kind = tuple[Callable[..., Question], set[str], set[str]]
KINDS: Mapping[str, Kind] = {
    "count": (Count, set(), set()),
    "units": (Units, set(), set()),
    "sum": (Sum, _GRID, {"granularity"}),
    "mean": (Mean, _GRID, {"granularity"}),
    "histogram": (Histogram, {"column", "edges"}, set()),
    "quantile": (Quantile, {*_GRID, "q", "granularity"}, set()),
}
"""The class that each kind of question makes, the keys it needs, and those it may have."""


def questions(path: str | Path) -> tuple[Question, ...]:
    """The questions of a TOML file; keys of groups are lists of values, or of lists of values for several columns.

    Raises:
        DomainError: If `path` is neither text nor a path.
        PlanError: If the file cannot be read, or a table says something else than a question.
    """
    file = str(path)
    document = read_toml(load_toml(path, most=LARGEST_FILE, what="a file"), source=file)
    tables = document.pop("question", None)
    if document:
        name, value = next(iter(document.items()))
        raise PlanError(file, "", name, value, "[[question]] tables and nothing else")
    if not isinstance(tables, list) or not tables:
        raise PlanError(file, "", "question", tables, "at least one [[question]] table")
    return tuple(
        _question(table, file, f"question[{position}]")
        for position, table in enumerate(cast("list[object]", tables), start=1)
    )


def _question(table: object, file: str, place: str) -> Question:
    if not isinstance(table, dict):
        raise PlanError(file, place, "", table, "a table")
    given = cast("dict[str, Any]", table)
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise PlanError(file, place, "kind", kind, f"one of {', '.join(KINDS)}")
    make, needed, optional = KINDS[kind]
    for name in sorted(needed - set(given)):
        raise PlanError(file, place, name, None, f"a value; a {kind} needs it")
    for name in sorted(set(given) - needed - optional - _COMMON):
        raise PlanError(file, place, name, given[name], f"one of {', '.join(sorted(needed | optional | _COMMON))}")
    fields = {name: value for name, value in given.items() if name != "kind"}
    if "by" in fields and not _names(fields["by"]):
        raise PlanError(file, place, "by", fields["by"], "the name of a column, or a list of names")
    if "keys" in fields:
        fields["keys"] = _keys(fields["keys"], file, place)
    try:
        return make(**fields)
    except (DomainError, TypeError) as error:
        raise PlanError(file, place, "", None, str(error)) from None


def _names(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(each, str) for each in cast("list[object]", value))
    )


def _keys(value: object, file: str, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise PlanError(file, place, "keys", value, "a list of values")
    listed = cast("list[Any]", value)
    return [tuple(cast("list[Any]", each)) if isinstance(each, list) else each for each in listed]
