from dpcompose.composition.composition import (
    Askable as Askable,
    Composable as Composable,
    ComposablePart as ComposablePart,
)
