"""One of several mechanisms, chosen anew in each round from the earlier answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpcompose.composition.composition import Composable, ComposablePart, compose
from dpcompose.composition.part import Pairs, Part
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.loss import Loss, Pair, envelope
from dpcompose.values import Adjacency


@dataclass(frozen=True)
class Choice(ComposablePart):
    """A round in which any of the options may run, chosen anew from all earlier answers. Build it with `one_of`.

    Args:
        options: Distinct parts, at least two.
    """

    options: tuple[Part, ...]

    def __repr__(self) -> str:
        return f"one_of({', '.join(repr(option) for option in self.options)})"

    @property
    def label(self) -> str:
        """The name in a report."""
        return f"one of {', '.join(option.label for option in self.options)}"

    def pairs(self, adjacency: Adjacency) -> Pairs:
        """The loss above the options', in each order; what one of them attains is attained."""
        found = tuple(_one_pair(option, adjacency) for option in self.options)
        removed = _above(pair.remove for pair in found)
        added = (
            removed if all(pair.symmetric for pair in found) else _above(pair.add for pair in found)
        )
        attained_parts = tuple(
            each for pair in found for each in ((pair,) if pair.attained else pair.attained_parts)
        )
        return ((Pair(removed, added, False, attained_parts), 1),)

    def require_any_size(self, asked: str) -> None:
        for option in self.options:
            option.require_any_size(asked)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Refused: what is chosen is sampled, not the choice."""
        raise UnsupportedError(
            f"{self!r}.sampled({rate!r})", "the sample is each option's own", "Sample the options"
        )


def one_of(*options: Composable) -> Composable:
    """A round in which one of these mechanisms runs, which one depending on all earlier answers.

    The parameters of each option are fixed, the choice is not: composed, it bounds every adversary of Definition 3.7
    with this family.

    >>> from dpcompose import Laplace, RandomizedResponse
    >>> (one_of(Laplace(1.0), RandomizedResponse(1.0)) * 10).delta(epsilon=3.0).upper < 0.62
    True

    Args:
        options: Single mechanisms, at least one.

    Raises:
        DomainError: If there is none, or one is a composition of several.

    Reference: [ZhuDongWang2022, Theorem 10]
    """
    if not options:
        raise DomainError("options", options, "at least one mechanism")
    parts: dict[Part, None] = {}
    for option in options:
        found = compose(option)
        if found.count != 1:
            raise DomainError(
                "option", option, "a single mechanism", "A composition is several rounds"
            )
        parts[found.parts[0][0]] = None
    return compose(options[0]) if len(parts) == 1 else Choice(tuple(sorted(parts, key=repr)))


def _one_pair(option: Part, adjacency: Adjacency) -> Pair:
    pairs = option.pairs(adjacency)
    if pairs is None or sum(times for _, times in pairs) != 1:
        reason = "only an option with one privacy loss can be compared with others"
        raise UnsupportedError(f"a choice with {option.label}", reason, "Compose it by itself")
    return pairs[0][0]


def _above(losses: Iterable[Loss]) -> Loss:
    distinct = tuple(dict.fromkeys(losses))
    return distinct[0] if len(distinct) == 1 else envelope(distinct)
