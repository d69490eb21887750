"""Exercises on sections 2.3 and 3.5, in six lessons; each answer is compared with what the library
computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from dpcompose import divergence
from dpcompose.book.statement import Parameter
from dpcompose.book.theorems import (
    SLACK,
    TIMES,
    advanced,
    advanced_inverse,
    advanced_per_mechanism,
    advanced_tight,
    azuma,
    basic,
    group,
    kl_bound,
    promise,
)
from dpcompose.guarantee import ApproximateDP, homogeneous_delta
from dpcompose.pictured import Card

TOLERANCE = 0.005
"""The accepted relative error of an answer: three digits are enough."""


@dataclass(frozen=True)
class Exercise(Parameter):
    """A question whose answer is a number, such as `LESSONS[1].parameters[0]`.

    Args:
        right: Whether an answer is right.
        hint: A sentence for somebody whose answer is wrong.
    """

    right: Callable[[float], bool] = bool
    hint: str = ""


@dataclass(frozen=True)
class Lesson(Card):
    """The exercises on one section of the book.

    >>> LESSONS[3].title
    'Section 3.5.1: distances of distributions'

    Args:
        number: The number of the lesson, from 1.
        title: The section and its subject.
        parameters: The exercises, named by letters.
    """

    number: int
    title: str
    parameters: tuple[Exercise, ...]

    def checked(self, answers: Mapping[str, Any]) -> tuple[bool | None, ...]:
        """Whether each answer is right, in the order of the exercises; None where there is no
        answer.

        >>> LESSONS[1].checked({"a": 0.5, "d": 0.2})
        (True, None, None, False, None, None)

        Args:
            answers: The answers by letter, in the units that the question names.
        """
        return tuple(
            each.right(answers[each.name]) if each.name in answers else None
            for each in self.parameters
        )


def _number(letter: str, question: str, compute: Callable[[], Any], hint: str) -> Exercise:
    """An exercise whose answer is one number, to three digits; if the library computes an interval,
    any number in it is right.
    """

    def right(answer: float) -> bool:
        value = compute()
        low, high = (float(getattr(value, end, value)) for end in ("lower", "upper"))
        return answer == high or low * (1 - TOLERANCE) <= answer <= high * (1 + TOLERANCE)

    return Exercise(letter, float, question, required=False, right=right, hint=hint)


_FAIR = (Fraction(1, 2), Fraction(1, 2))
_OFTEN = (Fraction(3, 4), Fraction(1, 4))
_SELDOM = (Fraction(1, 4), Fraction(3, 4))
_TRUE, _LIE = (Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 3), Fraction(2, 3))


def _both(first: Sequence[Fraction], second: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The law of two independent answers."""
    return tuple(p * q for p in first for q in second)


def _queries(scale: float) -> float:
    """How many Laplace answers of this scale Corollary 3.21 allows for (1, 1e-6)."""
    return (scale * advanced_per_mechanism(1.0, slack=1e-6, times=1)) ** 2


def _is_witness(answer: float) -> bool:
    """Whether (p, 1 - p) is within total variation distance 1/5 of the fair coin, and at most 3/2
    times (1/4, 3/4).
    """
    if not 0 <= answer <= 1:
        return False
    masses = (Fraction(str(answer)), 1 - Fraction(str(answer)))
    return (
        divergence.total_variation(masses, _FAIR).value <= Fraction(1, 5)
        and divergence.hockey_stick(masses, _SELDOM, ratio=Fraction(3, 2)).value == 0
    )


