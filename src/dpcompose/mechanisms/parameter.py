"""The parameters of mechanisms: each is declared once, as metadata of a field of its class.

`sigma: float = field(metadata=declare(noise("1e-6", "1e11")))` states the role of a parameter, its
domain, whether epsilon grows or falls with it, and whether the double or the decimal of a number
costs more privacy. The constructor's checks, the repr, the text form, the conservative reading
(double or decimal), the keys of a plan and the direction of a calibration follow from it.
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
"""The role of a parameter in plans. A change is an integer, or one for each coordinate."""
Response = Literal["increasing", "decreasing", "unordered"]
"""How epsilon responds when a parameter grows; unordered: it is not monotone."""
Reading = Literal["smaller", "larger"]
Domain = Callable[[str, Any], Any]
"""Maps an argument's name and value to the value to store, or raises a DomainError."""


@dataclass(frozen=True)
class Parameter:
    """The declaration of one parameter of a mechanism.

    Args:
        role: Its role, such as "noise" or "count".
        domain: Returns the checked and converted argument, or raises a DomainError; called with the
            name and the value.
        response: How epsilon responds when the parameter grows; None if unknown, so that it cannot
            be calibrated.
        reading: Whether the smaller or the larger of a number's double and decimal costs more; None
            if unknown.
        most: The largest value of the domain, at which a larger reading is cut off.
    """

    role: Role
    domain: Domain
    response: Response | None = None
    reading: Reading | None = None
    most: float = math.inf

    def optional(self) -> Parameter:
        """Return the same parameter, which also accepts None."""
        domain = self.domain

        def check_unless_none(name: str, value: Any) -> Any:
            return None if value is None else domain(name, value)

        return dataclasses.replace(self, domain=check_unless_none)

    def costlier(self, value: Any) -> Any:
        """Return a number, or each number of a tuple, as double or decimal, whichever costs more."""
        if self.reading is None or value is None:
            return value
        if isinstance(value, tuple):
            return tuple(self.costlier(each) for each in cast("tuple[Any, ...]", value))
        read = smaller_reading if self.reading == "smaller" else larger_reading
        return min(read(value), self.most)


def text_of(value: Any) -> str:
    """Return Python code that evaluates to this value."""
    return str(value) if isinstance(value, Adjacency) else repr(value)


class Argument(NamedTuple):
    """A parameter as an argument of a mechanism's constructor.

    Args:
        parameter: Its declaration.
        field: The name of the field that holds it, or the dotted path to an attribute of the field.
        value: Returns the value of the argument from a mechanism.
        default: The value that the repr leaves out; `inspect.Parameter.empty` if the argument is
            required.
        keyword: Whether it is passed by keyword.
    """

    parameter: Parameter
    field: str
    value: Callable[[Any], Any]
    default: Any
    keyword: bool


def declare(own: Parameter | None = None, **arguments: Parameter) -> Mapping[str, Parameter]:
    """Return the metadata of a field: its own declaration, or those of the arguments from which it
    is built.

    A field built from one argument of another name holds that argument; one built from several
    holds an object with these attributes.

    Args:
        own: The declaration of the field itself.
        arguments: The declarations of constructor arguments, by name.
    """
    return arguments if own is None else {"": own}


@cache
def arguments_of(kind: type[Any]) -> dict[str, Argument]:
    """Return the arguments of the constructor of a mechanism class, in order, by name.

    An argument without a declaration accepts any number.
    """
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
    """Return the parameter of a noise scale, between `low` and `high` if these are stated, else
    above 0.

    Args:
        low: The smallest accepted scale, as text; empty if there is none.
        high: The largest accepted scale, as text.
        response: How epsilon responds when the scale grows.
        reading: Whether the smaller or the larger of the double and the decimal costs more.
    """
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
    """Return the parameter of an integer from `least` to `most`.

    Args:
        most: The largest accepted integer; 0 if there is no limit.
        expected: The accepted values, for errors; empty for the range.
        remedy: The remedy in errors.
        least: The smallest accepted integer.
        response: How epsilon responds when the count grows.
    """

    def domain(name: str, value: Any) -> int:
        number = check.count(name, value, least=least)
        if most and not number <= most:
            raise DomainError(name, number, expected or f"an integer of at most {most}", remedy)
        return number

    return Parameter("count", domain, response)


def amount(domain: Domain = check.nonnegative, *, most: float = math.inf) -> Parameter:
    """Return the parameter of an amount in a guarantee, such as an epsilon: a larger one costs
    more.

    Args:
        domain: Checks the amount.
        most: The largest accepted amount.
    """
    return Parameter("amount", domain, "increasing", "larger", most)


def at_most(limit: float, remedy: str = "") -> Domain:
    """Return the check that a number is from 0 to `limit`; its error states `remedy`."""

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
"""An epsilon of at most 1e5 nats; larger ones are no useful guarantee."""
DELTA = amount(check.probability, most=1.0)
FLAG = Parameter("flag", check.flag)
HOLDS_UNDER = Parameter("adjacency", partial(check.member, of=Adjacency))
