"""Routes for programs, each declared once by a handler; and the OpenAPI document that they make."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, TypeVar, cast

from dpcompose.errors import DomainError, KeyReusedError
from dpcompose.ledger import Amounts
from dpcompose.serve.identity import Identity, Permission, Role
from dpcompose.version import __version__

Fields = Mapping[str, Any]
Answer = dict[str, Any]
Schema = dict[str, Any]
LONGEST_MECHANISM = 20_000
_INTEGER = re.compile(r"[0-9]{1,19}", re.ASCII)
_FRACTION = re.compile(r"[0-9]{1,400}/[1-9][0-9]{0,399}", re.ASCII)


@dataclass(frozen=True)
class Field:
    """The type of a field.

    Args:
        schema: As OpenAPI describes it.
        read: The value of a field of that name, checked; raises DomainError.
    """

    schema: Schema
    read: Callable[[str, Any], Any]


@dataclass(frozen=True)
class Route(Permission):
    """A route for programs: who may ask it, its fields, and the handler that answers.

    Args:
        fields: By name, besides `scope`.
        defaults: Of the fields that need not be sent; where it is None, null is as good as nothing.
        handler: Called with the service, the identity, the scope and the fields as keywords.
        reads: Whether it reads many entries, and waits for its turn.
        exact: Whether other fields are refused; else they are ignored.
    """

    fields: Mapping[str, Field] = field(kw_only=True)
    defaults: Mapping[str, Any] = field(kw_only=True)
    handler: Callable[..., Answer] = field(kw_only=True)
    reads: bool = field(kw_only=True)
    exact: bool = field(kw_only=True)

    def read(self, fields: Fields) -> dict[str, Any]:
        """The fields of a request, checked, with defaults for those that were not sent.

        Raises:
            DomainError: One is missing, unknown, or outside its domain.
        """
        for name in fields:
            if self.exact and name not in self.fields and name != "scope":
                known = ", ".join(["scope", *self.fields])
                raise DomainError("fields", name, f"fields of this route: {known}")
        return {name: self._value(name, kind, fields) for name, kind in self.fields.items()}

    def _value(self, name: str, kind: Field, fields: Fields) -> Any:
        if name in self.defaults:
            default = self.defaults[name]
            if name not in fields or (default is None and fields[name] is None):
                return default
        value: Any = fields.get(name)
        if (
            self.method == "GET"
            and kind.schema["type"] == "integer"
            and _INTEGER.fullmatch(str(value))
        ):
            value = int(value)  # a URL holds it as text
        return kind.read(name, value)

    def answer(self, service: Any, who: Identity, scope: str, fields: Fields) -> Answer:
        """The answer to a request of an identity that may ask it; raises what `read` and the handler raise."""
        try:
            return self.handler(service, who, scope, **self.read(fields))
        except KeyReusedError:  # the ledger's key is a digest
            raise KeyReusedError(fields["key"], scope) from None

    @property
    def required(self) -> list[str]:
        """The names of the fields that must be sent."""
        return [name for name in self.fields if name not in self.defaults]

    def described(self, name: str) -> Schema:
        """The schema of a field."""
        nullable = {"nullable": True} if self.defaults.get(name, "") is None else {}
        return self.fields[name].schema | nullable


ROUTES: dict[str, Route] = {}
"""Every route for programs, by the name of its handler."""
Handler = TypeVar("Handler", bound=Callable[..., Answer])


def route(
    method: str, *roles: Role, name: str = "", reads: bool = False, exact: bool = False
) -> Callable[[Handler], Handler]:
    """Declare a handler as the route of its name, or of `name`, for these roles; see `Route`.

    Its keyword-only parameters are the fields, each annotated with one of the types of this module.
    """

    def declare(handler: Handler) -> Handler:
        own_name, parameters = (
            name or handler.__name__,
            inspect.signature(handler).parameters.values(),
        )
        kinds = inspect.get_annotations(handler, eval_str=True)
        own = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
        ROUTES[own_name] = Route(
            method,
            f"/v1/{own_name}",
            frozenset(roles),
            fields={each.name: kinds[each.name].__metadata__[0] for each in own},
            defaults={each.name: each.default for each in own if each.default is not each.empty},
            handler=handler,
            reads=reads,
            exact=exact,
        )
        return handler

    return declare


def line(description: str = "", *, most: int = 5000, least: int = 1, **more: Any) -> Field:
    """Text on one line."""

    def read(name: str, value: Any) -> str:
        if not (isinstance(value, str) and least <= len(value) <= most):
            raise DomainError(name, value, f"text of at most {most} characters on one line")
        if not (value.isprintable() and value in more.get("enum", [value])):
            domain = ", ".join(more.get("enum", ["text on one line"]))
            raise DomainError(name, value, domain)
        return value

    limits = {"minLength": least, "maxLength": most} if "enum" not in more else {}
    described = {"description": description} if description else {}
    return Field({"type": "string", **limits, **described, **more}, read)


def _checked(schema: Schema, domain: str, holds: Callable[[Any], bool]) -> Field:
    """A field whose values are taken as they are, if they lie in a domain."""

    def read(name: str, value: Any) -> Any:
        if not holds(value):
            raise DomainError(name, value, domain)
        return value

    return Field(schema, read)


def number(*, most: float) -> Field:
    """A number above 0."""
    schema = {"type": "number", "exclusiveMinimum": True, "minimum": 0, "maximum": most}
    domain = f"a number above 0, at most {most:g}"
    return _checked(schema, domain, lambda v: type(v) in (int, float) and 0 < v <= most)


def integer(description: str = "", *, least: int = 1, most: int = 2**63 - 1) -> Field:
    """An integer."""
    schema = {"type": "integer", "minimum": least, "description": description}
    domain = f"an integer from {least} to {most}"
    return _checked(schema, domain, lambda v: type(v) is int and least <= v <= most)


def texts(description: str) -> Field:
    """A mapping of texts."""
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    return _checked(schema | {"description": description}, "texts by name", _are_texts)


def _are_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(each, str) for each in cast("Answer", value).values()
    )


def amounts() -> Field:
    """Amounts by currency, each a text."""
    kind = texts("Amounts by currency, as decimal text; empty: none.")
    return Field(kind.schema, lambda name, value: Amounts.of(kind.read(name, value), name=name))


def mapping(description: str) -> Field:
    """An object of any members."""
    schema = {"type": "object", "description": description}
    return _checked(schema, "a mapping", lambda v: isinstance(v, dict))


Mechanism = Annotated[
    str, line("A mechanism as text, such as Gaussian(50.0).", most=LONGEST_MECHANISM)
]
Delta = Annotated[
    str | None, line("Where on its curve it is charged: decimal text, or a fraction.")
]
Key = Annotated[str, line("The idempotency key, one's own.")]
Before = Annotated[int | None, integer("As the page before this one said.", least=0)]
Text = Annotated[str, line(least=0)]
Caps = Annotated[Amounts, amounts()]
Name = Annotated[str, line("Of a person, without @.", most=100)]


def exact_delta(typed: str | None) -> str | Fraction | None:
    """A delta as it was typed, or as a fraction such as 1/1000, which is how a client writes any number exactly."""
    if typed is None or _FRACTION.fullmatch(typed) is None:
        return typed
    numerator, denominator = typed.split("/")
    return Fraction(int(numerator), int(denominator))


_SCOPE = line("The path of a scope in the own subtree, such as city/health.", most=512).schema
STATUSES = {
    "400": "The body is no JSON object.",
    "401": "No valid token.",
    "403": "Not this role, or not this scope.",
    "404": "No such scope.",
    "409": "The ledger, or a term, refuses; nothing was spent.",
    "413": "A body that is too large.",
    "422": "A value outside its domain.",
    "429": "Too many requests, or too many that wait for their turn.",
    "503": "The ledger cannot be reached; `uncertain` says whether a charge may have been made. Or it took too long.",
}
_ERROR: Schema = {
    "type": "object",
    "required": ["error", "reason"],
    "properties": {
        "error": {"type": "string"},
        "reason": {"type": "string"},
        "uncertain": {"type": "boolean"},
    },
}


def document(routes: Mapping[str, Route]) -> Schema:
    """The document of these routes, by name."""
    paths: dict[str, Schema] = {}
    for name, route in routes.items():
        operation = {
            "operationId": name,
            "summary": (route.handler.__doc__ or "").partition("\n")[0],
            "description": f"For: {', '.join(sorted(route.roles or ()))}.",
            **_parameters(route),
        }
        paths[route.path] = {route.method.lower(): {**operation, "responses": _responses()}}
    scheme = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "dpcompose serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}, "securitySchemes": scheme},
        "security": [{"token": []}],
    }


def _parameters(route: Route) -> Schema:
    """The parameters of a GET, or the body of a POST."""
    schemas = {"scope": _SCOPE, **{name: route.described(name) for name in route.fields}}
    required = ["scope", *route.required]
    if route.method == "GET":
        return {
            "parameters": [
                {"name": name, "in": "query", "required": name in required, "schema": schema}
                for name, schema in schemas.items()
            ]
        }
    body = {"type": "object", "required": required, "properties": schemas}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": body}}}}


def _responses() -> Schema:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    errors = {
        status: {"description": text, "content": content} for status, text in STATUSES.items()
    }
    answer = {
        "description": "The answer.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    return {"200": answer, **errors}
