from dpcompose.composition.answers import Askable as Askable
from dpcompose.composition.composition import (
    Composable as Composable,
    ComposablePart as ComposablePart,
)
