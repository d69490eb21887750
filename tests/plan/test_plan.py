"""Plan files: reading returns what was written, and every mistake is reported with its location."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import dpcompose
from dpcompose import Adjacency
from dpcompose.errors import DomainError, PlanError
from dpcompose.mechanisms import kinds
from dpcompose.plan import Plan, PlanEntry, PlanQuestion
from dpcompose.plan.schema import COMMON, FORMS, MECHANISMS, dashed
from tests.laws.members import example

GOOD = """delta = 1e-8
adjacency = "add-remove"
[[mechanism]]
kind = "gaussian"
sigma = 1.0
rate = 0.005
times = 1000
name = "training"
[[mechanism]]
kind = "laplace"
scale = 2.0
"""


class Toml(str):
    """A value as it stands in a file."""

    def __repr__(self) -> str:
        return str(self)


SAMPLES = {
    "scale": st.floats(0.1, 100),
    "sigma": st.floats(0.1, 100),
    "sensitivity": st.floats(0.1, 4),
    "epsilon": st.floats(0, 5),
    "delta": st.floats(0, 1e-3),
    "rho": st.floats(0, 2),
    "mu": st.floats(0.01, 3),
    "shift": st.one_of(st.integers(1, 4), st.lists(st.integers(1, 3), min_size=1, max_size=3)),
    "replace": st.lists(st.integers(1, 3), min_size=1, max_size=3),
    "categories": st.integers(2, 20),
    "noise": st.sampled_from(["laplace", "exponential", "gumbel"]),
    "positives": st.integers(1, 20),
    "variance": st.floats(0.1, 100),
    "gamma": st.floats(0, 1),
    "keep": st.floats(0.5, 0.99),
    "flip": st.floats(0.01, 0.49),
    "reports": st.integers(1, 1000),
    "curve": st.floats(0, 2).map(lambda value: [value, 2 * value]),
    "orders": st.floats(1.1, 5).map(lambda order: [order, 2 * order]),
    "base": st.sampled_from(
        [
            Toml('{ kind = "gaussian", sigma = 4.0 }'),
            Toml('{ kind = "laplace", scale = 2.0, times = 3 }'),
        ]
    ),
    "parts": st.sampled_from(
        [
            Toml('[{ kind = "gaussian", sigma = 4.0 }]'),
            Toml('[{ kind = "laplace", scale = 2.0, times = 3 }]'),
        ]
    ),
    "upper": st.just([0.75, 0.25]),
    "lower": st.just([0.25, 0.75]),
    "xi": st.floats(0, 1),
    "tries": st.floats(1, 100),
    "shape": st.floats(0, 3),
    "records": st.integers(20, 100),
    "batch": st.integers(1, 20),
    "steps": st.integers(1, 20),
    "selected": st.just(1),
    "restart": st.integers(1, 25),
    "shifts": st.lists(st.floats(0, 5), min_size=2, max_size=2),
    "weights": st.sampled_from([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]),
    "rate": st.floats(0.01, 1),
    "strategy": st.sampled_from([[[1.0]], [[1.0, 0.0], [0.25, 1.0]]]),
    "participation": st.sampled_from(
        [Toml("{ most = 1 }"), Toml("{ strictly_between = 0, most = 2 }")]
    ),
    "holds_under": st.sampled_from([each.value for each in Adjacency]),
}

FORM_OF = dict.fromkeys(("noise", "sensitivity", "rate", "amount"), "number")


@st.composite
def tables(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(sorted(MECHANISMS)))
    lines = [f'kind = "{kind}"']
    required = {name for name, key in MECHANISMS[kind].parameters.items() if key.required}
    if not required <= SAMPLES.keys():
        values = example(MECHANISMS[kind].build.__name__).items()
        lines += [f"{name} = {FORMS[name].write(value)}" for name, value in values]
        return "[[mechanism]]\n" + "\n".join(lines) + "\n"
    for name in MECHANISMS[kind].parameters:
        if name in SAMPLES:
            value = draw(SAMPLES[name])
            lines.append(f'{name} = "{value}"' if type(value) is str else f"{name} = {value!r}")
    if draw(st.booleans()):
        lines.append(f"times = {draw(st.integers(1, 10**9))}")
    return "[[mechanism]]\n" + "\n".join(lines) + "\n"


@settings(max_examples=60, deadline=None)
@given(st.lists(tables(), min_size=1, max_size=4))
def test_round_trip(mechanisms: list[str]) -> None:
    plan = Plan.parse("epsilon = 1.5\n" + "\n".join(mechanisms))
    assert Plan.parse(plan.toml()) == plan


def test_every_constructor_parameter_is_a_key() -> None:
    for kind in MECHANISMS.values():
        assert [*kind.parameters] == [*inspect.signature(kind.build).parameters], kind.name
    roles = {name: {COMMON[name].role} for name in COMMON}
    for kind in MECHANISMS.values():
        for name, key in kind.parameters.items():
            roles.setdefault(name, set()).add(key.role)
    # A key is read by its name: whatever has it reads the same form.
    forms_of: dict[Any, Any] = dict(FORM_OF)
    read = {name: {forms_of.get(role, role) for role in given} for name, given in roles.items()}
    assert {name for name, forms in read.items() if len(forms) > 1} == set()
    assert read.keys() == FORMS.keys()
    of_parts = {"composition", "dominating-pair", "renyi-line"}
    assert MECHANISMS.keys() - of_parts == {dashed(name) for name in kinds()}


def test_what_is_read() -> None:
    plan = Plan.parse(GOOD)
    assert plan.entries[0].name == "training"
    assert plan.composition() == dpcompose.Gaussian(1.0).sampled(0.005) * 1000 + dpcompose.Laplace(
        2.0
    )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("sigma = 1.0", "sigma = -1.0", ["sigma", "-1.0", "> 0"]),
        ("sigma = 1.0", "sigma = nan", ["sigma", "nan"]),
        ("sigma = 1.0", 'sigma = "one"', ["sigma", "'one'", "number"]),
        ("sigma = 1.0", "sigm = 1.0", ["sigm", "sigma"]),
        ("sigma = 1.0\n", "", ["sigma"]),
        ("times = 1000", "times = 1.5", ["times", "1.5", "integer"]),
        ("times = 1000", "times = true", ["times", "True"]),
        ("times = 1000", "times = 10000000000000000", ["times", "10^15", "training"]),
        ("rate = 0.005", "rate = 2.0", ["rate", "2.0"]),
        ('kind = "gaussian"', 'kind = "gausian"', ["kind", "gaussian"]),
        ("delta = 1e-8", "delta = 2", ["delta", "2"]),
        ("delta = 1e-8", "delta = 1e-8\nepsilon = 1.0", ["epsilon", "one of"]),
        ('adjacency = "add-remove"', 'adjacency = "bounded"', ["adjacency", "replace"]),
        ('name = "training"', 'name = ""', ["name"]),
        ('kind = "laplace"', 'kind = "laplace"\nname = "training"', ["training"]),
        ("[[mechanism]]", "[[mechanisms]]", ["mechanism"]),
        ("delta = 1e-8", "delta = = 1", ["line 1"]),
    ],
)
def test_mistakes_are_named(before: str, after: str, said: list[str]) -> None:
    with pytest.raises(PlanError) as error:
        Plan.parse(GOOD.replace(before, after, 1), source="here.toml")
    message = str(error.value)
    assert message.startswith("here.toml")
    assert all(word in message for word in said), message


@pytest.mark.parametrize("text", ["", "delta = 1e-6\n", "\n\n# nothing\n"])
def test_a_plan_without_mechanisms(text: str) -> None:
    with pytest.raises(PlanError, match="mechanism"):
        Plan.parse(text)


def test_files_that_are_none(tmp_path: Path) -> None:
    binary = tmp_path / "plan.toml"
    binary.write_bytes(b"\xff\xfe\x00delta")
    for path in (tmp_path / "missing.toml", tmp_path, binary):
        with pytest.raises(PlanError) as error:
            Plan.read(path)
        assert str(path) in str(error.value)


def test_a_mark_at_the_beginning_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert Plan.read(path) == Plan.parse(GOOD)


def test_a_number_can_be_varied() -> None:
    plan = Plan.parse(GOOD)
    assert (
        plan.with_value("mechanism.training.sigma", 2.0).entries[0].mechanism
        != plan.entries[0].mechanism
    )
    for key in ("mechanism.trainin.sigma", "mechanism.training.sigm", "training.sigma", ""):
        with pytest.raises(dpcompose.errors.DomainError):
            plan.with_value(key, 2.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlanQuestion("nonsense", 0.5),  # pyright: ignore
        lambda: PlanQuestion(["delta"], 0.5),  # pyright: ignore
        lambda: PlanEntry("a", ["laplace"], ()),  # pyright: ignore
        lambda: PlanEntry("a", "laplace", 0.5),  # pyright: ignore
        lambda: PlanEntry("a", "laplace", ()),
        lambda: PlanEntry("a", "laplace", (("sigma", 1.0),)),
        lambda: Plan((0.5,)),  # pyright: ignore
        lambda: Plan((PlanEntry("a", "laplace", (("scale", 1.0),)),), adjacency="replace"),  # pyright: ignore
        lambda: Plan((PlanEntry("a", "laplace", (("scale", 1.0),)),), source=3),  # pyright: ignore
        lambda: Plan((PlanEntry("a", "laplace", (("scale", 1.0),)),)).without("b"),
        lambda: Plan((PlanEntry("a", "laplace", (("scale", 1.0),)),)).locate(3),  # pyright: ignore
        lambda: Plan.parse(3),  # pyright: ignore
    ],
)
def test_what_is_no_plan_is_refused_by_name(make: Any) -> None:
    with pytest.raises(DomainError):
        make()
