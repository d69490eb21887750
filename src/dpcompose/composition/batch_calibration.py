"""Many calibrations in one call: all searches take their steps together, and what they ask for is one batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcompose import check
from dpcompose.composition.batch import Progress, epsilons, located, numbers
from dpcompose.composition.calibrate import Calibration, Searching, search
from dpcompose.composition.composition import Composable
from dpcompose.composition.question import TOLERANCE
from dpcompose.errors import DomainError, DPComposeError
from dpcompose.values import Adjacency, AdjacencyName, Bound, Bounds, Orientation

Family = Callable[[float], Composable]


@dataclass(frozen=True, eq=False)
class Calibrations:
    """Parameters whose certified epsilons meet their targets; an index gives a `Calibration`.

    Args:
        value: The parameters, shape (n,); NaN where there is none.
        found: The calibrations, by their index.
        refusals: The error of each question that has no answer, by its index.
    """

    value: NDArray[np.float64]
    found: Mapping[int, Calibration] = field(repr=False)
    refusals: Mapping[int, DPComposeError]

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: int) -> Calibration:
        """One calibration. Raises the error of a question that has none."""
        place = range(len(self))[index]
        if place in self.refusals:
            raise self.refusals[place]
        return self.found[place]


def calibrations(
    families: Iterable[Family],
    *,
    epsilon: ArrayLike,
    delta: ArrayLike,
    parameter: str = "decreasing",
    integer: bool = False,
    bracket: tuple[float, float] | None = None,
    adjacency: AdjacencyName = Adjacency.ADD_REMOVE,
    orientation: Orientation = Orientation.SAME,
    tolerance: float = TOLERANCE,
    masked: bool = False,
    progress: Progress | None = None,
) -> Calibrations:
    """The parameter of each family that meets its target, as `calibrate` would find it, much faster for many.

    >>> from dpcompose import Gaussian
    >>> calibrations([Gaussian] * 2, epsilon=[1.0, 2.0], delta=1e-5).value.round(9).tolist()
    [3.730631635, 1.993812446]

    Args:
        families: From the parameter to a mechanism or composition, one for each question.
        epsilon: The targets: one for all, or one for each, shape (n,).
        delta: Likewise, in [0, 1].
        parameter: As in `calibrate`, as are `integer`, `bracket`, `adjacency`, `orientation` and `tolerance`.
        integer: Whether the parameters are integers.
        bracket: Where to search.
        adjacency: What one person's data may change.
        orientation: Whether the same world holds the record in every round.
        tolerance: Passed on to `epsilons`.
        masked: Whether a question that has no answer is kept in `refusals`; if not, the first such error is raised.
        progress: Called with how many are found, and how many there are.

    Raises:
        DomainError: If an argument is outside its domain, or arrays have another length than the families.
        UnreachableError: As `calibrate`.
        UnsupportedError: If a part has no sound statement under the adjacency or orientation.
    """
    if not isinstance(families, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("families", families, "a sequence of functions from the parameter")
    given, refusals, found = list(families), dict[int, DPComposeError](), dict[int, Calibration]()
    check.flag("masked", masked)
    check.progress(progress)

    def refused(index: int, error: DPComposeError) -> None:
        if not masked:
            raise error
        refusals[index] = error

    targets = numbers("epsilon", epsilon, len(given), refused=refused, guard=check.nonnegative)
    each = numbers("delta", delta, len(given), refused=refused, guard=check.probability)
    active: dict[int, tuple[Searching, float]] = {}
    for index in range(len(given)):
        if index not in refusals:
            begun = search(targets[index], parameter=parameter, integer=integer, bracket=bracket)
            active[index] = begun, next(begun)
    batch = partial(
        epsilons, adjacency=adjacency, orientation=orientation, tolerance=tolerance, masked=True
    )
    while active:
        values = {index: int(value) if integer else value for index, (_, value) in active.items()}
        members = {index: _member(given[index], value) for index, value in values.items()}
        asked = {
            index: member
            for index, member in members.items()
            if not isinstance(member, DomainError)
        }
        bounds = batch(asked.values(), delta=[each[index] for index in asked])
        for index, answer in _answers(members, asked, bounds):
            begun = active.pop(index)[0]
            try:
                active[index] = (
                    begun,
                    begun.send(answer) if isinstance(answer, Bound) else begun.throw(answer),
                )
            except StopIteration as end:
                found[index] = end.value
            except DPComposeError as error:
                refused(index, located(error, f"families[{index}]"))
        if progress is not None:
            progress(len(found) + len(refusals), len(given))
    parameters = [found[index].value if index in found else math.nan for index in range(len(given))]
    return Calibrations(np.array(parameters, dtype=np.float64), found, refusals)


def _member(family: Family, value: float) -> Composable | DomainError:
    """The family's member, or the error where it has none."""
    try:
        member = family(value)
    except DomainError as error:
        return error
    if not isinstance(member, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
        return DomainError(
            "family", member, "a function whose values are mechanisms or compositions"
        )
    return member


def _answers(
    members: Mapping[int, Composable | DomainError], asked: Iterable[int], bounds: Bounds
) -> Iterator[tuple[int, Bound | DPComposeError]]:
    """The answer to every search: a bound, or the error in its place."""
    for index, member in members.items():
        if isinstance(member, DomainError):
            yield index, member
    for at, index in enumerate(asked):
        yield index, bounds.refusals[at] if at in bounds.refusals else bounds[at]
