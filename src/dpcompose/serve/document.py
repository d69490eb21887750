"""The OpenAPI document of the service: written from the table of permissions, and from the fields of each route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcompose.serve.agreement import MOST_TIMES
from dpcompose.serve.approval import APPROVED, DECLINED
from dpcompose.serve.identity import PERMISSIONS, YEAR, Role
from dpcompose.serve.quota import PERIODS
from dpcompose.serve.request import LONGEST_MECHANISM
from dpcompose.serve.reservation import LONGEST
from dpcompose.serve.service import PLACE
from dpcompose.version import __version__

Schema = dict[str, Any]


def _line(description: str, *, most: int = 5000, **more: Any) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description, **more}


def _texts(description: str) -> Schema:
    return {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": description,
    }


_SCOPE = _line("The path of a scope in the own subtree, such as city/health.", most=512)
_PRICED = {
    "mechanism": _line("A mechanism as text, such as Gaussian(50.0).", most=LONGEST_MECHANISM),
    "delta": {
        **_line("Where on its curve it is charged: decimal text, or a fraction."),
        "nullable": True,
    },
}
_KEY = {"key": _line("The idempotency key, one's own.")}
_AMOUNTS = "Amounts by currency, as decimal text; empty: none."
_NAME = {"name": _line("Of a person, without @.", most=100)}
_NOTE: Schema = {"type": "object", "description": "Anything else to keep with it."}
_AFTER: Schema = {
    "after": {"type": "integer", "minimum": 0, "description": "Where the last answer stopped."}
}
_BEFORE: Schema = {
    "before": {"type": "integer", "minimum": 0, "description": "As the page before this one said."}
}
_PLACE: Schema = {"name": {"type": "string", "enum": [PLACE]}}
_RESERVATION = {"reservation": _line("The key of the own reservation to use.")}
_SECONDS = {"type": "number", "exclusiveMinimum": True, "minimum": 0, "maximum": LONGEST}
_BUDGET: Schema = {
    "kind": {"type": "string", "enum": ["filter", "slots", "partition"], "default": "filter"},
    "filter": {
        "type": "string",
        "nullable": True,
        "description": "The name of a filter, if it is no budget of the target.",
    },
    "only": {
        "type": "string",
        "nullable": True,
        "enum": ["pure", "basic", "zcdp", "renyi", "gaussian", None],
        "description": "One theorem alone of the budget.",
    },
    "parameters": _texts("Of the filter, by name."),
    "target": _texts("epsilon, delta, mechanism_delta."),
    "slots": {"type": "integer", "nullable": True, "minimum": 1},
    "price_delta": {"type": "string", "nullable": True},
    "adjacency": {
        "type": "string",
        "enum": ["add-remove", "replace", "zero-out"],
        "default": "add-remove",
    },
    "odometer": {"type": "string", "nullable": True},
    "renew": {
        "type": "string",
        "nullable": True,
        "description": "year, quarter, month, week, day, or a duration.",
    },
    "note": _texts("Anything else to keep."),
}

FIELDS: Mapping[str, tuple[Schema, tuple[str, ...]]] = {
    "price": (_PRICED, ("mechanism",)),
    "charge": ({**_PRICED, **_KEY, "description": _NOTE, **_RESERVATION}, ("mechanism", "key")),
    "redeem": (
        {
            "receipt": _line("As the charge gave it."),
            "nonce": _line("Of the process that draws.", most=256),
        },
        ("receipt", "nonce"),
    ),
    "budget": ({}, ()),
    "kept": (_PLACE, ("name",)),
    "keep": (
        _PLACE | {"description": {"type": "object", "required": ["release"]}},
        ("name", "description"),
    ),
    "left": ({}, ()),
    "history": (_BEFORE, ()),
    "balances": ({}, ()),
    "entries": ({name: {"type": "string"} for name in ("actor", "kind", "words")} | _BEFORE, ()),
    "verify": (_AFTER, ()),
    "checkpoint": ({}, ()),
    "proof": ({"entry": {"type": "string"}}, ("entry",)),
    "reserve": (
        {
            **_PRICED,
            **_KEY,
            "seconds": _SECONDS,
            "times": {"type": "integer", "minimum": 1, "maximum": MOST_TIMES},
        },
        ("mechanism", "key", "seconds"),
    ),
    "unreserve": ({**_KEY, "reservation": _line("For keepers: its name.")}, ()),
    "request": (
        {**_PRICED, **_KEY, "reason": _line("Why, in words.")},
        ("mechanism", "key", "reason"),
    ),
    "requests": ({}, ()),
    "decide": (
        {
            "request": _line("Its name."),
            "decision": {"type": "string", "enum": [APPROVED, DECLINED]},
        },
        ("request", "decision"),
    ),
    "quota": (
        {
            "actor": _line("NAME@SUBTREE, or * for each.", most=256),
            "period": {"type": "string", "enum": list(PERIODS), "default": "total"},
            "caps": _texts(_AMOUNTS),
        },
        ("actor", "caps"),
    ),
    "threshold": ({"amounts": _texts(_AMOUNTS)}, ("amounts",)),
    "agreed": ({}, ()),
    "open": (_BUDGET, ()),
    "close": (_KEY, ("key",)),
    "invite": (
        {
            **_NAME,
            "role": {"type": "string", "enum": [str(role) for role in Role]},
            "days": {
                "type": "number",
                "exclusiveMinimum": True,
                "minimum": 0,
                "maximum": YEAR / 86400,
            },
            "subject": {
                **_line("At the issuer of identities; then no token is made.", most=255),
                "nullable": True,
            },
        },
        ("name", "role"),
    ),
    "revoke": (_NAME, ("name",)),
}
"""Of every route for programs, the fields besides `scope`, and those that must be there."""

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


def document(summaries: Mapping[str, str]) -> Schema:
    """The document.

    Args:
        summaries: A sentence for each route.
    """
    paths: dict[str, Schema] = {}
    for name in FIELDS:
        permission = PERMISSIONS[name]
        roles = ", ".join(sorted(permission.roles or ()))
        operation = {
            "operationId": name,
            "summary": summaries[name],
            "description": f"For: {roles}.",
            **_parameters(name),
        }
        paths[permission.path] = {
            permission.method.lower(): {**operation, "responses": _responses()}
        }
    scheme = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "dpcompose serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}, "securitySchemes": scheme},
        "security": [{"token": []}],
    }


def _parameters(name: str) -> Schema:
    """The parameters of a GET, or the body of a POST."""
    fields, required = FIELDS[name]
    if PERMISSIONS[name].method == "GET":
        scope = {"name": "scope", "in": "query", "required": True, "schema": _SCOPE}
        others = [
            {"name": each, "in": "query", "required": each in required, "schema": schema}
            for each, schema in fields.items()
        ]
        return {"parameters": [scope, *others]}
    body = {
        "type": "object",
        "required": ["scope", *required],
        "properties": {"scope": _SCOPE, **fields},
    }
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": body}}}}


def _responses() -> Schema:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    errors = {
        status: {"description": said, "content": content} for status, said in STATUSES.items()
    }
    answer = {
        "description": "The answer.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    return {"200": answer, **errors}
