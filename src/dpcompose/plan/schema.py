"""The schema of plan files: kinds of mechanism, and how parameters are read, written and varied."""

from __future__ import annotations

import difflib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from dpcompose import check, mechanisms
from dpcompose.composition import compose
from dpcompose.errors import DomainError
from dpcompose.guarantee import RenyiLine
from dpcompose.mechanisms import Participation, arguments_of, kinds
from dpcompose.values import Adjacency


def number(name: str, value: Any) -> float:
    """A TOML float or integer as a float.

    Raises DomainError, which calls it `name`, for other types and NaN.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DomainError(name, value, "a number")
    try:
        result = float(value)
    except OverflowError:
        raise DomainError(name, value, "a number that a float can hold") from None
    if math.isnan(result):
        raise DomainError(name, value, "a number, not NaN")
    return result


def integer(name: str, value: Any) -> int:
    """`value`, if it is a TOML integer (not a boolean).

    Raises DomainError, which calls it `name`, otherwise.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise DomainError(name, value, "an integer")
    return value


def truth(name: str, value: Any) -> bool:
    """`value`, if it is a TOML boolean.

    Raises DomainError, which calls it `name`, otherwise.
    """
    return check.flag(name, value)


def integers(name: str, value: Any) -> int | tuple[int, ...]:
    """A TOML integer, or an array of integers as a tuple.

    Raises DomainError, which calls it `name`, otherwise.
    """
    if not isinstance(value, list):
        return integer(name, value)
    items = cast("list[Any]", value)
    if not items or any(isinstance(item, bool) or not isinstance(item, int) for item in items):
        raise DomainError(
            name, items, "an integer, or an array of integers, one for each coordinate"
        )
    return tuple(items)


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """A nonempty TOML array of numbers as a tuple of floats.

    Raises DomainError, which calls it `name`, otherwise.
    """
    if not isinstance(value, list) or not value:
        raise DomainError(name, value, "an array of numbers")
    return tuple(number(f"{name}[{at}]", each) for at, each in enumerate(cast("list[Any]", value)))


def rows(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """A nonempty TOML array of arrays of numbers as tuples of floats.

    Raises DomainError, which calls it `name`, otherwise.
    """
    given = cast("list[Any]", value) if isinstance(value, list) else []
    if not given or not all(isinstance(row, list) for row in given):
        raise DomainError(name, value, "an array of rows, each an array of numbers")
    return tuple(
        tuple(number(f"{name}[{at}]", entry) for entry in row) for at, row in enumerate(given)
    )


def participation(name: str, value: Any) -> Participation:
    """A `Participation` from a TOML table of its arguments.

    Raises DomainError, which calls it `name`, otherwise.
    """
    known = inspect.signature(Participation).parameters
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": value}
    if not given.keys() <= known.keys():
        raise DomainError(
            name, value, f"a table with keys of {', '.join(known)}, such as {{ most = 1 }}"
        )
    return Participation(**given)


def adjacency(name: str, value: Any) -> Adjacency:
    """The Adjacency with the value `value`, such as "replace".

    Raises DomainError, which calls it `name`, otherwise.
    """
    names = [member.value for member in Adjacency]
    if value not in names:
        raise DomainError(name, value, "one of " + ", ".join(f'"{each}"' for each in names))
    return Adjacency(value)


def label(name: str, value: Any) -> str:
    """`value`, if it is printable text of 1 to 100 characters on one line.

    Raises DomainError, which calls it `name`, otherwise.
    """
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or not 0 < len(value) <= 100
        or value != value.strip()
    ):
        raise DomainError(
            name, value, "printable text of 1 to 100 characters, without blanks around it"
        )
    return value


def quoted(text: str) -> str:
    """`text` as a TOML string."""
    return json.dumps(text, ensure_ascii=False)


def array_text(value: int | tuple[float, ...]) -> str:
    """A number, or a tuple of numbers, as TOML text."""
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def table_text(value: Participation) -> str:
    """A `Participation` as a TOML inline table."""
    given = {"separation": value.separation, "most": value.most, "fixed": value.fixed}
    written = [f"{name} = {json.dumps(each)}" for name, each in given.items() if each is not None]
    return f"{{ {', '.join(written)} }}"


