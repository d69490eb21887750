"""The environment of the libraries: what it must not hold, and that nothing in it is skipped."""

from __future__ import annotations

import importlib
from importlib.metadata import distributions

import pytest

from tests.interop.conftest import library

pytestmark = pytest.mark.interop
torch = library("torch")


def test_torch_is_the_build_for_processors() -> None:
    assert torch.version.cuda is None
    names = {str(each.metadata["Name"]).lower() for each in distributions()}
    assert not {name for name in names if name.startswith(("nvidia", "cuda", "triton"))}


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPCOMPOSE_REQUIRE", "postgres,interop")
    with pytest.raises(ImportError):
        library("no_such_library")
    monkeypatch.setenv("DPCOMPOSE_REQUIRE", "")
    with pytest.raises(pytest.skip.Exception, match="no_such_library"):
        library("no_such_library")


@pytest.mark.parametrize(
    "name", ["opacus", "dp_accounting", "jax", "jax_privacy", "opendp", "transformers", "peft"]
)
def test_every_library_is_there(name: str) -> None:
    assert library(name) is importlib.import_module(name)
