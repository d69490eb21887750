"""Statements: every published number is true, nothing of a stranger is markup, and no byte of a document can change."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml as pyyaml

from campaigns import forgeries
from dpcompose import Adjacency, BlackBox, Gaussian, Laplace, compose
from dpcompose.account import Account, open_scope
from dpcompose.errors import (
    DomainError,
    StatementError,
    TamperedError,
    UnknownScopeError,
    UnsupportedError,
)
from dpcompose.interop.privacy_document import privacy_json, verify
from dpcompose.interop.registry import CHOICES, Deployment, registry_yaml
from dpcompose.interop.statement import (
    Statement,
    latex,
    markdown,
    one_line,
    scope_statement,
    statement,
    visible,
)
from dpcompose.ledger import Ledger, SigningKey
from dpcompose.mechanisms import DominatingPair
from dpcompose.plan import Plan
from tests.cli.runner import invoke

PLAN = """delta = 1e-6
[[mechanism]]
name = "counts"
kind = "laplace"
scale = 20.0
times = 3
[[mechanism]]
kind = "gaussian"
sigma = 8.0
"""
ODD = 'a | b\n# c: *d* <img src=x> [e](http://f) `g` \u202e $h$ "i" \\ \u05d0\u05d1 www.j \U0001f600 - k'
FACTS: dict[str, Any] = {
    "curators": ["The office: of statistics"],
    "authors": ["Ada"],
    "description": "- counts\n- of people",
    "intended_use": "Planning",
    "product_type": "Summary statistics",
    "region": "World",
    "publication_date": "2026-07-01",
}


@cache
def stated() -> Statement:
    return statement(Plan.parse(PLAN), unit=ODD, sampling=ODD)


@cache
def document() -> str:
    return privacy_json(stated())


def forged(change: Callable[[dict[str, Any]], object]) -> str:
    """The document after a change, with the digest that belongs to it."""
    content = json.loads(document())
    change(content)
    del content["digest"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["digest"] = sha256((text + "\n").encode()).hexdigest()
    return json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n"


def test_the_published_numbers_are_rounded_to_stay_true() -> None:
    found = stated()
    exact = Plan.parse(PLAN).composition()
    assert (
        float(found.epsilon) >= exact.epsilon(delta=1e-6).upper > float(found.epsilon) * (1 - 1e-5)
    )
    said = [
        float(number.rstrip("."))
        for number in re.findall(r"at most (0[\d.]+)", " ".join(found.attacks))
    ]
    risk = exact.risk(false_positive_rate=0.001)
    truths = [risk.advantage.upper, risk.true_positive_rate.upper, 1 - risk.bayes_error.lower]
    assert all(truth <= number < 1.01 * truth for truth, number in zip(truths, said, strict=True))
    assert (
        "counts: Laplace(20.0), 3 times" in found.paragraph
        and "differentially private" in found.paragraph
    )


def test_a_unit_of_several_records_has_the_guarantee_of_a_group() -> None:
    one, three = (
        statement(Laplace(10.0), delta=0, unit="one user", records=records) for records in (1, 3)
    )
    assert (one.epsilon, three.epsilon, three.guarantee) == (
        "0.100001",
        "0.300001",
        "0.300001-differentially private",
    )
    assert "at most 3 records" in three.neighbors


@pytest.mark.parametrize(
    ("total", "arguments", "error"),
    [
        (Gaussian(1.0), {"delta": 0.0, "unit": "one user"}, UnsupportedError),  # nothing finite
        (Gaussian(1.0), {"delta": 1.0, "unit": "one user"}, DomainError),
        (Gaussian(1.0), {"unit": "one user"}, DomainError),  # no delta
        (Gaussian(1.0), {"delta": 1e-6, "unit": "  "}, DomainError),
        (Gaussian(1.0), {"delta": 1e-6, "unit": "\ud800"}, DomainError),
        (Gaussian(1.0), {"delta": 1e-6, "unit": "one", "sampling": 3}, DomainError),
        (Gaussian(1.0), {"delta": 1e-6, "unit": "one", "records": 0}, DomainError),
        (Gaussian(1.0), {"delta": 1e-6, "unit": "one", "adjacency": "replace"}, DomainError),
        (Gaussian(1.0), {"delta": 1e-6, "unit": "one", "receipts": "abc"}, DomainError),
        (Gaussian(1.0), {"delta": float("nan"), "unit": "one"}, DomainError),
        ("gaussian", {"delta": 1e-6, "unit": "one"}, DomainError),
        (
            DominatingPair.atoms(
                upper=[0.5, 0.5], lower=[0.4, 0.6], adjacency=Adjacency.ADD_REMOVE
            ),
            {"delta": 1e-6, "unit": "one"},
            UnsupportedError,
        ),
    ],
)
def test_what_cannot_be_stated_is_refused(
    total: Any, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        statement(total, **arguments)


def test_text_of_strangers_is_visible_and_inert() -> None:
    line = one_line(ODD)
    assert line.isprintable() or set(filter(lambda each: not each.isprintable(), line)) == {
        "\u2068",
        "\u2069",
    }
    assert line[0] == "\u2068" and "(U+202E)" in line and "\n" not in line
    assert not set("|*<>[]`$\\:&#") & set(
        re.sub(r"&#\d+;", "", markdown(ODD))
    ) and "www." not in markdown(ODD)
    assert visible("a\nb\x00") == "a\nb(U+0000)"
    card = stated().model_card.splitlines()
    assert [row.count("|") for row in card if row.startswith("|")] == [3] * 7
    assert sum(row.startswith("#") for row in card) == 1 and not any("<img" in row for row in card)


@pytest.mark.parametrize("text", ["yes", "2026-01-01", "a: b\n\n- c", "'\"", "1e-6", "\U0001f600"])
def test_facts_of_the_registry_read_back(text: str) -> None:
    entry = pyyaml.safe_load(registry_yaml(stated(), Deployment("Name", **FACTS | {"notes": text})))
    assert entry["deployment"]["administrative"]["notes"] == text
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["delta"] == 1e-6


REGISTRY = {
    "basic": "name data_curators intended_use data_product_type data_product_region description publication_date"
    " data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details data_source_type"
    " data_source_type_details access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
"""The registry's sections and fields, typed off its schema; no others are allowed."""


