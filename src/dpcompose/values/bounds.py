"""Arrays of certified bounds: the results of a batch of questions, some of which may have failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.errors import DomainError, DPComposeError
from dpcompose.pictured import Card
from dpcompose.values.bound import EXACT, Bound, Certificate


@dataclass(frozen=True, eq=False)
class Bounds(Sequence[Bound], Card):
    """Certified bounds lower[i] <= number[i] <= upper[i]; an index gives a `Bound`, a slice
    `Bounds`.

    >>> found = Bounds(np.array([0.25, 1.0]), np.array([0.5, 1.5]))
    >>> found[1].contains(1.25), len(found), found.width.tolist()
    (True, 2, [0.25, 0.5])

    Args:
        lower: The lower ends, shape (n,), read-only. NaN where the question was refused.
        upper: The upper ends, shape (n,), read-only. NaN where the question was refused.
        certificates: The certificate of each bound; empty if all are exact.
        refusals: The error of each refused question, by its index.

    Raises:
        DomainError: If lower[i] > upper[i], an end is NaN without a refusal, ends are not real
            numbers, or the lengths differ.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    certificates: tuple[Certificate, ...] = field(default=(), repr=False)
    refusals: Mapping[int, DPComposeError] = field(default_factory=dict[int, DPComposeError])

    def __post_init__(self) -> None:
        """Replace the arrays by read-only copies, and check them."""
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _ends(name, self.__dict__[name]))
        object.__setattr__(self, "refusals", MappingProxyType(dict(self.refusals)))
        if not len(self.lower) == len(self.upper):
            raise DomainError(
                "Bounds", (len(self.lower), len(self.upper)), "as many lower ends as upper ones"
            )
        if len(self.certificates) not in (0, len(self)):
            raise DomainError(
                "certificates", len(self.certificates), "one for each bound, or none at all"
            )
        if not all(index in range(len(self)) for index in self.refusals):
            raise DomainError(
                "refusals", sorted(self.refusals), f"indices from 0 to {len(self) - 1}"
            )
        for index in np.flatnonzero(~((self.lower <= self.upper) | self.refused)).tolist():
            raise DomainError(
                f"Bounds[{index}]",
                (self.lower[index], self.upper[index]),
                "lower <= upper, neither of them NaN",
            )

    def __reduce__(self) -> tuple[type[Bounds], tuple[Any, ...]]:
        return Bounds, (self.lower, self.upper, self.certificates, dict(self.refusals))

    @property
    def width(self) -> NDArray[np.float64]:
        """upper - lower, shape (n,); 0 for equal infinite ends, NaN where the question was refused."""
        same = self.lower == self.upper
        return np.where(same, 0.0, self.upper - np.where(same, 0.0, self.lower))

    @property
    def refused(self) -> NDArray[np.bool_]:
        """A mask of the refused questions, shape (n,)."""
        found = np.zeros(len(self), dtype=bool)
        found[list(self.refusals)] = True
        return found

    def __len__(self) -> int:
        return len(self.lower)

    @overload
    def __getitem__(self, index: int) -> Bound: ...

    @overload
    def __getitem__(self, index: slice) -> Bounds: ...

    def __getitem__(self, index: int | slice) -> Bound | Bounds:
        """The bound at an integer index, or the bounds of a slice.

        Raises the stored error of a refused question, and IndexError beyond the last one.
        """
        if isinstance(index, slice):
            kept = {
                at: self.refusals[place]
                for at, place in enumerate(range(len(self))[index])
                if place in self.refusals
            }
            return Bounds(self.lower[index], self.upper[index], self.certificates[index], kept)
        place = range(len(self))[index]
        if place in self.refusals:
            raise self.refusals[place]
        certificate = self.certificates[place] if self.certificates else EXACT
        return Bound(float(self.lower[place]), float(self.upper[place]), certificate)


def _ends(name: str, values: Any) -> NDArray[np.float64]:
    """A read-only copy of `values` as an array of floats.

    Raises DomainError, which calls it `name`, if it is not a sequence of real numbers.
    """
    array = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
    if array.ndim != 1 or isinstance(values, np.ma.MaskedArray):
        raise DomainError(name, values, "numbers in an array of shape (n,), not masked")
    if array.dtype != np.float64:
        listed = enumerate(array.tolist())
        array = np.array(
            [end if end != end else check.real(f"{name}[{index}]", end) for index, end in listed]
        )
    ends = np.array(array, dtype=np.float64)
    ends.setflags(write=False)
    return ends
