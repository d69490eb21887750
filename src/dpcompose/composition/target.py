"""The target of a calibration: an epsilon at a delta, or the most that an attacker may gain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpcompose import check
from dpcompose.composition.composition import Composition
from dpcompose.composition.options import Options
from dpcompose.composition.risk import risk
from dpcompose.errors import DomainError
from dpcompose.values import Bound, down, up

ATTACKS = ("advantage", "true_positive_rate", "false_positive_rate", "bayes_error", "prior")
"""The arguments of `calibrate` that are about attackers."""


@dataclass(frozen=True)
class Target:
    """A limit, and the certified number that must not be above it.

    Args:
        limit: The limit.
        measured: The number, from a composition and the options of its questions.
        larger: What to ask for where the limit is out of reach.
    """

    limit: float
    measured: Callable[[Composition, Options], Bound]
    larger: str

    @classmethod
    def of(
        cls,
        *,
        epsilon: float | None,
        delta: float | None,
        advantage: float | None,
        true_positive_rate: float | None,
        false_positive_rate: float | None,
        bayes_error: float | None,
        prior: float | None,
    ) -> Target:
        """The one target among these; the arguments are those of `calibrate`.

        Raises:
            DomainError: If there is none or more than one, or a number is outside its domain.
        """
        numbers = {
            "epsilon": (epsilon, check.nonnegative),
            "delta": (delta, check.probability),
            "advantage": (advantage, check.open_probability),
            "true_positive_rate": (true_positive_rate, check.open_probability),
            "false_positive_rate": (false_positive_rate, check.probability),
            "bayes_error": (bayes_error, check.open_probability),
            "prior": (prior, check.open_probability),
        }
        given = {
            name: guard(name, value)
            for name, (value, guard) in numbers.items()
            if value is not None
        }
        match given:
            case {"epsilon": limit, "delta": mass, **rest} if not rest:
                return _epsilon(limit, mass)
            case {"advantage": limit, **rest} if not rest:
                return _advantage(limit)
            case {"true_positive_rate": limit, "false_positive_rate": rate, **rest} if not rest:
                return _power(limit, rate)
            case {"bayes_error": limit, **rest} if not rest.keys() - {"prior"}:
                return _bayes(limit, rest.get("prior", 0.5))
            case _:
                one = "epsilon and delta, or advantage, or true_positive_rate and false_positive_rate, or bayes_error"
                name, value = ("epsilon", None) if epsilon is None else ("delta", delta)
                raise DomainError(
                    name,
                    value,
                    f"one target: {one} (and prior)",
                    f"Given: {', '.join(given) or 'none'}",
                )


def _epsilon(limit: float, delta: float) -> Target:
    return Target(
        limit,
        lambda member, options: member.epsilon(delta=delta, **options),
        "epsilon or delta",
    )


def _advantage(limit: float) -> Target:
    return Target(
        limit,
        lambda member, options: member.delta(epsilon=0.0, **options),
        "advantage",
    )


def _power(limit: float, rate: float) -> Target:
    if not limit > rate:
        reached = "who looks at nothing has as many true positives as false ones"
        raise DomainError(
            "true_positive_rate", limit, f"more than the false positive rate, {rate!r}: {reached}"
        )

    def measured(member: Composition, options: Options) -> Bound:
        curve = member.profile(**options).power(rate)
        return Bound(float(curve.lower), float(curve.upper))

    return Target(limit, measured, "true positive rate")


def _bayes(least: float, prior: float) -> Target:
    """The error is to be at least so large: its complement, the chance of a right guess, at most so large."""
    if not least < min(prior, 1 - prior):
        most = "less than the smaller of prior and 1 - prior, the error of who looks at nothing"
        raise DomainError("bayes_error", least, most)

    def measured(member: Composition, options: Options) -> Bound:
        error = risk(member.profile(**options), prior=prior, false_positive_rate=1.0).bayes_error
        return Bound(max(down(1 - error.upper), 0.0), min(up(1 - error.lower), 1.0))

    return Target(down(1 - least), measured, "chance of a right guess (a smaller Bayes error)")
