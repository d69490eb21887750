"""A statement of the book as a value: what it says, its parameters, what evaluates it, and where it is wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.values import Bound


@dataclass(frozen=True)
class Parameter:
    """One keyword of a statement.

    Args:
        name: The keyword.
        kind: The type of one value: float or int.
        meaning: One line for a reader.
        required: Whether it must be given.
        many: Whether it is a sequence of such values.
    """

    name: str
    kind: type[float] | type[int]
    meaning: str
    required: bool = True
    many: bool = False

    @property
    def option(self) -> str:
        """The option of a command that sets it, in brackets if it may be left out."""
        return f"--{self.name}" if self.required else f"[--{self.name}]"


@dataclass(frozen=True)
class Statement:
    """A statement of the book.

    Args:
        number: As printed, such as "3.20".
        title: Its name.
        says: The statement, in a sentence with its formula.
        call: Takes the parameters as keywords; returns a number, a `Bound`, or a frozen dataclass of numbers.
        parameters: Its parameters, in order.
        caveats: Where the printed statement is loose or wrong, and what to use instead.
        reference: Its source.
        down: The values that are lower ends or allowances, which a page rounds down. All others are upper bounds.
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
        """The named numbers of its value: rows for a table.

        Args:
            arguments: The parameters by name.

        Raises:
            DomainError: If a required parameter is missing, one is unknown, or a value lies outside its domain.
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
