"""The nearest of several names to one that was mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def choices(given: object, known: Iterable[str]) -> str:
    """The sentence "one of a, b, c; did you mean b?"; the question only where a name is near."""
    names = list(known)
    near = difflib.get_close_matches(given[:100], names, n=1, cutoff=0.6) if isinstance(given, str) else []
    return f"one of {', '.join(names)}" + (f"; did you mean {near[0]}?" if near else "")
