"""The laws of privacy losses as plain data: everything that a mechanism states about itself.

A law names a family of losses with its parameters, `Atoms` lists the outcomes one by one, and a
`Pair` has both orders. `dpcompose.loss` evaluates the moments and the privacy profile of each
family (`Law.loss`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcompose.attached import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpcompose.values import Bound

LEAST_WEIGHT = 1e-290
"""The least weight that a mixture keeps; the total of smaller ones is part of every bound."""
LAST_EPSILON = 690.0
"""The largest epsilon of an atom that represents a privacy profile."""


class Law:
    """The law of the privacy loss ln(p / q) under p, for one ordered pair (p, q) of
    distributions.
    """

    if TYPE_CHECKING:

        def loss(self) -> Any:
            """Return the privacy loss of this law, which has moments and a privacy profile."""


expect(Law, "loss")


class Pair(NamedTuple):
    """The losses of a mechanism under one adjacency: (with the record, without it) and the reverse
    order.

    Args:
        remove: The law of the loss of (with the record, without it), or the privacy loss that
            `Law.loss` returned.
        add: The law of the loss of (without the record, with it), or its privacy loss.
        attained: Whether one mechanism has both losses; if False, they only dominate.
        attained_parts: Pairs that mechanisms attain, for the lower end of a composition whose
            losses only dominate.
        tight_alone: Whether a single run attains the profile at every epsilon, by different
            mechanisms at different epsilons.
        either_order: Whether the truth for a single run is the largest answer of `attained_parts`,
            in either order.
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
    """Return the losses of a mechanism that attains one law, the same in both orders."""
    return ((Pair(law, law), 1),)


def bounded_by(law: Law, *attained: Pair, tight_alone: bool = False) -> Laws:
    """Return the pair of `law` in both orders, which dominates the losses; `attained` are pairs
    that mechanisms attain.
    """
    return ((Pair(law, law, False, attained, tight_alone), 1),)


def symmetric(*laws: tuple[Law, int]) -> Laws:
    """Return the losses of a mechanism that attains these laws, each the same in both orders, with
    their counts.
    """
    return tuple([(Pair(law, law), times) for law, times in laws])


@dataclass(frozen=True)
class GaussianShift(Law):
    """N(mu, 1) against N(0, 1), where mu may be off by `ulps` units of roundoff."""

    mu: float
    ulps: int = 1


@dataclass(frozen=True)
class GaussianSum(Law):
    """A composition of Gaussian shifts, (mu, count) for each, as a single Gaussian."""

    members: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class LaplaceShift(Law):
    """Laplace noise shifted by `epsilon` scales; `quotient` is (distance, scale) if epsilon is
    their quotient.

    `epsilon` may be off by `ulps` units of roundoff.
    """

    epsilon: float
    ulps: int = 1
    quotient: tuple[float, float] | None = None


@dataclass(frozen=True)
class DiscreteLaplaceShift(Law):
    """Integer noise with mass proportional to e^(-|x| / scale), shifted by the integer `shift`."""

    scale: float
    shift: int


@dataclass(frozen=True)
class DiscreteGaussianShift(Law):
    """Integer noise with mass proportional to e^(-x^2 / (2 sigma^2)), shifted by the integer
    `shift`.
    """

    sigma: float
    shift: int


@dataclass(frozen=True)
class SkellamShift(Law):
    """The difference of two Poisson variables, of variance `variance` together, shifted by the
    integer `shift`.
    """

    variance: float
    shift: int


@dataclass(frozen=True)
class SampledGaussian(Law):
    """(1 - rate) N(0) + rate N(1) against N(0) if `remove`, else in reverse order.

    `noise` is the standard deviation in units of the shift; it may be off by `ulps` units of
    roundoff.
    """

    noise: float
    rate: float
    remove: bool
    ulps: int = 0


@dataclass(frozen=True)
class ReplacedGaussian(Law):
    """(1 - rate) N(0) + rate N(-1) against (1 - rate) N(0) + rate N(1), with standard deviation
    `noise`.
    """

    noise: float
    rate: float


@dataclass(frozen=True)
class FixedSizeBatch(Law):
    """Gaussian noise on a batch of fixed size with one record replaced.

    The record is in the batch with a probability between `rate` and `rate_above`; `noise` is the
    standard deviation in units of a record's norm.
    """

    noise: float
    rate: float
    rate_above: float


@dataclass(frozen=True)
class Allocated(Law):
    """Gaussian noise of standard deviation `sigma` in each of `steps` steps, with the record in one
    random step; removed or added.
    """

    sigma: float
    steps: int
    remove: bool


