if True:
    from .adjacency import (
        Adjacency as Adjacency,
        AdjacencyName as AdjacencyName,
        Orientation as Orientation,
        OrientationName as OrientationName,
    )
    from .bound import (
        UNIT_ROUNDOFF as UNIT_ROUNDOFF,
        Bound as Bound,
        Certificate as Certificate,
        around as around,
        down as down,
        met as met,
        up as up,
    )
    from .bounds import Bounds as Bounds
    from .exact import (
        FIXED_BITS as FIXED_BITS,
        FIXED_LN2 as FIXED_LN2,
        FIXED_LN2PI as FIXED_LN2PI,
        FIXED_ONE as FIXED_ONE,
        STIRLING as STIRLING,
        decimal_context as decimal_context,
        decimal_expm1 as decimal_expm1,
        decimal_tanh as decimal_tanh,
        double_below as double_below,
        exact as exact,
        fixed as fixed,
        fixed_exponential as fixed_exponential,
        fixed_logarithm as fixed_logarithm,
        fixed_split as fixed_split,
        float_above as float_above,
        float_below as float_below,
        float_sum as float_sum,
        larger_reading as larger_reading,
        log_factorial as log_factorial,
        lower_hull as lower_hull,
        nearest as nearest,
        rounded_down as rounded_down,
        rounded_up as rounded_up,
        smaller_reading as smaller_reading,
        sum_rounded_up as sum_rounded_up,
    )
