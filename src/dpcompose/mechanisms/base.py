"""The base classes of mechanisms. A subclass of `Mechanism` states its laws under each adjacency.

`Stated` adds a guarantee stated under one adjacency, `ContinuousNoise` the scale of a noise.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, ClassVar, Self

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import Laws
from dpcompose.mechanisms.composable import Composable, ComposablePart
from dpcompose.mechanisms.parameter import SENSITIVITY, arguments_of, declare, text_of
from dpcompose.values import Adjacency, exact, larger_reading, smaller_reading


class Mechanism(ComposablePart):
    """A mechanism: its class states its laws under each adjacency, from which composition and
    sampling follow.
    """

    closed_form: ClassVar[bool] = False
    """Whether formulas give its costs from its parameters, so that charging needs no search."""

    covered: ClassVar[tuple[Adjacency, ...]] = tuple(Adjacency)
    """The adjacencies under which losses are known; errors about others name `elsewhere`."""
    elsewhere: ClassVar[str] = ""
    not_sampled: ClassVar[tuple[str, str] | None] = None
    """The reason and remedy in errors if no losses on a Poisson sample are known; else None."""

    def _accept(self, adjacency: Adjacency) -> None:
        """Raise an UnsupportedError if no losses are known under `adjacency`."""
        if adjacency not in self.covered:
            names = " and ".join(each.value for each in self.covered)
            reason = f"its losses are stated under {names} and say nothing under {adjacency.value}"
            raise UnsupportedError(repr(self), reason, self.elsewhere)

    def __post_init__(self) -> None:
        """Check each field by its declaration; raises a DomainError for a value outside its
        domain.
        """
        for name, argument in arguments_of(type(self)).items():
            value = argument.parameter.domain(name, argument.value(self))
            object.__setattr__(self, name, value)

    def _checked(self, **arguments: object) -> dict[str, Any]:
        """Return the constructor's arguments by name, each checked by its declaration."""
        declared = arguments_of(type(self))
        return {
            name: declared[name].parameter.domain(name, value) for name, value in arguments.items()
        }

    def _state(self, **arguments: object) -> None:
        """Set the fields that hold the constructor's arguments, each checked by its declaration."""
        declared = arguments_of(type(self))
        for name, value in self._checked(**arguments).items():
            object.__setattr__(self, declared[name].field, value)

    def __repr__(self) -> str:
        """Return the call that constructs this mechanism, without keyword arguments at their
        default.
        """
        stated: list[str] = []
        for name, argument in arguments_of(type(self)).items():
            value = argument.value(self)
            if not argument.keyword:
                stated.append(text_of(value))
            elif value != argument.default and value != ():  # an empty tuple is left out
                stated.append(f"{name}={text_of(value)}")
        return f"{type(self).__name__}({', '.join(stated)})"

    @abstractmethod
    def laws(self, adjacency: Adjacency) -> Laws | None:
        """Return the laws of the losses under `adjacency`; None if only a Renyi curve is stated.

        Raises:
            UnsupportedError: If no sound losses are known under the adjacency.
        """

    @property
    def label(self) -> str:
        """The name of this mechanism in reports: its repr."""
        return repr(self)

    def typed(self, *, adjacency: Adjacency) -> TypedAmounts | None:
        check.member("adjacency", adjacency, Adjacency)
        return self._amounts(adjacency) if _states_its_own(type(self)) else None

    def costlier(self) -> Composable:
        found = self._costlier() if _states_its_own(type(self)) else self
        return self if found == self else found

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts | None:
        """Return the exact privacy amounts from the typed decimals, or None if there are none."""
        return None

    def _costlier(self) -> Mechanism:
        """Return this mechanism, or an equal one, with every argument as double or decimal,
        whichever costs more.
        """
        values = {
            name: (argument.parameter, argument.value(self))
            for name, argument in arguments_of(type(self)).items()
        }
        read = {name: parameter.costlier(value) for name, (parameter, value) in values.items()}
        changed = any(read[name] != value for name, (_, value) in values.items())
        return type(self)(**read) if changed else self

    def sampled_laws(self, rate: float, adjacency: Adjacency) -> Laws | None:
        """Return None: the laws on a Poisson sample are those of the mixture of the mechanism's own
        pairs.

        Raises:
            UnsupportedError: If `not_sampled` says why there are none, or the adjacency is REPLACE;
                subclasses with sound laws override this method.
        """
        if self.not_sampled:
            raise UnsupportedError(f"{self!r}.sampled({rate!r})", *self.not_sampled)
        if adjacency is Adjacency.REPLACE:
            raise UnsupportedError(
                f"{self!r}.sampled({rate!r})",
                "no sound pair is known for a sampled mechanism when a record is replaced",
                "State it under add-remove, or take the looser group of two of its add-remove guarantee",
            )
        return None


