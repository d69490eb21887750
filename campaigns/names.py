"""The public names with which compositions are written, for evaluating the text of one."""

from __future__ import annotations

from typing import Any

import dpcompose
from dpcompose import composition, mechanisms, values

NAMES: dict[str, Any] = {
    name: getattr(room, name)
    for room in (values, composition, mechanisms, dpcompose)
    for name in dir(room)
}
