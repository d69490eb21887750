"""Answers on real tables: charged before they are given, aggregated exactly, and noisy by exact samplers.

    import dpcompose.release as release
    flights = release.table("flights.parquet", unit="tailnum", max_rows_per_unit=50)
    session = release.Session(flights, ledger=ledger, scope="world/flights", actor="ana")
    answer = session.count(by="dest", keys=airports, spend={"epsilon": 0.1})

The only room where theory, ledger and data meet. ibis and opendp are imported when they are needed.
"""

from dpcompose.release.answer import Answer, Quote
from dpcompose.release.catalog import Catalog
from dpcompose.release.catalog import open_file as open
from dpcompose.release.contributions import LeftOut, RowsPerUnit
from dpcompose.release.counting import AccuracyCurve, CountingPlan, accuracy_curves, plan
from dpcompose.release.counts import Contingency, Count, Distinct, Histogram, Units
from dpcompose.release.explain import Explanation
from dpcompose.release.expression import RowExpression, case, col, lit
from dpcompose.release.moments import Ratio, StandardDeviation, Variance
from dpcompose.release.public import PublicTable, public
from dpcompose.release.quantile import Maximum, Minimum, Quantile, Quantiles
from dpcompose.release.question import Question
from dpcompose.release.session import Session
from dpcompose.release.sparse_vector import SparseVector, open_sparse_vector
from dpcompose.release.sql import questions_of_sql
from dpcompose.release.sums import Mean, Sum
from dpcompose.release.synthetic import Synthetic, SyntheticData
from dpcompose.release.table import Table, table
from dpcompose.release.top import Top
from dpcompose.release.workload import Coordinated

__all__ = [
    "AccuracyCurve",
    "Answer",
    "Catalog",
    "Contingency",
    "Coordinated",
    "Count",
    "CountingPlan",
    "Distinct",
    "Explanation",
    "Histogram",
    "LeftOut",
    "Maximum",
    "Mean",
    "Minimum",
    "PublicTable",
    "Quantile",
    "Quantiles",
    "Question",
    "Quote",
    "Ratio",
    "RowExpression",
    "RowsPerUnit",
    "Session",
    "SparseVector",
    "StandardDeviation",
    "Sum",
    "Synthetic",
    "SyntheticData",
    "Table",
    "Top",
    "Units",
    "Variance",
    "accuracy_curves",
    "case",
    "col",
    "lit",
    "open",
    "open_sparse_vector",
    "plan",
    "public",
    "questions_of_sql",
    "table",
]
