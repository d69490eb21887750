"""JSON schemas of the documents that commands print under --json, format 1.

Every document has `dpcompose`, `format` and `command`, and then the members of its command, or `error` alone. A later
version may add members; it takes none away.
"""

from __future__ import annotations

from typing import Any

from dpcompose.errors import DomainError

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {}
NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
AMOUNT: Schema = {"type": "string", "description": "An exact decimal."}


def record(optional: tuple[str, ...] = (), /, **members: Schema) -> Schema:
    """An object with these members, all of them required but the optional ones."""
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": members, "required": required}


def listed(each: Schema) -> Schema:
    """A list of any length."""
    return {"type": "array", "items": each}


def mapped(each: Schema) -> Schema:
    """An object with any names."""
    return {"type": "object", "additionalProperties": each}


def maybe(each: Schema) -> Schema:
    """That, or null."""
    return {"anyOf": [each, {"type": "null"}]}


def either(*each: Schema) -> Schema:
    """One of several."""
    return {"anyOf": list(each)}


BOUND = record(
    lower=NUMBER, upper=NUMBER, width=NUMBER, method=TEXT, errors=record(unit=TEXT, terms=mapped(NUMBER)),
    notes=listed(TEXT),
)  # fmt: skip
PLAN = record(source=TEXT, adjacency=TEXT, toml=TEXT)
AMOUNTS = mapped(AMOUNT)
_RISK = record(
    ("curve",), prior=NUMBER, false_positive_rate=NUMBER, true_positive_rate=BOUND, advantage=BOUND, bayes_error=BOUND,
    reconstruction=BOUND, curve=ANYTHING,
)  # fmt: skip
_BALANCE = record(
    path=TEXT, kind=TEXT, caps=AMOUNTS, spent=AMOUNTS, left=AMOUNTS,
    target=maybe(record(epsilon=AMOUNT, delta=AMOUNT)), epsilon=maybe(record(spent=NUMBER, left=NUMBER)),
    slots=maybe(INTEGER), taken=maybe(INTEGER), renew=maybe(TEXT), period=maybe(listed(TEXT)),
    closed=FLAG, opened=INTEGER, description=mapped(ANYTHING),
)  # fmt: skip
_ENTRY = record(
    ("definition", "description", "cost", "key", "redeems", "short"), actor=TEXT, kind=TEXT, previous=TEXT, scope=TEXT,
    sequence=INTEGER, time=TEXT, version=INTEGER, hash=TEXT, definition=mapped(ANYTHING),
    description=mapped(ANYTHING), cost=AMOUNTS, key=maybe(TEXT), redeems=INTEGER, short=AMOUNTS,
)  # fmt: skip
_EXPOSED = record(
    available=FLAG, epsilon=maybe(NUMBER), regime=TEXT, holds=TEXT, theorem=TEXT, failure=NUMBER
)
_DEPLOYMENT = record(
    name=TEXT, unit=TEXT, neighbors=TEXT, budget=maybe(mapped(ANYTHING)), caps=AMOUNTS, spent=AMOUNTS, left=AMOUNTS,
    closed=FLAG, charges=mapped(INTEGER), first=maybe(TEXT), last=maybe(TEXT),
    mechanisms=listed(record(mechanism=TEXT, times=INTEGER, cost=AMOUNTS)),
)  # fmt: skip
_LOWER = record(lower=NUMBER, delta=NUMBER)
_CURVE = record(
    epsilon=listed(NUMBER), lower=listed(NUMBER), estimate=listed(NUMBER), upper=listed(NUMBER),
    certified=listed(NUMBER), exact=maybe(listed(NUMBER)),
)  # fmt: skip
_STATEMENT = record(
    number=TEXT, title=TEXT, says=TEXT,
    parameters=listed(record(name=TEXT, kind=TEXT, meaning=TEXT, required=FLAG)),
)  # fmt: skip
_COMPARED = record(
    theorem=TEXT, reference=TEXT, kind=TEXT, epsilon=NUMBER, lower=maybe(NUMBER), note=TEXT
)
_RECEIPT = record(scope=TEXT, sequence=INTEGER, key=TEXT, hash=TEXT)
_QUOTE = record(
    question=TEXT,
    price=AMOUNTS,
    fits=FLAG,
    error=record(**{"confidence": NUMBER, "at most": maybe(NUMBER)}),
)
_ADVICE = record(
    filter=TEXT, open=maybe(TEXT), work=either(NUMBER, TEXT), alone=mapped(maybe(NUMBER)), charge_delta=maybe(NUMBER),
    refusal=maybe(TEXT),
)  # fmt: skip

