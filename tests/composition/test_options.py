"""The options of a question are declared once, shown in every signature, and no other keyword is
accepted.
"""

from __future__ import annotations

import inspect
import math
import pydoc
from collections.abc import Callable
from typing import Any

import pytest

import dpcompose
from dpcompose import Adjacency, Gaussian, Laplace, parallel
from dpcompose.composition import Options, compare
from dpcompose.errors import DomainError, UnsupportedError

ONE = Gaussian(2.0) * 4
CELLS = parallel(Laplace(1.0), Laplace(2.0))
QUESTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "epsilon": (ONE.epsilon, {"delta": 1e-5}),
    "delta": (ONE.delta, {"epsilon": 1.0}),
    "profile": (ONE.profile, {}),
    "loss_above": (ONE.loss_above, {"epsilon": 1.0}),
    "risk": (ONE.risk, {}),
    "compare": (ONE.compare, {"delta": 1e-5}),
    "renyi": (lambda **options: ONE.renyi(2.0, **options), {}),
    "zcdp": (ONE.zcdp, {}),
    "gdp": (ONE.gdp, {}),
    "group": (ONE.group(2).epsilon, {"delta": 1e-5}),
    "a mechanism": (Gaussian(2.0).epsilon, {"delta": 1e-5}),
    "parallel": (CELLS.epsilon, {"delta": 1e-5}),
    "of many": (lambda **options: dpcompose.epsilon([ONE], **options), {"delta": 1e-5}),
    "delta of many": (lambda **options: dpcompose.delta([ONE], **options), {"epsilon": 1.0}),
    "running": (
        lambda **options: dpcompose.composition.running_epsilon(ONE, **options),
        {"delta": 1e-5},
    ),
    "calibrate": (
        lambda **options: dpcompose.calibrate(Gaussian, **options),
        {"epsilon": 1.0, "delta": 1e-5},
    ),
    "compare of the room": (lambda **options: compare(ONE, **options), {"delta": 1e-5}),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_misspelt_option_is_refused(ask: tuple[Callable[..., Any], dict[str, Any]]) -> None:
    function, number = ask
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerence'"):
        function(**number, tolerence=1)


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize(
    "bad",
    [
        {"tolerance": math.nan},
        {"tolerance": 0},
        {"tolerance": 1.0},
        {"orientation": "sideways"},
        {"proof": 1},
    ],
    ids=str,
)
def test_a_bad_option_is_refused(
    ask: tuple[Callable[..., Any], dict[str, Any]], bad: dict[str, Any]
) -> None:
    function, number = ask
    with pytest.raises(DomainError, match=next(iter(bad))):
        function(**number, **bad)


def test_cells_have_an_adjacency_of_their_own() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'adjacency'"):
        CELLS.epsilon(delta=1e-5, adjacency=Adjacency.REPLACE)


@pytest.mark.parametrize(
    "function",
    [
        Gaussian.epsilon,
        ONE.delta,
        ONE.profile,
        ONE.zcdp,
        ONE.group(2).compare,
        dpcompose.epsilon,
        dpcompose.delta,
        dpcompose.calibrate,
        dpcompose.composition.running_epsilon,
    ],
)
def test_the_signature_and_the_help_show_every_option(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    assert parameters["tolerance"].default == 1e-9 and parameters["proof"].default is False
    assert {*Options.__annotations__} <= {*parameters} and "options" not in parameters
    text = pydoc.plain(pydoc.render_doc(function))
    assert "tolerance: 'float' = 1e-09" in text


def test_quantities_without_a_proof_say_so() -> None:
    for function, number in (QUESTIONS[name] for name in ("compare", "renyi", "zcdp", "gdp")):
        with pytest.raises(UnsupportedError, match="is not offered in ball arithmetic"):
            function(**number, proof=True)
