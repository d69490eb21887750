"""Elementary theorems applied to the library's own bounds for one step: no bound for a composition
may be above them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dpcompose
from campaigns.names import NAMES
from campaigns.soundness import subject
from dpcompose.errors import UnsupportedError

ORDERS = (1.05, 1.25, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0, 65.0, 257.0)


@dataclass(frozen=True)
class Theorems:
    """Basic composition of one-step answers, the composition without samples, Renyi order by order.

    Args:
        parts: What is composed.
        options: What the composition is asked with.
    """

    parts: subject.Parts
    options: dict[str, object]

    def least(self, delta: float) -> tuple[str, float]:
        """The smallest epsilon that one of the theorems proves at delta, and which."""
        found = {
            "basic composition": self._basic(delta),
            "the pure sum": self._pure,
            "everybody sampled": self._unsampled(delta),
            "Renyi order by order": self._renyi(delta),
        }
        best = min(found, key=lambda name: found[name])
        return best, found[best]

    def _basic(self, delta: float) -> float:
        """An equal share of delta for every step."""
        count = sum(times for _, times in self.parts)
        if delta / count < 1e-300:
            return math.inf
        share = {"delta": delta / count, **self.options}
        steps = [
            (_asked(_built(item.code), "epsilon", **share), times) for item, times in self.parts
        ]
        return math.fsum(step * times for step, times in steps) * (1 + 1e-12)

    @cached_property
    def _pure(self) -> float:
        where: dict[str, Any] = (
            {"adjacency": self.options["adjacency"]} if "adjacency" in self.options else {}
        )
        steps = [(_built(item.code).pure(**where), times) for item, times in self.parts]
        return math.fsum(math.inf if step is None else step * times for step, times in steps) * (
            1 + 1e-12
        )

    def _unsampled(self, delta: float) -> float:
        if all(item.unsampled == item.code for item, _ in self.parts):
            return math.inf
        whole = dpcompose.compose(*(_built(item.unsampled) * times for item, times in self.parts))
        return _asked(whole, "epsilon", delta=delta, **self.options)

    def _renyi(self, delta: float) -> float:
        """[CanonneKamathSteinke2020, Proposition 12] at each order."""
        best = math.inf
        for order, divergence in zip(ORDERS, self._divergences, strict=True):
            slack = (math.log(delta) + math.log(order)) / (order - 1) - math.log1p(-1 / order)
            best = min(best, divergence - slack)
        return max(best, 0.0)

    @cached_property
    def _divergences(self) -> list[float]:
        steps = [(_built(item.code), times) for item, times in self.parts]
        return [
            math.fsum(_asked(step, "renyi", order, **self.options) * times for step, times in steps)
            for order in ORDERS
        ]


def _built(code: str) -> dpcompose.Composition:
    return eval(code, NAMES)


def _asked(composition: dpcompose.Composition, name: str, *place: float, **question: Any) -> float:
    """The upper end; infinite where the library refuses."""
    try:
        return getattr(composition, name)(*place, **question).upper
    except UnsupportedError:
        return math.inf
