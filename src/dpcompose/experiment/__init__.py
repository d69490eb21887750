"""The composition experiment of Definition 3.7: adversaries, worlds and views, measured and solved exactly."""

from dpcompose.experiment import finite, noise, sampled
from dpcompose.experiment.adversaries import (
    Adversary,
    FixedAdversary,
    Greedy,
    ManyDatabases,
    NaturalFilterBreaker,
    RandomAdversary,
    Repeater,
    Wanderer,
)
from dpcompose.experiment.bob import about_bob
from dpcompose.experiment.channel import Channel, Outcome, World
from dpcompose.experiment.experiment import Certified, Experiment
from dpcompose.experiment.measured import Limits, Measured
from dpcompose.experiment.position import Position, Refusal
from dpcompose.experiment.query import Database, Holds, Query, count
from dpcompose.experiment.round import Round
from dpcompose.experiment.solved import Solved
from dpcompose.experiment.summary import Summary, summarize
from dpcompose.experiment.tally import Tally
from dpcompose.experiment.view import Questions, Views
from dpcompose.guarantee.adjacency import Orientation

# Importing these files registers the mechanisms that each can draw.
SAMPLERS = (finite, noise, sampled)

__all__ = [
    "Adversary",
    "Certified",
    "Channel",
    "Database",
    "Experiment",
    "FixedAdversary",
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
    "Questions",
    "RandomAdversary",
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
