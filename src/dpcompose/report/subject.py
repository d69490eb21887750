"""Every result that a person or a program is shown: one `page`, one `document` and one `save` for all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from dpcompose.errors import DomainError
from dpcompose.notebook import Listed
from dpcompose.pictured import Card
from dpcompose.report.html import SHOWN, fragment
from dpcompose.report.layout import Page
from dpcompose.report.number import exactly, nearest
from dpcompose.report.picture import Picture, write
from dpcompose.report.text import text
from dpcompose.values import Bound

_SUBJECTS = {
    "PlanAccount": "account account", "[PlanAccount]": "account comparison", "PlanCalibration": "account calibration",
    "[FilterAdvice]": "ledger advice", "[Quote]": "release quote", "Answer": "release answer",
    "[AnswerTable]": "release release",
    "AuditResult": "audit audit", "Summary": "book experiment", "Exposure": "ledger exposure",
    "FilterAdvice": "subject plain",
    "Statement": "book evaluation", "[Statement]": "book listing", "Lesson": "book lesson",
    "Receipt": "ledger receipt", "Balance": "ledger balance", "[Balance]": "ledger tree",
    "Entry": "ledger entry", "[Entry]": "ledger log",
    "Verification": "ledger verification", "CountingPlan": "release counting", "TrainingHistory": "gallery training",
    "Bound": "number bound", "Calibration": "account calibrated", "PlanRisk": "account risk", "Risk": "account risk",
}  # fmt: skip
"""The class of a subject, in brackets for a list of them: its file, and what its functions are called after."""


def page(subject: Any, /, *more: Any, **how: Any) -> Page:
    """A result as a page: an account of a plan, a receipt, an exposure, the answers of a release, and so on.

    Args:
        subject: The result, or several of one class.
        more: What belongs to it, such as the parameters of a statement.
        how: See the function of the class, such as `report.account.account_page`.

    Raises:
        DomainError: If results of this class have no page.
    """
    for shown in (subject, [subject]):
        if function := _maker(shown, "page"):
            return function(shown, *more, **how)
    if isinstance(subject, Listed):
        headline, *rows = str(subject).splitlines()
        return Page(type(subject).__name__, headline, notes=rows)
    if isinstance(subject, Card | Bound):
        return plain_page(subject)
    return _function(subject, "page")


def document(subject: Any, /, *more: Any, **how: Any) -> dict[str, Any]:
    """A result as a document for programs: every number in full; see `page`."""
    return _function(subject, "document")(subject, *more, **how)


def pictures(subject: Any, /, *more: Any, **how: Any) -> tuple[Picture, ...]:
    """The pictures of a result, for `html` or for a file; see `page`.

    Raises:
        DomainError: If results of this class have no pictures.
    """
    return _function(subject, "pictures")(subject, *more, **how)


def save(path: str | Path, subject: Any, /, *more: Any, **how: Any) -> None:
    """Write the pictures of a result to `path`, as PNG, SVG or PDF; see `page`.

    Raises:
        MissingExtraError: If matplotlib is not installed.
        DomainError: If results of this class have no pictures, or `path` is neither text nor a path.
        OSError: If the file cannot be written; a file that was there stays as it was.
    """
    write(path, pictures(subject, *more, **how))


def card_text(subject: Any, /) -> str:
    """The card of a result as lines of text, as it is printed."""
    return text(page(subject)).rstrip("\n")


def card_html(subject: Any, /) -> str:
    """The card of a result as a notebook shows it."""
    return fragment(page(subject))


def _maker(subject: Any, form: str) -> Any:
    """The function that makes a page, a document or pictures of results of a class; None if there is none."""
    items = cast("list[Any]", subject) if isinstance(subject, (list, tuple)) else []
    first, several = (items or [subject])[0], bool(items)
    names = [f"[{each.__name__}]" if several else each.__name__ for each in type(first).__mro__]
    for file, _, stem in (_SUBJECTS.get(name, "").partition(" ") for name in names):
        functions = vars(import_module(f"dpcompose.report.{file}")) if file else {}
        if function := functions.get(f"{stem}_{form}"):
            return function
    return None


def _function(subject: Any, form: str) -> Any:
    if function := _maker(subject, form):
        return function
    raise DomainError("subject", subject, f"a result that has a {form}")


def plain_page(result: Any) -> Page:
    """A result that needs no page of its own: its fields under their names."""
    title = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(result).__name__).capitalize()
    meaning = (type(result).__doc__ or "").partition("\n\n")[0]
    return Page(title, title, facts=_facts(result), notes=[" ".join(meaning.split())])


def _facts(result: Any) -> list[tuple[str, str]]:
    names = [each.name for each in fields(result) if each.repr]
    facts = [(name.replace("_", " "), _in_words(getattr(result, name))) for name in names]
    return [(name, text) for name, text in facts if text]


def _in_words(value: Any) -> str:
    """A value of a field in one line; a value with fields of its own by their names."""
    match value:
        case None | bool():
            return "yes" if value else "no" if value is False else "none"
        case float():
            return exactly(value)
        case Fraction() if value.denominator > 10**6:
            return f"about {nearest(float(value))}"
        case Enum():
            return str(value.value)
        case Mapping():
            pairs = cast("Mapping[Any, Any]", value).items()
            return ", ".join(f"{name} {_in_words(each)}" for name, each in pairs) or "none"
        case list() | tuple():
            items = [_in_words(each) for each in cast("list[Any]", value)]
            more = [f"and {len(items) - SHOWN:,} more"] if len(items) > SHOWN else []
            return ", ".join([*items[:SHOWN], *more]) or "none"
        case _ if type(value).__module__ == "numpy":
            return _in_words(value.tolist())
        case _ if is_dataclass(value) and re.match(r"\w+\(\w+=", repr(value)):
            return f"({', '.join(f'{name} {text}' for name, text in _facts(value))})"
        case _:
            return str(value).partition("\n")[0]
