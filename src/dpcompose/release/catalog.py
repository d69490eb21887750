"""The catalog of a scope: the list of its tables, written by the data keeper when the scope is
opened.

    definition = {"source": "visits.parquet", "unit": "patient", "max_rows_per_unit": 5}
    definition["ranges"] = {"age": (0, 120)}
    tables = {"visits": definition}
    release.Catalog.define(ledger, "world", tables, filter=BasicFilter(3), actor="keeper")
    visits = release.Catalog(ledger, "world").table("visits")

Analysts name a table. Its source, unit and bounds are those of the catalog; the scope answers for
no other table. If the keeper states the range of a column, questions use it by default; it is
public, and so is its effect on rows.
"""

# The drivers have types in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlsplit

from dpcompose import check
from dpcompose.account import open_scope
from dpcompose.adaptive import Budget, Filter
from dpcompose.errors import (
    DomainError,
    ReleaseError,
    ScopeExistsError,
    UnknownScopeError,
)
from dpcompose.ledger import Ledger
from dpcompose.release.arrow import PublicSource, PublicTables, public as public_table
from dpcompose.release.bounding import Binding
from dpcompose.release.columns import Bounds, TableColumn, one_of
from dpcompose.release.engines import OnDuckDB
from dpcompose.release.noise import exact
from dpcompose.release.query import KIND_TYPES, KINDS, Query
from dpcompose.release.question import of_numbers
from dpcompose.release.session import Session
from dpcompose.release.table import CATALOGUED, Table, columns_of, table

_NEEDED = {"source", "unit", "max_rows_per_unit"}
_BOUNDS = ("max_groups_per_unit", "max_rows_per_group")
LONGEST = 256
"""The number of letters of a text that a worker reads, where the catalog states no other."""
_POSSIBLE = _NEEDED | {*_BOUNDS, "name", "schema", "line_breaks", "ranges", "longest"}


