"""Opacus: an accountant that this import registers, and checks of the data loader before the first
step.

    import dpcompose.interop.opacus
    engine = PrivacyEngine(accountant="dpcompose")      # instead of accountant="prv"

In older versions of Opacus without a registry, set `engine.accountant =
dpcompose.interop.opacus.Accountant()`. Histories are read without the library; everything else
needs it (extra `opacus`).
"""

from __future__ import annotations

import inspect
import math
import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import FrameType
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dpcompose import check as guard
from dpcompose.composition import Composable, Composition, GrowingEpsilon, calibrate, compose
from dpcompose.errors import DomainError, MissingExtraError, UnsupportedError
from dpcompose.interop.draws import Draw, Finding, PreflightWarning, finding, library, probe
from dpcompose.interop.preflight import StepHook, check
from dpcompose.mechanisms import BlackBox, Gaussian, ShuffledEpochs
from dpcompose.values import Adjacency, Bound

ACCOUNTANTS = ("dpcompose", "prv", "rdp", "gdp")
"""The accountants whose history describes Gaussian noise on Poisson samples."""
_MOST_DELTAS = 16
_ONE_DRAW = "A rate is that of one Poisson draw: several draws in one step are no Poisson sample"


class Phase(NamedTuple):
    """A number of equal steps in the history of an Opacus accountant.

    Args:
        noise_multiplier: The standard deviation of the noise on the sum of a batch, divided by the
            clipping norm.
        sample_rate: The probability with which each record is in a batch.
        steps: The number of steps.
    """

    noise_multiplier: float
    sample_rate: float
    steps: int

    @staticmethod
    def of(entry: Any, name: str = "history") -> Phase:
        """A validated entry of a history.

        Args:
            entry: A sequence of noise multiplier, sample rate and number of steps.
            name: The name of the entry in errors.

        Raises:
            DomainError: If the entry has another form, or a number outside its domain.
        """
        if not isinstance(entry, tuple | list) or len(cast("Sequence[Any]", entry)) != 3:
            raise DomainError(name, entry, "noise multiplier, sample rate and number of steps")
        multiplier, rate, steps = cast("Sequence[Any]", entry)
        noise = guard.nonnegative(f"{name}, noise_multiplier", multiplier)
        rate = guard.probability(f"{name}, sample_rate", rate, _ONE_DRAW)
        return Phase(noise, rate, guard.times(steps, name=f"{name}, steps"))

    @property
    def costs(self) -> bool:
        """Whether the steps released anything about the data: there is at least one, at a rate
        above 0.
        """
        return self.steps > 0 and self.sample_rate > 0

    @property
    def charged(self) -> tuple[Composable, int] | None:
        """The mechanism of its steps, with their number; None if they cost nothing, or added no noise."""
        noise, rate, steps = self
        return (_mechanism(noise, rate), steps) if self.costs and noise else None


@lru_cache(maxsize=1 << 16)
def _mechanism(noise: float, rate: float) -> Composable:
    """The mechanism of one step: the same object for the same numbers."""
    return Gaussian(noise).sampled(rate)


def read_history(history: Any) -> list[Phase]:
    """The validated entries of a history; DomainError if it is not a list of phases."""
    if not isinstance(history, list | tuple):
        raise DomainError("history", history, "a list of phases")
    return [
        Phase.of(entry, f"history[{at}]") for at, entry in enumerate(cast("Sequence[Any]", history))
    ]


def from_state_dict(state: Any, *, adjacency: Adjacency | None = None) -> Composition:
    """The composition of the steps recorded in the state dictionary of any Opacus accountant.

    >>> from_state_dict({"mechanism": "prv", "history": [[1.0, 0.01, 1000]]})
    Gaussian(1.0).sampled(0.01) * 1000

    Args:
        state: The dictionary that the accountant's `state_dict()` returned, or its value read from
            JSON.
        adjacency: The neighboring relation; by default the one stated in the dictionary, or else
            add-remove. Steps that hold only under zero-out become `ShuffledEpochs`, which have no
            bound under another adjacency.

    Raises:
        DomainError: If `state` is not such a dictionary, or a number in it is outside its domain.
        UnsupportedError: If the accountant is unknown, or its history holds under another adjacency
            only.
    """
    history, mechanism, holds_under = state_of(state)
    if mechanism not in ACCOUNTANTS:
        reason = "the meaning of this accountant's history is not defined here"
        raise UnsupportedError(
            f"mechanism = {mechanism!r}", reason, f"Known are {', '.join(ACCOUNTANTS)}"
        )
    asked = guard.member("adjacency", holds_under if adjacency is None else adjacency, Adjacency)
    zero_out = holds_under is Adjacency.ZERO_OUT
    if zero_out and asked is not holds_under:
        raise finding("zero_out", asked=asked.value).error
    everything = BlackBox(0.0, delta=1.0, holds_under=asked)

    def step(noise: float, rate: float) -> Composable:
        unsampled = ShuffledEpochs(noise, steps=1) if zero_out and noise and rate == 1 else None
        return unsampled or (_mechanism(noise, rate) if noise else everything)

    return compose(
        *(
            step(each.noise_multiplier, each.sample_rate) * each.steps
            for each in history
            if each.costs
        )
    )


