"""The errors of dpcompose.

DPComposeError
├── DomainError(ValueError)        a value outside its domain: name, value, domain, remedy
├── UnsupportedError               a combination without a sound answer
├── UnreachableError               a target that no parameter can reach; carries the limit
├── PlanError(ValueError)          a plan file that cannot be read: file, table, key, value, expected
└── MissingExtraError(ImportError) an optional part that is not installed
"""

from __future__ import annotations

from typing import Any


class DPComposeError(Exception):
    """The root of every error that dpcompose raises on purpose."""


class DomainError(DPComposeError, ValueError):
    """A value lies outside the domain of the call that received it."""

    def __init__(self, name: str, value: Any, domain: str, remedy: str = "") -> None:
        self.name, self.value, self.domain, self.remedy = name, value, domain, remedy
        message = f"{name} = {_shown(value)}: expected {domain}"
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
        self.file, self.table, self.key, self.value, self.expected = file, table, key, value, expected
        place = ": ".join(part for part in (file, table, key) if part)
        shown = "" if value is None else f" = {_shown(value)}"
        super().__init__(f"{place}{shown}: expected {expected}")


class MissingExtraError(DPComposeError, ImportError):
    """An optional part of dpcompose is not installed; the message is the line to type."""

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        super().__init__(f"{what} needs an optional part: pip install 'dpcompose[{extra}]'")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"
