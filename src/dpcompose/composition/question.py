"""Certified bounds on delta, epsilon and Renyi divergences of a composition, from the losses of
both directions.

Both orders of every pair are composed separately, and the maximum of the two products is taken at
the end.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from operator import attrgetter
from typing import Any, NamedTuple, ParamSpec, TypedDict, TypeVar

from dpcompose import check
from dpcompose.composition.directions import (
    Rounds,
    above_every_choice,
    apart,
    attained_directions,
    directions,
    greatest,
    least,
    oriented,
    refuse_oriented_proof,
    wide,
    with_the_other_order,
)
from dpcompose.composition.elementary import Elementary, PartByPart, largest_losses
from dpcompose.composition.losses import Losses, Parts, gathered
from dpcompose.composition.renyi import (
    RenyiCurve,
    Samples,
    attained as attained_promises,
    converted,
    curved,
)
from dpcompose.errors import UnsupportedError
from dpcompose.loss import POOR, Loss, Pair, Product, ProvedProduct, Readings, loose
from dpcompose.values import (
    Adjacency,
    AdjacencyName,
    Bound,
    Certificate,
    Orientation,
    OrientationName,
)

# The keyword options of all questions, declared once, and the function that checks them.


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
TOLERANCE = 1e-9


class Options(TypedDict, total=False):
    """The keyword options of every question.

    Attributes:
        adjacency: The change of one person's data: "add-remove", "replace", "zero-out", or the
            member of `Adjacency`.
        orientation: Whether the same data set contains the record in every round.
        tolerance: The wanted relative width of epsilon, in (0, 1); a bound states the width that
            was reached.
        proof: Whether to evaluate in ball arithmetic, where every error is bounded by a theorem
            (extra `proof`).
    """

    adjacency: AdjacencyName
    orientation: OrientationName
    tolerance: float
    proof: bool


class Asking(NamedTuple):
    """The checked options of one question; fields as in `Options`."""

    adjacency: Adjacency = Adjacency.ADD_REMOVE
    orientation: Orientation = Orientation.SAME
    tolerance: float = TOLERANCE
    proof: bool = False

    @classmethod
    def read(cls, options: Options, *, unproved: str = "") -> Asking:
        """Return the options, checked, with defaults for those that are absent.

        Args:
            options: The options passed by the caller.
            unproved: The name of a quantity that has no evaluation in ball arithmetic; empty if it
                has one.

        Raises:
            DomainError: If an option is outside its domain.
            UnsupportedError: If `proof` is set for the quantity `unproved`.
        """
        if not options:
            return _DEFAULTS
        checked: dict[str, Any] = {name: _GUARDS[name](value) for name, value in options.items()}
        asking = cls(**checked)
        if unproved and asking.proof:
            reason = f"{unproved} is not offered in ball arithmetic"
            raise UnsupportedError("proof=True", reason, "Ask without proof")
        return asking


_DEFAULTS = Asking()
_GUARDS: dict[str, Callable[[Any], Any]] = {
    "adjacency": lambda value: check.named("adjacency", value, Adjacency),
    "orientation": lambda value: check.named("orientation", value, Orientation),
    "tolerance": lambda value: check.open_probability("tolerance", value),
    "proof": lambda value: check.flag("proof", value),
}
OPTIONS = [
    inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=Asking._field_defaults[name],
        annotation=annotation.__forward_arg__,
    )
    for name, annotation in Options.__annotations__.items()
]
"""The options as parameters of a function signature."""


def asks(
    number: str = "", *, without: tuple[str, ...] = ()
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Return a decorator that shows the options in the signature of a function of `**options`, and
    refuses other keywords.

    Args:
        number: The keyword of the method's number; a positional number raises a TypeError that
            shows the keyword.
        without: The options that the function does not take.
    """

    def decorated(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        shown = [*own, *(each for each in OPTIONS if each.name not in without)]
        accepted = {each.name for each in shown}

        @wraps(function)
        def wrapper(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
            if number and len(arguments) > 1:
                call = f".{function.__name__}({number}={arguments[1]!r})"
                raise TypeError(f"pass the number by name: {call}")
            if not accepted.issuperset(named):
                name = next(name for name in named if name not in accepted)
                reason = f"got an unexpected keyword argument {name!r}"
                raise TypeError(f"{function.__name__}() {reason}")
            return function(*arguments, **named)

        described: Any = wrapper
        described.__signature__ = signature.replace(parameters=shown)
        return wrapper

    return decorated


_SEVERAL_LOSSES, _MANY_LOSSES = 8, 256
_CONVERTED = "parts with a Renyi curve as one pair, by the profile of that curve"


@dataclass(frozen=True)
class PrivacyQuestion:
    """A composition under one adjacency, whose delta, epsilon and Renyi divergences are bounded by
    its methods.

    Args:
        losses: The losses of the composition.
        asking: The orientation, the wanted relative width of epsilon, and whether to evaluate in
            ball arithmetic.
        dominating: One product for each direction: the maximum bounds the truth from above, and
            equals it if `attained` has the same products.
        attained: Products whose maximum bounds the truth from below.
        rounds: The alternatives of each round that an adversary orients; empty if the orientation
            is fixed.
        compared: Whether wide bounds are compared with the elementary theorems.
    """

    losses: Losses
    asking: Asking
    dominating: tuple[Product, ...]
    attained: tuple[Product, ...]
    rounds: Rounds = ()
    compared: bool = True

    @property
    def tolerance(self) -> float:
        """The wanted relative width of epsilon."""
        return self.asking.tolerance

    @property
    def tight(self) -> bool:
        """Whether the upper and the lower end come from the same losses."""
        return self.dominating == self.attained and not self.losses.promises and not self.rounds

    @property
    def tight_alone(self) -> bool:
        """Whether the only pair is attained at every epsilon, by different mechanisms at different
        epsilons.
        """
        single = self.losses.single
        return single is not None and single.tight_alone

    def delta(self, epsilon: float) -> Bound:
        """Return bounds on delta at `epsilon`, the larger of both directions, improved by
        elementary theorems where wide.
        """
        if math.isinf(epsilon):
            return self._at_infinity(epsilon)
        readings = Readings()
        found = self.uncompared(epsilon, readings, for_delta=True)
        wider = wide(found, self.tolerance)
        return self._least(found, epsilon, readings, for_delta=True) if wider else found

    def _least(self, bound: Bound, number: float, readings: Readings, *, for_delta: bool) -> Bound:
        """Return `bound` with the smallest upper end of all theorems about delta at the epsilon
        `number` (`for_delta`), or about epsilon at the delta `number`.
        """
        if self.asking.proof:
            return bound
        theorems, others = self.elementary, list[Bound]()
        if theorems is not None:
            on_lattice = all(product.on_lattice for product in self.dominating + self.attained)
            parts = PartByPart(theorems, number, self.tolerance, for_delta, on_lattice)
            bound = parts.narrower(bound, readings.attained)
            if on_lattice and not loose(bound, POOR):
                return bound
        if not wide(bound, self.tolerance) or (for_delta and number < 0):
            return bound
        if theorems is not None and for_delta:
            bound = least(bound, theorems.beyond(number))
            if not wide(bound, self.tolerance):
                return bound
        if not self.losses.promises and not self._in_closed_form:
            others = self.curve.bounds(
                number,
                for_delta=for_delta,
                upper=bound.upper,
                attained=self._moments_attained,
                start=readings.order(self.dominating[0]),
            )
            others += self._by_curve(number, readings, for_delta)
        if theorems is not None:
            every = theorems.delta if for_delta else theorems.epsilon
            others += every(number, bound)
        return least(bound, others)

    def deltas(self, epsilons: Sequence[float]) -> list[Bound]:
        """Return the bounds of `delta` at several epsilons, in any order; adjacent epsilons share
        numerical work.
        """
        order = sorted({epsilon for epsilon in epsilons if math.isfinite(epsilon)})
        singly = self.losses.promises or len(order) < 8 or self.asking.proof
        if singly or not (self.tight or self.rounds):
            return [self.delta(epsilon) for epsilon in epsilons]
        known = dict(zip(order, self._shared(self.dominating, order), strict=True))
        readings = {at: Readings() for at in order}
        for at, low in (
            zip(order, self._shared(self.attained, order), strict=True) if self.rounds else ()
        ):
            known[at], readings[at].attained = apart([low], known[at]), low.upper
        known = {
            at: self._least(bound, at, readings[at], for_delta=True)
            if wide(bound, self.tolerance)
            else bound
            for at, bound in known.items()
        }
        return [known[epsilon] if epsilon in known else self.delta(epsilon) for epsilon in epsilons]

    def _shared(self, products: tuple[Product, ...], order: Sequence[float]) -> list[Bound]:
        """Return bounds on the larger delta of the products at the increasing epsilons `order`."""
        rows = [product.deltas(order, tolerance=self.tolerance) for product in products]
        return [greatest([row[at] for row in rows]) for at in range(len(order))]

    def epsilon(self, delta: float) -> Bound:
        """Return bounds on epsilon at `delta` in nats, the larger of both directions, improved by
        elementary theorems where wide.
        """
        readings = Readings()
        found = self.uncompared(delta, readings, for_delta=False)
        if wide(found, self.tolerance):
            return self._least(found, delta, readings, for_delta=False)
        exact = self.asking.proof or (delta == 0 and not self.rounds)
        if (
            not exact
            and self.compared
            and not self.losses.promises
            and self._at_the_top(found.upper)
        ):
            return least(found, largest_losses(self.losses, delta, upper=found.upper))
        return found

    def uncompared(
        self, number: float, readings: Readings | None = None, *, for_delta: bool
    ) -> Bound:
        """Return bounds on delta at epsilon = `number` (`for_delta`) or on epsilon at delta =
        `number`, without elementary theorems.
        """
        readings = Readings() if readings is None else readings
        if self.losses.promises:
            found = self._by_curve(number, readings, for_delta)
            known = found[0].upper if found else math.inf
            found += self.curve.bounds(number, for_delta=for_delta, upper=known, attained=False)
            return self._below(min(found, key=attrgetter("upper")), number, readings, for_delta)
        upper = greatest(self._read(self.dominating, number, readings, for_delta))
        return upper if self.tight else self._below(upper, number, readings, for_delta)

    def attained_end(
        self, number: float, least: float, readings: Readings, *, for_delta: bool
    ) -> float:
        """Return the lower end of `uncompared`, or `least` if that is larger."""
        point = (number, least) if for_delta else (least, number)
        if all(product.at_most(*point) for product in self.attained):
            return least
        bounds = self._read(self.attained, number, readings, for_delta)
        return max([least, *(bound.lower for bound in bounds)])

    def _below(self, upper: Bound, number: float, readings: Readings, for_delta: bool) -> Bound:
        """Return the upper end with the lower end of the attained products.

        Args:
            upper: The bound whose upper end is taken.
            number: The epsilon (`for_delta`) or delta of the bound.
            readings: The intermediate results to share; their `attained` is set.
            for_delta: Whether delta is bounded.
        """
        bounds = self._read(self._leading(readings), number, readings, for_delta)
        readings.attained = max([bound.upper for bound in bounds], default=math.inf)
        return apart(bounds, upper)

    def _leading(self, readings: Readings) -> tuple[Product, ...]:
        """Return the attained products, the one with the largest moment at the order of the upper
        end first.

        It probably has the largest answer, and the others are then shown to be below it. With many
        losses only this product is returned; with few losses the order is left as it is.
        """
        order = readings.order((self._converted or self.dominating)[0])
        if len(self.losses.pairs) < _SEVERAL_LOSSES or order is None or len(self.attained) < 2:
            return self.attained
        found = sorted(self.attained, key=lambda product: -product.transform.cumulants(order)[0])
        return tuple(found if len(self.losses.pairs) < _MANY_LOSSES else found[:1])

    def _at_the_top(self, epsilon: float) -> bool:
        """Return whether `epsilon` is close to the sum of the largest losses, whose exact sum may
        be smaller by a rounding.
        """
        for product in self.dominating:
            if not epsilon < 0.999999 * product.roughly_largest:
                return epsilon > 0
        return False

    @property
    def _moments_attained(self) -> bool:
        """Whether one pair of neighbors attains all losses, and so also their Renyi divergences."""
        return self.tight and not self.tight_alone

    @property
    def _in_closed_form(self) -> bool:
        """Whether every upper end is a closed-form profile that Renyi divergences cannot
        improve.
        """
        return all(
            product.single is not None
            and (self.tight_alone or all(_says_all(loss) for loss, _ in product.group))
            for product in self.dominating
        )

    def _by_curve(self, number: float, readings: Readings, for_delta: bool) -> list[Bound]:
        """Return the bound from the converted Renyi curves; empty if there are none."""
        products = self._converted
        found = self._read(products, number, readings, for_delta) if products else []
        return [_named(greatest(found))] if found else []

    @cached_property
    def _converted(self) -> tuple[Product, ...]:
        """The products in which the parts with tighter Renyi curves are one pair; empty if this
        replaces no part or all losses.
        """
        promises = self.losses.promised
        rounds = self.rounds or tuple(
            ((pair.remove, pair.add), times) for pair, times in self.losses.pairs
        )
        kept = [len(set(losses)) > 1 or not curved(losses[0]) for losses, _ in rounds]
        if not any(kept) or (all(kept) and not promises):
            return ()
        group = tuple(
            (losses[0], times)
            for (losses, times), keep in zip(rounds, kept, strict=True)
            if not keep
        )
        one = converted(group, promises)
        if self.rounds:
            rest = tuple(entry for entry, keep in zip(rounds, kept, strict=True) if keep)
            return (above_every_choice((*rest, *(((loss,), times) for loss, times in one))),)
        pairs = tuple(entry for entry, keep in zip(self.losses.pairs, kept, strict=True) if keep)
        return directions((*pairs, *((Pair(loss, loss), times) for loss, times in one)))

    def _read(
        self, products: tuple[Product, ...], number: float, readings: Readings, for_delta: bool
    ) -> list[Bound]:
        """Return bounds on delta at epsilon = `number` (`for_delta`), or on epsilon at delta =
        `number`, for the products, without those that are shown to be below the first.
        """
        if number == 1 and not for_delta:
            return [Bound(0.0, 0.0, Certificate("delta is 1"))]
        found: list[Bound] = []
        for product in products:
            most = found[0].lower if found else 0.0
            point = (number, most) if for_delta else (most, number)
            if not found or not product.at_most(*point, readings=readings):
                bound = product.delta if for_delta else product.epsilon
                found.append(bound(number, tolerance=self.tolerance, readings=readings))
        both = len(found) == len(products) == 2 and self.tight and not self.asking.proof
        return with_the_other_order(products, number, found) if both and not for_delta else found

    def _at_infinity(self, epsilon: float) -> Bound:
        """Return bounds on delta at an infinite `epsilon`."""
        if epsilon < 0:
            return Bound(1.0, 1.0, Certificate("epsilon is -inf"))
        ends = [product.infinite for product in self.dominating] or [Bound(0.0, 0.0)]
        lost = 1.0 if self.losses.promises else max(end.upper for end in ends)
        low = max((product.infinite.lower for product in self.attained), default=0.0)
        return Bound(low, max(lost, low), Certificate("probability of an infinite loss"))

    @cached_property
    def elementary(self) -> Elementary | None:
        """The elementary theorems with which a wide bound is compared; None if it is not."""
        if not self.compared:
            return None
        again = self.asking._replace(proof=False)
        return Elementary(self.losses, lambda losses: directed(losses, again))

    @property
    def curve(self) -> RenyiCurve:
        """The bounds on the Renyi divergences of the composition."""
        return self._curve

    @cached_property
    def _curve(self) -> RenyiCurve:
        exact = not self.tight_alone and self.losses.samples_attained
        return RenyiCurve(
            self.dominating,
            self.losses.promised,
            rounds=self.rounds,
            samples=self._samples,
            exact=exact,
        )

    def _samples(self) -> Samples:
        return self.elementary.samples if self.elementary else ()

    def renyi(self, order: float) -> Bound:
        """Return bounds on the Renyi divergence of `order`, the larger of both directions, in nats.

        Raises:
            DomainError: If the order is not a finite number above 1.
        """
        # If different mechanisms attain a pair at different epsilons, its moments are attained by
        # none of them.
        attained = attained_directions(self.losses.pairs) if self.tight_alone else self.attained
        return self.curve.enclosed(check.order(order), attained=attained)


def ask(parts: Parts, asking: Asking) -> PrivacyQuestion:
    """Return the question about the losses of these parts, in both directions.

    Args:
        parts: The mechanisms with their counts.
        asking: The options.

    Raises:
        UnsupportedError: If parts have no sound losses under the adjacency (all are named), or no
            proof is offered.
    """
    return directed(gathered(parts, asking.adjacency, summed=not asking.proof), asking)


def proved(products: tuple[Product, ...], losses: Losses) -> tuple[Product, ...]:
    """Return the products for evaluation in ball arithmetic.

    Args:
        products: The products for evaluation in floats.
        losses: The losses of the composition.

    Raises:
        UnsupportedError: If a part only states a Renyi curve.
    """
    if losses.promises:
        raise UnsupportedError(
            "proof=True",
            f"{losses.promises[0][0].label} is known only by its Renyi curve, which is converted in floats",
            "Ask without proof",
        )
    return tuple(ProvedProduct(product.group) for product in products)


def directed(losses: Losses, asking: Asking, alternatives: Rounds | None = None) -> PrivacyQuestion:
    """Return the question about these losses, in both directions.

    Args:
        losses: The losses of the composition.
        asking: The options, with the adjacency of the losses.
        alternatives: The losses that each round may have; None if each round has its pair's two
            orders.
    """
    pairs, single = losses.pairs, losses.single
    if single and single.either_order:
        dominating = attained = attained_directions(pairs)
    else:
        dominating = attained = directions(pairs)
        if not (single and single.tight_alone) and False in [pair.attained for pair, _ in pairs]:
            attained = attained_directions(pairs)
    if losses.promises:
        pairs = (*pairs, *attained_promises(losses.promised))
        attained = attained_directions(pairs)
    rounds: Rounds = ()
    if asking.orientation is Orientation.FREE:
        if alternatives is None:
            alternatives = tuple(((pair.remove, pair.add), times) for pair, times in losses.pairs)
        rounds = oriented(alternatives, complete=not losses.promises)
    if rounds:
        dominating, attained = (
            (above_every_choice(rounds),),
            attained_directions(pairs, adversary=True),
        )
    if asking.proof:
        if rounds:
            refuse_oriented_proof()
        dominating, attained = proved(dominating, losses), proved(attained, losses)
    return PrivacyQuestion(losses, asking, dominating, attained, rounds=rounds)


def _says_all(loss: Loss) -> bool:
    """Return whether the loss's own moments are the smallest known of any mechanism it
    dominates.
    """
    lost = loss.infinite_mass + loss.unplaced_mass > 0
    return not curved(loss) and not (lost and loss.log_moment(1.0) < math.inf)


def _named(bound: Bound) -> Bound:
    """Return the bound with a certificate that also names the converted Renyi curve."""
    certificate = bound.certificate
    return replace(
        bound, certificate=replace(certificate, method=f"{certificate.method}; {_CONVERTED}")
    )
