"""The reference: every public class of its rooms has an example, in its docstring or on its page."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from website.build import names

DOCS = Path(__file__).parents[2] / "docs"
ROOMS = {
    page: found[1]
    for page in sorted((DOCS / "reference").glob("*.md"))
    if (
        found := re.search(
            r"^<!-- every name of ([\w.]+) -->$", page.read_text("utf-8"), re.MULTILINE
        )
    )
}
CLASSES = [
    (page, name)
    for page, room in ROOMS.items()
    for name in import_module(room).__all__
    if inspect.isclass(getattr(import_module(room), name))
]


def _code(page: Path) -> str:
    return "\n".join(
        re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )


EXAMPLES = "\n".join(
    _code(page) for page in sorted(DOCS.rglob("*.md")) if not page.name.endswith(".zh.md")
)


def _shown(name: str, docstring: str | None, examples: str) -> bool:
    return ">>>" in (docstring or "") or re.search(rf"\b{name}\b", examples) is not None


def test_every_page_of_the_reference_is_of_a_room() -> None:
    assert len(ROOMS) == len(list((DOCS / "reference").glob("*.md"))) >= 9
    assert len(CLASSES) > 150


@pytest.mark.parametrize(
    ("page", "name"), CLASSES, ids=[f"{page.stem}.{name}" for page, name in CLASSES]
)
def test_every_public_class_has_an_example(page: Path, name: str) -> None:
    found = getattr(import_module(ROOMS[page]), name)
    assert _shown(name, found.__doc__, EXAMPLES), f"show {name} on {page.name}"


@pytest.mark.parametrize("room", ROOMS.values())
def test_every_entry_of_the_reference_is_defined_where_it_is_looked_for(room: str) -> None:
    for place in re.findall(r"^::: ([\w.]+)$", names(room), re.MULTILINE):
        module, _, name = place.rpartition(".")
        assert hasattr(import_module(module), name), place


def test_a_class_without_an_example_is_found() -> None:
    assert not _shown("Unheard", "No example.", EXAMPLES)


def test_no_page_says_that_something_cannot_be_called_yet() -> None:
    pages = [
        page for page in DOCS.rglob("*.md") if "not callable yet" in page.read_text("utf-8").lower()
    ]
    assert pages == []
