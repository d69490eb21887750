"""The time that entries carry for their readers; nothing depends on it."""

import time
from datetime import UTC, datetime
from functools import lru_cache


def now() -> str:
    """This moment, in UTC, such as 2030-01-31T12:00:00.000000Z."""
    seconds, rest = divmod(time.time_ns(), 10**9)
    return f"{_second(seconds)}.{rest // 1000:06d}Z"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """The second that most charges share with the one before."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").removesuffix("+00:00")
