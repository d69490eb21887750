"""The errors of dpcompose.

DPComposeError
├── DomainError(ValueError)        a value outside its domain: name, value, domain, remedy
├── UnsupportedError               a combination for which no sound result is known
│   └── UnknownMethodError(AttributeError)  a method of other libraries that is refused
├── UnreachableError               a target that no value of a parameter reaches; carries the limit
├── PlanError(ValueError)          a plan file that cannot be parsed: file, table, key, value, expected
├── MissingExtraError(ImportError) an optional dependency that is not installed
├── RefusedRoundError              a round that an adversary may not play: its number and the reason
├── StatementError                 a published statement that is invalid or was modified: the reason
├── ReleaseError                   a failure after the charge: no answer was returned
│   ├── EngineError                the database engine failed
│   └── SpentError                 a charge that was redeemed before, whose answer is not stored
└── LedgerError                    a refusal or failure of the ledger; no balance was changed
    ├── OverdrawnError             a charge above the remaining budget: scope, currency, requested, left
    │   └── StepRefusedError       training steps above the remaining budget; how many would fit
    ├── UnknownScopeError          no open scope with that path
    ├── ScopeExistsError           a scope with that path and other caps, kind, description or key
    ├── ScopeKindError             an operation that is not possible in this kind of scope
    ├── ClosedScopeError           a scope that was closed
    ├── CurrencyError              a cost that names other units than the scope and its ancestors cap
    ├── KeyReusedError             a key that was used for another request
    ├── ReceiptError               a receipt that this ledger did not issue
    │   └── AlreadyRedeemedError   a receipt that was redeemed before
    ├── TamperedError              entries, balances or an anchor that contradict each other
    └── StoreError                 a file or server that fails, or is not safe to use
        └── NewerSchemaError       written by a later version of dpcompose
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any


class DPComposeError(Exception):
    """The base class of every error that dpcompose raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """The state for pickling: message and attributes, without a call of the constructor."""
        return _restored, (type(self), self.args, dict(self.__dict__))


class DomainError(DPComposeError, ValueError):
    """An argument lies outside its domain.

    Args:
        name: The name of the argument.
        value: The value passed; None if it is missing.
        domain: The values accepted.
        remedy: A way to repair the call; may be empty.
    """

    def __init__(self, name: str, value: Any, domain: str, remedy: str = "") -> None:
        self.name, self.value, self.domain, self.remedy = name, value, domain, remedy
        message = f"{stated(name, value)}: expected {domain}"
        super().__init__(f"{message}. {remedy}" if remedy else message)


class UnsupportedError(DPComposeError):
    """No sound result is known for this combination of arguments.

    Args:
        what: The combination.
        reason: The reason why no sound result is known or implemented.
        remedy: A supported alternative; may be empty.
    """

    def __init__(self, what: str, reason: str, remedy: str = "") -> None:
        self.what, self.reason, self.remedy = what, reason, remedy
        message = f"{what}: {reason}"
        super().__init__(f"{message}. {remedy}" if remedy else message)


class UnknownMethodError(UnsupportedError, AttributeError):
    """A method of other privacy libraries that dpcompose refuses; `hasattr` returns False for it."""


class UnreachableError(DPComposeError):
    """No value of the parameter reaches the target.

    Args:
        what: The parameter, or the calibration.
        target: The target value.
        limit: The best value that can be reached.
        remedy: The cause, or a way to a feasible target; may be empty.
    """

    def __init__(self, what: str, target: float, limit: float, remedy: str = "") -> None:
        self.what, self.target, self.limit, self.remedy = what, target, limit, remedy
        message = f"{what}: the target {target!r} cannot be reached; the limit is {limit!r}"
        super().__init__(f"{message}. {remedy}" if remedy else message)


class PlanError(DPComposeError, ValueError):
    """A plan file cannot be parsed.

    Args:
        file: The name of the file or text.
        table: The TOML table, such as `mechanism[2]`; empty for the top level or the whole file.
        key: The key at fault; may be empty.
        value: The value at fault, or None.
        expected: The content accepted instead.
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
        shown = "" if value is None else f" = {brief(value)}"
        super().__init__(f"{place}{shown}: expected {expected}")


class MissingExtraError(DPComposeError, ImportError):
    """An optional dependency is not installed; the message is the command that installs it."""

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        line = f"pip install '.[{extra}]' in a clone, pip install 'dpcompose[{extra}]' elsewhere"
        super().__init__(f"{what} needs an optional part: {line}")


def optional_library(module: str, what: str, extra: str) -> Any:
    """Return the module of an optional dependency, which is imported now.

    Args:
        module: The name of the module.
        what: What needs it, for the error.
        extra: The extra of dpcompose that installs it.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(what, extra) from None


