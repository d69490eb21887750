"""The statements about two output distributions: Definitions 2.4, 3.5 and 3.6, Remark 3.1, Lemma 3.17."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcompose import divergence
from dpcompose.book.statement import Parameter, Statement
from dpcompose.guarantee import checked_epsilon
from dpcompose.values import Bound, rounded_up

Masses = Sequence[float]


@dataclass(frozen=True)
class _Distances:
    part_1: float
    part_2: float


def _least_delta(*, first: Masses, second: Masses, epsilon: float) -> Bound:
    point = checked_epsilon("epsilon", epsilon)
    bounds = [
        divergence.hockey_stick(*pair, epsilon=point) for pair in ((first, second), (second, first))
    ]
    return Bound(max(each.lower for each in bounds), max(each.upper for each in bounds))


def _least_epsilon(*, first: Masses, second: Masses, delta: float) -> Bound:
    return divergence.smallest_epsilon({"first": first, "second": second}, delta=delta).epsilon


def _distances(*, first: Masses, second: Masses, epsilon: float) -> _Distances:
    one = divergence.one_sided_witness(first, second, epsilon=epsilon)
    both = divergence.symmetric_witness(first, second, epsilon=epsilon)
    return _Distances(rounded_up(one.distance), rounded_up(both.distance))


_FIRST = Parameter(
    "first", float, "the masses of Y, one for each outcome, such as 2/3,1/3", many=True
)
_SECOND = Parameter("second", float, "the masses of Z, for the same outcomes", many=True)
_DELTA = Parameter("delta", float, "what is forgiven, in [0, 1]")
_EPSILON = Parameter("epsilon", float, "in nats")

PRIVACY = Statement(
    "definition 2.4", "differential privacy",
    "Y(S) <= e^epsilon Z(S) + delta for every S, in both orders: the least such delta.",
    _least_delta, (_FIRST, _SECOND, _EPSILON),
    ("It is not that the loss is at most epsilon with probability 1 - delta: that asks for more.",),
    reference="[DworkRoth2014, Definition 2.4]", down=("lower",),
)  # fmt: skip
"""Definition 2.4."""

TECHNICALITIES = (
    Statement(
        "definition 3.5", "KL divergence", "D(Y||Z), the mean of the loss ln(Y(x) / Z(x)) under Y.",
        divergence.kl, (_FIRST, _SECOND), ("Not symmetric: the other order has a value of its own.",),
        reference="[DworkRoth2014, Definition 3.5]", down=("lower",),
    ),
    Statement(
        "definition 3.6", "max divergence",
        "D_inf^delta(Y||Z) = max ln((Y(S) - delta) / Z(S)) over the S with Y(S) > delta: the largest loss for delta 0.",
        divergence.approximate_max, (_FIRST, _SECOND, _DELTA),
        ("Printed with Y(S) >= delta, which contradicts Remark 3.1 where Y(S) = delta and Z(S) = 0.",),
        reference="[DworkRoth2014, Definition 3.6]", down=("lower",),
    ),
    Statement(
        "remark 3.1", "privacy is a divergence",
        "(epsilon, delta)-DP is D_inf^delta <= epsilon in both orders: the least such epsilon >= 0.",
        _least_epsilon, (_FIRST, _SECOND, _DELTA),
        ("Of two neighbors; divergence.smallest_epsilon takes a mechanism, and names the pair that attains it.",),
        reference="[DworkRoth2014, Remark 3.1]", down=("lower",),
    ),
    Statement(
        "3.17", "nearby distributions",
        "D_inf^delta(Y||Z) <= epsilon exactly when some Y' within delta of Y has D_inf(Y'||Z) <= epsilon; for both "
        "orders Y' and Z' within delta / (1 + e^epsilon): the least distances.",
        _distances, (_FIRST, _SECOND, _EPSILON),
        (
            "Part 2 is printed with D_inf(Y'||Z') <= epsilon alone, and false so: D_inf(Z'||Y') <= epsilon is needed.",
            "Part 1 needs epsilon >= 0. The witnesses: book.one_sided_witness, book.symmetric_witness.",
        ),
        reference="[DworkRoth2014, Lemma 3.17]",
    ),
)  # fmt: skip
"""Definitions 3.5 and 3.6, Remark 3.1, Lemma 3.17."""
