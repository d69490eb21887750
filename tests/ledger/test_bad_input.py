"""Bad input: one clear error, nothing written, the ledger usable afterwards; on every store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from campaigns.ledger.server import Server
from dpcompose import check
from dpcompose.errors import (
    ClosedScopeError,
    CurrencyError,
    DomainError,
    KeyReusedError,
    LedgerError,
    OverdrawnError,
    ReceiptError,
    ScopeExistsError,
    ScopeKindError,
    UnknownScopeError,
)
from dpcompose.ledger import Amount, Amounts, Anchor, Ledger, Receipt
from dpcompose.ledger.amount import scope_path


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A small ledger with something spent in it."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        url = server.create(f"bad {tmp_path.name}")
    else:
        url = {"memory": "memory:", "sqlite": str(tmp_path / "ledger.db")}[request.param]
    with Ledger.open(url) as opened:
        opened.scope("world", caps={"epsilon": 1, "delta": "1e-6"}, actor="Ada")
        opened.scope("world/regions", kind="partition", actor="Ada")
        opened.scope("world/regions/north", actor="Ada")
        opened.scope(
            "world/slots",
            kind="slots",
            slots=1,
            caps={"rho": 1},
            cost={"epsilon": 0, "delta": 0},
            actor="Ada",
        )
        opened.scope("world/slots/first", actor="Ada")
        opened.scope("world/shut", actor="Ada", key="opens shut")
        opened.close_scope("world/shut", actor="Ada", key="shuts")
        opened.charge("world", cost={"epsilon": 0.5, "delta": 0}, actor="Ada", key="first")
        yield opened


BOTH = {"epsilon": 0.1, "delta": 0}


def forged(sequence: int) -> Receipt:
    """A receipt that no ledger gave."""
    return Receipt("world", sequence, "first", "Ada", Amounts.of(BOTH), "now", "0")


MEGABYTE = "k" * 2**20
ODD_TEXTS = [
    "",
    "tab\there",
    "new\nline",
    "nul\0",
    "\u202eright to left",
    "zero\u200bwidth",
    "Ada\u3164",
    "\ud800",
    MEGABYTE,
    7,
    None,
]
ODD_PATHS = [
    "", "/", "world/", "/world", "world//sales", "world/../other", "world/.", "wor ld", "world\n", "w/e\u0301",
    "\U00020000" * 251,
    "world\u3164",
    "w" * 513, "\u202eworld", "world\0", "x'; DROP TABLE entry; --", 'world" OR 1=1', "world%", "a/" * 16 + "a", 3,
]  # fmt: skip
ODD_AMOUNTS = [
    -1, -0.1, "-0.1", math.nan, math.inf, -math.inf, "nan", "inf", "Infinity", "1e40", 10**40, "1e-41", "1e-999",
    "1e9999", Fraction(1, 3), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), Decimal("1E+999999"), True, None,
    "", "0.1 ", "0x1", "1_000", "٣", "9" * 300, 1j, [1], b"1",
]  # fmt: skip


def charge(path: Any = "world", **changes: Any) -> Callable[[Ledger], object]:
    return lambda ledger: ledger.charge(
        path, **({"cost": BOTH, "actor": "Ada", "key": "new"} | changes)
    )


def opening(path: str = "world/new", **changes: Any) -> Callable[[Ledger], object]:
    given: dict[str, Any] = {"actor": "Ada"} | changes
    return lambda ledger: ledger.scope(path, **given)


CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE

CASES: list[tuple[type[Exception], Callable[[Ledger], object]]] = [
    *((DomainError, charge(cost={"epsilon": amount, "delta": 0})) for amount in ODD_AMOUNTS),
    *((DomainError, charge(path=path)) for path in ODD_PATHS),
    *((DomainError, charge(key=text)) for text in ODD_TEXTS),
    *((DomainError, charge(actor=text)) for text in ODD_TEXTS),
    *((DomainError, opening(path)) for path in ODD_PATHS),
    *((DomainError, opening(caps={"epsilon": amount})) for amount in ODD_AMOUNTS),
    *((DomainError, opening(actor=text)) for text in ODD_TEXTS),
    *((DomainError, opening(key=text)) for text in ODD_TEXTS if text is not None),
    *((DomainError, charge(cost={**BOTH, name: 1})) for name in ["", " rho", "a'b", "epsilon\n", "x" * 65, "slots", 1]),
    (DomainError, charge(cost=[("epsilon", 1)])),
    (DomainError, charge(cost=0.1)),
    (DomainError, charge(cost={f"currency {number}": 1 for number in range(65)})),
    *(
        (DomainError, charge(description=description))
        for description in [
            {"scale": math.nan}, {"scale": math.inf}, {1: "one"}, {"at": object()}, {"text": MEGABYTE}, CYCLE,
            {"bytes": b"1"}, {"long": 10**400}, [], "text", {"set": {1}},
        ]
    ),
    (CurrencyError, charge(cost={"epsilon": 0.1})),
    (CurrencyError, charge(cost={})),
    (CurrencyError, charge(cost={**BOTH, "rho": 0})),
    (CurrencyError, charge(path="world/slots/first", cost=BOTH)),
    (UnknownScopeError, charge(path="world/nowhere")),
    (UnknownScopeError, charge(path="World")),
    (UnknownScopeError, charge(path="other")),
    (ScopeKindError, charge(path="world/regions")),
    (ScopeKindError, charge(path="world/slots", cost={"rho": 1})),
    (ClosedScopeError, charge(path="world/shut")),
    (KeyReusedError, charge(key="first")),
    (KeyReusedError, charge(key="opens shut")),
    (KeyReusedError, charge(key="shuts")),
    (DomainError, opening(kind="folder")),
    (DomainError, opening(kind=None)),
    (DomainError, opening(kind=["filter"])),
    (DomainError, opening(slots=2)),
    (DomainError, opening(cost={"epsilon": 1})),
    *((DomainError, opening(kind="slots", caps={"rho": 1}, slots=slots)) for slots in [None, 0, -1, 1.5, True, 10**13]),
    (DomainError, opening(kind="slots", slots=1)),
    (CurrencyError, opening(kind="slots", slots=1, caps={"rho": 1})),
    (CurrencyError, opening(kind="slots", slots=1, caps={"rho": 1}, cost={"rho": 1})),
    (UnknownScopeError, opening("world/nowhere/new")),
    (ClosedScopeError, opening("world/shut/new")),
    (ScopeExistsError, opening("world", caps={"epsilon": 2, "delta": "1e-6"})),
    (ScopeExistsError, opening("world/regions")),
    (ScopeExistsError, opening("world/shut", key="another")),
    (KeyReusedError, opening("world/new", key="opens shut")),
    (KeyReusedError, opening("world/new", key="first")),
    (DomainError, lambda ledger: ledger.redeem("receipt", actor="Ada")),  # type: ignore[arg-type]
    (ReceiptError, lambda ledger: ledger.redeem(forged(9), actor="Ada")),
    (ReceiptError, lambda ledger: ledger.redeem(forged(1), actor="Ada")),
    (DomainError, lambda ledger: ledger.redeem(forged(9), actor="Ada", nonce="guessed")),
    (DomainError, lambda ledger: ledger.redeem(forged(9), actor="")),
    (UnknownScopeError, lambda ledger: ledger.close_scope("world/nowhere", actor="Ada", key="new")),
    (ClosedScopeError, lambda ledger: ledger.close_scope("world/shut", actor="Ada", key="new")),
    (KeyReusedError, lambda ledger: ledger.close_scope("world", actor="Ada", key="first")),
    (UnknownScopeError, lambda ledger: ledger.balance("nowhere")),
    (UnknownScopeError, lambda ledger: ledger.available("nowhere")),
    (UnknownScopeError, lambda ledger: ledger.scopes("nowhere")),
    (UnknownScopeError, lambda ledger: next(ledger.entries("nowhere"))),
    (DomainError, lambda ledger: ledger.balance("no where")),
]  # fmt: skip


def test_one_clear_error_nothing_written_usable_afterwards(ledger: Ledger) -> None:
    before, anchor = ledger.balances(), ledger.anchor()
    for number, (expected, ask) in enumerate(CASES):
        with pytest.raises((DomainError, LedgerError)) as raised:
            ask(ledger)
        assert type(raised.value) is expected, f"case {number}: {raised.value!r}"
        message = str(raised.value)
        assert 10 < len(message) < 700
        assert message.isprintable(), f"case {number}: {message!r}"
    assert ledger.balances() == before
    assert ledger.anchor() == anchor
    ledger.charge("world", cost=BOTH, actor="Ada", key="afterwards")
    assert ledger.balance("world").spent["epsilon"] == Amount.of("0.6")
    assert ledger.verify(anchor).anchored


def test_a_refusal_is_written_and_changes_no_balance(ledger: Ledger) -> None:
    before = ledger.balances()
    for _ in range(2):  # asked again with the same key: the same refusal, written once
        with pytest.raises(OverdrawnError) as raised:
            ledger.charge(
                "world/regions/north",
                cost={"epsilon": "0.50000001", "delta": 0},
                actor="Ada",
                key="too much",
            )
        assert (raised.value.scope, raised.value.currency) == ("world", "epsilon")
        assert (raised.value.requested, raised.value.left) == (
            Amount.of("0.50000001"),
            Amount.of("0.5"),
        )
    assert ledger.balances() == before
    refused = [entry for entry in ledger.entries("world") if entry.kind == "refused"]
    assert [entry.fields["short"] for entry in refused] == [
        {"asked": "0.50000001", "currency": "epsilon", "left": "0.5", "scope": "world"}
    ]
    ledger.verify()


def test_odd_but_honest_text_is_kept_as_it_is(ledger: Ledger) -> None:
    path, actor, key = (
        "world/Zürich-東京_2:a",
        "Åsa O'Neil; DROP TABLE entry --",
        'key "1" % ? :x $1 \\ 🙂',
    )
    ledger.scope(
        path,
        actor=actor,
        description={"text": "line\none\0\u202e", "list": [1, 2.5, None, True, {"a": "b"}]},
    )
    receipt = ledger.charge(path, cost=BOTH, actor=actor, key=key, description={"?": "%s"})
    assert Receipt.read(receipt.to_json()) == receipt
    assert ledger.charge(path, cost=BOTH, actor=actor, key=key, description={"?": "%s"}) == receipt
    entry = list(ledger.entries(path))[-1]
    assert (entry.scope, entry.actor, entry.key, entry.description) == (
        path,
        actor,
        key,
        {"?": "%s"},
    )
    assert ledger.balance(path).scope.description["text"] == "line\none\0\u202e"
    ledger.verify()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mysql://host/db",
        "sqlite://",
        "sqlite:",
        "memory",
        "\0",
        ":memory:",
        "sqlite:///:memory:",
        None,
        5,
        b"a",
    ],
)
def test_places_that_are_none(url: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if url == "memory":  # a file of that name is a file
        Ledger.open(url).close()
        return
    with pytest.raises(DomainError):
        Ledger.open(url)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_names_fit_every_store(ledger: Ledger) -> None:
    """PostgreSQL's index holds 2,704 bytes a row: a path and the one above it, or it and a key."""
    rare = [
        chr(0x20000 + 37 * number) for number in range(256)
    ]  # four bytes each, and nothing to compress
    path, key = "".join(rare[:124]), "".join(rare)
    ledger.scope(path, caps={"epsilon": 1}, actor="Ada")
    ledger.scope(f"{path}/{path}", actor=key)
    receipt = ledger.charge(f"{path}/{path}", cost={"epsilon": 0.1}, actor=key, key=key)
    ledger.redeem(receipt, actor=key)
    ledger.verify()


