"""A service to try: a city, two departments, and one person for each role."""

from __future__ import annotations

from pathlib import Path

from dpcompose.account import open_scope
from dpcompose.adaptive import ConcentratedFilter
from dpcompose.ledger import Ledger
from dpcompose.serve.identity import Identities
from dpcompose.serve.permission import Role
from dpcompose.serve.service import Service


def demo_service(folder: Path) -> tuple[Service, dict[str, str]]:
    """The service, in files of a folder, and the tokens by person."""
    ledger = Ledger.open(folder / "city.db")
    people = Identities.open(folder / "people.db")
    open_scope(ledger, "city", filter=ConcentratedFilter, epsilon=1, delta="1e-6", actor="keeper")
    for path in ("city/health", "city/schools"):
        open_scope(ledger, path, filter=ConcentratedFilter, epsilon="0.5", delta="1e-6", actor="keeper")
    invited = [
        ("Grace", Role.KEEPER, "city"),
        ("Ada", Role.ANALYST, "city/health"),
        ("Ben", Role.ANALYST, "city/schools"),
        ("Cleo", Role.AUDITOR, "city"),
    ]
    tokens = {f"{name}, {role} of {scope}": people.invite(name, role, scope) for name, role, scope in invited}
    return Service(ledger, people), tokens
