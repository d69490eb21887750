"""Tables of noisy marginals made into one distribution by mbi: the one file that touches mbi. It sees released numbers.

Reference: [McKennaSheldonMiklau2019]
"""
# mbi is not typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpcompose.errors import MissingExtraError

Columns = tuple[int, ...]
"""Some columns of a table, by their places, increasing."""
STEPS = 1000
"""The steps of mirror descent after every measurement."""


@dataclass(frozen=True)
class Marginal:
    """A marginal that was measured.

    Args:
        columns: What it counts by.
        counts: The noisy counts of its cells, the last column running fastest.
        sigma: Of the noise on each.
    """

    columns: Columns
    counts: tuple[int, ...] = field(repr=False)
    sigma: float


class Model(Protocol):
    """A distribution over all cells that agrees with what was measured."""

    def counts(self, columns: Columns) -> Sequence[float]:
        """The expected counts of a marginal."""
        ...

    def megabytes(self, columns: Columns) -> float:
        """How large it would be if that marginal were measured too; 0 if it grows by nothing."""
        ...

    def after(self, measured: Sequence[Marginal]) -> Model:
        """The distribution that agrees with these, all that was measured up to now."""
        ...


@dataclass(frozen=True)
class GraphicalModel:
    """A graphical model, found by mirror descent from the one before.

    Args:
        sizes: How many values each column has.
        found: The model of mbi; None before anything was measured.
    """

    sizes: tuple[int, ...]
    found: Any = field(default=None, repr=False)

    def counts(self, columns: Columns) -> Sequence[float]:
        import numpy

        return numpy.asarray(self.found.project(_names(columns)).datavector(), dtype=float).tolist()

    def megabytes(self, columns: Columns) -> float:
        library = require()
        if any(set(_names(columns)) <= set(clique) for clique in self.found.cliques):
            return 0.0
        return library.junction_tree.hypothetical_model_size(
            self.found.domain, [*self.found.cliques, _names(columns)]
        )

    def after(self, measured: Sequence[Marginal], *, steps: int = STEPS) -> GraphicalModel:
        import numpy

        library = require()
        domain = library.Domain(_names(range(len(self.sizes))), self.sizes)
        noisy = [
            library.LinearMeasurement(
                numpy.array(each.counts, dtype=float), _names(each.columns), stddev=each.sigma
            )
            for each in measured
        ]
        before = None
        if self.found is not None:
            before = self.found.potentials.expand(list({_names(each.columns) for each in measured}))
        return GraphicalModel(
            self.sizes,
            library.estimation.mirror_descent(domain, noisy, iters=steps, potentials=before),
        )

    def sample(self, rows: int) -> list[Sequence[int]]:
        """So many rows drawn from it: for each column the places of their values."""
        drawn = self.found.synthetic_data(rows=rows)
        return [drawn.to_dict()[name].tolist() for name in _names(range(len(self.sizes)))]


def require() -> Any:
    """The library, or MissingExtraError: asked before anything is charged."""
    try:
        import mbi
    except ImportError:
        raise MissingExtraError("synthetic data", "marginals") from None
    return mbi


def _names(columns: Sequence[int]) -> tuple[str, ...]:
    return tuple(str(column) for column in columns)
