"""Primitives: the calls by which a mechanism says what it does, recorded, or forced to answer as they did before."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from dpcompose import check
from dpcompose.audit import model
from dpcompose.audit.model import Law
from dpcompose.audit.outcome import Reals, read
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace, RandomizedResponse


class Norm(Enum):
    """How far apart two inputs of a primitive are."""

    L1 = "l1"
    """The sum of the changes."""
    L2 = "l2"
    """The root of the sum of their squares."""
    LINF = "linf"
    """The largest change."""
    ANY = "any"
    """1 if they differ at all."""

    def distance(self, one: Any, other: Any) -> float:
        """The distance; infinite where shapes differ or a number is NaN."""
        if self is Norm.ANY:
            return 0.0 if read(one) == read(other) else 1.0
        try:
            first, second = (np.asarray(each, dtype=np.float64) for each in (one, other))
        except (TypeError, ValueError, OverflowError):
            return math.inf
        if first.shape != second.shape:
            return math.inf
        with np.errstate(invalid="ignore", over="ignore"):
            moved: Reals = np.abs(np.where(first == second, 0.0, first - second)).reshape(-1)
        match self:
            case Norm.L1:
                found = math.fsum(moved.tolist()) if np.all(np.isfinite(moved)) else math.inf
            case Norm.L2:
                found = math.hypot(*moved.tolist())
            case _:
                found = float(np.max(moved, initial=0.0))
        return math.inf if math.isnan(found) or bool(np.any(np.isnan(moved))) else found


@dataclass(frozen=True)
class Call:
    """One call of a primitive.

    Args:
        name: Its name, with its parameters.
        mechanism: What it costs, if inputs are as far apart as declared.
        sensitivity: How far one step of the adjacency moves its input, as declared.
        norm: In which norm.
        input: Its input.
        output: Its output.
        law: The law of output - input, where it adds noise.
    """

    name: str
    mechanism: Composable
    sensitivity: float
    norm: Norm
    input: Any
    output: Any = None
    law: Law | None = None

    @property
    def described(self) -> tuple[str, str, float, Norm]:
        """All that is said of it before it is run."""
        return self.name, repr(self.mechanism), self.sensitivity, self.norm

    @property
    def words(self) -> str:
        """The description in words."""
        return f"{self.name}, sensitivity {self.sensitivity:g} ({self.norm.value})"


class OtherCallError(BaseException):
    """A call that was not made before: the run ends, and no `except Exception` keeps it going."""


class Primitives:
    """The second argument of a mechanism that describes itself: all its randomness goes through here.

    Noise is drawn in floats: for audits, not for releases. A mechanism's own sampler is called by `call`.

    Args:
        forced: The calls of an earlier run, whose outputs come again; None draws and records.
    """

    def __init__(self, forced: Sequence[Call] | None = None) -> None:
        self.calls: list[Call] = []
        self.forced = forced
        self.differs = ""

    def laplace(self, value: Any, *, scale: float, sensitivity: float = 1.0) -> Any:
        """A number, or an array, with Laplace noise on each coordinate; the sensitivity is in l1."""
        scale, law = check.positive("scale", scale), model.laplace(scale)
        return self.call(
            f"Laplace noise of scale {scale:g}", lambda: _added(value, lambda rng, n: rng.laplace(scale=scale, size=n)),
            value, mechanism=Laplace(scale, sensitivity=sensitivity), sensitivity=sensitivity, norm=Norm.L1, law=law,
        )  # fmt: skip

    def gaussian(self, value: Any, *, sigma: float, sensitivity: float = 1.0) -> Any:
        """A number, or an array, with normal noise on each coordinate; the sensitivity is in l2."""
        sigma, law = check.positive("sigma", sigma), model.gaussian(sigma)
        return self.call(
            f"Gaussian noise of sigma {sigma:g}", lambda: _added(value, lambda rng, n: rng.normal(scale=sigma, size=n)),
            value, mechanism=Gaussian(sigma, sensitivity=sensitivity), sensitivity=sensitivity, norm=Norm.L2, law=law,
        )  # fmt: skip

    def discrete_laplace(self, value: Any, *, scale: float, sensitivity: int = 1) -> Any:
        """An integer, or an array of them, with discrete Laplace noise; the sensitivity is in l1."""
        scale, law = check.positive("scale", scale), model.discrete_laplace(scale)
        rate = -math.expm1(-1 / scale)

        def noise(rng: np.random.Generator, n: int) -> Reals:
            return (rng.geometric(rate, n) - rng.geometric(rate, n)).astype(np.float64)

        return self.call(
            f"discrete Laplace noise of scale {scale:g}", lambda: _added(value, noise), value,
            mechanism=DiscreteLaplace(scale, shift=sensitivity), sensitivity=sensitivity, norm=Norm.L1, law=law,
        )  # fmt: skip

    def randomized_response(self, value: bool, *, epsilon: float) -> bool:
        """A truth value, told truly with probability 1 / (1 + e^-epsilon)."""
        mechanism = RandomizedResponse(epsilon)
        return self.call(
            f"randomized response at epsilon {epsilon:g}",
            lambda: bool(value) ^ (_rng.random() > 1 / (1 + math.exp(-epsilon))),
            bool(value), mechanism=mechanism, sensitivity=1.0, norm=Norm.ANY,
        )  # fmt: skip

    def choice(self, scores: Any, *, epsilon: float, sensitivity: float = 1.0) -> int:
        """The place of a high score, by the exponential mechanism; one step moves no score by more."""
        weights = np.asarray(scores, dtype=np.float64) * (epsilon / (2 * sensitivity))

        def chosen() -> int:
            return int(np.argmax(weights + _rng.gumbel(size=weights.shape)))

        return self.call(
            f"exponential mechanism at epsilon {epsilon:g}", chosen, scores,
            mechanism=Exponential(epsilon), sensitivity=sensitivity, norm=Norm.LINF,
        )  # fmt: skip

    def call(
        self, name: str, draw: Callable[[], Any], value: Any, *, mechanism: Composable, sensitivity: float,
        norm: Norm = Norm.L1, law: Law | None = None,
    ) -> Any:  # fmt: skip
        """Any primitive.

        Args:
            name: Its name, with its parameters.
            draw: Draws its output; not called where outputs are forced.
            value: Its input.
            mechanism: What it costs where inputs are at most the sensitivity apart.
            sensitivity: How far one step of the adjacency moves the input.
            norm: In which norm.
            law: The law of output - input, where it adds noise.
        """
        if not isinstance(mechanism, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("mechanism", mechanism, "a mechanism, such as Laplace(2.0)")
        check.positive("sensitivity", sensitivity)
        made = Call(name, mechanism, float(sensitivity), norm, _copied(value), law=law)
        if self.forced is None:
            made = replace(made, output=draw())
        else:
            place = len(self.calls)
            before = self.forced[place] if place < len(self.forced) else None
            if before is None or before.described != made.described:
                self.differs = f"call {place + 1} is {made.words}, and {'none' if before is None else before.words} before"
                raise OtherCallError
            made = replace(made, output=before.output)
        self.calls.append(made)
        return _copied(made.output)


_rng = np.random.default_rng()


def _added(value: Any, noise: Callable[[np.random.Generator, int], Reals]) -> Any:
    exact = np.asarray(value, dtype=np.float64)
    drawn = exact + noise(_rng, exact.size).reshape(exact.shape)
    return drawn if exact.ndim else float(drawn)


def _copied(value: Any) -> Any:
    """A value as it is now: what becomes of it later changes no record."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value
