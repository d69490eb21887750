"""A part of a composition: a mechanism with the laws of its losses, or a Renyi curve, under an
adjacency.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcompose.attached import expect
from dpcompose.errors import UnsupportedError
from dpcompose.law import Laws
from dpcompose.values import Adjacency

if TYPE_CHECKING:
    from dpcompose.guarantee import RenyiPromise


class Part(ABC):
    """A part of a composition, hashable. A subclass states its laws or its Renyi curve; all else
    has a sound default.

    `dpcompose.composition` adds the methods that compute losses from them: `pairs`,
    `sampled_pairs`, `group_losses`, `summed_pairs`.
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """The name of this part in reports."""

    @property
    def collected(self) -> str:
        """How the data of several people are collected: "together", the mechanism sees all of them;
        "apart", each person sends a report, independent of all others; "shuffled", such reports are
        shuffled; "mixed", some of it in one way and some in another.
        """
        return "together"

    def laws(self, adjacency: Adjacency) -> Laws | None:
        """Return the laws of the losses under `adjacency`, a composition of pairs; None if the part
        only states a Renyi curve.

        Raises:
            UnsupportedError: If no sound losses are known under the adjacency.
        """
        raise UnsupportedError(repr(self), "it states no laws of its losses", "Ask for its pairs")

    def promise(self, adjacency: Adjacency) -> RenyiPromise | None:
        """Return the Renyi curve that a part without losses states under `adjacency`; None for all
        other parts.
        """
        return None

    def require_any_size(self, question: str) -> None:  # noqa: B027 (most hold for every size)
        """Raise an UnsupportedError if the losses hold for one data set size only; `question`
        involves several sizes.

        Args:
            question: The name of the question, for the error.
        """

    def require_group(self, size: int, adjacency: Adjacency) -> None:  # noqa: B027 (most have one)
        """Raise an UnsupportedError if no losses for a group of `size` people are known under
        `adjacency`.
        """

    def sampled_laws(self, rate: float, adjacency: Adjacency) -> Laws | None:
        """Return the laws on a Poisson sample with rate `rate`; None if they are those of the
        mixture of the part's pairs.

        Raises:
            UnsupportedError: If no sound losses on a sample are known under the adjacency.
        """
        raise UnsupportedError(f"{self!r}.sampled({rate!r})", "it has no losses on a sample")

    def unsampled(self, adjacency: Adjacency) -> Unsampled | None:
        """Return a composition without sampling that dominates this part, with the sampling rate;
        None if the part is not sampled.
        """
        return None

    @classmethod
    def summed_laws(cls, members: Sequence[tuple[Any, int]], adjacency: Adjacency) -> Laws | None:
        """Return the laws of many parts of this class as fewer laws, if that is cheaper than one
        for each; else None.
        """
        return None


expect(Part, "pairs sampled_pairs group_losses summed_pairs")


class Unsampled(NamedTuple):
    """A composition without sampling that dominates a sampled part.

    Args:
        parts: The parts of the composition, with counts.
        rate: The rate by which its Renyi divergences may be amplified; 1 if no amplification is
            known.
    """

    parts: tuple[tuple[Any, int], ...]
    rate: float
