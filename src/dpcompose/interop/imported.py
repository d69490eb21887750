"""Documents of other libraries, read from JSON files: how each kind is recognized, and the plan
that it becomes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcompose.composition import Composable, ComposablePart, Composition, Sampled, compose
from dpcompose.errors import DomainError, PlanError, UnsupportedError
from dpcompose.files import path_of, read
from dpcompose.guarantee import RenyiLine
from dpcompose.interop.dp_accounting import from_dp_event
from dpcompose.interop.event_tree import event_from_document
from dpcompose.interop.opacus import from_state_dict
from dpcompose.law import Atoms, Pair
from dpcompose.mechanisms import DominatingPair, PrivateSelection, RenyiCurve, arguments
from dpcompose.plan import COMPOSITION, MECHANISMS, SELECTION, Plan, PlanEntry, PlanQuestion, dashed
from dpcompose.values import Adjacency

Keys = tuple[tuple[str, Any], ...]


def plan_of(
    composition: Composable, *, adjacency: Adjacency, question: PlanQuestion | None = None
) -> Plan:
    """The plan that describes a composition under an adjacency.

    >>> from dpcompose import Adjacency, Gaussian
    >>> print(plan_of(Gaussian(1.5).sampled(0.25) * 10, adjacency=Adjacency.ADD_REMOVE).toml())
    adjacency = "add-remove"
    <BLANKLINE>
    [[mechanism]]
    name = "gaussian"
    kind = "gaussian"
    sigma = 1.5
    rate = 0.25
    times = 10
    <BLANKLINE>

    Raises:
        DomainError: If the composition is empty.
        UnsupportedError: If a mechanism is defined by a function, which a plan cannot contain.
    """
    parts = compose(composition).parts
    if not parts:
        raise DomainError(
            "composition",
            "nothing",
            "at least one mechanism",
            "What releases nothing needs no plan",
        )
    tables = [dict(_table(part, times)) for part, times in parts]
    uses = Counter(table["kind"] for table in tables)
    entries: list[PlanEntry] = []
    for position, table in enumerate(tables, start=1):
        kind, times = table.pop("kind"), table.pop("times", 1)
        name = kind if uses[kind] == 1 else f"{kind}-{position}"
        rate = None if "rate" in MECHANISMS[kind].parameters else table.pop("rate", None)
        entries.append(PlanEntry(name, kind, tuple(table.items()), rate, times))
    return Plan(tuple(entries), question, adjacency)


def _table(part: ComposablePart, times: int) -> Keys:
    """The plan entry of a mechanism that runs `times` times, as key-value pairs."""
    rate: Keys = ()
    if isinstance(part, Sampled):
        rate = (("rate", part.rate),)
        keys = _whole(part.base)
    else:
        keys = _stated(part)
    return (*keys, *rate, ("times", times)) if times > 1 else (*keys, *rate)


def _whole(composition: Composition) -> Keys:
    """The plan entry of a composition: that of its only mechanism, or one with `parts`."""
    if composition.count == 1:
        return _table(composition.parts[0][0], 1)
    return (
        ("kind", COMPOSITION),
        ("parts", tuple(_table(part, times) for part, times in composition.parts)),
    )


def _stated(part: ComposablePart) -> Keys:
    match part:
        case PrivateSelection(base=base, tries=tries, shape=shape):
            return (
                ("kind", SELECTION),
                ("base", _whole(compose(base))),
                ("tries", tries),
                ("shape", shape),
            )
        case RenyiCurve(stated=known, holds_under=holds_under) if isinstance(
            known.curve, RenyiLine
        ):
            line = known.curve
            return (
                ("kind", "renyi-line"),
                ("rho", line.rho),
                ("xi", line.xi),
                ("holds_under", holds_under),
            )
        case DominatingPair(pair=Pair(remove=Atoms() as table)) if _is_of(part, table):
            masses = (("upper", table.upper), ("lower", table.lower))
            return (("kind", "dominating-pair"), *masses, ("holds_under", part.holds_under))
        case _:
            try:
                name, given = arguments(part)
            except DomainError:
                reason = "it is given by a function, and a plan holds numbers"
                raise UnsupportedError(
                    repr(part), reason, "Give its values at some points"
                ) from None
            return (("kind", dashed(name)), *given.items())


def _is_of(part: DominatingPair, table: Atoms) -> bool:
    """Whether a dominating pair is determined by the masses of its table."""
    return part == DominatingPair.atoms(
        upper=table.upper, lower=table.lower, adjacency=part.holds_under
    )


LARGEST_FILE = 10_000_000
"""The largest size of a document, in bytes."""


@dataclass(frozen=True)
class DocumentKind:
    """A kind of JSON document that can be imported.

    Args:
        name: The name used in errors.
        keys: The keys by which it is recognized.
        read: Returns the composition that a document describes under an adjacency.
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
"""The kinds of documents that can be imported; an adapter with its own format adds an entry."""


def import_plan(
    path: str | Path, *, adjacency: Adjacency, question: PlanQuestion | None = None
) -> Plan:
    """The plan that a document of another library describes.

    Args:
        path: A JSON file.
        adjacency: The neighboring relation, if the document does not state one.
        question: The question of the plan: a delta or an epsilon.

    Raises:
        PlanError: If the file cannot be read, is not JSON of a known kind, or has a value outside
            its domain.
        UnsupportedError: If something in it has no certified mechanism under the adjacency, or no
            place in a plan.
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
        raise ValueError("a key occurs twice in one object")
    return found
