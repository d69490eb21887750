"""A service to try: a city, two departments with their charges, and one person for each role."""

from __future__ import annotations

from pathlib import Path

from dpcompose.account import open_scope
from dpcompose.ledger import Checkpoint, Ledger, SigningKey
from dpcompose.mechanisms import Gaussian
from dpcompose.serve.identity import Identities, Role
from dpcompose.serve.service import Published, Service


def demo_service(folder: Path) -> tuple[Service, dict[str, str]]:
    """The service, in files of a folder, and the tokens by person."""
    ledger = Ledger.open(folder / "city.db")
    people = Identities(ledger)
    open_scope(ledger, "city", only="zcdp", epsilon=1, delta="1e-6", actor="keeper")
    for path in ("city/health", "city/schools"):
        open_scope(ledger, path, only="zcdp", epsilon="0.5", delta="1e-6", actor="keeper")
    invited = [
        ("Grace", Role.KEEPER, "city"),
        ("Ada", Role.ANALYST, "city/health"),
        ("Ben", Role.ANALYST, "city/schools"),
        ("Cleo", Role.AUDITOR, "city"),
    ]
    tokens = {
        f"{name}, {role} of {scope}": people.invite(name, role, scope)
        for name, role, scope in invited
    }
    service = Service(ledger, people)
    for number, (name, path) in enumerate([("Ada", "city/health"), ("Ben", "city/schools")] * 3):
        service.account(path).charge(
            Gaussian(40.0 + number), actor=f"{name}@{path}", key=f"demo-{number}"
        )
    return Service(ledger, people, _signed(ledger, folder / "checkpoints.txt")), tokens


def _signed(ledger: Ledger, file: Path) -> Published:
    """A checkpoint by a key that is thrown away."""
    key = SigningKey.generate("demo.example")
    with ledger.moment() as moment:
        file.write_text(Checkpoint.sign(moment.snapshot, "city", key).note, "utf-8")
    return Published(file, [key.verifier])
