"""The building blocks by the name they have in a plan file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpcompose import mechanism


@dataclass(frozen=True)
class Kind:
    """One building block: its name in a plan, and the constructor whose parameters are its keys.

    Args:
        name: The value of `kind`: the name of its class, with dashes.
        build: The constructor; called with keyword arguments.
    """

    name: str
    build: Callable[..., Any]

    @cached_property
    def parameters(self) -> dict[str, bool]:
        """The parameters of the constructor, in order, and whether each is required."""
        signature = inspect.signature(self.build)
        return {name: each.default is inspect.Parameter.empty for name, each in signature.parameters.items()}


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


# A dominating pair is given as arrays or as a function: no file says that.
KINDS: dict[str, Kind] = {
    _dashed(name): Kind(_dashed(name), getattr(mechanism, name))
    for name in mechanism.__all__
    if name != "DominatingPair"
}
