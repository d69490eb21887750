"""Coins that are bound to the stakes: nobody, the auditor included, could have known them when the stakes were set."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


@dataclass(frozen=True)
class Chain:
    """A chain of digests over all stakes and counts so far.

    The coins of a batch are SHAKE-256 of the seed, the chain before, and its stakes. To a bettor who does not invert
    SHAKE they are fair and independent of the past.

    Args:
        seed: 32 bytes, secret until the end.
        link: The digest of all before.
    """

    seed: bytes
    link: bytes

    @classmethod
    def opened(cls, seed: bytes, header: Any) -> Chain:
        """The chain before the first batch."""
        return cls(seed, hashlib.sha256(canonical(header)).digest())

    def coins(self, stakes: Any, rows: int) -> NDArray[np.uint8]:
        """The coins of the next batch, given its stakes."""
        stream = hashlib.shake_256(self.seed + self.link + canonical(stakes)).digest(-(-rows // 8))
        return np.unpackbits(np.frombuffer(stream, dtype=np.uint8), bitorder="little")[:rows]

    def after(self, stakes: Any, counts: Any) -> Chain:
        """The chain after a batch."""
        return Chain(self.seed, hashlib.sha256(self.link + canonical([stakes, counts])).digest())