class Stated(Mechanism):
    """A mechanism whose losses or guarantee are stated under one adjacency, `holds_under`."""

    holds_under: Adjacency
    event: ClassVar[tuple[str, Mapping[str, str | float]] | None] = None
    """The name of the equal dp_accounting event, and for each field its parameter or number."""

    def _require(self, adjacency: Adjacency) -> None:
        """Raise an UnsupportedError unless `adjacency` is the one of the stated guarantee."""
        if adjacency is not self.holds_under:
            raise self._unstated(adjacency)

    def _unstated(self, adjacency: Adjacency) -> UnsupportedError:
        """Return the error for an adjacency that the stated guarantee does not cover."""
        return UnsupportedError(
            f"{self!r}",
            f"its guarantee is stated under {self.holds_under.value} and says nothing under {adjacency.value}",
            f"State it with holds_under=Adjacency.{adjacency.name} if that is what is known",
        )

    def _doubled(self, adjacency: Adjacency) -> bool:
        """Return whether `adjacency` replaces a record while the guarantee is stated under
        add-remove, as for a group of two.

        Raises:
            UnsupportedError: If the stated guarantee does not cover the adjacency.
        """
        if adjacency is self.holds_under:
            return False
        if self.holds_under is Adjacency.ADD_REMOVE and adjacency is Adjacency.REPLACE:
            return True
        raise self._unstated(adjacency)


@dataclass(frozen=True, repr=False)
class ContinuousNoise(Mechanism):
    """Continuous noise of one scale on each coordinate. A subclass adds the scale as its only
    positional field.

    Args:
        sensitivity: The largest distance of the outputs without noise when a record is added or
            removed; finite, > 0.
        replace_sensitivity: The largest distance when a record is replaced; None: twice the
            sensitivity.
    """

    _: KW_ONLY
    sensitivity: float = field(default=1.0, metadata=declare(SENSITIVITY))
    replace_sensitivity: float | None = field(
        default=None, metadata=declare(SENSITIVITY.optional())
    )
    noise_name: ClassVar[str]
    """The name of the field with the scale of the noise."""

    @property
    def _noise(self) -> float:
        """The scale of the noise."""
        return getattr(self, self.noise_name)

    def __post_init__(self) -> None:
        noise: Any = self._noise
        # A fast path, since there may be thousands of mechanisms and most need no conversion.
        plain = (
            self.replace_sensitivity is None
            and type(noise) is float
            and type(self.sensitivity) is float
        )
        if plain and self.sensitivity == 1.0 and 1e-5 < noise < 1e11:
            return
        noise = check.positive(self.noise_name, noise)
        one = check.positive("sensitivity", self.sensitivity)
        if not 1e-12 < one / noise < 1e6:
            domain = f"sensitivity / {self.noise_name} between 1e-12 and 1e6, not {one / noise!r}"
            raise DomainError(self.noise_name, noise, domain)
        set_fields(self, **{self.noise_name: noise, "sensitivity": one})
        if self.replace_sensitivity is None:
            return
        two = check.positive("replace_sensitivity", self.replace_sensitivity)
        if not two <= 2 * one:
            raise DomainError("replace_sensitivity", two, f"at most twice the sensitivity {one!r}")
        if not two / noise > 1e-12:
            raise DomainError(
                "replace_sensitivity", two, f"more than 1e-12 times the {self.noise_name} {noise!r}"
            )
        set_fields(self, replace_sensitivity=two)

    def sensitivity_under(self, adjacency: Adjacency) -> float:
        """Return the sensitivity under an adjacency; under replacement at most twice
        `sensitivity`.
        """
        if adjacency is Adjacency.REPLACE:
            return (
                2 * self.sensitivity
                if self.replace_sensitivity is None
                else self.replace_sensitivity
            )
        return self.sensitivity

    def _quotient(self, adjacency: Adjacency) -> Fraction:
        """Return the exact sensitivity divided by the scale of the noise, each as double or
        decimal, whichever makes it larger.
        """
        return quotient(self._noise, self.sensitivity, self.replace_sensitivity, adjacency)

    def _costlier(self) -> Self:
        """Return this noise with every argument as double or decimal, whichever costs more; the
        replace sensitivity stays within twice the sensitivity.
        """
        noise, one = smaller_reading(self._noise), larger_reading(self.sensitivity)
        two = self.replace_sensitivity
        two = None if two is None else min(larger_reading(two), 2 * one)
        return dataclasses.replace(
            self, sensitivity=one, replace_sensitivity=two, **{self.noise_name: noise}
        )


@cache
def _states_its_own(kind: type[Mechanism]) -> bool:
    """Return whether the exact amounts of a class are those of its own laws; False if a subclass
    overrides only the laws.
    """
    stating, losing = (
        next(each for each in kind.__mro__ if names & vars(each).keys())
        for names in ({"_amounts"}, {"laws", "pairs"})
    )
    return issubclass(stating, losing)


def set_fields(target: object, **values: object) -> None:
    """Set fields of a frozen object during its construction, bypassing its `__setattr__`."""
    for name, value in values.items():
        object.__setattr__(target, name, value)


@lru_cache(maxsize=1 << 12)
def quotient(
    noise: float,
    sensitivity: float,
    replace_sensitivity: float | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
) -> Fraction:
    """Return sensitivity / noise as an exact fraction, each read as its double or decimal,
    whichever makes it larger.
    """
    reach = max(exact(sensitivity), Fraction(sensitivity))
    if adjacency is Adjacency.REPLACE:
        reach *= 2
        if replace_sensitivity is not None:
            reach = min(reach, max(exact(replace_sensitivity), Fraction(replace_sensitivity)))
    return reach / min(exact(noise), Fraction(noise))


def rounded(divisor: float) -> int:
    """Return the error of a quotient by `divisor` in units of roundoff: 0 for a power of two, else
    1.
    """
    return 0 if math.frexp(divisor)[0] == 0.5 else 1
