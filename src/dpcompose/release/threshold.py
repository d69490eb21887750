"""Private keys: a key comes out when the noisy number of its units, or of its rows, passes a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.mechanisms import BlackBox, Concentrated
from dpcompose.release.bounds import Change
from dpcompose.release.noise import Noise, noise_for
from dpcompose.release.spend import Spend, below


@dataclass(frozen=True)
class KeyThreshold:
    """Noise on the units, or rows, of every key that is there, and the least noisy number that lets a key out.

    A unit that alone holds up to `coordinates` keys makes one of them come out with probability at most delta: the
    keys it shares with others are hidden by the noise, so the whole is the composition of the noise on those and of a
    failure of probability delta.

    Args:
        noise: On distinct units, or on rows.
        delta: The double that is charged for keys that one unit alone holds.
        concentrated: Whether the price is wanted in rho.
        measure: 0 where units are counted, 1 where rows are.
        fewest: Keys of fewer units, or rows, never come out, and need not be handed over by the engine that holds them.
            The argument is the same: a key that one unit brings to this number has at most `largest` - 1 more, and
            comes out with probability at most delta / coordinates, as the threshold is that much higher; all others
            are hidden by the noise.

    Reference: [Korolova2009]
    """

    noise: Noise
    delta: float
    concentrated: bool
    measure: int = 0
    fewest: int = 1

    @classmethod
    def costing(cls, change: Change, spend: Spend, *, measure: int = 0) -> KeyThreshold:
        """The noise for the amount, and the threshold for the delta.

        Raises:
            DomainError: If no delta was named.
        """
        KeyThreshold.require(spend)
        noise = noise_for(change, spend.with_delta(Fraction(0)))
        return cls(noise, below(spend.delta), spend.currency == "rho", measure)

    @staticmethod
    def require(spend: Spend) -> None:
        """Raise DomainError unless the whole spend of a question names a delta."""
        if not spend.delta > 0:
            domain = "a delta > 0, beside the epsilon or rho, where keys are private"
            raise DomainError("spend", spend.typed(), domain, "Name a delta, or give the keys")

    @property
    def least(self) -> int:
        """The least noisy number that lets a key out.

        One unit alone counts at most as the largest change of a key: each of its keys comes out with probability at
        most delta / coordinates.
        """
        return self.fewest - 1 + self.noise.change.largest + self._reach

    @property
    def _reach(self) -> int:
        """How far noise reaches, but for the probability that one key may have."""
        return self.noise.passing(self.delta / self.noise.change.coordinates * (1 - 1e-12))

    @property
    def scattered(self) -> KeyThreshold:
        """For keys that are many, on many machines: `fewest` above 1, for a threshold higher by an eighth at most."""
        return replace(self, fewest=1 + self._reach // 8)

    @property
    def mechanism(self) -> Composable:
        """The noise, and the failure."""
        failure = (
            Concentrated(0.0, delta=self.delta)
            if self.concentrated
            else BlackBox(0.0, delta=self.delta)
        )
        return self.noise.mechanism + failure

    def draw(self, numbers: Sequence[int]) -> list[tuple[bool, int]]:
        """For the units, or rows, of each key, at least `fewest`: whether it comes out, and their noisy number."""
        least = self.least
        return [(number >= least, number) for number in self.noise.draw(numbers)]

    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""
        fewest = {"fewest": self.fewest} if self.fewest > 1 else {}
        return {"threshold": self.least, "delta": repr(self.delta)} | fewest | self.noise.plain()
