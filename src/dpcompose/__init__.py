"""dpcompose adds up differential privacy: certified, fast, and in a ledger that cannot be overdrawn.

    mechanism -> privacy loss -> composition -> guarantee -> report

Mechanisms name their losses, `compose` (or `+` and `*`) puts them together, and every question about a composition is
answered by a `Bound`: two floats between which the truth lies. Rooms: `numerics` (numbers with two ends), `contour` and
`proof` (the engines, in floats and in balls), `guarantee` (promises and theorems), `loss` (the privacy loss of one
pair), `mechanism` (the building blocks), `composition`, `divergence`, `book` (Dwork and Roth, executable), `adaptive`
(filters and odometers: parameters chosen along the way), `ledger` (what has been spent), `account` (filters in a
ledger), `release` (answers about tables), `experiment`, `plan` (TOML files), `report`, `cli`. Losses: in nats.
"""

from importlib import import_module
from typing import Any

from dpcompose.attached import Attached, Opens
from dpcompose.face import face
from dpcompose.pictured import Card, Plot
from dpcompose.version import __version__ as __version__


def _picture(name: str) -> Any:
    return getattr(import_module("dpcompose.report"), name)


def _answers() -> Any:
    return import_module("dpcompose.composition").Composable


def _account(name: str) -> Any:
    return getattr(import_module("dpcompose.account"), name)


Plot.find, Card.find = staticmethod(_picture), staticmethod(_picture)
Opens.find = staticmethod(_account)
Attached.load = staticmethod(_answers)
del Plot, Card, Opens, Attached

__getattr__, __dir__, __all__ = face(__name__, __file__)
