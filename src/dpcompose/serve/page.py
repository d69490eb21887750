"""The dashboard: one page for each role, rendered here, with no script."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined

from dpcompose.errors import DPComposeError, StoreError
from dpcompose.ledger import Balance
from dpcompose.ledger.entry import GRANTED, REFUSED
from dpcompose.serve.identity import Identity
from dpcompose.serve.permission import Role
from dpcompose.serve.service import Service, shown

_TEMPLATES = files("dpcompose.serve") / "templates"
STYLE = (_TEMPLATES / "style.css").read_text()
LONGEST_LIST = 50


@cache
def _environment() -> Environment:
    names = ("base.html", "login.html", "dashboard.html")
    pages = {name: (_TEMPLATES / name).read_text() for name in names}
    return Environment(loader=DictLoader(pages), autoescape=True, undefined=StrictUndefined)


def login_page(problem: str) -> str:
    """Where a token is typed."""
    return _environment().get_template("login.html").render(problem=problem)


def page_for(service: Service, who: Identity, asked: Mapping[str, str]) -> str:
    """The page of an identity; what it asks in the URL is answered on it."""
    balances = [each for each in service.ledger.balances() if who.covers(each.scope.path)]
    entries = [
        entry
        for path in _tops([each.scope.path for each in balances])
        for entry in service.entries_of(path)
        if who.role is not Role.ANALYST or entry.actor == who.actor
    ]
    words = asked.get("words", "")[:200]
    found = (each for each in entries if words in each.body)
    granted = [each for each in entries if each.kind == GRANTED]
    largest = sorted(granted, key=lambda entry: max(entry.cost.units.values(), default=0), reverse=True)
    return (
        _environment()
        .get_template("dashboard.html")
        .render(
            who=who,
            bars=[bar for each in balances for bar in _bars(service, each)],
            entries=[shown(each) for each in islice(found, LONGEST_LIST)],
            largest=[shown(each) for each in largest[:10]],
            refused=[shown(each) for each in entries if each.kind == REFUSED][:10],
            asked={name: asked.get(name, "")[:4096] for name in ("scope", "mechanism", "words")},
            price=_price(service, who, asked),
            verified=service.verify(who, balances[0].scope.path, {}) if "verify" in asked and balances else None,
        )
    )


def _tops(paths: list[str]) -> list[str]:
    """The paths that have none of the others above them."""
    known = set(paths)
    return [each for each in paths if each.rpartition("/")[0] not in known]


def _bars(service: Service, balance: Balance) -> list[dict[str, Any]]:
    """One row for each capped currency of a scope; spent rounded up to be shown."""
    scope = balance.scope
    left = service.ledger.available(scope.path)
    return [
        {
            "scope": scope.path,
            "currency": name,
            "spent": str(balance.spent[name]),
            "left": str(left[name]) if name in left else "",
            "cap": str(cap),
            "share": min(1.0, float(balance.spent[name].fraction / cap.fraction)) if cap.units else 0.0,
        }
        for name, cap in scope.caps.items()
    ]


def _price(service: Service, who: Identity, asked: Mapping[str, str]) -> str:
    """The price of a question that was typed, or why there is none; empty if none was."""
    scope, mechanism = asked.get("scope", ""), asked.get("mechanism", "")
    if not (scope and mechanism) or who.role is Role.AUDITOR:
        return ""
    if not who.covers(scope):
        return "This scope is not yours."
    try:
        cost = service.price(who, scope, {"mechanism": mechanism})["cost"]
    except StoreError:
        raise
    except (DPComposeError, RecursionError, OverflowError, ZeroDivisionError) as error:
        return str(error)
    return ", ".join(f"{amount} of {name}" for name, amount in cost.items())
