"""Tests that need another library are skipped where it is missing, unless DPCOMPOSE_REQUIRE names interop."""

from __future__ import annotations

import importlib
import os
import warnings
from types import ModuleType

import pytest


def library(name: str) -> ModuleType:
    """That library; else the tests are skipped by its name, or fail where it is required."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return importlib.import_module(name)
    except ImportError:
        if "interop" in os.environ.get("DPCOMPOSE_REQUIRE", "").split(","):
            raise
        pytest.skip(f"{name} is not installed: make test-interop", allow_module_level=True)
