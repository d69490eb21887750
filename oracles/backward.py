"""The worst case of whatever a filter may grant, over every adversary: backward induction over counts and answers.

A state is how often each member of a menu was taken, and the key of the answers so far, which determines their
likelihood ratio. The adversary stops, or takes a member that is granted, in either order of its pair.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from flint import arb, ctx

from oracles.ball import Number, ball

State = tuple[int, ...]
Outcome = tuple[arb, arb, State]
"""P's mass, Q's mass, and what the outcome adds to the key."""
Order = list[Outcome]
Granted = Callable[[State, int], bool]


def promise(steps: int, spacing: Number, delta: Number = 0) -> list[Order]:
    """The pair above all (`steps` times `spacing`, delta)-private mechanisms; its key is the sum of the losses."""
    rate, outside = (ball(spacing) * steps).exp(), ball(delta)
    high, low = (1 - outside) * rate / (1 + rate), (1 - outside) / (1 + rate)
    listed = [(high, low, (steps,)), (low, high, (-steps,))]
    return [listed + ([(outside, arb(0), (0,))] if not outside.is_zero() else [])]


def both_orders(masses: Sequence[tuple[arb, arb]], place: int, keys: int) -> list[Order]:
    """A pair of distributions in both orders; its keys are at `place` and the following, of so many."""

    def key(at: int, turn: int) -> State:
        return tuple(turn * (each == place + at) for each in range(keys))

    first = [(p, q, key(at, 1)) for at, (p, q) in enumerate(masses)]
    return [first, [(q, p, key(at, -1)) for at, (p, q) in enumerate(masses)]]


@contextmanager
def _deep() -> Iterator[None]:
    """A history may have thousands of rounds. Elsewhere the limit stays: it saves the stack of C from nested input."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def worst(menu: Sequence[list[Order]], granted: Granted, epsilon: Number) -> arb:
    """The largest P(E) - e^epsilon Q(E).

    Args:
        menu: The members, each in its different orders.
        granted: Whether a state grants one more of a member.
        epsilon: Where.
    """
    known: dict[tuple[State, State], arb] = {}
    with _deep(), ctx.workprec(256):
        scale = ball(epsilon).exp()

        def after(state: State, key: State, ratio: arb) -> arb:
            """The best continuation, per unit of P's mass; `ratio` is Q / P so far."""
            found = known.get((state, key))
            if found is not None:
                return found
            best = (1 - scale * ratio).max(arb(0))
            for place, orders in enumerate(menu):
                if granted(state, place):
                    following = (*state[:place], state[place] + 1, *state[place + 1 :])
                    for order in orders:
                        total = arb(0)
                        for p, q, step in order:
                            if q.is_zero():
                                total += p
                            elif p > 0:
                                moved = tuple(a + b for a, b in zip(key, step, strict=True))
                                total += p * after(following, moved, ratio * q / p)
                        best = best.max(total)
            known[state, key] = best
            return best

        keys = len(menu[0][0][0][2])
        return after((0,) * len(menu), (0,) * keys, arb(1))


def fixed(menu: Sequence[list[Order]], counts: State, epsilon: Number) -> arb:
    """The same for an adversary who takes so many of each, one member after the other."""

    def granted(state: State, place: int) -> bool:
        return state[place] < counts[place] and all(
            a == b for a, b in zip(state[:place], counts, strict=False)
        )

    return worst(menu, granted, epsilon)


def ever(menu: Sequence[list[Order]], above: Callable[[State, State], bool], rounds: int) -> arb:
    """The largest P(at some time the answers so far are above): an outcome that Q lacks always is.

    Args:
        menu: The members, each in its different orders.
        above: Whether answers of a key, after so many of each member, are above the line.
        rounds: The most answers.
    """
    known: dict[tuple[State, State], arb] = {}

    def after(state: State, key: State) -> arb:
        if above(state, key):
            return arb(1)
        found = known.get((state, key))
        if found is not None:
            return found
        best = arb(0)
        if sum(state) < rounds:
            for place, orders in enumerate(menu):
                following = (*state[:place], state[place] + 1, *state[place + 1 :])
                for order in orders:
                    total = arb(0)
                    for p, q, step in order:
                        moved = tuple(a + b for a, b in zip(key, step, strict=True))
                        total += p if q.is_zero() else p * after(following, moved)
                    best = best.max(total)
        known[state, key] = best
        return best

    with ctx.workprec(256):
        return after((0,) * len(menu), (0,) * len(menu[0][0][0][2]))
