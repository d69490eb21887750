"""Features of floating-point numbers: what naive noise leaves in their last bits. Reference: [Mironov2012]."""

from __future__ import annotations

import numpy as np

from dpcompose.audit.outcome import Reals

_MANTISSA, _HIDDEN = np.uint64((1 << 52) - 1), np.uint64(1 << 52)


def trailing_zeros(numbers: Reals) -> Reals:
    """The zeros at the end of the mantissa; 53 for zero."""
    mantissa = np.ascontiguousarray(numbers).view(np.uint64) & _MANTISSA | _HIDDEN
    lowest = (mantissa & (~mantissa + np.uint64(1))).astype(np.float64)
    return np.where(numbers == 0, 53.0, np.log2(lowest))


def exponent(numbers: Reals) -> Reals:
    """The power of 2 at which a number begins."""
    return np.frexp(numbers)[1].astype(np.float64)


def lowest_bit(numbers: Reals) -> Reals:
    """The power of 2 at which a number ends: a multiple of 2^-53 has at least -53."""
    return np.where(numbers == 0, 1074.0, exponent(numbers) - 53 + trailing_zeros(numbers))


def bit(numbers: Reals, place: int) -> Reals:
    """A bit of whole numbers; NaN for any other."""
    whole = np.isfinite(numbers) & (np.abs(numbers) < 2.0**53) & (numbers == np.floor(numbers))
    return np.where(whole, np.floor(np.where(whole, numbers, 0.0) / 2.0**place) % 2, np.nan)


def decimals(numbers: Reals) -> Reals:
    """The decimals that write a number exactly, up to 12; 13 for one that needs more."""
    found = np.full(len(numbers), 13.0)
    with np.errstate(over="ignore", invalid="ignore"):
        for places in range(12, -1, -1):
            found[np.rint(numbers * 10.0**places) / 10.0**places == numbers] = places
    return found


READ = {
    "trailing zeros": trailing_zeros,
    "lowest bit": lowest_bit,
    "exponent": exponent,
    "decimals": decimals,
}
ESSENTIAL = ("lowest bit", "decimals")
"""Those that are read where an answer has many places."""
