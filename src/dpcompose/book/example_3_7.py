"""Example 3.7: ten thousand databases, and the 1/801 that Theorem 3.20 does not give."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcompose.book.advanced import advanced, advanced_tight
from dpcompose.book.per_mechanism import advanced_per_mechanism
from dpcompose.guarantee.optimal import homogeneous_delta, homogeneous_epsilon

TIMES = 10_000
SLACK = math.exp(-32.0)


@dataclass(frozen=True)
class Example:
    """What each theorem says of 10,000 mechanisms of the same epsilon at delta = e^-32: upper bounds on the total.

    Args:
        theorem_3_20: As printed.
        theorem_3_20_tight: With the tight mean loss.
        optimum: The smallest total epsilon there is.
        optimum_delta: The smallest delta at a total epsilon of 1.
        corollary_3_21: What Corollary 3.21 lets each mechanism spend for a total of 1, rounded down: 1/1600.
    """

    theorem_3_20: float
    theorem_3_20_tight: float
    optimum: float
    optimum_delta: float
    corollary_3_21: float


def example_3_7(epsilon: float = 1 / 801) -> Example:
    """A person in 10,000 databases wants a total of (1, e^-32): the book says that epsilon = 1/801 in each suffices.

    Under Theorem 3.20 as printed 1/801 gives 1.0143, and even the tight mean loss gives 1.0065: neither certifies it
    (801 is 800 + 1 and drops the term of second order). The claim is true all the same: the optimum at 1/801 is 0.8905,
    and delta(1) is 1.4e-17, far below e^-32 = 1.3e-14. The largest epsilon that each theorem allows: Corollary 3.21
    1/1600, Theorem 3.20 1/812.318, with the tight mean loss 1/806.202, the optimum 1/715.511.

    >>> example = example_3_7()
    >>> round(example.theorem_3_20, 6), round(example.theorem_3_20_tight, 6), round(example.optimum, 6)
    (1.014347, 1.006545, 0.890468)

    Args:
        epsilon: Of each mechanism; finite, >= 0.

    Raises:
        DomainError: If epsilon is not a finite number >= 0.

    Reference: [DworkRoth2014, Example 3.7]
    """
    return Example(
        theorem_3_20=advanced(epsilon, times=TIMES, slack=SLACK).epsilon,
        theorem_3_20_tight=advanced_tight(epsilon, times=TIMES, slack=SLACK).epsilon,
        optimum=homogeneous_epsilon(SLACK, epsilon=epsilon, times=TIMES).upper,
        optimum_delta=homogeneous_delta(1.0, epsilon=epsilon, times=TIMES).upper,
        corollary_3_21=advanced_per_mechanism(1.0, slack=SLACK, times=TIMES),
    )
