"""Time-uniform boundaries: bounds on a loss at all times at once, as functions of the rho spent so far.

A mechanism that is rho_i-zCDP has E[e^(l L_i)] <= e^(l (l + 1) rho_i) for every l > 0, under either world. With R the
sum of the rho so far, V = 2 R and X = L - V / 2, e^(l X - l^2 V / 2) starts at 1 and never grows on average, however
the rho_i were chosen; so does any mixture over l, and such a process ever reaches 1 / failure with probability at most
failure (Ville). Both boundaries below solve that for X.

Reference: [HowardRamdasMcAuliffeSekhon2020], [WhitehouseRamdasRogersWu2023, Theorem 3]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from scipy.special import log_ndtr

from dpcompose.errors import DomainError
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF, up

SMALLEST, LARGEST = 1e-50, 1e50
"""The ends of the domain of `tight_at`: nothing overflows between them."""


@dataclass(frozen=True)
class Boundary(ABC):
    """A bound on the loss at every time at once.

    Args:
        tight_at: The rho at which the bound is tight; from 1e-50 to 1e50.

    Raises:
        DomainError: If it is outside its domain.
    """

    tight_at: float
    kind: ClassVar[str]
    """Its name in a description."""

    def __post_init__(self) -> None:
        tight = check.real("tight_at", self.tight_at)
        if not SMALLEST <= tight <= LARGEST:
            raise DomainError("tight_at", self.tight_at, f"a rho from {SMALLEST:g} to {LARGEST:g}")
        object.__setattr__(self, "tight_at", tight)

    def above(self, rho: float, *, failure: float) -> float:
        """A number that the loss exceeds, at any time at all, with probability at most `failure`; rounded up.

        Args:
            rho: The sum of the rho so far; >= 0, infinite allowed.
            failure: In (0, 1).

        Raises:
            DomainError: If a number is outside its domain.
        """
        rho, logarithm = check.real("rho", rho), -math.log(check.open_probability("failure", failure))
        if not rho >= 0.0:
            raise DomainError("rho", rho, "a number >= 0")
        # From 1e100 on squares would overflow.
        return up((rho + self._excess(rho, logarithm)) * (1.0 + 32 * UNIT_ROUNDOFF)) if rho < 1e100 else math.inf

    @abstractmethod
    def _excess(self, rho: float, logarithm: float) -> float:
        """X on the boundary, `logarithm` = ln(1 / failure); a dozen roundings off at most."""


@dataclass(frozen=True)
class Line(Boundary):
    """The line-crossing boundary V / 2 + sqrt(w / (2 y)) V + sqrt(y w / 2), w = ln(1 / failure), y = 2 `tight_at`.

    One l, sqrt(2 w / y): where V = y it is V / 2 + sqrt(2 w V), the price of a bound at one time known beforehand.

    >>> round(Line(0.5).above(0.25, failure=1e-6), 12)
    4.192391327318
    """

    kind: ClassVar[str] = "line"

    def _excess(self, rho: float, logarithm: float) -> float:
        tight = 2.0 * self.tight_at
        return 2.0 * rho * math.sqrt(logarithm / (2.0 * tight)) + math.sqrt(tight * logarithm / 2.0)


@dataclass(frozen=True)
class Mixture(Boundary):
    """The boundary of a mixture over all l > 0, half-normal with variance 1 / r: V / 2 + u sqrt(V + r).

    The mixture is 2 Phi(u) sqrt(r / (V + r)) e^(u^2 / 2) at X = u sqrt(V + r), and u is where it is 1 / failure. Both
    signs of l, as for a martingale, would give u = sqrt(2 ln(sqrt((V + r) / r) / failure)), which is larger, and need
    lower bounds on divergences that nobody promises. It is never far from the best line for any rho.

    >>> Mixture(0.5).above(0.5, failure=1e-6) < Line(0.05).above(0.5, failure=1e-6)
    True
    """

    kind: ClassVar[str] = "mixture"

    def _excess(self, rho: float, logarithm: float) -> float:
        # Any r is sound; this one solves r dU / dr = 0 to first order at V = 2 tight_at.
        twice = 2.0 * logarithm
        variance = 2.0 * self.tight_at / (1.0 + twice + math.log1p(twice))
        wanted = math.log1p(2.0 * rho / variance) / 2.0 + logarithm
        return _solved(wanted) * math.sqrt(2.0 * rho + variance)


def _solved(wanted: float) -> float:
    """A u >= 0 with u^2 / 2 + ln(2 Phi(u)) >= wanted, by Newton's method from above, with a margin."""
    # At sqrt(2 wanted) the left side is at least wanted. The last loop checks the result of Newton's steps.
    point = math.sqrt(2.0 * wanted)
    for _ in range(8):
        ratio = math.exp(-point * point / 2.0 - float(log_ndtr(point))) / math.sqrt(2.0 * math.pi)
        excess = point * point / 2.0 + math.log(2.0) + float(log_ndtr(point)) - wanted
        point = max(point - excess / (point + ratio), 0.0)
    margin = 1e-13 * (1.0 + point)
    while point * point / 2.0 + math.log(2.0) + float(log_ndtr(point)) < wanted * (1.0 + 1e-14) + 1e-15:
        point, margin = point + margin, 2.0 * margin
    return point


BOUNDARIES: dict[str, type[Line] | type[Mixture]] = {Line.kind: Line, Mixture.kind: Mixture}
