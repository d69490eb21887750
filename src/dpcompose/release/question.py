"""The base classes of questions. A question is a value, valid for any table that has its columns."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from dpcompose import check
from dpcompose.errors import DomainError, PlanError, UnsupportedError
from dpcompose.files import load_text, read_toml
from dpcompose.release.aggregation import STEPS, Aggregation, FixedPointGrid, Term
from dpcompose.release.arrow import ARROW_TYPES
from dpcompose.release.columns import Change, Key, TableColumn
from dpcompose.release.design import Design, KeyThreshold, NoiseStep, Released, ReleaseStep, digest
from dpcompose.release.noise import SPEND_DOMAIN, Spend, noise_for, rho_within
from dpcompose.release.table import Table

MOST_KEYS = 1_000_000
MOST_QUESTIONS = 100
UNWRITTEN = {"table", "labels", "key"}
"""Arguments of a question that are not part of its document."""
Headings = Sequence[tuple[str, str]]
"""The names and types of columns of an answer."""
Interval = tuple[tuple[float, ...], tuple[float, ...]]
"""The low ends and the high ends of intervals, row by row."""


@dataclass(frozen=True)
class Values:
    """One column of an answer.

    Args:
        name: Its heading.
        type: Its Arrow type, which depends on the question and the table's columns alone.
        cells: Its values.
    """

    name: str
    type: str
    cells: tuple[Any, ...]


@dataclass(frozen=True)
class Question(ABC):
    """A question about groups of rows, with what it may cost.

    Args:
        by: The grouping columns; none for one answer about all rows.
        keys: The groups, known without looking at the table: values of the column, or tuples. All
            are released, in this order, empty ones too. None for private groups: those that enough
            units have are released, sorted, at the price of a delta.
        spend: What it may cost: {"epsilon": e} for Laplace noise; {"rho": r} for Gaussian noise;
            with a "delta" for private keys, or for Gaussian noise within an epsilon. If the budget
            is for replacing a unit, an epsilon of 1 is charged about 2, as a quote says.
        error: Instead of a spend: the largest error, as in `Answer.expected_error`; the least spend
            is found. With private keys the spend names the delta alone.
        confidence: The confidence of that error.
        table: The table; by default the session's.
        labels: New names for columns of the answer, such as SQL aliases; they do not change the
            request.
        key: An idempotency key, if asked alone: see `Session.ask`.
    """

    _: KW_ONLY
    by: str | Sequence[str] = ()
    keys: Sequence[Any] | None = field(default=None, repr=False)
    spend: Mapping[str, Any] | str | None = None
    error: Any = None
    confidence: float = 0.95
    table: Table | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, compare=False)
    key: str | None = field(default=None, repr=False, compare=False)
    kind: ClassVar[str]
    """The name of the question in answers and errors."""
    kinds: ClassVar[dict[str, type[Question]]] = {}
    """The classes whose questions can be written as plain values, by kind."""
    written: ClassVar[bool] = True
    main: ClassVar[str] = ""
    """The heading of its column, if that is not its kind."""
    foreseen: ClassVar[bool] = True
    """Whether its error is known before its answer."""
    in_ranks: ClassVar[bool] = False
    """Whether its error is in ranks: the number of rows between the chosen value and the target."""
    error_column: ClassVar[int] = 0
    """The index of the released column that the error describes."""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls) and cls.written:
            cls.kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        check.open_probability("confidence", self.confidence)
        if self.error is not None:
            check.positive("error", self.error)
        if self.key is not None:
            check.line("key", self.key)
        if self.spend is not None and not isinstance(self.spend, str):
            check.kind("spend", self.spend, Mapping, f'{SPEND_DOMAIN}, or "5%"')
        if not isinstance(self.keys, Sized | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("keys", self.keys, f"a list of 1 to {MOST_KEYS:,} keys")

    @abstractmethod
    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        """Decide everything that does not depend on the data, for the question's own spend or the
        one given.

        Raises:
            DomainError: If the table has no such column, or a number is outside its domain.
        """

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        """Return the answer's columns besides its keys."""
        return (Values(self.heading, "int64", tuple(cell[-1] for cell in drawn.released[0])),)

    @property
    def heading(self) -> str:
        """The name of the column that its error describes."""
        return self.main or self.kind.replace(" ", "_")

    def errors(
        self, design: Design, failure: float, columns: Sequence[Values]
    ) -> tuple[float, ...] | float:
        """Return a bound on the noise that fails with that probability, in the answer's unit: one
        number, or one for each row.
        """
        return float(design.noises[0].error(failure))

    def interval(self, design: Design, failure: float, columns: Sequence[Values]) -> Interval:
        """Return the low and high ends of the main column, row by row, which fail with that
        probability; NaN where unknown.
        """
        cells = columns[len(design.aggregation.by) + self.error_column].cells
        errors = self.errors(design, failure, columns)
        each = errors if isinstance(errors, tuple) else (errors,) * len(cells)
        low = tuple(cell - error for cell, error in zip(cells, each, strict=True))
        return low, tuple(cell + error for cell, error in zip(cells, each, strict=True))

    def ordered(self, drawn: Released) -> Released:
        """Return the released groups in order: all of them, unless the question chooses among noisy
        numbers.
        """
        return drawn

    def plain(self) -> dict[str, Any]:
        """Return the question as plain values, which `questions` reads.

        Raises:
            UnsupportedError: If it names a table of its own.
        """
        if self.table is not None:
            raise UnsupportedError(
                "a question about a table that was changed",
                "it cannot be written",
                "Ask it in SQL",
            )
        written = [each for each in fields(self) if each.name not in UNWRITTEN]
        stated = {each.name: (getattr(self, each.name), each.default) for each in written}
        own = {name: value for name, (value, default) in stated.items() if value != default}
        return json.loads(json.dumps({"kind": self.kind, **own}, default=str))

    def bought(self, spend: Mapping[str, Any]) -> Question:
        """Return the same question with a spend instead of an error."""
        return replace(self, spend=spend, error=None)

    def designed(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        """Return the design for the question's own table, or for the given one if it names none."""
        if not (self.table is None or isinstance(self.table, Table)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "table", type(self.table).__name__, "a table made by release.table(...)"
            )
        return self.design(table if self.table is None else self.table, spend)

    def _spend(self, spend: Mapping[str, Any] | None) -> Spend:
        return Spend.stated(spend if self.spend is None else self.spend)

    def _groups(self, table: Table) -> tuple[tuple[str, ...], tuple[Key, ...] | None]:
        """Return the grouping columns, and the public keys or None."""
        by = (self.by,) if isinstance(self.by, str) else tuple(self.by)
        if len(set(by)) < len(by):
            raise DomainError("by", self.by, "different columns")
        columns = tuple(table.column(check.line("by", name)) for name in by)
        for column in columns:
            column.require_key("by")
        if not by:
            if self.keys is not None:
                raise DomainError("keys", len(self.keys), "nothing without by=")
            return (), ((),)
        if (
            self.keys is None
            and table.unit
            and {*table.unit} <= {table.copies.get(name, name) for name in by}
        ):
            domain = "columns in which units agree: private groups of one unit each never come out"
            raise DomainError(
                "by",
                self.by,
                domain,
                "GROUP BY another column, or name the groups: keys=, or x IN (...)",
            )
        return by, None if self.keys is None else _checked(self.keys, columns)

    def _described(
        self, by: Sequence[str], public: Sequence[Key] | None, **more: object
    ) -> dict[str, object]:
        keys = "private" if public is None else {"number": len(public), "digest": digest(public)}
        return {"question": self.kind, "by": list(by), "keys": keys} | more

    def _measured(
        self, table: Table, spend: Mapping[str, Any] | None, what: Aggregation, changes: Sequence[Change], *,
        first: int = 0, weights: Sequence[int] = (), **described: object,
    ) -> Design:  # fmt: skip
        """Return the design that adds noise to integers with these sensitivities, one step for
        each.

        `first` is the position of the first such integer after the number of units.
        """
        asked = self._spend(spend)
        paid, private = asked, what.public is None
        if len(changes) > 1 and asked.delta and not private and asked.currency == "epsilon":
            # Several Gaussians within one (epsilon, delta) divide the budget in rho, which composes
            # without loss.
            paid = Spend(Fraction(rho_within(asked)), "rho")
        makers = [partial(_noise_step, change) for change in changes]
        measures = range(first + private, first + private + len(changes))
        return self._in_parts(
            table, asked, what, makers, tuple(measures), paid=paid, weights=weights, **described
        )

    def _summed(
        self, table: Table, spend: Mapping[str, Any] | None, terms: Sequence[Term], *,
        counted: bool = False, weights: Sequence[int] = (), **described: object,
    ) -> Design:  # fmt: skip
        """Return the design that adds noise to sums, and before them to the number of rows if that
        is `counted`.
        """
        what = Aggregation(*self._groups(table), terms=tuple(terms))
        sizes = [term.largest for term in terms]
        bounds, first = table.bounds.within(what.groups), 0 if counted else 1
        changes = [bounds.change(size) for size in ([1, *sizes] if counted else sizes)]
        return self._measured(
            table, spend, what, changes, first=first, weights=weights, **described
        )

    def _in_parts(
        self, table: Table, named: Spend, what: Aggregation, makers: Sequence[Callable[[Spend], ReleaseStep]],
        measures: tuple[int, ...], *, paid: Spend | None = None, weights: Sequence[int] = (), **described: object,
    ) -> Design:  # fmt: skip
        """Return the design whose steps each get a part of the spend; private keys take one more
        part.

        The parts are equal without `weights`. `paid` is the amount to divide, if it differs from
        the named spend.
        """
        private, weights = what.public is None, weights or (1,) * len(makers)
        if private:
            KeyThreshold.require(named)
        part = Fraction(1, sum(weights) + private)
        # With private keys the delta belongs to the threshold, so an epsilon buys Laplace noise.
        steps = tuple(
            make((paid or named).part(weight * part, delta=not private))
            for make, weight in zip(makers, weights, strict=True)
        )
        threshold = None
        if private:
            each = named.part(part).with_delta(named.delta)
            threshold = KeyThreshold.costing(table.bounds.presence, each)
        plain = self._described(what.by, what.public, **described)
        return Design(table, what, steps, measures, threshold, spend=named, description=plain)

    def _of_keys(
        self, table: Table, spend: Mapping[str, Any] | None, what: Aggregation, change: Change, measure: int
    ) -> Design:  # fmt: skip
        """Return the design that releases only the numbers that decide about private keys."""
        asked, plain = self._spend(spend), self._described(what.by, what.public)
        threshold = KeyThreshold.costing(change, asked, measure=measure)
        return Design(table, what, (), (), threshold, spend=asked, description=plain)


def _noise_step(change: Change, part: Spend) -> NoiseStep:
    return NoiseStep(noise_for(change, part))


class Quotient(Question):
    """A question whose answer is a quotient of noisy sums and whose error follows from its
    interval.
    """

    foreseen: ClassVar[bool] = False

    headings: ClassVar[Headings]
    """The names and types of the answer's columns besides its keys; a name may hold `{self.field}`."""

    @abstractmethod
    def row(self, design: Design, *numbers: int) -> tuple[float, ...]:
        """Return the cells of one group from its noisy sums."""

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        groups = zip(*drawn.released, strict=True)
        rows = [self.row(design, *(number for (number,) in group)) for group in groups]
        cells = list(zip(*rows, strict=True)) if rows else [()] * len(self.headings)
        named = [(name.format(self=self), type) for name, type in self.headings]
        return tuple(Values(*own, each) for own, each in zip(named, cells, strict=True))

    @abstractmethod
    def ends(self, design: Design, failure: float, *released: Any) -> tuple[float, float]:
        """Return the interval of the main column of one row, computed from its released numbers."""

    @abstractmethod
    def most(self, design: Design, failure: float, count: int) -> float:
        """Return a bound on the error before the answer, from the number of rows alone."""

    def interval(self, design: Design, failure: float, columns: Sequence[Values]) -> Interval:
        released = columns[len(design.aggregation.by) :]
        rows = zip(*(each.cells for each in released), strict=True)
        both = [self.ends(design, failure, *row) for row in rows]
        return tuple(low for low, _ in both), tuple(high for _, high in both)

    def errors(
        self, design: Design, failure: float, columns: Sequence[Values]
    ) -> tuple[float, ...]:
        """Return for each row how far the exact quotient can be from the released one; for a bare
        count, a bound.
        """
        if len(columns) == 1:
            return tuple(self.most(design, failure, number) for number in columns[0].cells)
        low, high = self.interval(design, failure, columns)
        cells = columns[len(design.aggregation.by)].cells
        return tuple(
            max(most - cell, cell - least)
            for least, cell, most in zip(low, cells, high, strict=True)
        )


@dataclass(frozen=True)
class OfColumn(Question):
    """A question about one column of numbers.

    Args:
        column: The name of the column.
    """

    column: str

    def __post_init__(self) -> None:
        super().__post_init__()
        check.line("column", self.column)


@dataclass(frozen=True)
class Clamped(OfColumn):
    """A question about one column of numbers, clamped to a declared range.

    Args:
        lower: Smaller values count as this; by default the catalog's lower end.
        upper: Larger values count as this; by default the catalog's upper end.
        granularity: The step of the grid.
    """

    _: KW_ONLY
    lower: Any = None
    upper: Any = None
    granularity: Any = None

    steps: ClassVar[int] = STEPS
    """The least number of steps of the range, if no granularity is given."""

    def _grid(self, table: Table) -> FixedPointGrid:
        ends = self.lower, self.upper, self.granularity
        return grid_of(table, self.column, *ends, steps=self.steps)


def grid_of(
    table: Table, column: str, lower: Any, upper: Any, granularity: Any, *, steps: int = STEPS
) -> FixedPointGrid:
    """Return the grid of a column over a range, as typed.

    Raises:
        DomainError: If it is no column of numbers, or an end or the granularity is outside its
            domain.
    """
    whole = of_numbers(table, column).kind in ("integer", "boolean")
    lower, upper = table.ends(column, lower, upper)
    return FixedPointGrid.stated(lower, upper, granularity, whole=whole, steps=steps)


def spec(column: str, grid: FixedPointGrid) -> dict[str, Any]:
    """Return a column and its grid as the ledger stores them."""
    ends = {name: str(getattr(grid, name)) for name in ("lower", "upper", "granularity")}
    return {"column": column, **ends}


def on_grid(name: str, grid: FixedPointGrid, steps: Iterable[int]) -> Values:
    """Return step counts as the numbers that they stand for; as integers if the grid has only
    integers.
    """
    if grid.granularity == 1:
        return Values(name, "int64", tuple(steps))
    return Values(name, "double", tuple(grid.value(each) for each in steps))


def questions_of(value: Any) -> tuple[Question, ...]:
    """Return `value` as a list of 1 to 100 questions.

    Raises:
        DomainError: If it is no list of them, or is too long.
    """
    questions = tuple(cast("Sequence[Any]", value)) if isinstance(value, Sequence) else (value,)
    for each in questions:
        domain = "a list of questions of type Question, such as [Count()]"
        check.kind("questions", each, Question, domain)
    if not 1 <= len(questions) <= MOST_QUESTIONS:
        raise DomainError("questions", len(questions), f"1 to {MOST_QUESTIONS} questions")
    return questions


def key_columns(table: Table, by: Sequence[str], keys: Sequence[Key]) -> tuple[Values, ...]:
    """Return the keys of an answer as columns."""
    types = [ARROW_TYPES[table.column(name).kind] for name in by]
    return tuple(
        Values(name, type, tuple(key[position] for key in keys))
        for position, (name, type) in enumerate(zip(by, types, strict=True))
    )


def of_numbers(table: Table, name: str) -> TableColumn:
    """Return the column of that name, which must hold numbers.

    Raises:
        DomainError: If there is none, or it holds something else.
    """
    column = table.column(name)
    if not column.numeric:
        remedy = f"It holds {column.type}; schema= (--schema {name}=float64) gives text a type"
        raise DomainError("column", name, "a column of numbers", remedy)
    return column


def _checked(keys: Sequence[Any], columns: Sequence[TableColumn]) -> tuple[Key, ...]:
    if isinstance(keys, str) or not 1 <= len(keys) <= MOST_KEYS:
        raise DomainError(
            "keys",
            keys if isinstance(keys, str) else len(keys),
            f"a list of 1 to {MOST_KEYS:,} keys",
        )
    found: list[Key] = []
    for position, given in enumerate(keys):
        name = f"keys[{position}]"
        parts = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)
        if len(parts) != len(columns):
            raise DomainError(name, given, f"a tuple of {len(columns)} values")
        found.append(
            tuple(column.key(name, part) for column, part in zip(columns, parts, strict=True))
        )
    if len(set(found)) < len(found):
        raise DomainError(
            "keys", len(found), f"different keys; {len(found) - len(set(found))} occur again"
        )
    return tuple(found)


