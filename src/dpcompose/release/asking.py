"""The questions of a session, each by the name of its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from dpcompose.release.answer import Answer
from dpcompose.release.contributions import LeftOut, RowsPerUnit
from dpcompose.release.counts import Contingency, Count, Distinct, Histogram, Units
from dpcompose.release.moments import Ratio, StandardDeviation, Variance
from dpcompose.release.quantile import Maximum, Minimum, Quantile, Quantiles
from dpcompose.release.question import GroupOptions, Question
from dpcompose.release.sums import Mean, Sum
from dpcompose.release.synthetic import Synthetic, SyntheticData
from dpcompose.release.top import Top


class Asking(ABC):
    """Someone who answers questions."""

    @abstractmethod
    def ask(self, question: Question, *, key: str | None = None) -> Answer:
        """The answer to one question."""

    def count(self, *, key: str | None = None, **asked: Unpack[GroupOptions]) -> Answer:
        """How many rows there are; see `Count` and `ask`."""
        return self.ask(Count(**asked), key=key)

    def units(self, *, key: str | None = None, **asked: Unpack[GroupOptions]) -> Answer:
        """How many units there are; see `Units` and `ask`."""
        return self.ask(Units(**asked), key=key)

    def sum(
        self,
        column: str,
        *,
        lower: Any = None,
        upper: Any = None,
        granularity: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """The sum of a column; see `Sum` and `ask`."""
        return self.ask(
            Sum(column, lower=lower, upper=upper, granularity=granularity, **asked), key=key
        )

    def mean(
        self,
        column: str,
        *,
        lower: Any = None,
        upper: Any = None,
        granularity: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """The mean of a column; see `Mean` and `ask`."""
        return self.ask(
            Mean(column, lower=lower, upper=upper, granularity=granularity, **asked), key=key
        )

    def histogram(
        self,
        column: str,
        *,
        edges: Sequence[Any],
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """The number of rows between edges; see `Histogram` and `ask`."""
        return self.ask(Histogram(column, edges=edges, **asked), key=key)

    def quantile(
        self,
        column: str,
        q: Any,
        *,
        lower: Any = None,
        upper: Any = None,
        granularity: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """A quantile of a column; see `Quantile` and `ask`."""
        return self.ask(
            Quantile(column, q, lower=lower, upper=upper, granularity=granularity, **asked), key=key
        )

    def variance(
        self,
        column: str,
        *,
        lower: Any = None,
        upper: Any = None,
        granularity: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """The variance of a column; see `Variance` and `ask`."""
        return self.ask(
            Variance(column, lower=lower, upper=upper, granularity=granularity, **asked), key=key
        )

    def standard_deviation(
        self,
        column: str,
        *,
        lower: Any = None,
        upper: Any = None,
        granularity: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """The standard deviation of a column; see `StandardDeviation` and `ask`."""
        return self.ask(
            StandardDeviation(column, lower=lower, upper=upper, granularity=granularity, **asked),
            key=key,
        )

    def ratio(
        self,
        column: str,
        *,
        per: str,
        lower: Any = None,
        upper: Any = None,
        per_lower: Any = None,
        per_upper: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """The sum of a column over that of another; see `Ratio` and `ask`."""
        ends = {"lower": lower, "upper": upper, "per_lower": per_lower, "per_upper": per_upper}
        return self.ask(Ratio(column, per=per, **ends, **asked), key=key)

    def quantiles(
        self,
        column: str,
        qs: Sequence[Any],
        *,
        lower: Any = None,
        upper: Any = None,
        granularity: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """Several quantiles of a column; see `Quantiles` and `ask`."""
        return self.ask(
            Quantiles(column, qs, lower=lower, upper=upper, granularity=granularity, **asked),
            key=key,
        )

    def minimum(
        self,
        column: str,
        *,
        lower: Any = None,
        upper: Any = None,
        granularity: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """A value with few rows below it; see `Minimum` and `ask`."""
        return self.ask(
            Minimum(column, lower=lower, upper=upper, granularity=granularity, **asked), key=key
        )

    def maximum(
        self,
        column: str,
        *,
        lower: Any = None,
        upper: Any = None,
        granularity: Any = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """A value with few rows above it; see `Maximum` and `ask`."""
        return self.ask(
            Maximum(column, lower=lower, upper=upper, granularity=granularity, **asked), key=key
        )

    def top(
        self,
        number: int,
        *,
        method: str | None = None,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> Answer:
        """The groups with the most rows; see `Top` and `ask`."""
        return self.ask(Top(number, method=method, **asked), key=key)

    def distinct(
        self, column: str, *, key: str | None = None, **asked: Unpack[GroupOptions]
    ) -> Answer:
        """How many different values a column has; see `Distinct` and `ask`."""
        return self.ask(Distinct(column, **asked), key=key)

    def contingency(self, *, key: str | None = None, **asked: Unpack[GroupOptions]) -> Answer:
        """How many rows have each combination of values of several columns; see `Contingency` and `ask`."""
        return self.ask(Contingency(**asked), key=key)

    def synthetic(
        self,
        *,
        marginals: int | Sequence[Sequence[str]] = 3,
        rounds: int | None = None,
        megabytes: float = 80.0,
        key: str | None = None,
        **asked: Unpack[GroupOptions],
    ) -> SyntheticData:
        """Synthetic rows of several columns, and all their marginals; see `Synthetic`, `SyntheticData` and `ask`."""
        question = Synthetic(marginals=marginals, rounds=rounds, megabytes=megabytes, **asked)
        return SyntheticData(self.ask(question, key=key))

    def rows_per_unit(
        self, *, most: int | None = None, key: str | None = None, **asked: Unpack[GroupOptions]
    ) -> Answer:
        """How many units have how many rows; see `RowsPerUnit` and `ask`."""
        return self.ask(RowsPerUnit(most=most, **asked), key=key)

    def left_out(
        self, question: Question, *, spend: Mapping[str, Any], key: str | None = None
    ) -> Answer:
        """The share of units that lose a row of a question to the bounds; see `LeftOut` and `ask`."""
        return self.ask(LeftOut(question, spend=spend, table=question.table), key=key)
