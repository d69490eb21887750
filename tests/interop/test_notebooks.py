"""The notebooks run, and show what is stored in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import library

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]
NOTEBOOKS = sorted(Path(__file__).parents[2].glob("examples/notebooks/*.ipynb"))


def shown(notebook: Any) -> list[list[tuple[str, str]]]:
    """What each code cell shows: its text, and of a picture that there is one."""
    cells: list[list[tuple[str, str]]] = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        outputs: list[tuple[str, str]] = []
        for output in cell.outputs:
            if output.output_type == "stream":
                before = outputs.pop()[1] if outputs and outputs[-1][0] == output.name else ""
                outputs.append((output.name, before + output.text))
            else:
                kinds = sorted(set(output.data) - {"text/plain"})
                outputs.append(("data", str(kinds or output.data["text/plain"])))
        cells.append(outputs)
    return cells


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored(path: Path, tmp_path: Path) -> None:
    nbformat, nbclient = library("nbformat"), library("nbclient")
    for name in ("sklearn", "peft", "jax_privacy"):
        library(name)
    stored = nbformat.read(path, 4)
    fresh = nbformat.read(path, 4)
    for cell in fresh.cells:
        cell.pop("outputs", None) if cell.cell_type != "code" else cell.update(outputs=[])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(fresh, timeout=300, resources=resources).execute()
    assert shown(fresh) == shown(stored)
    assert sum(map(len, shown(stored))) > 5
