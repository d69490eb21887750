"""The wheel is what was tested: built, installed elsewhere, it has everything and answers the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dpcompose"
SHOWN = """
import doctest, importlib, pathlib
import dpcompose
folder = pathlib.Path(dpcompose.__file__).parent
attempted = 0
for path in sorted(folder.rglob("*.py")):
    if ">>>" in path.read_text(encoding="utf-8"):
        module = importlib.import_module(".".join(path.relative_to(folder.parent).with_suffix("").parts))
        attempted += doctest.testmod(module, raise_on_error=True).attempted
print(dpcompose.__file__, attempted)
"""


def _run(*arguments: object, cwd: Path, installed: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if installed is not None:
        environment["PYTHONPATH"] = str(installed)
    command = [sys.executable, *map(str, arguments)]
    run = subprocess.run(
        command, check=False, cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install '.[test]'")
    folder = tmp_path_factory.mktemp("wheel")
    _run("-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel was installed."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-compile",
        "--target",
        folder,
        wheel,
    ]
    _run(*pip, cwd=folder)
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = (
        path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    assert names == {f"dpcompose/{path.relative_to(PACKAGE).as_posix()}" for path in sources}
    assert "dpcompose/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in ZipFile(wheel).namelist())


def test_the_installed_package_does_what_its_docstrings_show(
    installed: Path, tmp_path: Path
) -> None:
    printed = _run("-c", SHOWN, cwd=tmp_path, installed=installed)
    place, attempted = printed.splitlines()[-1].rsplit(" ", 1)
    assert place == str(installed / "dpcompose" / "__init__.py")
    assert int(attempted) > 0


def test_the_installed_command_says_its_version(installed: Path, tmp_path: Path) -> None:
    (command,) = (
        (installed / "bin").glob("dpcompose*")
        if os.name != "nt"
        else (installed / "Scripts").glob("*.py")
    )
    version = (PACKAGE / "version.py").read_text().split('__version__ = "')[1].split('"')[0]
    assert version in _run(command, "--version", cwd=tmp_path, installed=installed)
