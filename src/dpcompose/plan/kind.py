"""The building blocks by the name they have in a plan file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpcompose.mechanism import (
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
)


@dataclass(frozen=True)
class Kind:
    """One building block: its name in a plan, and the constructor whose parameters are its keys.

    Args:
        name: The value of `kind`.
        build: The constructor; called with keyword arguments.
        unordered: Parameters in which epsilon is not monotone for this kind, although it is for others.
    """

    name: str
    build: Callable[..., Any]
    unordered: frozenset[str] = frozenset()

    @cached_property
    def parameters(self) -> dict[str, bool]:
        """The parameters of the constructor, in order, and whether each is required."""
        signature = inspect.signature(self.build)
        return {name: each.default is inspect.Parameter.empty for name, each in signature.parameters.items()}


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("laplace", Laplace),
        Kind("gaussian", Gaussian),
        Kind("discrete-laplace", DiscreteLaplace),
        # More noise can cost more: delta 1e-5, epsilon 8.92 at sigma 0.42 and 12.69 at 0.44.
        Kind("discrete-gaussian", DiscreteGaussian, unordered=frozenset({"sigma"})),
        Kind("randomized-response", RandomizedResponse),
        Kind("exponential", Exponential),
        Kind("black-box", BlackBox),
        Kind("concentrated", Concentrated),
        Kind("gaussian-dp", GaussianDP),
    )
}
