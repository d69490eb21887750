"""Checks of an Opacus training: is each batch drawn as the accountant assumes?

Each finding is a warning with the line of code to change. A step is charged at what is proved for
the loader passed to `make_private`: Poisson samples at their drawn rate; shuffled passes without
amplification, once per pass; k draws in one step as one with noise multiplier sigma / k at k times
the rate, since a record moves the sum by at most k and is in none of the draws with probability (1
- rate)^k >= 1 - k rate. A loader for which nothing is proved is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from typing import Any
from weakref import WeakSet

from dpcompose import check as guard
from dpcompose.errors import UnsupportedError
from dpcompose.interop.draws import (
    DrawLog,
    Finding,
    OwnGenerator,
    attributes,
    counts_of,
    finding,
    forget_norms,
    library,
    replace_method,
    warn,
)
from dpcompose.mechanisms import ShuffledEpochs
from dpcompose.values import Adjacency, down

_DELTA = 1e-5


def check(engine: Any, data_loader: Any, *, optimizer: Any = None) -> tuple[Finding, ...]:
    """Check a data loader before a training, and warn of everything that the accountant's epsilon
    does not cover.

    Args:
        engine: The PrivacyEngine.
        data_loader: The loader that feeds the optimizer, as `make_private` returned it.
        optimizer: The optimizer that `make_private` returned; None to leave it out of the checks.

    Returns:
        The findings, which are also issued as warnings.

    Raises:
        MissingExtraError: If Opacus is not installed.
    """
    found = [*_of_loader(data_loader, None if optimizer is None else optimizer.noise_multiplier)]
    if engine.dataset is not None and len(engine.dataset) != len(data_loader.dataset):
        found.append(finding("length", before=len(engine.dataset), after=len(data_loader.dataset)))
    if len(counts_of(optimizer)) > 1:
        found.append(finding("accumulation", draws=len(counts_of(optimizer))))
    found += _of_options(optimizer, data_loader)
    found += _of_optimizers(data_loader.dataset)
    warn(found)
    return tuple(found)


class StepHook(DrawLog):
    """An optimizer hook that charges each step after checking the loader and the draws that the
    step uses.

    Args:
        accountant: The accountant that records the step.
        rate: The sampling rate that Opacus computed.
        making: The local variables of the `make_private` call that requests the hook; empty if
            another function requests it, in which case the rate cannot be checked.
    """

    def __init__(self, accountant: Any, rate: float, making: Mapping[str, Any]) -> None:
        self._accountant, self._rate = accountant, rate
        self._loader: Any = making.get("data_loader")
        self._engine: Any = making.get("self")
        self._charged, self._least = 0, 0.0
        self._draws = self._passes_of_step = 0
        self._all_fresh, self._ended = True, False
        self._refused: Finding | None = None
        self._compared = self.stepping = False
        """Whether `pre_step` runs, which charges the noise that is added."""
        self._released = False
        """Whether gradients with noise wait for the step of the optimizer that Opacus wraps."""
        self.clipped: list[Any] = []
        """The norms of per-sample gradients that ghost clipping has read."""
        self._said: set[str] = set()
        super().__init__(strict=True)
        if self._loader is None:
            return
        self.dataset = self._loader.dataset
        self._length = len(self._loader.dataset)
        HOOKS.add(self)
        kind, optimizer = _samplers(self._loader)[0], making["optimizer"]
        self.strict = kind != "shuffled"
        if kind in ("poisson", "group", "shuffled"):
            self.watch(self._loader, optimizer, making["module"])
        if "FSDP" in type(optimizer).__name__:
            optimizer.charged_layers = list(making["module"]._module.modules())
            self.probed = True  # a forward pass of one process would wait for the others
        self._ranks = library("torch.distributed").get_world_size() if kind == "group" else 1
        self._noise: OwnGenerator | None = None
        self._module = making["module"]
        if not accountant.deterministic:
            self._own_randomness(optimizer)
        for method in (_pre_step, _add_noise, _zero_grad):
            replace_method(optimizer, method.__name__[1:], method)
        optimizer.charging = self
        _watch_steps()

    def __call__(self, optimizer: Any) -> None:
        """Charge a step of an optimizer whose loader is unknown; otherwise `pre_step` charges it."""
        if self._loader is None:
            draw = self._accountant.open_draw
            self.rows = guard.count("augmentations", self._accountant.augmentations, least=1)
            if draw is None:
                self._say([finding("believed", rate=self._rate)])
            elif sum(counts_of(optimizer)) != draw.size * self.rows:
                raise finding("not_of_draw", size=draw.size, counts=counts_of(optimizer)).error
            self._charge(float(optimizer.noise_multiplier), int(optimizer.accumulated_iterations))

    def pre_step(self, optimizer: Any, proceed: Callable[[], Any]) -> Any:
        """Check a step, let the optimizer clip and add noise, and charge the step before its
        parameters change.

        Args:
            optimizer: The optimizer.
            proceed: Runs Opacus' own `pre_step`, and returns whether noise was added.

        Raises:
            UnsupportedError: If no bound is proved for the step.
        """
        self.added, counts = float(optimizer.noise_multiplier), counts_of(optimizer)
        self.rows = guard.count("augmentations", self._accountant.augmentations, least=1)
        reason = ""
        refusal: UnsupportedError | None = None
        adds_noise = not optimizer._check_skip_next_step(pop_next=False)
        try:
            self._look(optimizer)
            reason = self._reason(counts, adds_noise)
            if self.strict and reason:
                refusal = self._no_draw(reason).error
        except UnsupportedError as error:
            refusal = error
        if self._ranks > 1 and (others := self._disagreement(optimizer, refusal)):
            self.end_amplification()
            refusal = refusal or finding(others).error
        if refusal is not None:
            raise refusal
        if self.strict and self.left_out:
            self._say([finding("noise_alone")])
        self._all_fresh &= not reason
        size = self.rows * (self._loader.batch_size or 1)
        self._passes_of_step += max(len(counts), 1, -(-sum(counts) // size) if reason else 0)
        self.stepping = True
        try:
            released = proceed()
        except BaseException:
            self.end_amplification()  # the draw is lost, for a reason that may lie in its records
            raise
        finally:
            self.stepping = False
            forget_norms(optimizer)
            if self._noise is not None:
                self._noise.used()
        if released:
            self._charge_step(self.added)
        self._released = released
        return released

    def releases(self, optimizer: Any) -> bool:
        """Whether an optimizer is the one that Opacus wraps here, about to step on gradients with noise."""
        private = self._optimizer()
        taken = self._released and private is not None and optimizer is private.original_optimizer
        self._released &= not taken
        return taken

    def require_noise(self, optimizer: Any) -> None:
        """Raise UnsupportedError before a step that would change parameters of this model by
        gradients without noise, also parameters that the private optimizer leaves alone.
        """
        own = set(map(id, self._module.parameters() if self._optimizer() else ()))
        if any(id(each) in own for group in optimizer.param_groups for each in group["params"]):
            raise finding("without_noise").error

    def _own_randomness(self, optimizer: Any) -> None:
        """Give an optimizer noise of its own, in each process, and its sampler coins of their own;
        a generator that the caller chose stays, and is refused.
        """
        if optimizer.generator is (None if self._noise is None else self._noise.generator):
            self._noise = OwnGenerator(optimizer.params[0].device)
            optimizer.generator = self._noise.generator
            if "generator" in attributes(self._loader.batch_sampler):
                self.coins = OwnGenerator()
                self._loader.batch_sampler.generator = self.coins.generator
        else:
            self._noise = None
        self._process = os.getpid()

    def _disagreement(self, optimizer: Any, refusal: UnsupportedError | None) -> str:
        """Why a group of processes does not take a step together; None if it does.

        One refuses for all, since the step sums the batches of all. Noise and coins of each are
        compared at the first step: they must differ, and what is charged must not.
        """
        torch, group = library("torch"), library("torch.distributed")
        refused = torch.tensor([float(refusal is not None)])
        group.all_reduce(refused)
        if refused.item():
            return "another_process"
        if not self._compared:
            generators = (optimizer.generator, self._loader.batch_sampler.generator)
            own = [each.get_state().numpy().tobytes() for each in generators]
            stated = float(optimizer.noise_multiplier), self._rate, self.rows
            every: list[Any] = [None] * self._ranks
            group.all_gather_object(every, ([sha256(each).digest() for each in own], stated))
            states = {state for states, _ in every for state in states}
            if len(states) < 2 * self._ranks and not self._accountant.deterministic:
                return "same_noise"
            if len({stated for _, stated in every}) > 1:
                return "other_rates"
            self._compared = True
        return ""

    def _is_own(self, optimizer: Any) -> bool:
        """Whether noise comes from the generator of this process, in the state that it left."""
        if self._accountant.deterministic:
            return True
        if self._engine.secure_mode:
            return optimizer.generator is self._engine.secure_rng
        if self._process != os.getpid():
            self._own_randomness(optimizer)
        return self._noise is not None and self._noise.is_still(optimizer.generator)

    def _reason(self, counts: list[int], adds_noise: bool) -> str:
        """Why a step does not use exactly its own draws; empty if it does.

        Args:
            counts: The number of records of each backward pass.
            adds_noise: Whether the step adds noise, rather than accumulating gradients.
        """
        reason = finding("ended").reason if self._ended else self.take(counts)
        if not reason and adds_noise and self.partial:
            reason = "it holds a part of a draw"
        elif not reason and adds_noise and self._draws not in (0, len(self.taken)):
            reason = (
                f"it holds {len(self.taken)} draws, and the steps before it held {self._draws} each"
            )
        if self.strict and reason and (self.waiting or self.taken):
            self.end_amplification()  # what was drawn is not what is fed, and may never have been
        return reason

    def end_amplification(self) -> None:
        """Charge all earlier steps without amplification by sampling, under zero-out adjacency;
        later steps are refused.
        """
        if self._ended:
            return
        self._ended = True
        self._accountant.end_amplification()
        self._say([self._no_draw(finding("ended").reason)])

    def _no_draw(self, reason: str) -> Finding:
        workers = "; with BatchMemoryManager, DataLoader(..., num_workers=0)"
        return finding(
            "no_draw", reason=reason, workers=workers if self._loader.num_workers else ""
        )

    def _look(self, optimizer: Any) -> None:
        """Warn once of each finding; UnsupportedError if one of them leaves a step without a proved
        bound.
        """
        found = (
            []
            if self._said
            else [*_of_loader(self._loader, self.added), *_of_optimizers(self.dataset)]
        )
        found += [*_of_options(optimizer, self._loader), *self._of_clipping(optimizer)]
        found += [] if self._is_own(optimizer) else [finding("seeded")]
        found += [finding("replaced")] if self._engine.accountant is not self._accountant else []
        if len(self.dataset) != self._length:
            found.append(finding("length", before=self._length, after=len(self.dataset)))
        self._say(found)
        if self._refused is not None:
            raise self._refused.error

    def _of_clipping(self, optimizer: Any) -> Iterator[Finding]:
        """Findings about gradients that are clipped at more than the norm of the noise, or not at all."""
        norms = attributes(optimizer).get("max_grad_norms")
        norm = attributes(self._module).get("max_grad_norm") or optimizer.max_grad_norm
        if norms is not None:
            norm = library("torch").tensor(norms).norm(2).item()
        if not norm <= optimizer.max_grad_norm:  # NaN too
            yield finding("clipped_at", norm=norm, noise=optimizer.max_grad_norm)
        norms = _norms(optimizer)
        if any(each is not None for each in norms) and list(map(id, norms)) != list(
            map(id, self.clipped)
        ):
            yield finding("not_clipped")

    def _say(self, findings: list[Finding]) -> None:
        new = [each for each in findings if each.name not in self._said]
        self._said |= {"looked", *(each.name for each in new)}
        warn(new)
        self._refused = next((each for each in new if each.refused), self._refused)

    def _charge_step(self, noise: float) -> None:
        draws, self._rate = (
            len(self.taken),
            max([self._rate, *(draw.rate for draw in self.taken if self.strict)]),
        )
        times, fresh, spanned = self._passes_of_step, self._all_fresh, len(self.spanned)
        self.taken, self.spanned, self._passes_of_step, self._all_fresh = [], set(), 0, True
        if self.strict:
            self._draws = draws
            self._charge(noise, draws)
        else:
            self._accountant.adjacency = Adjacency.ZERO_OUT
            self._shuffled(_shared(noise, self.rows), times, min(times, spanned) if fresh else 0)

    def _charge(self, noise: float, draws: int) -> None:
        """Charge a step that sums `draws` Poisson samples."""
        if draws > 1:
            self._say([finding("accumulation", draws=draws)])
        self._accountant.step(
            noise_multiplier=_shared(noise, draws * self.rows),
            sample_rate=min(1.0, self._rate * draws),
        )

    def _shuffled(self, noise: float, times: int, spanned: int) -> None:
        """Charge a step on shuffled passes, in which a record is in at most one batch per pass.

        A pass is charged at its start, and again if a later step has less noise than was charged. A
        step with batches of several passes may contain a record once per pass; what the record adds
        to all steps of b new passes and of the previous one is at most b + 1 times the clipping
        norm. A step with other batches than its own draws may contain the record once in each, and
        is charged separately.

        Args:
            noise: The noise multiplier.
            times: The number of backward passes in the step.
            spanned: The number of passes over the data that they belong to; 0 if they do not use
                their own draws.
        """
        new, least = self.epochs - self._charged, self._least
        if not spanned or (spanned > 1 and not new):
            self._accountant.step(
                noise_multiplier=_shared(noise, spanned or times), sample_rate=1.0
            )
            return
        if spanned > 1:
            least = _shared(noise, new + 1)
            self._accountant.step(noise_multiplier=least, sample_rate=1.0)
        elif new or noise < least:
            least = noise
            for _ in range(max(new, 1)):
                self._accountant.step(noise_multiplier=noise, sample_rate=1.0)
        self._charged, self._least = self.epochs, least if new else min(noise, least)


def _pre_step(base: Any, optimizer: Any, closure: Any = None) -> Any:
    return optimizer.charging.pre_step(optimizer, lambda: base.pre_step(optimizer, closure))


def _add_noise(base: Any, optimizer: Any) -> Any:
    if not optimizer.charging.stepping:
        raise finding("uncharged").error
    optimizer.charging.added = float(optimizer.noise_multiplier)
    return base.add_noise(optimizer)


def _zero_grad(base: Any, optimizer: Any, *arguments: Any, **named: Any) -> Any:
    """Ghost clipping calls it after the pass that measures norms, and before the one that is clipped by them."""
    optimizer.charging.clipped = _norms(optimizer)
    return base.zero_grad(optimizer, *arguments, **named)


def _norms(optimizer: Any) -> list[Any]:
    """The norms of per-sample gradients that ghost clipping measured for each parameter, latest pass."""
    return [attributes(each).get("_norm_sample") for each in optimizer.params]


@cache
def _watch_steps() -> None:
    """Look at each step of any optimizer, before it is taken."""
    library("torch.optim.optimizer").register_optimizer_step_pre_hook(_before_step)


def _before_step(optimizer: Any, arguments: Any, named: Any) -> None:
    hooks = list(HOOKS)
    if not any(hook.releases(optimizer) for hook in hooks):
        for hook in hooks:
            hook.require_noise(optimizer)


def _shared(noise: float, times: int) -> float:
    """The noise multiplier of a sum that contains a record up to `times` times, rounded down."""
    return down(noise / times) if noise > 0 and times > 1 else noise


HOOKS: WeakSet[StepHook] = WeakSet()
"""All hooks in use, to detect optimizers that share a dataset."""


def _of_loader(loader: Any, noise: float | None) -> Iterator[Finding]:
    """Findings about how a loader draws its batches; `noise` is the noise multiplier, or None if
    unknown.
    """
    kind, sampler = _samplers(loader)
    if kind == "weighted":
        yield finding("weighted")
    elif kind == "shuffled" and noise:
        epoch = ShuffledEpochs(noise, steps=len(loader))
        cost = epoch.epsilon(delta=_DELTA, adjacency=Adjacency.ZERO_OUT)
        ends = {"lower": cost.lower, "upper": cost.upper, "delta": _DELTA, "epoch": epoch}
        yield finding("shuffled_with_noise", **ends)
    elif kind == "shuffled":
        yield finding("shuffled")
    elif kind not in ("poisson", "group"):
        yield finding("unknown", sampler=type(sampler).__name__)
    if loader.drop_last and (left := len(loader.dataset) % (loader.batch_size or 1)):
        yield finding("dropped", left=left)
    drawn = {"poisson": "num_samples", "group": "total_size"}.get(kind)
    if drawn and attributes(sampler)[drawn] != len(loader.dataset):
        yield finding("length", before=attributes(sampler)[drawn], after=len(loader.dataset))


def _samplers(loader: Any) -> tuple[str, Any]:
    """The kind of sampling (poisson, group, shuffled, weighted or unknown), and the sampler."""
    data = library("torch.utils.data")
    poisson = library("opacus.utils.uniform_sampler")
    batches = loader.batch_sampler
    if isinstance(batches, poisson.DistributedUniformWithReplacementSampler):
        return "group", batches
    if isinstance(batches, poisson.UniformWithReplacementSampler):
        return "poisson", batches
    kind: Any = batches.__class__
    sampler = (
        batches.sampler if attributes(kind).get("unlogged", kind) is data.BatchSampler else batches
    )
    if isinstance(sampler, data.WeightedRandomSampler):
        return "weighted", sampler
    once = type(sampler) is data.RandomSampler and not sampler.replacement
    if type(sampler) is data.SequentialSampler or (once and len(sampler) <= len(loader.dataset)):
        return "shuffled", sampler
    return "unknown", sampler


def _of_optimizers(dataset: Any) -> Iterator[Finding]:
    """Findings about several optimizers or accountants on one dataset."""
    hooks = [hook for hook in HOOKS if hook.dataset is dataset]
    if len({id(hook._accountant) for hook in hooks}) > 1:  # pyright: ignore[reportPrivateUsage]
        yield finding("several_engines")
    elif len(hooks) > 1:
        yield finding("several_optimizers")


def _of_options(optimizer: Any, loader: Any) -> Iterator[Finding]:
    """Findings about options of `make_private` whose cost is not a function of noise multipliers
    and rates.
    """
    if optimizer is not None and attributes(optimizer).keys() & {
        "unclipped_num_std",
        "_adjusted_noise_multiplier",
    }:
        yield finding("adaptive")
    filling: Any = attributes(library("opacus.data_loader")).get("CollateFnWithEmpty", ())
    if isinstance(loader.collate_fn, filling) and loader.collate_fn.rand_on_empty:
        yield finding("rand_on_empty")
