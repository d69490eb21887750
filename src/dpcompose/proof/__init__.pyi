from .ball import Ball as Ball, Disc as Disc, Field as Field, ball_field as ball_field
from .line import Enclosure as Enclosure
from .moments import (
    BallLattice as BallLattice,
    Ends as Ends,
    Factors as Factors,
    Moments as Moments,
    Term as Term,
    ends as ends,
    exponential_sums as exponential_sums,
)
from .normal import NormalMoments as NormalMoments, upper_tail as upper_tail
from .sum import Proved as Proved, ProvedSum as ProvedSum
from .trapezoid import TrapezoidMoments as TrapezoidMoments
