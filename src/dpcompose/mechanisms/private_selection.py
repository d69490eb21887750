"""Private selection: the best of a random number of runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.law import (
    NOTHING,
    AtomsAbove,
    AtomsOfParts,
    Laws,
    Pair,
    Reversed,
    bounded_by,
)
from dpcompose.mechanisms.base import Mechanism
from dpcompose.mechanisms.composable import Composable, ComposablePart
from dpcompose.mechanisms.parameter import Parameter, declare
from dpcompose.values import UNIT_ROUNDOFF, Adjacency

MOST_TRIES, FARTHEST, NODES, LAST_DELTA = 1e6, 300.0, 600, 1e-100
_EXPONENTS = (1.0, 4.0, 16.0, 64.0, 256.0)
_ROUNDING = 1 + 64 * UNIT_ROUNDOFF


def _base(name: str, value: Any) -> Composable:
    base = value * 1 if isinstance(value, Composable) else None
    if base is None or not base.parts:
        raise DomainError(name, value, "a mechanism or a composition, such as Gaussian(1.0) * 3")
    return base


def _shape(name: str, value: Any) -> float:
    shape = check.real(name, value)
    if not (0 <= shape <= 100 or shape == math.inf):
        domain = "a number in [0, 100], or inf for a Poisson number of tries"
        raise DomainError(name, shape, domain)
    return shape


@dataclass(frozen=True, repr=False)
class PrivateSelection(Mechanism):
    """The run with the best score, of K runs of one mechanism; K is drawn independently of the data
    and not released.

    The score is part of a run's output; ties are broken independently of the data. An example is
    hyperparameter tuning: every run draws its parameters at random, by a law that does not depend
    on the data.

    The upper end is close to the truth at small delta; at epsilon from 0.5 to 2 it may be many
    times the truth. The lower end is that of one run, for finite shapes.

    >>> from dpcompose import BlackBox
    >>> from dpcompose.mechanisms import PrivateSelection
    >>> PrivateSelection(BlackBox(0.1), tries=20.0, shape=1.0).epsilon(delta=0.0).upper < 0.3 + 1e-9
    True

    Args:
        base: The mechanism or composition of one run.
        tries: The mean of K; from 1e-9 to 10^6, and at least 1 for a finite shape.
        shape: The law of K: Poisson (inf), where K = 0 releases nothing; geometric (1); logarithmic
            (0); otherwise truncated negative binomial, in [0, 100]. At finite shapes K >= 1.

    Raises:
        DomainError: If a parameter is outside its domain.

    Reference: [PapernotSteinke2022, Definition 1]
    """

    # Proof. Let g be the generating function of K, P and Q the laws of a run, F their distribution
    # functions in the order of the scores (ties broken by a coin). The best has densities p g'(F_P)
    # and q g'(F_Q), and g' <= g'(1) = E K. If g'(F_P) <= R g'(F_Q), then delta(epsilon) <= E K
    # delta_base(epsilon - ln R). Sets of lowest scores are tests of P and Q, so R is known from
    # delta_base alone: for Poisson K it is e^(m delta_base(0)), m the mean; for g' proportional to
    # (1 - c x)^-(shape + 1), c = 1 - gamma, it is e^((shape + 1) r) at the r with delta_base(r) =
    # (e^r - 1) gamma / c, because 1 - c x <= e^r (1 - c y) for all x = F_Q and y = F_P says that
    # delta_base(-r) <= (1 - e^-r) / c.

    base: Composable = field(metadata=declare(Parameter("mechanism", _base)))
    _: KW_ONLY
    tries: float = field(metadata=declare(Parameter("amount", check.positive, "increasing")))
    shape: float = field(default=math.inf, metadata=declare(Parameter("number", _shape)))
    not_sampled = (
        "a selection on one sample has no pair of its own",
        "Sample the base: PrivateSelection(base.sampled(rate), ...)",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        least = 1e-9 if self.shape == math.inf else 1.0
        if not least <= self.tries <= MOST_TRIES:
            raise DomainError(
                "tries", self.tries, "a mean from 1e-9 to 10^6, for a finite shape from 1 on"
            )

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return atoms that dominate the profile, the same in both orders."""
        return _selected(self, check.member("adjacency", adjacency, Adjacency))

    def require_any_size(self, question: str) -> None:
        for part, _ in (self.base * 1).parts:
            part.require_any_size(question)


