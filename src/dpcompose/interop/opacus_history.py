"""The history of an accountant of Opacus, read without it: steps of one noise multiplier and rate, phase by phase."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from dpcompose import check
from dpcompose.composition import MOST_TIMES, Composable, Composition, GrowingEpsilon, compose
from dpcompose.errors import DomainError, MissingExtraError, UnsupportedError
from dpcompose.mechanisms import BlackBox, Gaussian, ShuffledEpochs
from dpcompose.values import Adjacency, Bound

ACCOUNTANTS = ("dpcompose", "prv", "rdp", "gdp")
"""Those whose history says this: Gaussian noise on Poisson samples."""
_MOST_DELTAS = 16
_ONE_DRAW = "A rate is that of one Poisson draw: several draws in one step are no Poisson sample"
_AMPLIFIED = (Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.ZERO_OUT)


class Phase(NamedTuple):
    """Steps that are alike.

    Args:
        noise_multiplier: The standard deviation of the noise on the sum of a batch, over the clipping norm.
        sample_rate: The probability with which a record is in a batch.
        steps: How many.
    """

    noise_multiplier: float
    sample_rate: float
    steps: int

    @staticmethod
    def of(entry: Any, place: str = "history") -> Phase:
        """An entry of a history, checked."""
        if not isinstance(entry, tuple | list) or len(cast("Sequence[Any]", entry)) != 3:
            raise DomainError(place, entry, "noise multiplier, sample rate and number of steps")
        noise, rate, steps = cast("Sequence[Any]", entry)
        noise = check.nonnegative(f"{place}, noise_multiplier", noise)
        rate = check.real(f"{place}, sample_rate", rate)
        if not 0 <= rate <= 1:
            raise DomainError(f"{place}, sample_rate", rate, "a number in [0, 1]", _ONE_DRAW)
        steps = check.count(f"{place}, steps", steps)
        if not steps <= MOST_TIMES:
            raise DomainError(f"{place}, steps", steps, "an integer of at most 10^15")
        return Phase(noise, rate, steps)

    @property
    def costs(self) -> bool:
        """Whether anything was released about anyone."""
        return self.steps > 0 and self.sample_rate > 0


@lru_cache(maxsize=4096)
def _mechanism(noise: float, rate: float) -> Composable:
    """One step."""
    noisy = Gaussian(noise)
    return noisy if rate == 1 else noisy.sampled(rate)


def read_history(history: Any) -> list[Phase]:
    """The phases, checked."""
    if not isinstance(history, list | tuple):
        raise DomainError("history", history, "a list of phases")
    return [
        Phase.of(entry, f"history[{at}]") for at, entry in enumerate(cast("Sequence[Any]", history))
    ]


def from_state_dict(state: Any, *, adjacency: Adjacency | None = None) -> Composition:
    """The steps that the state dictionary of an accountant of Opacus records, whichever of its accountants wrote it.

    >>> from_state_dict({"mechanism": "prv", "history": [[1.0, 0.01, 1000]]})
    Gaussian(1.0).sampled(0.01) * 1000

    Args:
        state: What `state_dict()` of the accountant returned, or the same as read from JSON.
        adjacency: Who are neighbors; by default what the dictionary says, and add-remove if it does not say. Steps that
            hold under zero-out alone become `ShuffledEpochs`, which answer under no other.

    Raises:
        DomainError: If it is no such dictionary, or a number in it is outside its domain.
        UnsupportedError: If an accountant that is not known wrote it, or it holds under another adjacency.
    """
    history, mechanism, holds_under = state_of(state)
    if mechanism not in ACCOUNTANTS:
        reason = "an accountant that is not known: what its history means is not known either"
        raise UnsupportedError(
            f"mechanism = {mechanism!r}", reason, f"Known are {', '.join(ACCOUNTANTS)}"
        )
    asked = check.member("adjacency", holds_under if adjacency is None else adjacency, Adjacency)
    zero_out = holds_under is Adjacency.ZERO_OUT
    if zero_out and asked is not holds_under:
        reason = f"its steps are charged under zero-out, and nothing is known of them under {asked.value}"
        raise UnsupportedError(
            "this history", reason, "Change: from_state_dict(state, adjacency=Adjacency.ZERO_OUT)"
        )
    everything = BlackBox(0.0, delta=1.0, holds_under=asked)

    def step(noise: float, rate: float) -> Composable:
        unsampled = ShuffledEpochs(noise, steps=1) if zero_out and noise and rate == 1 else None
        return unsampled or (_mechanism(noise, rate) if noise else everything)

    steps = [(each, step(*each[:2])) for each in history if each.costs]
    return compose(*(mechanism * phase.steps for phase, mechanism in steps))


def state_of(state: Any) -> tuple[list[Phase], str, Adjacency]:
    """The history, the name of the accountant and the adjacency in a state dictionary."""
    if not isinstance(state, Mapping):
        raise DomainError("state_dict", state, "a dictionary with `history` and `mechanism`")
    found = cast("Mapping[Any, Any]", state)
    for key in ("history", "mechanism"):
        if key not in found:
            raise DomainError(
                "state_dict", sorted(map(str, found)), f"a dictionary with the key `{key}`"
            )
    stated = found.get("adjacency", Adjacency.ADD_REMOVE.value)
    if stated not in [each.value for each in Adjacency]:
        raise DomainError(
            "state_dict, adjacency", stated, f"one of {', '.join(each.value for each in Adjacency)}"
        )
    return read_history(found["history"]), str(found["mechanism"]), Adjacency(stated)


def read_checkpoint(path: str | Path) -> Any:
    """The accountant's state dictionary in a file that `PrivacyEngine.save_checkpoint` or `torch.save` wrote.

    Nothing in the file is run: what torch does not load with `weights_only=True` is refused.

    Raises:
        MissingExtraError: If torch is not installed.
        DomainError: If the file holds no such dictionary, or more than numbers, text and arrays of them.
    """
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtraError(f"to read {path}", "opacus") from None
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)  # pyright: ignore
    except OSError as error:
        raise DomainError(
            "path", str(path), f"a file that can be read ({error.strerror})"
        ) from None
    except Exception as error:
        refused = f"a file that torch loads with weights_only=True ({type(error).__name__})"
        remedy = "Save accountant.state_dict() alone, with torch.save or json.dump"
        raise DomainError("path", str(path), refused, remedy) from None
    return found.get("privacy_accountant_state_dict", found) if isinstance(found, dict) else found  # pyright: ignore


class KnownHistory:
    """A history that is asked again and again, with what is known of it: each question reads only what is new."""

    def __init__(self) -> None:
        self._entries: list[Any] = []
        self._phases: list[tuple[Phase, Composable | None]] = []
        self._asked: dict[float, GrowingEpsilon] = {}

    def bound(self, history: Any, delta: Any) -> Bound:
        """Epsilon at that delta; infinite if a step added no noise."""
        delta = check.probability("delta", delta)
        self._read(history)
        bare = [phase.sample_rate for phase, step in self._phases if step is None and phase.costs]
        if bare:
            return Bound(math.inf if delta < max(bare) else 0.0, math.inf)
        if delta not in self._asked and len(self._asked) >= _MOST_DELTAS:
            del self._asked[next(iter(self._asked))]
        growing = self._asked.setdefault(delta, GrowingEpsilon(delta))
        return growing.bound(
            [(step, phase[2]) for phase, step in self._phases if step is not None and phase.costs]
        )

    def _read(self, history: Any) -> None:
        kept = max(len(self._entries) - 1, 0)
        if not isinstance(history, list) or history[:kept] != self._entries[:kept]:
            kept = 0
        new = read_history(cast("Any", history)[kept:] if kept else history)
        phases = [
            (
                phase,
                _mechanism(*phase[:2]) if phase.noise_multiplier and phase.sample_rate else None,
            )
            for phase in new
        ]
        # Tuples, so that an entry that is changed in place is no longer equal.
        self._entries[kept:] = [tuple(entry) for entry in cast("list[Any]", history)[kept:]]
        self._phases[kept:] = phases
