"""Expressions over the columns of one row, which `where` and `mutate` take.

    adults = release.col("age") >= 18
    length = release.case((release.col("minutes") > 60, "long"), else_="short")

An expression is a value and cannot read other rows: no class exists for a window, an aggregate, a
subquery, a random number or the current time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from dpcompose import check
from dpcompose.errors import DomainError, UnknownMethodError, UnsupportedError
from dpcompose.release.columns import one_of, value_with_kind

# Methods of tables: what they are, why they are refused, and what to use instead.
_OF_TABLES = """
order_by sort_values sort | a sorted table | the place of a row follows from the rows of others | Sort the answer
limit head tail first top_k topk nlargest nsmallest | a part of the rows | others decide which rows are in it | Use where
distinct drop_duplicates unique | distinct rows | others decide whose row is kept | Ask session.units
aggregate agg count sum mean min max nunique value_counts describe info | an aggregate of a table | rows of several
  units become one | Ask the session for counts, sums and the like
group_by groupby over | a grouped table | rows of several units become one | Ask with by=
window rolling | a window | a row becomes a function of the rows of others | Ask the session for counts and sums
intersect difference | a set operation | one unit's rows decide there what others count | Use where
sample | a sample | its chance is not accounted for | Ask the whole table
sql | SQL of the engine's own | what is not known to be sound is refused | Use session.sql
cross_join asof_join semi_join anti_join inner_join left_join right_join outer_join any_inner_join any_left_join merge
  | a join by another name | a row of one unit would meet, or decide about, those of others
  | Use join(other, on=..., how='inner' or 'left'), on the unit or with a public table
unnest explode | an unnested column | how many rows come out is not bounded | Use where
pivot_wider pivot_longer pivot melt | a pivot | columns follow from rows of others | Ask with by= two columns
fill_forward ffill bfill interpolate | filling from other rows | a row takes values of others | Use fill_null
map apply pipe transform | a function of your own | what it does to rows is not known | Use release.col and its methods
filter query loc iloc | a filter by another name | conditions are expressions of release.col | Use where
rename drop relocate cast assign with_columns | columns by another name | two methods make columns | Use select and mutate
execute to_pandas to_polars to_pyarrow to_csv to_parquet collect show preview cache view | the rows themselves
  | rows are never shown | Ask the session for counts, sums and the like
[...] | a column or rows by an index | rows are never shown | Use select, where, and release.col(name) in expressions
"""
# Methods of columns, which are all of one sort: why they are refused, and what to use instead.
_OF_EXPRESSIONS = """
sum mean min max count nunique any all std var median quantile over rank dense_rank ntile percent_rank cume_dist lag
  lead cumsum cummax cummin first last nth collect mode topk argmin argmax approx_median approx_nunique value_counts
  corr cov shift diff rolling group_concat arbitrary
  | it is a function of the rows of others | Ask the session for aggregates
re_search re_extract re_replace re_split like ilike rlike match | it can take forever at one person's row, and engines
  read it in different ways | Use contains, starts_with or ends_with
random now today uuid row_number | its value does not follow from the row | Use its columns
isin isnull notnull fillna coalesce startswith endswith strip | it has another name here, or is not in the list
  | Use is_in, is_null, fill_null, starts_with, ends_with