Numbers = tuple[float, ...] | tuple[tuple[float, ...], ...]
Base = tuple[tuple[str, Any], ...]
"""A mechanism described inside another `[[mechanism]]` table: pairs (key, value)."""
Value = (
    float
    | int
    | str
    | tuple[int, ...]
    | Numbers
    | Participation
    | Base
    | tuple[Base, ...]
    | Adjacency
)


class Key(NamedTuple):
    """A key of a `[[mechanism]]` table.

    Args:
        role: The role of the parameter, such as "noise" or "count", which selects its `Form`.
        response: "increasing" or "decreasing", as epsilon is in the parameter; None if unknown, and
            then it cannot be calibrated.
        required: Whether the table must contain the key.
    """

    role: str
    response: str | None = None
    required: bool = True


@dataclass(frozen=True)
class Form:
    """The TOML form of the parameters of one role.

    Args:
        read: A function of the key and the TOML value that returns the argument of the constructor,
            or raises DomainError.
        write: A function of the argument that returns its TOML text, from which `read` returns the
            same argument.
        nested: The largest number of levels of arrays and tables inside the value.
    """

    read: Callable[[str, Any], Value]
    write: Callable[[Any], str] = repr
    nested: int = 0


@dataclass(frozen=True)
class MechanismKind:
    """A kind of mechanism in plans: its name, and the constructor whose parameters are its keys.

    Args:
        name: The value of the key `kind`: the name of the class, in lower case with dashes.
        build: The constructor, called with keyword arguments.
        parameters: The parameters of the constructor by name, in order.
    """

    name: str
    build: Callable[..., Any]
    parameters: dict[str, Key]

    def key(self, name: str) -> Key:
        """The `Key` of the parameter `name`, or the common key of that name; KeyError otherwise."""
        return self.parameters.get(name) or COMMON[name]


def base(name: str, value: Any) -> Base:
    """The pairs (key, argument) of a TOML table that describes one mechanism.

    Raises DomainError, which calls it `name`, if the table is not of that form.
    """
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in MECHANISMS or kind == SELECTION:
        example = 'such as { kind = "gaussian", sigma = 4.0, rate = 0.1, times = 10 }'
        raise DomainError(
            name, "a table" if given else value, f"a table that describes a mechanism, {example}"
        )
    known = MECHANISMS[kind].parameters
    allowed = ("kind", *known, "rate", "times")
    unknown = [key for key in given if key not in allowed]
    missing = [name for name, key in known.items() if key.required and name not in given]
    if unknown or missing:
        wrong = f"unknown: {unknown[0]!r:.40}" if unknown else f"missing: {missing[0]!r}"
        raise DomainError(name, wrong, f"keys of {', '.join(allowed)}")
    return tuple((key, FORMS[key].read(f"{name}.{key}", each)) for key, each in given.items())


def selection(base: Base, *, tries: float, shape: float = math.inf) -> Any:
    """The private selection from a random number of runs of the mechanism that `base` describes.

    `tries` is the mean of that number and `shape` the shape of its distribution, as in
    `PrivateSelection`.
    """
    return mechanisms.PrivateSelection(_built(base), tries=tries, shape=shape)


def bases(name: str, value: Any) -> tuple[Base, ...]:
    """The mechanisms, as `base` returns them, of a TOML array of tables.

    Raises DomainError, which calls it `name`, otherwise.
    """
    given = cast("list[Any]", value) if isinstance(value, list) else []
    if not given:
        raise DomainError(
            name,
            "no list" if value else value,
            "an array of tables, each of which describes a mechanism",
        )
    return tuple(base(f"{name}[{at}]", each) for at, each in enumerate(given))


def composition(*, parts: tuple[Base, ...]) -> Any:
    """The composition of the mechanisms that `parts` describe, which run on the same sample."""
    return compose(*[_built(each) for each in parts])


def dominating_pair(*, upper: Numbers, lower: Numbers, holds_under: Adjacency) -> Any:
    """The mechanism dominated by the pair of masses (`upper`, `lower`), under `holds_under`."""
    return mechanisms.DominatingPair.atoms(upper=upper, lower=lower, adjacency=holds_under)


