"""Documents of other libraries, read from a file: what each kind is recognized by, and the plan that it becomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcompose.composition import Composition
from dpcompose.errors import DomainError, PlanError, UnsupportedError
from dpcompose.files import path_of, read
from dpcompose.interop.dp_accounting import from_dp_event
from dpcompose.interop.event_tree import event_from_document
from dpcompose.interop.opacus_history import from_state_dict
from dpcompose.interop.plan_writing import plan_of
from dpcompose.plan import Plan, PlanQuestion
from dpcompose.values import Adjacency

LARGEST_FILE = 10_000_000
"""Bytes of a document."""


@dataclass(frozen=True)
class DocumentKind:
    """A kind of JSON document.

    Args:
        name: Its name in errors.
        keys: The keys that it is recognized by.
        read: The composition that it describes, to be asked under an adjacency.
    """

    name: str
    keys: frozenset[str]
    read: Callable[[Mapping[str, Any], Adjacency], Composition]


def _dp_event(document: Mapping[str, Any], adjacency: Adjacency) -> Composition:
    return from_dp_event(event_from_document(document), adjacency=adjacency)


def _opacus(document: Mapping[str, Any], adjacency: Adjacency) -> Composition:
    return from_state_dict(document, adjacency=adjacency)


KINDS = (
    DocumentKind("a DpEvent", frozenset({"class_name"}), _dp_event),
    DocumentKind("an Opacus state dictionary", frozenset({"history", "mechanism"}), _opacus),
)
"""The documents that can be read. An adapter with a format of its own adds its line here."""


def import_plan(
    path: str | Path, *, adjacency: Adjacency, question: PlanQuestion | None = None
) -> Plan:
    """The plan that a document of another library describes.

    Args:
        path: A JSON file.
        adjacency: Who are neighbors, where the document does not say.
        question: The delta or epsilon that the plan is to ask at.

    Raises:
        PlanError: If the file cannot be read, or is no JSON document of a known kind.
        DomainError: If a value in it is outside its domain.
        UnsupportedError: If something in it has no sound statement under the adjacency, or in a plan.
    """
    document = _loaded(path_of("path", path))
    for kind in KINDS:
        if kind.keys <= document.keys():
            try:
                return plan_of(
                    kind.read(document, adjacency), adjacency=adjacency, question=question
                )
            except DomainError as error:
                raise PlanError(
                    str(path),
                    error.name,
                    "",
                    error.value,
                    f"{error.domain} {error.remedy}".rstrip(),
                ) from None
            except UnsupportedError as error:
                raise UnsupportedError(
                    f"{path}: {error.what}", error.reason, error.remedy
                ) from None
            except RecursionError:
                raise PlanError(
                    str(path), "", "", None, "a document that is not nested so deeply"
                ) from None
    known = ", ".join(f"{kind.name} (with {' and '.join(sorted(kind.keys))})" for kind in KINDS)
    raise PlanError(str(path), "", "", None, f"one of {known}")


def _loaded(path: Path) -> Mapping[str, Any]:
    try:
        content = read(path, most=LARGEST_FILE)
        if len(content) > LARGEST_FILE:
            raise PlanError(
                str(path), "", "", None, f"a document of at most {LARGEST_FILE:,} bytes"
            )
        document = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise PlanError(
            str(path), "", "", None, f"a document that can be read ({error.strerror})"
        ) from None
    except RecursionError:
        raise PlanError(str(path), "", "", None, "JSON that is not nested so deeply") from None
    except ValueError as error:
        raise PlanError(str(path), "", "", None, f"JSON: {error}") from None
    if not isinstance(document, dict):
        raise PlanError(str(path), "", "", None, "a JSON object")
    return document  # pyright: ignore[reportUnknownVariableType]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found
