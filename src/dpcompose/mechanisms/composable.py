"""Base classes of everything whose privacy can be computed; `dpcompose.composition` adds their
operators and methods.

Type checkers read the stub file, which imports the classes from there.
"""

from __future__ import annotations

from abc import ABC

from dpcompose.attached import expect
from dpcompose.mechanisms.part import Part


class Askable(ABC):  # noqa: B024 (its abstract member is supplied)
    """A mechanism, composition or group whose certified privacy can be computed.

    Numbers are converted to doubles: a fraction becomes the nearest double. `total.plot()` draws
    the privacy profile, `total.plot.steps(delta=1e-6)` epsilon over the steps of a composition; see
    the gallery.
    """


class Composable(Askable):
    """A mechanism or composition: it can be composed with others, run on a sample, and its privacy
    computed.
    """


class ComposablePart(Composable, Part):
    """A single mechanism: composed, sampled and evaluated as the composition of itself once."""


expect(Askable, "compare delta epsilon loss_above plot profile risk")
expect(Composable, "__add__ __radd__ __mul__ __rmul__ sampled group")
expect(Composable, "approximate gdp pure renyi zcdp typed costlier")
