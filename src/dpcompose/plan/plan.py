"""A plan of mechanisms, with a fixed epsilon or delta; and the parser of plan files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from dpcompose import check
from dpcompose.composition import Composition, compose
from dpcompose.errors import DomainError, PlanError, UnsupportedError
from dpcompose.files import load_text, read_toml
from dpcompose.plan.schema import (
    COMMON,
    FORMS,
    MECHANISMS,
    MechanismKind,
    Value,
    adjacency,
    choices,
    label,
    number,
    quoted,
)
from dpcompose.values import Adjacency


@dataclass(frozen=True)
class PlanEntry:
    """One `[[mechanism]]` table of a plan, checked; `mechanism` is the mechanism it describes.

    Args:
        name: The name of the mechanism in reports.
        kind: The kind of mechanism, a key of `MECHANISMS`.
        parameters: The parameters in the table as pairs (key, value), in the order of the
            constructor.
        rate: The rate of the Poisson sample that each run draws; None without sampling.
        times: The number of runs; an integer from 0 to 10^15.

    Raises:
        DomainError: If a value lies outside its domain.
        UnsupportedError: If the mechanism cannot be sampled.
    """

    name: str
    kind: str
    parameters: tuple[tuple[str, Value], ...]
    rate: float | None = None
    times: int = 1
    mechanism: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        label("name", self.name)
        if not isinstance(self.kind, str) or self.kind not in MECHANISMS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("kind", self.kind, choices(self.kind, MECHANISMS))
        check.times(self.times)
        mechanism = MECHANISMS[self.kind].build(**self._arguments())
        # A Poisson sample of rate 1 is the whole data set.
        sampled = mechanism if self.rate is None or self.rate == 1 else mechanism.sampled(self.rate)
        object.__setattr__(self, "mechanism", sampled)

    def _arguments(self) -> dict[str, Value]:
        known = MECHANISMS[self.kind].parameters
        try:
            given = dict(self.parameters)
            fits = given.keys() <= known.keys() and all(
                name in given for name, key in known.items() if key.required
            )
        except (TypeError, ValueError):
            fits, given = False, {}
        if not fits:
            raise DomainError(
                "parameters", self.parameters, f"pairs of a name and a value, of {', '.join(known)}"
            )
        return given

    def toml(self) -> str:
        """The TOML text of this `[[mechanism]]` table."""
        given: dict[str, Any] = {"name": self.name, "kind": self.kind, **dict(self.parameters)}
        if self.rate is not None:
            given["rate"] = self.rate
        given["times"] = self.times
        return "\n".join(
            [
                "[[mechanism]]",
                *(f"{key} = {FORMS[key].write(value)}" for key, value in given.items()),
            ]
        )


@dataclass(frozen=True)
class PlanQuestion:
    """The fixed one of delta and epsilon; the other is to be computed.

    Args:
        fixed: "delta" or "epsilon", the name of the fixed number.
        value: The fixed number.

    Raises:
        DomainError: If the name is neither, delta is outside [0, 1], or epsilon is negative,
            infinite or NaN.
    """

    fixed: Literal["delta", "epsilon"]
    value: float

    def __post_init__(self) -> None:
        if not isinstance(self.fixed, str) or self.fixed not in ("delta", "epsilon"):  # pyright: ignore
            raise DomainError("fixed", self.fixed, "delta or epsilon")
        guard = check.probability if self.fixed == "delta" else check.nonnegative
        object.__setattr__(self, "value", guard(self.fixed, self.value))

    @property
    def computed(self) -> str:
        """The number to compute: "epsilon" for a fixed delta, "delta" for a fixed epsilon."""
        return "epsilon" if self.fixed == "delta" else "delta"

    @classmethod
    def stated(cls, *, delta: Any = None, epsilon: Any = None) -> PlanQuestion | None:
        """The question that fixes `delta` or `epsilon`; None if both are None.

        Raises DomainError if both are numbers, or the one is outside its domain.
        """
        if delta is None and epsilon is None:
            return None
        if delta is not None and epsilon is not None:
            remedy = "A budget of both is given on the command line, as --epsilon and --delta"
            raise DomainError(
                "epsilon",
                epsilon,
                "only one of delta and epsilon: the other is what is asked for",
                remedy,
            )
        if delta is not None:
            return cls("delta", number("delta", delta))
        return cls("epsilon", number("epsilon", epsilon))


LARGEST_FILE = 1_000_000
"""The largest plan file in bytes; ten thousand mechanisms fit."""
LARGEST_INTEGER = 10**300
"""The largest integer of a plan file; floats end there, and Python does not print longer ones."""

_TOP = ("delta", "epsilon", "adjacency", "mechanism")


@dataclass(frozen=True)
class Plan:
    """The content of a plan file: mechanisms, a fixed epsilon or delta, and an adjacency.

    Args:
        entries: The mechanisms, with distinct names.
        question: The fixed delta or epsilon; None if the file fixes neither.
        adjacency: The neighboring relation of data sets.
        source: The name of the file or text in errors; ignored by `==`.

    Raises:
        DomainError: If there is no entry, or two have the same name.
    """

    entries: tuple[PlanEntry, ...]
    question: PlanQuestion | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    source: str = field(default="plan", compare=False)

    def __post_init__(self) -> None:
        for name, value, kind, expected in (
            ("entries", self.entries, tuple, "a tuple of entries"),
            ("question", self.question, PlanQuestion | None, "a Question or None"),
            ("adjacency", self.adjacency, Adjacency, "a member of Adjacency"),
            ("source", self.source, str, "text"),
        ):
            if not isinstance(value, kind):
                raise DomainError(name, value, expected)
        if not all(isinstance(entry, PlanEntry) for entry in self.entries):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("entries", self.entries, "entries, each a PlanEntry")
        names = [entry.name for entry in self.entries]
        if not names or len(set(names)) < len(names):
            raise DomainError(
                "entries", names, "at least one mechanism, each with a name of its own"
            )

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """The plan in the file at `path`.

        Raises PlanError, which says where the fault is, if the file is not a plan.
        """
        return cls.parse(load_text(path, most=LARGEST_FILE, what="a plan file"), source=str(path))

    @classmethod
    def parse(cls, text: str, *, source: str = "plan") -> Plan:
        """The plan that the TOML `text` describes.

        Raises PlanError, which calls the text `source`, if it is not a plan.
        """
        for name, given in (("text", text), ("source", source)):
            if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DomainError(name, given, "text")
        return _parsed(text, source)

    def composition(self) -> Composition:
        """The composition of all mechanisms of the plan, each with its number of runs."""
        return compose(*(entry.mechanism * entry.times for entry in self.entries))

    def toml(self) -> str:
        """The plan as TOML text, which parses to an equal plan."""
        lines = (
            [] if self.question is None else [f"{self.question.fixed} = {self.question.value!r}"]
        )
        lines.append(f"adjacency = {quoted(self.adjacency.value)}")
        return "\n\n".join(["\n".join(lines), *(entry.toml() for entry in self.entries)]) + "\n"

    def without(self, name: str) -> Plan | None:
        """The plan without the mechanism `name`; None if the plan has no other.

        Raises:
            DomainError: If no mechanism has that name.
        """
        names = [entry.name for entry in self.entries]
        if not isinstance(name, str) or name not in names:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("name", name, choices(name, names))
        rest = tuple(entry for entry in self.entries if entry.name != name)
        return replace(self, entries=rest) if rest else None

    def locate(self, key: str) -> tuple[PlanEntry, str]:
        """The entry and the parameter named by `key`, such as `mechanism.training.sigma`.

        Raises:
            DomainError: If the plan has no such mechanism, or the mechanism no such number.
        """
        path, _, parameter = key.rpartition(".") if isinstance(key, str) else ("", "", "")  # pyright: ignore
        table, _, name = path.partition(".")
        if table != "mechanism" or not name:
            raise DomainError(
                "key",
                key,
                f"mechanism.NAME.PARAMETER, such as mechanism.{self.entries[0].name}.times",
            )
        entries: Mapping[str, PlanEntry] = {entry.name: entry for entry in self.entries}
        if name not in entries:
            raise DomainError("key", key, f"a mechanism of the plan: {choices(name, entries)}")
        entry = entries[name]
        kind = MECHANISMS[entry.kind]
        candidates = dict.fromkeys((*kind.parameters, "rate", "times"))
        numbers = [each for each in candidates if kind.key(each).response]
        if parameter not in numbers:
            raise DomainError(
                "key", key, f"the name of a number of a {entry.kind}: {choices(parameter, numbers)}"
            )
        return entry, parameter

    def with_value(self, key: str, value: float) -> Plan:
        """The plan with the parameter `key` (as in `locate`) set to `value`.

        Raises DomainError if the value is outside the domain of the parameter.
        """
        entry, parameter = self.locate(key)
        argument: Any = FORMS[parameter].read(parameter, value)
        # `rate` and `times` may belong to the entry instead of the mechanism.
        if parameter not in MECHANISMS[entry.kind].parameters:
            changed = replace(entry, **{parameter: argument})
        else:
            given = dict(entry.parameters) | {parameter: argument}
            ordered = tuple(
                (each, given[each]) for each in MECHANISMS[entry.kind].parameters if each in given
            )
            changed = replace(entry, parameters=ordered)
        return replace(
            self, entries=tuple(changed if each is entry else each for each in self.entries)
        )


@dataclass(frozen=True)
class _Location:
    """The location of a fault: a file, and a table in it."""

    file: str
    table: str = ""

    def error(self, key: str, value: Any, expected: str) -> PlanError:
        return PlanError(self.file, self.table, key, value, expected)

    def from_domain(self, error: DomainError, keys: dict[str, Any]) -> PlanError:
        remedy = f". {error.remedy}" if error.remedy else ""
        if error.name in keys:
            return self.error(error.name, error.value, error.domain + remedy)
        return self.error("", None, f"{error.name}: {error.domain}{remedy}")


def _parsed(text: str, source: str) -> Plan:
    location = _Location(source)
    top = read_toml(text, source=source)
    _refuse_unknown(
        top, _TOP, location, elsewhere=FORMS, hint="it belongs below a [[mechanism]] line"
    )
    tables = top.get("mechanism", [])
    if not isinstance(tables, list):
        raise location.error(
            "mechanism",
            _plain(tables),
            "a list of tables, each begun by [[mechanism]] on its own line",
        )
    tables = cast(list[Any], tables)
    if not tables:
        raise location.error("", None, "at least one [[mechanism]] table")
    for key in ("delta", "epsilon", "adjacency"):
        _refuse_container(key, top, location)
    try:
        question = PlanQuestion.stated(delta=top.get("delta"), epsilon=top.get("epsilon"))
        adjacent = (
            adjacency("adjacency", top["adjacency"]) if "adjacency" in top else Adjacency.ADD_REMOVE
        )
    except DomainError as error:
        raise location.from_domain(error, top) from None
    names = _names(tables)
    entries: dict[str, PlanEntry] = {}
    for position, (table, name) in enumerate(zip(tables, names, strict=True), start=1):
        entry = _entry(table, name, position, source)
        if entry.name in entries:
            location = _Location(source, f"mechanism[{position}]")
            raise location.error(
                "name", entry.name, "a name that no other mechanism of the plan has"
            )
        entries[entry.name] = entry
    return Plan(tuple(entries.values()), question, adjacent, source)


def _entry(table: Any, name: str, position: int, source: str) -> PlanEntry:
    location = _Location(source, f"mechanism[{position}]")
    if not isinstance(table, dict):
        raise location.error("", _plain(table), "a table, begun by [[mechanism]] on its own line")
    keys = cast(dict[str, Any], table)
    if "name" in keys:
        try:
            label("name", _plain(keys["name"]))
        except DomainError as error:
            raise location.from_domain(error, keys) from None
        location = _Location(source, f'mechanism[{position}] "{name}"')
    kind = _kind(keys, location)
    known = (*COMMON, *kind.parameters)
    _refuse_unknown(
        keys, known, location, elsewhere=_TOP, hint="it belongs above the first [[mechanism]] line"
    )
    for key in keys:
        _refuse_container(key, keys, location, nested=FORMS[key].nested)
    for required, key in kind.parameters.items():
        if key.required and required not in keys:
            raise location.error(
                required,
                None,
                f"a value, {kind.name} needs it; a {kind.name} knows {', '.join(known)}",
            )
    try:
        read = {key: FORMS[key].read(key, value) for key, value in keys.items()}
        parameters = tuple((key, read[key]) for key in kind.parameters if key in read)
        optional = {
            key: read[key]
            for key in ("rate", "times")
            if key in read and key not in kind.parameters
        }
        return PlanEntry(name, kind.name, parameters, **cast(dict[str, Any], optional))
    except DomainError as error:
        raise location.from_domain(error, keys) from None
    except UnsupportedError as error:
        raise UnsupportedError(
            f"{source}: {location.table}: {error.what}", error.reason, error.remedy
        ) from None


def _kind(keys: dict[str, Any], location: _Location) -> MechanismKind:
    if "kind" not in keys:
        raise location.error("kind", None, f"a value, {choices('', MECHANISMS)}")
    kind = _plain(keys["kind"])
    if not isinstance(kind, str) or kind not in MECHANISMS:
        raise location.error("kind", kind, choices(kind, MECHANISMS))
    return MECHANISMS[kind]


def _names(tables: list[Any]) -> list[str]:
    """The name of each table: its own, or its kind, with the position where that is ambiguous."""
    rows = [cast(dict[str, Any], row) if isinstance(row, dict) else {} for row in tables]
    names = [str(_plain(row.get("name", row.get("kind", "")))) for row in rows]
    given = {name for name, row in zip(names, rows, strict=True) if "name" in row}
    uses = Counter(name for name, row in zip(names, rows, strict=True) if "name" not in row)
    for position, row in enumerate(rows, start=1):
        name = names[position - 1]
        if "name" not in row and (name in given or uses[name] > 1):
            names[position - 1] = _free(f"{name}-{position}", given)
    return names


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "-"
    return name


def _refuse_unknown(
    table: dict[str, Any],
    allowed: tuple[str, ...],
    location: _Location,
    *,
    elsewhere: Any,
    hint: str,
) -> None:
    for key, value in table.items():
        if key not in allowed:
            expected = f"{choices(key, allowed)}" + (f"; {hint}" if key in elsewhere else "")
            raise location.error(_short(key), _plain(value), expected)


def _refuse_container(
    key: str, table: dict[str, Any], location: _Location, *, nested: int = 0
) -> None:
    """Raise PlanError if the value of `key` has too many levels of containers, or a huge integer.

    `nested` levels are allowed.
    """
    items = _items(table.get(key), nested > 0)
    for _ in range(nested):
        items = [each for item in items for each in _items(item, True)]
    if any(isinstance(item, list | dict) for item in items):
        raise location.error(key, _plain(table.get(key)), "a plain value")
    if any(
        isinstance(item, int) and not -LARGEST_INTEGER <= item <= LARGEST_INTEGER for item in items
    ):
        raise location.error(
            key, "a larger integer", f"an integer of at most {len(str(LARGEST_INTEGER))} digits"
        )


def _items(value: Any, nested: bool) -> list[Any]:
    if isinstance(value, dict) and nested:
        return list(cast(dict[str, Any], value).values())
    return cast(list[Any], value) if isinstance(value, list) else [value]


def _plain(value: Any) -> Any:
    """`value` as an error may show it: itself, or a description of a container or a huge integer."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int) and not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        return "a large integer"
    return value


def _short(key: str) -> str:
    return key if len(key) <= 60 and key.isprintable() else ascii(key[:60]) + "..."
