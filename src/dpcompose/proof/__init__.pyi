from .ball import Ball as Ball, Disc as Disc, Field as Field
from .line import Enclosure as Enclosure
from .moments import (
    BallLattice as BallLattice,
    Ends as Ends,
    Factors as Factors,
    Moments as Moments,
    NormalMoments as NormalMoments,
    Term as Term,
)
from .sum import Proved as Proved, ProvedSum as ProvedSum

if True:
    from .ball import ball_field as ball_field
    from .moments import (
        ends as ends,
        exponential_sums as exponential_sums,
        upper_tail as upper_tail,
    )
    from .trapezoid import TrapezoidMoments as TrapezoidMoments
