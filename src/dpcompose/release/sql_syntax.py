"""The text of one SELECT as a tree of nodes that are all allowed, or a refusal that names the clause."""
# sqlglot is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import pairwise
from typing import Any

from dpcompose.errors import DomainError, MissingExtraError, UnsupportedError
from dpcompose.release.sql_nodes import refusal, require_allowed

_EXPLAIN = re.compile(r"\s*explain\s+", re.IGNORECASE)
MOST_CHARACTERS, MOST_TOKENS, MOST_BRACKETS = 20_000, 4_000, 20
LARGEST = 2**63


def parsed(text: object) -> tuple[Any, bool]:
    """The SELECT that a text is, and whether the word EXPLAIN stands before it.

    The text is measured before it is parsed: its length, its words, its open brackets. Comments are refused, since
    programs differ in what they read in them.

    Raises:
        DomainError: If it is no SQL, or no text of a usual size.
        UnsupportedError: If it has a clause that is not read.
        MissingExtraError: If sqlglot is not installed.
    """
    if not isinstance(text, str) or not 1 <= len(text) <= MOST_CHARACTERS or "\0" in text:
        shown = len(text) if isinstance(text, str) else type(text).__name__
        raise DomainError("sql", shown, f"one SELECT, of at most {MOST_CHARACTERS:,} characters")
    try:
        from sqlglot.dialects.dialect import Dialect
    except ImportError:
        raise MissingExtraError("SQL", "data") from None
    dialect, select = Dialect.get_or_raise(None), _EXPLAIN.sub("", text, count=1)
    with _silent():
        try:
            tokens = dialect.tokenize(select)
        except Exception:
            raise _unreadable(text) from None
        _check(select, tokens)
        try:
            statements = dialect.parser().parse(tokens, select)
        except (Exception, RecursionError):
            raise _unreadable(text) from None
    (root,) = (each for each in statements if each is not None)
    if type(root).__name__ != "Select":
        raise refusal(root)
    require_allowed(root)
    return root, select != text


def _check(text: str, tokens: Sequence[Any]) -> None:
    """Refuse a text with a comment, with several statements, or with too much of anything."""
    words = [str(token.text).upper() for token in tokens]
    kinds = [token.token_type.name for token in tokens]
    if "HINT" in kinds or any(token.comments for token in tokens):
        what = "a hint" if "HINT" in kinds else "a comment"
        raise UnsupportedError(
            f"sql: {what}", "programs differ in what they read in it", "Leave it out"
        )
    if not words:
        raise _unreadable(text)
    for token, word in zip(tokens, words, strict=True):
        # The parser reads them as the same node as those that divide by n.
        if (
            word in ("VAR_SAMP", "STDDEV_SAMP", "STDEV", "VARIANCE_SAMP")
            and token.token_type.name != "STRING"
        ):
            reason, remedy = (
                "variances are divided by n here",
                "Use VARIANCE, VAR_POP, STDDEV or STDDEV_POP",
            )
            raise UnsupportedError(f"sql: {word}", reason, remedy)
    if ("SLASH", "SLASH") in pairwise(kinds):
        raise UnsupportedError(
            "sql: //", "engines round it in different ways", "Use FLOOR(x / y), which rounds down"
        )
    if "SEMICOLON" in kinds[:-1] or kinds == ["SEMICOLON"]:
        raise UnsupportedError(
            "sql: several statements", "one SELECT is read", "Ask for each by itself"
        )
    if len(words) > MOST_TOKENS:
        raise DomainError("sql", len(words), f"at most {MOST_TOKENS:,} words")
    depth = deepest = run = longest = 0
    for kind, word in zip(kinds, words, strict=True):
        depth += (kind in _OPEN or word == "CASE") - (kind in _CLOSE or word == "END")
        run = run + 1 if kind in ("DASH", "NOT", "TILDE", "PLUS", "DISTINCT") else 0
        deepest, longest = max(deepest, depth), max(longest, run)
    if max(deepest, longest) > MOST_BRACKETS:
        raise DomainError(
            "sql: nesting",
            max(deepest, longest),
            f"at most {MOST_BRACKETS} levels",
            "Ask something simpler",
        )
    if words[0] != "SELECT":
        remedy = "Say it in one SELECT, or in Python" if words[0] == "WITH" else "Begin with SELECT"
        named = (
            words[0].split()[0][:20]
            if words[0][:1].isascii() and words[0][:1].isalpha()
            else "no SELECT"
        )
        raise UnsupportedError(f"sql: {named}", "only SELECT is read", remedy)


_OPEN, _CLOSE = ("L_PAREN", "L_BRACKET", "L_BRACE"), ("R_PAREN", "R_BRACKET", "R_BRACE")


def _unreadable(text: str) -> DomainError:
    return DomainError(
        "sql",
        text,
        "one SELECT that can be read",
        "Texts stand in '...', names of columns in \"...\"",
    )


@contextmanager
def _silent() -> Generator[None]:
    """Without what sqlglot would write to its log."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def number(node: Any, what: str) -> Any:
    """A number written out, with or without a sign: an int, a float where that is the same decimal, or a decimal.

    Raises:
        DomainError: If it is something else, or lies beyond 64 bits.
    """
    sign, inner = (-1, node.this) if type(node).__name__ == "Neg" else (1, node)
    text = (
        str(inner.this) if type(inner).__name__ == "Literal" and not inner.args["is_string"] else ""
    )
    try:
        exact = sign * Decimal(text)
    except ArithmeticError:
        raise DomainError(f"sql: {what}", shown(node), "a number written out") from None
    if not abs(exact) < LARGEST or len(text) > 40:
        raise DomainError(f"sql: {what}", text[:40], "a number of at most 64 bits")
    if text.isdigit():
        return int(exact)
    return float(exact) if Decimal(repr(float(exact))) == exact else exact


def numbers(node: Any, name: str) -> int | tuple[Any, ...]:
    """The numbers that a function is called with; one by itself."""
    found = tuple(number(each, name) for each in node.expressions)
    if not found or not all(type(each) is int for each in found):
        raise DomainError(f"sql: {name}", shown(node), "whole numbers")
    return found[0] if len(found) == 1 else found


def shown(node: Any) -> str:
    """A node as SQL, for errors and for names of columns."""
    return node.sql()
