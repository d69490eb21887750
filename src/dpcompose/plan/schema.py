"""The schema of a plan file: the mechanisms that it may name, and how each parameter is read, written and varied."""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

from dpcompose import check, mechanisms
from dpcompose.composition import compose
from dpcompose.errors import DomainError
from dpcompose.guarantee import RenyiLine
from dpcompose.mechanisms import Participation, kinds
from dpcompose.plan.values import (
    adjacency,
    array_text,
    integer,
    integers,
    label,
    number,
    numbers,
    participation,
    quoted,
    rows,
    table_text,
    truth,
)
from dpcompose.values import Adjacency

Numbers = tuple[float, ...] | tuple[tuple[float, ...], ...]
Base = tuple[tuple[str, Any], ...]
"""The keys of a `[[mechanism]]` table inside another one, with their values."""
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
Response = Literal["increasing", "decreasing"]


@dataclass(frozen=True)
class ParameterSchema:
    """The schema of one key of a `[[mechanism]]` table.

    Args:
        read: Turns the TOML value into the argument of the constructor; raises DomainError on a wrong type.
        write: The TOML text of such an argument; reading it back gives the same argument.
        response: How epsilon responds when the value grows; None where that is not known, so it cannot be varied.
        integer: Whether only integers make sense.
        nested: How many levels of arrays and tables there may be inside the value.
    """

    read: Callable[[str, Any], Value]
    write: Callable[[Any], str] = repr
    response: Response | None = None
    integer: bool = False
    nested: int = 0


@dataclass(frozen=True)
class MechanismKind:
    """A kind of mechanism: its name in a plan, and the constructor whose parameters are its keys.

    Args:
        name: The value of `kind`: the name of its class, with dashes.
        build: The constructor; called with keyword arguments.
    """

    name: str
    build: Callable[..., Any]

    @cached_property
    def parameters(self) -> dict[str, bool]:
        """The parameters of the constructor, in order, and whether each is required."""
        signature = inspect.signature(self.build)
        return {
            name: each.default is inspect.Parameter.empty
            for name, each in signature.parameters.items()
        }


def base(name: str, value: Any) -> Base:
    """A TOML table that describes one mechanism: its kind, its parameters, and perhaps `rate` and `times`."""
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
    missing = [key for key, required in known.items() if required and key not in given]
    if unknown or missing:
        wrong = f"unknown: {unknown[0]!r:.40}" if unknown else f"missing: {missing[0]!r}"
        raise DomainError(name, wrong, f"keys of {', '.join(allowed)}")
    return tuple((key, PARAMETERS[key].read(f"{name}.{key}", each)) for key, each in given.items())


def selection(base: Base, *, tries: float, shape: float = math.inf) -> Any:
    """The private selection among runs of the mechanism that `base` describes."""
    return mechanisms.PrivateSelection(_built(base), tries=tries, shape=shape)


def bases(name: str, value: Any) -> tuple[Base, ...]:
    """A TOML array of tables, each of which describes one mechanism."""
    given = cast("list[Any]", value) if isinstance(value, list) else []
    if not given:
        raise DomainError(
            name,
            "no list" if value else value,
            "an array of tables, each of which describes a mechanism",
        )
    return tuple(base(f"{name}[{at}]", each) for at, each in enumerate(given))


def composition(*, parts: tuple[Base, ...]) -> Any:
    """The composition of the mechanisms that `parts` describe: what runs on one sample together."""
    return compose(*[_built(each) for each in parts])


def dominating_pair(*, upper: Numbers, lower: Numbers, holds_under: Adjacency) -> Any:
    """The pair of exactly these masses, with the record and without it."""
    return mechanisms.DominatingPair.atoms(upper=upper, lower=lower, adjacency=holds_under)


def renyi_line(*, rho: float, xi: float, holds_under: Adjacency) -> Any:
    """Any mechanism whose Renyi divergence of each order is at most xi + rho times the order."""
    line = RenyiLine(check.nonnegative("rho", rho), check.nonnegative("xi", xi))
    return mechanisms.RenyiCurve(line, holds_under=holds_under)