class RefusedRoundError(DPComposeError):
    """A round of the experiment that the adversary is not allowed to play; the state is unchanged.

    Args:
        number: The number of the round, from 1.
        reason: The rule that it breaks.
    """

    def __init__(self, number: int, reason: str) -> None:
        self.number, self.reason = number, reason
        super().__init__(f"round {number} is refused: {reason}")


class StatementError(DPComposeError):
    """A published privacy statement is invalid or was modified; `reason` says in what respect."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the statement is rejected: {printable(reason)}")


class ReleaseError(DPComposeError):
    """A release failed after its charge: the budget is spent, and no answer was returned."""


class EngineError(ReleaseError):
    """The database engine failed; its message may contain data and is not repeated.

    Args:
        engine: The name of the engine.
        charged: Whether the budget was charged before the failure.
    """

    def __init__(self, engine: str, *, charged: bool = True) -> None:
        self.engine, self.charged = engine, charged
        aggregating = "failed while it aggregated: the charge stands, and no answer left"
        super().__init__(
            f"{engine} {aggregating if charged else 'failed before the charge: nothing was spent'}. "
            "Its message may contain rows of the table and is not repeated; ask its administrator"
        )


class SpentError(ReleaseError):
    """The charge of this key was redeemed before, and its answer is not stored.

    A second answer would be a second release, with new noise.

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
    """The ledger refuses an operation or cannot carry it out; no balance was changed."""


class OverdrawnError(LedgerError):
    """A charge exceeds the remaining budget.

    Args:
        scope: The path of the first scope, from the root down, whose budget it exceeds.
        currency: The unit of the exceeded cap, such as `epsilon` or `rho`; `slots` if all slots of
            a scope are taken.
        requested: The amount in that scope, exact.
        left: The amount that remains in that scope, exact.
    """

    def __init__(self, scope: str, currency: str, requested: Any, left: Any) -> None:
        self.scope, self.currency, self.requested, self.left = scope, currency, requested, left
        amounts = f"{few_digits(requested, up=True)} of {currency} asked, {few_digits(left, up=False)} left"
        super().__init__(f"{scope}: {amounts}. Nothing was spent; ask for less")

    def reworded(self, text: str) -> OverdrawnError:
        """This error, with the message replaced by `text`."""
        self.args = (text,)
        return self


class StepRefusedError(OverdrawnError):
    """One or more training steps exceed the remaining budget; nothing was spent, and none may run.

    Args:
        scope, currency, requested, left: See `OverdrawnError`.
        steps: The number of steps requested.
        fitting: The number of these steps that the budget allows.
    """

    def __init__(
        self, scope: str, currency: str, requested: Any, left: Any, *, steps: int, fitting: int
    ) -> None:
        super().__init__(scope, currency, requested, left)
        self.steps, self.fitting = steps, fitting
        more = f"{fitting} more {'step' if fitting == 1 else 'steps'} of this kind would fit"
        self.args = (
            f"{scope}: {steps} {'step' if steps == 1 else 'steps'} refused, {few_digits(requested, up=True)} of {currency} "
            f"asked, {few_digits(left, up=False)} left; "
            f"{more}. Nothing was spent, and none may run; stop, or ask for fewer steps, more noise or smaller samples",
        )


class ReservedError(OverdrawnError):
    """A charge exceeds what reservations of others leave of the budget; nothing was spent."""

    def __init__(self, scope: str, currency: str, requested: Any, left: Any) -> None:
        super().__init__(scope, currency, requested, left)
        self.args = (
            f"{self.args[0]}, or ask again when what others reserved was used or has ended",
        )


class ReservationError(LedgerError):
    """A reservation does not exist, has ended, or is smaller than the charge; nothing was spent."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"reservation: {reason}")


class QuotaError(LedgerError):
    """A charge exceeds a person's quota for a period; nothing was spent.

    A quota limits one analyst and is not a privacy guarantee.

    Args:
        scope: The path of the scope of the quota.
        period: The period, such as `2030-05`; `total` for all time.
        currency: The unit of the exceeded quota, such as `epsilon` or `rho`.
        requested: The amount, exact.
        left: The amount that remains to this person, exact.
    """

    def __init__(
        self, scope: str, period: str, *, currency: str, requested: Any, left: Any
    ) -> None:
        self.scope, self.period, self.currency, self.requested, self.left = (
            scope,
            period,
            currency,
            requested,
            left,
        )
        amounts = f"{few_digits(requested, up=True)} of {currency} asked, {few_digits(left, up=False)} left to you"
        super().__init__(
            f"{scope}: {amounts} in {period}, by a quota. Nothing was spent; ask the keeper for more"
        )


class ApprovalError(LedgerError):
    """A charge above a threshold was not approved by a second person; nothing was spent."""

    def __init__(self, scope: str, reason: str) -> None:
        self.scope, self.reason = scope, reason
        super().__init__(f"{scope}: {reason}")


class UnknownScopeError(LedgerError):
    """No scope with the path `scope` is open."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__(
            f"{scope}: there is no such scope. Open it first; paths are case-sensitive"
        )


