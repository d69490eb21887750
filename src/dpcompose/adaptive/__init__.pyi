from .advice import FilterAdvice as FilterAdvice, advise as advise
from .amount import Total as Total
from .budget import Budget as Budget
from .description import from_description as from_description
from .filter import Decision as Decision, Filter as Filter, Spending as Spending
from .individual import (
    Curators as Curators,
    IndividualFilter as IndividualFilter,
    IndividualRound as IndividualRound,
    Records as Records,
)
from .menu_filter import MenuFilter as MenuFilter
from .odometer import (
    Distance as Distance,
    Line as Line,
    Mileage as Mileage,
    Mixture as Mixture,
    Odometer as Odometer,
    Reading as Reading,
)

if True:
    from .amount import Number as Number
    from .description import (
        FILTERS as FILTERS,
        AdvancedFilter as AdvancedFilter,
        BasicFilter as BasicFilter,
        ConcentratedFilter as ConcentratedFilter,
        GaussianFilter as GaussianFilter,
        PureFilter as PureFilter,
        RenyiFilter as RenyiFilter,
        UnionFilter as UnionFilter,
        for_target as for_target,
    )
    from .filter import times_within as times_within
    from .pricing import (
        delta_without_rounding as delta_without_rounding,
        known_pure as known_pure,
    )
