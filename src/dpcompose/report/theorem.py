"""Pages and documents of the book's statements: their text, their values, their caveats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpcompose.report.layout import Page, PageTable, headings
from dpcompose.report.number import above, below, members, trimmed

if TYPE_CHECKING:
    from dpcompose.book import Lesson, Statement

Values = Mapping[str, Any]
Rows = Sequence[tuple[str, float]]


def evaluation_page(statement: Statement, values: Values, rows: Rows) -> Page:
    """One statement with its value, rounded in the safe direction, and its caveats."""
    headline = "; ".join(
        f"{name} = {trimmed(below(value, 15) if name in statement.down else above(value, 15))}"
        for name, value in rows
    )
    facts = [
        ("says", statement.says),
        ("given", ", ".join(f"{name} = {value!r}" for name, value in values.items()) or "nothing"),
        ("source", statement.reference),
    ]
    notes = tuple(f"Caveat: {caveat}" for caveat in statement.caveats)
    return Page(f"{statement.number} {statement.title}", headline, "plain", tuple(facts), (), notes)


def evaluation_document(statement: Statement, values: Values, rows: Rows) -> dict[str, Any]:
    """The same for a machine."""
    return {
        **members(statement, "number title says"),
        "given": dict(values),
        "value": dict(rows),
        **members(statement, "caveats reference"),
    }


def listing_page(statements: Iterable[Statement]) -> Page:
    """All statements, with the options that each takes."""
    rows = tuple(
        (statement.number, statement.title, " ".join(each.option for each in statement.parameters))
        for statement in statements
    )
    columns = headings("number", "~title", "~options")
    table = PageTable("Statements of sections 2.3 and 3.5", columns, rows)
    return Page(
        "The book, executable",
        "dpcompose theorem NUMBER OPTIONS evaluates one",
        "plain",
        (),
        (table,),
    )


def listing_document(statements: Iterable[Statement]) -> dict[str, Any]:
    """The same for a machine."""
    return {
        "statements": [
            members(statement, "number title says")
            | {
                "parameters": [
                    {"name": each.name, "kind": each.kind.__name__}
                    | members(each, "meaning required")
                    for each in statement.parameters
                ]
            }
            for statement in statements
        ]
    }


def lesson_page(lesson: Lesson, answers: Values, verdicts: Sequence[bool | None]) -> Page:
    """The exercises of a lesson, each with the verdict on its answer or, if that is wrong, a hint."""
    rows = tuple(
        (
            each.name,
            each.meaning,
            "" if right is None else "right" if right else f"Not yet: {each.hint}",
        )
        for each, right in zip(lesson.parameters, verdicts, strict=True)
    )
    table = PageTable("Exercises", headings("", "~question", "~your answer"), rows)
    done, number = sum(map(bool, verdicts)), lesson.number
    headline = f"Lesson {number}, {lesson.title}: {done} of {len(rows)} answers are right"
    following = f"dpcompose exercise {number} --a NUMBER checks an answer"
    following, tone = ("", "good") if done == len(rows) else (following, "plain")
    return Page(f"Lesson {number}", headline, tone, (), (table,), following=following)


def lesson_document(
    lesson: Lesson, answers: Values, verdicts: Sequence[bool | None]
) -> dict[str, Any]:
    """The same for a machine."""
    rows = zip(lesson.parameters, verdicts, strict=True)
    return members(lesson, "number title") | {
        "answers": dict(answers),
        "exercises": [
            {"letter": each.name, "question": each.meaning, "right": right} for each, right in rows
        ],
    }
