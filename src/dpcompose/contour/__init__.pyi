from .contour import Bracket as Bracket, Contour as Contour
from .invert import LineReading as LineReading
from .transform import (
    Cumulants as Cumulants,
    Lattice as Lattice,
    Line as Line,
    Transform as Transform,
    TransformSum as TransformSum,
)

if True:
    from .batch import ContourRows as ContourRows
    from .contour import (
        chernoff_bound as chernoff_bound,
        kernel_peak as kernel_peak,
        relative_value as relative_value,
    )
    from .exponential_sums import (
        WeightedPoints as WeightedPoints,
        careful_nodes as careful_nodes,
        guarded as guarded,
        logarithm_of_excess as logarithm_of_excess,
    )
    from .invert import (
        at_most as at_most,
        point_of as point_of,
        value_at as value_at,
        values_at as values_at,
        walk_to_proof as walk_to_proof,
    )
    from .quadrature import (
        NEGLIGIBLE as NEGLIGIBLE,
        Placement as Placement,
        placement_of as placement_of,
    )
    from .saddle import (
        LEAST_ORDER as LEAST_ORDER,
        all_shortened as all_shortened,
        curvature as curvature,
        excess_of_mass as excess_of_mass,
        excess_of_value as excess_of_value,
        moments_exceed as moments_exceed,
        saddle_for_value as saddle_for_value,
        shortened as shortened,
    )
    from .transform import (
        ArrayRows as ArrayRows,
        TabulatedTransform as TabulatedTransform,
        blockwise as blockwise,
        joined as joined,
        remembered as remembered,
        summed_line as summed_line,
    )
