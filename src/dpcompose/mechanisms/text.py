"""The text form of a mechanism: the call that constructs it, parsed without evaluating code.

Reports show `Gaussian(10.0) * 3 + Laplace(2.0).sampled(0.1)`, and recorded history is parsed from
it when evaluated again. A mechanism without an exact text form is recorded as opaque: its recorded
cost is used, and its losses cannot be evaluated again.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from inspect import isabstract
from threading import Lock
from typing import Any

from dpcompose import mechanisms as blocks
from dpcompose.errors import DomainError, DPComposeError
from dpcompose.mechanisms.base import Mechanism
from dpcompose.mechanisms.composable import Composable
from dpcompose.values import Adjacency

LONGEST = 4096


@cache
def kinds() -> dict[str, type[Mechanism]]:
    """Return the mechanism classes that a call constructs, by name; a dominating pair is not one of
    them.
    """
    offered = {name: getattr(blocks, name) for name in dir(blocks) if name != "DominatingPair"}
    return {
        name: kind
        for name, kind in offered.items()
        if isinstance(kind, type) and issubclass(kind, Mechanism) and not isabstract(kind)
    }


def serialize(mechanism: Any) -> str | None:
    """Return the text form of a mechanism; None if parsing it does not give an equal mechanism."""
    try:
        text = repr(mechanism)
        same = len(text) <= LONGEST and parse(text) * 1 == mechanism * 1
    except (DPComposeError, RecursionError):
        return None
    return text if same else None


def parse(text: object) -> Composable:
    """Return the mechanism whose text form `serialize` wrote.

    Raises:
        DomainError: If the text is not of this form, or a number in it is outside its domain.
    """
    if not (isinstance(text, str) and len(text) <= LONGEST):
        raise DomainError("mechanism", text, f"a text of at most {LONGEST} characters")
    try:
        return _composable(_tree(text))
    except DPComposeError:
        raise
    except (SyntaxError, ValueError, TypeError, KeyError, MemoryError, RecursionError):
        raise DomainError("mechanism", text, "a mechanism, such as Gaussian(10.0) * 3") from None


_PARSING = Lock()
_TRIES = 5


def _tree(text: str) -> ast.expr:
    """Return the syntax tree of an expression.

    CPython counts the depth of trees for all threads together, and takes those that parse at once
    for a defect of its own (SystemError). Tracebacks parse too, so that it may happen under the
    lock.
    """
    with _PARSING:
        for left in range(_TRIES)[::-1]:
            try:
                return ast.parse(text, mode="eval").body
            except SystemError:
                if not left:
                    raise MemoryError from None
    raise AssertionError("the last try returned or raised")


def arguments(mechanism: Any) -> tuple[str, dict[str, Any]]:
    """Return the class name of a mechanism, and the arguments of the call that constructs it, by
    name.

    Raises:
        DomainError: If its text form is no such call.
    """
    text = repr(mechanism)
    try:
        match _tree(text):
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in kinds():
                named = {str(each.arg): _value(each.value) for each in keywords}
                bound = inspect.signature(kinds()[name]).bind(
                    *[_value(each) for each in args], **named
                )
                return name, dict(bound.arguments)
            case _:
                pass
    except (SyntaxError, ValueError, TypeError, KeyError, MemoryError, RecursionError):
        pass
    raise DomainError(
        "mechanism", text, "one mechanism that a call with numbers makes, such as Gaussian(10.0)"
    )


def _composable(node: ast.expr) -> Composable:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _composable(left) + _composable(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _composable(left) * _value(right)
        case ast.Call(func=ast.Attribute(value=inner, attr="sampled"), args=[rate], keywords=[]):
            return _composable(inner).sampled(_value(rate))
        case ast.Call(func=ast.Name(id="Composition"), args=[], keywords=[]):
            return blocks.Laplace(1.0) * 0
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in kinds():
            named = {str(keyword.arg): _value(keyword.value) for keyword in keywords}
            return kinds()[name](*[_value(each) for each in args], **named)
        case _:
            raise ValueError(ast.dump(node))


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Attribute(value=ast.Name(id="Adjacency"), attr=name):
            return Adjacency[name]
        case ast.Call(func=ast.Name(id="Participation"), args=[], keywords=keywords):
            return blocks.Participation(
                **{str(keyword.arg): _value(keyword.value) for keyword in keywords}
            )
        case ast.Call() | ast.BinOp(op=ast.Add() | ast.Mult()):
            return _composable(node)  # the mechanism that a private selection runs
        case _:
            return ast.literal_eval(node)
