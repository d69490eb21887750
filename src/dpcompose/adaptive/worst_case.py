"""The worst case of a menu: what an adversary reaches who takes mechanisms from it, by backward induction.

W(s, a) is the largest P(E) - a Q(E) that is reached from the state s of a filter on: the maximum of (1 - a)_+, and of
E_P W(s', a Q / P) over every member that is granted, in either order of its pair, s' being the state after it. W(s, .)
is convex, falls, is 1 at a = 0 and has slopes of at least -1, as maxima and mixtures of such functions have them. What
is charged may be any mechanism that the pair of a member dominates: for a convex function that falls, E_P W(a Q / P) is
a mixture of hockey-stick divergences, hence smaller for what is dominated. [ZhuDongWang2022, Theorem 10]

Values are kept at the nodes a_j = e^(epsilon + j h), from above. Between nodes a chord is above W, and it is linear in
a: a loss L between k h and (k + 1) h therefore counts as both, in the shares that keep e^-L, exactly at all nodes at
once. So a member is a list of masses on the lattice, and one step a sum of shifted arrays. Below the lowest node a_b,
W(a) <= W(a_b) + a_b - a, by the slope; above the highest, W falls. A larger loss has a smaller a Q / P, so that masses,
losses and sums may be rounded up.

A sum of m positive terms is good to (m + 3) U; a Fourier transform of n entries to less than 8 U log2(n) in the
Euclidean norm [Higham2002, Theorem 24.2], and there are three.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from dpcompose.composition import Composable, gathered
from dpcompose.errors import UnsupportedError
from dpcompose.loss import MOST_KINKS, TINY, Atoms, Loss, envelope
from dpcompose.mechanisms import parse
from dpcompose.numerics import Reals, U
from dpcompose.values import Adjacency, rounded_down

MOST_NODES, MOST_ROUNDS, FEW_SHIFTS = 1 << 15, 64, 24
LEAST_WORK, MANY_NODES = 45_000, 1 << 13
FINE = 0.1, 0.05
"""Spacings of the lattice, in standard deviations of the smallest member: to search, and where that certifies nothing."""

Order = tuple[Atoms, ...]
"""The alternatives of one round: the atoms of both orders, or of one where they are the same."""


def rounds(mechanism: Composable, adjacency: Adjacency) -> tuple[tuple[Order, int], ...]:
    """The rounds of a member: atoms that dominate each pair in either order, with how many there are.

    Where a member has several rounds, pairs that are not symmetric count as the one above both orders.

    Raises:
        UnsupportedError: If a part has no pair, or there are too many rounds.
    """
    losses = gathered(mechanism._counted(), adjacency)  # pyright: ignore[reportPrivateUsage]
    if losses.promises:
        reason = "it is known only by its Renyi curve, and has no pair"
        raise UnsupportedError(f"{mechanism!r} on a menu", reason, "Use a Budget")
    if sum(times for _, times in losses.pairs) > MOST_ROUNDS:
        reason = f"it has more than {MOST_ROUNDS} rounds"
        raise UnsupportedError(f"{mechanism!r:.80} on a menu", reason, "Put one round on the menu")
    found: list[tuple[Order, int]] = []
    for pair, times in losses.pairs:
        if pair.symmetric:
            order: Order = (_atoms(pair.remove),)
        elif losses.single is not None:
            order = _atoms(pair.remove), _atoms(pair.add)
        else:
            order = (envelope((pair.remove, pair.add)).table,)
        found.append((order, times))
    return tuple(found)


@np.errstate(
    over="ignore", invalid="ignore"
)  # losses beyond floats are cut off where they are infinite
def _atoms(loss: Loss) -> Atoms:
    return loss.atoms() if 0 < loss.support <= MOST_KINKS else envelope((loss,)).table


def bounded(atoms: Atoms) -> tuple[Reals, Reals, float]:
    """Masses under P and their losses, the lowest first, both rounded up; and the mass that has no finite loss."""
    p, _, ratio = atoms.common
    infinite = float(atoms.infinite_mass) * (1 + atoms.relative_error + 8 * U) + atoms.unplaced_mass
    losses = ratio + atoms.ratio_error + 8 * U * np.abs(ratio)
    return p * (1 + atoms.relative_error + 4 * U) + TINY, losses, infinite


@dataclass(frozen=True)
class Lattice:
    """The nodes e^(epsilon + j spacing), j from -below to above.

    Args:
        epsilon: Where the worst case is asked, at j = 0.
        spacing: The distance of two nodes, as a logarithm.
        below: How many nodes there are below epsilon.
        above: How many nodes there are above it.
    """

    epsilon: float
    spacing: float
    below: int
    above: int

    @cached_property
    def points(self) -> Reals:
        """The logarithms of the nodes."""
        return self.epsilon + np.arange(-self.below, self.above + 1) * self.spacing

    @cached_property
    def stopped(self) -> Reals:
        """(1 - a)_+ at the nodes, rounded up: the value of an adversary who asks nothing more."""
        error = 4 * U * (abs(self.epsilon) + np.abs(self.points) + self.spacing)
        return -np.expm1(np.minimum(self.points - error, 0.0)) * (1 + 4 * U)

    def extended(self, values: Reals, left: int, right: int) -> Reals:
        """Values also at so many nodes to the left and to the right."""
        low = self.points[0] - np.arange(left, 0, -1) * self.spacing
        rise = math.exp(self.points[0]) * -np.expm1(low - self.points[0]) * (1 + 16 * U) + 4 * U
        before = np.minimum(values[0] + rise, 1.0)
        return np.concatenate([before, values, np.full(right, values[-1])])

    def value(self, values: Reals) -> float:
        """The value at epsilon itself."""
        return float(values[self.below])


@dataclass(frozen=True)
class Step:
    """One order of one round as a map of values.

    Args:
        lattice: The nodes.
        shifts: Losses, in units of the spacing.
        masses: Their masses under P, rounded up.
        infinite: The mass of infinite losses, and of all that is too large or too rare to be listed.
    """

    lattice: Lattice
    shifts: tuple[int, ...]
    masses: tuple[float, ...]
    infinite: float

    @classmethod
    def of(cls, lattice: Lattice, atoms: Atoms, *, rare: float) -> Step:
        """Atoms on a lattice; the largest losses, of mass at most `rare`, count as infinite, the lowest as one."""
        masses, losses, infinite = bounded(atoms)
        tails = np.cumsum(masses[::-1])[::-1]
        kept, spacing = tails > rare, lattice.spacing
        infinite += float(np.sum(masses[~kept])) * (1 + 1e-9)
        if not np.any(kept):
            return cls(lattice, (0,), (0.0,), 1.0)
        lowest = losses[np.searchsorted(np.cumsum(masses), rare)]
        masses, losses = masses[kept], np.maximum(losses[kept], lowest)
        steps = np.floor(losses / spacing)
        above = np.expm1(
            -np.maximum(losses - steps * spacing, 0.0) - 4 * U * np.abs(losses)
        ) / math.expm1(-spacing)
        above = np.minimum(above * (1 + 16 * U), 1.0)
        shifts = np.concatenate([steps, steps + 1]).astype(int)
        split = np.concatenate([masses * (1 - above) * (1 + 4 * U), masses * above])
        first = int(shifts.min(initial=0))
        summed = np.bincount(shifts - first, weights=split) * (1 + (len(split) + 4) * U)
        listed = np.flatnonzero(summed)
        return cls(
            lattice, tuple((listed + first).tolist()), tuple(summed[listed].tolist()), infinite
        )

    def __call__(self, values: Reals) -> Reals:
        """E_P of the values after the round, rounded up."""
        (left, right), count = self._reach, len(values)
        wide = self.lattice.extended(values, left, right)
        if len(self.shifts) <= FEW_SHIFTS:
            total = np.full(count, self.infinite)
            for shift, mass in zip(self.shifts, self.masses, strict=True):
                total += mass * wide[left - shift : left - shift + count]
            total *= 1 + (len(self.shifts) + 4) * U
        else:
            size, transformed, norm = self._transformed
            product = fft.irfft(fft.rfft(wide, size) * transformed, size)
            error = 32 * U * math.log2(size) * norm * math.sqrt(float(np.sum(wide * wide)))
            total = product[left + right : left + right + count] + (self.infinite + error)
        return np.minimum(total, 1.0)

    @property
    def _reach(self) -> tuple[int, int]:
        """The nodes that are needed to the left and to the right of the lattice."""
        return max(self.shifts[-1], 0), max(-self.shifts[0], 0)

    @cached_property
    def _transformed(self) -> tuple[int, NDArray[np.complex128], float]:
        """The size of a Fourier transform, that of the masses, and their norm."""
        left, right = self._reach
        nodes = self.lattice.below + self.lattice.above + 1
        size = int(fft.next_fast_len(nodes + 2 * (left + right), real=True))
        row = np.zeros(size)
        row[np.array(self.shifts) + right] = self.masses
        return size, fft.rfft(row), float(np.linalg.norm(self.masses))


@dataclass(frozen=True)
class Member:
    """A mechanism on a lattice: its rounds one after the other, each in whichever order is worse.

    Args:
        rounds: The orders of a round, and how many such rounds there are.
    """

    rounds: tuple[tuple[tuple[Step, ...], int], ...]

    @property
    def square(self) -> float:
        """About the mean square of the loss, the sum over the rounds, in units of the spacing."""
        first = [(steps[0], times) for steps, times in self.rounds]
        return sum(
            t * sum(m * k * k for k, m in zip(each.shifts, each.masses, strict=True))
            for each, t in first
        )

    def __call__(self, values: Reals) -> Reals:
        """The largest value before this member, from the values after it."""
        for steps, times in self.rounds:
            for _ in range(times):
                values = (
                    steps[0](values)
                    if len(steps) == 1
                    else np.max([step(values) for step in steps], axis=0)
                )
        return values


@dataclass(frozen=True)
class WorstCase:
    """A menu on a lattice.

    Args:
        lattice: The nodes.
        members: The menu.
    """

    lattice: Lattice
    members: tuple[Member, ...]

    @property
    def work(self) -> int:
        """About how many multiplications one state takes; a step takes at least as long as many."""
        nodes = self.lattice.below + self.lattice.above
        return sum(
            times * max(nodes * min(len(step.shifts), 2 * FEW_SHIFTS), LEAST_WORK)
            for member in self.members
            for steps, times in member.rounds
            for step in steps
        )

    def linear(self, weights: Sequence[int]) -> Iterator[Reals]:
        """The curves of the filters that grant while the sum of weights is at most 0, 1, 2, ... .

        Of the totals below, only the last ones, as many as the largest weight, are kept.
        """
        window: deque[Reals] = deque(maxlen=max(weights))
        while True:
            values = self.lattice.stopped
            for weight, member in zip(weights, self.members, strict=True):
                if weight <= len(window):
                    values = np.maximum(values, member(window[-weight]))
            window.append(values)
            yield values

    def of(self, permitted: Sequence[tuple[int, ...]]) -> float:
        """The worst case of a down-closed set of counts."""
        return self.lattice.value(self.curve(permitted))

    def epsilon(self, curve: Reals, delta: float) -> float:
        """The smallest epsilon of a node at which a worst case is within delta."""
        within = self.lattice.points[curve <= delta]
        return max(float(np.min(within, initial=math.inf)), 0.0) * (1 + 4 * U)

    def curve(self, permitted: Sequence[tuple[int, ...]]) -> Reals:
        """The worst case of a down-closed set of counts at every node."""
        inside, known = set(permitted), dict[tuple[int, ...], Reals]()
        first = None
        for state in sorted(inside, reverse=True):
            if state[0] != first:
                first = state[0]
                known = {each: values for each, values in known.items() if each[0] <= first + 1}
            values = self.lattice.stopped
            for place, member in enumerate(self.members):
                after = (*state[:place], state[place] + 1, *state[place + 1 :])
                if after in inside:
                    values = np.maximum(values, member(known[after]))
            known[state] = values
        return known[(0,) * len(self.members)]


@lru_cache(maxsize=16)
def worst_case(
    menu: tuple[Composable, ...],
    adjacency: Adjacency,
    epsilon: float,
    delta: float,
    fine: float = FINE[0],
) -> WorstCase:
    """A menu on the lattice that suits it, and a target of about delta at epsilon.

    Args:
        menu: The members.
        adjacency: What one person's data may change.
        epsilon: Of the target.
        delta: Of the target.
        fine: The spacing of the lattice in standard deviations, where losses lie on none of their own.

    Raises:
        UnsupportedError: If a member has no pair of distributions.
    """
    listed = [rounds(member, adjacency) for member in menu]
    every = [atoms for member in listed for order, _ in member for atoms in order]
    rare = delta * 1e-7
    kept = [_largest(atoms, rare) for atoms in every]
    reach = 3 * epsilon + 6 * max(kept)
    spacing = _common(menu, adjacency, every) or max(
        fine * min(map(_deviation, every)), 2 * reach / MOST_NODES
    )
    if 2 * reach / spacing > MANY_NODES:
        reach = 2 * epsilon + 3 * max(kept)
    if not 2 * reach / spacing <= 4 * MOST_NODES:
        what = f"a menu of {len(menu)} at epsilon = {epsilon!r}"
        reason = "its smallest member is too small beside the target for the grid of its worst case"
        raise UnsupportedError(what, reason, "Take a Budget, or larger members")
    count = math.ceil(reach / spacing)
    lattice = Lattice(epsilon, spacing, count, count)

    def member(listed: Sequence[tuple[Order, int]]) -> Member:
        return Member(
            tuple(
                (tuple(Step.of(lattice, each, rare=rare) for each in order), n)
                for order, n in listed
            )
        )

    return WorstCase(lattice, tuple(member(each) for each in listed))


def _largest(atoms: Atoms, rare: float) -> float:
    """The largest loss in size whose tail is not rare."""
    p, _, ratio = atoms.common
    seen = ratio[(np.cumsum(p[::-1])[::-1] > rare) & (np.cumsum(p) > rare)]
    return float(np.max(np.abs(seen), initial=1e-9))


def _deviation(atoms: Atoms) -> float:
    """About the standard deviation of the loss."""
    p, _, ratio = atoms.common
    return max(math.sqrt(float(np.sum(p * ratio**2))), 1e-9)


def _common(
    menu: Sequence[Composable], adjacency: Adjacency, every: Sequence[Atoms]
) -> float | None:
    """The spacing of the lattice on which all losses lie, by the typed epsilons, if it is not too fine."""
    common = Fraction(0)
    for member in menu:
        for part, _ in member._counted():  # pyright: ignore[reportPrivateUsage]
            typed = part.typed(adjacency=adjacency)
            if typed is None or not typed.epsilon:
                return None
            whole = math.lcm(common.denominator, typed.epsilon.denominator)
            common = Fraction(math.gcd(int(common * whole), int(typed.epsilon * whole)), whole)
    spacing = float(common)
    steps = [atoms.common[2] / spacing for atoms in every if spacing]
    if (
        not steps
        or max(float(np.max(np.abs(each - np.rint(each)), initial=0.0)) for each in steps) > 1e-9
    ):
        return None
    return spacing if spacing > 40 / MOST_NODES else None


# A mechanism without its rarest losses: what is left has a smaller divergence, and the others are a mass of delta.


Tail = tuple[Reals, Reals, float]


@lru_cache(maxsize=64)
def tails(text: str, adjacency: Adjacency) -> tuple[Tail, ...]:
    """Masses, losses and the mass without a loss of a pair that dominates a mechanism in each order; () if none does."""
    with suppress(UnsupportedError):
        found = rounds(parse(text), adjacency)
        if len(found) == 1 and found[0][1] == 1:
            return tuple(bounded(atoms) for atoms in found[0][0])
    return ()


def without_rarest(
    tails: tuple[Tail, ...], cut: Fraction
) -> Callable[[float], Fraction | None] | None:
    """The Renyi divergences of whatever these pairs dominate, once the largest losses are left to a mass of `cut`.

    Let E be the outcomes of a pair (P, Q) but those of the largest losses, at least 0, of a mass of at most d under P,
    hence under Q. With P' = P given E, and Q' likewise, P is (1 - d) P' + d (anything), since P(E) >= 1 - d, and so is
    Q. Then D_a(P', Q') = ln(sum over E of P^a Q^(1 - a) P(E)^-a Q(E)^(a - 1)) / (a - 1), which is at most that without
    the last two factors, plus a / (a - 1) ln(1 / (1 - d)). What the pair dominates is a post-processing of it
    (Blackwell's theorem), and so are both parts. Both orders are decomposed apart: a theorem holds for one of them at a time.
    """
    rare = rounded_down(cut)
    listed: list[tuple[Reals, Reals]] = []
    for masses, losses, infinite in tails:
        above = (np.cumsum(masses[::-1])[::-1] + infinite) * (1 + (len(masses) + 2) * U)
        inside = above > rare
        if not infinite <= rare or not np.any(inside) or not np.all(losses[~inside] >= 0):
            return None
        listed.append((masses[inside], losses[inside]))
    if not listed:
        return None
    missing = -math.log1p(-rare) * (1 + 8 * U)

    def divergence(order: float) -> Fraction | None:
        most = max(_log_moment(order - 1.0, *each) for each in listed)
        found = (max(most, 0.0) + order * missing) / (order - 1.0) * (1 + 8 * U)
        return Fraction(found) if math.isfinite(found) else None

    return divergence


def _log_moment(power: float, masses: Reals, losses: Reals) -> float:
    """The logarithm of the sum of masses e^(power losses), rounded up."""
    powers = power * losses
    top = float(np.max(powers))
    error = (len(masses) + 16 + 4 * (float(np.max(np.abs(powers))) + abs(top))) * U
    return (math.log(float(np.sum(masses * np.exp(powers - top)))) + error) + top * (1 + 2 * U)