def test_no_name_holds_a_character_that_does_not_show() -> None:
    """Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties.txt, 16.0), and what is blank in most fonts."""
    ranges = "00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0"
    ranges += " FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF 2800 FFFC 13441-13442 16FE4 1D159 0009-000D 0085 00A0"
    for each in f"{ranges} 1680 2000-200A 2028-2029 202F 205F 3000".split():
        first, last = (int(end, 16) for end in (each.split("-") * 2)[:2])
        for point in range(first, last + 1):
            for guard in (scope_path, lambda text: check.line("actor", text)):
                with pytest.raises(DomainError):
                    guard(f"Ad{chr(point)}a")


@pytest.mark.parametrize("text", ["Ada ", " Ada", "A\u030ada"])
def test_names_that_look_alike_are_one_name(text: str) -> None:
    with pytest.raises(DomainError):
        check.line("actor", text)


@pytest.mark.parametrize("text", ["Ada L", "Åda 🙂", "東京", "नमस्ते", "O'Neil ♥"])
def test_names_of_all_scripts_are_names(text: str) -> None:
    assert check.line("actor", text) == text


def test_an_anchor_names_a_chain_once() -> None:
    head = f'"world":{{"hash":"{"0" * 64}","sequence":1}}'
    assert Anchor.read(f'{{"format":"dpcompose ledger anchor 1","heads":{{{head}}}}}').heads
    with pytest.raises(DomainError):
        Anchor.read(f'{{"format":"dpcompose ledger anchor 1","heads":{{{head},{head}}}}}')


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "7", "null", '{"cost":7}', '{"format":"x","heads":{}}', "[" * 100_000]
)
def test_texts_that_are_no_receipts_or_anchors(text: str) -> None:
    for kind in (Receipt, Anchor):
        with pytest.raises(DomainError):
            kind.read(text)