DOCUMENTS: dict[str, Schema] = {
    "account": record(
        ("risk",), plan=PLAN, given=mapped(NUMBER), asked=TEXT, total=BOUND,
        budget=maybe(record(epsilon=NUMBER, within=FLAG)), comparison_delta=maybe(NUMBER), comparison=listed(_COMPARED),
        mechanisms=listed(record(name=TEXT, times=INTEGER, alone=maybe(BOUND), without=maybe(BOUND))),
        unbounded=listed(TEXT), total_without_unbounded=maybe(BOUND), risk=_RISK,
    ),
    "calibrate": record(
        ("epsilon", "gain"), key=TEXT, value=NUMBER, which=TEXT, target=mapped(maybe(NUMBER)), epsilon=BOUND,
        gain=BOUND, beyond=maybe(BOUND), plan=PLAN,
    ),
    "compare": record(
        given=mapped(NUMBER), asked=TEXT,
        plans=listed(
            record(plan=PLAN, total=BOUND, comparison_delta=maybe(NUMBER), comparison=listed(_COMPARED))
        ),
    ),
    "theorem": either(
        record(statements=listed(_STATEMENT)),
        record(
            number=TEXT, title=TEXT, says=TEXT, given=mapped(either(NUMBER, listed(NUMBER))), value=mapped(NUMBER),
            caveats=listed(TEXT), reference=TEXT,
        ),
    ),
    "experiment": record(
        adversary=TEXT, rounds=INTEGER, family=listed(TEXT), adjacency=TEXT, orientation=TEXT, transcripts=INTEGER,
        seed=INTEGER, failure=NUMBER, epsilon=NUMBER, delta=record(lower=NUMBER, estimate=NUMBER, upper=NUMBER),
        certified=BOUND, exact=maybe(BOUND), sound=FLAG, curve=_CURVE,
        theorems=listed(record(theorem=TEXT, reference=TEXT, points=listed(listed(NUMBER)))),
        losses=record(edges=listed(NUMBER), world_0=listed(NUMBER), world_1=listed(NUMBER)),
    ),
    "adaptive advise": record(target=mapped(NUMBER), filters=listed(_ADVICE)),
    "statement": record(epsilon=TEXT, delta=NUMBER, paragraph=TEXT),
    "statement verify": record(
        epsilon=TEXT, delta=NUMBER, certified=BOUND, unit=TEXT, digest=TEXT, checked=listed(TEXT),
        unchecked=listed(TEXT),
    ),
    "import": record(source=TEXT, adjacency=TEXT, toml=TEXT),
    "release": either(
        record(left=AMOUNTS, quotes=listed(_QUOTE)),
        record(charged=AMOUNTS, left=AMOUNTS, receipt=_RECEIPT, replayed=FLAG, answers=listed(mapped(ANYTHING))),
    ),
    "audit": record(
        verdict=TEXT, subject=TEXT, claim=TEXT, alpha=NUMBER, samples=INTEGER, log_wealth=NUMBER, epsilon=_LOWER,
        event=TEXT, unseen=NUMBER, repeated=FLAG, freshness=TEXT, not_looked_at=listed(TEXT),
        tried=listed(record(event=TEXT, excess=NUMBER, error=NUMBER, excluded=NUMBER)), notes=listed(TEXT),
    ),
    "audit check": record(
        refuted=FLAG, log_wealth=NUMBER, samples=INTEGER, alpha=TEXT, claim=TEXT, claims=listed(ANYTHING), subject=TEXT,
        again=maybe(FLAG), comparable=FLAG, repeated=FLAG,
    ),
    "audit scores": record(
        verdict=TEXT, epsilon=_LOWER, guesses=INTEGER, right=INTEGER, pvalue=NUMBER, alpha=NUMBER,
        mu=maybe(NUMBER), if_gaussian=maybe(NUMBER),
    ),
    "ledger init": record(ledger=TEXT, scopes=INTEGER),
    "ledger scope": _BALANCE,
    "ledger charge": either(
        record(
            granted={"const": True}, scope=TEXT, sequence=INTEGER, key=TEXT, cost=AMOUNTS, left=AMOUNTS, receipt=TEXT
        ),
        record(granted={"const": False}, scope=TEXT, currency=TEXT, asked=AMOUNT, left=AMOUNT, reason=TEXT),
    ),
    "ledger redeem": record(scope=TEXT, sequence=INTEGER, key=TEXT),
    "ledger close": record(ledger=TEXT, scope=TEXT, closed=FLAG),
    "ledger show": record(ledger=TEXT, scopes=listed(_BALANCE)),
    "ledger price": record(
        ledger=TEXT, scope=TEXT, fits=FLAG, cost=AMOUNTS, left=AMOUNTS,
        epsilon=maybe(record(asked=NUMBER, left=NUMBER)),
    ),
    "ledger log": record(ledger=TEXT, path=TEXT, entries=listed(_ENTRY)),
    "ledger exposure": record(
        ledger=TEXT, paths=listed(TEXT), delta=NUMBER, adjacency=TEXT, promised=_EXPOSED, spent=_EXPOSED,
        window=maybe(TEXT), periods=mapped(INTEGER),
    ),
    "ledger admin backup": record(ledger=TEXT, backup=TEXT, entries=INTEGER, scopes=INTEGER, anchor=TEXT),
    "ledger admin restore": record(
        ledger=TEXT, backup=TEXT, entries=INTEGER, scopes=INTEGER, anchored=FLAG, anchor=TEXT,
        lost=listed(record(scope=TEXT, has=INTEGER, anchor=INTEGER)),
    ),
    "ledger verify": either(
        record(ledger=TEXT, sound={"const": True}, entries=INTEGER, scopes=INTEGER, anchored=FLAG, anchor=TEXT),
        record(ledger=TEXT, sound={"const": False}, problems=listed(TEXT)),
    ),
    "ledger export": record(
        registry=TEXT, producer=TEXT, deployments=listed(_DEPLOYMENT),
        totals=mapped(record(spent=AMOUNTS, caps=AMOUNTS)), anchor=mapped(record(entries=INTEGER, hash=TEXT)),
    ),
    "ledger evidence key": record(key=TEXT, secret=TEXT),
    "ledger evidence check-proof": either(
        record(
            holds={"const": True}, kind={"const": "inclusion"}, scope=TEXT, entries=INTEGER, signer=TEXT, entry=ANYTHING
        ),
        record(
            holds={"const": True}, kind={"const": "consistency"}, scope=TEXT, entries=INTEGER, signer=TEXT,
            since=INTEGER,
        ),
        record(holds={"const": False}, reason=TEXT),
    ),
}  # fmt: skip
"""The members of each command's document, by the words of the command."""

_ERROR = record(
    error=record(kind=TEXT, message=TEXT, status={"type": "integer", "minimum": 1, "maximum": 4})
)


def schema(command: str) -> Schema:
    """The JSON schema of the documents of a command, such as "ledger show"; its errors included.

    >>> schema("ledger show")["properties"]["command"]
    {'const': 'ledger show'}

    Args:
        command: The words after `dpcompose`.

    Raises:
        DomainError: If no command of that name prints a document.
    """
    if command not in DOCUMENTS:
        raise DomainError("COMMAND", command, f"one of {', '.join(DOCUMENTS)}")
    head = record(dpcompose=TEXT, format={"const": 1}, command={"const": command})
    return (
        {"$schema": DIALECT, "title": f"dpcompose {command}"}
        | head
        | either(DOCUMENTS[command], _ERROR)
    )
