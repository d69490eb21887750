"""Reads questions from plain values: [[question]] tables of a TOML file, or JSON documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, cast

from dpcompose.errors import DomainError, PlanError
from dpcompose.files import load_toml, read_toml
from dpcompose.release import counts, statistics
from dpcompose.release.question import UNWRITTEN, Question
from dpcompose.release.synthetic import Synthetic

LARGEST_FILE = 1_000_000
_COMMON = {"kind", "by", "keys", "spend", "error", "confidence"}
_OF_ROWS = (counts.Count, counts.Units, counts.Histogram, counts.Top, counts.Distinct)
_BY_CELLS = (counts.Contingency, counts.RowsPerUnit, Synthetic)
_SUMS = (statistics.Sum, statistics.Mean, statistics.Variance, statistics.StandardDeviation)
_RANKS = (statistics.Quantile, statistics.Quantiles, statistics.Minimum, statistics.Maximum)
KINDS: Mapping[str, type[Question]] = {
    each.kind: each for each in (*_OF_ROWS, *_BY_CELLS, *_SUMS, statistics.Ratio, *_RANKS)
}


def questions(source: str | Path | list[object]) -> tuple[Question, ...]:
    """Return the questions of a TOML file, or of a list of documents as `Question.plain` writes
    them.

    Keys of groups are lists of values, or of lists of values for several columns.

    Raises:
        DomainError: If the source is neither text, a path nor a list.
        PlanError: If the file cannot be read, or a table describes no question.
    """
    if isinstance(source, list):
        return tuple(_question(each, "questions", str(at)) for at, each in enumerate(source))
    file = str(source)
    document = read_toml(load_toml(source, most=LARGEST_FILE, what="a file"), source=file)
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


def _question(table: object, file: str, position: str) -> Question:
    if not isinstance(table, dict):
        raise PlanError(file, position, "", table, "a table")
    stated = cast("dict[str, Any]", table)
    kind = stated.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise PlanError(file, position, "kind", kind, f"one of {', '.join(KINDS)}")
    own = {each.name: each.default is MISSING for each in fields(KINDS[kind])}
    possible = _COMMON | ({*own} - UNWRITTEN)
    for name in sorted(possible - {*stated}):
        if own.get(name):
            raise PlanError(file, position, name, None, f"a value; a {kind} needs it")
    for name in sorted({*stated} - possible):
        raise PlanError(file, position, name, stated[name], f"one of {', '.join(sorted(possible))}")
    arguments = {name: value for name, value in stated.items() if name != "kind"}
    by, keys = arguments.get("by", ""), arguments.get("keys", [])
    names = cast("list[Any]", [by] if isinstance(by, str) else by)
    if not isinstance(by, str | list) or not all(isinstance(each, str) for each in names):
        raise PlanError(file, position, "by", by, "the name of a column, or a list of names")
    if not isinstance(keys, list):
        raise PlanError(file, position, "keys", keys, "a list of values")
    if "keys" in arguments:
        listed = cast("list[Any]", keys)
        arguments["keys"] = [
            tuple(cast("list[Any]", each)) if isinstance(each, list) else each for each in listed
        ]
    try:
        return KINDS[kind](**arguments)
    except (DomainError, TypeError) as error:
        raise PlanError(file, position, "", None, str(error)) from None