def registry_entries() -> list[str]:
    more = {
        "sources": ODD,
        "notes": "",
        "data_domain": ODD,
        "unprotected": None,
        "post_processing": "rounding",
    }
    filled = {name: words[0] for name, words in CHOICES.items()} | {"tuning": "none", **more}
    filled["notes"] = "https://example.org \\\\(x\\\\)".replace("\\\\", "\\")
    pure = statement(
        BlackBox(0.5) * 2, delta=0.0, unit="one household", records=2, adjacency=Adjacency.REPLACE
    )
    made = [
        Deployment(ODD, **FACTS),
        Deployment("Plain", **(FACTS | filled)),
        *(
            Deployment("Each", **(FACTS | {name: word}))
            for name, words in CHOICES.items()
            for word in words
        ),
    ]
    return [registry_yaml(each, facts) for facts in made[:2] for each in (stated(), pure)] + [
        registry_yaml(pure, facts, status="Pending") for facts in made[2:]
    ]


def test_registry_entries_keep_the_rules_of_the_registry() -> None:
    for text in registry_entries():
        entry = pyyaml.safe_load(text)
        assert set(entry) == {"url_slug", "status", "tier", "deployment"} and entry["status"] in (
            "Draft",
            "Pending",
        )
        found = entry["deployment"]
        assert set(found) <= set(REGISTRY) and entry["tier"] == (
            2 if len(found.get("deployment_model", ())) == 4 else 1
        )
        for section, rows in found.items():
            assert set(rows) <= set(REGISTRY[section].split()) and rows
            for name, value in rows.items():
                people, parameters = (
                    name in ("data_curators", "registry_authors"),
                    name == "privacy_parameters",
                )
                assert isinstance(value, list if people else dict if parameters else str)
        assert set(found["basic"]) >= set(REGISTRY["basic"].split()[:-1])
        loss, pure = (
            found["privacy_loss"]["privacy_parameters"],
            found["dp_variant"]["variant_name"] == "Pure DP",
        )
        assert set(loss) == ({"epsilon"} if pure else {"epsilon", "delta"})
        assert all(type(number) is float for number in loss.values())