def _built(base: Base) -> Any:
    given = dict(base)
    kind, rate, times = given.pop("kind"), given.pop("rate", 1), given.pop("times", 1)
    one = MECHANISMS[kind].build(**given)
    return (one if rate == 1 else one.sampled(rate)) * times


def _inner(value: Base) -> str:
    return f"{{ {', '.join(f'{key} = {PARAMETERS[key].write(each)}' for key, each in value)} }}"


def choices(given: object, known: Iterable[str]) -> str:
    """The sentence "one of a, b, c; did you mean b?"; the question only where some name is similar."""
    names = list(known)
    nearest = (
        difflib.get_close_matches(given[:100], names, n=1, cutoff=0.6)
        if isinstance(given, str)
        else []
    )
    return f"one of {', '.join(names)}" + (f"; did you mean {nearest[0]}?" if nearest else "")


def dashed(name: str) -> str:
    """The kind that a class of that name has."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


SELECTION, COMPOSITION = "private-selection", "composition"
MECHANISMS: dict[str, MechanismKind] = {
    dashed(name): MechanismKind(dashed(name), kind)
    for name, kind in kinds().items()
    if name != "PrivateSelection"
} | {
    name: MechanismKind(name, build)
    for name, build in (
        (SELECTION, selection),
        (COMPOSITION, composition),
        ("dominating-pair", dominating_pair),
        ("renyi-line", renyi_line),
    )
}
# A test holds this list against the parameters of every constructor.
PARAMETERS: dict[str, ParameterSchema] = {
    "scale": ParameterSchema(number, response="decreasing"),
    "sigma": ParameterSchema(number, response="decreasing"),
    "sensitivity": ParameterSchema(number, response="increasing"),
    "replace_sensitivity": ParameterSchema(number, response="increasing"),
    "epsilon": ParameterSchema(number, response="increasing"),
    "delta": ParameterSchema(number, response="increasing"),
    "rho": ParameterSchema(number, response="increasing"),
    "mu": ParameterSchema(number, response="increasing"),
    "shift": ParameterSchema(integers, array_text),
    "replace": ParameterSchema(integers, array_text),
    "categories": ParameterSchema(integer),
    "noise": ParameterSchema(label, quoted),
    "monotone": ParameterSchema(truth, lambda value: "true" if value else "false"),
    "positives": ParameterSchema(integer),
    "curve": ParameterSchema(numbers, array_text),
    "orders": ParameterSchema(numbers, array_text),
    "variance": ParameterSchema(number, response="decreasing"),
    "gamma": ParameterSchema(number),
    "keep": ParameterSchema(number),
    "flip": ParameterSchema(number),
    "reports": ParameterSchema(integer, response="decreasing", integer=True),
    "records": ParameterSchema(integer),
    "batch": ParameterSchema(integer),
    "steps": ParameterSchema(integer),
    "shifts": ParameterSchema(numbers, array_text),
    "weights": ParameterSchema(numbers, array_text),
    "selected": ParameterSchema(integer),
    "restart": ParameterSchema(integer),
    "strategy": ParameterSchema(rows, lambda matrix: repr([list(row) for row in matrix]), nested=1),
    "participation": ParameterSchema(participation, table_text, nested=1),
    "parts": ParameterSchema(bases, lambda parts: f"[{', '.join(map(_inner, parts))}]", nested=4),
    "upper": ParameterSchema(numbers, array_text),
    "lower": ParameterSchema(numbers, array_text),
    "xi": ParameterSchema(number, response="increasing"),
    "base": ParameterSchema(base, _inner, nested=4),
    "tries": ParameterSchema(number, response="increasing"),
    "shape": ParameterSchema(number),
    "holds_under": ParameterSchema(adjacency, lambda member: quoted(member.value)),
    "rate": ParameterSchema(number, response="increasing"),
    "times": ParameterSchema(integer, response="increasing", integer=True),
    "name": ParameterSchema(label, quoted),
    "kind": ParameterSchema(label, quoted),
}
