"""The losses of a group: in closed form where the family is closed, else by iterated power functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import singledispatch

import numpy as np

from dpcompose.contour import Lattice
from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import PowerCurve, enclosing_power
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import TINY, Atoms
from dpcompose.loss.base import Loss, Pair
from dpcompose.loss.bounded_range import BoundedRangeLoss, attained_losses
from dpcompose.loss.discrete_noise import DiscreteGaussianLoss
from dpcompose.loss.gaussian import GaussianLoss
from dpcompose.loss.gaussian_mixture import GaussianMixture, OpposedMixtures
from dpcompose.loss.laplace import LaplaceLoss
from dpcompose.loss.mixture_loss import MixtureLoss
from dpcompose.loss.product import Product
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.numerics import U
from dpcompose.values import Bound

LARGEST_RANGE = 300.0
LARGEST_SHIFT = 10**6
LARGEST_ON_A_LINE = 512
NODES = 2048
LARGEST_CHAIN, LARGEST_LOSS = 690.0, 200.0
"""Beyond these a float, or 100 digits on both sides of 1, no longer holds a likelihood ratio."""
_NEGLIGIBLE, _RESIDUE = 1e-30, 1e-50


@singledispatch
def grouped(loss: Loss, size: int) -> Pair | None:
    """The pair of a group of `size` where `loss` is one person's, the same in both orders; None without closed form.

    Shifts of noise with a log-concave density are a semigroup: the best tests for a shift are half-lines whatever its
    size, so the power function of a shift by k is that of a shift by 1, iterated k times. The same holds for integer
    noise and integer shifts, whose power functions are linear between common corners.

    Reference: [DongRothSu2022, Theorem 2.14]
    """
    return None


@grouped.register
def _(loss: GaussianLoss, size: int) -> Pair:
    return _both(GaussianLoss(loss.mu * size, loss.ulps + 1))


@grouped.register
def _(loss: LaplaceLoss, size: int) -> Pair:
    return _both(LaplaceLoss(loss.epsilon * size, loss.ulps + 1))


@grouped.register
def _(loss: DiscreteGaussianLoss, size: int) -> Pair:
    shift = loss.shift * size
    if not abs(shift) <= LARGEST_SHIFT:
        raise UnsupportedError(
            f"a group of {size}",
            f"a shift of {shift} is beyond {LARGEST_SHIFT}",
            "Ask for a smaller group",
        )
    return _both(DiscreteGaussianLoss(loss.sigma, shift))


@grouped.register
def _(loss: TwoPointLoss, size: int) -> Pair | None:
    if loss.times > 1:
        return None
    if not loss.epsilon * size <= LARGEST_CHAIN:
        reason = f"a loss of {loss.epsilon * size:.4g} nats is beyond {LARGEST_CHAIN:g}"
        raise UnsupportedError(
            f"a group of {size} at epsilon = {loss.epsilon!r}", reason, "Use book.group"
        )
    relative_error = 4 * U * loss.ulps * size * (1 + loss.epsilon)
    return _both(
        chained(
            loss.epsilon, delta=loss.delta, categories=2, steps=size, relative_error=relative_error
        )
    )


@grouped.register
def _(loss: BoundedRangeLoss, size: int) -> Pair:
    """Under a group of `size` records the range of the loss is `size` times as wide. Nothing smaller holds: between any two
    distributions whose loss has that range lie `size` - 1 others, at equal distances, each a neighbor of the next.
    """
    epsilon = loss.epsilon * size
    if not epsilon <= LARGEST_RANGE:
        raise UnsupportedError(
            f"a group of {size}",
            f"a range of {epsilon:.4g} nats is beyond {LARGEST_RANGE:g}",
            "Use BlackBox",
        )
    inside = tuple(Pair(remove, add) for remove, add in attained_losses(epsilon))
    return Pair(
        BoundedRangeLoss(epsilon), BoundedRangeLoss(epsilon), False, inside, tight_alone=True
    )


def losses_on_a_line(
    loss: Loss, size: int, *, rate: float | None = None, replaced: bool = False
) -> tuple[list[MixtureLoss], bool] | None:
    """The losses of a group when 0, 1, ..., `size` members are removed and the others added, and whether one is attained.

    Each member moves a sum with Gaussian noise by a random amount, independently of the others. None if one member's
    loss is not that of such a move.

    Args:
        loss: The loss when one member is removed.
        size: The number of members.
        rate: The probability that a member is in the sample, if `loss` is that without sampling.
        replaced: Whether all members are replaced, so that both worlds have all of them.

    Raises:
        UnsupportedError: If the group has more than 512 members, or the sum of all moves too many values.
    """
    omitted = 0.0
    match loss:
        case GaussianLoss() if rate is not None:
            one, rate = GaussianMixture((0.0, loss.mu), (1 - rate, rate), loss.ulps), None
        case SampledGaussianLoss(remove=True):
            mean, weights = 1 / loss.noise, (1 - loss.rate, loss.rate)
            one = GaussianMixture((0.0, mean), weights, loss.ulps + 1)
        case MixtureLoss(parts=((_, pair),)) if pair.second.nothing:
            one, omitted = pair.first, loss.infinite_error
        case _:
            return None
    if not size <= LARGEST_ON_A_LINE:
        reason = f"members who move a sum are followed one by one, up to {LARGEST_ON_A_LINE}"
        raise UnsupportedError(f"a group of {size}", reason, "Ask for fewer")
    if rate is not None:
        one, more = one.sampled(rate)
        omitted += more
    known = one.powers(size)

    def opposed(removed: int, added: int) -> MixtureLoss:
        (first, lost), (second, other) = known[removed], known[added]
        pair, left_out = OpposedMixtures(first, second), (removed + added) * omitted * (1 + 4 * U)
        return MixtureLoss(((1.0, pair),), infinite_error=lost + other + left_out)

    # Of the omitted terms, only small means matter at positive losses.
    least = known[1][0].means[0]
    attained = all(
        mixture.means[0] <= number * least * (1 + 4 * U)
        for number, (mixture, _) in enumerate(known)
    )
    if replaced:
        return [opposed(size, size)] * (size + 1), attained
    return [opposed(removed, size - removed) for removed in range(size + 1)], attained


def _both(loss: Loss) -> Pair:
    return Pair(loss, loss)


def chained(
    epsilon: float, delta: float, categories: int, steps: int, *, relative_error: float = 0.0
) -> Loss:
    """The loss of a group of `steps` under k-ary randomized response with delta: its power function, iterated.

    The slopes of the power function are e^epsilon, 1 (k > 2) and e^-epsilon after a start at delta; those of the
    iterate are e^(n epsilon), n from -steps to steps. A group of that size of any mechanism that the pair dominates is
    dominated by this loss, and no smaller one dominates them all.

    Reference: [DongRothSu2022, Theorem 2.14]
    """
    if epsilon == 0 and delta == 0:
        return TwoPointLoss(0.0)
    # Masses from 1 down to e^(-steps epsilon) stand side by side. Beyond 1,600 nats the smallest are below any float.
    with localcontext(Context(prec=60 + math.ceil(0.45 * min(epsilon * steps, 1600.0)))):
        growth, rest = Decimal(epsilon).exp(), 1 - Decimal(delta)
        other = rest / (growth + categories - 1)
        middle = (categories - 2) * other
        pieces = [(other, other * growth), (middle, middle), (other * growth, other)]
        curve = PowerCurve.of_segments(Decimal(delta), pieces, Decimal(delta)).repeated(steps)
    # With two categories every second place is empty.
    spacing = 2 * epsilon if categories == 2 and steps % 2 == 0 else epsilon
    return atoms_of(
        curve, relative_error=relative_error, lattice=Lattice(spacing, 0.0) if epsilon > 0 else None
    )


@dataclass(frozen=True)
class EnclosedPower:
    """Power functions above and below that of a pair.

    Args:
        above: One above.
        below: One below; the same one where the losses are atoms, none where some mass may be anywhere.
        relative_error: How far the masses of both may be from those meant, relative.
    """

    above: PowerCurve
    below: PowerCurve | None
    relative_error: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the lower and the upper function are both the power function itself, up to the stated error of the
        masses."""
        return self.below is self.above

    def repeated(self, times: int) -> EnclosedPower:
        """The power function applied several times, which is that of a group; an error of the masses adds at most once
        with every application."""
        above = self.above.repeated(times)
        below = above if self.exact else None if self.below is None else self.below.repeated(times)
        return EnclosedPower(above, below, 2 * times * self.relative_error)