@lru_cache(maxsize=64)
def _selected(selection: PrivateSelection, adjacency: Adjacency) -> Laws:
    """Return the law of atoms that dominate the profile of a selection, with the attained losses of
    one run.
    """
    base, tries, shape = selection.base * 1, selection.tries, selection.shape
    if tries == 1 and shape < math.inf:
        found = [part.pairs(adjacency) for part, _ in base.parts]
        if None not in found:
            rows = zip(found, base.parts, strict=True)
            return tuple(
                (Pair(*pair), count * times)
                for pairs, (_, times) in rows
                for pair, count in pairs or ()
            )
    curve = base.profile(adjacency=adjacency)

    def delta(epsilons: np.ndarray) -> np.ndarray:
        return np.asarray(curve(epsilons).upper)

    gamma, most = (1.0, tries) if shape == math.inf else _gamma(tries, shape)
    ratio = (
        tries * float(delta(np.zeros(1))[0])
        if shape == math.inf
        else _log_ratio(delta, gamma, shape)
    ) * _ROUNDING
    if not ratio < FARTHEST:
        raise UnsupportedError(
            repr(selection), "no useful bound is known", "Use fewer tries, or a more private base"
        )
    largest, far = (
        base.pure(adjacency=adjacency),
        base.epsilon(delta=LAST_DELTA, adjacency=adjacency).upper,
    )
    last = min(far if largest is None else largest, FARTHEST - ratio) + ratio
    last += 256 * UNIT_ROUNDOFF * (1 + last)
    fine = np.concatenate(
        [ratio * np.linspace(0, 1, 40), ratio + (last - ratio) * np.linspace(0, 1, NODES) ** 2]
    )
    nodes = np.unique(np.minimum(fine, last))
    values = np.minimum(
        most * _ROUNDING * delta(nodes - ratio - 64 * UNIT_ROUNDOFF * (1 + nodes)), 1.0
    )
    if largest is not None and largest < FARTHEST - ratio:
        values[-1] = 0.0
    poisson = tries if shape == math.inf else 0.0
    moment = SelectionMoment(base, adjacency, ratio, math.log(most * _ROUNDING), poisson)
    law = AtomsAbove(tuple(nodes.tolist()), tuple(values.tolist()), moment)
    return bounded_by(law, *_one_run(base.parts, adjacency, shape))


@dataclass(frozen=True)
class SelectionMoment:
    """The log moment of a selection, as a function of the exponent.

    With g'(F_P) <= R g'(F_Q) and g' <= E K the sum of (p g'(F_P))^a (q g'(F_Q))^(1 - a) is at most
    R^(a - 1) E K times that of p^a q^(1 - a); releasing nothing adds its probability. For Poisson K
    of mean m the exponent is m (a F_P - (a - 1) F_Q - 1) = m (a - 1) (Q(better) - a / (a - 1)
    P(better)), at most m (a - 1) delta at epsilon = ln(a / (a - 1)), so that m times this delta may
    replace ln R.

    Args:
        base: The mechanism or composition of one run.
        adjacency: The adjacency of the losses.
        ratio: ln R, rounded up.
        log_most: ln E K, rounded up.
        poisson: The mean of K if it is Poisson; 0 for another law.
    """

    base: Composable
    adjacency: Adjacency
    ratio: float
    log_most: float
    poisson: float

    def __call__(self, exponent: float) -> float:
        # A divergence grows with its order, and the additive constant matters less at large orders.
        """Return an upper bound on the log moment at `exponent`."""
        others = [each for each in _EXPONENTS if each > exponent]
        return min(self._at(each) * (exponent / each) for each in (exponent, *others)) * _ROUNDING

    def _at(self, exponent: float) -> float:
        divergence, ratio = (
            self.base.renyi(1 + exponent, adjacency=self.adjacency).upper,
            self.ratio,
        )
        nothing = math.exp(-self.poisson) * _ROUNDING if self.poisson else 0.0
        if self.poisson:
            level = math.log1p(1 / exponent) * (1 - 16 * UNIT_ROUNDOFF)
            ratio = min(
                ratio, self.poisson * self.base.delta(epsilon=level, adjacency=self.adjacency).upper
            )
        found = (exponent * (divergence + ratio * _ROUNDING) + self.log_most) * _ROUNDING
        return max(found, 0.0) + math.log1p(nothing * math.exp(-max(found, 0.0))) * _ROUNDING


