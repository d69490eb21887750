"""A numbered statement of the book: its text, parameters, evaluating function and errata."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.pictured import Card
from dpcompose.values import Bound


@dataclass(frozen=True)
class Parameter:
    """One keyword parameter of a statement.

    Args:
        name: The keyword.
        kind: The type of one value: float or int.
        meaning: A description of one line.
        required: Whether the parameter has no default.
        many: Whether the parameter is a sequence of such values.
    """

    name: str
    kind: type[float] | type[int]
    meaning: str
    required: bool = True
    many: bool = False

    @property
    def option(self) -> str:
        """The command-line option of the parameter, such as `--delta`; in brackets if optional."""
        return f"--{self.name}" if self.required else f"[--{self.name}]"


@dataclass(frozen=True)
class Statement(Card):
    """A numbered statement of the book that can be evaluated.

    Args:
        number: As printed, such as "3.20".
        title: The name of the statement.
        says: The text of the statement, a sentence with its formula.
        call: The function that evaluates it, from the parameters as keywords to a number, a
            `Bound`, or a frozen dataclass of numbers.
        parameters: The parameters of the function, in order.
        caveats: The cases in which the printed statement is loose or wrong, and the function to use
            instead.
        reference: The publication of the statement.
        down: The names of the results that are lower bounds or allowances, which are displayed
            rounded down. All others are upper bounds.
    """

    number: str
    title: str
    says: str
    call: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    caveats: tuple[str, ...]
    reference: str
    down: tuple[str, ...] = ()

    def evaluate(self, **arguments: float | Sequence[float]) -> tuple[tuple[str, float], ...]:
        """The results of the statement, as pairs (name, number).

        Args:
            arguments: The parameters by name.

        Raises:
            DomainError: If a required parameter is missing, one is unknown, or a value lies outside
                its domain.
        """
        known = {parameter.name for parameter in self.parameters}
        required = [parameter.name for parameter in self.parameters if parameter.required]
        takes = f"the parameters of {self.number}: {', '.join(sorted(known))}"
        for name in arguments.keys() - known:
            raise DomainError(name, arguments[name], takes)
        for name in required:
            if name not in arguments:
                raise DomainError(
                    name, None, f"a value; {self.number} requires {', '.join(required)}"
                )
        value = self.call(**arguments)
        if isinstance(value, Bound):
            return ("lower", value.lower), ("upper", value.upper)
        if dataclasses.is_dataclass(value):
            return tuple(
                (field.name, getattr(value, field.name)) for field in dataclasses.fields(value)
            )
        return (("value", value),)
