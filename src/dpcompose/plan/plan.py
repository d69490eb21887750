"""A plan: named mechanisms, how often each runs, and the question asked of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpcompose.composition import Composition, compose
from dpcompose.errors import DomainError
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.plan import parse
from dpcompose.plan.entry import Entry
from dpcompose.plan.question import Question
from dpcompose.plan.schema import MECHANISMS, PARAMETERS, choices, quoted


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

    entries: tuple[Entry, ...]
    question: Question | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    source: str = "plan"

    def __post_init__(self) -> None:
        for name, value, kind, expected in (
            ("entries", self.entries, tuple, "a tuple of entries"),
            ("question", self.question, Question | None, "a Question or None"),
            ("adjacency", self.adjacency, Adjacency, "a member of Adjacency"),
            ("source", self.source, str, "text"),
        ):
            if not isinstance(value, kind):
                raise DomainError(name, value, expected)
        if not all(isinstance(entry, Entry) for entry in self.entries):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("entries", self.entries, "entries, each an Entry")
        names = [entry.name for entry in self.entries]
        if not names or len(set(names)) < len(names):
            raise DomainError("entries", names, "at least one mechanism, each with a name of its own")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[Any, ...]:
        return self.entries, self.question, self.adjacency

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """The plan in the file at `path`, text or a path; a PlanError names the fault and its place."""
        return cls.parse(parse.load(path), source=str(path))

    @classmethod
    def parse(cls, text: str, *, source: str = "plan") -> Plan:
        """The plan that the TOML `text` describes; errors call the text `source`."""
        parsed = parse.parse(text, source=source)
        return cls(parsed.entries, parsed.question, parsed.adjacency, source)

    def composition(self) -> Composition:
        """All mechanisms of the plan together, each as often as it runs."""
        return compose(*(entry.mechanism * entry.times for entry in self.entries))

    def toml(self) -> str:
        """The plan as TOML; parsing it gives an equal plan."""
        lines = [] if self.question is None else [f"{self.question.given} = {self.question.value!r}"]
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

    def locate(self, key: str) -> tuple[Entry, str]:
        """The entry and the parameter that a key such as `mechanism.training.sigma` names.

        Raises:
            DomainError: If there is no such mechanism, or it has no such parameter.
        """
        path, _, parameter = key.rpartition(".") if isinstance(key, str) else ("", "", "")  # pyright: ignore
        table, _, name = path.partition(".")
        if table != "mechanism" or not name:
            raise DomainError("key", key, f"mechanism.NAME.PARAMETER, such as mechanism.{self.entries[0].name}.times")
        entries: Mapping[str, Entry] = {entry.name: entry for entry in self.entries}
        if name not in entries:
            raise DomainError("key", key, f"a mechanism of the plan: {choices(name, entries)}")
        entry = entries[name]
        numbers = [each for each in (*MECHANISMS[entry.kind].parameters, "rate", "times") if PARAMETERS[each].response]
        if parameter not in numbers:
            raise DomainError("key", key, f"a number of a {entry.kind}: {choices(parameter, numbers)}")
        return entry, parameter

    def with_value(self, key: str, value: float) -> Plan:
        """The plan with one number replaced; `key` as in `locate`, `value` in the domain of that parameter."""
        entry, parameter = self.locate(key)
        argument: Any = PARAMETERS[parameter].read(parameter, value)
        if parameter in ("rate", "times"):
            changed = replace(entry, **{parameter: argument})
        else:
            given = dict(entry.parameters) | {parameter: argument}
            ordered = tuple((each, given[each]) for each in MECHANISMS[entry.kind].parameters if each in given)
            changed = replace(entry, parameters=ordered)
        return replace(self, entries=tuple(changed if each is entry else each for each in self.entries))
