"""Exact integer noise and exact selection by opendp's samplers: the one file that touches opendp.

opendp draws from the operating system's randomness and takes no seed: no `rng` passes through here.
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
    """The choices that a thread has made before: to set one up takes twice as long as to draw."""

    def __init__(self) -> None:
        self.choices = dict[tuple[float, bool], Any]()


_KEPT = _Choices()


def discrete_laplace(values: Sequence[int], *, scale: float) -> list[int]:
    """Each value plus its own noise x of probability proportional to e^(-|x| / scale), the double taken exactly.

    Results beyond 64 bits are clamped to them.
    """
    library = _opendp()
    space = library.integers, library.metrics.l1_distance(T="i64")
    return (
        list(library.measurements.make_laplace(*space, scale=scale)(list(values))) if values else []
    )


def discrete_gaussian(values: Sequence[int], *, sigma: float) -> list[int]:
    """Each value plus its own noise x of probability proportional to e^(-x^2 / (2 sigma^2)), the double taken exactly.

    Results beyond 64 bits are clamped to them.
    """
    library = _opendp()
    space = library.integers, library.metrics.l2_distance(T="f64")
    return (
        list(library.measurements.make_gaussian(*space, scale=sigma)(list(values)))
        if values
        else []
    )


def least_with_noise(scores: Sequence[int], *, scale: float, flips: bool) -> int:
    """The index of the least score with noise: Gumbel noise, or exponential noise if `flips`.

    With Gumbel noise i is drawn with probability proportional to e^(-score_i / scale); with exponential noise as
    permute-and-flip does it, candidates in random order, each taken with probability e^(-(score_i - least) / scale).
    The noise is drawn to as many digits as the comparison needs, so the choice is exact.
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
    """Raise MissingExtraError unless opendp is installed: ask before anything is charged."""
    _opendp()


@dataclass(frozen=True)
class _Library:
    """The parts of opendp that are used: its prelude would bring polars and scikit-learn along, 100 MB of them."""

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
