"""An import of a file that is gone names the file that has its contents; the page and the code have one table."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from dpcompose import moved
from dpcompose.adaptive import PureFilter
from dpcompose.experiment import Channel, Measured

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
FILES = dict(re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", PAGE, re.MULTILINE))
NAMES = dict(re.findall(r"^\| `([\w.]+:[\w.]+)` \| `([\w.]+:[\w.]+)` \|$", PAGE, re.MULTILINE))


def test_the_page_and_the_code_have_one_table() -> None:
    assert moved.modules() == FILES and len(NAMES) > 100


@pytest.mark.parametrize("old", sorted(moved.modules()))
def test_an_old_place_names_the_new_one(old: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=rf"is now dpcompose\.{re.escape(moved.modules()[old])};"):
        importlib.import_module(f"dpcompose.{old}")
    importlib.import_module(f"dpcompose.{moved.modules()[old]}")


@pytest.mark.parametrize("new", sorted(set(NAMES.values())))
def test_a_new_name_exists(new: str) -> None:
    place, _, name = new.partition(":")
    *owners, last = name.split(".")
    owner: Any = reduce(getattr, owners, importlib.import_module(f"dpcompose.{place}"))
    assert hasattr(owner, last) or last in getattr(owner, "__annotations__", {})


def test_a_place_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module("dpcompose.nowhere")


@pytest.mark.parametrize(
    ("owner", "old", "new"),
    [(Channel, "fuzz", "error"), (Measured, "fuzz", "error"), (PureFilter(1.0), "lost", "omitted")],
)
def test_an_old_attribute_names_the_new_one(owner: Any, old: str, new: str) -> None:
    with pytest.raises(AttributeError, match=rf"\.{old} is now {new}; see docs/architecture.md"):
        getattr(owner, old)
    assert hasattr(owner, new)
