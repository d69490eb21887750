"""Golden values of divergences to 12 digits, computed here from the definitions for the
distributions in golden.json.
"""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpcompose.divergence import (
    Density,
    Distribution,
    Exact,
    extreme_pair,
    hockey_stick,
    kl,
    one_sided_witness,
    renyi,
    symmetric_witness,
    total_variation,
)
from dpcompose.values.bound import Bound

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]
Pair = tuple[dict[Any, Fraction], dict[Any, Fraction]]


def rows(name: str) -> list[Any]:
    found = [row for row in GOLDEN if row["name"] == name]
    assert found, name
    return [
        pytest.param(row["params"], row["expected"], id=f"{name}-{i}")
        for i, row in enumerate(found)
    ]


def agree(bound: Bound, expected: str) -> bool:
    """Within 12 digits, and two-sided: the golden value lies between the ends (widened by its own last digit)."""
    value = Fraction(expected)
    slack = abs(value) * Fraction(1, 10**28)
    return bound.lower - slack <= value <= bound.upper + slack and bound.width <= 1e-12 * float(
        value
    )


def four_points(epsilon: str, delta: str) -> Pair:
    """The dominating pair of (epsilon, delta)-differential privacy."""
    y, z = extreme_pair(epsilon=Decimal(epsilon))
    rest = 1 - Fraction(delta)
    left, right = ({x: rest * mass for x, mass in side.items()} for side in (y, z))
    return left | {"only left": 1 - rest}, right | {"only right": 1 - rest}


def joint(pairs: list[Pair]) -> Pair:
    """Independent answers of several mechanisms."""

    def side(index: int) -> dict[Any, Fraction]:
        combined: dict[Any, Fraction] = {}
        for choice in itertools.product(*(pair[index].items() for pair in pairs)):
            combined[tuple(x for x, _ in choice)] = math.prod(
                (mass for _, mass in choice), start=Fraction(1)
            )
        return combined

    return side(0), side(1)


@pytest.mark.parametrize(("params", "expected"), rows("mv_delta_pure") + rows("mv_delta"))
def test_five_mechanisms(params: dict[str, Any], expected: str) -> None:
    deltas = params.get("delta", ["0"] * len(params["eps"]))
    y, z = joint([four_points(e, d) for e, d in zip(params["eps"], deltas, strict=True)])
    assert agree(hockey_stick(y, z, epsilon=Decimal(params["eps_g"])), expected)
    assert agree(hockey_stick(z, y, epsilon=Decimal(params["eps_g"])), expected)


@pytest.mark.parametrize(("params", "expected"), rows("kov_delta"))
def test_many_equal_mechanisms(params: dict[str, Any], expected: str) -> None:
    k, q = params["k"], 1 / (1 + extreme_ratio(params["eps"]))
    rest = (1 - Fraction(params["delta"])) ** k
    ups = {j: rest * math.comb(k, j) * (1 - q) ** j * q ** (k - j) for j in range(k + 1)}
    downs = {j: ups[k - j] for j in range(k + 1)}
    y, z = ups | {"only left": 1 - rest}, downs | {"only right": 1 - rest}
    assert agree(hockey_stick(y, z, epsilon=Decimal(params["eps_g"])), expected)


def extreme_ratio(epsilon: str) -> Fraction:
    y, z = extreme_pair(epsilon=Decimal(epsilon))
    return y[0] / z[0]


@pytest.mark.parametrize(("params", "expected"), rows("krr_delta"))
def test_randomized_response_with_many_categories(params: dict[str, Any], expected: str) -> None:
    a, k = extreme_ratio(params["eps"]), params["k"]
    y, z = ([(a if i == answer else 1) / (a + k - 1) for i in range(k)] for answer in (0, 1))
    assert agree(hockey_stick(y, z, epsilon=Decimal(params["eps_g"])), expected)


@pytest.mark.parametrize(("params", "expected"), rows("kl_tight_pure"))
def test_the_tight_form_of_lemma_3_18(params: dict[str, Any], expected: str) -> None:
    assert agree(kl(*extreme_pair(epsilon=Decimal(params["eps"]))), expected)


@pytest.mark.parametrize(("params", "expected"), rows("rdp_rr"))
def test_renyi_of_randomized_response(params: dict[str, Any], expected: str) -> None:
    assert agree(
        renyi(*extreme_pair(epsilon=Decimal(params["eps"])), order=Decimal(params["alpha"])),
        expected,
    )


def lemma_3_17(params: dict[str, Any]) -> tuple[list[Decimal], list[Decimal], Decimal]:
    return (
        [Decimal(y) for y in params["Y"]],
        [Decimal(z) for z in params["Z"]],
        Decimal(params["eps"]),
    )


def agree_entrywise(witness: Distribution, expected: list[str]) -> bool:
    return all(agree(Exact.of(witness[x]), value) for x, value in enumerate(expected))


@pytest.mark.parametrize(("params", "expected"), rows("lemma317_2_hs_ZY"))
def test_hockey_stick(params: dict[str, Any], expected: str) -> None:
    y, z, epsilon = lemma_3_17(params)
    assert agree(hockey_stick(z, y, epsilon=epsilon), expected)


@pytest.mark.parametrize(("params", "expected"), rows("lemma317_1_tv"))
def test_distance_of_the_one_sided_witness(params: dict[str, Any], expected: str) -> None:
    y, z, epsilon = lemma_3_17(params)
    assert agree(Exact.of(one_sided_witness(y, z, epsilon=epsilon).distance), expected)
    assert agree(total_variation(y, one_sided_witness(y, z, epsilon=epsilon).nearby), expected)


@pytest.mark.parametrize(("params", "expected"), rows("lemma317_1_witness"))
def test_one_sided_witness(params: dict[str, Any], expected: list[str]) -> None:
    y, z, epsilon = lemma_3_17(params)
    assert agree_entrywise(one_sided_witness(y, z, epsilon=epsilon).nearby, expected)


@pytest.mark.parametrize(("params", "expected"), rows("lemma317_2_witness_Y"))
def test_symmetric_witness(params: dict[str, Any], expected: list[str]) -> None:
    y, z, epsilon = lemma_3_17(params)
    witness = symmetric_witness(y, z, epsilon=epsilon)
    assert agree_entrywise(witness.nearby_first, expected)
    # Z' mirrors Y' where the two were too far apart.
    assert agree_entrywise(
        witness.nearby_second,
        ["0.388770334399072717680549717127", "0.3", "0.311229665600927282319450282873"],
    )
    assert agree(Exact.of(witness.distance), "0.088770334399072717680549717127")


@pytest.mark.parametrize(("params", "expected"), rows("gaussian_delta"))
def test_gaussian_densities(params: dict[str, Any], expected: str) -> None:
    mean = float(params["mu"])
    y = Density(lambda x: -((x - mean) ** 2) / 2 - math.log(2 * math.pi) / 2, breakpoints=(mean,))
    z = Density(lambda x: -(x**2) / 2 - math.log(2 * math.pi) / 2)
    assert hockey_stick(y, z, epsilon=float(params["eps"])).value == pytest.approx(
        float(expected), rel=1e-12
    )
