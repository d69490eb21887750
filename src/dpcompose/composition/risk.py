"""The gain of an attacker: the best test, the best guess and the best reconstruction that the answers allow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose import check
from dpcompose.composition.profile import Curve, Profile
from dpcompose.errors import DomainError
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, down, up

_TESTED = Certificate("best test against the certified profile", unit="relative power")


@dataclass(frozen=True)
class Risk:
    """The best that someone can do who sees every answer and knows all but one person's data.

    The attacker tells two worlds apart, that with the person's data and that without it (or with other data, under
    replacement), in whichever order is better for the attacker. Each bound contains the supremum over all mechanisms
    with the stated guarantees and all attackers.

    Args:
        prior: The probability of the one world before the answers; for a reconstruction, of guessing the secret right.
        false_positive_rate: How often the attacker may say "in" of somebody who is not.
        true_positive_rate: How often the attacker then says "in" of somebody who is: 1 - f(false_positive_rate).
        advantage: The largest difference of the two rates, delta(0).
        bayes_error: The smallest probability of naming the wrong world, p (1 - delta(ln((1 - p) / p))) with p the
            smaller of prior and 1 - prior. What is promised is its lower end.
        reconstruction: The largest probability of reconstructing the secret: 1 - f(prior).
    """

    prior: float
    false_positive_rate: float
    true_positive_rate: Bound
    advantage: Bound
    bayes_error: Bound
    reconstruction: Bound


def risk(profile: Profile, *, prior: float, false_positive_rate: float) -> Risk:
    """The gain of an attacker who sees answers with this profile.

    >>> from dpcompose import Gaussian
    >>> found = risk(Gaussian(1.0).profile(), prior=0.3, false_positive_rate=0.001)
    >>> found.true_positive_rate.contains(0.018298468405656598), found.bayes_error.contains(0.2530043786236346)
    (True, True)

    Args:
        profile: The curve delta(epsilon).
        prior: In [0, 1].
        false_positive_rate: In [0, 1].

    Raises:
        DomainError: If a number is outside [0, 1].

    Reference: [DongRothSu2022, Definition 2.1]; reconstruction: [BalleCherubinHayes2022, Theorem 2]
    """
    prior = check.probability("prior", prior)
    false_positive_rate = check.probability("false_positive_rate", false_positive_rate)
    if not isinstance(profile, Profile):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("profile", profile, "a composition's profile")
    powers = profile.power([false_positive_rate, prior])
    return Risk(
        prior=prior,
        false_positive_rate=false_positive_rate,
        true_positive_rate=_at(powers, 0),
        advantage=_named(profile(0.0), "delta at epsilon 0"),
        bayes_error=_bayes_error(profile, prior),
        reconstruction=_at(powers, 1),
    )


def _at(curve: Curve, place: int) -> Bound:
    return Bound(float(curve.lower[place]), float(curve.upper[place]), _TESTED)


def _named(point: Curve, method: str) -> Bound:
    return Bound(float(point.lower), float(point.upper), Certificate(method))


def _bayes_error(profile: Profile, prior: float) -> Bound:
    """The least of prior * (type II error) + (1 - prior) * (type I error); 1 - prior for prior is the other order."""
    rarer = min(prior, 1.0 - prior)
    if rarer == 0.0:
        return Bound(0.0, 0.0, Certificate("nothing to guess"))
    # Of a rate below 1e-300 the inverse may overflow, and 1 - rate is 1.
    point = math.log1p((1.0 - 2.0 * rarer) / rarer) if rarer > 1e-300 else -math.log(rarer)
    slack = 0.0 if rarer == 0.5 else 16 * UNIT_ROUNDOFF * (1.0 + point)
    delta = profile(np.array([point + slack, point - slack]))
    lower, upper = rarer * (1.0 - float(delta.upper[1])), rarer * (1.0 - float(delta.lower[0]))
    return Bound(
        max(0.0, down(down(lower))),
        min(rarer, up(up(upper))),
        Certificate("profile at the prior's odds"),
    )