** pow exp log sqrt ln | engines overflow, or round, in different ways | Use *, or release.case
// | engines divide integers in different ways | Use (a / b).floor()
[...] | an expression has no parts | Use its methods
"""


def by_name(lines: str) -> dict[str, list[str]]:
    """Return what lines such as "name other | reason | remedy" say of each name."""
    rows = [line.split(" | ") for line in lines.replace("\n  ", " ").strip().splitlines()]
    return {name: words for names, *words in rows for name in names.split()}


_REASONS = {"a table": by_name(_OF_TABLES), "an expression": by_name(_OF_EXPRESSIONS)}


def refused_method(of: str, name: str) -> UnknownMethodError:
    """Return the error that refuses a method of tables or of expressions; for Python it is a
    missing attribute.

    Args:
        of: "a table" or "an expression".
        name: The name of the method.
    """
    unknown = {
        "a table": (
            "what is not known to be sound is refused",
            "Use where, mutate, select, union and join",
        ),
        "an expression": (
            "it is not known to be sound, and alike on all engines",
            "Use the functions of release.col",
        ),
    }
    *clause, reason, remedy = _REASONS[of].get(name, unknown[of])
    return UnknownMethodError(
        f"{name} of {of}" + "".join(f" ({each})" for each in clause), reason, remedy
    )


def called(value: object) -> str:
    """Describe a value that was passed instead of an expression; it is neither evaluated nor shown."""
    module = type(value).__module__.partition(".")[0]
    if module == "ibis":
        return "an expression of ibis"
    if isinstance(value, str):
        return "a text"
    return "a function of your own" if callable(value) else type(value).__name__


DEEPEST = 150
"""The largest number of nested functions."""
LARGEST = 1e150
MOST_VALUES = 1_000
"""The largest number of values in a list, and of conditions in one chain of `and` or `or`."""
FARTHEST = 10**9
"""The largest position in a text."""
UNITS = ("year", "quarter", "month", "week")


Operator = Callable[["RowExpression", object], "RowExpression"]


def _operator(name: str, *, swapped: bool = False, negated: bool = False) -> Operator:
    """Return the method of an operator: the function of that name applied to both operands, swapped
    or negated on request.
    """

    def method(self: RowExpression, other: object) -> RowExpression:
        connect = _chain if name in ("and", "or") else call
        found = connect(name, *((other, self) if swapped else (self, other)))
        return ~found if negated else found

    return method


class RowExpression(ABC):
    """An expression whose value depends on one row only; made by `col`, `lit`, `case`, operators
    and methods.

    Every function is total: where it has no value, it is NULL. `==` and other comparisons build
    expressions; two expressions are the same if their `text` is.
    """

    @property
    @abstractmethod
    def text(self) -> str:
        """The expression as text; equal only for equal expressions."""

    def __repr__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> NoReturn:
        raise UnsupportedError(
            "and, or, not, in, a < b < c", "they test one value", "Use &, |, ~, is_in, between"
        )

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse methods of columns in other libraries that are no functions of one row."""
        raise refused_method("an expression", name)

    def __getitem__(self, item: object) -> NoReturn:
        raise refused_method("an expression", "[...]")

    def __pow__(self, other: object) -> NoReturn:
        raise refused_method("an expression", "**")

    def __floordiv__(self, other: object) -> NoReturn:
        raise refused_method("an expression", "//")

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", swapped=True)
    __mod__ = _operator("modulo")
    __lt__, __ge__ = _operator("less"), _operator("less", negated=True)
    __gt__, __le__ = (
        _operator("less", swapped=True),
        _operator("less", swapped=True, negated=True),
    )
    __and__, __or__ = _operator("and"), _operator("or")

    def __eq__(self, other: object) -> RowExpression:  # pyright: ignore[reportIncompatibleMethodOverride]
        return call("equal", self, other)

    def __ne__(self, other: object) -> RowExpression:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ~call("equal", self, other)

    def __neg__(self) -> RowExpression:
        return call("subtract", 0, self)

    def __invert__(self) -> RowExpression:
        return call("not", self)

    def is_null(self) -> RowExpression:
        """Whether the value is NULL."""
        return call("is_null", self)

    def fill_null(self, value: object) -> RowExpression:
        """The value, or `value` where it is NULL."""
        return call("fill_null", self, value)

    def is_in(self, values: Sequence[object]) -> RowExpression:
        """Whether it is one of these values, at most 1,000."""
        if (
            isinstance(values, str | bytes)
            or not isinstance(values, Sequence)  # pyright: ignore[reportUnnecessaryIsInstance]
            or not 1 <= len(values) <= MOST_VALUES
        ):
            raise DomainError(
                "values", type(values).__name__, f"a list of 1 to {MOST_VALUES:,} values"
            )
        return call("is_in", self, *(_literal(each) for each in values))

    def between(self, lower: object, upper: object) -> RowExpression:
        """Whether it is at least `lower` and at most `upper`."""
        return (self >= lower) & (self <= upper)

    def abs(self) -> RowExpression:
        """The absolute value of a number."""
        return call("abs", self)

    def floor(self) -> RowExpression:
        """The largest integer at or below a number; NULL beyond 2^53 in absolute value."""
        return call("floor", self)

    def remainder(self, by: object) -> RowExpression:
        """The remainder of an integer by a constant one, with the sign of the dividend, as `%` in
        SQL.

        `x % by` is from 0 to `by` - 1, as in Python.
        """
        return call("remainder", self, by)

    def lower(self) -> RowExpression:
        """A text with A to Z as a to z; other letters stay, since engines convert them differently."""
        return call("lower", self)

    def upper(self) -> RowExpression:
        """A text with a to z as A to Z; other letters stay."""
        return call("upper", self)

    def length(self) -> RowExpression:
        """The number of code points of a text."""
        return call("length", self)

    def substring(self, start: int, length: int = FARTHEST) -> RowExpression:
        """At most `length` code points of a text from position `start`, which counts from 1."""
        return call("substring", self, start, length)

    def right(self, length: int) -> RowExpression:
        """The last `length` code points of a text."""
        return call("right", self, length)

    def starts_with(self, text: str) -> RowExpression:
        """Whether a text begins with `text`."""
        return call("starts_with", self, _literal(text))

    def ends_with(self, text: str) -> RowExpression:
        """Whether a text ends with `text`."""
        return call("ends_with", self, _literal(text))

    def contains(self, text: str) -> RowExpression:
        """Whether a text contains `text`."""
        return call("contains", self, _literal(text))

    def year(self) -> RowExpression:
        """The year of a date."""
        return call("year", self)

    def month(self) -> RowExpression:
        """The month of a date, 1 to 12."""
        return call("month", self)

    def day(self) -> RowExpression:
        """The day of the month of a date."""
        return call("day", self)

    def quarter(self) -> RowExpression:
        """The quarter of a date, 1 to 4."""
        return call("quarter", self)

    def week(self) -> RowExpression:
        """The week of a date by ISO 8601, 1 to 53."""
        return call("week", self)

    def day_of_week(self) -> RowExpression:
        """The day of the week of a date, from 0 for Sunday to 6."""
        return call("day_of_week", self)

    def day_of_year(self) -> RowExpression:
        """The day of the year of a date, 1 to 366."""
        return call("day_of_year", self)

    def truncate(self, unit: str) -> RowExpression:
        """The first day of the year, quarter, month or week (from Monday) in which a date lies."""
        one_of("truncate", unit, UNITS)
        return call(f"first_of_{unit}", self)

    def date(self) -> RowExpression:
        """The date of a timestamp without a time zone."""
        return call("date", self)

    def cast(self, kind: str) -> RowExpression:
        """Convert to another kind: numbers and truth values to "float", truth values to "integer",
        integers to "text".

        Raises:
            UnsupportedError: For all other conversions, on which engines differ.
        """
        if kind not in ("float", "integer", "text"):
            remedy = "schema= gives the columns of a file their types; floor() makes integers"
            raise UnsupportedError(
                f"cast to {kind!r}", "engines convert differently, or fail at some rows", remedy
            )
        return call(f"as_{kind}", self)


