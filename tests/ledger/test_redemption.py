"""One charge pays for one answer, which goes to whoever charged; an attempt that was uncertain can be asked again."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns.ledger.server import Server
from dpcompose.errors import (
    AlreadyRedeemedError,
    DomainError,
    OverdrawnError,
    ReceiptError,
    StoreError,
)
from dpcompose.ledger import Charge, Ledger, Receipt


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    url = {"memory": "memory:", "sqlite": str(tmp_path / "ledger.db")}.get(request.param)
    if url is None:
        server: Server = request.getfixturevalue("postgres")
        url = server.create(f"redeem {tmp_path.name}")
    with Ledger.open(url) as opened:
        opened.scope("world", caps={"epsilon": 1}, actor="keeper")
        yield opened


@pytest.fixture
def receipt(ledger: Ledger) -> Receipt:
    return ledger.charge("world", cost={"epsilon": "0.5"}, actor="Ada", key="mean")


def test_the_same_attempt_is_answered_alike_and_every_other_is_refused(
    ledger: Ledger, receipt: Receipt
) -> None:
    nonce = secrets.token_hex(32)
    for _ in range(3):
        ledger.redeem(receipt, actor="Ada", nonce=nonce)
    for other in (None, secrets.token_hex(32), nonce.upper()):
        with pytest.raises(AlreadyRedeemedError):
            ledger.redeem(receipt, actor="Ada", nonce=other)
    assert ledger.verify().entries == 3


def test_an_attempt_without_a_name_is_not_asked_again(ledger: Ledger, receipt: Receipt) -> None:
    ledger.redeem(receipt, actor="Ada")
    for nonce in (None, secrets.token_hex(32)):
        with pytest.raises(AlreadyRedeemedError):
            ledger.redeem(receipt, actor="Ada", nonce=nonce)


def test_what_the_ledger_keeps_redeems_nothing(ledger: Ledger, receipt: Receipt) -> None:
    """Whoever reads receipts, entries and rows finds the nonce nowhere, and nothing that stands for it."""
    nonce = secrets.token_hex(32)
    ledger.redeem(receipt, actor="Ada", nonce=nonce)
    written = [entry.body for entry in ledger.entries("world")]
    assert not any(nonce in text for text in (receipt.to_json(), *written))
    attempt = next(
        entry.fields["attempt"] for entry in ledger.entries("world") if entry.kind == "redeemed"
    )
    with pytest.raises(AlreadyRedeemedError):
        ledger.redeem(receipt, actor="Ada", nonce=attempt)


def test_who_charged_redeems_and_nobody_else(ledger: Ledger, receipt: Receipt) -> None:
    nonce = secrets.token_hex(32)
    with pytest.raises(ReceiptError, match="somebody else charged it"):
        ledger.redeem(receipt, actor="Mallory", nonce=nonce)
    ledger.redeem(receipt, actor="Ada", nonce=nonce)
    with pytest.raises(ReceiptError, match="somebody else charged it"):
        ledger.redeem(receipt, actor="Mallory", nonce=nonce)
    assert [entry.actor for entry in ledger.entries("world")] == ["keeper", "Ada", "Ada"]


@pytest.mark.parametrize("nonce", ["", "mean", "0" * 31, "0" * 257, "\u3164" * 40, 7, b"0" * 64])
def test_a_nonce_that_could_be_guessed_is_refused_and_not_repeated(
    ledger: Ledger, receipt: Receipt, nonce: object
) -> None:
    with pytest.raises(DomainError, match="nonce") as refused:
        ledger.redeem(receipt, actor="Ada", nonce=nonce)  # type: ignore[arg-type]
    assert not nonce or str(nonce) not in str(refused.value)
    ledger.redeem(receipt, actor="Ada")


def test_an_uncertain_redemption_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was committed, and the answer was lost: the same process draws once, another one not at all."""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.scope("world", caps={"epsilon": 1}, actor="keeper")
        receipt, nonce = (
            ledger.charge("world", cost={"epsilon": 1}, actor="Ada", key="mean"),
            secrets.token_hex(32),
        )
        decided = ledger.store.transact

        def lost(request: object) -> None:
            decided(request)  # type: ignore[arg-type]
            raise StoreError("ledger.db", "the answer was lost", uncertain=True)

        with monkeypatch.context() as broken:
            broken.setattr(ledger.store, "transact", lost)
            with pytest.raises(StoreError) as raised:
                ledger.redeem(receipt, actor="Ada", nonce=nonce)
        assert raised.value.uncertain
    with Ledger.open(tmp_path / "ledger.db") as again:
        with pytest.raises(AlreadyRedeemedError):
            again.redeem(receipt, actor="Ada", nonce=secrets.token_hex(32))
        again.redeem(receipt, actor="Ada", nonce=nonce)
        assert again.verify().entries == 3


def test_a_charge_and_its_redemption_are_one_commit(ledger: Ledger, receipt: Receipt) -> None:
    """Whatever ends between them, there is no charge that nobody may draw for yet, and none for two."""
    own, other = secrets.token_hex(32), secrets.token_hex(32)

    def charge(key: str, cost: str = "0.25") -> Charge:
        return Charge.of("world", {"epsilon": cost}, None, actor="Ada", key=key)

    first, again, late, plain, large = ledger.charge_together(
        [
            charge("sum").redeemed_by(own),
            charge("sum").redeemed_by(own),
            charge("sum").redeemed_by(other),
            charge("sum"),
            charge("more", "0.5").redeemed_by(other),
        ]
    )
    assert isinstance(first, Receipt) and first == again == plain
    assert isinstance(late, AlreadyRedeemedError) and isinstance(large, OverdrawnError)
    # A charge that was made before and never redeemed is redeemed; afterwards that is for good.
    earlier = charge("mean", "0.5")
    assert ledger.charge_together([earlier.redeemed_by(own)]) == [receipt]
    assert isinstance(ledger.charge_together([earlier.redeemed_by(other)])[0], AlreadyRedeemedError)
    with pytest.raises(AlreadyRedeemedError):
        ledger.redeem(first, actor="Ada", nonce=other)
    kinds = [entry.kind for entry in ledger.entries("world")]
    assert kinds == ["opened", "granted", "granted", "redeemed", "refused", "redeemed"]
    assert ledger.verify().entries == 6
    for guessable in ("", "mean"):
        with pytest.raises(DomainError, match="nonce"):
            charge("any").redeemed_by(guessable)