def state_of(state: Any) -> tuple[list[Phase], str, Adjacency]:
    """The history, the name of the accountant and the adjacency in a state dictionary; DomainError
    if it is malformed.
    """
    accepted = "a dictionary with `history` and `mechanism`"
    state = cast("Mapping[Any, Any]", guard.kind("state_dict", state, Mapping, accepted))
    for key in ("history", "mechanism"):
        if key not in state:
            raise DomainError(
                "state_dict", sorted(map(str, state)), f"a dictionary with the key `{key}`"
            )
    stated = state.get("adjacency", Adjacency.ADD_REMOVE)
    adjacency = guard.named("state_dict, adjacency", stated, Adjacency)
    return read_history(state["history"]), str(state["mechanism"]), adjacency


def _compared(entry: Any, phase: Phase) -> Any:
    """Later histories are compared with the entry itself if nobody can change it: that is fastest."""
    kinds: list[Any] = [type(entry), *map(type, entry)]
    return entry if kinds[0] is tuple and set(kinds[1:]) <= {int, float} else phase


class KnownHistory:
    """Epsilon of a growing history, with cached results: each call processes only new entries."""

    def __init__(self) -> None:
        self._phases: list[tuple[float, float, int]] = []
        self._steps: list[tuple[Composable, int] | None] = []
        self._growing: dict[float, GrowingEpsilon] = {}

    def bound(self, history: Any, delta: Any) -> Bound:
        """Certified ends of epsilon at a delta; the upper end is infinite if a step added no noise."""
        delta, same = guard.probability("delta", delta), max(len(self._phases) - 1, 0)
        # A list is unequal to a tuple: an entry that can be changed in place is read again.
        if not isinstance(history, list) or history[:same] != self._phases[:same]:
            same = 0
        entries = cast("Any", history)[same:] if same else cast("Any", history)
        new = read_history(entries)
        self._phases[same:] = map(_compared, entries, new)
        self._steps[same:] = [phase.charged for phase in new]
        steps = list(filter(None, self._steps))
        if len(steps) < len(self._steps):
            bare = [rate for noise, rate, steps in self._phases if rate and steps and not noise]
            if bare:
                return Bound(math.inf if delta < max(bare) else 0.0, math.inf)
        if delta not in self._growing and len(self._growing) >= _MOST_DELTAS:
            del self._growing[next(iter(self._growing))]
        return self._growing.setdefault(delta, GrowingEpsilon(delta)).bound(steps)


__all__ = [
    "Finding",
    "PreflightWarning",
    "check",
    "from_state_dict",
    "get_noise_multiplier",
    "probe",
]

NAME = "dpcompose"
MOST_NOISE = 1e6
_WITHOUT_EFFECT = (
    "eps_error delta_error alphas epsilon_tolerance normalize_clipping optim_args rand_on_empty"
)
_SAMPLING = {"poisson", "poisson_sampling"}
_POISSON = "Ask dpcompose.mechanisms.ShuffledEpochs(sigma, steps=len(loader)) * epochs under Adjacency.ZERO_OUT"