@pytest.mark.parametrize("name", ["\x1b[2J", "a\nb.db", "a\x7fb.db", "sqlite:///a\x9bb.db"])
def test_a_file_is_not_named_by_what_a_terminal_obeys(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DomainError, match="url = "):
        Ledger.open(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Ledger.open("memory:", create=1),  # type: ignore[arg-type]
        lambda: Ledger.open("memory:", restored="yes"),  # type: ignore[arg-type]
        lambda: Ledger.open("memory:").charge("w", cost={}, actor="Ada", key="1", priced=3),  # type: ignore[arg-type]
        lambda: Ledger.open("memory:").charge("w", cost={}, actor="Ada", key="1", priced=["w"]),  # type: ignore[list-item]
        lambda: Amount.of(0.5, name=3),  # type: ignore[arg-type]
        lambda: Amount.up(0.5, name=None),  # type: ignore[arg-type]
        lambda: Amount.down(0.5, name=b"cap"),  # type: ignore[arg-type]
        lambda: Amounts.of({"epsilon": 1}, name=[]),  # type: ignore[arg-type]
        lambda: Amounts.read(3),  # type: ignore[arg-type]
        lambda: Amounts.read({1: 2}),  # type: ignore[arg-type]
        lambda: Amounts.read({"epsilon": "0.10"}),
    ],
)
def test_what_is_no_argument_is_refused_by_name(ask: Callable[[], object]) -> None:
    with pytest.raises(
        DomainError,
        match=r"^(create|restored|name|texts|currency|priced)( = | is missing).*expected",
    ):
        ask()
