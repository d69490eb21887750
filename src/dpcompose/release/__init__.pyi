from .answer import Answer as Answer, Explanation as Explanation, Quote as Quote
from .arrow import PublicTable as PublicTable, public as public
from .catalog import Catalog as Catalog, open as open
from .counting import CountingPlan as CountingPlan, plan as plan
from .counts import (
    Contingency as Contingency,
    Count as Count,
    Distinct as Distinct,
    Histogram as Histogram,
    LeftOut as LeftOut,
    RowsPerUnit as RowsPerUnit,
    Top as Top,
    Units as Units,
)
from .expression import RowExpression as RowExpression, case as case, col as col, lit as lit
from .question import Question as Question
from .session import Session as Session
from .sparse_vector import SparseVector as SparseVector
from .sql import questions_of_sql as questions_of_sql
from .statistics import (
    Maximum as Maximum,
    Mean as Mean,
    Minimum as Minimum,
    Quantile as Quantile,
    Quantiles as Quantiles,
    Ratio as Ratio,
    StandardDeviation as StandardDeviation,
    Sum as Sum,
    Variance as Variance,
)
from .synthetic import Synthetic as Synthetic, SyntheticData as SyntheticData
from .table import Table as Table, table as table

if True:
    from .answers import Shelf as Shelf
    from .worker import Worker as Worker
