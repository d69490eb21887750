"""Everything that follows from a mechanism's declared parameters: text, plan, event, JSON,
conservative readings and errors.
"""

from __future__ import annotations

import inspect
import json
import math
from typing import Any

import pytest

from dpcompose import Adjacency, compose
from dpcompose.composition import ComposablePart
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.interop.dp_accounting import from_dp_event, to_named_tuple
from dpcompose.interop.event_tree import event_from_document, event_to_json
from dpcompose.interop.imported import plan_of
from dpcompose.mechanisms import arguments, arguments_of, kinds, parse, serialize
from dpcompose.plan import Plan
from dpcompose.values import exact
from tests.mechanisms.declared import FIXTURE, documents, errors, parts

BEFORE = json.loads(FIXTURE.read_text())
PARTS = list({repr(one): one for one in parts()}.values())
EACH = pytest.mark.parametrize("one", [pytest.param(one, id=repr(one)[:60]) for one in PARTS])
KIND = {type(one).__name__: one for one in reversed(PARTS) if type(one).__name__ in kinds()}


def test_every_mechanism_has_an_entry() -> None:
    assert KIND.keys() == kinds().keys()


@EACH
def test_documents_are_as_before(one: ComposablePart) -> None:
    """Texts, plans, events and conservative readings, those of new mechanisms excepted."""
    if repr(one) in BEFORE["documents"]:
        assert documents(one) == BEFORE["documents"][repr(one)]


@pytest.mark.parametrize("kind", sorted(BEFORE["errors"]))
def test_errors_are_as_before(kind: str) -> None:
    assert errors(KIND[kind]) == BEFORE["errors"][kind]


@EACH
def test_text_and_plan_are_read_back(one: ComposablePart) -> None:
    text = serialize(one)
    if text is not None:
        assert compose(parse(text)) == compose(one)
    try:
        plan = plan_of(one, adjacency=Adjacency.ADD_REMOVE)
    except UnsupportedError:
        assert text is None  # it is given by a function
        return
    read = Plan.parse(plan.toml())
    assert read.toml() == plan.toml() and read.composition() == compose(one)


@EACH
@pytest.mark.parametrize("adjacency", Adjacency)
def test_an_event_is_read_back_and_costs_no_less(one: ComposablePart, adjacency: Adjacency) -> None:
    try:
        event = to_named_tuple(one, adjacency=adjacency)
    except UnsupportedError:
        return
    text = event_to_json(event)
    assert event_to_json(event_from_document(json.loads(text))) == text
    try:
        read = from_dp_event(event, adjacency=adjacency)
    except UnsupportedError:
        return  # it is written, but has no sound statement where it is read
    if read != compose(one):
        for typed, again in zip(
            prices(compose(one), adjacency), prices(read, adjacency), strict=True
        ):
            assert typed <= again


def prices(composition: Any, adjacency: Adjacency) -> list[float]:
    """The largest loss, if the parts know it: it takes no search."""
    largest = composition.pure(adjacency=adjacency)
    return [] if largest is None else [largest]


@pytest.mark.parametrize("kind", sorted(KIND))
def test_a_conservative_reading_is_on_its_side(kind: str) -> None:
    """Every number that has one: no less than its double and its decimal, or no more."""
    one = KIND[kind]
    read = one.costlier()
    for name, argument in arguments_of(type(one)).items():
        before, after = argument.value(one), argument.value(read)
        if not isinstance(before, float) or not math.isfinite(before):
            continue
        if read is one or argument.parameter.reading is None:
            assert after == before, name
        elif argument.parameter.reading == "larger":
            assert min(exact(before), argument.parameter.most) <= exact(after), name
        else:
            assert exact(after) <= exact(before), name


@pytest.mark.parametrize("kind", sorted(KIND))
def test_every_argument_has_a_domain(kind: str) -> None:
    """No argument takes an object of a class that nobody knows, and the error names the argument."""
    one = KIND[kind]
    values = arguments(one)[1]
    for name in inspect.signature(kinds()[kind]).parameters:
        with pytest.raises(DomainError, match=name):
            kinds()[kind](**{**values, name: object()})
