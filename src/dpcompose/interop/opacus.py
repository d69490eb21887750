"""Opacus: an accountant that is registered by this import, and a look at the loader before the first step.

    import dpcompose.interop.opacus
    engine = PrivacyEngine(accountant="dpcompose")      # where accountant="prv" stood

An older Opacus has no register: `engine.accountant = dpcompose.interop.opacus.Accountant()`. Histories are read without
the library; all else needs it (extra `opacus`).
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any, ClassVar

from dpcompose import check as guard
from dpcompose.errors import DomainError, MissingExtraError, UnreachableError, UnsupportedError
from dpcompose.interop.opacus_history import (
    KnownHistory,
    Phase,
    from_state_dict,
    read_checkpoint,
    state_of,
)
from dpcompose.interop.preflight import (
    ADAPTIVE,
    RAND_ON_EMPTY,
    Finding,
    PreflightWarning,
    StepHook,
    check,
)
from dpcompose.values import Adjacency, Bound

__all__ = [
    "Finding",
    "PreflightWarning",
    "check",
    "from_state_dict",
    "get_noise_multiplier",
    "read_checkpoint",
]

NAME = "dpcompose"
MOST_NOISE, _CLOSE = 1e6, 1e-4
_PRECISION = {"eps_error", "delta_error", "alphas", "epsilon_tolerance"}
_ADAPTIVE = {
    "target_unclipped_quantile",
    "clipbound_learning_rate",
    "max_clipbound",
    "min_clipbound",
    "unclipped_num_std",
}
_CLIPPING = {"normalize_clipping", "optim_args", "rand_on_empty"}
_SAMPLING = {"poisson", "poisson_sampling"}
_POISSON = "Ask dpcompose.mechanisms.ShuffledEpochs(sigma, steps=len(loader)) * epochs under Adjacency.ZERO_OUT"


class _Accounting:
    """An accountant of Opacus that adds up exactly, in place of `PRVAccountant` and `RDPAccountant`.

    Epsilon follows from `history` alone: tuples of noise multiplier, sample rate and number of steps, which may be
    assigned. It holds under `adjacency`: that of added or removed records, until a step is charged that holds under
    zero-out alone.
    """

    history: list[tuple[float, float, int]]
    adjacency: Adjacency
    registered: ClassVar[str] = NAME

    def __init__(self) -> None:
        super().__init__()
        self.history, self.adjacency = [], Adjacency.ADD_REMOVE
        self._known = KnownHistory()
        self._in_use = False

    def __len__(self) -> int:
        return len(self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name under which it is registered."""
        return cls.registered

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one step on a Poisson sample.

        Raises:
            DomainError: If the noise multiplier is not a finite number >= 0, or the rate not in [0, 1].
        """
        self._in_use = True
        noise, rate, steps = Phase.of((noise_multiplier, sample_rate, 1), "step")
        if self.history and tuple(self.history[-1][:2]) == (noise, rate):
            steps += self.history.pop()[2]
        self.history.append((noise, rate, steps))

    def bound(self, delta: float) -> Bound:
        """Epsilon of the steps so far, between two ends.

        Raises:
            DomainError: If delta or an entry of the history is outside its domain.
        """
        return self._known.bound(self.history, delta)

    def get_epsilon(self, delta: float, **options: Any) -> float:
        """The upper end of epsilon.

        Args:
            delta: In [0, 1].
            options: What other accountants take. How precise they shall be changes nothing here.

        Raises:
            UnsupportedError: If an option asks for another number than that of Poisson samples, or if nothing was ever
                charged here and no optimizer charges here.
        """
        if not (self._in_use or self.history):
            reason = "no optimizer charges it: one that make_private prepared before charges another accountant"
            raise UnsupportedError(
                "this accountant", reason, "Change: engine.accountant = ... before make_private"
            )
        for name, value in options.items():
            if name in _ADAPTIVE or (name == "rand_on_empty" and value):
                refused = RAND_ON_EMPTY if name == "rand_on_empty" else ADAPTIVE
                raise UnsupportedError(refused.name, refused.reason, f"Change: {refused.line}")
            if name not in _PRECISION | _CLIPPING and (name not in _SAMPLING or value is not True):
                reason = "no number of a history of Poisson samples depends on it, or none is known"
                raise UnsupportedError(
                    f"get_epsilon({name}={value!r})", reason, _POISSON if name in _SAMPLING else ""
                )
        history = _as_it_will_run(self.history, inspect.currentframe())
        return (
            self.bound(delta).upper
            if history is self.history
            else KnownHistory().bound(history, delta).upper
        )

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """A function that Opacus calls before each step of an optimizer: it looks at the loader, then records."""
        self._in_use = True
        # Opacus hands over the rate alone: engine and loader are in `make_private`, which asks for this hook.
        caller = _locals(inspect.currentframe(), "make_private", 1)
        known = isinstance(caller.get("self"), _library("check").PrivacyEngine)
        return StepHook(self, sample_rate, caller if known else {})

    def state_dict(self, destination: Any = None) -> Any:
        """The history, the mechanism, and the adjacency where it is not that of added or removed records."""
        state: Any = super().state_dict(destination)  # pyright: ignore
        if self.adjacency is not Adjacency.ADD_REMOVE:
            state["adjacency"] = self.adjacency.value
        return state  # pyright: ignore

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a run of this accountant stopped.

        Raises:
            DomainError: If it is not the state of such a run.
        """
        history, mechanism, adjacency = state_of(state_dict)
        if mechanism != self.mechanism():
            remedy = "Take the steps over: accountant.history = state_dict['history']"
            raise DomainError(
                "mechanism",
                mechanism,
                f"{self.mechanism()!r}, the accountant that is to load it",
                remedy,
            )
        self._in_use, self.adjacency = True, adjacency
        self.history = [
            (phase.noise_multiplier, phase.sample_rate, phase.steps) for phase in history
        ]


