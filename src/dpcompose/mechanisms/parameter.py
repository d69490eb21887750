"""The parameters of a mechanism: each is declared once, as metadata of a field of its class.

`sigma: float = field(metadata=declare(noise("1e-6", "1e11")))` states the role of a parameter, its domain, how epsilon
responds when it grows, and which reading of a number is the conservative one. From that follow the constructor's
checks, the repr and so the text, the conservative reading, the keys of a plan and the direction of a calibration.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple, cast

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.values import Adjacency, larger_reading, smaller_reading

Role = Literal[
    "noise", "sensitivity", "rate", "amount", "number", "count", "flag", "text", "change",
    "numbers", "rows", "participation", "adjacency", "mechanism",
]  # fmt: skip
"""What a parameter is; a plan reads and writes it accordingly. A change is an integer, or one for each coordinate."""
Response = Literal["increasing", "decreasing", "unordered"]
"""How epsilon responds when a parameter grows; unordered: it falls in the large, but is not monotone."""
Reading = Literal["smaller", "larger"]
Domain = Callable[[str, Any], Any]
"""From the name and the value of an argument to the value that is stored; raises DomainError outside the domain."""


@dataclass(frozen=True)
class Parameter:
    """The declaration of one parameter.

    Args:
        role: What it is.
        domain: Checks and converts an argument.
        response: How epsilon responds when it grows; None: not known, so that it cannot be calibrated.
        reading: Which neighbor of a number costs more, where its decimal and its double differ; None: neither is known.
        most: The largest number of the domain, where a larger reading is cut off.
    """

    role: Role
    domain: Domain
    response: Response | None = None
    reading: Reading | None = None
    most: float = math.inf

    def optional(self) -> Parameter:
        """The same parameter, which may also be None."""
        domain = self.domain

        def check_unless_none(name: str, value: Any) -> Any:
            return None if value is None else domain(name, value)

        return dataclasses.replace(self, domain=check_unless_none)

    def costlier(self, value: Any) -> Any:
        """The conservative reading of a number, or of each number of a tuple."""
        if self.reading is None or value is None:
            return value
        if isinstance(value, tuple):
            return tuple(self.costlier(each) for each in cast("tuple[Any, ...]", value))
        read = smaller_reading if self.reading == "smaller" else larger_reading
        return min(read(value), self.most)


def text_of(value: Any) -> str:
    """A value as code that gives it back."""
    return str(value) if isinstance(value, Adjacency) else repr(value)


class Argument(NamedTuple):
    """A parameter as an argument of the constructor.

    Args:
        parameter: Its declaration.
        field: The field that holds it, or the path to it.
        value: Reads it from a mechanism.
        default: What is left out of the repr; `inspect.Parameter.empty` if it is required.
        keyword: Whether it is given by name.
    """

    parameter: Parameter
    field: str
    value: Callable[[Any], Any]
    default: Any
    keyword: bool


def declare(own: Parameter | None = None, **arguments: Parameter) -> Mapping[str, Parameter]:
    """The metadata of a field: its own declaration, or those of the arguments that it is made from.

    A field that holds one argument of another name is that argument; of several, they are attributes of its value.
    """
    return arguments if own is None else {"": own}


@cache
def arguments_of(kind: type[Any]) -> dict[str, Argument]:
    """The arguments of the constructor of a mechanism, in its order; one without a declaration is any number."""
    declared: dict[str, tuple[Parameter, str]] = {}
    for each in dataclasses.fields(kind):
        for name, parameter in each.metadata.items():
            if isinstance(parameter, Parameter):
                path = each.name if len(each.metadata) == 1 else f"{each.name}.{name}"
                declared[name or each.name] = parameter, path
    found: dict[str, Argument] = {}
    for name, each in inspect.signature(kind).parameters.items():
        parameter, path = declared.get(name, (_UNDECLARED, name))
        keyword = each.kind is inspect.Parameter.KEYWORD_ONLY
        found[name] = Argument(parameter, path, attrgetter(path), each.default, keyword)
    return found


def noise(
    low: str = "",
    high: str = "",
    *,
    response: Response = "decreasing",
    reading: Reading | None = "smaller",
) -> Parameter:
    """A size of noise between two numbers, or of any size above 0: less noise costs more."""
    domain = partial(_between, low=low, high=high) if low else check.positive
    return Parameter("noise", domain, response, reading)


def count(
    most: int = 0,
    expected: str = "",
    remedy: str = "",
    *,
    least: int = 1,
    response: Response | None = None,
) -> Parameter:
    """An integer from `least` to `most`."""

    def domain(name: str, value: Any) -> int:
        number = check.count(name, value, least=least)
        if most and not number <= most:
            raise DomainError(name, number, expected or f"an integer of at most {most}", remedy)
        return number

    return Parameter("count", domain, response)


def amount(domain: Domain = check.nonnegative, *, most: float = math.inf) -> Parameter:
    """An amount that a guarantee states, such as an epsilon: more costs more."""
    return Parameter("amount", domain, "increasing", "larger", most)


def at_most(limit: float, remedy: str = "") -> Domain:
    """The numbers from 0 to `limit`."""

    def domain(name: str, value: Any) -> float:
        number = check.nonnegative(name, value)
        if not number <= limit:
            raise DomainError(name, number, f"at most {limit:g}", remedy)
        return number

    return domain


def _between(name: str, value: Any, *, low: str, high: str) -> float:
    number = check.positive(name, value)
    if not float(low) < number < float(high):
        raise DomainError(name, number, f"a number between {low} and {high}")
    return number


def _unchanged(name: str, value: Any) -> Any:
    return value


_UNDECLARED = Parameter("number", _unchanged)
SENSITIVITY = Parameter("sensitivity", check.positive, "increasing", "larger")
EPSILON = amount(at_most(1e5))
"""An epsilon of at most 1e5 nats: beyond that nothing is promised in any useful sense."""
DELTA = amount(check.probability, most=1.0)
FLAG = Parameter("flag", check.flag)
HOLDS_UNDER = Parameter("adjacency", partial(check.member, of=Adjacency))
