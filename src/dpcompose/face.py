"""The face of a room: the names that its stub `__init__.pyi` lists, each read from its file when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lazy_loader  # pyright: ignore[reportMissingTypeStubs]

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def face(package: str, file: str) -> Face:
    """`__getattr__`, `__dir__` and `__all__` of a package, from the stub beside its `__init__.py`."""
    return lazy_loader.attach_stub(package, file)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
