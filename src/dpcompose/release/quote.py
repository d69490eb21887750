"""What a question would cost, and how accurate its answer would be, without touching data or budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpcompose.composition.composition import Composable
from dpcompose.numerics import check
from dpcompose.release.design import Design
from dpcompose.release.question import Question, Values

BIAS = "Clamping and left-out rows move the answer too; by how much depends on the data, so it is not quoted."
REPLACED = " The budget holds for replacing a unit, which changes two: the price of a spend of epsilon 1 is about 2."


@dataclass(frozen=True)
class Quote:
    """The price of a question in the currencies of a scope, and the error of its noise.

    Args:
        question: What would be asked.
        price: What it would cost, by currency; exact.
        mechanism: What would be charged, and would run.
        fits: Whether it fits in what is left now.
        bias: What is not in the error, and why the price is not the spend, where it is not.
    """

    question: Question
    price: Mapping[str, Any]
    mechanism: Composable
    fits: bool
    bias: str = BIAS
    design: Design = field(repr=False, kw_only=True)

    def expected_error(self, confidence: float, *, count: int | None = None) -> float:
        """How far the noise is from 0 at most with that probability, as `Answer.expected_error` says.

        Args:
            confidence: In (0, 1).
            count: For a mean, the number of rows that the answer would state; its error is a function of it.

        Raises:
            DomainError: If the confidence is outside (0, 1), or a mean is quoted without a count.
        """
        failure = 1 - check.open_probability("confidence", confidence)
        needed = self.question.kind == "mean"
        rows = (check.count("count", count, least=1),) if needed or count is not None else ()
        found = self.question.errors(self.design, failure, (Values("count", "int64", rows),))
        return found[0] if isinstance(found, tuple) else found
