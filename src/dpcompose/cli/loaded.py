"""Objects that the user names: MODULE:NAME, from a module or a file."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
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
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = (
            _of_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        )
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


def described(name: str, describe: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """The description of the object of that name, as data: it is imported in another process, whose output is lost.

    Raises:
        DomainError: If it cannot be imported, or its module ends the process.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.close(reading)
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(silent, stream)
            try:
                text = describe(loaded(name))
            except DomainError as error:
                text = {"refused": [error.name, str(error.value), error.domain]}
            os.write(writing, json.dumps(text).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    try:
        found = json.loads(answer)
    except ValueError:
        module = name.partition(":")[0]
        domain = "a module that can be imported: this one ends its process"
        raise DomainError("MODULE", module, domain) from None
    if "refused" in found:
        raise DomainError(*found["refused"])
    return found


def _of_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
