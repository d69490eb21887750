"""One answer of a subject, whatever came back: everything that a caller could see of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Outcomes = NDArray[Any]
"""One row for each call: plain numbers, of shape (n,) or (n, k), or an array of objects `Outcome`, of shape (n,)."""
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """One value of a sum type: an answer, an exception, or nothing within the time allowed; with its warnings.

    Args:
        value: The answer; None where there is none.
        raised: The name of the exception's class; empty if none was raised.
        message: The text of the exception.
        warned: The categories of the warnings, in order.
        timeout: Whether the call was ended because it took too long.
    """

    value: Any = None
    raised: str = ""
    message: str = ""
    warned: tuple[str, ...] = ()
    timeout: bool = False