def _locals(frame: FrameType | None, function: str, back: int) -> Mapping[str, Any]:
    """The variables of a caller of that name, so many calls back; empty if another function called."""
    for _ in range(back):
        frame = None if frame is None else frame.f_back
    return frame.f_locals if frame is not None and frame.f_code.co_name == function else {}


def _as_it_will_run(history: Any, frame: FrameType | None) -> Any:
    """The history that Opacus' `get_noise_multiplier` asks about, with the steps that its epochs take in full.

    Raises:
        UnsupportedError: If `make_private_with_epsilon` calibrates Poisson samples for a loader that draws none.
    """
    search = _locals(frame, "get_noise_multiplier", 1)
    if search.get("epochs") is None or len(history) != 1:
        return history
    if _locals(frame, "make_private_with_epsilon", 2).get("poisson_sampling") is False:
        reason = "its noise is calibrated as for Poisson samples, and each pass of this loader costs more"
        noise = "dpcompose.interop.opacus.get_noise_multiplier(..., sample_rate=1.0, steps=epochs)"
        remedy = f"Change: make_private(..., noise_multiplier={noise}, poisson_sampling=False)"
        raise UnsupportedError("make_private_with_epsilon(poisson_sampling=False)", reason, remedy)
    ((noise, rate, _),) = history
    return [(noise, rate, _steps(search["epochs"], rate))]


def _steps(epochs: float, rate: float) -> int:
    """The steps of so many epochs, a broken one in full; a quotient a rounding away from an integer is that integer."""
    return math.ceil(epochs / rate * (1 - 1e-12))


