"""Whatever can be composed and asked: empty classes, whose operators and questions the room `composition` supplies.

A type checker reads the stub beside this file, which says that they are the classes of that room.
"""

from __future__ import annotations

from abc import ABC

from dpcompose.attached import expect
from dpcompose.mechanisms.part import Part


class Askable(ABC):  # noqa: B024 (its abstract member is supplied)
    """Whatever can be asked for its privacy. A member turns the arguments of a question into the question.

    Numbers are read as doubles: a fraction is the double next to it. `total.plot()` draws the privacy profile,
    `total.plot.steps(delta=1e-6)` epsilon over the steps of a composition; see the gallery.
    """


class Composable(Askable):
    """The common face of a mechanism and a composition: both can be composed, sampled and asked."""


class ComposablePart(Composable, Part):
    """A part that is composed, sampled and asked by itself."""


expect(Askable, "compare delta epsilon loss_above plot profile risk")
expect(Composable, "__add__ __radd__ __mul__ __rmul__ sampled group")
expect(Composable, "approximate gdp pure renyi zcdp typed costlier")
