"""A numbered statement of the book, as something to evaluate: what a face needs to ask for it by number."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose.errors import DomainError


@dataclass(frozen=True)
class Parameter:
    """One keyword of a statement.

    Args:
        name: The keyword.
        kind: What one value is: float or int.
        meaning: One line for a reader.
        required: Whether it must be given.
        many: Whether it is a sequence of such values.
    """

    name: str
    kind: type[float] | type[int]
    meaning: str
    required: bool = True
    many: bool = False


@dataclass(frozen=True)
class Statement:
    """A statement of the book.

    Args:
        number: As printed, such as "3.20".
        title: What it is called.
        says: The statement, in a sentence with its formula.
        call: Takes the parameters as keywords; returns a number, or a frozen dataclass of numbers.
        parameters: What it takes, in order.
        caveats: Where the printed statement is loose or wrong, and what to ask instead.
        reference: Its source.
        down: The values that are lower ends, or what may be spent: rounded down where they are shown. All others are
            upper bounds.
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
                raise DomainError(name, None, f"a value; {self.number} requires {', '.join(required)}")
        value = self.call(**arguments)
        if dataclasses.is_dataclass(value):
            return tuple((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return (("value", value),)
