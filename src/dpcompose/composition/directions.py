"""The losses of a composition, a product for each direction: the dominating ones, and those that are attained."""

from __future__ import annotations

from dpcompose.composition import adversarial
from dpcompose.composition.part import Pairs
from dpcompose.loss import Product


def directions(pairs: Pairs) -> tuple[Product, ...]:
    """The record removed and, where that differs, the record added."""
    remove = Product(tuple([(pair.remove, times) for pair, times in pairs]))
    if False in [pair.symmetric for pair, _ in pairs]:
        return (remove, Product(tuple([(pair.add, times) for pair, times in pairs]), remove))
    return (remove,)


def attained_directions(pairs: Pairs, *, oriented: bool = False) -> tuple[Product, ...]:
    """Attained cases: every choice that all dominating pairs make alike; a pair that knows none is left out.

    Args:
        pairs: All losses.
        oriented: With sequences of orientations too.
    """
    known = [(pair, times) for pair, times in pairs if pair.attained or pair.attained_parts]
    found: list[Product] = []
    for choice in range(max((len(pair.attained_parts) for pair, _ in known), default=0) or 1):
        chosen = tuple(
            (
                pair
                if pair.attained
                else pair.attained_parts[min(choice, len(pair.attained_parts) - 1)],
                times,
            )
            for pair, times in known
        )
        found.extend(directions(chosen))
        found.extend(adversarial.fixed_beforehand(chosen) if oriented else ())
    return tuple(found)
