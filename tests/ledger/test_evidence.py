"""Checkpoints and proofs: what the keys vouch for is believed, and nothing else."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from dpcompose.errors import DomainError, EvidenceError, TamperedError, UnknownScopeError
from dpcompose.ledger import (
    Anchor,
    Charge,
    Ledger,
    evidence as checkpoints_module,
    tables,
    verification,
)
from dpcompose.ledger.evidence import (
    Checkpoint,
    Evidence,
    SigningKey,
    TiledTree,
    VerifierKey,
    key_path,
)
from dpcompose.ledger.merkle import (
    EMPTY,
    Frontier,
    ProofError,
    consistency_ranges,
    inclusion_ranges,
    leaf_hash,
    root_from_inclusion,
    root_hash,
    roots_from_consistency,
)

KEY = SigningKey("acme.example/privacy", bytes(range(32)))
OTHER = SigningKey("acme.example/privacy", bytes(range(1, 33)))


def by_definition(leaves: list[bytes]) -> bytes:
    """The root as RFC 6962 defines it."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"").digest()
    split = 1
    while 2 * split < len(leaves):
        split *= 2
    return sha256(b"\1" + by_definition(leaves[:split]) + by_definition(leaves[split:])).digest()


LEAVES = [leaf_hash(str(number)) for number in range(33)]


def _over(leaves: list[bytes], ranges: list[tuple[int, int]]) -> list[bytes]:
    return [by_definition(leaves[start:stop]) for start, stop in ranges]


