"""Questions in a TOML file: one [[question]] table each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, cast

from dpcompose.errors import DomainError, PlanError, UnsupportedError
from dpcompose.files import load_toml, read_toml
from dpcompose.release.counts import (
    Contingency,
    Count,
    Distinct,
    Histogram,
    RowsPerUnit,
    Top,
    Units,
)
from dpcompose.release.moments import Mean, Ratio, StandardDeviation, Sum, Variance
from dpcompose.release.quantile import Maximum, Minimum, Quantile, Quantiles
from dpcompose.release.question import Question
from dpcompose.release.synthetic import Synthetic

LARGEST_FILE = 1_000_000
_COMMON = {"kind", "by", "keys", "spend", "error", "confidence"}
_TYPED = {"table", "labels", "key"}
_OF_ROWS = (Count, Units, Histogram, Top, Distinct, Contingency, RowsPerUnit, Synthetic)
_OF_NUMBERS = (Sum, Mean, Variance, StandardDeviation, Ratio, Quantile, Quantiles, Minimum, Maximum)
KINDS: Mapping[str, type[Question]] = {each.kind: each for each in (*_OF_ROWS, *_OF_NUMBERS)}


def arguments_of(kind: str) -> tuple[set[str], set[str]]:
    """The arguments of its own that a kind of question needs, and those it may have."""
    own = {
        each.name: each.default is MISSING
        for each in fields(KINDS[kind])
        if each.name not in _COMMON | _TYPED
    }
    needed = {name for name, required in own.items() if required}
    return needed, set(own) - needed


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
        question_of(table, file, f"question[{position}]")
        for position, table in enumerate(cast("list[object]", tables), start=1)
    )


def plain_question(question: Question) -> dict[str, Any]:
    """A question as plain values, as `question_of` reads them.

    Raises:
        UnsupportedError: If it is about a table of its own.
    """
    if question.table is not None:
        raise UnsupportedError(
            "a question about a table that was changed", "the rows are elsewhere", "Ask it in SQL"
        )
    stated = {each.name: (getattr(question, each.name), each.default) for each in fields(question)}
    own = {
        name: value
        for name, (value, default) in stated.items()
        if name not in _TYPED and value != default
    }
    return json.loads(json.dumps({"kind": question.kind, **own}, default=str))


def question_of(table: object, file: str, position: str) -> Question:
    """The question that plain values say.

    Raises:
        PlanError: If they say none.
    """
    if not isinstance(table, dict):
        raise PlanError(file, position, "", table, "a table")
    given = cast("dict[str, Any]", table)
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise PlanError(file, position, "kind", kind, f"one of {', '.join(KINDS)}")
    needed, optional = arguments_of(kind)
    for name in sorted(needed - set(given)):
        raise PlanError(file, position, name, None, f"a value; a {kind} needs it")
    for name in sorted(set(given) - needed - optional - _COMMON):
        raise PlanError(
            file,
            position,
            name,
            given[name],
            f"one of {', '.join(sorted(needed | optional | _COMMON))}",
        )
    given = {name: value for name, value in given.items() if name != "kind"}
    if "by" in given and not _names(given["by"]):
        raise PlanError(
            file, position, "by", given["by"], "the name of a column, or a list of names"
        )
    if "keys" in given:
        given["keys"] = _keys(given["keys"], file, position)
    try:
        return KINDS[kind](**given)
    except (DomainError, TypeError) as error:
        raise PlanError(file, position, "", None, str(error)) from None


def _names(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list)
        and all(isinstance(each, str) for each in cast("list[object]", value))
    )


def _keys(value: object, file: str, position: str) -> list[Any]:
    if not isinstance(value, list):
        raise PlanError(file, position, "keys", value, "a list of values")
    listed = cast("list[Any]", value)
    return [tuple(cast("list[Any]", each)) if isinstance(each, list) else each for each in listed]