@pytest.mark.skipif(
    "DPCOMPOSE_REGISTRY_SCHEMA" not in os.environ,
    reason="needs the path of deployments-schema.yaml",
)
def test_the_schema_of_the_registry_accepts_the_entries() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = pyyaml.safe_load(Path(os.environ["DPCOMPOSE_REGISTRY_SCHEMA"]).read_text())
    checker = jsonschema.Draft7Validator(
        schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
    )
    faults = [
        error.message
        for text in registry_entries()
        for error in checker.iter_errors(pyyaml.safe_load(text))
    ]
    assert faults == []
    assert list(
        checker.iter_errors(pyyaml.safe_load(registry_entries()[0].replace("tier: 1", "tier: 0")))
    )


@pytest.mark.parametrize(
    "change",
    [
        {"product_type": "A table"}, {"model": "central"}, {"publication_date": "1/1/2026"}, {"publication_date": ""},
        {"publication_date": "2026-02-30"}, {"curators": []}, {"curators": "Ada"}, {"authors": [""]}, {"region": ""},
        {"slug": "A b"}, {"description": None}, {"sector": "Farming"}, {"notes": 3},
        {"notes": r"\\alpha"}, {"authors": [r"a\\"]},
    ],
)  # fmt: skip
def test_facts_that_the_registry_would_refuse_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DomainError):
        Deployment("Name", **(FACTS | change))
    with pytest.raises(DomainError):
        Deployment("\u05d0", **FACTS)  # no letter for an address
    with pytest.raises(DomainError):
        registry_yaml(stated(), Deployment("Name", **FACTS), status="Approved")


def test_a_document_is_verified() -> None:
    found = verify(document().encode())
    assert (
        found.statement == stated() and found.bound == stated().bound and len(found.unchecked) == 3
    )
    assert len(verify(document(), digest=found.digest).unchecked) == 2
    with pytest.raises(StatementError, match="digest"):
        verify(document(), digest="0" * 64)


def test_every_change_of_one_byte_is_rejected() -> None:
    original = document().encode()
    for place, byte in enumerate(original):
        kept, rest = original[:place], original[place + 1 :]
        changed = {
            bytes([byte ^ 1]),
            bytes([byte ^ 32]),
            bytes([byte ^ 128]),
            b" ",
            b"0",
            b"",
            bytes([byte]) * 2,
        }
        for middle in changed - {bytes([byte])}:
            with pytest.raises(StatementError):
                verify(kept + middle + rest)
    for more in (b" ", b"\n", b"\0"):
        with pytest.raises(StatementError):
            verify(original + more)
        with pytest.raises(StatementError):
            verify(more + original)


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content.__setitem__(name, value)


@pytest.mark.parametrize(
    "change",
    [
        _set("epsilon", "0.1"),
        _set("bound", [0.1, 0.2]),
        lambda content: content.update(bound=[0.1, 0.2], epsilon="0.200000"),
        lambda content: content.update(
            bound=[content["bound"][0], content["bound"][1] / 2], epsilon="0.5"
        ),
        lambda content: content["risk"].update(advantage=[0.0, 0.01]),
        lambda content: content["risk"].update(power=[0.0, 0.0011]),
        lambda content: content["risk"].update(guess=[0.5, 0.5]),
        lambda content: content["runs"][0].update(times=4),
        lambda content: content["runs"][0].update(mechanism="Laplace(19.0)"),
        lambda content: content["runs"][0].update(mechanism="__import__('os').abort()"),
        lambda content: content["runs"][0].update(more=1),
        lambda content: content["runs"].pop(),
        _set("runs", []),
        _set("runs", 3),
        _set("delta", 1e-7),
        _set("delta", 2.0),
        _set("records", 2),
        _set("adjacency", "replace"),
        _set("adjacency", "none"),
        _set("format", "another"),
        _set("unit", ""),
        _set("anchor", "{}"),
        _set("more", 1),
        lambda content: content.pop("sampling"),
        lambda content: content.pop("producer"),
    ],
)
def test_a_forger_of_the_digest_is_found_by_the_price(
    change: Callable[[dict[str, Any]], object],
) -> None:
    with pytest.raises(StatementError):
        verify(forged(change))


