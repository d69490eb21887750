"""Methods of tables and columns that are refused: each by its name, with why and the way to say it.

A method that is in no list is refused too; the lists only make the words better.
"""

from __future__ import annotations

from dpcompose.errors import UnknownMethodError

# Methods, what they are, why they are refused, and what to use.
_OF_TABLES = """
order_by sort_values sort | a sorted table | the place of a row follows from the rows of others | Sort the answer
limit head tail first top_k topk nlargest nsmallest | a part of the rows | which rows are in it follows from the rows
  of others | Use where
distinct drop_duplicates unique | distinct rows | whose row is kept follows from the rows of others | Ask
  session.units
aggregate agg count sum mean min max nunique value_counts describe info | an aggregate of a table | rows of several
  units become one | Ask the session for counts, sums and the like
group_by groupby over | a grouped table | rows of several units become one | Ask with by=
window rolling | a window | a row becomes a function of the rows of others | Ask the session for counts, sums and the
  like
cross_join | a cross join | a row of one unit meets those of all others | Join on the unit, or a public table
intersect | an intersection | one unit's rows decide there what others count | Use where
difference | a difference | one unit's rows decide there what others count | Use where
sample | a sample | its chance is not accounted for | Ask the whole table
sql | SQL of the engine's own | what is not known to be sound is refused | Use session.sql
asof_join | a join on the nearest key | a row meets those of others | Join on the unit, or a public table
semi_join | a semi join | one unit's rows decide there what others count | Join on the unit, with how='inner'
anti_join | an anti join | one unit's rows decide there what others count | Join on the unit, with how='left'
inner_join left_join right_join outer_join any_inner_join any_left_join merge | a join by another name | its rows
  would belong to several units, or to none | Use join(other, on=..., how='inner' or 'left')
unnest explode | an unnested column | how many rows come out is not bounded | Use where
pivot_wider pivot_longer pivot melt | a pivot | columns follow from rows of others | Ask with by= two columns
fill_forward ffill bfill interpolate | filling from other rows | a row takes values of others | Use fill_null
map apply pipe transform | a function of your own | what it does to rows is not known | Use the functions of
  release.col
filter query loc iloc | a filter by another name | conditions are expressions of release.col | Use where
rename drop relocate cast assign with_columns | columns by another name | columns are chosen and made by two methods |
  Use select and mutate
execute to_pandas to_polars to_pyarrow to_csv to_parquet collect show preview cache view | the rows themselves | rows
  are never shown | Ask the session for counts, sums and the like
[...] | a column or rows by an index | rows are never shown | Use select, where, and release.col(name) in expressions
"""
# The same, but for what they are: methods of columns have one sort each.
_OF_EXPRESSIONS = """
sum mean min max count nunique any all std var median quantile over rank dense_rank ntile percent_rank cume_dist lag
  lead cumsum cummax cummin first last nth collect mode topk argmin argmax approx_median approx_nunique value_counts
  corr cov shift diff rolling group_concat arbitrary | it is a function of the rows of others | Ask the session for
  aggregates
re_search re_extract re_replace re_split like ilike rlike match | it can take forever at one person's row, and engines
  read it in different ways | Use contains, starts_with or ends_with
random now today uuid row_number | its value does not follow from the row | Use its columns
isin isnull notnull fillna coalesce startswith endswith strip | it has another name here, or is not in the list | Use
  is_in, is_null, fill_null, starts_with, ends_with
** pow exp log sqrt ln | engines overflow, or round, in different ways | Use *, or release.case
// | engines divide integers in different ways | Use (a / b).floor()
[...] | an expression has no parts | Use its methods
"""


def _by_name(lines: str) -> dict[str, list[str]]:
    rows = [line.split(" | ") for line in lines.replace("\n  ", " ").strip().splitlines()]
    return {name: words for names, *words in rows for name in names.split()}


_REASONS = {"a table": _by_name(_OF_TABLES), "an expression": _by_name(_OF_EXPRESSIONS)}


def refused_method(of: str, name: str) -> UnknownMethodError:
    """The error that refuses a method of tables or of expressions; for Python it is a method that is not there.

    Args:
        of: "a table" or "an expression".
        name: The method.
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
    """The words for something given in place of an expression; it is not evaluated, nor shown."""
    module = type(value).__module__.partition(".")[0]
    if module == "ibis":
        return "an expression of ibis"
    if isinstance(value, str):
        return "a text"
    return "a function of your own" if callable(value) else type(value).__name__
