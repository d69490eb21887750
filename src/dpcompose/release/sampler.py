"""Exact integer noise and exact private selection by opendp's samplers; only this file uses opendp.

opendp draws from the operating system's randomness and takes no seed, so no `rng` argument exists
here.
"""
# opendp is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import local
from typing import Any

from dpcompose.errors import MissingExtraError

MOST_KEPT = 32


class _Choices(local):
    """Selections that a thread has set up before: setting one up takes twice as long as drawing."""

    def __init__(self) -> None:
        self.choices = dict[tuple[float, bool], Any]()


_KEPT = _Choices()


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
    chosen = _KEPT.choices.get((scale, flips))
    if chosen is None:
        library = _opendp()
        space = library.integers, library.metrics.linf_distance(T="i64")
        measure = (
            library.measures.max_divergence()
            if flips
            else library.measures.zero_concentrated_divergence()
        )
        if len(_KEPT.choices) >= MOST_KEPT:
            _KEPT.choices.clear()
        made = library.measurements.make_noisy_max(*space, measure, scale=scale, negate=True)
        chosen = _KEPT.choices[scale, flips] = made
    return int(chosen(list(scores)))


def require() -> None:
    """Raise MissingExtraError unless opendp is installed; called before anything is charged."""
    _opendp()


@dataclass(frozen=True)
class _Library:
    """The parts of opendp that are used. Its prelude would import polars and scikit-learn, 100 MB."""

    integers: Any
    metrics: Any
    measures: Any
    measurements: Any


def _opendp() -> _Library:
    try:
        from opendp import domains, measurements, measures, metrics, mod
    except ImportError:
        raise MissingExtraError("drawing noise", "data") from None
    mod.enable_features("contrib")
    return _Library(
        domains.vector_domain(domains.atom_domain(T="i64")), metrics, measures, measurements
    )