def test_a_forger_of_the_words_is_found_by_the_digest_alone() -> None:
    other = forged(_set("unit", "one planet"))
    assert verify(other).statement.unit == "one planet"
    with pytest.raises(StatementError):
        verify(other, digest=json.loads(document())["digest"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "[" * 100_000,
        '{"digest":NaN}\n',
        b"\xff",
        " " * 1_000_001,
        '{"a":1e999}\n',
    ],
)
def test_what_is_no_document_is_rejected(text: str | bytes) -> None:
    with pytest.raises(StatementError):
        verify(text)
    with pytest.raises(DomainError):
        verify(3)  # pyright: ignore[reportArgumentType]


def test_a_ledger_confirms_its_charges_and_no_others() -> None:
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "world", epsilon=5, delta=1e-6, only="zcdp", actor="Ada")
    ran = [Laplace(20.0) * 3, Gaussian(8.0)]
    receipts = [account.charge(each, actor="Ada", key=str(each)) for each in ran]
    said = replace(
        statement(Plan.parse(PLAN), unit="one user", receipts=receipts, anchor=ledger.anchor())
    )
    text = privacy_json(said)
    assert len(verify(text).unchecked) == 4 and len(verify(text, ledger=ledger).unchecked) == 3
    assert "Ada" not in text
    for wrong in (
        replace(said, entries=said.entries[:1]),
        replace(said, entries=(said.entries[0], replace(said.entries[1], sequence=9))),
        replace(said, entries=(said.entries[0], replace(said.entries[1], hash="0" * 64))),
        statement(Plan.parse(PLAN), unit="one user"),
        statement(Laplace(20.0) * 4, delta=1e-6, unit="one user", receipts=receipts),
    ):
        with pytest.raises(StatementError):
            verify(privacy_json(wrong), ledger=ledger)
    with pytest.raises(TamperedError):
        verify(text, ledger=Ledger.open("memory:"))
    with pytest.raises(DomainError):
        verify(text, ledger="memory:")  # pyright: ignore[reportArgumentType]


def test_what_else_the_scope_was_charged_for_is_named() -> None:
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "world", epsilon=50, delta=1e-6, only="zcdp", actor="Ada")
    below = open_scope(ledger, "world/model", epsilon=5, delta=1e-6, only="zcdp", actor="Ada")
    open_scope(ledger, "other", epsilon=5, delta=1e-6, only="zcdp", actor="Ada").charge(
        Laplace(30.0), actor="Ada", key="other"
    )
    for number in range(20):
        account.charge(Gaussian(1.0), actor="Ada", key=f"training {number}")
    for scope, key in ((account, "cheap"), (below, "cheap below")):
        receipt = scope.charge(Laplace(20.0), actor="Ada", key=key)
        said = statement(Laplace(20.0), delta=1e-6, unit="one user", receipts=[receipt])
        found = verify(privacy_json(said), ledger=ledger)
        (named,) = [sentence for sentence in found.unchecked if "more charges" in sentence]
        assert (
            "Gaussian(1.0) in 'world', 20 times" in named
            and "leaves out" in named
            and "other" not in named
        )
        assert "The ledger has these charges, for these mechanisms." in found.checked
    assert "Laplace(20.0) in 'world', 1 time" in named


