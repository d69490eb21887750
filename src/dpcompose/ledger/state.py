"""The state of a tree after some of its entries, as a checkpoint signs its digest and a verification begins with it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Self

from dpcompose.errors import DomainError
from dpcompose.ledger.scope import AccountNode
from dpcompose.ledger.store import Snapshot
from dpcompose.ledger.tables import node_of, scope_of
from dpcompose.ledger.text import encode


@dataclass(frozen=True)
class State:
    """Every scope with its balance and every fact of one tree, a line for each.

    Args:
        root: The top-level scope.
        size: After so many entries.
        lines: As `Snapshot.state` gives them.
    """

    root: str
    size: int
    lines: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, root: str) -> Self:
        """The state of a tree now."""
        return cls(root, snapshot.head(root).sequence, tuple(snapshot.state(root)))

    @classmethod
    def read_all(cls, text: str) -> tuple[Self, ...]:
        """The states of a text, each as `text` wrote it, with a blank line between two.

        Raises:
            DomainError: It is something else.
        """
        try:
            return tuple(cls._read(each.rstrip("\n").split("\n")) for each in text.split("\n\n"))
        except (ValueError, TypeError, KeyError, RecursionError):
            domain = "what `dpcompose ledger evidence checkpoint --state` wrote"
            raise DomainError("state", f"{text[:40]}...", domain) from None

    @classmethod
    def _read(cls, lines: list[str]) -> Self:
        header = json.loads(lines[0])
        return cls(header["root"], int(header["size"]), tuple(lines[1:]))

    @cached_property
    def text(self) -> str:
        """The state as text."""
        return "\n".join([encode({"root": self.root, "size": self.size}), *self.lines, ""])

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the text in base 64."""
        return b64encode(sha256(self.text.encode()).digest()).decode()

    @cached_property
    def scopes(self) -> dict[str, str]:
        """The lines of scopes by path."""
        own = ((line[2 : line.index('"', 2)], line) for line in self.lines if line[:1] == "[")
        return {json.loads(f'"{path}"') if "\\" in path else path: line for path, line in own}

    @property
    def facts(self) -> Iterator[tuple[str, str, str]]:
        """Kind, name and JSON of each fact."""
        for line in self.lines:
            if line[:1] == "{":
                fact: dict[str, str] = json.loads(line)
                yield fact["kind"], fact["name"], fact["value"]

    def node(self, path: str) -> AccountNode | None:
        """The scope of that path with its balance."""
        line = self.scopes.get(path)
        if line is None:
            return None
        row: list[Any] = json.loads(line)
        return node_of(scope_of((self.root, *row[:6])), tuple(row[6:]))
