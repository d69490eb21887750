"""Objects that the user names: MODULE:NAME, from a module or a file."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from dpcompose.errors import DomainError


def loaded(name: str) -> Any:
    """The object of that name; its module is imported, from the current directory too."""
    module, _, path = name.partition(":")
    if not (module and path):
        raise DomainError(
            "MODULE:NAME", name, "a module and a name in it, such as noisy:mean or noisy.py:mean"
        )
    sys.path.insert(0, os.getcwd())
    if not _returns(partial(_imported, module)):
        raise DomainError(
            "MODULE", module, "a module that can be imported: this one ends its process"
        )
    try:
        found = _imported(module)
    except (Exception, SystemExit) as error:
        raise DomainError(
            "MODULE", module, f"a module that can be imported ({type(error).__name__}: {error})"
        ) from None
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise DomainError("NAME", path, f"a name in {module}") from None
    return found


def _imported(module: str) -> Any:
    return _of_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)


def _returns(load: Callable[[], Any]) -> bool:
    """Whether a process gets beyond an import, with an error or without: tried in another one, whose output is lost."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.close(reading)
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(silent, stream)
            with suppress(BaseException):
                load()
            os.write(writing, b"1")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        returned = pipe.read(1) == b"1"
    os.waitpid(child, 0)
    return returned


def _of_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
