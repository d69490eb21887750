"""The losses of a group where the family is closed: k people change the answer by k times what one can."""

from __future__ import annotations

from functools import singledispatch

from dpcompose.errors import UnsupportedError
from dpcompose.loss.base import Loss, Pair
from dpcompose.loss.bounded_range import BoundedRangeLoss, attained_losses
from dpcompose.loss.discrete_gaussian import DiscreteGaussianLoss
from dpcompose.loss.gaussian import GaussianLoss
from dpcompose.loss.laplace import LaplaceLoss
from dpcompose.loss.power import chained
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.numerics.elementary import U

LARGEST_RANGE = 300.0
LARGEST_SHIFT = 10**6


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
            f"a group of {size}", f"a shift of {shift} is beyond {LARGEST_SHIFT}", "Ask for a smaller group"
        )
    return _both(DiscreteGaussianLoss(loss.sigma, shift))


@grouped.register
def _(loss: TwoPointLoss, size: int) -> Pair | None:
    if loss.times > 1:
        return None
    fuzz = 4 * U * loss.ulps * size * (1 + loss.epsilon)
    return _both(chained(loss.epsilon, delta=loss.delta, categories=2, steps=size, relative_error=fuzz))


@grouped.register
def _(loss: BoundedRangeLoss, size: int) -> Pair:
    """The ranges add up, and any pair whose loss has the sum as its range has a geometric path of neighbors between."""
    epsilon = loss.epsilon * size
    if not epsilon <= LARGEST_RANGE:
        raise UnsupportedError(
            f"a group of {size}", f"a range of {epsilon:.4g} nats is beyond {LARGEST_RANGE:g}", "Use BlackBox"
        )
    inside = tuple(Pair(remove, add) for remove, add in attained_losses(epsilon))
    return Pair(BoundedRangeLoss(epsilon), BoundedRangeLoss(epsilon), False, inside, tight_alone=True)


def _both(loss: Loss) -> Pair:
    return Pair(loss, loss)