class ScopeExistsError(LedgerError):
    """A scope with this path was opened before, with other caps, kind, description or key."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__(
            f"{scope}: this scope exists, with other caps, kind, description or key. "
            "A scope never changes; choose a new path"
        )


class ScopeKindError(LedgerError):
    """The operation is not possible in a scope of this kind, such as a partition."""

    def __init__(self, scope: str, kind: str, remedy: str) -> None:
        self.scope, self.kind, self.remedy = scope, kind, remedy
        super().__init__(f"{scope}: not possible in a scope of kind {kind}. {remedy}")


class ClosedScopeError(LedgerError):
    """The scope, or one of its ancestors, was closed."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__(
            f"{scope}: this scope is closed; nothing more is charged in it or below it"
        )


class CurrencyError(LedgerError):
    """A cost names other units than those capped by the scope and its ancestors.

    Args:
        scope: The path of the scope.
        currency: The unit, such as `epsilon` or `rho`, that is missing or not capped.
        expected: The units that the cost must name.
    """

    def __init__(self, scope: str, currency: str, expected: Any, *, missing: bool) -> None:
        self.scope, self.currency, self.expected, self.missing = (
            scope,
            currency,
            tuple(expected),
            missing,
        )
        clause = (
            "is missing from the cost; write 0 to charge none of it"
            if missing
            else "is capped by neither the scope nor its ancestors"
        )
        names = ", ".join(self.expected) or "nothing"
        super().__init__(f"{scope}: the currency {currency!r} {clause}. Expected exactly: {names}")


class KeyReusedError(LedgerError):
    """An idempotency key was used before for a different request."""

    def __init__(self, key: str, scope: str) -> None:
        self.key, self.scope = key, scope
        super().__init__(
            f"key = {brief(key)}: used before below {scope!r}, for another request. Choose a new key"
        )


class ReceiptError(LedgerError):
    """A receipt was not issued by this ledger."""

    def __init__(self, scope: str, sequence: int, reason: str) -> None:
        self.scope, self.sequence, self.reason = scope, sequence, reason
        super().__init__(f"receipt {sequence} of {scope}: {reason}")


class AlreadyRedeemedError(ReceiptError):
    """A receipt was redeemed before; one charge pays for one answer."""

    def __init__(self, scope: str, sequence: int) -> None:
        super().__init__(
            scope,
            sequence,
            "redeemed before; one charge pays for one answer. Charge again for another",
        )


class TamperedError(LedgerError):
    """The stored entries contradict each other or the anchor; `problems` lists the contradictions."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        super().__init__(f"the ledger was changed from outside: {problems[0]}{more}")


class EvidenceError(LedgerError):
    """A checkpoint or proof is invalid: its signature, its ledger or its hashes do not match."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the evidence is invalid: {reason}")


class StoreError(LedgerError):
    """The file or database server of a ledger fails, or is not safe to use.

    Args:
        where: The name of the file or server.
        what: A description of the failure.
        remedy: A way to repair it; may be empty.
        uncertain: Whether the change may have been stored nevertheless; a second request with the
            same key tells.
    """

    def __init__(self, where: str, what: str, remedy: str = "", *, uncertain: bool = False) -> None:
        self.where, self.what, self.remedy, self.uncertain = where, what, remedy, uncertain
        super().__init__(
            f"{printable(where)}: {what}. {remedy}" if remedy else f"{printable(where)}: {what}"
        )


class NewerSchemaError(StoreError):
    """The ledger was written by a later version of dpcompose."""

    def __init__(self, where: str, schema: int, newest: int) -> None:
        self.schema, self.newest = schema, newest
        what = f"written by a later dpcompose (schema {schema}; this version knows {newest})"
        super().__init__(
            where, what, "Install that version: pip install --upgrade dpcompose, or pull your clone"
        )


def printable(text: str) -> str:
    """`text` on one line, with control characters such as escapes and newlines as escape sequences."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def stated(name: str, value: Any) -> str:
    """The text "name = value", or "name is missing" if `value` is None."""
    return f"{name} is missing" if value is None else f"{name} = {brief(value)}"


def few_digits(amount: Any, *, up: bool) -> str:
    """`amount` to six digits, rounded up if `up`, else down; text without a number is unchanged."""
    from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
    from fractions import Fraction

    context = Context(prec=6, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    try:
        is_ratio = isinstance(amount, Fraction)
        top, bottom = amount.as_integer_ratio() if is_ratio else (Decimal(str(amount)), 1)
        rounded = context.divide(Decimal(top), Decimal(bottom)).normalize()
    except ArithmeticError:
        return str(amount)
    return f"{rounded:f}" if rounded == 0 or -5 < rounded.adjusted() < 7 else f"{rounded:e}"


def brief(value: Any) -> str:
    """The repr of a value, shortened; its type where its own repr fails."""
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
