"""The time that entries carry for their readers; nothing depends on it."""

from datetime import UTC, datetime


def now() -> str:
    """This moment, in UTC, such as 2030-01-31T12:00:00.000000Z."""
    return datetime.now(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
