"""The face of a room: the names that its stub `__init__.pyi` lists, each read from its file when it is first used.

What stands at the left margin of a stub is for everybody, and is `__all__`; what stands below `if True:` is for the
other rooms of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import lazy_loader  # pyright: ignore[reportMissingTypeStubs]

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def face(package: str, file: str) -> Face:
    """`__getattr__`, `__dir__` and `__all__` of a package, from the stub beside its `__init__.py`."""
    attached = cast("Any", lazy_loader.attach_stub(package, file))  # pyright: ignore[reportUnknownMemberType]
    with open(f"{file}i", encoding="utf-8") as stub:
        public = stub.read().partition("if True:")[0]
    names = sorted({part.split()[0].rstrip(",") for part in public.split(" as ")[1:]})
    return attached[0], names.copy, names