@dataclass(frozen=True)
class LargestBatch(Law):
    """The size of the largest of `steps` shuffled batches, each with noise `sigma`, while all other
    records contribute the opposite.
    """

    sigma: float
    steps: int


@dataclass(frozen=True)
class Mixture(Law):
    """A public random choice among mixtures of normal distributions, each against N(0, 1).

    Args:
        parts: (share, means, weights, weight_error) of each choice: its probability `share`, the
            means in units of the noise, their weights and the relative error of these.
        share_error: The relative error of the probabilities `share`.
        infinite_error: The probability mass that is left out.
    """

    parts: tuple[tuple[float, tuple[float, ...], tuple[float, ...], float], ...]
    share_error: float = 0.0
    infinite_error: float = 0.0


@dataclass(frozen=True)
class TwoPoint(Law):
    """The worst (epsilon, delta)-private mechanism: its loss is +epsilon, -epsilon, or infinite
    with probability delta.
    """

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class BoundedRange(Law):
    """The dominating loss of a mechanism whose losses lie in an interval of length epsilon, such as
    the exponential mechanism.
    """

    epsilon: float


@dataclass(frozen=True)
class BoundedRangeAttained(Law):
    """One of the three two-point losses that mechanisms of bounded range epsilon attain, by its
    index `at`.
    """

    epsilon: float
    at: int


@dataclass(frozen=True)
class Shuffled(Law):
    """The stronger-clones bound on `reports` shuffled reports, each epsilon-private."""

    epsilon: float
    reports: int


@dataclass(frozen=True)
class ShuffledResponses(Law):
    """Shuffled binary randomized response of `reports` people where all others answer "no"; the
    zero loss where it would be negligible.
    """

    epsilon: float
    reports: int


@dataclass(frozen=True)
class Chained(Law):
    """A group of `steps` people under randomized response over `categories` that fails with
    probability delta.
    """

    epsilon: float
    delta: float
    categories: int
    steps: int


@dataclass(frozen=True)
class Response(Law):
    """The exact masses of randomized response with `epsilon` over `categories`, used in proofs."""

    epsilon: float
    categories: int


@dataclass(frozen=True)
class Encoding(Law):
    """The exact masses of two bits, set with probabilities `keep` and `flip`, used in proofs."""

    keep: float
    flip: float


@dataclass(frozen=True)
class Atoms(Law):
    """The loss of finitely many outcomes with mass `upper[i]` under P and `lower[i]` under Q;
    infinite where only P has mass.

    Args:
        upper: Masses under P, each good to `relative_error`.
        lower: Masses under Q, with the same relative error and length.
        log_ratio: ln(upper / lower), inf where only P and -inf where only Q has mass; if empty,
            computed from the masses, which are exact unless `relative_error` is above 0.
        lattice: (spacing, offset) of the lattice of the finite losses; None if they lie on none.
        relative_error: The relative error of the masses.
        omitted_mass: The mass under P or Q that is not listed, or may be at the wrong outcome.
        formula: A law with the exact masses, which proofs use; None if there is none.
        log_ratio_relative_error: The relative error of the log-ratios; None if it is
            `relative_error`.
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
        """The law of the loss of (Q, P)."""
        return self if self.upper == self.lower else Reversed(self)


@dataclass(frozen=True)
class AtomsAbove(Law):
    """Atoms that dominate every pair whose profile is at most `deltas[i]` just below `epsilons[i]`,
    in either order.

    Args:
        epsilons: Increasing, from 0, in nats.
        deltas: In [0, 1]; the last one holds for all larger epsilons.
        moment: An upper bound on the log moment of the mechanism at an exponent, if smaller than
            that of the atoms.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    moment: Callable[[float], float] | None = None


@dataclass(frozen=True)
class AtomsOfProfile(Law):
    """Atoms that dominate a profile (`above`), or that it dominates; `profile` returns bounds on
    delta at every real epsilon.
    """

    profile: Callable[[float], Bound]
    above: bool


@dataclass(frozen=True)
class AtomsOfParts(Law):
    """Finitely many atoms that bound a composition from below: the sum of its losses dominates them.

    Args:
        parts: Pairs with their counts; the losses are those of removing the record.
    """

    parts: Laws


@dataclass(frozen=True)
class Reversed(Law):
    """The loss of (Q, P) for a law of atoms or of a mixture; any other law is symmetric."""

    law: Law


@dataclass(frozen=True)
class Envelope(Law):
    """Atoms that dominate each of several losses, stated as laws or as the privacy losses that
    `Law.loss` returned.
    """

    laws: tuple[Any, ...]


NOTHING = Pair(TwoPoint(0.0), TwoPoint(0.0))
"""The pair of an answer that does not depend on the record."""
