"""PostgreSQL."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.release.engine import Engine, EngineStatement, Expression, Relation

_RELATION = """
WITH RECURSIVE part(oid) AS (
    SELECT to_regclass(%s)::oid UNION SELECT inhrelid FROM pg_inherits JOIN part ON inhparent = part.oid
)
SELECT bool_and(relkind IN ('r', 'p') AND relpersistence <> 't' AND NOT relrowsecurity),
    min(nspname || '.' || relname) FILTER (WHERE relkind IN ('r', 'p') AND relpersistence <> 't')
FROM part JOIN pg_class ON pg_class.oid = part.oid JOIN pg_namespace ON pg_namespace.oid = relnamespace
"""


@dataclass(frozen=True)
class OnPostgreSQL(Engine):
    """Sums of bigint are numeric, without a limit; text sorts by its collation, so its UTF-8 bytes are sorted."""

    name: str = "PostgreSQL"

    def binary_collation(self, column: Expression) -> Expression:
        """Text made of bytes has the collation of the database itself: there, different texts are never equal."""
        return _text()(self.by_code_point(column), "UTF8")

    def by_code_point(self, column: Expression) -> Expression:
        return _bytes()(column.cast("string"), "UTF8")

    def digest(self, column: Expression) -> Expression:
        import ibis

        def md5(text: bytes) -> str: ...

        def decode(text: str, form: str) -> bytes: ...

        def get_byte(text: bytes, place: int) -> int: ...

        builtin: Any = ibis.udf.scalar.builtin
        found = builtin(decode)(builtin(md5)(self.by_code_point(column)), "hex")
        byte = builtin(get_byte, signature=(("binary", "int32"), "int32"))
        return sum(byte(found, place).cast("int64") * 256 ** (3 - place) for place in range(4))

    def as_double(self, column: Expression) -> Expression:
        """Where no precision is declared, numbers beyond 10^16 become that and those below 10^-60 become 0.

        PostgreSQL refuses to make a double of anything else. Its numeric NaN counts as larger than every number, here
        as in its own comparisons.
        """
        import ibis

        if column.type().precision is not None:
            return column.cast("float64")
        wide: Expression = ibis.cases((column > 10**16, 10**16), (column < -(10**16), -(10**16)), else_=column)
        return _rounded()(wide, 60).cast("float64")

    def relation(self, table: Any, backend: Any) -> Relation:
        """Views, foreign tables, temporary ones and row security are not plain, nor are tables with such parts."""
        from psycopg import sql

        schema = table.namespace.database
        name = sql.Identifier(*([schema] if schema else []), table.name).as_string(backend.con)
        plain, place = backend.con.execute(_RELATION, [name]).fetchone()
        info = backend.con.info
        place = f"postgresql {info.host} {info.port} {info.dbname} {place}" if place else None
        return Relation(f"{schema}.{table.name}" if schema else table.name, bool(plain), place)

    def require(self, backend: Any) -> None:
        """Refuse what cannot hold or hand over every text: there, the letters of one row would be an error."""
        for name in ("server_encoding", "client_encoding"):
            found = backend.con.info.parameter_status(name)
            if found != "UTF8":
                raise DomainError(name, found, "UTF8", "Copy the table to a database in UTF8, or set the client to it")

    def rows(self, asked: EngineStatement) -> Sequence[tuple[Any, ...]]:
        with asked.backend._safe_raw_sql(asked.words) as cursor:
            return cursor.fetchall()


def _rounded() -> Any:
    import ibis

    def round(number: object, places: int) -> object: ...

    builtin: Any = ibis.udf.scalar.builtin
    return builtin(round, signature=(("decimal", "int32"), "decimal"))


def _text() -> Any:
    import ibis

    def convert_from(text: bytes, encoding: str) -> str: ...

    builtin: Any = ibis.udf.scalar.builtin
    return builtin(convert_from, signature=(("binary", "string"), "string"))


def _bytes() -> Any:
    import ibis

    def convert_to(text: str, encoding: str) -> bytes: ...

    builtin: Any = ibis.udf.scalar.builtin
    return builtin(convert_to, signature=(("string", "string"), "binary"))