class _Accounting:
    """An Opacus accountant with certified bounds, a replacement for `PRVAccountant` and
    `RDPAccountant`.

    Epsilon depends only on `history`, a list of tuples (noise multiplier, sample rate, number of
    steps), which may be assigned, and holds under `adjacency`. That is add-remove until a step is
    charged that holds only under zero-out.
    """

    history: list[tuple[float, float, int]]
    adjacency: Adjacency

    def __init__(self) -> None:
        super().__init__()
        self.history, self.adjacency = [], Adjacency.ADD_REMOVE
        self._known = KnownHistory()
        self._in_use = False
        self._drawing: Literal["", "open", "closed", "lost"] = ""
        self._draw = Draw(0, 0.0, self)
        self._run = secrets.token_hex(16)
        self._runs: dict[str, float] = {self._run: 0}
        self.deterministic = False
        """Whether noise may be seeded by the caller; then epsilon is infinite."""
        self.augmentations = 1
        """The number of clipped rows of each record in a batch; a step is charged at sigma over it."""

    def __len__(self) -> int:
        return len(self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name under which Opacus registers this accountant."""
        return NAME

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one step with Gaussian noise on a Poisson sample.

        Raises:
            DomainError: If the noise multiplier is not a finite number of at least 0, or the rate
                is not in [0, 1].
            UnsupportedError: If batches are drawn by `draw`, and this is not the one step of an
                open draw.
        """
        self._in_use = True
        self._runs[self._run] += 1
        noise, rate, steps = Phase.of((noise_multiplier, sample_rate, 1), "step")
        if self.deterministic:
            noise, rate = 0.0, 1.0
        if self._drawing:
            if self._drawing != "open":
                raise finding("one_step", what="a step without a draw of its own").error
            self._drawing, rate = "closed", max(rate, self._draw.rate)
        if self.history and tuple(self.history[-1][:2]) == (noise, rate):
            steps += self.history.pop()[2]
        self.history.append((noise, rate, steps))

    @contextmanager
    def draw(self, rate: float, *, records: int) -> Generator[NDArray[np.int64]]:
        """A fresh Poisson sample for a loop without a loader, and the block that takes its one step.

            with accountant.draw(0.01, records=len(inputs)) as batch:
                optimizer.step()  # on all of the batch; or accountant.step(...), for noise of your own

        An optimizer charges the step if it has the hook of `get_optimizer_hook_fn`. If the block
        ends without its step, steps are no longer on Poisson samples: all steps so far are charged
        at rate 1, and further draws are refused. An empty sample is stepped with noise alone.

        Args:
            rate: The probability of each record, in [0, 1]; the coins come from the operating
                system.
            records: The number of records.

        Returns:
            The indices of the sample, increasing.

        Raises:
            UnsupportedError: If another draw is open, or a draw had no step.
        """
        if self._drawing in ("open", "lost"):
            raise finding("one_step", what="a draw after one that had no step").error
        size = 8 * guard.count("records", records, least=0)
        coins = np.frombuffer(secrets.token_bytes(size), np.uint64) >> 11
        batch = np.flatnonzero(coins < int(guard.probability("rate", rate) * 2**53))
        self._drawing, self._draw = "open", Draw(len(batch), rate, self)
        try:
            yield batch
        finally:
            if self._drawing == "open":
                self._drawing = "lost"
                self.end_amplification()

    @property
    def open_draw(self) -> Draw | None:
        """The draw of `draw` whose step has not been taken yet; None if there is none."""
        return self._draw if self._drawing == "open" else None

    def end_amplification(self) -> None:
        """Charge all earlier steps without amplification by sampling, under zero-out adjacency."""
        if any(0 < rate < 1 for _, rate, _ in self.history):
            self.history = [(noise, float(rate > 0), steps) for noise, rate, steps in self.history]
            self.adjacency = Adjacency.ZERO_OUT

    def bound(self, delta: float) -> Bound:
        """Certified lower and upper ends of the epsilon of the steps so far.

        Raises:
            DomainError: If delta or an entry of the history is outside its domain.
        """
        return self._known.bound(self.history, delta)

    def get_epsilon(self, delta: float, **options: Any) -> float:
        """The upper end of the epsilon of the steps so far.

        Args:
            delta: In [0, 1].
            options: Options of other Opacus accountants. Those about precision have no effect.

        Raises:
            UnsupportedError: If an option requests a sampling or clipping that the history does not
                describe, or if no optimizer charges this accountant.
        """
        if not (self._in_use or self.history):
            raise finding("unused").error
        for name, value in options.items():
            if "clipbound" in name or "unclipped" in name:
                raise finding("adaptive").error
            if name == "rand_on_empty" and value:
                raise finding("rand_on_empty").error
            if name not in _WITHOUT_EFFECT.split() and (name not in _SAMPLING or value is not True):
                reason = "no number of a history of Poisson samples depends on it, or none is known"
                raise UnsupportedError(
                    f"get_epsilon({name}={value!r})", reason, _POISSON if name in _SAMPLING else ""
                )
        return self._known.bound(_as_it_will_run(self.history, inspect.currentframe()), delta).upper

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """The hook that Opacus calls before each optimizer step: it checks the data loader and
        records the step.

        Args:
            sample_rate: The sampling rate that Opacus computed from the loader.
        """
        self._in_use = True
        # Opacus hands over the rate alone: engine and loader are in `make_private`, which asks for this hook.
        caller = _locals(inspect.currentframe(), "make_private", 1)
        known = isinstance(caller.get("self"), library("opacus").PrivacyEngine)
        return StepHook(self, sample_rate, caller if known else {})

    def state_dict(self, destination: Any = None) -> Any:
        """The history and the accountant's name, and the adjacency unless it is add-remove."""
        state: Any = super().state_dict(destination)  # pyright: ignore
        state["runs"] = dict(self._runs)
        if self.adjacency is not Adjacency.ADD_REMOVE:
            state["adjacency"] = self.adjacency.value
        return state  # pyright: ignore

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from the history of a checkpoint.

        Steps that this accountant charged since are never forgotten: who goes back to a checkpoint
        has released them, and steps that are repeated are charged as new. Steps that another
        process took after the checkpoint, and before it was killed, are in no checkpoint: charge
        them to a ledger (`dpcompose.interop.guard`).

        Raises:
            DomainError: If the dictionary is malformed, or was written by another accountant.
        """
        history, mechanism, adjacency = state_of(state_dict)
        if mechanism != self.mechanism():
            accepted = f"{self.mechanism()!r}, the accountant that is to load it"
            remedy = "Take the steps over: accountant.history = state_dict['history']"
            raise DomainError("mechanism", mechanism, accepted, remedy)
        self._in_use, runs = True, dict(state_dict.get("runs") or {"": math.inf})
        if self._runs[self._run]:
            if all(self._runs.get(run, 0) >= steps for run, steps in runs.items()):
                return
            history += read_history(self.history)
            if self.adjacency is Adjacency.ZERO_OUT:
                adjacency = self.adjacency
        self._runs, self.adjacency = runs | self._runs, adjacency
        self.history = [(noise, rate, steps) for noise, rate, steps in history]


def _locals(frame: FrameType | None, function: str, back: int) -> Mapping[str, Any]:
    """The local variables of the function that called `back` frames above; empty if its name is not
    `function`.
    """
    for _ in range(back):
        frame = None if frame is None else frame.f_back
    return frame.f_locals if frame is not None and frame.f_code.co_name == function else {}


def _as_it_will_run(history: Any, frame: FrameType | None) -> Any:
    """The history, except inside Opacus' `get_noise_multiplier`: there, with its number of epochs
    rounded up to whole steps.

    Raises:
        UnsupportedError: If `make_private_with_epsilon` calibrates for Poisson samples a loader
            that draws none.
    """
    search = _locals(frame, "get_noise_multiplier", 1)
    if search.get("epochs") is None or len(history) != 1:
        return history
    if _locals(frame, "make_private_with_epsilon", 2).get("poisson_sampling") is False:
        raise finding("not_poisson").error
    ((noise, rate, _),) = history
    return [(noise, rate, _steps(search["epochs"], rate))]


def _steps(epochs: float, rate: float) -> int:
    """The number of steps in a number of epochs, rounded up; a relative excess of 1e-12 is taken as
    rounding error.
    """
    return math.ceil(epochs / rate * (1 - 1e-12))


def get_noise_multiplier(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epochs: float | None = None,
    steps: int | None = None,
) -> float:
    """The smallest noise multiplier, up to rounding, that keeps the epsilon of the steps within a
    target.

    It replaces `opacus.accountants.utils.get_noise_multiplier` with `accountant="dpcompose"`.

    >>> round(get_noise_multiplier(target_epsilon=8.0, target_delta=1e-5, sample_rate=0.04, steps=2000), 4)
    1.29

    Args:
        target_epsilon: The largest epsilon, in nats; positive.
        target_delta: The delta at which epsilon is computed, in (0, 1).
        sample_rate: The rate of the Poisson samples, in (0, 1].
        epochs: The number of epochs of 1 / sample_rate steps each, rounded up to whole steps; an
            alternative to `steps`.
        steps: The number of steps.

    Raises:
        DomainError: If a number is outside its domain, or both or neither of `epochs` and `steps` are given.
        UnreachableError: If no noise multiplier up to 10^6 suffices.
    """
    target = guard.positive("target_epsilon", target_epsilon)
    delta = guard.open_probability("target_delta", target_delta)
    if (steps is None) == (epochs is None):
        raise DomainError("epochs, steps", (epochs, steps), "one of the two")
    if not guard.probability("sample_rate", sample_rate) > 0:
        raise DomainError("sample_rate", sample_rate, "a number in (0, 1]")
    count = _steps(guard.positive("epochs", epochs), sample_rate) if steps is None else steps
    if not Phase.of((1.0, sample_rate, count), "steps").costs:
        return 0.0

    def training(noise: float) -> Composable:
        return _mechanism.__wrapped__(noise, sample_rate) * count

    return calibrate(training, epsilon=target, delta=delta, bracket=(1e-12, MOST_NOISE)).value


def __getattr__(name: str) -> Any:
    """Create the class `Accountant` when it is first accessed, since it derives from a class of
    Opacus, and register it with Opacus; an earlier registration is replaced.
    """
    if name != "Accountant":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    accountants = library("opacus").accountants
    stated = {"__module__": __name__, "__doc__": _Accounting.__doc__}
    kind = type("Accountant", (_Accounting, accountants.IAccountant), stated)
    accountants.register_accountant(NAME, kind, force=True)
    return globals().setdefault(name, kind)


with suppress(MissingExtraError):  # who imports this for a history needs no Opacus
    __getattr__("Accountant")
