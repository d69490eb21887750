"""Parallel composition: each mechanism sees one cell of a partition of the records."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Unpack

from dpcompose import check
from dpcompose.composition.composition import (
    Composable,
    ComposablePart,
    Composition,
    compose,
)
from dpcompose.composition.directions import greatest, oriented
from dpcompose.composition.group import Uncomposable
from dpcompose.composition.losses import Losses, Pairs, Part, Parts, gathered
from dpcompose.composition.question import Asking, Options, PrivacyQuestion, ask, asks
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ConcentratedDP, RenyiPromise
from dpcompose.loss import Loss, Pair, envelope
from dpcompose.values import Adjacency, AdjacencyName, Bound, Orientation

# A round in which an adaptively chosen one of several mechanisms runs


@dataclass(frozen=True)
class Choice(ComposablePart):
    """A round in which one of several mechanisms runs, chosen adaptively from all earlier answers.
    Build it with `one_of`.

    Args:
        options: Distinct mechanisms, at least two.
    """

    options: tuple[Part, ...]

    def __repr__(self) -> str:
        return f"one_of({', '.join(repr(option) for option in self.options)})"

    @property
    def label(self) -> str:
        """The name of this mechanism in reports."""
        return f"one of {', '.join(option.label for option in self.options)}"

    def pairs(self, adjacency: Adjacency) -> Pairs:
        """Return a loss that dominates those of all options, in each order; every loss that one
        option attains is attained.
        """
        found = tuple(_one_pair(option, adjacency) for option in self.options)
        removed = _above(pair.remove for pair in found)
        added = (
            removed if all(pair.symmetric for pair in found) else _above(pair.add for pair in found)
        )
        attained_parts = tuple(
            each for pair in found for each in ((pair,) if pair.attained else pair.attained_parts)
        )
        return ((Pair(removed, added, False, attained_parts), 1),)

    def require_any_size(self, question: str) -> None:
        for option in self.options:
            option.require_any_size(question)

    def sampled_pairs(self, rate: float, adjacency: Adjacency) -> Pairs:
        """Raise an UnsupportedError: sample the options, not the choice among them."""
        raise UnsupportedError(
            f"{self!r}.sampled({rate!r})",
            "a choice is not sampled as a whole",
            "Sample the options",
        )


def one_of(*options: Composable) -> Composable:
    """Return a round in which one of these mechanisms runs; which one may depend on all earlier
    answers.

    The parameters of each option are fixed, the choice is adaptive: a composition of such rounds
    bounds every adversary of [DworkRoth2014, Definition 3.7] with this family of mechanisms.

    >>> from dpcompose import Laplace, RandomizedResponse
    >>> (one_of(Laplace(1.0), RandomizedResponse(1.0)) * 10).delta(epsilon=3.0).upper < 0.62
    True

    Args:
        options: Single mechanisms, at least one.

    Raises:
        DomainError: If there is no option, or one is a composition of several mechanisms.

    Reference: [ZhuDongWang2022, Theorem 10]
    """
    if not options:
        raise DomainError("options", options, "at least one mechanism")
    parts: dict[Part, None] = {}
    for option in options:
        found = compose(option)
        if found.count != 1:
            raise DomainError(
                "option", option, "a single mechanism", "A composition is several rounds"
            )
        parts[found.parts[0][0]] = None
    return compose(options[0]) if len(parts) == 1 else Choice(tuple(sorted(parts, key=repr)))


def _one_pair(option: Part, adjacency: Adjacency) -> Pair:
    """Return the only pair of losses of an option."""
    pairs = option.pairs(adjacency)
    if pairs is None or sum(times for _, times in pairs) != 1:
        reason = "only an option with one privacy loss can be compared with others"
        raise UnsupportedError(f"a choice with {option.label}", reason, "Compose it by itself")
    return pairs[0][0]


def _above(losses: Iterable[Loss]) -> Loss:
    """Return a loss that dominates all of these."""
    distinct = tuple(dict.fromkeys(losses))
    return distinct[0] if len(distinct) == 1 else envelope(distinct)


@dataclass(frozen=True)
class Parallel(Uncomposable):
    """The privacy of mechanisms on disjoint sets of records. Build it with `parallel`.

    Args:
        cases: The compositions that a change of one record can affect; the answer is the maximum
            over them.
        adjacency: The adjacency of the answers.
    """

    cases: tuple[Parts, ...]
    adjacency: Adjacency
    instead_of_composing: ClassVar[str] = (
        "Under add-remove, not under replacement, what runs on everybody goes into each cell: parallel(a + c, b + c)"
    )

    @asks("delta", without=("adjacency",))
    def epsilon(self, *, delta: float, **options: Unpack[Options]) -> Bound:
        """Return bounds, in nats, on the smallest epsilon >= 0 such that all cells together are
        (epsilon, delta)-private.
        """
        questions = self._questions(Asking.read(options))
        return greatest([each.epsilon(check.probability("delta", delta)) for each in questions])

    @asks("epsilon", without=("adjacency",))
    def delta(self, *, epsilon: float, **options: Unpack[Options]) -> Bound:
        """Return bounds on the smallest delta such that all cells together are (epsilon,
        delta)-private.
        """
        questions = self._questions(Asking.read(options))
        return greatest([each.delta(check.real("epsilon", epsilon)) for each in questions])

    def renyi(self, order: float) -> Bound:
        """Return bounds on the Renyi divergence of `order` > 1, in nats, the larger of both
        directions.
        """
        return greatest([each.renyi(order) for each in self._questions(Asking())])

    def pure(self) -> float | None:
        """Return the epsilon of pure differential privacy in nats, rounded up; None if a loss is
        unbounded.
        """
        found = [losses.pure() for losses in self._losses()]
        known = [epsilon for epsilon in found if epsilon is not None]
        return max(known) if len(known) == len(found) else None

    def zcdp(self) -> ConcentratedDP | None:
        """Return a zero-concentrated guarantee, the largest rho with the largest delta; None if no
        finite rho is known.
        """
        found = [losses.zcdp() for losses in self._losses()]
        known = [promise for promise in found if promise is not None]
        if len(known) < len(found):
            return None
        return ConcentratedDP(
            max(each.rho for each in known), delta=max(each.delta for each in known)
        )

    def _losses(self) -> list[Losses]:
        return [gathered(case, self.adjacency) for case in self.cases]

    def _questions(self, asking: Asking) -> list[PrivacyQuestion]:
        """Return the question about each case.

        If an adversary orients every round, it may also choose another cell in every round.
        """
        if asking.orientation is Orientation.FREE:
            either = [
                [((pair.remove, pair.add), times) for pair, times in losses.pairs]
                for losses in self._losses()
            ]
            if any(oriented(tuple(rounds), complete=False) for rounds in either):
                reason = "an adversary who chooses the pair anew in every round may change the cell with it"
                raise UnsupportedError(
                    "parallel with Orientation.FREE",
                    reason,
                    "Use Orientation.SAME, or compose the cells",
                )
        asking = asking._replace(adjacency=self.adjacency)
        return [ask(case, asking) for case in self.cases]


def parallel(
    *cells: Composable, adjacency: AdjacencyName = Adjacency.ADD_REMOVE, moves: bool = True
) -> Parallel:
    """Return the privacy of mechanisms on disjoint sets of records: `cells[i]` sees only the
    records of cell i.

    The cell of a record is a function of the record, fixed without looking at the data, and the
    data do not change while the mechanisms answer. The mechanism on a cell may be chosen from
    earlier answers of all cells.

    Adding or removing a record changes one cell: delta(epsilon) is the maximum of the cells'
    delta(epsilon).

    Replacing a record costs more than the largest epsilon: the new record may fall into another
    cell, and then two cells change, one by a removal and one by an addition. delta(epsilon) is the
    maximum, over i != j, of the composition of i's loss of a removal with j's loss of an addition,
    and of each cell's own loss of a replacement. For pure privacy that is the larger of two
    numbers: the sum of the two largest epsilons, and the largest epsilon under replacement (twice
    epsilon, unless the mechanism states a smaller one).

    >>> from dpcompose import Adjacency, Laplace
    >>> cells = Laplace(1.0, replace_sensitivity=1.0), Laplace(2.0, replace_sensitivity=1.0)
    >>> round(parallel(*cells).pure(), 9), round(parallel(*cells, adjacency=Adjacency.REPLACE).pure(), 9)
    (1.0, 1.5)

    Args:
        cells: One mechanism or composition for each cell; at least one. k distinct ones need k (k +
            1) / 2 evaluations under replacement.
        adjacency: The change of one person's data: `ADD_REMOVE`, `REPLACE`, or, if records do not
            move, `ZERO_OUT`.
        moves: Whether a replaced record may fall into another cell; False if the cell is a fixed,
            public key of the record.

    Raises:
        DomainError: If there is no cell, or one is neither a mechanism nor a composition.
        UnsupportedError: If the adjacency is `ZERO_OUT` and records move, since a null record has
            no cell.

    Reference: [McSherry2009, Theorem 4], for adding or removing
    """
    if not cells:
        raise DomainError("cells", cells, "at least one mechanism or composition")
    adjacency = check.named("adjacency", adjacency, Adjacency)
    check.flag("moves", moves)
    if adjacency is Adjacency.ZERO_OUT and moves:
        reason = "a record becomes a null record, which belongs to no cell"
        raise UnsupportedError(
            "parallel under zero-out",
            reason,
            "Use moves=False if it stays in the cell of a public key",
        )
    counted = Counter(compose([cell]) for cell in cells)
    within = tuple(cell.parts for cell in counted)
    if adjacency is not Adjacency.REPLACE or not moves:
        return Parallel(within, adjacency)
    return Parallel((*within, *_moves(counted)), adjacency)


def _moves(counted: Counter[Composition]) -> list[Parts]:
    """Return the compositions of a removal from one cell and an addition to another, one for each
    unordered pair of cells.
    """
    same = [(cell, cell) for cell, times in counted.items() if times > 1]
    if len(counted) == 1 and not same:
        # A record may also come from, or go to, a cell on which no mechanism runs.
        return [_moved(cell, enters=False) for cell in counted]
    pairs = (*itertools.combinations(counted, 2), *same)
    return [_moved(one, enters=False) + _moved(other, enters=True) for one, other in pairs]


def _moved(cell: Composition, *, enters: bool) -> Parts:
    """Return the parts of a cell that a replaced record enters or leaves."""
    return tuple((Move(part, enters), times) for part, times in cell.parts)


@dataclass(frozen=True)
class Move(Part):
    """A mechanism on a cell that a replaced record leaves or enters.

    Args:
        part: The mechanism on the cell.
        enters: Whether the record enters the cell where a removal would take it out.
    """

    part: Part
    enters: bool

    @property
    def label(self) -> str:
        """The name of this part in reports."""
        return f"{self.part.label}, {'entered' if self.enters else 'left'} by the record"

    def pairs(self, adjacency: Adjacency) -> Pairs | None:
        """Return the losses of removing a record from the cell, with both orders swapped if the
        record enters; None if there are none.
        """
        pairs = self.part.pairs(_added_or_removed(adjacency))
        if pairs is None or not self.enters:
            return pairs
        return tuple((_mirrored(pair), times) for pair, times in pairs)

    def promise(self, adjacency: Adjacency) -> RenyiPromise | None:
        """Return the Renyi curve of the part when a record is added or removed; None if it has
        losses.
        """
        return self.part.promise(_added_or_removed(adjacency))


def _mirrored(pair: Pair) -> Pair:
    """Return the pair of losses with the two orders (record removed, record added) swapped."""
    attained_parts = tuple(_mirrored(each) for each in pair.attained_parts)
    return pair._replace(remove=pair.add, add=pair.remove, attained_parts=attained_parts)


def _added_or_removed(adjacency: Adjacency) -> Adjacency:
    """Return ADD_REMOVE, the adjacency of one cell when a record moves between cells.

    Raises:
        UnsupportedError: If the stated adjacency is not REPLACE.
    """
    if adjacency is not Adjacency.REPLACE:
        raise UnsupportedError(
            "a move between cells",
            f"a move replaces a record, and has no losses under {adjacency.value}",
        )
    return Adjacency.ADD_REMOVE
