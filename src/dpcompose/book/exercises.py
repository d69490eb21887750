"""Exercises on sections 2.3 and 3.5, in three lessons; each answer is compared with the number that
the library computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from dpcompose import divergence
from dpcompose.book.statement import Parameter
from dpcompose.book.theorems import azuma, basic, group, kl_bound, promise
from dpcompose.guarantee import ApproximateDP, homogeneous_delta

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
class Lesson:
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
)})  # fmt: skip
"""The lessons by number, in the order of the text."""
