"""The laws of privacy losses, as plain data: all that a mechanism states about itself.

A law names a family of losses with its parameters, an `Atoms` lists the outcomes one by one, and a `Pair` has both
orders. The room `loss` knows the moments and the profile of each family (`Law.loss`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcompose.attached import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpcompose.values import Bound

LEAST_WEIGHT = 1e-290
"""The least weight that a mixture keeps; what is left out is part of every answer."""
LAST_EPSILON = 690.0
"""Beyond it the atoms of a profile end."""


class Law:
    """The law of the privacy loss ln(p / q) under p, of one ordered pair (p, q) of distributions."""

    if TYPE_CHECKING:

        def loss(self) -> Any:
            """The privacy loss of this law, with its moments and its profile."""


expect(Law, "loss")


class Pair(NamedTuple):
    """A mechanism's losses under one adjacency: with the record against without it, and the other order.

    Args:
        remove: The loss of (with the record, without it); a law, or what `Law.loss` returned.
        add: The loss of (without the record, with it).
        attained: Whether one mechanism has both losses; if not, they only dominate.
        attained_parts: Attained losses below dominating ones, for the lower end of a composition.
        tight_alone: Whether an uncomposed profile is attained at every epsilon, by one mechanism or another.
        either_order: Whether an uncomposed truth is the largest answer of the attained parts, in either order.
    """

    remove: Any
    add: Any
    attained: bool = True
    attained_parts: tuple[Any, ...] = ()
    tight_alone: bool = False
    either_order: bool = False

    @property
    def symmetric(self) -> bool:
        """Whether both orders have the same loss."""
        return self.remove is self.add or self.remove == self.add


Laws = tuple[tuple[Pair, int], ...]
"""The losses of a mechanism: a composition of pairs with their counts."""


def alike(law: Law) -> Laws:
    """One attained loss that is the same in both orders."""
    return ((Pair(law, law), 1),)


def symmetric(*laws: tuple[Law, int]) -> Laws:
    """Attained losses that are the same in both orders, as pairs."""
    return tuple([(Pair(law, law), times) for law, times in laws])


@dataclass(frozen=True)
class GaussianShift(Law):
    """Normal noise moved by `mu` standard deviations, which may be off by `ulps` units of roundoff."""

    mu: float
    ulps: int = 1


@dataclass(frozen=True)
class GaussianSum(Law):
    """Many Gaussian shifts, (mu, times) each, as one."""

    members: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class LaplaceShift(Law):
    """Laplace noise moved by `epsilon` scales; `quotient` is (distance, scale) where epsilon is their quotient."""

    epsilon: float
    ulps: int = 1
    quotient: tuple[float, float] | None = None


@dataclass(frozen=True)
class DiscreteLaplaceShift(Law):
    """Integer noise like e^(-|x| / scale), moved by an integer."""

    scale: float
    shift: int


@dataclass(frozen=True)
class DiscreteGaussianShift(Law):
    """Integer noise like e^(-x^2 / (2 sigma^2)), moved by an integer."""

    sigma: float
    shift: int


@dataclass(frozen=True)
class SkellamShift(Law):
    """The difference of two Poisson variables, moved by an integer."""

    variance: float
    shift: int


@dataclass(frozen=True)
class SampledGaussian(Law):
    """(1 - rate) N(0) + rate N(1) against N(0) if `remove`, else the other order; noise per unit of the shift."""

    noise: float
    rate: float
    remove: bool
    ulps: int = 0


@dataclass(frozen=True)
class ReplacedGaussian(Law):
    """(1 - rate) N(0) + rate N(-1) against (1 - rate) N(0) + rate N(1)."""

    noise: float
    rate: float


@dataclass(frozen=True)
class FixedSizeBatch(Law):
    """The record that is replaced is in a batch with a probability between `rate` and `rate_above`."""

    noise: float
    rate: float
    rate_above: float


@dataclass(frozen=True)
class Allocated(Law):
    """Gaussian noise at the one of `steps` steps that is drawn, removed or added."""

    sigma: float
    steps: int
    remove: bool


@dataclass(frozen=True)
class LargestBatch(Law):
    """How large the largest of shuffled batches is, while all other records contribute the opposite."""

    sigma: float
    steps: int


@dataclass(frozen=True)
class Mixture(Law):
    """Public choices among mixtures of normal distributions, each against N(0, 1).

    Args:
        parts: (share, means, weights, weight_error) of each choice; means in units of the noise.
        share_error: The relative error of the shares.
        infinite_error: Mass that is left out.
    """

    parts: tuple[tuple[float, tuple[float, ...], tuple[float, ...], float], ...]
    share_error: float = 0.0
    infinite_error: float = 0.0


@dataclass(frozen=True)
class TwoPoint(Law):
    """The worst (epsilon, delta)-private mechanism: +epsilon, -epsilon, or infinite with probability delta."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class BoundedRange(Law):
    """The exponential mechanism: losses in a range of length epsilon."""

    epsilon: float