LARGEST_FILE = 1_000_000


def questions(source: str | Path | list[object]) -> tuple[Question, ...]:
    """Return the questions of a TOML file, or of a list of documents as `Question.plain` writes
    them.

    Keys of groups are lists of values, or of lists of values for several columns.

    Raises:
        DomainError: If the source is neither text, a path nor a list.
        PlanError: If the file cannot be read, or a table describes no question.
    """
    if isinstance(source, list):
        return tuple(_question(each, "questions", str(at)) for at, each in enumerate(source))
    file = str(source)
    document = read_toml(load_text(source, most=LARGEST_FILE, what="a file"), source=file)
    tables = document.pop("question", None)
    if document:
        name, value = next(iter(document.items()))
        raise PlanError(file, "", name, value, "[[question]] tables and nothing else")
    if not isinstance(tables, list) or not tables:
        raise PlanError(file, "", "question", tables, "at least one [[question]] table")
    return tuple(
        _question(table, file, f"question[{position}]")
        for position, table in enumerate(cast("list[object]", tables), start=1)
    )


def _question(table: object, file: str, position: str) -> Question:
    if not isinstance(table, dict):
        raise PlanError(file, position, "", table, "a table")
    stated = cast("dict[str, Any]", table)
    kind = stated.get("kind")
    if not isinstance(kind, str) or kind not in Question.kinds:
        raise PlanError(file, position, "kind", kind, f"one of {', '.join(Question.kinds)}")
    own = {each.name: each.default is MISSING for each in fields(Question.kinds[kind])}
    possible = {"kind", *own} - UNWRITTEN
    for name in sorted(possible - {*stated}):
        if own.get(name):
            raise PlanError(file, position, name, None, f"a value; a {kind} needs it")
    for name in sorted({*stated} - possible):
        raise PlanError(file, position, name, stated[name], f"one of {', '.join(sorted(possible))}")
    arguments = {name: value for name, value in stated.items() if name != "kind"}
    by, keys = arguments.get("by", ""), arguments.get("keys", [])
    names = cast("list[Any]", [by] if isinstance(by, str) else by)
    if not isinstance(by, str | list) or not all(isinstance(each, str) for each in names):
        raise PlanError(file, position, "by", by, "the name of a column, or a list of names")
    if not isinstance(keys, list):
        raise PlanError(file, position, "keys", keys, "a list of values")
    if "keys" in arguments:
        listed = cast("list[Any]", keys)
        arguments["keys"] = [
            tuple(cast("list[Any]", each)) if isinstance(each, list) else each for each in listed
        ]
    try:
        return Question.kinds[kind](**arguments)
    except (DomainError, TypeError) as error:
        raise PlanError(file, position, "", None, str(error)) from None
