"""The options of every question, declared once: their names, their defaults, and the function that reads them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypedDict, TypeVar

from dpcompose import check
from dpcompose.errors import UnsupportedError
from dpcompose.values import Adjacency, AdjacencyName, Orientation, OrientationName

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
TOLERANCE = 1e-9


class Options(TypedDict, total=False):
    """The options that every question takes, by keyword.

    Attributes:
        adjacency: What one person's data may change; "add-remove", "replace", "zero-out", or the member.
        orientation: Whether the same world holds the record in every round.
        tolerance: Wanted relative width of epsilon, in (0, 1); the width that was reached is in the bound.
        proof: Evaluate in ball arithmetic, every error a theorem (extra `proof`), where the question offers it.
    """

    adjacency: AdjacencyName
    orientation: OrientationName
    tolerance: float
    proof: bool


class Asking(NamedTuple):
    """The options of one question, checked; fields as in `Options`."""

    adjacency: Adjacency = Adjacency.ADD_REMOVE
    orientation: Orientation = Orientation.SAME
    tolerance: float = TOLERANCE
    proof: bool = False

    @classmethod
    def read(cls, options: Options, *, unproved: str = "") -> Asking:
        """The options with their defaults.

        Args:
            options: The options that a caller wrote.
            unproved: The quantity that is offered in floats alone; empty if proofs are offered.

        Raises:
            DomainError: If one is outside its domain.
            UnsupportedError: If a proof of `unproved` is asked for.
        """
        if not options:
            return _DEFAULTS
        checked: dict[str, Any] = {name: _GUARDS[name](value) for name, value in options.items()}
        asking = cls(**checked)
        if unproved and asking.proof:
            reason = f"{unproved} is not offered in ball arithmetic"
            raise UnsupportedError("proof=True", reason, "Ask without proof")
        return asking


_DEFAULTS = Asking()
_GUARDS: dict[str, Callable[[Any], Any]] = {
    "adjacency": lambda value: check.named("adjacency", value, Adjacency),
    "orientation": lambda value: check.named("orientation", value, Orientation),
    "tolerance": lambda value: check.open_probability("tolerance", value),
    "proof": lambda value: check.flag("proof", value),
}
OPTIONS = [
    inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=Asking._field_defaults[name],
        annotation=annotation.__forward_arg__,
    )
    for name, annotation in Options.__annotations__.items()
]
"""The options as they stand in the signature of a question."""


def asks(
    number: str = "", *, without: tuple[str, ...] = ()
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Show the options in the signature of a function that takes `**options`, and refuse every other keyword.

    Args:
        number: The keyword of the number that a method takes: whoever leaves it out is told so.
        without: Options that the question does not have.
    """

    def decorated(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        shown = [*own, *(each for each in OPTIONS if each.name not in without)]
        accepted = {each.name for each in shown}

        @wraps(function)
        def asked(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
            if number and len(arguments) > 1:
                call = f".{function.__name__}({number}={arguments[1]!r})"
                raise TypeError(f"the number has a name: {call}")
            if not accepted.issuperset(named):
                name = next(name for name in named if name not in accepted)
                reason = f"got an unexpected keyword argument {name!r}"
                raise TypeError(f"{function.__name__}() {reason}")
            return function(*arguments, **named)

        described: Any = asked
        described.__signature__ = signature.replace(parameters=shown)
        return asked

    return decorated
