"""The errors of dpcompose.

DPComposeError
├── DomainError(ValueError)        a value outside its domain: name, value, domain, remedy
├── UnsupportedError               a combination without a sound answer
│   └── UnknownMethodError(AttributeError)  a method that other libraries have, and that is refused here
├── UnreachableError               a target that no parameter can reach; carries the limit
├── PlanError(ValueError)          a plan file that cannot be read: file, table, key, value, expected
├── MissingExtraError(ImportError) an optional part that is not installed
├── RefusedRoundError              a round that an adversary may not ask: its number and the reason
├── StatementError                 a published statement that does not hold, or was changed: the reason
├── ReleaseError                   a charge stands, and no answer left
│   ├── EngineError                the engine failed
│   └── SpentError                 a charge that was redeemed before, whose answer is not stored
└── LedgerError                    the ledger will not, or cannot; nothing was changed
    ├── OverdrawnError             more asked than is left: scope, currency, asked, left
    │   └── StepRefusedError       a training step that does not fit; how many of those asked would
    ├── UnknownScopeError          no scope of that path
    ├── ScopeExistsError           a scope of that path was opened otherwise
    ├── ScopeKindError             an operation that this kind of scope does not take
    ├── ClosedScopeError           a scope that was closed
    ├── CurrencyError              a currency that is missing, or that no scope of the chain caps
    ├── KeyReusedError             a key that was used for another request
    ├── ReceiptError               a receipt that this ledger did not give
    │   └── AlreadyRedeemedError   a receipt that was redeemed before
    ├── TamperedError              entries, balances or an anchor that do not agree
    └── StoreError                 a file or server that fails, or is not safe to use
        └── NewerSchemaError       written by a later version of dpcompose
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class DPComposeError(Exception):
    """The root of every error that dpcompose raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, so that a pool of processes hands it on: most are made from more than their message."""
        return _restored, (type(self), self.args, dict(self.__dict__))


class DomainError(DPComposeError, ValueError):
    """A value lies outside the domain of the call that received it; None stands for one that is missing."""

    def __init__(self, name: str, value: Any, domain: str, remedy: str = "") -> None:
        self.name, self.value, self.domain, self.remedy = name, value, domain, remedy
        message = f"{stated(name, value)}: expected {domain}"
        super().__init__(f"{message}. {remedy}" if remedy else message)


class UnsupportedError(DPComposeError):
    """No sound answer is known for this combination.

    Args:
        what: The combination that was asked for.
        reason: Why there is no sound answer, or none yet.
        remedy: What can be asked instead.
    """

    def __init__(self, what: str, reason: str, remedy: str = "") -> None:
        self.what, self.reason, self.remedy = what, reason, remedy
        message = f"{what}: {reason}"
        super().__init__(f"{message}. {remedy}" if remedy else message)


class UnknownMethodError(UnsupportedError, AttributeError):
    """A method that other libraries have, refused here by its name; to `hasattr` it is not there."""


class UnreachableError(DPComposeError):
    """No value of the parameter reaches the target; `limit` is the best that can be reached."""

    def __init__(self, what: str, target: float, limit: float, remedy: str = "") -> None:
        self.what, self.target, self.limit, self.remedy = what, target, limit, remedy
        message = f"{what}: the target {target!r} cannot be reached; the limit is {limit!r}"
        super().__init__(f"{message}. {remedy}" if remedy else message)


class PlanError(DPComposeError, ValueError):
    """A plan file that cannot be understood.

    Args:
        file: Where the plan was read from.
        table: The TOML table, such as `mechanism[2]`; empty for the file itself or its top level.
        key: The offending key, or empty.
        value: The offending value, or None.
        expected: What was expected there.
    """

    def __init__(self, file: str, table: str, key: str, value: Any, expected: str) -> None:
        self.file, self.table, self.key, self.value, self.expected = (
            file,
            table,
            key,
            value,
            expected,
        )
        place = ": ".join(printable(part) for part in (file, table, key) if part)
        shown = "" if value is None else f" = {_shown(value)}"
        super().__init__(f"{place}{shown}: expected {expected}")


class MissingExtraError(DPComposeError, ImportError):
    """An optional part of dpcompose is not installed; the message is the line to type."""

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        line = f"pip install '.[{extra}]' in a clone, pip install 'dpcompose[{extra}]' elsewhere"
        super().__init__(f"{what} needs an optional part: {line}")


class RefusedRoundError(DPComposeError):
    """A round of the experiment that the adversary may not ask; nothing was answered, the state is as before.

    Args:
        number: Which round, from 1.
        reason: Why.
    """

    def __init__(self, number: int, reason: str) -> None:
        self.number, self.reason = number, reason
        super().__init__(f"round {number} is refused: {reason}")


class StatementError(DPComposeError):
    """A published statement that does not hold, or was changed; `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the statement is rejected: {printable(reason)}")


class ReleaseError(DPComposeError):
    """A charge stands, and no answer left."""


class EngineError(ReleaseError):
    """The engine that holds the table failed; its own words may speak of rows, and are not repeated.

    Args:
        engine: The name of the engine.
        charged: Whether it was after the charge.
    """

    def __init__(self, engine: str, *, charged: bool = True) -> None:
        self.engine, self.charged = engine, charged
        aggregating = "failed while it aggregated: the charge stands, and no answer left"
        super().__init__(
            f"{engine} {aggregating if charged else 'failed before the charge: nothing was spent'}. "
            "What it said may tell of rows and is not repeated: ask whoever runs it"
        )


class SpentError(ReleaseError):
    """The charge of this key was redeemed before, and its answer is not stored: a second one would be a second draw.

    Args:
        key: The idempotency key of the request.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"key = {key!r}: the charge is spent. It was redeemed before, and no answer to it is stored here; "
            "a second draw would be a second release. Ask again under a new key, which is charged anew"
        )


class LedgerError(DPComposeError):
    """The ledger refuses, or cannot answer; no balance was changed."""


class OverdrawnError(LedgerError):
    """More was asked than is left.

    Args:
        scope: The path of the first scope from the root down where it does not fit.
        currency: The currency that is short; `slots` for a scope of slots that are all taken.
        asked: The amount asked there, exact.
        left: The amount left there, exact.
    """

    def __init__(self, scope: str, currency: str, asked: Any, left: Any) -> None:
        self.scope, self.currency, self.asked, self.left = scope, currency, asked, left
        amounts = (
            f"{few_digits(asked, up=True)} of {currency} asked, {few_digits(left, up=False)} left"
        )
        super().__init__(f"{scope}: {amounts}. Nothing was spent; ask for less")

    def reworded(self, text: str) -> OverdrawnError:
        """The same refusal with another text."""
        self.args = (text,)
        return self


class StepRefusedError(OverdrawnError):
    """A training step, or a plan of steps, that does not fit; nothing was spent, and nothing of it may run.

    Args:
        scope, currency, asked, left: See `OverdrawnError`.
        steps: How many steps were asked.
        fitting: How many of them would fit.
    """

    def __init__(
        self, scope: str, currency: str, asked: Any, left: Any, *, steps: int, fitting: int
    ) -> None:
        super().__init__(scope, currency, asked, left)
        self.steps, self.fitting = steps, fitting
        more = f"{fitting} more {'step' if fitting == 1 else 'steps'} of this kind would fit"
        self.args = (
            f"{scope}: {steps} {'step' if steps == 1 else 'steps'} refused, {few_digits(asked, up=True)} of {currency} "
            f"asked, {few_digits(left, up=False)} left; "
            f"{more}. Nothing was spent, and none may run; stop, or ask for fewer steps, more noise or smaller samples",
        )


class ReservedError(OverdrawnError):
    """It would fit, but what is left is reserved for others; nothing was spent."""

    def __init__(self, scope: str, currency: str, asked: Any, left: Any) -> None:
        super().__init__(scope, currency, asked, left)
        self.args = (
            f"{self.args[0]}, or ask again when what others reserved was used or has ended",
        )


class ReservationError(LedgerError):
    """A reservation that is not there, has ended, or is too small for this charge; nothing was spent."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"reservation: {reason}")


class QuotaError(LedgerError):
    """More than a person may spend in a period, by a cap that is no promise of privacy; nothing was spent.

    Args:
        scope: Where the quota holds.
        period: The period, such as `2030-05`; `total` for all time.
        currency: The currency that is short.
        asked: The amount asked, exact.
        left: The amount left to this person, exact.
    """

    def __init__(self, scope: str, period: str, *, currency: str, asked: Any, left: Any) -> None:
        self.scope, self.period, self.currency, self.asked, self.left = (
            scope,
            period,
            currency,
            asked,
            left,
        )
        amounts = f"{few_digits(asked, up=True)} of {currency} asked, {few_digits(left, up=False)} left to you"
        super().__init__(
            f"{scope}: {amounts} in {period}, by a quota. Nothing was spent; ask the keeper for more"
        )


class ApprovalError(LedgerError):
    """A charge above a threshold that no second person has approved, or has declined; nothing was spent."""

    def __init__(self, scope: str, reason: str) -> None:
        self.scope, self.reason = scope, reason
        super().__init__(f"{scope}: {reason}")


class UnknownScopeError(LedgerError):
    """No scope of that path is open."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__(
            f"{scope}: there is no such scope. Open it first; paths are compared letter by letter"
        )


class ScopeExistsError(LedgerError):
    """A scope of that path was opened before, with other caps, kind, description or key."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__(
            f"{scope}: this scope exists and was opened otherwise. A scope never changes; choose a new path"
        )


class ScopeKindError(LedgerError):
    """An operation that this kind of scope does not take."""

    def __init__(self, scope: str, kind: str, remedy: str) -> None:
        self.scope, self.kind, self.remedy = scope, kind, remedy
        super().__init__(f"{scope}: not possible in a scope of kind {kind}. {remedy}")


class ClosedScopeError(LedgerError):
    """The scope, or one above it, was closed."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__(
            f"{scope}: this scope is closed; nothing more is charged in it or below it"
        )


class CurrencyError(LedgerError):
    """A cost that does not name exactly the currencies that are capped on the chain of its scope.

    Args:
        scope: The path of the scope.
        currency: The currency that is missing or unknown.
        expected: The currencies to name.
    """

    def __init__(self, scope: str, currency: str, expected: Any, *, missing: bool) -> None:
        self.scope, self.currency, self.expected, self.missing = (
            scope,
            currency,
            tuple(expected),
            missing,
        )
        said = (
            "is missing from the cost; a zero is written"
            if missing
            else "is capped nowhere on the chain"
        )
        names = ", ".join(self.expected) or "nothing"
        super().__init__(f"{scope}: the currency {currency!r} {said}. Expected exactly: {names}")


class KeyReusedError(LedgerError):
    """An idempotency key that was used for another request."""

    def __init__(self, key: str, scope: str) -> None:
        self.key, self.scope = key, scope
        super().__init__(
            f"key = {_shown(key)}: used before below {scope!r}, for another request. Choose a new key"
        )


class ReceiptError(LedgerError):
    """A receipt that this ledger did not give."""

    def __init__(self, scope: str, sequence: int, reason: str) -> None:
        self.scope, self.sequence, self.reason = scope, sequence, reason
        super().__init__(f"receipt {sequence} of {scope}: {reason}")


class AlreadyRedeemedError(ReceiptError):
    """A receipt that was redeemed before: one charge pays for one answer."""

    def __init__(self, scope: str, sequence: int) -> None:
        super().__init__(
            scope,
            sequence,
            "redeemed before; one charge pays for one answer. Charge again for another",
        )


class TamperedError(LedgerError):
    """The stored entries do not agree with each other, or with the anchor; `problems` says where."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        super().__init__(f"the ledger was changed from outside: {problems[0]}{more}")


class EvidenceError(LedgerError):
    """A checkpoint or a proof that shows nothing: a wrong signature, another tree, hashes that do not fit."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"this shows nothing: {reason}")


class StoreError(LedgerError):
    """The file or server of a ledger fails, or is not safe to use.

    Args:
        where: The file or server.
        what: What happened.
        remedy: What can be done.
        uncertain: Whether the change may have been made all the same; asking again with the same key tells.
    """

    def __init__(self, where: str, what: str, remedy: str = "", *, uncertain: bool = False) -> None:
        self.where, self.what, self.remedy, self.uncertain = where, what, remedy, uncertain
        super().__init__(
            f"{printable(where)}: {what}. {remedy}" if remedy else f"{printable(where)}: {what}"
        )


class NewerSchemaError(StoreError):
    """A ledger that a later version of dpcompose wrote."""

    def __init__(self, where: str, found: int, known: int) -> None:
        self.found, self.known = found, known
        what = f"written by a later dpcompose (schema {found}; this version knows {known})"
        super().__init__(
            where, what, "Install that version: pip install --upgrade dpcompose, or pull your clone"
        )


def printable(text: str) -> str:
    """`text` on one line, with whatever a terminal would obey, such as an escape or a newline, as Python writes it."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def stated(name: str, value: Any) -> str:
    """A name and its value for a message, or that the value is missing."""
    return f"{name} is missing" if value is None else f"{name} = {_shown(value)}"


def few_digits(amount: Any, *, up: bool) -> str:
    """An amount to six digits, rounded up where it was asked, down where it is left; other text as it is."""
    from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

    try:
        exact = Decimal(str(amount))
        rounded = (
            Context(prec=6, rounding=ROUND_CEILING if up else ROUND_FLOOR)
            .create_decimal(exact)
            .normalize()
        )
    except ArithmeticError:
        return str(amount)
    return f"{rounded:f}" if rounded == 0 or -5 < rounded.adjusted() < 7 else f"{rounded:e}"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        # Such as an integer of more digits than Python converts.
        return f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"


def _restored(
    kind: type[DPComposeError], args: tuple[Any, ...], fields: dict[str, Any]
) -> DPComposeError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    return error
