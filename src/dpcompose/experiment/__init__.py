"""Definition 3.7, run: adversaries, worlds, views; what can be told apart, measured and solved exactly."""

from dpcompose.experiment import finite, integers, noise, sampled
from dpcompose.experiment.adversary import Adversary
from dpcompose.experiment.bob import about_bob
from dpcompose.experiment.breaker import NaturalFilterBreaker
from dpcompose.experiment.certified import Certified
from dpcompose.experiment.channel import Channel, Outcome
from dpcompose.experiment.experiment import Experiment
from dpcompose.experiment.greedy import Greedy
from dpcompose.experiment.many_databases import ManyDatabases
from dpcompose.experiment.measured import Limits, Measured
from dpcompose.experiment.position import Position, Refusal
from dpcompose.experiment.query import Database, Holds, Query, count
from dpcompose.experiment.repeater import Repeater
from dpcompose.experiment.round import Round
from dpcompose.experiment.solved import Solved
from dpcompose.experiment.summary import Summary, summarize
from dpcompose.experiment.tally import Tally
from dpcompose.experiment.views import Views
from dpcompose.experiment.wanderer import Wanderer
from dpcompose.experiment.world import World
from dpcompose.guarantee.adjacency import Orientation

# Each of them names the mechanisms that it can draw.
SAMPLERS = (finite, integers, noise, sampled)

__all__ = [
    "Adversary",
    "Certified",
    "Channel",
    "Database",
    "Experiment",
    "Greedy",
    "Holds",
    "Limits",
    "ManyDatabases",
    "Measured",
    "NaturalFilterBreaker",
    "Orientation",
    "Outcome",
    "Position",
    "Query",
    "Refusal",
    "Repeater",
    "Round",
    "Solved",
    "Summary",
    "Tally",
    "Views",
    "Wanderer",
    "World",
    "about_bob",
    "count",
    "summarize",
]
