"""Verifying from a checkpoint: what was signed is believed, and every change after it or beneath it is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dpcompose.errors import DomainError, OverdrawnError, TamperedError
from dpcompose.ledger import Amounts, Anchor, Charge, Checkpoint, Ledger, SigningKey
from dpcompose.ledger.evidence import State
from dpcompose.ledger.policies import Quota

KEY = SigningKey("acme.example/privacy", bytes(range(32)))
CAP = Amounts.of({"epsilon": "50"})
Change = Callable[[sqlite3.Connection], object]


def charge(ledger: Ledger, number: int, path: str = "city") -> None:
    with suppress(OverdrawnError):  # a refusal is an entry too
        ledger.charge(path, cost={"epsilon": "0.1"}, actor="Ada", key=str(number))


def signed(ledger: Ledger) -> Anchor:
    """The checkpoints of all trees, with their states."""
    with ledger.moment() as moment:
        roots = moment.snapshot.roots()
        states = tuple(State.of(moment.snapshot, root) for root in roots)
        notes = [Checkpoint.sign(moment.snapshot, s.root, KEY, state=s.digest) for s in states]
        again = Checkpoint.read_all("".join(each.note for each in notes), [KEY.verifier])
    assert State.read_all("\n".join(each.text for each in states)) == states
    return Anchor((), again, states)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "city.db"


def built(path: Path, before: int, after: int) -> tuple[Ledger, Anchor]:
    """A ledger with redeemed and open charges, people, policies and renewed budgets on both sides of a checkpoint."""
    ledger = Ledger.open(path)
    ledger.scope("city", caps={"epsilon": 100}, actor="Ada")
    ledger.scope("city/año", caps={"epsilon": 2}, actor="Ada")
    ledger.scope("city/still", kind="partition", actor="Ada")
    ledger.scope("city/yearly", caps={"epsilon": 2}, renew="year", actor="Ada")
    ledger.state(Quota.Set("city", "Ada", "Ben", "total", CAP, "Ada"))
    together = [
        Charge.of("city", {"epsilon": "0.1"}, None, actor="Ada", key=f"b{n}") for n in range(before)
    ]
    receipts = ledger.charge_together(together)
    ledger.redeem(receipts[0], actor="Ada")  # type: ignore[arg-type]
    anchor = signed(ledger)
    ledger.redeem(receipts[1], actor="Ada")  # type: ignore[arg-type]
    ledger.scope("city/new", caps={"epsilon": 1}, actor="Ada")
    for number in range(after):
        charge(ledger, number, ("city", "city/año", "city/new", "city/yearly")[number % 4])
    ledger.close_scope("city/new", actor="Ada", key="close")
    ledger.state(Quota.Set("city", "Ada", "Cleo", "total", CAP, "Ada"))
    ledger.scope("town", caps={"epsilon": 1}, actor="Ada")
    return ledger, anchor


@pytest.mark.parametrize(("before", "after"), [(2, 0), (2, 9), (249, 9), (250, 300), (600, 5)])
def test_a_verification_begins_at_a_checkpoint(path: Path, before: int, after: int) -> None:
    ledger, anchor = built(path, before, after)
    with ledger:
        whole, late = ledger.verify(), ledger.verify(anchor)
        assert late.since == (("city", before + 6),)
        assert late.entries + before + 6 == whole.entries
        assert (late.scopes, late.anchor) == (whole.scopes, whole.anchor)
        again = signed(ledger)  # and at the next one, with the first one checked against its tiles
        both = Anchor((), anchor.checkpoints + again.checkpoints, anchor.states + again.states)
        assert ledger.verify(both).entries == 0


AFTER: dict[str, Change] = {
    "a balance that no entry changed": lambda db: db.execute(
        "update balance set spent = replace(spent, '\"0\"', '\"1\"') where path = 'city/still' or path = 'city/year'"
        " or path = 'city/yearly'"
    ),
    "a balance that an entry changed": lambda db: db.execute(
        "update balance set spent = '{\"epsilon\":\"0\"}' where path = 'city'"
    ),
    "a scope that is gone": lambda db: db.execute("delete from scope where path = 'city/still'"),
    "a larger cap": lambda db: db.execute(
        "update scope set caps = '{\"epsilon\":\"9\"}' where path = 'city/año'"
    ),
    "a quota that is gone": lambda db: db.execute("delete from fact where name like '%Ben%'"),
    "a later entry": lambda db: db.execute(
        "update entry set body = replace(body, 'Ada', 'Eve') where sequence = 262"
    ),
    "the last signed entry": lambda db: db.execute(
        "update entry set body = replace(body, 'Ada', 'Eve') where sequence = 256"
    ),
    "a tile": lambda db: db.execute(
        "update tile set hashes = replace(hashes, substr(hashes, 1, 64), substr(hashes, 65, 64))"
    ),
    "a charge that is redeemed later": lambda db: db.execute(
        "update entry set body = replace(body, '0.1', '0.2') where sequence = 7"
    ),
    "the end": lambda db: db.execute("delete from entry where sequence > 200 and root = 'city'"),
}


@pytest.mark.parametrize("name", AFTER)
def test_what_was_changed_is_told(path: Path, name: str) -> None:
    ledger, anchor = built(path, 250, 9)
    ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        AFTER[name](db)
        assert db.total_changes, name
    ledger = Ledger.open(path, restored=True)
    with ledger, pytest.raises(TamperedError):
        ledger.verify(anchor)


def test_a_state_that_was_not_signed_begins_nothing(path: Path) -> None:
    ledger, anchor = built(path, 2, 5)
    (state,) = anchor.states
    line = next(each for each in state.lines if "ño" in each or "u00f1" in each)
    others = [
        replace(state, lines=tuple(each for each in state.lines if each != line)),
        replace(state, lines=tuple(each.replace('"0.3"', '"0.1"') for each in state.lines[:-1])),
        replace(state, size=state.size - 1),
    ]
    with ledger:
        for other in others:
            with pytest.raises(TamperedError, match="signed the state"):
                ledger.verify(Anchor((), anchor.checkpoints, (other,)))
        (checkpoint,) = anchor.checkpoints
        without = Checkpoint.read(
            KEY.sign("\n".join(checkpoint.note.split("\n")[:3]) + "\n"), [KEY.verifier]
        )
        assert without.state == "" and without.root_hash == checkpoint.root_hash
        with pytest.raises(TamperedError, match="signed the state"):
            ledger.verify(Anchor((), (without,), anchor.states))
    for text in ("", "nonsense", '{"size": 1}\n', '{"root": 1, "size": "x"}\n'):
        with pytest.raises(DomainError, match="--state"):
            State.read_all(text)


def test_a_key_that_was_revoked_before_its_checkpoint(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.scope("city", caps={"epsilon": 1}, actor="Ada")
        ledger.announce_key("city", KEY.verifier, actor="Ada")
        early = signed(ledger)
        ledger.revoke_key("city", KEY.verifier, actor="Ada")
        assert ledger.verify(early).since == (("city", 2),)
        with pytest.raises(TamperedError, match="revokes it"):
            ledger.verify(signed(ledger))
