"""The statements of sections 2.2, 2.3 and 3.5 that have a formula, by number; for the others, the
name of the function that computes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dpcompose.book.statement import Parameter, Statement
from dpcompose.book.theorems import (
    PRIVACY,
    TECHNICALITIES,
    advanced,
    advanced_heterogeneous,
    advanced_per_mechanism,
    advanced_tight,
    azuma,
    basic,
    example_3_7,
    gaussian_noise,
    group,
    kl_bound,
    optimal,
    promise,
)
from dpcompose.errors import DomainError
from dpcompose.guarantee import ApproximateDP
from dpcompose.values import Bound

_EACH = Parameter("epsilon", float, "of each mechanism, in nats")
_EPSILON = Parameter("epsilon", float, "of the mechanism, in nats")
_OWN_DELTA = Parameter("delta", float, "of the mechanism; 0 if not given", required=False)
_DELTA = Parameter("delta", float, "of each mechanism; 0 if not given", required=False)
_TIMES = Parameter("times", int, "how many mechanisms")
_SLACK = Parameter("slack", float, "the theorem's delta', in (0, 1)")
_EPSILONS = Parameter("epsilon", float, "of each mechanism, in nats", many=True)
_DELTAS = Parameter(
    "delta", float, "of each mechanism; all 0 if not given", required=False, many=True
)
_FIXED = "The epsilons and deltas must be fixed in advance; mechanisms and databases may be chosen from earlier answers."
_BASIC = "It holds for parameters chosen from earlier answers too, while the sums stay within a budget fixed in advance."


def _pairs(epsilon: Sequence[float], delta: Sequence[float]) -> list[tuple[float, float]]:
    deltas = list(delta) or [0.0] * len(epsilon)
    if len(deltas) != len(epsilon):
        raise DomainError("delta", delta, f"as many values as epsilon has, {len(epsilon)}, or none")
    return list(zip(epsilon, deltas, strict=True))


def _two(*, epsilon: Sequence[float]) -> ApproximateDP:
    if len(epsilon) != 2:
        raise DomainError("epsilon", epsilon, "two values: Corollary 3.15 takes any number")
    return _basic(epsilon=epsilon)


def _basic(*, epsilon: Sequence[float], delta: Sequence[float] = ()) -> ApproximateDP:
    return basic(_pairs(epsilon, delta))


def _heterogeneous(
    *, epsilon: Sequence[float], slack: float, delta: Sequence[float] = ()
) -> ApproximateDP:
    return advanced_heterogeneous(_pairs(epsilon, delta), slack=slack)


def _promise(*, epsilon: float, without: float, utility_range: float, delta: float = 0.0) -> Bound:
    return promise(ApproximateDP(epsilon, delta=delta), utility_range=utility_range).expected(
        without
    )


_ALL = (
    PRIVACY,
    Statement(
        "2.2",
        "group privacy",
        "An (epsilon, 0)-DP mechanism is (k epsilon, 0)-DP for groups of k; a delta becomes "
        "delta (e^(k epsilon) - 1) / (e^epsilon - 1).",
        group,
        (_EPSILON, _OWN_DELTA, Parameter("size", int, "k")),
        (
            "The delta k e^((k - 1) epsilon) delta that is quoted with it is larger than needed: this is the sum.",
            "Tight at k epsilon only: at smaller epsilons the curve is far below (guarantee.group.group_delta).",
        ),
        reference="[DworkRoth2014, Theorem 2.2]",
    ),
    Statement(
        "2.3.1",
        "the promise",
        "One person's expected utility changes by a factor of e^epsilon at most; with delta > 0, within [0, B].",
        _promise,
        (
            _EPSILON,
            _OWN_DELTA,
            Parameter("without", float, "the expected utility in one world"),
            Parameter("utility_range", float, "B, the largest utility; inf for pure mechanisms"),
        ),
        (
            "Utilities must be nonnegative. With delta > 0 an unbounded utility is refused: no bound is true.",
            "The interval is the tightest that holds for every (epsilon, delta)-DP mechanism.",
        ),
        reference="[DworkRoth2014, Section 2.3.1]",
        down=("lower",),
    ),
    Statement(
        "3.14",
        "basic composition of two",
        "An epsilon_1-DP and an epsilon_2-DP mechanism compose to (epsilon_1 + epsilon_2)-DP.",
        _two,
        (_EPSILONS,),
        (
            "Printed for independent mechanisms: the second may depend on the first answer, its coins are fresh.",
            _BASIC,
        ),
        reference="[DworkRoth2014, Theorem 3.14]",
    ),
    Statement(
        "3.15",
        "basic composition",
        "Mechanisms that are epsilon_i-DP compose to (sum epsilon_i)-DP.",
        _basic,
        (_EPSILONS,),
        (_BASIC, "With a delta above 0 in total the optimum is smaller: see optimal."),
        reference="[DworkRoth2014, Corollary 3.15]",
    ),
    Statement(
        "3.16",
        "basic composition with delta",
        "Mechanisms that are (epsilon_i, delta_i)-DP compose to (sum epsilon_i, sum delta_i)-DP.",
        _basic,
        (_EPSILONS, _DELTAS),
        (_BASIC, "For parameters fixed in advance 1 - prod (1 - delta_i) is enough for delta."),
        reference="[DworkRoth2014, Theorem 3.16]",
    ),
    *TECHNICALITIES,
    Statement(
        "3.18",
        "the mean of a bounded loss",
        "If the loss lies within +-epsilon in both directions, its mean is at most epsilon (e^epsilon - 1).",
        kl_bound,
        (_EPSILON,),
        (
            "Loose by the factor e^epsilon + 1: epsilon tanh(epsilon / 2) is true, and attained by randomized response.",
        ),
        reference="[DworkRoth2014, Lemma 3.18]",
    ),
    Statement(
        "3.19",
        "Azuma's inequality",
        "If |C_i| <= size and E[C_i | past] <= drift, then P[sum C_i > k drift + z sqrt(k) size] <= e^(-z^2 / 2).",
        azuma,
        (
            Parameter("deviations", float, "z"),
            Parameter("times", int, "how many variables"),
            Parameter("size", float, "the bound on each variable"),
            Parameter("drift", float, "the bound on each conditional mean"),
        ),
        (
            "It is Hoeffding's form, by the range 2 size; Azuma's own form with |C_i - E C_i| gives only e^(-z^2 / 8).",
        ),
        reference="[DworkRoth2014, Lemma 3.19]",
    ),
    Statement(
        "3.20",
        "advanced composition",
        "k mechanisms, each (epsilon, delta)-DP, compose to (epsilon', k delta + slack)-DP with "
        "epsilon' = sqrt(2 k log(1 / slack)) epsilon + k epsilon (e^epsilon - 1).",
        advanced,
        (_EACH, _DELTA, _TIMES, _SLACK),
        (
            _FIXED,
            "Often worse than basic composition, k epsilon: take the smaller of the two. Always worse than optimal.",
            "Example 3.7's 1/801 exceeds 1 under this theorem (10,000 times, slack e^-32: 1.01434730431488); "
            "the optimum certifies it: 0.890468147886613, and up to 1/715.5 as (1, e^-32)-DP.",
            "Printed for every slack >= 0: at 0 it says nothing, and above 1 the root is of a negative number.",
            "k epsilon tanh(epsilon / 2) in place of k epsilon (e^epsilon - 1) is true as well: 3.20 tight.",
        ),
        reference="[DworkRoth2014, Theorem 3.20]",
    ),
    Statement(
        "3.20 tight",
        "advanced composition with the tight mean loss",
        "Theorem 3.20 with epsilon' = sqrt(2 k log(1 / slack)) epsilon + k epsilon tanh(epsilon / 2).",
        advanced_tight,
        (_EACH, _DELTA, _TIMES, _SLACK),
        (
            _FIXED,
            "Not in the book: its own proof with the best constant of Lemma 3.18. Worse than optimal.",
        ),
        reference="[DworkRothblumVadhan2010, Theorem III.3]",
    ),
    Statement(
        "3.20 heterogeneous",
        "advanced composition of different mechanisms",
        "(sum epsilon_i^2 / 2 + sqrt(2 log(1 / slack) sum epsilon_i^2), sum delta_i + slack)-DP.",
        _heterogeneous,
        (_EPSILONS, _DELTAS, _SLACK),
        (
            _FIXED,
            "Not in the book: by zero-concentrated privacy. For equal epsilons below Theorem 3.20.",
        ),
        reference="[BunSteinke2016, Propositions 1.3 and 1.4]",
    ),
    Statement(
        "3.21",
        "advanced composition, per mechanism",
        "epsilon / (2 sqrt(2 k log(1 / slack))) for each of k mechanisms suffices for (epsilon, k delta + slack).",
        advanced_per_mechanism,
        (Parameter("epsilon", float, "of the composition, in nats"), _SLACK, _TIMES),
        (
            "The printed region 0 < epsilon < 1, slack > 0 is neither needed nor enough. Theorem 3.20 implies it "
            "exactly where epsilon <= 2 sqrt(2 k L) log(1 + sqrt(2 L / k)), L = log(1 / slack).",
            "For slack near 1 it is false: epsilon 0.99, times 100, slack 0.998 has delta 0.999823864615170.",
            "Its proof takes k epsilon^2 where Theorem 3.20 has k epsilon (e^epsilon - 1), which is larger.",
        ),
        reference="[DworkRoth2014, Corollary 3.21]",
        down=("value",),
    ),
    Statement(
        "example 3.7",
        "10,000 databases",
        "For a total of (1, e^-32) over 10,000 mechanisms the book says that 1/801 each suffices.",
        example_3_7,
        (Parameter("epsilon", float, "of each mechanism; 1/801 if not given", required=False),),
        (
            "Theorem 3.20 does not certify 1/801: it gives 1.01434730431488, and 1.00654456484729 with the tight mean "
            "loss. The claim is true: the optimum is 0.890468147886613.",
            "Largest epsilon for each: Corollary 3.21 1/1600, Theorem 3.20 1/812.318, optimum 1/715.511.",
            "That is (1, e^-32)-DP. That the loss exceeds 1 with probability e^-32 at most asks for more: 1/801 (below "
            "0.195 e^-32) and 1/781 keep it; from 1/776 on an adversary who stops once the loss is above 1 breaks it.",
        ),
        reference="[DworkRoth2014, Example 3.7]",
        down=("corollary_3_21", "loss_above_1_response", "loss_above_1_stopping"),
    ),
    Statement(
        "3.22",
        "Gaussian noise",
        "For 0 < epsilon < 1 noise of sigma > sqrt(2 log(1.25 / delta)) / epsilon, for an l2 sensitivity of 1, is "
        "(epsilon, delta)-DP.",
        gaussian_noise,
        (_EPSILON, Parameter("delta", float, "of the mechanism, in (0, 1)")),
        (
            "Larger than needed: by 38 percent at epsilon 0.5, delta 1e-5; 3.26 times at (0.1, 0.01), 1.14 times at "
            "(0.99, 1e-12).",
            "The formula is used beyond epsilon 1 as well, and is false at 10: calibrate(Gaussian, ...) is not.",
        ),
        reference="[DworkRoth2014, Theorem 3.22]",
    ),
    Statement(
        "optimal",
        "optimal composition",
        "The least epsilon' such that k mechanisms, each (epsilon, delta)-DP, compose to (epsilon', total_delta)-DP.",
        optimal,
        (_EACH, _DELTA, _TIMES, Parameter("total_delta", float, "of the composition, in [0, 1]")),
        (
            _FIXED,
            "Tight for all mechanisms with that promise; a particular one, such as Gaussian noise, costs less.",
        ),
        reference="[KairouzOhViswanath2015, Theorem 3.3]",
    ),
)

STATEMENTS: Mapping[str, Statement] = MappingProxyType(
    {statement.number: statement for statement in _ALL}
)
"""The statements by their number, as printed."""

ELSEWHERE: Mapping[str, str] = MappingProxyType({
    "definition 2.1": "divergence.Distribution",
    "definition 2.2": "a mapping from inputs to distributions",
    "definition 2.3": "values.Adjacency",
    "proposition 2.1": "the distances of two distributions before and after the map",
    "definition 3.7": "compose for every adversary, and experiment.Experiment, or dpcompose experiment, for one",
})  # fmt: skip
"""The statements without a number to compute, with the function that demonstrates them."""
