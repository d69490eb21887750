"""The type of ibis expressions here: ibis types its own only in part, so nothing is claimed of them."""

from __future__ import annotations

from typing import Any

Expression = Any
