"""The table of mechanisms from which all law tests draw, one line for each.

A member is made from a size, about the loss of one answer (twice the size, half the noise), and a
variant, an integer that chooses its other parameters. Draws are reproducible; a failure prints them
and how to repeat it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, given, settings, strategies as st

from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
)
from dpcompose.composition import Composable
from dpcompose.guarantee import gaussian
from dpcompose.mechanisms import (
    AboveThreshold,
    DominatingPair,
    MatrixMechanism,
    MixtureOfGaussians,
    NoisyArgmax,
    NoisyMax,
    Participation,
    PermuteAndFlip,
    PrivateSelection,
    RandomAllocation,
    RenyiCurve,
    ShuffledReports,
    Skellam,
    Staircase,
    TreeAggregation,
    TruncatedPoisson,
    UnaryEncoding,
    arguments,
)

Option = TypeVar("Option")


@dataclass(frozen=True)
class Member:
    """What the laws need to know of a building block.

    Args:
        name: What the tests are called.
        build: From size and variant to a mechanism.
        symmetric: Whether removing and adding a record have the same loss.
        replaceable: Whether something is known under `Adjacency.REPLACE`.
        sampleable: Whether it has losses, so that it can be put on a sample.
        attained: Whether its pair is attained, so that intervals are narrow.
        monotone: Whether more noise never costs more.
        examples: How many draws a law makes at most in a run of the tests.
        gaussian: Whether it is known to be Gaussian differentially private.
    """

    name: str
    build: Callable[[float, int], Composable]
    symmetric: bool = True
    replaceable: bool = True
    sampleable: bool = True
    attained: bool = True
    monotone: bool = True
    examples: int = 3
    gaussian: bool = False


def chosen(variant: int, *options: Option) -> Option:
    return options[variant % len(options)]


def lopsided(size: float) -> DominatingPair:
    high, low = (0.5 + 0.4 * min(size, 1.0)), (0.5 - 0.3 * min(size, 1.0))
    return DominatingPair.atoms(
        upper=[high, 1 - high], lower=[low, 1 - low], adjacency=Adjacency.ADD_REMOVE
    )


def from_profile(size: float) -> DominatingPair:
    return DominatingPair.from_profile(
        lambda epsilon: gaussian.gaussian_profile(epsilon, mu=size).upper,
        error=1e-13,
        adjacency=Adjacency.ADD_REMOVE,
    )


def discrete_laplace(size: float, variant: int) -> DiscreteLaplace:
    return DiscreteLaplace(chosen(variant, 1, 3) / size, shift=chosen(variant, 1, 3))


def discrete_gaussian(size: float, variant: int) -> DiscreteGaussian:
    return DiscreteGaussian(chosen(variant, 1, 3) / size, shift=chosen(variant, 1, 3))


def noisy_maximum(size: float, variant: int) -> NoisyMax:
    noise, monotone = chosen(variant, "laplace", "exponential", "gumbel"), variant >= 3
    return NoisyMax((1 if monotone else 2) / size, noise=noise, monotone=monotone)


def unary_encoding(size: float, variant: int) -> UnaryEncoding:
    keep = chosen(variant, 0.5, 0.7)
    return UnaryEncoding(
        keep, flip=keep / (keep + (1 - keep) * math.exp(size)), holds_under=Adjacency.ADD_REMOVE
    )


def shuffled_reports(size: float, variant: int) -> ShuffledReports:
    return ShuffledReports(
        size, reports=chosen(variant, 2, 30, 2000), holds_under=Adjacency.ADD_REMOVE
    )


def allocation(size: float, variant: int) -> RandomAllocation:
    return RandomAllocation(1 / size, steps=chosen(variant, 2, 30))


def best_of_several(size: float, variant: int) -> PrivateSelection:
    base = chosen(variant, Gaussian(4 / size), Laplace(4 / size) * 2)
    return PrivateSelection(
        base, tries=chosen(variant, 3.0, 10.0), shape=chosen(variant, 1.0, math.inf, 0.5)
    )


def renyi_curve(size: float, variant: int) -> RenyiCurve:
    orders = chosen(variant, [2.0, 4.0, 16.0, 64.0], [1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 256])
    return RenyiCurve(
        [size**2 / 2 * order for order in orders], orders=orders, holds_under=Adjacency.ADD_REMOVE
    )


def skellam(size: float, variant: int) -> Skellam:
    return Skellam((chosen(variant, 1, 3) / size) ** 2, shift=chosen(variant, 1, 3))


def matrix(size: float, variant: int) -> MatrixMechanism:
    strategy = chosen(variant, [[1.0]], [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.3, 0.5, 1.0]])
    return MatrixMechanism(strategy, sigma=2 / size, participation=chosen(variant, *PARTICIPATIONS))


def tree(size: float, variant: int) -> TreeAggregation:
    participation = chosen(variant, *PARTICIPATIONS)
    return TreeAggregation(
        3 / size, steps=5, participation=participation, restart=chosen(variant, None, 3)
    )


def two_ended_matrix(size: float, variant: int) -> MatrixMechanism:
    strategy = [[1.0, 0.0, 0.0], [-0.5, 1.0, 0.0], [-0.5, -0.5, 1.0]]
    return MatrixMechanism(
        strategy, sigma=2 / size, participation=Participation.separated(1, most=3)
    )


def sampled_gaussian(size: float, variant: int) -> Composable:
    return Gaussian(1 / size).sampled(chosen(variant, 0.2, 0.01))


def sampled_laplace(size: float, variant: int) -> Composable:
    return Laplace(1 / size).sampled(0.2)


def sampled_response(size: float, variant: int) -> Composable:
    return RandomizedResponse(size, categories=chosen(variant, 2, 5)).sampled(0.2)


def mixture_of_gaussians(size: float, variant: int) -> MixtureOfGaussians:
    shifts, weights = chosen(
        variant, ((0, 1, 2), (0.5, 0.25, 0.25)), ((1, 2), (0.75, 0.25)), ((2, 0, 1, 1), (0.25,) * 4)
    )
    return MixtureOfGaussians(1 / size, shifts=shifts, weights=weights)


def capped_batches(size: float, variant: int) -> TruncatedPoisson:
    return TruncatedPoisson(
        1 / size, rate=chosen(variant, 0.2, 0.01), records=30, batch=chosen(variant, 4, 6, 30)
    )


def one_sample(size: float, variant: int) -> Composable:
    return (BlackBox(size / 2) + RandomizedResponse(size / 2)).sampled(0.3)


LAPLACE = Member(
    "Laplace",
    lambda size, variant: Laplace(1 / size, replace_sensitivity=chosen(variant, None, 1.5)),
)
GAUSSIAN = Member(
    "Gaussian",
    lambda size, variant: Gaussian(
        3 / size, sensitivity=3.0, replace_sensitivity=chosen(variant, None, 2**0.5 * 3)
    ),
    gaussian=True,
)
PARTICIPATIONS = (
    Participation.single(),
    Participation.separated(1, most=2),
    Participation(separation=2, fixed=True),
)
MEMBERS = [
    LAPLACE,
    GAUSSIAN,
    Member("DiscreteLaplace", discrete_laplace),
    Member(
        "DiscreteLaplace-census", lambda size, _: DiscreteLaplace(1 / size, shift=1, replace=(1, 1))
    ),
    Member("DiscreteGaussian", discrete_gaussian, monotone=False),
    Member("Skellam", skellam),
    Member(
        "RandomizedResponse",
        lambda size, variant: RandomizedResponse(size, categories=chosen(variant, 2, 3, 20)),
    ),
    Member(
        "BlackBox", lambda size, variant: BlackBox(size, delta=chosen(variant, 0.0, 1e-7, 1e-3))
    ),
    Member("GaussianDP", lambda size, _: GaussianDP(size), sampleable=False, gaussian=True),
    Member("MatrixMechanism", matrix, sampleable=False, gaussian=True),
    Member("TreeAggregation", tree, sampleable=False, gaussian=True),
    Member(
        "MatrixMechanism-two-ends",
        two_ended_matrix,
        sampleable=False,
        attained=False,
        gaussian=True,
    ),
    Member(
        "Concentrated", lambda size, _: Concentrated(size**2 / 2), sampleable=False, attained=False
    ),
    Member("RenyiCurve", renyi_curve, replaceable=False, sampleable=False, attained=False),
    Member("Exponential", lambda size, _: Exponential(size), attained=False, examples=1),
    Member(
        "PermuteAndFlip",
        lambda size, variant: PermuteAndFlip(size, monotone=variant % 2 == 1),
        attained=False,
    ),
    Member("NoisyMax", noisy_maximum, attained=False),
    Member(
        "AboveThreshold",
        lambda size, variant: AboveThreshold(size, positives=chosen(variant, 1, 4)),
        attained=False,
    ),
    Member(
        "NoisyArgmax", lambda size, _: NoisyArgmax(2**0.5 / size), attained=False, gaussian=True
    ),
    Member("PrivateSelection", best_of_several, sampleable=False, attained=False, examples=1),
    Member(
        "Staircase",
        lambda size, variant: Staircase(size, gamma=chosen(variant, None, 0.3, 0.8)),
        replaceable=False,
    ),
    Member("UnaryEncoding", unary_encoding),
    Member("ShuffledReports", shuffled_reports, attained=False, examples=1),
    Member("MixtureOfGaussians", mixture_of_gaussians, symmetric=False, replaceable=False),
    Member(
        "TruncatedPoisson",
        capped_batches,
        symmetric=False,
        replaceable=False,
        sampleable=False,
        attained=False,
        examples=1,
    ),
    Member(
        "RandomAllocation",
        allocation,
        symmetric=False,
        replaceable=False,
        sampleable=False,
        examples=1,
    ),
    Member("atoms", lambda size, _: lopsided(size), symmetric=False, replaceable=False),
    Member(
        "profile",
        lambda size, _: from_profile(size),
        symmetric=False,
        replaceable=False,
        attained=False,
        examples=1,
    ),
    Member("Gaussian-sampled", sampled_gaussian, symmetric=False),
    Member("Laplace-sampled", sampled_laplace, symmetric=False, replaceable=False, examples=1),
    Member("RandomizedResponse-sampled", sampled_response, symmetric=False, replaceable=False),
    Member("one-sample", one_sample, symmetric=False, replaceable=False),
    Member(
        "mixture",
        lambda size, variant: Laplace(2 / size) + Gaussian(2 / size) * chosen(variant, 1, 3),
    ),
]


def example(kind: str) -> dict[str, Any]:
    """The arguments, by name, of a mechanism of that class from the table."""
    built = (member.build(0.37, 0) for member in MEMBERS)
    return arguments(next(one for one in built if type(one).__name__ == kind))[1]


# No shrinking: the parameters are readable as they are, and a failing law should fail fast.
FEW = 2
"""How many draws of a member a law makes in a run of the tests."""
DRAWS = int(os.environ.get("DPCOMPOSE_LAW_DRAWS", "0"))
"""How many it makes in the campaign of laws; 0 in a run of the tests."""
SETTINGS = settings(
    derandomize=True, database=None, deadline=None, print_blob=True, phases=[Phase.generate]
)

SIZES = st.floats(-1.3, 0.4).map(lambda exponent: float(f"{10**exponent:.6g}"))
VARIANTS = st.integers(0, 5)
TIMES = st.integers(1, 6)
DELTAS = st.floats(-14.0, -0.5).map(lambda exponent: float(f"{10**exponent:.6g}"))
EPSILONS = st.floats(-3.0, 6.0).map(lambda epsilon: float(f"{epsilon:.6g}"))
RATES = st.floats(0.01, 0.99).map(lambda rate: float(f"{rate:.4g}"))


def cases(condition: Callable[[Member], bool] = lambda member: True) -> list[Any]:
    """Every member with the condition, as a parameter; one with few examples has them because each takes long."""
    return [
        pytest.param(
            one, id=one.name, marks=[pytest.mark.slow] if one.examples < Member.examples else []
        )
        for one in MEMBERS
        if condition(one)
    ]


def members(condition: Callable[[Member], bool] = lambda member: True) -> pytest.MarkDecorator:
    """The test's `member` is every one with the condition."""
    return pytest.mark.parametrize("member", cases(condition))


def every(member: Member, **drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], None]:
    """Run a law at once, on a few draws of the member (`one`) and of whatever else is named."""

    def run(law: Callable[..., None]) -> None:
        built = st.builds(member.build, SIZES, VARIANTS)
        draws = DRAWS or min(member.examples, FEW)
        settings(SETTINGS, max_examples=draws)(given(one=built, **drawn)(law))()

    return run
