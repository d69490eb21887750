"""The face of a room: the names that its stub `__init__.pyi` lists, each imported from its file
when first used.

Names at the left margin of a stub are public and are `__all__`; names below `if True:` are for the
other rooms of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import lazy_loader  # pyright: ignore[reportMissingTypeStubs]

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def face(package: str, file: str) -> Face:
    """Return `__getattr__`, `__dir__` and `__all__` of the package `package` from the stub beside
    its `__init__.py`, `file`.
    """
    attached = cast("Any", lazy_loader.attach_stub(package, file))  # pyright: ignore[reportUnknownMemberType]
    with open(f"{file}i", encoding="utf-8") as stub:
        public = stub.read().partition("if True:")[0]
    names = sorted({part.split()[0].rstrip(",") for part in public.split(" as ")[1:]})
    return attached[0], names.copy, names