LESSONS: Mapping[int, Lesson] = MappingProxyType({lesson.number: lesson for lesson in (
    Lesson(1, "Section 2.3: what is promised", (
        _number("a", "Two mechanisms are (0.3, 0)- and (0.2, 0)-differentially private. What is the epsilon of both answers?",
            lambda: basic([(0.3, 0.0), (0.2, 0.0)]).epsilon, "Epsilons add up: Theorem 3.14."),
        _number("b", "M1 has epsilon 0.3. M2 sees the answer of M1 and not the data. What is the epsilon of M2(M1(x))?",
            lambda: basic([(0.3, 0.0)]).epsilon, "What does not see the data is post-processing: Proposition 2.1."),
        _number("c", "Randomized response says the truth with probability 3/4. What is its epsilon?",
            lambda: divergence.max_divergence(_OFTEN, _SELDOM), "The logarithm of p / (1 - p)."),
        _number("d", "A survey has epsilon 0.1 for each person. What is its epsilon for a family of four?",
            lambda: group(0.1, size=4).epsilon, "k times the epsilon: Theorem 2.2."),
        _number("e",
            "A mechanism is (0.5, 1e-6)-differentially private. What is the least delta for a group of three, at epsilon 1.5?",
            lambda: group(0.5, delta=1e-6, size=3).delta,
            "The sum of 1e-6 e^(0.5 i), i = 0, 1, 2, not 3 e^(2 * 0.5) 1e-6."),
        _number("f",
            "Your future is worth 1,000 if you stay out of a survey of epsilon 0.1. What is it worth at least if you join?",
            lambda: promise(ApproximateDP(0.1), utility_range=math.inf).expected(1000.0).lower,
            "A factor of e^-epsilon."),
    )),
    Lesson(2, "Section 3.5: composition", (
        _number("a",
            "The same count is answered 25 times with Laplace noise of scale 10. What is the epsilon of all answers?",
            lambda: basic([(0.1, 0.0)] * 25).epsilon, "Each has the epsilon 1 / 10; then Corollary 3.15."),
        _number("b",
            "An answer is (0.5, 1e-6)-, another (0.25, 2e-6)-differentially private. What is their delta by Theorem 3.16?",
            lambda: basic([(0.5, 1e-6), (0.25, 2e-6)]).delta, "Deltas add up, too."),
        _number("c",
            "Three mechanisms are (0, 0.1)-differentially private. What is the least delta of all three, at epsilon 0?",
            lambda: homogeneous_delta(0.0, epsilon=0.0, delta=0.1, times=3),
            "1 minus a product: see the proof of Theorem 3.16."),
        _number("d",
            "M1 says yes with probability 3/4 or 1/2, M2 with 1/2 or 3/4, with Bob or without. What is the epsilon of both?",
            lambda: divergence.max_divergence((3 / 8, 3 / 8, 1 / 8, 1 / 8), (3 / 8, 1 / 8, 3 / 8, 1 / 8)),
            "Each has the epsilon ln 2, but not for the same answers: take the largest of the four ratios."),
        _number("e", "c is a coin, 1 with probability 1/3, and x a bit. What is the epsilon of the answer x xor c?",
            lambda: divergence.max_divergence((Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 3), Fraction(2, 3))),
            "The ratio of 2/3 and 1/3."),
        _number("f",
            "The same, and the coin c is published as well. What is the epsilon of both answers? (inf is a number here.)",
            lambda: divergence.max_divergence((Fraction(2, 3), Fraction(1, 3), 0, 0), (0, 0, Fraction(2, 3), Fraction(1, 3))),
            "Both answers together tell x."),
    )),
    Lesson(3, "Section 3.5.1: distances of distributions", (
        _number("a", "Y = (1/2, 1/2) and Z = (1/4, 3/4). What is the KL divergence D(Y||Z)?",
            lambda: divergence.kl(_FAIR, _SELDOM), "The mean of ln(Y / Z) under Y."),
        _number("b", "What is the max divergence D_inf(Y||Z)?",
            lambda: divergence.max_divergence(_FAIR, _SELDOM), "The largest of ln(Y / Z)."),
        _number("c", "What is the statistical distance of Y and Z?",
            lambda: divergence.total_variation(_FAIR, _SELDOM), "Half the sum of the differences."),
        _number("d", "What is the least delta with D_inf^delta(Y||Z) <= ln(3/2)?",
            lambda: divergence.hockey_stick(_FAIR, _SELDOM, ratio=Fraction(3, 2)),
            "The sum of Y - 3/2 Z where it is positive."),
        Exercise("e", float, "Give a p so that Y' = (p, 1 - p) is within the distance 1/5 of Y and D_inf(Y'||Z) <= ln(3/2).",
            required=False, right=_is_witness, hint="p is at most 3/2 of 1/4 and at least 1/2 - 1/5: Lemma 3.17."),
        _number("f", "Losses lie within +-1. Lemma 3.18 bounds their mean by e - 1. What is the least bound that is true?",
            lambda: kl_bound(1.0).tight, "epsilon tanh(epsilon / 2), which randomized response attains."),
        _number("g", "100 losses lie within +-0.1, each of mean at most 0.005 given those before. Which sum do they exceed "
            "with probability at most e^(-9/2), by Lemma 3.19?",
            lambda: azuma(3.0, times=100, size=0.1, drift=0.005).threshold, "k drift + z sqrt(k) size, with z = 3."),
    )),
    Lesson(4, "Section 3.5.2: the experiment", (
        _number("a",
            "Two rounds; each answer is true with probability 2/3. What is the least delta of the views at epsilon ln 2?",
            lambda: divergence.hockey_stick(_both(_TRUE, _TRUE), _both(_LIE, _LIE), ratio=2),
            "Only the view of two true answers is more than twice as likely: 4/9 - 2 * 1/9."),
        _number("b", "The same, but after a first yes the adversary asks with the worlds swapped. What is the least delta now?",
            lambda: divergence.hockey_stick(
                (Fraction(2, 9), Fraction(4, 9), Fraction(2, 9), Fraction(1, 9)),
                (Fraction(2, 9), Fraction(1, 9), Fraction(2, 9), Fraction(4, 9)), ratio=2),
            "List the four views in both worlds; randomized response loses the same both ways."),
        _number("c",
            "The adversary tosses a coin, then asks once with epsilon ln 2. What is the epsilon of the coin and the answer?",
            lambda: divergence.max_divergence(_both(_FAIR, _TRUE), _both(_FAIR, _LIE)),
            "Its coins fall alike in both worlds: their factor cancels."),
        _number("d",
            "Bob is in with probability 1/2. Both of two answers, true with probability 2/3, say so. How probable is it now?",
            lambda: 1 / (1 + 1 / divergence.max_ratio(_both(_TRUE, _TRUE), _both(_LIE, _LIE))),
            "The odds are multiplied by 2 twice, and odds of 4 to 1 are a probability."),
        _number("e", "A yes has probability 1/2 with Bob and 1/4 without. Two rounds, Bob in world 0. What is D_inf(V1||V0)?",
            lambda: divergence.max_divergence(_both(_SELDOM, _SELDOM), _both(_FAIR, _FAIR)),
            "The answer no twice: 3/4 over 1/2, squared."),
        _number("f", "The same, but in each round the adversary may put Bob into either world. How large can D_inf(V1||V0) be?",
            lambda: divergence.max_divergence(_both(_FAIR, _FAIR), _both(_SELDOM, _SELDOM)),
            "The larger of the two orders is that of yes: ln 2 in a round."),
    )),
    Lesson(5, "Section 3.5.2: advanced composition", (
        _number("a", "100 mechanisms of epsilon 0.1, and delta' = 1e-6. What is epsilon' by Theorem 3.20?",
            lambda: advanced(0.1, times=100, slack=1e-6).epsilon, "sqrt(200 * 13.8155) * 0.1 + 10 (e^0.1 - 1)."),
        _number("b", "The same, and each has a delta of 1e-8 as well. What is the delta of all by Theorem 3.20?",
            lambda: advanced(0.1, delta=1e-8, times=100, slack=1e-6).delta, "k delta + delta'."),
        _number("c",
            "Each has epsilon 0.01, and delta' = 1e-6. What is the least k at which Theorem 3.20 says less than the sum?",
            lambda: next(k for k in range(1, 1000) if advanced(0.01, times=k, slack=1e-6).epsilon < 0.01 * k),
            "About 2 ln(1/delta'), and a little more for the second term."),
        _number("d", "The mean loss of each is at most epsilon tanh(epsilon/2). What does that make of the epsilon' of a?",
            lambda: advanced_tight(0.1, times=100, slack=1e-6).epsilon, "k times that bound in place of the second term."),
        _number("e", "100 mechanisms shall cost (0.9, 1e-6) in total. Which epsilon does Corollary 3.21 allow each?",
            lambda: advanced_per_mechanism(0.9, slack=1e-6, times=100), "0.9 over 2 sqrt(200 * 13.8155)."),
        Exercise("f", float, "Give an epsilon at least 1.5 times as large with which Theorem 3.20 still promises (0.9, 1e-6).",
            required=False, hint="Nearly all of 0.9 is for the first term: sqrt(200 * 13.8155) epsilon.",
            right=lambda answer: 1.5 * advanced_per_mechanism(0.9, slack=1e-6, times=100) <= answer
            and answer <= advanced_inverse(0.9, slack=1e-6, times=100)),
        _number("g", "With the epsilon of e the first term of Theorem 3.20 is 0.45. What is the second term?",
            lambda: 100 * kl_bound(advanced_per_mechanism(0.9, slack=1e-6, times=100)).book,
            "100 epsilon (e^epsilon - 1), about 100 epsilon^2."),
    )),
    Lesson(6, "Section 3.5.2: Bob's lifetime, and how many queries", (
        _number("a", "Bob is in 10,000 databases, each of epsilon 1/801. What is his total epsilon by Corollary 3.15?",
            lambda: basic([(1 / 801, 0.0)] * TIMES).epsilon, "The sum."),
        _number("b", "And by Theorem 3.20, at delta' = e^-32?",
            lambda: advanced(1 / 801, times=TIMES, slack=SLACK).epsilon,
            "800/801, since sqrt(20000 * 32) = 800, and the second term: not 1."),
        _number("c", "One part in how many may each of the 10,000 spend, by Theorem 3.20 for (1, e^-32)?",
            lambda: 1 / advanced_inverse(1.0, slack=SLACK, times=TIMES),
            "A little more than 800: solve 800 x + 10000 x^2 = 1."),
        _number("d", "One part in how many by Corollary 3.21?",
            lambda: 1 / advanced_per_mechanism(1.0, slack=SLACK, times=TIMES), "2 sqrt(20000 * 32)."),
        _number("e",
            "Laplace noise of scale 1,000 is added to counts. How many may be answered for (1, 1e-6), by Corollary 3.21?",
            lambda: _queries(1_000.0), "Each has epsilon 1/1000: (1000 epsilon')^2 / (8 ln(1/delta'))."),
        _number("f", "n grows to 100 n, and the noise may stay n/100, as before. How many times as many queries is that?",
            lambda: _queries(1e8 / 100) / _queries(1e6 / 100), "k grows as the square of the noise, and so as n^2."),
        _number("g", "n grows to 100 n, and the noise shall stay sqrt(n)/10. How many times as many queries is that?",
            lambda: _queries(1e4 / 10) / _queries(1e3 / 10), "The square of sqrt(n)/10 grows as n."),
    )),
)})  # fmt: skip
"""The lessons by number, in the order of the text."""
