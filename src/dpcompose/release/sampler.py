"""Exact integer noise and exact selection by opendp's samplers: the one file that touches opendp.

opendp draws from the operating system's randomness and takes no seed: no `rng` passes through here.
"""
# opendp is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpcompose.errors import MissingExtraError


def discrete_laplace(values: Sequence[int], *, scale: float) -> list[int]:
    """Each value plus its own noise x of probability proportional to e^(-|x| / scale), the double taken exactly.

    Results beyond 64 bits are clamped to them.
    """
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return list(dp.m.make_laplace(*space, scale=scale)(list(values))) if values else []


def discrete_gaussian(values: Sequence[int], *, sigma: float) -> list[int]:
    """Each value plus its own noise x of probability proportional to e^(-x^2 / (2 sigma^2)), the double taken exactly.

    Results beyond 64 bits are clamped to them.
    """
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    return list(dp.m.make_gaussian(*space, scale=sigma)(list(values))) if values else []


def least_with_gumbel_noise(scores: Sequence[int], *, scale: float) -> int:
    """The index i drawn with probability proportional to e^(-score_i / scale): Gumbel noise, then the least.

    The noise is drawn to as many digits as the comparison needs, so the choice is exact.
    """
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    chosen = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale, negate=True)
    return int(chosen(list(scores)))


def require() -> None:
    """Raise MissingExtraError unless opendp is installed: ask before anything is charged."""
    _opendp()


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtraError("drawing noise", "data") from None
    library: Any = dp
    library.enable_features("contrib")
    return library
