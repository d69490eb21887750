"""The catalog of a scope: which tables it has, written by its keeper when it is opened.

    definition = {"source": "visits.parquet", "unit": "patient", "max_rows_per_unit": 5, "ranges": {"age": (0, 120)}}
    release.Catalog.define(ledger, "world", {"visits": definition}, filter=Budget(3), actor="keeper")
    visits = release.Catalog(ledger, "world").table("visits")

Analysts name a table. Its source, unit and bounds are those of the catalog; the scope answers for no other table.
Ends of a column that the keeper knows are the default ones of questions; they are public, as is what they do to rows.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from dpcompose import check
from dpcompose.account import open_scope
from dpcompose.adaptive import Budget, Filter
from dpcompose.errors import DomainError, ReleaseError, ScopeExistsError, UnknownScopeError
from dpcompose.ledger import Ledger
from dpcompose.release.bounding import Binding
from dpcompose.release.public import PublicSource, public_source
from dpcompose.release.question import of_numbers
from dpcompose.release.session import Session
from dpcompose.release.spend import exact
from dpcompose.release.table import CATALOGUED, Table, table

_NEEDED = {"source", "unit", "max_rows_per_unit"}
_POSSIBLE = _NEEDED | {
    "max_groups_per_unit",
    "max_rows_per_group",
    "name",
    "schema",
    "line_breaks",
    "ranges",
}


@dataclass(frozen=True, init=False)
class Catalog:
    """The tables that the keeper of a scope defined.

    Args:
        ledger: The ledger of the scope.
        scope: The scope that its questions are charged to.

    Raises:
        UnknownScopeError: If there is no such scope.
        DomainError: If it was opened without a catalog.
    """

    ledger: Ledger
    scope: str
    version: str
    tables: Mapping[str, Mapping[str, Any]] = field(repr=False)
    public: Mapping[str, PublicSource] = field(repr=False)

    def __init__(self, ledger: Ledger, scope: str) -> None:
        note = cast("dict[str, Any]", ledger.balance(scope).scope.description.get("note", {}))
        said = note.get("catalog")
        if said is None:
            raise DomainError(
                "scope",
                scope,
                "a scope that was opened with a catalog",
                "Use release.Catalog.define",
            )
        try:
            found = {
                "version": str(said["version"]),
                "tables": {str(name): said["tables"][name] for name in said["tables"]},
                "public": {
                    name: PublicSource(name, **said["public"][name])
                    for name in said.get("public", {})
                },
            }
        except (AttributeError, KeyError, TypeError):
            raise ReleaseError(f"{scope}: its catalog cannot be read. Open another scope") from None
        for name, value in ({"ledger": ledger, "scope": scope} | found).items():
            object.__setattr__(self, name, value)

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
        """Open a scope with its catalog, for keepers; a scope has one for good.

        Args:
            ledger: Where.
            scope: Its path.
            tables: For each name the arguments of `release.table`: its source, a path or a URL without a password, its
                unit, and its bounds; and perhaps `ranges`, for columns of numbers their lower and upper ends.
            filter: The filter of its budget.
            actor: Who opens it.
            trust_view: Views of the database that may be asked.
            public: Public tables that may be joined by name, CSV or Parquet files; they are kept by their digest.

        Raises:
            DomainError: If a definition is not complete, or its table cannot be opened.
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
            definition: dict[str, Any] = dict(given) | {"source": _location(given["source"])}
            ranges = definition.pop("ranges", {})
            made = table(**definition)
            definition |= {"unit": list(made.unit), "ranges": _ranges(made, ranges)}
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
        known = {
            check.line("public", name): public_source(name, _location(path))
            for name, path in listed.items()
        }
        described = {
            name: {"source": each.source, "digest": each.digest} for name, each in known.items()
        }
        catalog = {"version": secrets.token_hex(16), "tables": said, "public": described}
        note = {"catalog": catalog, "trust_view": list(trust_view)}
        open_scope(ledger, scope, filter=filter, note=note, actor=actor)
        return cls(ledger, scope)

    def table(self, name: str) -> Table:
        """A table of the catalog, by its name.

        Raises:
            DomainError: If there is none, or its columns are no longer those that were catalogued.
        """
        if name not in self.tables:
            raise DomainError("name", name, f"one of {', '.join(self.tables)}")
        definition = dict(self.tables[name])
        types, ranges = definition.pop("types"), definition.pop("ranges", {})
        made = table(**definition)
        now = [[each.name, each.type] for each in made.columns]
        if now != types:
            raise DomainError(
                name,
                [each for each, _ in now],
                f"the columns catalogued, {types}",
                "Ask the keeper",
            )
        known = {each: (ends[0], ends[1]) for each, ends in ranges.items()}
        return replace(
            made,
            name=name,
            source=f"{CATALOGUED}{self.version} {name}",
            ranges=known,
            public_tables=self.public,
        )


