"""Before the first step of a training with Opacus: is the batch drawn as the accountant takes it to be drawn?

Each finding is a warning with the line to change. A step is charged at what is proved of the loader that `make_private`
was given: Poisson samples at the rate that is drawn; shuffled passes without amplification, once a pass; k draws in one
step as one of noise multiplier sigma / k, at k times the rate, since a record moves the sum by at most k and is in none
of the draws with probability (1 - rate)^k >= 1 - k rate. A loader of which nothing is proved is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Protocol
from weakref import WeakSet

from dpcompose.errors import MissingExtraError, UnsupportedError
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.mechanism import ShuffledEpochs
from dpcompose.numerics.bound import down

_DELTA = 1e-5
_POISSON = "engine.make_private(..., poisson_sampling=True), and iterate over the loader that it returns"


class PreflightWarning(UserWarning):
    """The loader and the accountant disagree, or may."""


@dataclass(frozen=True)
class Finding:
    """Something about a loader that the number of an accountant does not cover.

    Args:
        name: What it is.
        reason: Why it matters.
        line: The line to change.
        refused: Whether no number is proved, so that a step is refused.
    """

    name: str
    reason: str
    line: str
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}. Change: {self.line}"


class Accounting(Protocol):
    """An accountant of Opacus."""

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None: ...


def check(engine: Any, data_loader: Any, *, optimizer: Any = None) -> tuple[Finding, ...]:
    """Look at a loader before a training, and warn of all that the number of the accountant does not cover.

    Args:
        engine: A PrivacyEngine.
        data_loader: The loader that feeds the optimizer: the one that `make_private` returned.
        optimizer: The optimizer that `make_private` returned, if it is to be looked at too.

    Raises:
        MissingExtraError: If Opacus is not installed.
    """
    found = _of_loader(data_loader, None if optimizer is None else optimizer.noise_multiplier)
    if engine.dataset is not None and len(engine.dataset) != len(data_loader.dataset):
        found.append(_length(len(engine.dataset), len(data_loader.dataset)))
    if optimizer is not None and optimizer.accumulated_iterations > 1:
        found.append(_accumulation(optimizer.accumulated_iterations))
    found += _of_optimizers(data_loader.dataset)
    _warn(found)
    return tuple(found)


class StepHook:
    """Records each step of an optimizer, after a look at the loader before the first.

    Args:
        accountant: What records it.
        rate: The sampling rate as Opacus takes it to be.
        loader: The loader that `make_private` prepared; None if it is not known, and then the rate is believed.
    """

    def __init__(self, accountant: Accounting, rate: float, loader: Any) -> None:
        self._accountant, self._rate, self._loader = accountant, rate, loader
        self._passes: Any = None
        self._charged, self._least = 0, 0.0
        self._refused: Finding | None = None
        self._said: set[str] = set()
        if loader is None:
            return
        self.dataset = loader.dataset
        self._length = len(loader.dataset)
        HOOKS.add(self)
        kind, sampler = _samplers(loader)
        if kind == "shuffled":
            # Each pass over the loader asks the sampler for an order, also where the one before was not finished.
            self._passes = loader.batch_sampler.sampler = _counted()(sampler)
        elif kind == "poisson":
            self._rate = max(rate, float(loader.batch_sampler.sample_rate))

    def __call__(self, optimizer: Any) -> None:
        noise, draws = float(optimizer.noise_multiplier), int(optimizer.accumulated_iterations)
        if self._loader is not None:
            self._look(noise)
        if self._passes is not None:
            self._shuffled(noise, draws)
            return
        if draws > 1:
            self._say([_accumulation(draws)])
            noise = _shared(noise, draws)
        self._accountant.step(noise_multiplier=noise, sample_rate=min(1.0, self._rate * draws))

    def _look(self, noise: float) -> None:
        """Warn once of each finding; refuse the step if no number is proved."""
        found = [] if self._said else [*_of_loader(self._loader, noise), *_of_optimizers(self.dataset)]
        if len(self.dataset) != self._length:
            found.append(_length(self._length, len(self.dataset)))
        self._say(found)
        if self._refused is not None:
            raise UnsupportedError(self._refused.name, self._refused.reason, f"Change: {self._refused.line}")

    def _say(self, found: list[Finding]) -> None:
        new = [each for each in found if each.name not in self._said]
        self._said |= {"looked", *(each.name for each in new)}
        _warn(new)
        self._refused = next((each for each in new if each.refused), self._refused)

    def _shuffled(self, noise: float, draws: int) -> None:
        """A record is in at most one batch of each pass, with at least the least noise of the pass.

        A pass is charged when it begins, and again where the noise of a step is less than what it was charged at. A
        step of several batches that reaches over b beginnings may hold a record b + 1 times; what the record adds to
        all steps of these passes is then at most b + 1 times the norm. Where no pass has begun, the batches come from
        elsewhere, and may each hold the record.
        """
        new, least = self._passes.passes - self._charged, self._least
        if not self._passes.passes or (new and draws > 1):
            least = _shared(noise, new + 1 if new else draws)
            self._accountant.step(noise_multiplier=least, sample_rate=1.0)
        elif new or noise < least:
            least = noise
            for _ in range(max(new, 1)):
                self._accountant.step(noise_multiplier=noise, sample_rate=1.0)
        self._charged, self._least = self._passes.passes, least if new else min(noise, least)


def _shared(noise: float, times: int) -> float:
    """The noise multiplier of a sum that holds a record so many times, rounded down."""
    return down(noise / times) if noise > 0 and times > 1 else noise


HOOKS: WeakSet[StepHook] = WeakSet()
"""All that are in use: they tell which optimizers share a data set."""


def _of_loader(loader: Any, noise: float | None) -> list[Finding]:
    """The findings about how a loader draws its batches."""
    kind, sampler = _samplers(loader)
    found: list[Finding] = []
    if kind == "weighted":
        reason = "its records have rates of their own, some above what is charged, and may be in a batch twice"
        found.append(Finding("WeightedRandomSampler", reason, f"DataLoader(..., sampler=None); {_POISSON}", True))
    elif kind == "shuffled":
        reason = "batches of fixed size, in passes over all records, are no Poisson sample"
        found.append(Finding("shuffling without Poisson sampling", reason + _pair(loader, noise), _POISSON))
    elif kind != "poisson":
        reason = f"nothing is proved about batches that {type(sampler).__name__} draws"
        found.append(Finding(f"unknown sampler {type(sampler).__name__}", reason, _POISSON, True))
    if loader.drop_last and (left := len(loader.dataset) % (loader.batch_size or 1)):
        reason = f"each pass leaves out {left} records, and 1 / len(loader) is more than batch over records"
        found.append(Finding("dropped last batches", reason, "DataLoader(..., drop_last=False)"))
    if kind == "poisson" and sampler.num_samples != len(loader.dataset):
        found.append(_length(sampler.num_samples, len(loader.dataset)))
    return found


def _samplers(loader: Any) -> tuple[str, Any]:
    """How batches are drawn: poisson, shuffled, weighted or unknown; and what draws them."""
    data = _library("torch.utils.data")
    poisson = _library("opacus.utils.uniform_sampler").UniformWithReplacementSampler
    batches = loader.batch_sampler
    if isinstance(batches, poisson):
        return "poisson", batches
    sampler = batches.sampler if type(batches) is data.BatchSampler else batches
    sampler = sampler.sampler if isinstance(sampler, _counted()) else sampler
    if isinstance(sampler, data.WeightedRandomSampler):
        return "weighted", sampler
    once = type(sampler) is data.RandomSampler and not sampler.replacement
    if type(sampler) is data.SequentialSampler or (once and len(sampler) <= len(loader.dataset)):
        return "shuffled", sampler
    return "unknown", sampler


def _pair(loader: Any, noise: float | None) -> str:
    """Both ends of what one shuffled pass costs."""
    if not noise:
        return ""
    epoch = ShuffledEpochs(noise, steps=len(loader))
    found = epoch.epsilon(delta=_DELTA, adjacency=Adjacency.ZERO_OUT)
    return (
        f"; one pass costs an epsilon between {found.lower:.3g} and {found.upper:.3g} at delta = {_DELTA:g}, and the "
        f"larger end is charged: ({epoch!r} * passes).epsilon(delta=..., adjacency=Adjacency.ZERO_OUT) has both"
    )


def _of_optimizers(dataset: Any) -> Iterator[Finding]:
    """Several optimizers, or accountants, on one data set."""
    hooks = [hook for hook in HOOKS if hook.dataset is dataset]
    if len({id(hook._accountant) for hook in hooks}) > 1:  # pyright: ignore[reportPrivateUsage]
        reason = "each engine counts its own steps, and the records pay for all of them"
        yield Finding("several engines on one data set", reason, "second.accountant = first.accountant")
    elif len(hooks) > 1:
        reason = "steps are counted as if each had a batch of its own; two on one batch are one release of more"
        line = "let each optimizer iterate over its own loader, or step all of them as one optimizer"
        yield Finding("several optimizers on one data set", reason, line)


def _accumulation(draws: int) -> Finding:
    reason = f"{draws} draws in one step are no Poisson sample of {draws} times the rate: a record can be in several"
    reason += "; charged at noise multiplier over draws"
    line = "optimizer.step() after each batch, and opacus.utils.batch_memory_manager.BatchMemoryManager for memory"
    return Finding("gradient accumulation", reason, line)


def _length(before: int, after: int) -> Finding:
    reason = f"it had {before} records and has {after}; the loader draws as it did before"
    return Finding("a data set whose length changed", reason, "call make_private again, with a loader of the new data")


def _warn(found: list[Finding]) -> None:
    for each in found:
        warnings.warn(str(each), PreflightWarning, stacklevel=4)


@cache
def _counted() -> type[Any]:
    """A sampler that counts how often it is asked for an order."""

    class Counted(_library("torch.utils.data").Sampler):
        def __init__(self, sampler: Any) -> None:
            self.sampler, self.passes = sampler, 0

        def __len__(self) -> int:
            return len(self.sampler)

        def __iter__(self) -> Iterator[Any]:
            self.passes += 1
            return iter(self.sampler)

    return Counted


@cache
def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError("dpcompose.interop.opacus", "opacus") from None
