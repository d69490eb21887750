"""`dpcompose theorem`: one statement of the book, evaluated, with its caveats."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from dpcompose.cli.options import Csv, Json
from dpcompose.cli.output import emit, error_boundary
from dpcompose.errors import DomainError, UnsupportedError

if TYPE_CHECKING:
    from dpcompose.book import Parameter, Statement

_KINDS = {
    **dict.fromkeys(("theorem", "lemma", "corollary", "section", "定理", "引理", "推论", "第"), ""),
    "definition": "definition", "定义": "definition", "proposition": "proposition", "命题": "proposition",
    "remark": "remark", "备注": "remark", "注": "remark", "example": "example", "例": "example",
}  # fmt: skip
"""The kinds of statements, in English and Chinese, as the names of statements begin: a theorem's is its number."""


def theorem(
    context: typer.Context,
    number: Annotated[
        str | None,
        typer.Argument(
            help="As printed, such as 3.20; left out: all statements.", show_default=False
        ),
    ] = None,
    json: Json = False,
    csv: Csv = False,
) -> None:
    """Evaluate a statement of the book: dpcompose theorem 3.20 --epsilon 0.1 --times 100 --slack 1e-6.

    Its parameters are options. The page lists them, and says where the printed statement is loose or wrong.
    """
    with error_boundary():
        from dpcompose.book import ELSEWHERE, STATEMENTS
        from dpcompose.report import (
            evaluation_document,
            evaluation_page,
            listing_document,
            listing_page,
        )

        if number is None:
            if context.args:
                raise DomainError(
                    "NUMBER", context.args[0], "the number of a statement first, such as 3.20"
                )
            known = STATEMENTS.values()
            emit(
                "theorem",
                lambda: listing_document(known),
                lambda: listing_page(known),
                json=json,
                csv=csv,
            )
            return
        if context.args and number.lower() in _KINDS:
            number = f"{number} {context.args.pop(0)}"
        name = _named(number, [*STATEMENTS, *ELSEWHERE])
        if name in ELSEWHERE:
            remedy = f"docs/book.md runs an example of it: {ELSEWHERE[name]}"
            raise UnsupportedError(name, "it states no number that could be computed", remedy)
        statement = STATEMENTS[name]
        given = _given(statement, context.args)
        with error_boundary(*(parameter.name for parameter in statement.parameters)):
            rows = statement.evaluate(**given)
        emit(
            "theorem",
            lambda: evaluation_document(statement, given, rows),
            lambda: evaluation_page(statement, given, rows),
            json=json,
            csv=csv,
        )


def _named(words: str, names: list[str]) -> str:
    """The name of the statement that the book calls so, in English or Chinese: "Theorem 3.20", "3.20", "例3.7"."""
    plain = " ".join(unicodedata.normalize("NFKC", words).lower().removesuffix("节").split())
    printed = next((each for each in _KINDS if plain.startswith(each)), "")
    kind, number = _KINDS.get(printed, ""), plain.removeprefix(printed).strip()
    same = [each for each in names if each == number or each.endswith(f" {number}")]
    if (name := f"{kind} {number}".strip()) in names:
        return name
    if len(same) == 1 and not kind:
        return same[0]
    raise DomainError("NUMBER", words, f"one of {', '.join(same or names)}")


def _given(statement: Statement, words: list[str]) -> dict[str, float | list[float]]:
    """The parameters among the words `--name value` or `--name=value`; one that takes many may come again."""
    takes = {parameter.name: parameter for parameter in statement.parameters}
    found: dict[str, float | list[float]] = {}
    rest = [
        part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])
    ]
    while rest:
        word = rest.pop(0)
        name = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or name not in takes:
            raise DomainError("option", word, f"one of {statement.number}: --{', --'.join(takes)}")
        if not rest:
            raise DomainError("option", word, f"a value after it: {takes[name].meaning}")
        values = [_number(takes[name], each) for each in rest.pop(0).split(",")]
        if takes[name].many:
            earlier = found.get(name, [])
            found[name] = [*(earlier if isinstance(earlier, list) else [earlier]), *values]
        elif len(values) > 1 or name in found:
            raise DomainError(word, values, "one value, given once")
        else:
            found[name] = values[0]
    return found


def _number(parameter: Parameter, text: str) -> float:
    try:
        return (
            float(Fraction(text))
            if "/" in text and parameter.kind is float
            else parameter.kind(text)
        )
    except (ValueError, ArithmeticError):
        wanted = "an integer" if parameter.kind is int else "a number"
        raise DomainError(f"--{parameter.name}", text, f"{wanted}: {parameter.meaning}") from None