def _ranges(source: Table, ranges: object) -> dict[str, list[str]]:
    """The ends of columns, as they are written down."""
    if not isinstance(ranges, Mapping):
        raise DomainError(
            "ranges", ranges, "a mapping from columns to their ends, such as {'age': (0, 120)}"
        )
    found: dict[str, list[str]] = {}
    for column, ends in cast("Mapping[str, Any]", ranges).items():
        name = f"ranges[{column!r}]"
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


def open_file(
    source: str | Path, *, person: str, budget: Any, delta: Any = 0, max_rows_per_person: int = 10
) -> Session:
    """A session for one person with one file; its ledger stands beside the file, and is told of on standard error.

    Opened again, what was spent stays spent. It is `release.open`.

    Args:
        source: A CSV or Parquet file.
        person: The column that names the person of a row.
        budget: The epsilon that all answers may cost together.
        delta: The delta that they may cost, for private keys.
        max_rows_per_person: Rows kept of one person; more rows mean more noise.

    Raises:
        DomainError: If the file cannot be opened, or was opened in other words.
    """
    check.count("max_rows_per_person", max_rows_per_person)
    path = Path(_location(source))
    definition: dict[str, Any] = {
        "source": str(path),
        "unit": [check.line("person", person)],
        "max_rows_per_unit": max_rows_per_person,
    }
    filter = Budget(budget, delta, only="basic")
    table(**definition).close()
    beside = path.with_name(f"{path.name}.ledger")
    ledger = Ledger.open(beside)
    scope = "file"
    try:
        found = Catalog(ledger, scope)
        note = ledger.balance(scope).scope.description["note"]
        if {name: found.tables["file"][name] for name in definition} != definition:
            raise ScopeExistsError(scope)
        # In other words, of another budget, it is refused; in the same ones nothing happens.
        open_scope(ledger, scope, filter=filter, note=cast("dict[str, Any]", note), actor="owner")
    except UnknownScopeError:
        found = Catalog.define(ledger, scope, {"file": definition}, filter=filter, actor="owner")
    except ScopeExistsError:
        ledger.close()
        domain = f"the words in which {beside.name} was opened before"
        said = f"person={person!r}, budget={budget}, delta={delta}, max_rows_per_person={max_rows_per_person}"
        raise DomainError(
            "release.open", said, domain, "A budget, person and bound stay as they are"
        ) from None
    sys.stderr.write(f"The budget of {path.name} is kept in {beside}\n")
    return Session(found.table("file"), ledger=ledger, scope=scope, actor="owner")


def _location(source: object) -> str:
    """A path in full, or a URL, without a password, that will be written down."""
    if not isinstance(source, str | Path):
        raise DomainError(
            "source", type(source).__name__, "a path or the URL of a database: a frame has no place"
        )
    if "://" not in str(source):
        return str(Path(source).resolve())
    if urlsplit(str(source)).password is not None or "password" in str(source).lower():
        raise DomainError(
            "source",
            "a URL with a password",
            "one without",
            "libpq reads passwords from its own file",
        )
    return str(source)


open = open_file
"""The name that it has in the room's face: `release.open`."""