def test_commands(tmp_path: Path) -> None:
    plan, privacy, card = tmp_path / "plan.toml", tmp_path / "privacy.json", tmp_path / "card.md"
    plan.write_text(PLAN)
    words = [
        "statement",
        str(plan),
        "--unit",
        "one user",
        "--privacy",
        str(privacy),
        "--card",
        str(card),
    ]
    made = invoke(words)
    assert (
        made.exit_code == 0
        and "differentially private" in made.stdout
        and card.read_text().startswith("## Privacy")
    )
    checked = invoke(["statement", "verify", str(privacy)])
    assert checked.exit_code == 0 and "Not checked" in checked.stdout
    assert (
        json.loads(invoke(["statement", "verify", str(privacy), "--json"]).stdout)["epsilon"]
        == stated().epsilon
    )
    assert json.loads(invoke([*words[:4], "--json"]).stdout)["epsilon"] == stated().epsilon
    privacy.write_text(privacy.read_text().replace("one user", "one uses"))
    assert invoke(["statement", "verify", str(privacy)]).exit_code == 1
    assert invoke(["statement", "verify", str(tmp_path / "none.json")]).exit_code == 2
    assert invoke(["statement", "verify", str(tmp_path)]).exit_code == 2
    assert invoke([*words[:3], "  "]).exit_code == 2
    assert (
        invoke(
            ["statement", "verify", str(privacy), "--ledger", str(tmp_path / "none.db")]
        ).exit_code
        == 1
    )


KEY = SigningKey.generate("acme.example/privacy")
OTHER = SigningKey.generate("acme.example/privacy")


def charged_scope() -> tuple[Ledger, Any]:
    """A ledger that granted 20 answers in a scope, and 2 below it."""
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "city", epsilon=4, delta=1e-6, actor="Ada")
    for number in range(20):
        account.charge(Gaussian(20.0), actor="Ada", key=str(number))
    open_scope(ledger, "city/health", epsilon=1, delta=1e-7, actor="Ada")
    below = Account(ledger, scope="city/health")
    for number in range(2):
        below.charge(Laplace(20.0), actor="Ada", key=f"below {number}")
    return ledger, account


def signed(ledger: Ledger, scope: str = "city") -> str:
    found = scope_statement(ledger, scope, unit="one user", delta=1e-6, key=KEY)
    return privacy_json(found, key=KEY)


def test_a_statement_of_a_scope_is_about_everything_that_was_granted_there() -> None:
    ledger, account = charged_scope()
    text = signed(ledger)
    found = verify(text, ledger=ledger, keys=[KEY.verifier])
    whole = compose(Gaussian(20.0) * 20, Laplace(20.0) * 2).epsilon(delta=1e-6)
    assert found.bound == whole and len(text) < 4000
    assert "Nothing else was granted in 'city' up to its anchor." in found.checked
    assert "acme.example/privacy signed it." in found.checked
    assert not any("more charges" in each for each in found.unchecked)
    part = verify(signed(ledger, "city/health"), ledger=ledger, keys=[KEY.verifier])
    assert any("Gaussian(20.0) in 'city', 20 times" in each for each in part.unchecked)
    for number in range(5):
        account.charge(Gaussian(30.0), actor="Ada", key=f"later {number}")
    later = verify(text, ledger=ledger, keys=[KEY.verifier])
    assert any("Gaussian(30.0) in 'city', 5 times" in each for each in later.unchecked)


def test_a_statement_of_a_scope_that_leaves_charges_out_is_refused() -> None:
    ledger, _ = charged_scope()
    whole = scope_statement(ledger, "city", unit="one user", delta=1e-6, key=KEY)
    small = statement(
        Gaussian(20.0) * 19 + Laplace(20.0) * 2, unit="one user", delta=1e-6, anchor=ledger.anchor()
    )
    forged = replace(small, scope="city", checkpoint=whole.checkpoint)
    text = privacy_json(forged, key=KEY)
    assert verify(text, keys=[KEY.verifier])
    with pytest.raises(StatementError, match=r"leaves out Gaussian\(20.0\), 1 times"):
        verify(text, ledger=ledger, keys=[KEY.verifier])
    early, account = charged_scope()
    old = signed(early)
    content = json.loads(old)
    account.charge(Gaussian(30.0), actor="Ada", key="later")
    content["anchor"] = early.anchor().to_json()  # as if it stood on the present ledger
    stripped = {name: each for name, each in content.items() if name not in ("digest", "signature")}
    line = json.dumps(stripped, sort_keys=True, separators=(",", ":")) + "\n"
    content = stripped | {"digest": sha256(line.encode()).hexdigest()}
    changed = json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n"
    with pytest.raises(StatementError, match="leaves out"):
        verify(changed, ledger=early)


