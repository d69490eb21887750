from .exercises import LESSONS as LESSONS, Lesson as Lesson
from .statement import Parameter as Parameter, Statement as Statement
from .statements import ELSEWHERE as ELSEWHERE, STATEMENTS as STATEMENTS
from .theorems import (
    Deviation as Deviation,
    Example as Example,
    MeanLoss as MeanLoss,
    Promise as Promise,
    advanced as advanced,
    advanced_heterogeneous as advanced_heterogeneous,
    advanced_inverse as advanced_inverse,
    advanced_per_mechanism as advanced_per_mechanism,
    advanced_tight as advanced_tight,
    azuma as azuma,
    basic as basic,
    example_3_7 as example_3_7,
    gaussian_noise as gaussian_noise,
    group as group,
    kl_bound as kl_bound,
    optimal as optimal,
    promise as promise,
)
