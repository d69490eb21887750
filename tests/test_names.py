"""The names of the package: each is found when it is used, and none is read before."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dpcompose

SOURCE = Path(dpcompose.__file__).read_text(encoding="utf-8")


def _declared() -> set[str]:
    """What a type checker sees."""
    tree = ast.parse(SOURCE)
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    lines = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    return {name.name for line in lines for name in line.names}


def test_a_type_checker_sees_the_same_names() -> None:
    assert _declared() == set(dpcompose.__all__)
    assert sorted(set(dpcompose.__all__)) == dpcompose.__all__


@pytest.mark.parametrize("name", dpcompose.__all__)
def test_every_name_is_found(name: str) -> None:
    found = getattr(dpcompose, name)
    assert found.__module__.startswith("dpcompose.")
    assert found.__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'dpcompose' has no attribute 'Gausian'"):
        getattr(dpcompose, "Gausian")  # noqa: B009
    assert {"Gaussian", "__version__"} <= set(dir(dpcompose))


def test_the_package_alone_reads_no_numpy() -> None:
    program = "import dpcompose, dpcompose.cli, sys; print(*sorted({'numpy', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
