"""Every method of a composition with every bad value raises the documented error, which names the
argument.

The arguments are read from signatures: a new method is tested automatically, and a parameter with a
new name fails until its domain is listed here.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Bound,
    Concentrated,
    DiscreteGaussian,
    DPComposeError,
    Exponential,
    Gaussian,
    Laplace,
    Orientation,
    calibrate,
    compose,
)
from dpcompose.composition import Composable, Composition, Parallel, Profile, compare, parallel
from dpcompose.errors import DomainError, UnreachableError, UnsupportedError
from dpcompose.mechanisms.base import Mechanism

NOT_A_NUMBER: list[Any] = [
    True,
    False,
    "1",
    "",
    None,
    1j,
    [1.0],
    (1.0,),
    {},
    math.nan,
    np.nan,
    object(),
    np.bool_(True),
]
NOT_A_NUMBER += [
    np.array(1.0),
    np.array([1.0, 2.0]),
    b"1",
    Orientation.SAME,
    10**400,
    -(10**400),
    Fraction(10**400),
]
INFINITE: list[Any] = [math.inf, -math.inf, np.inf]
PROBABILITY = [*NOT_A_NUMBER, *INFINITE, -1.0, -5e-324, 1.0000000000000002, 1e300]
ENTRIES: list[Any] = [
    "1",
    "",
    None,
    1j,
    {},
    math.nan,
    object(),
    True,
    [True, 0.5],
    [0.5, math.nan],
    [[0.5, 0.1], [0.5]],
]
ENTRIES += [[0.5, None], ["0.5"], [1j], 10**400, b"1", np.array(["a"]), np.array([True])]
ENDS: list[Any] = [(bad, 1.0) for bad in (0.0, -1.0, math.nan, None, "0.5", True, 1j, -math.inf)]
ENDS += [(1.0, bad) for bad in (math.inf, 10**400, math.nan, None, "2", True)]
BAD: dict[str, list[Any]] = {
    "delta": PROBABILITY,
    "epsilon": NOT_A_NUMBER,
    "order": [*NOT_A_NUMBER, *INFINITE, 1.0, 1, 0.5, 0, -3.0],
    "rate": [*PROBABILITY, 0, 0.0, -0.0],
    "size": [*NOT_A_NUMBER, *INFINITE, 0, -1, 1.0, 0.5, np.float64(2.0), "2", 10**6],
    "times": [*NOT_A_NUMBER, *INFINITE, -1, 1.0, 0.5, np.float64(2.0), "2", 10**16],
    "prior": PROBABILITY,
    "false_positive_rate": [*NOT_A_NUMBER, *INFINITE, -1.0, -5e-324, 1.0000000000000002],
    "adjacency": ["swap", "REPLACE", None, 1, True, Orientation.SAME, math.nan, [Adjacency.REPLACE]],
    "orientation": ["equal", "FREE", None, 0, True, Adjacency.ADD_REMOVE, math.nan],
    "tolerance": [*PROBABILITY, 0, 0.0, 1.0, 1],
    "proof": ["yes", 1, 0, None, 2.0, "", math.nan],
    "masked": ["yes", True, 1, 0, None, math.nan],
    "progress": ["yes", True, 1, 0, print],
    "moves": ["yes", 1, 0, None, 2.0, ""],
    "integer": ["yes", 1, 0, None, 2.0, ""],
    "alpha": [*ENTRIES, -5e-324, 1.0000000000000002, math.inf, [0.5, -1.0]],
    "parameter": ["", "falling", None, 1, True, ["decreasing"]],
    "bracket": [(2.0, 1.0), (1.0, 1.0), (1.0,), (1.0, 2.0, 3.0), "12", 1.0, {1.0, 2.0}, [1.0, 2.0], *ENDS],
    "family": [None, 1.0, "Laplace", Laplace(1.0), *(lambda p, made=made: made for made in (None, 3, "x", Laplace))],
    "composition": [None, 1.0, "x", [], Laplace],
    "item": [None, 1, "x", Laplace, [Laplace(1.0)], (Laplace(1.0), 2), math.nan, True],
}  # fmt: skip
GOOD: dict[str, Any] = {
    "delta": 1e-6,
    "epsilon": 0.5,
    "order": 3.0,
    "rate": 0.5,
    "times": 2,
    "size": 2,
    "alpha": 0.1,
}
GOOD |= {"adjacency": Adjacency.ADD_REMOVE}

ONE, NOTHING = Laplace(1.0), compose()
ASKED: dict[str, Composable] = {
    "mechanism": Laplace(2.0),
    "mixture": Laplace(2.0) + Gaussian(3.0) * 2,
    "asymmetric": Gaussian(1.0).sampled(0.1) * 10,
    "closed": Gaussian(2.0) * 3,
    "lattice": BlackBox(0.5, delta=1e-9) * 4,
    "dominated": Exponential(1.0) * 2,
    "promised": Concentrated(0.1) + DiscreteGaussian(2.0),
    "nothing": compose(),
}
# Operators have their own test: the language decides who is asked first.
METHODS = [
    name
    for name, _ in inspect.getmembers(Composable, inspect.isfunction)
    if not name.startswith("_")
]
QUESTIONS: dict[str, Callable[..., Any]] = {
    f"{label}.{method}": getattr(asked, method)
    for label, asked in ASKED.items()
    for method in METHODS
}
CELLS = parallel(Laplace(2.0), Gaussian(2.0), adjacency=Adjacency.REPLACE)
QUESTIONS |= {
    f"parallel.{name}": getattr(CELLS, name)
    for name, _ in inspect.getmembers(Parallel, inspect.isfunction)
    if not name.startswith("_")
}
CROWD = (Gaussian(2.0) + BlackBox(0.5, delta=1e-9)).group(2)
QUESTIONS |= {
    f"group.{name}": getattr(CROWD, name)
    for name, _ in inspect.getmembers(type(CROWD), inspect.isfunction)
    if not name.startswith("_")
}
CURVE = Laplace(2.0).profile()
QUESTIONS |= {
    f"profile.{name}": getattr(CURVE, name)
    for name, _ in inspect.getmembers(Profile, inspect.isfunction)
    if name == "__call__" or not name.startswith("_")
}
QUESTIONS |= {
    "compare": lambda composition=NOTHING, delta=0.1, **others: compare(
        composition, delta=delta, **others
    ),
    "calibrate": lambda family=Laplace, epsilon=1.0, delta=1e-6, **others: calibrate(
        family, epsilon=epsilon, delta=delta, **others
    ),
    "parallel": lambda item=ONE, **others: parallel(Laplace(1.0), item, **others),
    "compose": lambda item=ONE: compose(Laplace(1.0), item),
}
ATTACKS = ("advantage", "true_positive_rate", "false_positive_rate", "bayes_error", "prior")
FURTHER = {"compare": compare, "calibrate": calibrate, "parallel": parallel}


def parameters(label: str, question: Callable[..., Any]) -> list[str]:
    """The names of the parameters, those that a lambda above passes on included."""
    named = [
        parameter
        for call in (question, FURTHER.get(label, question))
        for parameter in inspect.signature(call).parameters.values()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    return list(dict.fromkeys(parameter.name for parameter in named))


def good(label: str, question: Callable[..., Any]) -> dict[str, Any]:
    needed = inspect.signature(question).parameters.values()
    return {
        each.name: GOOD[each.name]
        for each in needed
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }


def bad(label: str, name: str) -> list[Any]:
    if label.startswith("profile.") and name == "epsilon":
        return ENTRIES
    if label == "calibrate" and name == "epsilon":
        return [*NOT_A_NUMBER, *INFINITE, -1.0, -5e-324]
    if label == "calibrate" and name in ATTACKS:
        return [value for value in BAD["prior"] if value is not None]  # None: another target
    return BAD[name]


EACH = [
    pytest.param(label, name, id=f"{label}-{name}")
    for label, call in QUESTIONS.items()
    for name in parameters(label, call)
]


@pytest.mark.parametrize(("label", "name"), EACH)
def test_a_bad_value_is_refused_by_name(label: str, name: str) -> None:
    question, wrong = QUESTIONS[label], []
    for value in bad(label, name):
        try:
            answer = question(**{**good(label, question), name: value})
        except DomainError as error:
            if name not in str(error) or "expected" not in str(error) or not error.domain:
                wrong.append(
                    f"{value!r:.40}: the message does not name {name} and its domain: {error}"
                )
        except Exception as error:
            wrong.append(f"{value!r:.40}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"{value!r:.40}: answered {answer!r:.60}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("label", QUESTIONS)
def test_the_good_call_is_good(label: str) -> None:
    question = QUESTIONS[label]
    try:
        question(**good(label, question))
    except UnsupportedError:
        asked = ("sampled", "profile", "risk", "loss_above")
        assert label in (*(f"promised.{each}" for each in asked), "dominated.loss_above")


@pytest.mark.parametrize("label", QUESTIONS)
def test_a_call_that_does_not_fit_the_signature(label: str) -> None:
    question = QUESTIONS[label]
    with pytest.raises(TypeError):
        question(**good(label, question), nonsense=1)


@pytest.mark.parametrize("value", BAD["times"], ids=lambda value: f"{value!r:.20}")
@pytest.mark.parametrize(
    "asked", [Laplace(1.0), Laplace(1.0) + Gaussian(1.0), compose()], ids=["one", "two", "nothing"]
)
def test_a_count_is_an_integer(asked: Composable, value: Any) -> None:
    calls: list[Callable[[], Any]] = [lambda: asked * value]
    # An array asks every entry for itself before it asks us.
    calls += [] if isinstance(value, np.ndarray | np.generic) else [lambda: value * asked]
    for call in calls:
        with pytest.raises(DomainError, match="times"):
            call()


def test_counts_that_multiply_beyond_all_bounds() -> None:
    many = Laplace(1.0) * 10**15
    for call in (
        lambda: many * 2,
        lambda: many + Laplace(1.0),
        lambda: compose(many, many),
        lambda: (many + Gaussian(1.0)) * 3,
    ):
        with pytest.raises(DomainError, match="times"):
            call()


@pytest.mark.parametrize("other", [1, None, "x", 0.5, [Laplace(1.0)], math.nan], ids=repr)
def test_only_mechanisms_are_added(other: Any) -> None:
    mixed: list[Any] = [Laplace(1.0), other]
    with pytest.raises(TypeError):
        _ = Laplace(1.0) + other
    with pytest.raises(TypeError):
        _ = other + compose(Laplace(1.0))
    with pytest.raises(TypeError):
        sum(mixed)


def test_no_cell_is_no_parallel() -> None:
    with pytest.raises(DomainError, match="cells"):
        parallel()
    with pytest.raises(UnsupportedError):
        parallel(Laplace(1.0), adjacency=Adjacency.ZERO_OUT)


def test_proof_is_a_proof_or_refused() -> None:
    try:
        bound = Laplace(2.0).epsilon(delta=1e-6, proof=True)
    except DPComposeError as error:
        assert "proof" in str(error)
    else:
        assert bound.lower <= Laplace(2.0).epsilon(delta=1e-6).upper


@pytest.mark.parametrize("kind", [np.float64, np.float32, Fraction])
def test_any_real_number_will_do(kind: Callable[[float], Any]) -> None:
    asked = Laplace(2.0) + Gaussian(3.0)
    assert asked.epsilon(delta=kind(0.25)) == asked.epsilon(delta=0.25)
    assert asked.delta(epsilon=kind(-0.5)) == asked.delta(epsilon=-0.5)
    assert asked.renyi(kind(2.5)) == asked.renyi(2.5)
    assert asked.epsilon(delta=0.25, tolerance=kind(0.125)) == asked.epsilon(
        delta=0.25, tolerance=0.125
    )
    assert asked.sampled(kind(0.5)) == asked.sampled(0.5)
    assert asked.delta(epsilon=1) == asked.delta(epsilon=kind(1)) == asked.delta(epsilon=1.0)


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8])
def test_any_integer_will_do(kind: Callable[[int], Any]) -> None:
    assert Laplace(2.0) * kind(3) == Laplace(2.0) * 3
    assert (Laplace(2.0) * kind(3)).epsilon(delta=1e-6) == (Laplace(2.0) * 3).epsilon(delta=1e-6)


@pytest.mark.parametrize("label", [label for label in ASKED if label != "promised"])
def test_the_ends_of_the_domains(label: str) -> None:
    asked = ASKED[label]
    assert asked.delta(epsilon=-math.inf) == Bound(1.0, 1.0)
    assert asked.epsilon(delta=1) == asked.epsilon(delta=1.0) == Bound(0.0, 0.0)
    last = asked.delta(epsilon=math.inf)
    assert 0 <= last.lower <= last.upper <= 1e-8
    for epsilon in (-1e308, -1e6, -800.0, -50.0, -5e-324, 0.0, 5e-324, 50.0, 800.0, 1e6, 1e308):
        delta = asked.delta(epsilon=epsilon)
        assert -math.expm1(min(epsilon, 0.0)) * (1 - 1e-15) <= delta.upper <= 1
        assert (
            delta.lower >= -math.expm1(min(epsilon, 0.0)) * (1 - 1e-12) - 1e-300
            and delta.upper >= last.lower
        )
    for delta in (5e-324, 1e-300, 1e-30, 0.5, 1 - 1e-9, math.nextafter(1.0, 0.0)):
        assert 0 <= asked.epsilon(delta=delta).lower <= asked.epsilon(delta=0.0).upper


def copies(one: Composable) -> Callable[[Any], Composable]:
    return lambda times: one * times


class TestCalibration:
    def test_what_cannot_be_reached_says_how_far_one_gets(self) -> None:
        with pytest.raises(UnreachableError) as caught:
            calibrate(lambda rate: Laplace(1.0) * 2, epsilon=1.0, delta=0.0, bracket=(0.1, 10.0))
        assert caught.value.target == 1.0 and caught.value.limit == pytest.approx(2.0, rel=1e-9)
        with pytest.raises(UnreachableError):
            calibrate(Laplace, epsilon=0.0, delta=0.0, bracket=(0.1, 1e6))
        with pytest.raises(UnreachableError):
            calibrate(copies(BlackBox(0.1, delta=1e-3)), epsilon=1.0, delta=1e-6,
                      parameter="increasing", integer=True, bracket=(1, 50))  # fmt: skip

    def test_a_target_of_nothing(self) -> None:
        found = calibrate(Laplace, epsilon=0.0, delta=0.5)
        assert found.bound.upper == 0 and Laplace(found.value).delta(epsilon=0.0).upper <= 0.5
        assert Laplace(found.value * (1 - 1e-6)).delta(epsilon=0.0).lower > 0.5

    def test_a_target_that_everything_meets_has_no_extreme_value(self) -> None:
        with pytest.raises(UnreachableError, match=r"every value from 0.1 to 10") as caught:
            calibrate(Laplace, epsilon=1e300, delta=0.0, bracket=(0.1, 10.0))
        assert caught.value.limit == pytest.approx(10.0, rel=1e-9)
        with pytest.raises(UnreachableError, match=r"every value from 1 to 10"):
            calibrate(copies(BlackBox(0.1)), epsilon=99.0, delta=0.0, parameter="increasing", integer=True,
                      bracket=(1, 10))  # fmt: skip
        found = calibrate(lambda rate: Gaussian(10.0).sampled(rate), epsilon=1.0, delta=1e-6)
        assert (found.value, found.neighbor) == (1.0, None)  # beyond it the family has no member

    @pytest.mark.parametrize("declared", ["decreasing", "increasing"])
    @pytest.mark.parametrize("epsilon", [1.0, 10.0])
    def test_the_direction_is_found_whatever_was_declared(
        self, declared: str, epsilon: float
    ) -> None:
        sigma = calibrate(Gaussian, epsilon=epsilon, delta=1e-6, parameter=declared)
        assert sigma.bound.upper == pytest.approx(epsilon, rel=1e-6) and sigma.neighbor is not None
        times = calibrate(
            copies(Laplace(10.0)), epsilon=epsilon, delta=0.0, parameter=declared, integer=True
        )
        assert times.value == 10 * epsilon
        if (declared, epsilon) == ("increasing", 1.0):
            return  # the same search as from "decreasing", which takes seconds
        rate = calibrate(lambda q: Gaussian(0.5).sampled(q) * 40, epsilon=epsilon, delta=1e-6, parameter=declared,
                         bracket=(1e-12, 1.0))  # fmt: skip
        assert 1e-5 < rate.value < 1 and rate.bound.upper == pytest.approx(epsilon, rel=1e-6)

    def test_what_releases_nothing_is_not_found(self) -> None:
        for declared in ("increasing", "decreasing"):
            with pytest.raises(UnreachableError, match="only the end, 0, meets it") as caught:
                calibrate(
                    copies(Gaussian(0.1)), epsilon=1.0, delta=1e-6, parameter=declared, integer=True
                )
            assert caught.value.limit == pytest.approx(96.71727, rel=1e-6)
        with pytest.raises(UnreachableError, match="Ask for a larger epsilon or delta"):
            calibrate(
                lambda q: Laplace(1.0).sampled(q) + BlackBox(1.0),
                epsilon=1.0,
                delta=0.0,
                bracket=(1e-12, 1.0),
            )

    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(1e-3, 1e-9), (1.0, 1e-5), (50.0, 1e-12), (1.0, 0.3)]
    )
    def test_the_default_range_holds_what_a_family_can_be(
        self, epsilon: float, delta: float
    ) -> None:
        for family in (Laplace, Gaussian):
            found = calibrate(family, epsilon=epsilon, delta=delta)
            assert found.bound.upper <= epsilon
            assert found.neighbor is not None and found.neighbor.upper > epsilon
            assert found.bound.upper == pytest.approx(epsilon, rel=1e-6)


def test_a_part_that_states_nothing_is_refused() -> None:
    """Neither a loss nor a Renyi curve: it must not be added up as if it cost nothing."""

    class Silent(Mechanism):
        def laws(self, adjacency: Adjacency) -> None:
            return None

        @property
        def label(self) -> str:
            return "silent"

    for ask in (
        lambda c: c.epsilon(delta=1e-5),
        lambda c: c.delta(epsilon=1.0),
        lambda c: c.renyi(2.0),
    ):
        with pytest.raises(
            UnsupportedError, match=r"silent.*neither a privacy loss nor a Renyi curve"
        ):
            ask(compose(Silent(), Gaussian(1.0)))


def test_a_mechanism_without_losses_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Mechanism()  # type: ignore[abstract]


@pytest.mark.parametrize(
    "parts",
    [
        ((Gaussian(1.0), 10), (Laplace(1.0), -1)),
        *(
            ((Laplace(1.0), count),)
            for count in (-1, 0, math.nan, math.inf, 1.5, True, "2", None, 10**15 + 1)
        ),
        ((Gaussian(1.0), 1), (Gaussian(1.0), 2)),
        (("Laplace(1.0)", 1),),
        ((Gaussian(1.0) * 2, 1),),
        (Gaussian(1.0), Laplace(1.0)),
        ((Gaussian(1.0),),),
        None,
        5,
    ],
)
def test_the_constructor_drops_nothing(parts: Any) -> None:
    """What `compose` refuses is refused; what it would join or leave out is not taken in silence."""
    with pytest.raises(DomainError, match=r"Build it with compose|an integer"):
        Composition(parts)


def test_the_constructor_takes_what_compose_makes() -> None:
    made = compose(Gaussian(1.0) * 2, Laplace(1.0))
    assert (
        Composition(made.parts)
        == made
        == Composition(((Gaussian(1.0), cast("int", np.int64(2))), (Laplace(1.0), 1)))
    )