@dataclass(frozen=True, eq=False, repr=False)
class ColumnName(RowExpression):
    """A column of the row.

    Args:
        name: Its name.
    """

    name: str

    @property
    def text(self) -> str:
        return f"col({self.name!r})"


@dataclass(frozen=True, eq=False, repr=False)
class LiteralValue(RowExpression):
    """A constant.

    Args:
        value: A truth value, a 64-bit integer, a float, a text or a date.
    """

    value: Any

    @property
    def text(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False, repr=False)
class FunctionCall(RowExpression):
    """A call of an allowed function.

    Args:
        name: Its name in `release.function`.
        arguments: The expressions it is applied to.
    """

    name: str
    arguments: tuple[RowExpression, ...]
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depths = [each.depth for each in self.arguments if isinstance(each, FunctionCall)]
        object.__setattr__(self, "depth", 1 + max(depths, default=0))
        if self.depth > DEEPEST:
            reason, remedy = (
                "engines would take long to read it",
                "Use fewer functions, such as is_in([...])",
            )
            raise UnsupportedError(
                f"an expression of more than {DEEPEST} functions inside each other", reason, remedy
            )

    @property
    def text(self) -> str:
        return f"{self.name}({', '.join(each.text for each in self.arguments)})"


def col(name: str) -> RowExpression:
    """A column of the table that the expression is used on.

    Raises:
        DomainError: If `name` is no name.
    """
    return ColumnName(check.line("name", name))


