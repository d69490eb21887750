"""Exact integer noise and exact private selection by opendp's samplers; only this file uses opendp.

opendp draws from the operating system's randomness and takes no seed, so no `rng` argument exists
here.
"""
# opendp is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import get_ident
from types import SimpleNamespace
from typing import Any

from dpcompose.errors import MissingExtraError


def discrete_laplace(values: Sequence[int], *, scale: float) -> list[int]:
    """Return each value plus independent noise x with P(x) proportional to e^(-|x| / scale), the
    double taken exactly.

    Results beyond 64 bits are clamped.
    """
    library = _opendp()
    space = library.integers, library.metrics.l1_distance(T="i64")
    return (
        list(library.measurements.make_laplace(*space, scale=scale)(list(values))) if values else []
    )


def discrete_gaussian(values: Sequence[int], *, sigma: float) -> list[int]:
    """Return each value plus independent noise x with P(x) proportional to e^(-x^2 / (2 sigma^2)),
    the double taken exactly.

    Results beyond 64 bits are clamped.
    """
    library = _opendp()
    space = library.integers, library.metrics.l2_distance(T="f64")
    return (
        list(library.measurements.make_gaussian(*space, scale=sigma)(list(values)))
        if values
        else []
    )


def least_with_noise(scores: Sequence[int], *, scale: float, flips: bool) -> int:
    """Return the index of the least score after adding noise: Gumbel noise, or exponential noise if
    `flips`.

    With Gumbel noise, index i has probability proportional to e^(-score_i / scale). Exponential
    noise gives permute-and-flip: candidates in random order, each accepted with probability
    e^(-(score_i - least) / scale). The noise is drawn to as many digits as the comparison needs, so
    the choice is exact.
    """
    return int(_chooser(get_ident(), scale, flips)(list(scores)))


@lru_cache(maxsize=32)
def _chooser(thread: int, scale: float, flips: bool) -> Any:
    """Return the selection of a thread: setting one up takes as long as a draw among hundreds."""
    library = _opendp()
    space = library.integers, library.metrics.linf_distance(T="i64")
    measures = library.measures
    measure = measures.max_divergence() if flips else measures.zero_concentrated_divergence()
    return library.measurements.make_noisy_max(*space, measure, scale=scale, negate=True)


def require() -> None:
    """Raise MissingExtraError unless opendp is installed; called before anything is charged."""
    _opendp()


def _opendp() -> Any:
    """Return the parts of opendp that are used. Its prelude would import polars and scikit-learn,
    100 MB.
    """
    try:
        from opendp import domains, measurements, measures, metrics, mod
    except ImportError:
        raise MissingExtraError("drawing noise", "data") from None
    mod.enable_features("contrib")
    integers = domains.vector_domain(domains.atom_domain(T="i64"))
    return SimpleNamespace(
        integers=integers, metrics=metrics, measures=measures, measurements=measurements
    )