def test_signatures_of_others_and_of_other_documents_are_refused() -> None:
    ledger, account = charged_scope()
    text, before = signed(ledger), json.loads(signed(ledger))
    for keys in ([OTHER.verifier], [SigningKey.generate("other").verifier]):
        with pytest.raises(StatementError, match="no key that was given signed it"):
            verify(text, keys=keys)
    account.charge(Gaussian(30.0), actor="Ada", key="later")
    after = json.loads(signed(ledger))
    mixed = json.dumps(
        after | {"signature": before["signature"]}, sort_keys=True, separators=(",", ":")
    )
    with pytest.raises(StatementError, match="of another document"):
        verify(mixed + "\n", keys=[KEY.verifier])
    unsigned = privacy_json(stated())
    assert "It is not signed: who published it is not known." in verify(unsigned).unchecked
    with pytest.raises(StatementError, match="no key that was given signed it"):
        verify(unsigned, keys=[KEY.verifier])
    assert any("no key was given" in each for each in verify(text).unchecked)
    other = json.loads(text) | {"checkpoint": OTHER.sign("acme.example/privacy/city\n1\nAAAA\n")}
    with pytest.raises(StatementError):
        verify(json.dumps(other, sort_keys=True, separators=(",", ":")) + "\n", keys=[KEY.verifier])


def test_scopes_that_cannot_be_stated_are_refused() -> None:
    ledger = Ledger.open("memory:")
    open_scope(ledger, "city", epsilon=4, delta=1e-6, actor="Ada")
    with pytest.raises(UnsupportedError, match="nothing was granted"):
        scope_statement(ledger, "city", unit="one user", delta=1e-6)
    with pytest.raises(UnknownScopeError):
        scope_statement(ledger, "town", unit="one user", delta=1e-6)
    with pytest.raises(DomainError, match="ledger"):
        scope_statement("city.db", "city", unit="one user", delta=1e-6)  # pyright: ignore
    ledger.charge("city", cost=dict.fromkeys(ledger.available("city"), 0), actor="Ada", key="bare")
    with pytest.raises(UnsupportedError, match="names no mechanism"):
        scope_statement(ledger, "city", unit="one user", delta=1e-6)


def test_latex_escapes_what_acts_and_cites_what_is_listed() -> None:
    found = stated().latex
    assert latex("50% & _x^2\\{}~#$") == (
        r"50\% \& \_x\textasciicircum{}2\textbackslash{}\{\}\textasciitilde{}\#\$"
    )
    (keys,) = re.findall(r"\\cite\{([^}]+)\}", found)
    assert all(f"{{{key.strip()}," in stated().bibtex for key in keys.split(","))
    assert r"\section*{Privacy}" in found and found.count(r"\begin{itemize}") == 2
    assert stated().epsilon in found and "differentially private" in found


def test_forgeries_are_refused_as_the_page_says() -> None:
    assert forgeries.rows() == 2 * len(forgeries.ROWS) * len(forgeries.VERIFIERS)
    said = forgeries.campaign(changes=60, seed=11)
    assert "refused by all" in said and "accepted by ledger, nothing" in said
    with forgeries.believing(), pytest.raises(forgeries.ForgeryError, match="too small"):
        forgeries.campaign(changes=60, seed=1)


@pytest.mark.parametrize(
    "change", [{"scope": "nowhere"}, {"scope": 3}, {"sequence": [1]}, {"hash": None}]
)
def test_entries_that_no_ledger_can_have_are_refused(change: dict[str, Any]) -> None:
    content = json.loads(forgeries.office().chosen)
    content["entries"][0].update(change)
    with pytest.raises(StatementError):
        verify(forgeries.digested(content), ledger=forgeries.office().ledger)
