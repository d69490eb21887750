"""Families override members that their base declares: a misspelt one would leave the default in force."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import dpcompose.loss
from dpcompose.contour.transform import Transform
from dpcompose.loss.base import Loss
from dpcompose.proof.moments import Moments

for module in pkgutil.iter_modules(dpcompose.loss.__path__):
    importlib.import_module(f"dpcompose.loss.{module.name}")

# Members that only their own family uses.
OWN = {
    "LaplaceSum": {"screen"},
    "AtomicLoss": {"lattice", "reverse"},
    "MixtureLoss": {"mixture", "reverse", "width"},
    "OpposedLoss": {"mixture"},
    "ReplacedGaussianLoss": {"mixture"},
    "SampledGaussianLoss": {"reverse"},
    "SampledGaussianSum": {"remove"},
    "Wrong": set[str](),
}


def families(base: type) -> Iterator[type]:
    for family in base.__subclasses__():
        if family.__module__.startswith("dpcompose"):
            yield family
        yield from families(family)


def undeclared(family: type, base: type) -> set[str]:
    public = {name for name in vars(family) if not name.startswith("_")}
    fields = {name for each in family.__mro__ for name in vars(each).get("__annotations__", {})}
    return (
        {name for name in public if not hasattr(base, name)}
        - fields
        - OWN.get(family.__name__, set())
    )


@pytest.mark.parametrize("base", [Transform, Moments, Loss])
def test_every_member_of_a_family_is_declared_by_its_base(base: type) -> None:
    known = set(families(base))
    assert len(known) >= 8
    assert {
        family.__name__: undeclared(family, base) for family in known if undeclared(family, base)
    } == {}


def test_a_misspelt_member_is_found() -> None:
    class Wrong(Moments):
        @property
        def stated_errrors(self) -> tuple[float, float]:
            return 0.0, 0.0

    assert undeclared(Wrong, Moments) == {"stated_errrors"}