def get_noise_multiplier(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epochs: float | None = None,
    steps: int | None = None,
) -> float:
    """The least noise multiplier that keeps so many steps within a target, to 10^-4 of epsilon or 10^-3.

    As `opacus.accountants.utils.get_noise_multiplier` with `accountant="dpcompose"`, in fewer questions.

    >>> round(get_noise_multiplier(target_epsilon=8.0, target_delta=1e-5, sample_rate=0.04, steps=2000), 4)
    1.29

    Args:
        target_epsilon: Positive.
        target_delta: In (0, 1).
        sample_rate: In (0, 1].
        epochs: How many epochs of 1 / sample_rate steps, a broken number of them rounded up; or
        steps: how many steps.

    Raises:
        DomainError: If a number is outside its domain, or both or neither of `epochs` and `steps` are given.
        UnreachableError: If no noise multiplier up to 10^6 is enough.
    """
    target = guard.positive("target_epsilon", target_epsilon)
    if not 0 < guard.probability("target_delta", target_delta) < 1:
        raise DomainError("target_delta", target_delta, "a number in (0, 1)")
    if (steps is None) == (epochs is None):
        raise DomainError("epochs, steps", (epochs, steps), "one of the two")
    if not guard.probability("sample_rate", sample_rate) > 0:
        raise DomainError("sample_rate", sample_rate, "a number in (0, 1]")
    count = _steps(guard.positive("epochs", epochs), sample_rate) if steps is None else steps

    one = {"history": [(1.0, sample_rate, count)], "mechanism": NAME}
    if not from_state_dict(one).parts:
        return 0.0

    def epsilon(noise: float) -> float:
        return (
            from_state_dict(one | {"history": [(noise, sample_rate, count)]})
            .epsilon(delta=target_delta)
            .upper
        )

    # As if each step were Gaussian with the chi-squared distance of its sample, and epsilon = mu^2 / 2 + depth mu.
    depth = math.sqrt(-2 * math.log(target_delta))
    mu = math.sqrt(depth * depth + 2 * target) - depth
    start = 1 / math.sqrt(math.log1p(mu * mu / (sample_rate * sample_rate * count)) or 1e-12)
    return _least(epsilon, target, min(start, MOST_NOISE))


def _least(epsilon: Callable[[float], float], target: float, start: float) -> float:
    """The least argument of a falling function that keeps it within the target, by secants of its logarithm."""
    low, high, noise, close = 0.0, math.inf, start, min(_CLOSE, 1e-3 / target)
    points: list[tuple[float, float]] = []
    while True:
        found = epsilon(noise)
        if found > target:
            low = noise
        else:
            high = noise
            if found >= target * (1 - close) or high - low <= 4 * math.ulp(high):
                return noise
        if low >= MOST_NOISE:
            raise UnreachableError(
                "get_noise_multiplier", target, found, "Take fewer steps, or a larger delta"
            )
        points = [*points[-1:], (math.log(noise), math.log(max(found, 1e-300)))]
        noise = math.exp(
            min(_secant(points, math.log(target * (1 - close / 2))), math.log(2 * MOST_NOISE))
        )
        if not 0.999 * low + 0.001 * min(high, 1e9) < noise < high:
            noise = math.sqrt(low * high) if low > 0 and high < math.inf else 2 * low or high / 2


def _secant(points: list[tuple[float, float]], level: float) -> float:
    """Where the line through two points meets a level; through one point, a line of slope -1."""
    x, y = points[-1]
    run, rise = (x - points[0][0], y - points[0][1]) if len(points) > 1 else (1.0, -1.0)
    return x + (level - y) * run / rise if rise * run < 0 else math.nan


@cache
def _library(what: str) -> Any:
    try:
        return import_module("opacus")
    except ImportError:
        raise MissingExtraError(f"dpcompose.interop.opacus.{what}", "opacus") from None


@cache
def _accountant() -> type[Any]:
    """The class, registered under its name; what was registered by an earlier import of this file is replaced."""
    accountants = _library("Accountant").accountants
    stated = {"__module__": __name__, "__doc__": _Accounting.__doc__}
    found = types.new_class(
        "Accountant", (_Accounting, accountants.IAccountant), {}, lambda body: body.update(stated)
    )
    accountants.register_accountant(NAME, found, force=True)
    return found


def __getattr__(name: str) -> Any:
    """`Accountant`, a class that is made of one of Opacus."""
    if name == "Accountant":
        return _accountant()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


with suppress(MissingExtraError):  # who imports this for a history needs no Opacus
    _accountant()