def test_tiles_give_every_root_and_every_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiles of four hashes: three levels of them below 70 entries, all sizes and entries against the definition."""
    for module in (checkpoints_module, tables, verification):
        monkeypatch.setattr(module, "WIDTH", 4)
    with Ledger.open(tmp_path / "city.db") as ledger:
        ledger.scope("city", caps={"epsilon": 100}, actor="Ada")
        charges = [
            Charge.of("city", {"epsilon": "0.1"}, None, actor="Ada", key=str(number))
            for number in range(69)
        ]
        ledger.charge_together(charges[:30])
        for charge in charges[30:]:
            ledger.charge_together([charge])
        with ledger.moment() as moment:
            snapshot = moment.snapshot
            leaves = [
                leaf_hash(each.body) for each in snapshot.records("city", after=0, limit=None)
            ]
            assert {level for level, *_ in snapshot.tiles("city")} == {0, 1, 2}
            for size in range(1, 71):
                tree = TiledTree(snapshot, "city")
                assert tree.hashes([(0, size)]) == [by_definition(leaves[:size])]
                for index in range(0, size, 3):
                    ranges = inclusion_ranges(index, 0, size)
                    ranges += consistency_ranges(index + 1, 0, size)
                    assert tree.hashes(ranges) == _over(leaves, ranges)
        ledger.verify()
        writer = ledger.store._writer  # type: ignore[attr-defined]
        writer.execute("UPDATE tile SET hashes = replace(hashes, 'a', 'b') WHERE level = 1")
        with pytest.raises(TamperedError, match="tiles"):
            ledger.verify()
        writer.execute("DELETE FROM tile")
        with pytest.raises(TamperedError, match="tiles"):
            ledger.verify()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 32, 33])
def test_paths_lead_to_the_root_of_the_definition_and_no_others_do(size: int) -> None:
    leaves, wrong = LEAVES[:size], sha256(b"another").digest()
    root = by_definition(leaves)
    assert root_hash(leaves) == root
    for index in range(size):
        path = _over(leaves, inclusion_ranges(index, 0, size))
        assert root_from_inclusion(leaves[index], index, size, path) == root
        assert root_from_inclusion(wrong, index, size, path) != root
        with pytest.raises(ProofError):
            root_from_inclusion(leaves[index], index, size, [*path, wrong])
    for earlier in range(1, size + 1):
        before, path = (
            by_definition(leaves[:earlier]),
            _over(leaves, consistency_ranges(earlier, 0, size)),
        )
        assert roots_from_consistency(before, earlier, size, path) == (before, root)
        assert earlier == size or roots_from_consistency(wrong, earlier, size, path) != (
            wrong,
            root,
        )
        with pytest.raises(ProofError):
            roots_from_consistency(before, earlier, size, [*path, wrong])


def test_the_tree_is_that_of_certificate_transparency() -> None:
    inputs = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ]
    tree = Frontier()
    assert tree.root == EMPTY
    for text in inputs:
        tree.add(sha256(b"\0" + bytes.fromhex(text)).digest())
    assert tree.root.hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


def filled(charges: int = 5) -> Ledger:
    ledger = Ledger.open("memory:")
    ledger.scope("city", caps={"epsilon": 100}, actor="keeper")
    for number in range(charges):
        ledger.charge("city", cost={"epsilon": "0.1"}, actor="Ada", key=str(number))
    return ledger


def signed(ledger: Ledger, key: SigningKey = KEY) -> Checkpoint:
    with ledger.moment() as moment:
        return Checkpoint.sign(moment.snapshot, "city", key)


def proof_of(ledger: Ledger, sequence: int, checkpoint: Checkpoint) -> str:
    with ledger.moment() as moment:
        return Evidence.prove_inclusion(moment.snapshot, sequence, checkpoint)


def proof_between(ledger: Ledger, earlier: Checkpoint, later: Checkpoint) -> str:
    with ledger.moment() as moment:
        return Evidence.prove_consistency(moment.snapshot, earlier, later)


def test_an_entry_is_proved_without_the_ledger() -> None:
    ledger = filled()
    checkpoint = signed(ledger)
    for entry in ledger.entries("city"):
        found = Evidence.read(proof_of(ledger, entry.sequence, checkpoint), [KEY.verifier])
        assert found.entry == entry and found.checkpoint == checkpoint
    with pytest.raises(DomainError, match="1 to 6"):
        proof_of(ledger, 7, checkpoint)


def test_a_later_checkpoint_goes_on_from_an_earlier_one() -> None:
    ledger = filled(1)
    checkpoints = [signed(ledger)]
    for number in range(9):
        ledger.charge("city", cost={"epsilon": "0.1"}, actor="Ada", key=f"more {number}")
        checkpoints.append(signed(ledger))
    for earlier in checkpoints[:4]:
        for later in checkpoints[3:]:
            found = Evidence.read(proof_between(ledger, earlier, later), [KEY.verifier])
            assert (found.earlier, found.checkpoint) == (earlier, later)
    with pytest.raises(DomainError, match="an earlier checkpoint"):
        proof_between(ledger, checkpoints[3], checkpoints[2])


@pytest.mark.parametrize("kind", ["inclusion", "consistency"])
def test_no_change_of_a_byte_is_believed(kind: str) -> None:
    ledger = filled()
    first = signed(ledger)
    ledger.charge("city", cost={"epsilon": 1}, actor="Ada", key="more")
    later = signed(ledger)
    text = (
        proof_of(ledger, 3, later) if kind == "inclusion" else proof_between(ledger, first, later)
    )
    Evidence.read(text, [KEY.verifier])
    for place, letter in enumerate(text):
        for other in {"A", "\n", chr(ord(letter) ^ 1)} - {letter}:
            changed = text[:place] + other + text[place + 1 :]
            if changed.rstrip() == text.rstrip():
                continue
            with pytest.raises(EvidenceError):
                Evidence.read(changed, [KEY.verifier])


def test_a_forked_log_cannot_be_proved() -> None:
    ledger, fork = filled(), filled(4)
    fork.charge("city", cost={"epsilon": "0.2"}, actor="Ada", key="another")
    fork.charge("city", cost={"epsilon": "0.2"}, actor="Ada", key="one more")
    before, after = signed(ledger), signed(fork)
    with pytest.raises(TamperedError, match="not those that were signed"):
        proof_between(fork, before, after)
    with pytest.raises(TamperedError, match="not those that were signed"):
        proof_of(fork, 1, before)
    path = proof_between(fork, after, after)
    with pytest.raises(EvidenceError, match=r"forked|hashes"):
        Evidence.read(path.replace(after.note * 2, before.note + after.note), [KEY.verifier])
    with pytest.raises(TamperedError, match="not those of the checkpoint"):
        fork.verify(Anchor(checkpoints=(before,)))


def test_only_trusted_keys_are_believed() -> None:
    ledger = filled()
    text = proof_of(ledger, 2, signed(ledger))
    for keys in ([], [OTHER.verifier], [VerifierKey("mallory.example", KEY.verifier.public)]):
        with pytest.raises(EvidenceError, match="none of the keys"):
            Evidence.read(text, keys)
    stolen = VerifierKey(KEY.name, OTHER.verifier.public)
    forged = KEY.sign("acme.example/privacy/city\n6\n" + "A" * 43 + "=\n").replace(
        "privacy/city", "privacy/town"
    )
    with pytest.raises(EvidenceError, match="changed"):
        VerifierKey.opened(forged, [KEY.verifier, stolen])


def test_what_was_signed_for_another_purpose_is_no_checkpoint() -> None:
    for text in (
        "a\nb\nc\n",
        "acme.example/privacy/city/ward\n6\n" + "A" * 43 + "=\n",
        "mallory/city\n6\nAAAA\n",
    ):
        with pytest.raises(EvidenceError, match="no checkpoint"):
            Checkpoint.read_all(KEY.sign(text), [KEY.verifier])
    for text in ("", "{}", "\n\n\n", signed(filled()).note + "more"):
        with pytest.raises(EvidenceError, match="something else"):
            Checkpoint.read_all(text, [KEY.verifier])


def test_verify_takes_checkpoints_as_anchors() -> None:
    ledger = filled()
    first, other = signed(ledger), signed(ledger, OTHER)
    ledger.charge("city", cost={"epsilon": 1}, actor="Ada", key="more")
    found = ledger.verify(Anchor(checkpoints=(first, other, signed(ledger))))
    assert found.anchored and found.entries == 7
    shorter = filled(3)
    with pytest.raises(TamperedError, match="ends at entry 4, the anchor has 6"):
        shorter.verify(Anchor(checkpoints=(first,)))
    with pytest.raises(TamperedError, match="gone"):
        Ledger.open("memory:").verify(Anchor(checkpoints=(first,)))


def test_a_key_is_announced_and_revoked_in_the_log() -> None:
    ledger = filled()
    with pytest.raises(UnknownScopeError):
        ledger.revoke_key("city", KEY.verifier, actor="keeper")
    path = ledger.announce_key("city", KEY.verifier, actor="keeper")
    assert (
        path
        == key_path("city", KEY.verifier)
        == ledger.announce_key("city", KEY.verifier, actor="keeper")
    )
    before = signed(ledger)
    ledger.revoke_key("city", KEY.verifier, actor="keeper")
    assert ledger.verify(Anchor(checkpoints=(before, signed(ledger, OTHER)))).anchored
    with pytest.raises(TamperedError, match="entry 8 revokes it"):
        ledger.verify(Anchor(checkpoints=(signed(ledger),)))


def test_keys_are_read_as_they_were_written() -> None:
    made = SigningKey.generate("acme.example")
    assert (
        SigningKey.read(made.text) == made and VerifierKey.read(made.verifier.text) == made.verifier
    )
    assert made.seed.hex() not in repr(made)
    for name in ("", "two words", "a+b", "a\n", "\x85", 7):
        with pytest.raises(DomainError, match="name"):
            SigningKey.generate(name)  # pyright: ignore[reportArgumentType]
    for text in (
        "",
        "a",
        made.text,
        made.verifier.text[:-2],
        made.verifier.text.replace("acme", "acmf"),
    ):
        with pytest.raises(DomainError):
            VerifierKey.read(text)
    for text in ("", made.verifier.text, made.text[:-4], made.text.replace("acme", "acmf")):
        with pytest.raises(DomainError) as caught:
            SigningKey.read(text)
        assert made.text[40:] not in str(caught.value)
    for text in ("", "no end", "\n", "a\tb\n"):
        with pytest.raises(DomainError, match="text"):
            made.sign(text)


def test_who_signs_needs_a_top_level_scope_with_entries() -> None:
    ledger = filled()
    with ledger.moment() as moment:
        for scope in ("town", "city/ward", "", "a b"):
            with pytest.raises(DomainError):
                Checkpoint.sign(moment.snapshot, scope, KEY)