def renyi_line(*, rho: float, xi: float, holds_under: Adjacency) -> Any:
    """A mechanism whose Renyi divergences are at most xi + rho * order, under `holds_under`."""
    line = RenyiLine(check.nonnegative("rho", rho), check.nonnegative("xi", xi))
    return mechanisms.RenyiCurve(line, holds_under=holds_under)


def _built(base: Base) -> Any:
    given = dict(base)
    kind, rate, times = given.pop("kind"), given.pop("rate", 1), given.pop("times", 1)
    one = MECHANISMS[kind].build(**given)
    return (one if rate == 1 else one.sampled(rate)) * times


def _inner(value: Base) -> str:
    return f"{{ {', '.join(f'{key} = {FORMS[key].write(each)}' for key, each in value)} }}"


def choices(value: object, options: Iterable[str]) -> str:
    """The text "one of a, b, c; did you mean b?" for the names `options`.

    The question is omitted if no name is similar to `value`.
    """
    names = list(options)
    nearest = (
        difflib.get_close_matches(value[:100], names, n=1, cutoff=0.6)
        if isinstance(value, str)
        else []
    )
    return f"one of {', '.join(names)}" + (f"; did you mean {nearest[0]}?" if nearest else "")


def dashed(name: str) -> str:
    """The kind of the class `name`: its words in lower case, joined by dashes."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def _declared(build: type[Any]) -> dict[str, Key]:
    """The key of each parameter that the constructor `build` declares."""
    return {
        name: Key(
            argument.parameter.role,
            argument.parameter.response,
            argument.default is inspect.Parameter.empty,
        )
        for name, argument in arguments_of(build).items()
    }


SELECTION, COMPOSITION = "private-selection", "composition"
_NUMBERS, _AMOUNT, _HOLDS_UNDER = Key("numbers"), Key("amount", "increasing"), Key("adjacency")
_SELECTION = _declared(mechanisms.PrivateSelection)
MECHANISMS: dict[str, MechanismKind] = {
    kind.name: kind
    for kind in (
        *(
            MechanismKind(dashed(name), build, _declared(build))
            for name, build in kinds().items()
            if name != "PrivateSelection"
        ),
        MechanismKind(SELECTION, selection, _SELECTION),
        MechanismKind(COMPOSITION, composition, {"parts": Key("mechanisms")}),
        MechanismKind(
            "dominating-pair",
            dominating_pair,
            {"upper": _NUMBERS, "lower": _NUMBERS, "holds_under": _HOLDS_UNDER},
        ),
        MechanismKind(
            "renyi-line", renyi_line, {"rho": _AMOUNT, "xi": _AMOUNT, "holds_under": _HOLDS_UNDER}
        ),
    )
}
COMMON = {
    "kind": Key("text"),
    "name": Key("text"),
    "rate": Key("rate", "increasing", False),
    "times": Key("count", "increasing", False),
}
"""The keys of every kind; `rate` is that of a Poisson sample, unless the kind has its own."""
_FORMS = {
    "change": Form(integers, array_text),
    "count": Form(integer),
    "text": Form(label, quoted),
    "flag": Form(truth, lambda value: "true" if value else "false"),
    "numbers": Form(numbers, array_text),
    "rows": Form(rows, lambda matrix: repr([list(row) for row in matrix]), nested=1),
    "participation": Form(participation, table_text, nested=1),
    "mechanism": Form(base, _inner, nested=4),
    "mechanisms": Form(bases, lambda parts: f"[{', '.join(map(_inner, parts))}]", nested=4),
    "adjacency": Form(adjacency, lambda member: quoted(member.value)),
    **dict.fromkeys(("noise", "sensitivity", "rate", "amount", "number"), Form(number)),
}
FORMS: dict[str, Form] = {
    name: _FORMS[key.role]
    for keys in (COMMON, *(kind.parameters for kind in MECHANISMS.values()))
    for name, key in keys.items()
}
"""The form of each key by its name, which is the same in all kinds."""