def curves_of(remove: Product, add: Product, *, nodes: int = NODES) -> EnclosedPower:
    """Power functions above and below that of a pair, from its losses in both orders."""
    ends = [product.extremes.upper for product in (remove, add)]
    loss = remove.single
    atoms = (
        loss.atoms() if loss is not None and loss.support and max(ends) <= LARGEST_LOSS else None
    )
    if atoms is not None:
        exact = PowerCurve.of_atoms(atoms.upper, atoms.lower, lost=atoms.unplaced_mass)
        return EnclosedPower(
            exact, exact if atoms.unplaced_mass == 0.0 else None, atoms.relative_error
        )
    reach = max(
        _reach(_profile(product), end) for product, end in zip((remove, add), ends, strict=True)
    )
    special = [end * (1 + 4 * U) for end in ends if 0.0 < end < reach]
    grid = np.unique(
        np.concatenate([np.linspace(0.0, reach * (1 + 4 * U), nodes // 2), special])
    ).tolist()
    deltas = [_profile(remove)(epsilon) for epsilon in grid]
    mirrored = deltas if add == remove else [_profile(add)(epsilon) for epsilon in grid]
    return EnclosedPower(*enclosing_power(grid, deltas, mirrored, (remove.infinite, add.infinite)))


def atoms_of(
    curve: PowerCurve, *, relative_error: float = 0.0, lattice: Lattice | None = None
) -> AtomicLoss:
    """The loss of the pair with this power function.

    Args:
        curve: The power function.
        relative_error: How far its masses may be from those meant, relative.
        lattice: Where its losses lie, if they lie on one: neighbors at the same place are one.
    """
    with localcontext(Context(prec=60)):
        places: list[tuple[float, Decimal, Decimal]] = []
        for length, gain in curve.pieces:
            place = _logarithm(length, gain)
            if lattice is not None:
                place = (
                    round((place - lattice.offset) / lattice.spacing) * lattice.spacing
                    + lattice.offset
                )
            if places and places[-1][0] == place:
                _, before, gained = places.pop()
                places.append((place, length + before, gain + gained))
            else:
                places.append((place, length, gain))
    ratios = [place for place, _, _ in places]
    upper, lower = (
        [float(gain) for _, _, gain in places],
        [float(length) for _, length, _ in places],
    )
    if curve.start > 0:
        upper, lower, ratios = [*upper, float(curve.start)], [*lower, 0.0], [*ratios, math.inf]
    if curve.remainder > _RESIDUE:
        upper, lower, ratios = [*upper, 0.0], [*lower, float(curve.remainder)], [*ratios, -math.inf]
    faint = any(max(length, gain) < TINY for _, length, gain in places)
    logs = [float(gain.ln(Context(prec=30))) for _, _, gain in places] if faint else []
    logs += [0.0] * (len(ratios) - len(logs)) if faint else []
    relative_error += 8 * U
    return AtomicLoss(
        Atoms(
            tuple(upper),
            tuple(lower),
            tuple(ratios),
            lattice,
            relative_error,
            log_upper=tuple(logs),
        )
    )


def _logarithm(length: Decimal, gain: Decimal) -> float:
    excess = (gain - length) / length
    if abs(excess) < 0.5:
        return math.log1p(float(excess))
    ratio = float(gain / length) if length < gain else float(length / gain)
    if not ratio < math.inf:
        return float((gain / length).ln())
    return math.log(ratio) if length < gain else -math.log(ratio)


def _profile(product: Product) -> Callable[[float], Bound]:
    return lambda epsilon: product.delta(epsilon, tolerance=1e-9)


def _reach(profile: Callable[[float], Bound], end: float) -> float:
    """Where delta is negligible, within a hundredth; at most the largest loss."""
    if end <= LARGEST_LOSS:
        return max(end, 1e-9)

    def beyond(epsilon: float) -> bool:
        return profile(epsilon).upper < _NEGLIGIBLE

    high = 1.0
    while high < LARGEST_LOSS and not beyond(high):
        high = min(2 * high, LARGEST_LOSS)
    low = high / 2
    while low > 1e-9 and beyond(low):
        low, high = low / 2, low
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high
