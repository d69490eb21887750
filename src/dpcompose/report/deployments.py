"""A ledger as a document for a public registry of deployments: what ran, on whose data, for how much in total."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dpcompose.ledger import Amounts, Anchor, Balance, Entry, Kind

FORMAT = "dpcompose deployments 1"
_SILENT = "not said"


def deployments_document(
    balances: Sequence[Balance], entries: Iterable[Entry], *, anchor: Anchor, producer: str
) -> dict[str, Any]:
    """One deployment for each scope that was charged itself, the totals of all, and the anchor that pins the history.

    No actor and no key is in it: a registry is public.
    """
    charged: dict[str, dict[str, dict[str, Any]]] = {}
    counts: dict[str, dict[str, int]] = {}
    times: dict[str, list[str]] = {}
    for entry in entries:
        counted = counts.setdefault(entry.scope, {"granted": 0, "refused": 0, "redeemed": 0})
        if entry.kind in counted:
            counted[entry.kind] += 1
            times.setdefault(entry.scope, []).append(entry.time)
        if entry.kind == "granted":
            _add(charged.setdefault(entry.scope, {}), entry)
    return {
        "format": FORMAT,
        "producer": producer,
        "deployments": [
            _deployment(balance, charged.get(path, {}), counts.get(path, {}), times.get(path, []))
            for balance in balances
            if (path := balance.scope.path) in charged or not balance.scope.parent
        ],
        "totals": {
            balance.scope.path: {"spent": balance.spent.texts(), "caps": balance.scope.caps.texts()}
            for balance in balances
        },
        "anchor": {root: {"entries": head.sequence, "hash": head.hash} for root, head in anchor.heads},
    }


def _add(mechanisms: dict[str, dict[str, Any]], entry: Entry) -> None:
    """Charges of one mechanism are one line, with how often and how much together."""
    said = entry.description
    name = said.get("mechanism") or said.get("opaque") or _SILENT
    line = mechanisms.setdefault(str(name), {"times": 0, "units": {}})
    line["times"] += 1
    for currency, units in entry.cost.units.items():
        line["units"][currency] = line["units"].get(currency, 0) + units


def _deployment(
    balance: Balance, mechanisms: dict[str, dict[str, Any]], counts: dict[str, int], times: list[str]
) -> dict[str, Any]:
    scope, said = balance.scope, balance.scope.description
    budget: dict[str, Any] = said.get("budget") or {}
    note: dict[str, Any] = said.get("note") or {}
    return {
        "name": scope.path,
        "unit": note.get("unit", _SILENT),
        "neighbors": budget.get("adjacency", _SILENT),
        "budget": budget.get("filter"),
        "caps": scope.caps.texts(),
        "spent": balance.spent.texts(),
        "left": {} if scope.kind is Kind.SLOTS else balance.left.texts(),
        "closed": balance.closed,
        "charges": {"granted": 0, "refused": 0, "redeemed": 0} | counts,
        "first": min(times, default=None),
        "last": max(times, default=None),
        "mechanisms": [
            {"mechanism": name, "times": line["times"], "cost": Amounts(line["units"]).texts()}
            for name, line in sorted(mechanisms.items())
        ],
    }
