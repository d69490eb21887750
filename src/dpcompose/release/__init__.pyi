from .answer import Answer as Answer, Quote as Quote
from .catalog import Catalog as Catalog, open as open
from .counting import (
    AccuracyCurve as AccuracyCurve,
    CountingPlan as CountingPlan,
    accuracy_curves as accuracy_curves,
    plan as plan,
)
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
from .explain import Explanation as Explanation
from .expression import RowExpression as RowExpression, case as case, col as col, lit as lit
from .moments import (
    Mean as Mean,
    Ratio as Ratio,
    StandardDeviation as StandardDeviation,
    Sum as Sum,
    Variance as Variance,
)
from .public import PublicTable as PublicTable, public as public
from .quantile import (
    Maximum as Maximum,
    Minimum as Minimum,
    Quantile as Quantile,
    Quantiles as Quantiles,
)
from .question import Question as Question
from .session import Session as Session
from .sparse_vector import SparseVector as SparseVector, open_sparse_vector as open_sparse_vector
from .sql import questions_of_sql as questions_of_sql
from .synthetic import Synthetic as Synthetic, SyntheticData as SyntheticData
from .table import Table as Table, table as table

if True:
    from .answer import written as written
    from .catalog import budget_in_words as budget_in_words
    from .explain import explains as explains
    from .file import (
        plain_question as plain_question,
        question_of as question_of,
        questions as questions,
    )
    from .planner import SelectedAnswer as SelectedAnswer
    from .worker import (
        Worker as Worker,
        opened_in as opened_in,
        without_rows as without_rows,
    )
