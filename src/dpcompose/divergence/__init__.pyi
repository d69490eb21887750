from .density import Density as Density, Estimate as Estimate
from .distribution import Distribution as Distribution, Exact as Exact
from .hockey_stick import (
    approximate_max as approximate_max,
    hockey_stick as hockey_stick,
    max_divergence as max_divergence,
    max_ratio as max_ratio,
    total_variation as total_variation,
)
from .neighbors import SmallestEpsilon as SmallestEpsilon, smallest_epsilon as smallest_epsilon
from .renyi_divergence import kl as kl, renyi as renyi
from .witnesses import (
    OneSidedWitness as OneSidedWitness,
    SymmetricWitness as SymmetricWitness,
    extreme_pair as extreme_pair,
    one_sided_witness as one_sided_witness,
    symmetric_witness as symmetric_witness,
)
