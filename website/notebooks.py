"""Tutorials: Markdown pages that are notebooks (jupytext), run by a kernel, with what they print."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode


def executed(page: Path) -> tuple[str, str]:
    """The page as Markdown with the output below each cell, and the notebook that was run, as JSON.

    Raises:
        CellExecutionError: If a cell fails.
    """
    notebook = jupytext.read(page)
    with TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": folder}})
        client.extra_arguments = ["--log-level=ERROR"]
        client.execute()
    return "\n\n".join(_shown(cell) for cell in notebook.cells), nbformat.writes(notebook)


def _shown(cell: NotebookNode) -> str:
    if cell.cell_type != "code":
        return cell.source
    printed = "".join(
        output.text if output.output_type == "stream" else _value(output) for output in cell.outputs
    )
    code = f"```python\n{cell.source}\n```"
    return f"{code}\n\n```text\n{printed.rstrip()}\n```" if printed.strip() else code


def _value(output: NotebookNode) -> str:
    return output.data.get("text/plain", "") + "\n"
