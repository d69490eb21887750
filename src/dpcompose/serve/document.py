"""The OpenAPI document of the service, written from its declared routes."""

from __future__ import annotations

from collections.abc import Mapping

from dpcompose.serve.request import Answer as Schema, Route, line
from dpcompose.version import __version__

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
