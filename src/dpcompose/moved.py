"""Where files of the package were before, so that an import of an old place names the new one.

`moved.txt` has an old and a new place on each line. The page docs/architecture.md has the same table, and the names
that changed inside files.
"""

from __future__ import annotations

import sys
from functools import cache


@cache
def modules() -> dict[str, str]:
    """The new place of each old one, read when an import fails for the first time."""
    from importlib.resources import files

    text = files("dpcompose").joinpath("moved.txt").read_text(encoding="utf-8")
    return dict(line.split() for line in text.splitlines())


class Finder:
    """An import of an old place, asked after every other finder, is an error that says where things are now."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuse an old place; everything else is not known here.

        Raises:
            ModuleNotFoundError: With the new place.
        """
        package, _, place = name.partition(".")
        if package == "dpcompose" and (now := modules().get(place)) is not None:
            raise ModuleNotFoundError(f"{name} is now dpcompose.{now}; see docs/architecture.md", name=name)


def install() -> None:
    """Let old places be refused by name, once."""
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)  # pyright: ignore[reportArgumentType]
