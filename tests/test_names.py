"""The names of the package: each is found when it is used, and none is read before."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dpcompose

PACKAGE = Path(dpcompose.__file__).parent
FACES = [
    "dpcompose",
    *sorted(f"dpcompose.{stub.parent.name}" for stub in PACKAGE.glob("*/__init__.pyi")),
]


@pytest.mark.parametrize("room", FACES)
def test_a_face_offers_what_its_stub_lists(room: str) -> None:
    face = import_module(room)
    stub = ast.parse(Path(str(face.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    public = [
        str(alias.asname)
        for line in stub.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    ]
    assert sorted(public) == face.__all__ == dir(face)
    offered = [
        alias.asname
        for line in ast.walk(stub)
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    ]
    assert len(set(offered)) == len(offered) and all(
        getattr(face, str(name)) is not None for name in offered
    )


@pytest.mark.parametrize("name", dir(dpcompose))
def test_every_name_is_found(name: str) -> None:
    found = getattr(dpcompose, name)
    assert found.__module__.startswith("dpcompose.")
    assert found.__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Gausian"):
        getattr(dpcompose, "Gausian")  # noqa: B009
    assert "Gaussian" in dir(dpcompose) and dpcompose.__version__


def test_the_package_alone_reads_no_numpy() -> None:
    program = "import dpcompose, dpcompose.cli, sys; print(*sorted({'numpy', 'scipy'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == []
