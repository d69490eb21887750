"""Forged privacy statements, each refused as `docs/statements.md` says: `python -m campaigns.forgeries --changes 10000`.

An office publishes two statements from one ledger: of chosen charges, and of a whole scope, signed. A verifier may have
nothing but the document, the digest as published elsewhere, the ledger, or the office's key. `ROWS` has a forgery for
each row of the page's table, and who must refuse it; of the others the forger gets by, since the page says no more.

Random changes are of one byte, of a number, word or list anywhere in the document, or of a whole field taken from the
other statement; the forger writes the digest anew in four of five, and the published numbers in one of four. Whoever
has the key must refuse every change, and whoever has the digest every change but that of the signature, which it is not
about. Whoever has the ledger may accept other words, and numbers that are still true, of the same charges; and of fewer,
chosen or up to an earlier anchor, if it is told that there are more. Whoever has the document alone may accept a
statement whose numbers are true of the mechanisms that it names. The oracle composes those itself.

Control, which must fail: a verifier who does not price the mechanisms again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from typing import Any
from unittest.mock import patch

from dpcompose import Adjacency, Gaussian, Laplace, compose
from dpcompose.account import Account, open_scope
from dpcompose.errors import StatementError, TamperedError
from dpcompose.interop import privacy_document
from dpcompose.interop.privacy_document import privacy_json, verify
from dpcompose.interop.statement import priced, scope_statement, statement
from dpcompose.ledger import Anchor, Entry, Ledger, SigningKey
from dpcompose.mechanisms import parse

Content = dict[str, Any]
KEY = SigningKey.generate("office.example/privacy")
VERIFIERS = ("nothing", "digest", "ledger", "key")
NUMBERS = ("epsilon", "bound", "risk")


class ForgeryError(Exception):
    """A forged statement that was accepted."""


@dataclass(frozen=True)
class Office:
    """What was published, and what stands behind it.

    Args:
        ledger: The ledger with all charges.
        chosen: The statement of chosen charges, unsigned.
        scope: The statement of the whole scope, signed.
    """

    ledger: Ledger
    chosen: str
    scope: str

    def refuses(self, text: str | bytes, original: str, verifier: str) -> str:
        """Why a verifier refuses a document; empty if it is accepted."""
        digest = json.loads(original)["digest"] if verifier == "digest" else None
        keys = [KEY.verifier] if verifier == "key" else []
        ledger = self.ledger if verifier == "ledger" else None
        try:
            verify(text, digest=digest, ledger=ledger, keys=keys)
        except (StatementError, TamperedError) as refusal:
            return str(refusal) or type(refusal).__name__
        return ""


@cache
def office() -> Office:
    """An office that charged two releases, states both as chosen charges, and then its scope."""
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "city", epsilon=5, delta=1e-6, only="zcdp", actor="Ada")
    open_scope(ledger, "city/health", epsilon=1, delta=1e-6, only="zcdp", actor="Ada")
    ran = Gaussian(20.0) * 3, Laplace(40.0)
    receipts = [account.charge(each, actor="Ada", key=str(each)) for each in ran]
    chosen = statement(
        compose(*ran), unit="one user", sampling="none", delta=1e-6, receipts=receipts,
        anchor=ledger.anchor(),
    )  # fmt: skip
    Account(ledger, scope="city/health").charge(Gaussian(30.0), actor="Ada", key="below")
    scope = scope_statement(ledger, "city", unit="one user", sampling="none", delta=1e-6, key=KEY)
    return Office(ledger, privacy_json(chosen), privacy_json(scope, key=KEY))


def written(content: Content) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n"


def digested(content: Content) -> str:
    """The document with the digest that belongs to it; a signature stays as it was."""
    rest = {name: each for name, each in content.items() if name not in ("digest", "signature")}
    return written(content | {"digest": sha256(written(rest).encode()).hexdigest()})


def repriced(content: Content) -> Content:
    """The document with the published numbers that follow from its mechanisms."""
    read = privacy_document._stated(content)  # pyright: ignore[reportPrivateUsage]
    bound, risk = priced(read.runs, read.adjacency, read.records, delta=read.delta)
    honest = privacy_document._content(replace(read, bound=bound, risk=risk))  # pyright: ignore[reportPrivateUsage]
    return content | {name: honest[name] for name in NUMBERS}


Change = Callable[[Content], object]


def _smaller(content: Content) -> None:
    content["bound"] = [each / 2 for each in content["bound"]]
    content["epsilon"] = f"{content['bound'][1]:.6g}"


def _larger(content: Content) -> None:
    content["bound"] = [each * 2 for each in content["bound"]]
    content["epsilon"] = f"{content['bound'][1]:.6g}"


def _less_noise(content: Content) -> None:
    content["runs"][0]["mechanism"] = "Gaussian(25.0)"


def _left_out(content: Content) -> None:
    del content["runs"][-1]


def _words(content: Content) -> None:
    content["unit"] = "one planet"


def _earlier(content: Content) -> None:
    """The charges up to an earlier anchor; of chosen ones, none of the last kind."""
    if "scope" in content:
        before = json.loads(office().chosen)
        content.update(runs=before["runs"], anchor=before["anchor"])
    else:
        del content["runs"][-1]


ROWS: tuple[tuple[str, Change, bool, bool, frozenset[str]], ...] = (
    ("any byte, not the digest", _words, False, False, frozenset(VERIFIERS)),
    ("an epsilon that looks smaller", _smaller, True, False, frozenset(VERIFIERS)),
    ("a delta that looks smaller", lambda content: content.update(delta=1e-7), True, False, frozenset(VERIFIERS)),
    ("a risk that looks smaller", lambda content: content["risk"].update(advantage=[0.0, 0.001]), True, False,
     frozenset(VERIFIERS)),
    ("a number that looks larger", _larger, True, False, frozenset(VERIFIERS)),
    ("a mechanism, and all numbers", _less_noise, True, True, frozenset({"digest", "ledger", "key"})),
    ("a count, and all numbers", lambda content: content["runs"][0].update(times=2), True, True,
     frozenset({"digest", "ledger", "key"})),
    ("the unit", _words, True, False, frozenset({"digest", "key"})),
    ("the number of records, and all numbers", lambda content: content.update(records=2), True, True,
     frozenset({"digest", "key"})),
    ("the words on sampling", lambda content: content.update(sampling="Poisson"), True, False,
     frozenset({"digest", "key"})),
    ("charges that it leaves out", _left_out, True, True, frozenset({"digest", "ledger", "key"})),
    ("an earlier anchor under the same checkpoint", _earlier, True, True, frozenset({"digest", "ledger", "key"})),
    ("nothing", lambda content: None, False, False, frozenset()),
)  # fmt: skip
"""The rows of the table in `docs/statements.md`: the forgery, whether the digest and the numbers are written anew, and
the verifiers that refuse it. A statement that is not signed is refused by whoever trusts a key."""


def rows() -> int:
    """Hold one forgery of each row against each verifier; ForgeryError if one is accepted or refused unlike the page."""
    tried = 0
    for name, change, redigested, renumbered, refusing in ROWS:
        for original in (office().chosen, office().scope):
            content = json.loads(original)
            change(content)
            content = repriced(content) if renumbered else content
            text = digested(content) if redigested else written(content)
            unsigned = {"key"} if original == office().chosen else frozenset[str]()
            for verifier in VERIFIERS:
                refused, tried = office().refuses(text, original, verifier), tried + 1
                if bool(refused) != (verifier in refusing | unsigned):
                    raise ForgeryError(f"{name}, by {verifier}: {refused or 'accepted'}")
    return tried


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each value inside a document, as its container and its key or index."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _leaves(value[key])


def _changed_value(rng: random.Random, value: Any) -> Any:
    """Another value of the same kind, or of another."""
    if rng.random() < 0.1:
        return rng.choice([None, True, 0, -1, 10**18, 1e-9, "", "x", [], {}, [[]]])
    match value:
        case bool() | None:
            return rng.choice([0, 1, "null", not value])
        case int() | float():
            return rng.choice(
                [value * rng.choice([0.5, 0.999999, 1.000001, 2]), value + 1, int(value), -value]
            )
        case str():
            numbers = [at for at, each in enumerate(value) if each.isdigit()]
            if numbers and rng.random() < 0.7:
                at = rng.choice(numbers)
                return value[:at] + rng.choice("0123456789") + value[at + 1 :]
            return rng.choice([value + " ", value[1:], value.upper(), value[::-1], value + "0"])
        case list() if value:
            return rng.choice([value[:-1], value[::-1], [*value, value[0]], value[1:]])
        case _:
            return rng.choice([[], {}, None, "x"])


def forged(rng: random.Random) -> tuple[str, str | bytes]:
    """One of the documents, and a random change of it, which may be none."""
    both = [office().chosen, office().scope]
    rng.shuffle(both)
    original, other = both
    if rng.random() < 0.1:
        raw, at = bytearray(original.encode()), rng.randrange(len(original))
        raw[at] = rng.randrange(256)
        return original, bytes(raw)
    content = json.loads(original)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        container, key = rng.choice(list(_leaves(content)))
        if rng.random() < 0.15:
            name = rng.choice(sorted(content))
            content[name] = json.loads(other).get(name, content[name])
        elif isinstance(container, dict) and rng.random() < 0.1:
            container.pop(key)
        elif isinstance(container, list) and key >= len(container):
            continue
        else:
            container[key] = _changed_value(rng, container[key])
    if rng.random() < 0.25:
        try:
            content = repriced(content)
        except Exception:  # it describes no statement, or none with a finite price
            return original, digested(content)
    return original, digested(content) if rng.random() < 0.8 else written(content)


def is_true(text: str | bytes) -> bool:
    """Whether the epsilon of a document is one of the mechanisms that it names."""
    content = json.loads(text)
    whole = compose(*(parse(run["mechanism"]) * run["times"] for run in content["runs"]))
    whole = whole if content["records"] == 1 else whole.group(content["records"])
    bound = whole.epsilon(delta=content["delta"], adjacency=Adjacency(content["adjacency"]))
    return float(content["epsilon"]) >= bound.lower


def runs_of(text: str | bytes) -> Counter[str]:
    """The mechanisms that a document names, with their counts."""
    counts = Counter[str]()
    for run in json.loads(text)["runs"]:
        counts[repr(parse(run["mechanism"]))] += run["times"]
    return counts


def charged(text: str | bytes) -> Counter[str]:
    """The mechanisms of the charges that a statement is about, as the ledger has them: those that it lists, or in a
    scope all up to its anchor.
    """
    content, counts = json.loads(text), Counter[str]()
    listed, last = {entry["hash"] for entry in content["entries"]}, 0
    if "scope" in content:
        last = dict(Anchor.read(content["anchor"]).heads)["city"].sequence
        if "checkpoint" in content and int(content["checkpoint"].split("\n")[1]) != last:
            return Counter({"the checkpoint is of other charges": 1})
    for entry in office().ledger.entries("city"):
        if entry.kind == Entry.GRANTED and (entry.sequence <= last or entry.hash in listed):
            for part, times in compose(parse(str(entry.description["mechanism"]))).parts:
                counts[repr(part)] += times
    return counts


def _is_told(text: str | bytes) -> bool:
    """Whether who verifies a statement by the ledger is told of charges that it leaves out."""
    return any("more charges" in each for each in verify(text, ledger=office().ledger).unchecked)


def _resigned(text: str | bytes, original: str) -> bool:
    """Whether nothing but the signature was changed, which the digest is not about."""
    both = json.loads(text), json.loads(original)
    one, other = (
        {name: each for name, each in content.items() if name != "signature"} for content in both
    )
    return one == other


def campaign(*, changes: int, seed: int, first: int = 0) -> str:
    """Try so many random changes on every verifier; ForgeryError if one gets by that must not."""
    outcomes: Counter[str] = Counter()
    for number in range(first, first + changes):
        original, text = forged(random.Random(f"{seed}/{number}"))
        if text in (original, original.encode()):
            outcomes["changed nothing"] += 1
            continue
        accepted = {each for each in VERIFIERS if not office().refuses(text, original, each)}
        what = f"change {number} of seed {seed}: {text!r}"
        if "key" in accepted or ("digest" in accepted and not _resigned(text, original)):
            raise ForgeryError(f"accepted by {', '.join(sorted(accepted))}: {what}")
        if accepted and not is_true(text):
            raise ForgeryError(f"an epsilon that is too small: {what}")
        if "ledger" in accepted:
            ran, before = runs_of(text), runs_of(original)
            if ran != charged(text) or not (ran == before or _is_told(text)):
                raise ForgeryError(f"other charges than the ledger's: {what}")
        outcomes[
            f"accepted by {', '.join(sorted(accepted))}" if accepted else "refused by all"
        ] += 1
    return ", ".join(f"{times:,} {name}" for name, times in sorted(outcomes.items()))


def believing() -> Any:
    """The control: a verifier who does not price the mechanisms again."""
    return patch.object(privacy_document, "_priced_again", lambda stated: stated.bound)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first change")
    asked = parser.parse_args()
    try:
        with believing():
            campaign(changes=1000, seed=asked.seed)
    except ForgeryError as caught:
        print(f"control: caught: {str(caught)[:100]}", flush=True)
    else:
        sys.exit("the control passed")
    print(f"one forgery of each row: {rows()} as the page says", flush=True)
    print(campaign(changes=asked.changes, seed=asked.seed, first=asked.first), flush=True)


if __name__ == "__main__":
    main()