def lit(value: object) -> RowExpression:
    """A constant: a truth value, a 64-bit integer, a float up to 1e150 in absolute value, a text, a
    date.

    Raises:
        DomainError: If it is anything else; for NULL use `is_null`.
    """
    return _literal(value)


def case(*branches: tuple[object, object], else_: object) -> RowExpression:
    """The value of the first branch whose condition is true; a condition that is NULL is not.

    Args:
        branches: Pairs of a condition and a value, 1 to 100.
        else_: The value where no condition is true.

    Raises:
        DomainError: If a branch is no pair.
    """
    if not 1 <= len(branches) <= 100:
        raise DomainError("branches", len(branches), "1 to 100 pairs of a condition and a value")
    arguments: list[object] = []
    for each in branches:
        if not (isinstance(each, tuple) and len(each) == 2):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("branches", type(each).__name__, "pairs of a condition and a value")
        arguments += each
    return call("case", *arguments, else_)


_ONE_TO_ONE = {"add", "subtract", "multiply", "as_text", "lower", "upper", "fill_null"}


def one_to_one(expression: RowExpression, names: Mapping[str, str]) -> str | None:
    """Return the entry of `names` for the column that the expression maps one to one; None if that
    is not evident.
    """
    while isinstance(expression, FunctionCall) and expression.name in _ONE_TO_ONE:
        expression, *others = sorted(
            expression.arguments, key=lambda each: isinstance(each, LiteralValue)
        )
        if not all(isinstance(each, LiteralValue) for each in others):
            return None
    return names.get(expression.name) if isinstance(expression, ColumnName) else None


def row_expression(where: str, value: object) -> RowExpression:
    """Return the value as an expression; a truth value becomes a constant.

    Raises:
        UnsupportedError: If it is no expression; the error names the clause and describes the
            value.
    """
    if isinstance(value, bool):
        return LiteralValue(value)
    if not isinstance(value, RowExpression):
        reason = "only functions of one row are known to be sound"
        remedy = "Use release.col, release.lit, release.case and their methods"
        raise UnsupportedError(f"{where}: {called(value)}", reason, remedy)
    return value


def call(name: str, *arguments: object) -> RowExpression:
    """Apply an allowed function to expressions or constants."""
    return FunctionCall(
        name,
        tuple(each if isinstance(each, RowExpression) else _literal(each) for each in arguments),
    )


def _chain(name: str, one: object, other: object) -> RowExpression:
    """Connect conditions by `and` or `or` as one flat list; their order changes nothing."""
    parts = [each if isinstance(each, RowExpression) else _literal(each) for each in (one, other)]
    flat: list[RowExpression] = []
    for each in parts:
        flat += each.arguments if isinstance(each, FunctionCall) and each.name == name else (each,)
    if not len(flat) <= MOST_VALUES:
        what = f"more than {MOST_VALUES:,} conditions connected by {name}"
        raise UnsupportedError(
            what, "engines would take long to read it", "Use is_in([...]), or where several times"
        )
    return FunctionCall(name, tuple(flat))


def _literal(value: object) -> LiteralValue:
    kind, read = value_with_kind(value)
    if kind and read != -(2**63):
        return LiteralValue(read)
    if isinstance(value, float) and abs(value) <= LARGEST and not 0 < abs(value) < 1 / LARGEST:
        return LiteralValue(value + 0.0)
    domain = "True, False, a 64-bit integer, a float up to 1e150 in size, a text, or a date"
    shown = type(value).__name__
    if isinstance(value, int | float | str):
        shown = f"a text of {len(value):,} characters" if isinstance(value, str) else value
    raise DomainError("value", shown, domain, "NULL is asked for by is_null()")
