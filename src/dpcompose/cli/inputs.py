"""The input of a command: texts, plans, keys, anchors, a ledger, and objects that the user names as MODULE:NAME."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dpcompose.errors import DomainError, EvidenceError
from dpcompose.files import read

if TYPE_CHECKING:
    from dpcompose.account import Account
    from dpcompose.ledger import Anchor, Ledger, VerifierKey
    from dpcompose.plan import Plan

Value = TypeVar("Value")
LARGEST_TEXT = 10**7
LARGEST_STATE = 10**9
LARGEST_ANCHOR = 10**8
"""Bytes of an anchor, which has a line for each tree."""


def typed(option: str, text: str | None, read: Callable[[str], Value], domain: str) -> Value | None:
    """The value that `read` makes of an option's text; None if the option was not given.

    Raises:
        DomainError: If `read` cannot read the text; it says that `domain` is accepted.
    """
    try:
        return None if text is None else read(text)
    except (ValueError, ArithmeticError):
        raise DomainError(option, text, domain) from None


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """`epsilon=0.1`, several times, as a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if not (name and value) or name in found:
            raise DomainError(option, text, "name=value, each name once")
        found[name] = value
    return found


def read_bytes(name: str, source: str | Path, *, most: int = LARGEST_TEXT) -> bytes:
    """The content of a file, or of standard input for `-`.

    Raises:
        DomainError: If it cannot be read, or is larger than `most` bytes.
    """
    typed = str(source) == "-"
    if typed and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise DomainError(name, "-", "standard input, which is closed")
    try:
        content = sys.stdin.buffer.read(most + 1) if typed else read(Path(source), most=most)
    except OSError as error:
        reason = f"a file that can be read ({error.strerror})"
        raise DomainError(name, str(source), reason) from None
    if len(content) > most:
        raise DomainError(name, str(source), f"at most {most:,} bytes")
    return content


def read_text(name: str, source: str | Path, *, most: int = LARGEST_TEXT) -> str:
    """The text of a file, or of standard input for `-`; raises as `read_bytes`, and if it is not UTF-8."""
    try:
        return read_bytes(name, source, most=most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"UTF-8 text; byte {error.start} is not valid"
        raise DomainError(name, str(source), reason) from None


def read_plan(path: Path) -> Plan:
    """The plan in a file, or on standard input for `-`."""
    from dpcompose.plan import Plan

    if str(path) == "-":
        return Plan.parse(read_text("PLAN", "-"), source="standard input")
    return Plan.read(path)


def opened(
    url: str, *, create: bool = False, restored: bool = False, reading: bool = False
) -> Ledger:
    """The ledger at `url`; if it is only read, it may be where we may not write."""
    from dpcompose.ledger import Ledger

    if url in ("memory:", ":memory:"):
        raise DomainError(
            "--ledger", url, "a file or a database: what is in memory ends with the command"
        )
    read_only = reading and not Ledger.may_write(url)
    return Ledger.open(url, create=create, restored=restored, read_only=read_only)


def plan_for(account: Account, plan: Path) -> Plan:
    """The plan, if it is stated under the adjacency of the scope."""
    read = read_plan(plan)
    if read.adjacency is not account.adjacency:
        raise DomainError(
            "adjacency", read.adjacency.value, f"{account.adjacency.value}, as the scope has it"
        )
    return read


def keys_of(trust: Sequence[str] | None) -> list[VerifierKey]:
    """The keys that were named, or those in the files that were."""
    from dpcompose.ledger import VerifierKey

    lines: list[str] = []
    for each in trust or ():
        lines += (
            read_text("--trust", each, most=LARGEST_ANCHOR).splitlines()
            if Path(each).is_file()
            else [each]
        )
    return [VerifierKey.read(line) for line in lines if line.strip()]


def anchor_in(file: Path, trust: Sequence[str] | None, state: Path | None = None) -> Anchor:
    """The anchor or the checkpoints of a file, with the states of a file beside it."""
    from dpcompose.ledger import Anchor, Checkpoint, State

    text, keys = read_text("--anchor", file, most=LARGEST_ANCHOR), keys_of(trust)
    states = (
        () if state is None else State.read_all(read_text("--state", state, most=LARGEST_STATE))
    )
    try:
        return (
            Anchor.read(text.strip())
            if text.lstrip()[:1] == "{"
            else Anchor((), Checkpoint.read_all(text, keys), states)
        )
    except DomainError:
        raise DomainError(
            "--anchor", str(file), "a file that `dpcompose ledger verify --keep` wrote"
        ) from None
    except EvidenceError as error:
        remedy = "Name its signer's key by --trust" if not keys else ""
        raise DomainError(
            "--anchor", str(file), f"an anchor or a checkpoint ({error.reason})", remedy
        ) from None


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
