"""Errors of the library as answers: a status, and one sentence."""

from __future__ import annotations

import logging

from starlette.responses import JSONResponse, Response

from dpcompose.errors import (
    DPComposeError,
    LedgerError,
    OverdrawnError,
    QuotaError,
    StoreError,
    TamperedError,
    UnknownScopeError,
)
from dpcompose.serve.gate import RateLimit

_log = logging.getLogger("dpcompose.serve")
_causes = RateLimit(1 / 60, 1)
"""Each cause is logged once a minute, however many ask meanwhile."""


def refusal(error: DPComposeError) -> Response:
    """An error of the library as a status and one sentence."""
    kind = type(error).__name__
    if isinstance(error, StoreError | TamperedError) and _causes.admits(str(error)):
        _log.error("%s", error)  # whoever asks is not told what, nor where
    match error:
        case StoreError():
            said = "the ledger cannot be reached; ask again with the same key"
            return error_answer(503, "StoreError", said, uncertain=error.uncertain)
        case TamperedError():
            return error_answer(
                409, kind, "the ledger does not agree with itself; its keeper must look"
            )
        case OverdrawnError() | QuotaError():
            amounts = {"asked": str(error.asked), "left": str(error.left)}
            return error_answer(
                409, kind, str(error), scope=error.scope, currency=error.currency, **amounts
            )
        case UnknownScopeError():
            return error_answer(404, kind, str(error))
        case LedgerError():
            return error_answer(409, kind, str(error))
        case _:
            return error_answer(422, kind, str(error))


def error_answer(status: int, kind: str, reason: str, **fields: object) -> Response:
    """A status and one sentence, as JSON."""
    printable = " ".join(reason.split()).encode("utf-8", "backslashreplace").decode()
    headers = {"retry-after": "1"} if status in (429, 503) else None
    return JSONResponse({"error": kind, "reason": printable, **fields}, status, headers)