class Catalog:
    """The tables that the keeper of a scope defined.

    Args:
        ledger: The ledger of the scope.
        scope: The scope that questions are charged to.

    Raises:
        UnknownScopeError: If there is no such scope.
        DomainError: If it was opened without a catalog.
    """

    def __init__(self, ledger: Ledger, scope: str) -> None:
        catalog = _note_of(ledger, scope).get("catalog")
        if catalog is None:
            domain = "a scope that was opened with a catalog"
            raise DomainError("scope", scope, domain, "Use release.Catalog.define")
        self.ledger, self.scope = ledger, scope
        try:
            self.version = str(catalog["version"])
            self.tables: Mapping[str, Mapping[str, Any]] = dict(catalog["tables"])
            self.public = {
                name: PublicSource(name, **own) for name, own in catalog.get("public", {}).items()
            }
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ReleaseError(f"{scope}: its catalog cannot be read. Open another scope") from None

    @classmethod
    def define(
        cls,
        ledger: Ledger,
        scope: str,
        tables: Mapping[str, Mapping[str, Any]],
        *,
        filter: Filter,
        actor: str,
        trust_view: Sequence[str] = (),
        public: Mapping[str, str | Path] | None = None,
    ) -> Catalog:
        """Open a scope with its catalog, which never changes; for keepers.

        Args:
            ledger: The ledger in which to open the scope.
            scope: The path of the scope.
            tables: Maps each name to the arguments of `release.table`: source (a path, or a URL
                without a password), unit and bounds; and optionally `ranges`, the lower and upper
                ends of columns of numbers.
            filter: The filter of its budget.
            actor: Who opens it.
            trust_view: Views of the database that may be queried.
            public: Public tables that may be joined by name: CSV or Parquet files, identified by
                their digest.

        Raises:
            DomainError: If a definition is incomplete, or its table cannot be opened.
            ScopeExistsError: If the scope exists.
        """
        if not isinstance(tables, Mapping) or not tables:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "tables", type(tables).__name__, "a mapping from names to definitions, at least one"
            )
        said: dict[str, dict[str, Any]] = {}
        units: dict[tuple[tuple[str, str], ...], str] = {}
        for name, given in tables.items():
            label = check.line("tables", name)
            if not isinstance(given, Mapping) or not _NEEDED <= {*given} <= _POSSIBLE:  # pyright: ignore[reportUnnecessaryIsInstance]
                domain = f"{', '.join(sorted(_NEEDED))}, and perhaps {', '.join(sorted(_POSSIBLE - _NEEDED))}"
                raise DomainError(f"tables[{label!r}]", [*given], domain)
            source = _location(given["source"], f"tables[{label!r}]: source")
            definition: dict[str, Any] = dict(given) | {"source": source}
            check.count("longest", definition.get("longest", LONGEST), least=1)
            made = table(**arguments_of_table(definition))
            ranges = _ranges(made, definition.get("ranges", {}))
            definition |= {"unit": list(made.unit), "ranges": ranges}
            said[label] = definition | {"types": [[each.name, each.type] for each in made.columns]}
            units.setdefault(Binding.of(made).unit, label)
            made.close()
        if len(units) > 1:
            (one, first), (other, second), *_ = units.items()
            remedy = "Name the columns alike, of one type, or give it a scope of its own"
            raise DomainError(
                f"tables[{second!r}]: unit",
                dict(other),
                f"{dict(one)}, as in tables[{first!r}]",
                remedy,
            )
        listed: Mapping[str, str | Path] = {} if public is None else public
        if not isinstance(listed, Mapping) or {*listed} & {*said}:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "public", type(listed).__name__, "a mapping from names that no table has to files"
            )
        described: dict[str, dict[str, str]] = {}
        for name, path in listed.items():
            label = check.line("public", name)
            file = _location(path, f"public[{label!r}]")
            described[label] = {"source": file, "digest": public_table(file).digest}
        catalog = {"version": secrets.token_hex(16), "tables": said, "public": described}
        note = {"catalog": catalog, "trust_view": list(trust_view)}
        open_scope(ledger, scope, filter=filter, note=note, actor=actor)
        return cls(ledger, scope)

    @property
    def described(self) -> dict[str, dict[str, Any]]:
        """The columns, unit, bounds and ranges of each table as plain values: everything that an
        analyst may see.
        """
        found: dict[str, dict[str, Any]] = {}
        for name, own in self.tables.items():
            groups, rows_per_group = (own.get(each) for each in _BOUNDS)
            bounds = Bounds.stated(
                own["max_rows_per_unit"], groups=groups, rows_per_group=rows_per_group
            )
            found[name] = {
                "version": self.version,
                "types": own["types"],
                "unit": own["unit"],
                "bounds": [bounds.rows, bounds.groups, bounds.rows_per_group],
                "ranges": own.get("ranges", {}),
            }
        return found

    def differing(self, tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Return what is stated otherwise in these definitions of the same tables, such as `visits.unit`."""
        found: list[str] = []
        for name, given in tables.items():
            label = f"tables[{name!r}]"
            check.kind(label, given, Mapping, "a definition of a table")
            unit, ranges = given.get("unit"), given.get("ranges", {})
            check.kind(f"{label}: ranges", ranges, Mapping, "a mapping from columns to their ends")
            stated = {
                **given,
                "source": _location(given.get("source"), f"{label}: source"),
                "unit": [unit] if isinstance(unit, str) else unit,
                "ranges": {column: _texts(ends) for column, ends in ranges.items()},
            }
            own = self.tables[name]
            found += [
                f"{name}.{each}"
                for each in sorted(({*stated} | {*own}) - {"types"})
                if stated.get(each) != own.get(each)
            ]
        return found

    def table(self, name: str) -> Table:
        """Return a table of the catalog by its name.

        Raises:
            DomainError: If there is none, or its columns are no longer those that were catalogued.
        """
        one_of("name", name, self.tables)
        made = table(**arguments_of_table(self.tables[name]))
        return catalogued(made, name, self.described[name], self.public)

    @staticmethod
    def without_rows(
        tables: Mapping[str, Mapping[str, Any]],
        public: PublicTables = MappingProxyType({}),
        *,
        invented: int = 0,
    ) -> dict[str, Table]:
        """Return empty tables with the described columns, units and bounds.

        Args:
            tables: Maps each name to its entry in `described`.
            public: The public tables of the catalog.
            invented: Made-up rows of each table.
        """
        engine, empty = OnDuckDB.embedded(), dict[str, Table]()
        for name, description in tables.items():
            columns = ", ".join(
                f"{engine.quoted(column)} {_stand_in(type)}"
                for column, type in description["types"]
            )
            engine.raw.execute(f"CREATE TABLE {engine.quoted(name)} ({columns})")
            data = replace(engine.table((name,)), types=dict(description["types"]))
            empty[name] = described_table(name, description, data, public)
        for name, own in empty.items() if invented else ():
            values = ", ".join(_invented(own, column) for column in own.columns)
            words = (
                f"INSERT INTO {engine.quoted(name)} SELECT {values} FROM RANGE({invented}) AS r(i)"
            )
            engine.raw.execute(words)
        return empty


_STAND_INS = {type: word for word, type in reversed(KINDS.items())}


def _stand_in(type: str) -> str:
    """Return the type of DuckDB for values of a type that it may not have."""
    if not type.startswith("decimal"):
        return _STAND_INS.get(type, "VARCHAR")
    digits = [int(each) for each in re.findall("[0-9]+", type)]
    return type if digits and max(digits) == digits[0] <= 38 else "DOUBLE"


def _invented(table: Table, column: TableColumn) -> str:
    """Return SQL for a made-up value of a column in row `i`: of its range, if it has one."""
    text, ends = table.engine.text, table.ranges.get(column.name, ())
    number = f"(HASH(i, {text(column.name)}) % 1000)::BIGINT"
    if column.name in table.unit:
        number = f"i // {min(table.bounds.rows, 3)}"
    match column.kind:
        case "text" if ends:
            return f"[{', '.join(map(text, ends))}][1 + {number} % {len(ends)}]"
        case "text":
            return f"'a' || ({number})"
        case "date":
            return f"DATE '2026-01-01' + ({number} % 365)::INTEGER"
        case "boolean":
            return f"{number} % 2 = 0"
        case "identifier":
            return f"MD5(({number})::VARCHAR)::UUID"
        case "other":
            return "NULL"
        case _:
            low, high = map(float, ends or (0, 100))
            return number if column.name in table.unit else f"{low} + {number} / 999 * {high - low}"


def described_table(
    name: str, description: Mapping[str, Any], data: Query, public: PublicTables
) -> Table:
    """Return a table of the catalog whose rows come from a query; see `catalogued`."""
    bounds, unit = Bounds(*description["bounds"]), tuple(description["unit"])
    made = Table(name, unit, bounds, columns_of(data), data=data)
    return catalogued(made, name, description, public)


def catalogued(
    source: Table, name: str, description: Mapping[str, Any], public: PublicTables
) -> Table:
    """Return a table as the catalog describes it.

    Raises:
        DomainError: If its columns are no longer those that were catalogued.
    """
    types = [[each.name, each.type] for each in source.columns]
    if types != [list(each) for each in description["types"]]:
        stated = [list(each) for each in description["types"]]
        other = [each for each in types if each not in stated]
        raise DomainError(
            name, other or types, f"the columns catalogued, {stated}", "Ask the keeper"
        )
    return replace(
        source,
        name=name,
        source=f"{CATALOGUED}{description['version']} {name}",
        ranges={column: tuple(ends) for column, ends in description["ranges"].items()},
        public_tables=public,
    )


def arguments_of_table(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `release.table` in a definition of a catalog."""
    others = ("types", "ranges", "longest")
    return {name: value for name, value in definition.items() if name not in others}


def _ranges(source: Table, ranges: object) -> dict[str, list[str]]:
    """Return the ranges in their stored form: lower and upper ends of numbers, possible values of
    texts.
    """
    domain = "a mapping from columns to their ends, such as {'age': (0, 120)}"
    check.kind("ranges", ranges, Mapping, domain)
    found: dict[str, list[str]] = {}
    for column, ends in cast("Mapping[str, Any]", ranges).items():
        name = f"ranges[{column!r}]"
        if source.column(column).kind == "text":
            found[column] = [str(source.column(column).key(name, each)) for each in ends]
            continue
        of_numbers(source, column)
        if not isinstance(ends, tuple | list) or len(cast("Sequence[Any]", ends)) != 2:
            raise DomainError(name, ends, "a lower and an upper end")
        least, most = (exact(name, each) for each in cast("Sequence[Any]", ends))
        if not least < most:
            raise DomainError(name, ends, "a lower end below the upper one")
        found[column] = [str(each) for each in cast("Sequence[Any]", ends)]
        for each in found[column]:
            exact(name, each)
    return found


def _texts(ends: Any) -> list[str] | None:
    """Return ends as a catalog stores them; None if they are no list."""
    return [*map(str, ends)] if isinstance(ends, list | tuple) else None


_NAMES = {"int": "integer", "str": "text", "bool": "boolean"}


def _declared(columns: object, source: Table) -> tuple[dict[str, str], dict[str, Sequence[Any]]]:
    """Return the types to read text columns as, and their declared values; no row is read.

    Raises:
        DomainError: If there is no such column or kind, or the file has the column in another type.
    """
    check.kind(
        "columns", columns, Mapping, "a mapping such as {'minutes': float, 'age': (int, 0, 120)}"
    )
    schema: dict[str, str] = {}
    ranges: dict[str, Sequence[Any]] = {}
    for column, stated in cast("Mapping[str, Any]", columns).items():
        parts = cast("Sequence[Any]", stated if isinstance(stated, tuple | list) else (stated,))
        first, values = parts[0] if parts else None, parts[1:]
        word = first.__name__ if isinstance(first, type) else str(first)
        kind, own, name = _NAMES.get(word, word), source.column(column).kind, f"columns[{column!r}]"
        if kind not in KIND_TYPES:
            domain = "float, int, str, bool or date, and perhaps the ends of the numbers or the values of the text"
            raise DomainError(name, word, domain)
        if own == "text" and kind != "text":
            schema[column] = KIND_TYPES[kind]
        elif own != kind and not (kind == "float" and own in ("integer", "decimal")):
            raise DomainError(name, kind, f"{own}, as the table has it")
        if values:
            ranges[column] = values
    return schema, ranges


def open_file(
    source: Any,
    *,
    person: str | None = None,
    budget: Any = None,
    columns: Mapping[str, Any] | None = None,
    delta: Any = None,
    max_rows_per_person: int | None = None,
    name: str | None = None,
    ledger: str | Path | None = None,
) -> Session:
    """Open a session for one person with one table; its ledger is a file beside the source.
    Exported as `release.open`.

        columns = {"minutes": (float, 0, 120)}
        visits = release.open("visits.csv", person="patient", budget=2, columns=columns)
        visits.sql("SELECT AVG(minutes) FROM visits", spend="5%")

    When it is opened again, earlier spending counts, and person, budget and columns may be omitted.
    A changed file is taken to hold the same people and keeps the same budget. What is left is
    printed on standard error.

    Args:
        source: A CSV or Parquet file, which names the table; or a frame.
        person: The column that identifies the person of a row.
        budget: The epsilon that all answers may cost together, for Budget(epsilon, 1e-6); or a
            filter.
        columns: What is known of columns without looking at rows: float, int, str, bool or date, or
            a tuple of that type and the lower and upper end of numbers, or the values of a text.
            Other columns of a CSV file are text.
        delta: The delta of the budget.
        max_rows_per_person: The rows kept of one person, by default 10; more rows need more noise.
        name: The table's name, for a frame.
        ledger: The ledger's file; by default beside the source. A frame needs one.

    Raises:
        DomainError: If the source is no table, a column or type does not fit, or an earlier opening
            had other arguments.
    """
    path = Path(_location(source, "source")) if isinstance(source, str | Path) else None
    if path is None and (ledger is None or name is None):
        raise DomainError(
            "source",
            type(source).__name__,
            "a file, or a frame with name= and ledger=",
            "A frame has no path",
        )
    place = Path(str(ledger) if path is None or ledger is not None else f"{path}.ledger")
    opened: Mapping[str, Any] | None = None
    with ExitStack() as failing:
        # Check that the source is a table that fits before anything is written.
        books = failing.enter_context(closing(Ledger.open(place))) if place.exists() else None
        with suppress(UnknownScopeError):
            opened = None if books is None else _note_of(books, "file")
        definition = _definition(source, opened, person, columns, max_rows_per_person)
        filter = _budget(budget, delta, opened)
        books = failing.enter_context(closing(Ledger.open(place))) if books is None else books
        if opened is not None:
            try:
                # Another budget is refused; with the same arguments this changes nothing.
                if filter is not None:
                    open_scope(books, "file", filter=filter, note=opened, actor="owner")
            except ScopeExistsError:
                domain = f"the budget with which {place.name} was opened before"
                raise DomainError(
                    "budget", budget, domain, "Leave it out to use the stored budget"
                ) from None
        elif path is not None:
            tables = {"file": {"source": str(path)} | definition}
            Catalog.define(books, "file", tables, filter=cast("Filter", filter), actor="owner")
        else:
            note = {"opened": definition}
            open_scope(books, "file", filter=cast("Filter", filter), note=note, actor="owner")
        failing.pop_all()
    if path is None:
        ranges = {name: tuple(ends) for name, ends in definition.pop("ranges", {}).items()}
        made = replace(table(source, name=name, **definition), ranges=ranges)
    else:
        made = replace(Catalog(books, "file").table("file"), name=path.stem)
    session = Session(made, ledger=books, scope="file", actor="owner")
    sys.stderr.write(
        f"{made.name}: {session.budget_in_words}. The budget is kept in {place}, whatever becomes of the rows\n"
    )
    return session


def _definition(
    source: Any, stored: Mapping[str, Any] | None, person: Any, columns: Any, rows: Any
) -> dict[str, Any]:
    """Return the arguments of `table` for a source: those stored by an earlier opening, or those
    given now.
    """
    said: dict[str, Any]
    if stored is not None:
        said = stored["catalog"]["tables"]["file"] if "catalog" in stored else stored["opened"]
    else:
        if person is None:
            raise DomainError(
                "person",
                None,
                "the column that names the person of a row, such as person='patient'",
            )
        said = {
            "unit": [check.line("person", person)],
            "max_rows_per_unit": 10 if rows is None else check.count("max_rows_per_person", rows),
        }
    definition: dict[str, Any] = {
        name: value for name, value in said.items() if name not in ("types", "source")
    }
    stated: dict[str, Any] = {
        "unit": None if person is None else [person],
        "max_rows_per_unit": rows,
    }
    plain = {name: value for name, value in definition.items() if name not in ("schema", "ranges")}
    opened = table(source, **plain)
    if columns is not None:
        schema, ranges = _declared(columns, opened)
        opened.close()
        opened = table(source, schema=schema, **plain)
        stated |= {"schema": schema, "ranges": _ranges(opened, ranges)}
    opened.close()
    for name, value in stated.items():
        if stored is not None and value is not None and value != said.get(name, {}):
            domain = f"{said.get(name)!r}, as it was opened before"
            remedy = "Person, columns and bound stay as they are"
            raise DomainError("release.open", f"{name}={value!r}", domain, remedy)
    return definition | {name: value for name, value in stated.items() if value is not None}


def _note_of(ledger: Ledger, scope: str) -> dict[str, Any]:
    """Return the note with which a scope was opened."""
    return cast("dict[str, Any]", ledger.balance(scope).scope.description.get("note", {}))


def _budget(budget: Any, delta: Any, stored: object) -> Filter | None:
    """Return the budget for an epsilon and a delta; None if one is stored and no other is given."""
    if budget is None and stored is None:
        domain = "the epsilon that all answers may cost together, such as budget=2"
        raise DomainError("budget", None, domain)
    if budget is None or isinstance(budget, Filter):
        return budget
    return Budget(budget, 1e-6 if delta is None else delta)


def _location(source: object, name: str) -> str:
    """Return an absolute path, or a URL without a password, that can be stored; errors name the
    argument `name`.
    """
    if not isinstance(source, str | Path):
        domain = "a path or the URL of a database, not a frame"
        raise DomainError(name, type(source).__name__, domain)
    if "://" not in str(source):
        return str(Path(source).resolve())
    if urlsplit(str(source)).password is not None or "password" in str(source).lower():
        remedy = "libpq reads passwords from its own file"
        raise DomainError(name, "a URL with a password", "one without", remedy)
    return str(source)


open = open_file
"""The public name of `open_file`: `release.open`."""
