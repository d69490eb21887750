from .adversaries import (
    Adversary as Adversary,
    FixedAdversary as FixedAdversary,
    Greedy as Greedy,
    ManyDatabases as ManyDatabases,
    NaturalFilterBreaker as NaturalFilterBreaker,
    RandomAdversary as RandomAdversary,
    Repeater as Repeater,
    Wanderer as Wanderer,
)
from .channel import Channel as Channel, Outcome as Outcome, World as World
from .experiment import (
    Certified as Certified,
    Experiment as Experiment,
    Summary as Summary,
    summarize as summarize,
)
from .measured import (
    Limits as Limits,
    Measured as Measured,
    Questions as Questions,
    Tally as Tally,
    Views as Views,
)
from .round import (
    Database as Database,
    Holds as Holds,
    Query as Query,
    Round as Round,
    States as States,
    about_bob as about_bob,
    count as count,
)
from .solved import Solved as Solved
