"""A plan: named mechanisms, how often each runs, the question asked of them; and the one parser of plan files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from dpcompose import check
from dpcompose.composition import Composition, compose
from dpcompose.errors import DomainError, PlanError, UnsupportedError
from dpcompose.files import load_toml, read_toml
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
    """One `[[mechanism]]` table, checked: it describes `mechanism`, which runs `times` times.

    Args:
        name: Its name in reports.
        kind: Its kind, a key of `MECHANISMS`.
        parameters: The keys given and their values, in the constructor's order.
        rate: The rate of a Poisson sample, fresh each time; None without sampling.
        times: The number of its runs; an integer from 0 to 10^15.

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
        mechanism = MECHANISMS[self.kind].build(**self._given())
        # A sample of everybody is the mechanism itself.
        sampled = mechanism if self.rate is None or self.rate == 1 else mechanism.sampled(self.rate)
        object.__setattr__(self, "mechanism", sampled)

    def _given(self) -> dict[str, Value]:
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
        """This entry as a `[[mechanism]]` table."""
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


Entry = PlanEntry


@dataclass(frozen=True)
class PlanQuestion:
    """One number is given, the other is asked.

    Args:
        given: The name of the one that is given.
        value: Its value.

    Raises:
        DomainError: If delta is outside [0, 1], or epsilon is negative or infinite.
    """

    given: Literal["delta", "epsilon"]
    value: float

    def __post_init__(self) -> None:
        if not isinstance(self.given, str) or self.given not in ("delta", "epsilon"):  # pyright: ignore
            raise DomainError("given", self.given, "delta or epsilon")
        guard = check.probability if self.given == "delta" else check.nonnegative
        object.__setattr__(self, "value", guard(self.given, self.value))

    @property
    def asked(self) -> str:
        """The number that is asked for."""
        return "epsilon" if self.given == "delta" else "delta"

    @classmethod
    def stated(cls, *, delta: Any = None, epsilon: Any = None) -> PlanQuestion | None:
        """The question stated by one of the two; None if neither is given, DomainError if both are."""
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
"""Bytes of a plan file; ten thousand mechanisms fit."""
LARGEST_INTEGER = 10**300
"""An integer beyond this has no use as a float, and Python refuses to print the largest."""

_TOP = ("delta", "epsilon", "adjacency", "mechanism")


@dataclass(frozen=True)
class Plan:
    """The content of a plan file.

    Args:
        entries: The mechanisms, each with a name of its own.
        question: The delta or epsilon given, or None when the caller is to give one.
        adjacency: The neighboring relation.
        source: The place that the plan was read from; two plans that differ only in it are equal.

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
            raise DomainError("entries", self.entries, "entries, each an Entry")
        names = [entry.name for entry in self.entries]
        if not names or len(set(names)) < len(names):
            raise DomainError(
                "entries", names, "at least one mechanism, each with a name of its own"
            )

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """The plan in the file at `path`, text or a path; a PlanError names the fault and its place."""
        return cls.parse(load_toml(path, most=LARGEST_FILE, what="a plan file"), source=str(path))

    @classmethod
    def parse(cls, text: str, *, source: str = "plan") -> Plan:
        """The plan that the TOML `text` describes; errors call the text `source`."""
        for name, given in (("text", text), ("source", source)):
            if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DomainError(name, given, "text")
        return _parsed(text, source)

    def composition(self) -> Composition:
        """All mechanisms of the plan together, each as often as it runs."""
        return compose(*(entry.mechanism * entry.times for entry in self.entries))

    def toml(self) -> str:
        """The plan as TOML; parsing it gives an equal plan."""
        lines = (
            [] if self.question is None else [f"{self.question.given} = {self.question.value!r}"]
        )
        lines.append(f"adjacency = {quoted(self.adjacency.value)}")
        return "\n\n".join(["\n".join(lines), *(entry.toml() for entry in self.entries)]) + "\n"

    def without(self, name: str) -> Plan | None:
        """The plan without one mechanism; None if that was its last.

        Raises:
            DomainError: If no mechanism has that name.
        """
        names = [entry.name for entry in self.entries]
        if not isinstance(name, str) or name not in names:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("name", name, choices(name, names))
        rest = tuple(entry for entry in self.entries if entry.name != name)
        return replace(self, entries=rest) if rest else None

    def locate(self, key: str) -> tuple[PlanEntry, str]:
        """The entry and the parameter that a key such as `mechanism.training.sigma` names.

        Raises:
            DomainError: If there is no such mechanism, or it has no such parameter.
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
                "key", key, f"a number of a {entry.kind}: {choices(parameter, numbers)}"
            )
        return entry, parameter

    def with_value(self, key: str, value: float) -> Plan:
        """The plan with one number replaced; `key` as in `locate`, `value` in the domain of that parameter."""
        entry, parameter = self.locate(key)
        argument: Any = FORMS[parameter].read(parameter, value)
        if (
            parameter not in MECHANISMS[entry.kind].parameters
        ):  # the rate of a sample, or how many times
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
class _Place:
    """A position in a file."""

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
    place = _Place(source)
    top = read_toml(text, source=source)
    _refuse_unknown(top, _TOP, place, elsewhere=FORMS, hint="it belongs below a [[mechanism]] line")
    tables = top.get("mechanism", [])
    if not isinstance(tables, list):
        raise place.error(
            "mechanism",
            _plain(tables),
            "a list of tables, each begun by [[mechanism]] on its own line",
        )
    tables = cast(list[Any], tables)
    if not tables:
        raise place.error("", None, "at least one [[mechanism]] table")
    for key in ("delta", "epsilon", "adjacency"):
        _refuse_container(key, top, place)
    try:
        question = PlanQuestion.stated(delta=top.get("delta"), epsilon=top.get("epsilon"))
        adjacent = (
            adjacency("adjacency", top["adjacency"]) if "adjacency" in top else Adjacency.ADD_REMOVE
        )
    except DomainError as error:
        raise place.from_domain(error, top) from None
    names = _names(tables)
    entries: dict[str, PlanEntry] = {}
    for position, (table, name) in enumerate(zip(tables, names, strict=True), start=1):
        entry = _entry(table, name, position, source)
        if entry.name in entries:
            here = _Place(source, f"mechanism[{position}]")
            raise here.error("name", entry.name, "a name that no other mechanism of the plan has")
        entries[entry.name] = entry
    return Plan(tuple(entries.values()), question, adjacent, source)


