"""Every mechanism with every bad value raises the documented error, which names the parameter and
its domain.

Calls are read from signatures. The domain of a parameter follows from its name, or for a new name
from its declared role, so a new mechanism is tested automatically once it is in the table of the
laws.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcompose
from dpcompose import Adjacency, Orientation
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.guarantee import gaussian
from dpcompose.mechanisms import DominatingPair, Participation, arguments_of, kinds
from tests.laws.members import example

NO_NUMBER: list[Any] = [
    True,
    False,
    "1",
    "",
    1j,
    {},
    math.nan,
    object(),
    np.nan,
    np.bool_(True),
    np.array(1.0),
    b"1",
    Orientation.SAME,
]
NOT_A_NUMBER: list[Any] = [*NO_NUMBER, None, [1.0], (1.0,), np.array([1.0, 2.0])]
HUGE: list[Any] = [10**400, -(10**400), Fraction(10**400), math.inf, -math.inf, np.inf]
NONNEGATIVE = [*NOT_A_NUMBER, *HUGE, -1, -1.0, -5e-324, np.float64(-2.0)]
OPTIONAL_POSITIVE = [
    *NO_NUMBER,
    [1.0],
    *HUGE,
    0,
    0.0,
    -0.0,
    -1,
    -1.0,
    -5e-324,
    1e300,
    5e-324,
    np.float64(-2.0),
]
PROBABILITY = [*NOT_A_NUMBER, *HUGE, -1, -5e-324, 1.0000000000000002, 2, 1e300]
OPTIONAL_CHANGE = [*NO_NUMBER, *HUGE, 0, 1.0, 1.5, "2", np.float64(2.0), 10**6, 1e300]
OPTIONAL_CHANGE += [
    (),
    (0,),
    (0, 0),
    (1, 2.0),
    (1, True),
    (1, None),
    ((1,),),
    [10**400],
    {1: 1},
    "11",
    [1.0],
    np.array([1.0]),
]
ADJACENCY: list[Any] = [
    "replace",
    "REPLACE",
    None,
    1,
    True,
    Orientation.SAME,
    math.nan,
    [Adjacency.REPLACE],
]
NO_CURVE: list[Any] = [None, 1.0, "x", True, math.nan]
NO_DELTA: list[Any] = [None, "0.5", math.nan, 2.0, -1.0, 1j, True, 0.0]
NO_MASSES: list[Any] = [
    None,
    1.0,
    "ab",
    [],
    {},
    [0.5],
    [1.5, -0.5],
    {"a": 0.5, "b": 0.4},
    [[0.5, 0.5]],
    [0.25, 0.25, 0.5],
]

# The domain of a parameter goes by its name.
BAD: dict[str, list[Any]] = {
    "scale": [*OPTIONAL_POSITIVE, None],
    "sigma": [*OPTIONAL_POSITIVE, None],
    "sensitivity": [*OPTIONAL_POSITIVE, None],
    "replace_sensitivity": OPTIONAL_POSITIVE,
    "shift": [*OPTIONAL_CHANGE, None],
    "replace": OPTIONAL_CHANGE,
    "epsilon": [*NONNEGATIVE, 1e300],
    "rho": NONNEGATIVE,
    "mu": [*NONNEGATIVE, 1e300, 5e-324],
    "delta": PROBABILITY,
    "categories": [*NOT_A_NUMBER, *HUGE, 0, 1, -3, 2.0, np.float64(2.0), "2"],
    "base": [
        *NO_CURVE,
        5,
        [],
        "Gaussian(1.0)",
        dpcompose.Gaussian,
        dpcompose.compose(),
        [dpcompose.Gaussian(1.0)],
    ],
    "tries": [*OPTIONAL_POSITIVE, None, 1e-10, 1.1e6],
    "shape": [*NO_NUMBER, None, -1, -5e-324, -math.inf, 101.0, 10**400, [1.0]],
    "noise": [None, 1.0, True, "", "gaussian", "Laplace", b"laplace", ["laplace"], math.nan],
    "monotone": [None, 0, 1, 1.0, "true", math.nan, np.bool_(True), [True]],
    "positives": [*NOT_A_NUMBER, *HUGE, 0, -3, 2.0, np.float64(2.0), 10**9 + 1],
    "variance": [*OPTIONAL_POSITIVE, None, 9e-4, 1.1e6],
    "gamma": [*NO_NUMBER, *HUGE, [0.5], -1, -5e-324, 1.0000000000000002, 2],
    "keep": [*PROBABILITY, 0, 0.0, 1, 1.0],
    "flip": [*PROBABILITY, 0, 0.0, 1, 1.0],
    "reports": [*NOT_A_NUMBER, *HUGE, 0, -3, 2.0, np.float64(2.0), 10**9 + 1],
    "holds_under": ADJACENCY,
    "adjacency": ADJACENCY,
    "error": PROBABILITY,
    "profile": [*NO_CURVE, *(lambda epsilon, value=value: value for value in NO_DELTA)],
    "upper": [
        *NO_MASSES,
        *([0.5, bad] for bad in ("0.5", None, True, 0.5j, math.nan, math.inf, 10**400, 0.6, -0.5)),
    ],
}
BAD["lower"] = BAD["upper"]
BAD["strategy"] = [
    *(bad for bad in NOT_A_NUMBER if not isinstance(bad, np.ndarray)),
    *([[bad]] for bad in (0.0, "1", True, None, math.nan, math.inf, 10**400, 1e200, 1j, [1.0])),
    [],
    [[]],
    [1.0, 2.0],
    [[1.0], [1.0, 1.0]],
    [[1.0, 0.0]],
    [[1.0, 0.5], [0.0, 1.0]],
    [[1.0, 0.0], [1.0, 0.0]],
]
BAD["steps"] = [*NOT_A_NUMBER, *HUGE, 0, -3, 2.0, "2", 10**7]
BAD["selected"] = [*NOT_A_NUMBER, *HUGE, 0, -3, 2.0, "2", 3]
BAD["records"] = [*NOT_A_NUMBER, *HUGE, 0, -3, 2.0, "2", 1]
BAD["batch"] = [*NOT_A_NUMBER, *HUGE, 0, -3, 2.0, "2", 11]
BAD["shifts"] = [
    *(bad for bad in NOT_A_NUMBER if not isinstance(bad, np.ndarray)),
    *([0.0, bad, 2.0] for bad in ("1", None, 0.5j, math.nan, math.inf, -1.0, 10**400, 1e12, [1.0])),
    [],
    [1.0, 2.0],
    "012",
    {0.0: 1, 1.0: 1, 2.0: 1},
]
BAD["weights"] = [
    *(bad for bad in NOT_A_NUMBER if not isinstance(bad, np.ndarray)),
    *(
        [0.5, bad, 0.25]
        for bad in ("0.25", None, 0.5j, math.nan, math.inf, -0.25, 0.2500001, 10**400, [0.25])
    ),
    [],
    [0.5, 0.5],
    [0.5, 0.75, -0.25],
]
BAD["rate"] = [*PROBABILITY, 0, 0.0]
BAD["restart"] = [*NO_NUMBER, *HUGE, 0, -3, 2.0, [2]]
BAD["curve"] = [*NO_CURVE, [], (), {}, {2.0: 0.1}, b"x", [math.nan], [True], [0.1, "x"], [[0.1]]]
BAD["curve"] += [
    lambda order, value=value: value for value in (-1.0, math.nan, None, "x", math.inf, 1j)
]
BAD["curve"] += [lambda order: 1 / order]
BAD["orders"] = [*NOT_A_NUMBER, [2.0], [], (3, 2), [1.0]]
BAD["orders"].remove(None)
BAD["participation"] = [
    *NOT_A_NUMBER,
    *HUGE,
    1,
    "single",
    {"most": 1},
    Participation(separation=2, most=3, fixed=True),
]

# Of a parameter with a new name, by its role: what no parameter of that role accepts.
BAD_OF_ROLE: dict[str, list[Any]] = {
    **dict.fromkeys(("noise", "sensitivity"), OPTIONAL_POSITIVE),
    "rate": PROBABILITY,
    "amount": NONNEGATIVE,
    "number": [math.nan, "1", 1j, b"1", object()],
    "count": [*NO_NUMBER, *HUGE, -3, 2.5],
    "flag": BAD["monotone"],
    "text": [1.0, True, object(), math.nan],
    "change": OPTIONAL_CHANGE,
    "numbers": [1.0, True, object(), "x", math.nan],
    "rows": BAD["strategy"],
    "participation": BAD["participation"],
    "adjacency": ADJACENCY,
    "mechanism": BAD["base"],
}

# What makes a good call, where the parameters have no default.
GOOD: dict[str, Any] = {
    "scale": 2.0,
    "sigma": 2.0,
    "epsilon": 0.5,
    "rho": 0.5,
    "mu": 0.5,
    "base": dpcompose.Gaussian(1.0),
    "tries": 10.0,
    "noise": "laplace",
    "variance": 4.0,
    "keep": 0.75,
    "flip": 0.25,
    "reports": 10,
    "upper": [0.75, 0.25],
    "lower": [0.25, 0.75],
    "strategy": [[1.0, 0.0], [0.5, 1.0]],
    "participation": Participation.single(),
    "steps": 2,
    "records": 10,
    "batch": 2,
    "curve": lambda order: 0.1 * order,
    "holds_under": Adjacency.ADD_REMOVE,
    "shifts": [0.0, 1.0, 2.0],
    "weights": [0.5, 0.25, 0.25],
    "rate": 0.25,
}
GOOD |= {
    "profile": lambda epsilon: gaussian.gaussian_profile(epsilon, mu=1.0).upper,
    "error": 1e-9,
    "adjacency": Adjacency.ADD_REMOVE,
}

CALLS: dict[str, Callable[..., Any]] = {
    **kinds(),
    "DominatingPair.atoms": DominatingPair.atoms,
    "DominatingPair.from_profile": DominatingPair.from_profile,
}


def parameters(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(call).parameters)


def good(call: Callable[..., Any]) -> dict[str, Any]:
    required = [
        name for name, parameter in parameters(call).items() if parameter.default is parameter.empty
    ]
    if not all(name in GOOD for name in required):
        return example(call.__name__)
    return {name: GOOD[name] for name in required}


EACH = [
    pytest.param(call, name, id=f"{label}-{name}")
    for label, call in CALLS.items()
    for name in parameters(call)
]


@pytest.mark.parametrize(("call", "name"), EACH)
def test_a_bad_value_is_refused_by_name(call: Callable[..., Any], name: str) -> None:
    wrong: list[str] = []
    for value in BAD[name] if name in BAD else BAD_OF_ROLE[arguments_of(call)[name].parameter.role]:
        try:
            made = call(**{**good(call), name: value})
        except DomainError as error:
            if name not in str(error) or "expected" not in str(error) or not error.domain:
                wrong.append(
                    f"{value!r:.40}: the message does not name {name} and its domain: {error}"
                )
        except Exception as error:
            wrong.append(f"{value!r:.40}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"{value!r:.40}: accepted as {made!r:.60}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("call", [pytest.param(call, id=label) for label, call in CALLS.items()])
def test_the_good_call_is_good(call: Callable[..., Any]) -> None:
    assert isinstance(call(**good(call)), Composable)


@pytest.mark.parametrize("call", [pytest.param(call, id=label) for label, call in CALLS.items()])
def test_a_call_that_does_not_fit_the_signature(call: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        call(**good(call), nonsense=1)
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(
    "call", [pytest.param(call, id=label) for label, call in CALLS.items() if "." not in label]
)
def test_numbers_after_the_first_are_named(call: Callable[..., Any]) -> None:
    first, *others = parameters(call).values()
    assert all(other.kind is other.KEYWORD_ONLY for other in others)
    with pytest.raises(TypeError):
        call(good(call).get(first.name), 1)


NUMBERS = [
    pytest.param(call, name, id=f"{label}-{name}") for label, call in CALLS.items() for name in parameters(call)
    if name in ("scale", "sigma", "sensitivity", "replace_sensitivity", "epsilon", "rho", "mu", "delta", "error")
]  # fmt: skip


@pytest.mark.parametrize(("call", "name"), NUMBERS)
def test_any_real_number_will_do(call: Callable[..., Any], name: str) -> None:
    plain = call(**{**good(call), name: 0.5})
    for same in (np.float64(0.5), np.float32(0.5), Fraction(1, 2), np.float16(0.5)):
        assert call(**{**good(call), name: same}) == plain
    whole = call(**{**good(call), name: 1.0})
    if name != "error":
        for same in (1, np.int64(1), np.uint8(1), Fraction(1)):
            assert call(**{**good(call), name: same}) == whole


def test_any_integer_will_do() -> None:
    kinds: list[Any] = [int, np.int64, np.uint8, np.int16]
    for kind in kinds:
        assert dpcompose.RandomizedResponse(
            1.0, categories=kind(3)
        ) == dpcompose.RandomizedResponse(1.0, categories=3)
        assert dpcompose.DiscreteLaplace(1.0, shift=kind(3)) == dpcompose.DiscreteLaplace(
            1.0, shift=3
        )
        assert dpcompose.DiscreteGaussian(1.0, replace=(kind(1), 2)) == dpcompose.DiscreteGaussian(
            1.0, replace=(1, 2)
        )
    several: Any = [1, 0, -2]
    assert dpcompose.DiscreteLaplace(1.0, shift=several) == dpcompose.DiscreteLaplace(
        1.0, shift=(1, -2)
    )


@pytest.mark.parametrize("call", [dpcompose.Laplace, dpcompose.Gaussian])
def test_replacing_changes_at_most_twice_what_removing_does(call: Callable[..., Any]) -> None:
    assert call(1.0, sensitivity=2.0, replace_sensitivity=4.0)
    with pytest.raises(DomainError, match="replace_sensitivity"):
        call(1.0, sensitivity=2.0, replace_sensitivity=4.000001)


def test_a_zero_that_is_allowed() -> None:
    for block in (
        dpcompose.BlackBox(0.0),
        dpcompose.RandomizedResponse(0),
        dpcompose.Exponential(0.0),
        dpcompose.GaussianDP(0),
    ):
        for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE):
            assert block.epsilon(delta=0.0, adjacency=adjacency).contains(0.0)
            assert block.epsilon(delta=0.0, adjacency=adjacency).upper < 1e-300
            assert block.delta(epsilon=0.0, adjacency=adjacency).upper < 1e-15
    assert dpcompose.Concentrated(0).epsilon(delta=0.0) == dpcompose.Bound(0.0, 0.0)
    assert dpcompose.BlackBox(0.0, delta=1.0).epsilon(delta=0.5) == dpcompose.Bound(
        math.inf, math.inf
    )
    assert dpcompose.Concentrated(1.0, delta=1.0).epsilon(delta=0.5).upper == math.inf