def _one_run(
    parts: tuple[tuple[ComposablePart, int], ...], adjacency: Adjacency, shape: float
) -> tuple[Pair, ...]:
    """Return the attained losses of one run, to which a selection with equal scores is equivalent
    if K >= 1.

    They are those of no information if K may be 0, or if the losses of a part are not attained.
    Those of several mechanisms are atoms that the sum of their losses dominates.
    """
    found = [(part.pairs(adjacency), times) for part, times in parts]
    rows = [(Pair(*pair), count * times) for pairs, times in found for pair, count in pairs or ()]
    if shape == math.inf or any(pairs is None for pairs, _ in found):
        return (NOTHING,)
    if len(rows) == 1 and rows[0][1] == 1:
        pair = rows[0][0]
        return (pair,) if pair.attained else pair.attained_parts or (NOTHING,)
    if not all(pair.attained for pair, _ in rows):
        return (NOTHING,)
    law = AtomsOfParts(tuple(rows))
    return (Pair(law, Reversed(law)),)


def _gamma(tries: float, shape: float) -> tuple[float, float]:
    """Return a lower bound on the gamma at which K has mean `tries`, and the mean that belongs to
    it, at most 1e-9 larger.
    """
    if tries == 1:
        return 1.0, 1.0
    if shape == 1:
        return 1 / tries * (1 - 4 * UNIT_ROUNDOFF), tries * _ROUNDING
    low, high = -40.0, -1e-9  # bounds on ln gamma
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(middle, shape) > tries else (low, middle)
    return math.exp(low) * (1 - 1e-10), _mean(low, shape) * (1 + 1e-9)


def _mean(log_gamma: float, shape: float) -> float:
    """Return the mean of K: shape (1 - gamma) / (gamma (1 - gamma^shape)), or its limit at
    shape 0.
    """
    odds = math.expm1(-log_gamma)
    return odds / -log_gamma if shape == 0 else odds * shape / -math.expm1(shape * log_gamma)


def _log_ratio(delta: Callable[[np.ndarray], np.ndarray], gamma: float, shape: float) -> float:
    """Return (shape + 1) r, rounded up, for the r with delta(r) = (e^r - 1) gamma / (1 - gamma);
    any larger r is safe too.
    """
    if gamma >= 1:
        return 0.0
    odds = gamma / (1 - gamma) * (1 - 64 * UNIT_ROUNDOFF)
    low, high = 0.0, 1.0
    while high < FARTHEST and float(delta(np.array([high]))[0]) > odds * math.expm1(high):
        low, high = high, 2 * high
    for _ in range(6):
        inner = np.linspace(low, high, 33)
        enough = np.flatnonzero(delta(inner) <= odds * np.expm1(inner) * (1 - 16 * UNIT_ROUNDOFF))
        at = int(enough[0]) if len(enough) else 32
        low, high = float(inner[max(at - 1, 0)]), float(inner[at])
    return (shape + 1) * high