@dataclass(frozen=True)
class BoundedRangeAttained(Law):
    """One of the three losses of two outcomes that a bounded range is known to attain, by its index."""

    epsilon: float
    at: int


@dataclass(frozen=True)
class Shuffled(Law):
    """The stronger clones of shuffled epsilon-private reports."""

    epsilon: float
    reports: int


@dataclass(frozen=True)
class ShuffledResponses(Law):
    """Shuffled binary randomized response where all others say no; next to nothing where it would be."""

    epsilon: float
    reports: int


@dataclass(frozen=True)
class Chained(Law):
    """A group of `steps` people under k-ary randomized response with delta."""

    epsilon: float
    delta: float
    categories: int
    steps: int


@dataclass(frozen=True)
class Response(Law):
    """The exact masses of randomized response over `categories`, for proofs."""

    epsilon: float
    categories: int


@dataclass(frozen=True)
class Encoding(Law):
    """The exact masses of two encoded bits, for proofs."""

    keep: float
    flip: float


@dataclass(frozen=True)
class Atoms(Law):
    """Outcomes with mass `upper[i]` under P and `lower[i]` under Q; one that only P has is an infinite loss.

    Args:
        upper: Masses under P, each good to `relative_error`.
        lower: Masses under Q, likewise, same length.
        log_ratio: ln(upper / lower), inf where only P and -inf where only Q has the outcome; empty: computed from the
            masses, which are then exact unless `relative_error` says otherwise.
        lattice: (spacing, offset) of the lattice on which the finite losses lie, if they do.
        relative_error: Of the masses.
        omitted_mass: Mass (of either measure) that is not in the lists, or may be misplaced.
        formula: The exact masses, if they have a formula: what proofs use in their place.
        log_ratio_relative_error: Of the log-ratios; None: `relative_error`.
    """

    upper: tuple[float, ...]
    lower: tuple[float, ...]
    log_ratio: tuple[float, ...] = ()
    lattice: tuple[float, float] | None = None
    relative_error: float = 0.0
    omitted_mass: float = 0.0
    formula: Law | None = None
    log_ratio_relative_error: float | None = None

    @property
    def reverse(self) -> Law:
        """The loss of (Q, P)."""
        return self if self.upper == self.lower else Reversed(self)


@dataclass(frozen=True)
class AtomsAbove(Law):
    """Atoms above any profile, of either order, that is at most these deltas a little before these epsilons.

    Args:
        epsilons: Increasing, from 0 on.
        deltas: In [0, 1]. The last holds for all that follows.
        moment: An upper bound on K of the mechanism at an exponent, if it is less than that of the atoms.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    moment: Callable[[float], float] | None = None


@dataclass(frozen=True)
class AtomsOfProfile(Law):
    """Atoms above a profile of which both ends are known at every real epsilon, or atoms below it."""

    profile: Callable[[float], Bound]
    above: bool


@dataclass(frozen=True)
class Reversed(Law):
    """The other order of a law that is given by its outcomes, or of a mixture."""

    law: Law


@dataclass(frozen=True)
class Envelope(Law):
    """Atoms that dominate each of some losses; laws, or what `Law.loss` returned."""

    laws: tuple[Any, ...]
