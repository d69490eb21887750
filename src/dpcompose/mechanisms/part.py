"""A part of a composition, as a noun: the laws of its losses, or what is promised of it, under an adjacency."""

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
    """One part, hashable. It states its laws or its promise; everything else has a sound default.

    The room `composition` supplies the losses that follow: `pairs`, `sampled_pairs`, `group_losses`, `summed_pairs`.
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """The name in a report."""

    def laws(self, adjacency: Adjacency) -> Laws | None:
        """The laws of its losses, a composition of pairs; None if it is known only by its Renyi curve.

        Raises:
            UnsupportedError: Where nothing sound is known.
        """
        raise UnsupportedError(repr(self), "it states no laws of its losses", "Ask for its pairs")

    def promise(self, adjacency: Adjacency) -> RenyiPromise | None:
        """The Renyi curve of a part without losses; None for all others."""
        return None

    def require_any_size(self, question: str) -> None:  # noqa: B027 (most hold for every size)
        """Refuse what asks about data sets of several sizes, if the losses hold for one size alone.

        Args:
            asked: What is asked, for the error.
        """

    def require_group(self, size: int, adjacency: Adjacency) -> None:  # noqa: B027 (most have one)
        """Refuse a group of several people, if no losses of one are known."""

    def sampled_laws(self, rate: float, adjacency: Adjacency) -> Laws | None:
        """Its laws on a Poisson sample; None if they are those of the mixture of its pairs.

        Raises:
            UnsupportedError: Where nothing sound is known.
        """
        raise UnsupportedError(f"{self!r}.sampled({rate!r})", "it has no losses on a sample")

    def unsampled(self, adjacency: Adjacency) -> Unsampled | None:
        """The composition that runs on the sample, if this part is one and dominated by it; else None."""
        return None

    @classmethod
    def summed_laws(cls, members: Sequence[tuple[Any, int]], adjacency: Adjacency) -> Laws | None:
        """The laws of many parts of this kind at once, if that is cheaper than to ask each for its own; else None."""
        return None


expect(Part, "pairs sampled_pairs group_losses summed_pairs")


class Unsampled(NamedTuple):
    """A part that can run on a Poisson sample.

    Args:
        parts: A composition that dominates the sampled one.
        rate: The rate by which its Renyi divergences may be amplified; 1 where amplification is not known.
    """

    parts: tuple[tuple[Any, int], ...]
    rate: float