def _entry(table: Any, name: str, position: int, source: str) -> PlanEntry:
    place = _Place(source, f"mechanism[{position}]")
    if not isinstance(table, dict):
        raise place.error("", _plain(table), "a table, begun by [[mechanism]] on its own line")
    keys = cast(dict[str, Any], table)
    if "name" in keys:
        try:
            label("name", _plain(keys["name"]))
        except DomainError as error:
            raise place.from_domain(error, keys) from None
        place = _Place(source, f'mechanism[{position}] "{name}"')
    kind = _kind(keys, place)
    known = (*COMMON, *kind.parameters)
    _refuse_unknown(
        keys, known, place, elsewhere=_TOP, hint="it belongs above the first [[mechanism]] line"
    )
    for key in keys:
        _refuse_container(key, keys, place, nested=FORMS[key].nested)
    for required, key in kind.parameters.items():
        if key.required and required not in keys:
            raise place.error(
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
        raise place.from_domain(error, keys) from None
    except UnsupportedError as error:
        raise UnsupportedError(
            f"{source}: {place.table}: {error.what}", error.reason, error.remedy
        ) from None


def _kind(keys: dict[str, Any], place: _Place) -> MechanismKind:
    if "kind" not in keys:
        raise place.error("kind", None, f"a value, {choices('', MECHANISMS)}")
    kind = _plain(keys["kind"])
    if not isinstance(kind, str) or kind not in MECHANISMS:
        raise place.error("kind", kind, choices(kind, MECHANISMS))
    return MECHANISMS[kind]


def _names(tables: list[Any]) -> list[str]:
    """The names given; for the others the kind, with the position where two would be alike."""
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
    table: dict[str, Any], known: tuple[str, ...], place: _Place, *, elsewhere: Any, hint: str
) -> None:
    for key, value in table.items():
        if key not in known:
            expected = f"{choices(key, known)}" + (f"; {hint}" if key in elsewhere else "")
            raise place.error(_short(key), _plain(value), expected)


def _refuse_container(key: str, table: dict[str, Any], place: _Place, *, nested: int = 0) -> None:
    """Refuse a value that no key can have, before anything tries to print it."""
    items = _items(table.get(key), nested > 0)
    for _ in range(nested):
        items = [each for item in items for each in _items(item, True)]
    if any(isinstance(item, list | dict) for item in items):
        raise place.error(key, _plain(table.get(key)), "a plain value")
    if any(
        isinstance(item, int) and not -LARGEST_INTEGER <= item <= LARGEST_INTEGER for item in items
    ):
        raise place.error(
            key, "a larger integer", f"an integer of at most {len(str(LARGEST_INTEGER))} digits"
        )


def _items(value: Any, nested: bool) -> list[Any]:
    if isinstance(value, dict) and nested:
        return list(cast(dict[str, Any], value).values())
    return cast(list[Any], value) if isinstance(value, list) else [value]


def _plain(value: Any) -> Any:
    """`value` if it can safely be shown, otherwise its type in words."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int) and not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        return "a large integer"
    return value


def _short(key: str) -> str:
    return key if len(key) <= 60 and key.isprintable() else ascii(key[:60]) + "..."
