"""Random training loops under Opacus, each charged at least what was fed: `python -m campaigns.training --loops 2000`.

It needs Opacus: run it in the environment of `make test-interop`, such as

    .venv-interop/bin/python -m campaigns.training --loops 2000 --seed 7

A loop has per-sample gradients, ghost or per-layer clipping, a Poisson or a shuffled loader, sometimes a memory manager,
a schedule of its noise and validation passes; it is honest, or it uses a batch again, skips draws, steps on draws it
likes, looks at draws in validation, iterates over another loader, feeds all records, accumulates, raises in a step, goes
back to a checkpoint, has several rows of a record, or replaces the hook or the accountant. Or no bound holds: batches are
normalized, clipping is adaptive, left out, or at another norm than the noise is for, noise is seeded or its state
restored, another optimizer steps. Loops of their own draw from the accountant. A stubborn loop catches refusals and goes
on. Some loops train in a process that is killed (kill -9) and goes on from its checkpoint, with a guard on a ledger; and
`--group` loops train in two processes.

What was fed is logged where the parameters change: of each step, which draws and which records are in its sum. From
this log alone the oracle computes what one record costs: a draw that is in the sums of s steps is a Gaussian of shift
sqrt(s) sampled once; where a draw was left out and training went on, every step is unsampled; batches that no Poisson
sampler drew cost the record that is in most of them. Composition is by sums of losses on a grid, rounded down (and up,
for what honest loops may cost), without the library; without sampling by the formula of one Gaussian, with mpmath.

The charge must be at least that, and under add or remove only where every step is on a Poisson sample of its own: other
batches regroup. Honest loops are refused nothing, and charged exactly where the loader draws Poisson samples.

Control, which must fail: steps that are taken for a fresh draw each, whatever was fed.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import mpmath
import numpy as np
from scipy.special import ndtr

from dpcompose import Adjacency
from dpcompose.errors import UnsupportedError

DELTA, RECORDS, BATCH, REACH, STEP = 1e-5, 40, 8, 160.0, 2e-3
RATE = BATCH / RECORDS
Shifts = tuple[tuple[float, float], ...]
"""A mixture: pairs of a weight and how far the record moves a sum, in standard deviations."""


class TrainingError(Exception):
    """A loop that was charged less than it cost."""


@lru_cache(maxsize=1024)
def gaussian_epsilon(mu: float) -> float:
    """Epsilon of one Gaussian shift of mu standard deviations, by its formula."""

    def excess(epsilon: Any) -> Any:
        below, above = mpmath.mpf(mu) / 2 - epsilon / mu, -mpmath.mpf(mu) / 2 - epsilon / mu
        return mpmath.ncdf(below) - mpmath.e**epsilon * mpmath.ncdf(above) - mpmath.mpf(DELTA)

    low, high = mpmath.mpf(0), mpmath.mpf(mu * mu / 2 + 10 * mu)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return float(low)


@lru_cache(maxsize=256)
def losses(shifts: Shifts, removed: bool, upward: bool) -> np.ndarray:
    """The transform of the masses of one loss on the grid, rounded down or up; what is beyond the grid is left out."""
    far = 10 + max(shift for _, shift in shifts)
    x = np.linspace(-10, far, 60_001)
    loss = np.logaddexp.reduce(
        [math.log(weight) + shift * x - shift * shift / 2 for weight, shift in shifts]
    )
    under = sum(weight * ndtr(x - shift) for weight, shift in shifts) if removed else ndtr(x)
    loss, mass = (loss if removed else -loss), np.diff(under)
    ends = np.minimum(loss[1:], loss[:-1]), np.maximum(loss[1:], loss[:-1])
    place = np.ceil(ends[1] / STEP) if upward else np.floor(ends[0] / STEP)
    size = 2 * int(REACH / STEP)
    masses = np.bincount(np.clip(place + size // 2, 0, size - 1).astype(int), mass, size)
    return np.fft.rfft(np.fft.ifftshift(masses))


@lru_cache(maxsize=4096)
def epsilon(parts: tuple[tuple[Shifts, int], ...], upward: bool = False) -> float:
    """Epsilon of independent mixtures against no shift, the larger of both orders, rounded down or up."""
    if all(len(shifts) == 1 for shifts, _ in parts):
        return gaussian_epsilon(
            math.sqrt(sum(shifts[0][1] ** 2 * times for shifts, times in parts))
        )
    size = 2 * int(REACH / STEP)
    grid = (np.arange(size) - size // 2) * STEP
    worst = 0.0
    for removed in (True, False):
        total = np.prod(
            [losses(shifts, removed, upward) ** times for shifts, times in parts], axis=0
        )
        masses = np.maximum(np.fft.fftshift(np.fft.irfft(total, size)), 0)
        low, high = 0.0, REACH
        while high - low > 1e-6:
            middle = (low + high) / 2
            above = grid > middle
            delta = float(np.sum(masses[above] * -np.expm1(middle - grid[above])))
            low, high = (
                (middle, high) if delta > DELTA * (1 - 1e-6 * (-1) ** upward) else (low, middle)
            )
        worst = max(worst, high if upward else low)
    return worst


@dataclass
class Fed:
    """What one step has in its sum: Poisson draws by number, and records of batches that no Poisson sampler drew."""

    draws: Counter[int] = field(default_factory=Counter)
    others: Counter[int] = field(default_factory=Counter)
    numbers: set[int] = field(default_factory=set)
    noise: float = 1.0

    def add(self, other: Fed) -> None:
        """Add what another sum has."""
        self.draws.update(other.draws)
        self.others.update(other.others)
        self.numbers |= other.numbers


class Loop:
    """A training under Opacus whose steps are logged where the parameters change."""

    def __init__(
        self, rng: random.Random, *, ghost: bool, poisson: bool, noise: float, **options: Any
    ) -> None:
        import torch  # pyright: ignore[reportMissingImports]

        self.torch, self.rng, self.noise, self.poisson, self.ghost = (
            torch,
            rng,
            noise,
            poisson,
            ghost,
        )
        torch.manual_seed(rng.randrange(2**31))
        ids = torch.arange(RECORDS)
        dataset = torch.utils.data.TensorDataset(torch.randn(RECORDS, 3), ids % 2, ids)
        self.original: Any = torch.utils.data.DataLoader(dataset, batch_size=BATCH, shuffle=True)
        self.tensors, self.rows, self.options = dataset.tensors, 1, options
        self.prepare(self.model_of(options.pop("wrapped", None)))
        self.pulled, self.refusals = 0, 0
        self.left_out, self.stubborn, self.fails = False, False, False
        self.unbounded = self.coins_known = self.endless = False
        """Whether no bound holds for the steps from now on, their coins are known, and one of them was taken."""
        self.used: set[int] = set()
        self.empty: set[int] = set()
        self.new, self.summed, self.steps = Fed(), Fed(), list[Fed]()
        inner, release = self.optimizer.original_optimizer, self.optimizer.original_optimizer.step

        def released(*arguments: Any) -> Any:
            self.summed.add(self.new)
            self.used |= self.summed.numbers
            self.summed.noise = float(self.optimizer.noise_multiplier)
            self.steps.append(self.summed)
            self.left_out |= self.coins_known
            self.endless |= self.unbounded
            self.new, self.summed = Fed(), Fed()
            self.left_out |= bool(set(range(1, max(self.used, default=1))) - self.used)
            if self.fails:
                self.fails = False
                raise RuntimeError("a step that fails after the release")
            return release(*arguments)

        inner.step = released

    def model_of(self, wrapped: Any) -> Any:
        """A linear model, wrapped if it is to be."""
        model = self.torch.nn.Linear(3, 2)
        return wrapped(model) if wrapped else model

    def prepare(self, model: Any) -> None:
        """Model, optimizer, criterion and loader under Opacus, with a seed, so that a loop is the same again."""
        from opacus import PrivacyEngine  # pyright: ignore[reportMissingImports]

        import dpcompose.interop.opacus  # noqa: F401  registers the accountant
        from dpcompose.interop import draws

        torch, rng = self.torch, self.rng

        def seeded(device: Any = "cpu") -> Any:
            return torch.Generator(device=device).manual_seed(rng.randrange(2**31))

        self.engine: Any = PrivacyEngine(accountant="dpcompose")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with patch.object(draws, "fresh_generator", seeded):
            prepared = self.engine.make_private(
                module=model, optimizer=optimizer, data_loader=self.original, noise_multiplier=self.noise,
                poisson_sampling=self.poisson, grad_sample_mode="ghost" if self.ghost else "hooks",
                **({"max_grad_norm": 1.0} | self.options),
            )  # fmt: skip
        self.model, self.optimizer, self.loader = prepared[0], prepared[1], prepared[-1]
        self.criterion = prepared[2] if self.ghost else torch.nn.functional.cross_entropy

    def draws(self, loader: Any = None) -> Iterator[Any]:
        """The batches of the private loader, numbered; parts of one draw have the number of the draw."""
        sampler = self.loader.batch_sampler
        draw = type(sampler).__iter__

        def numbered(own: Any) -> Iterator[Any]:
            for batch in draw(own):
                self.pulled += 1
                self.empty |= set() if len(batch) else {self.pulled}
                yield batch

        with patch.object(type(sampler), "__iter__", numbered):
            iterator = iter(self.loader if loader is None else loader)
            while True:
                with patch.object(type(sampler), "__iter__", numbered):
                    batch = next(iterator, None)
                if batch is None:
                    return
                yield batch

    def backward(self, batch: Any, number: int | None, *, raises: bool = False) -> None:
        """Forward and backward on a batch: of the draw of that number, or from elsewhere."""
        x, y, ids = batch
        output = self.model(x)
        if raises:
            # As a failed forward pass leaves nothing behind.
            for module in self.model.modules():
                if getattr(module, "activations", None):
                    module.activations.pop()
                    for parameter in module.parameters():
                        parameter._forward_counter -= 1
            raise RuntimeError("a batch that does not fit into memory")
        self.criterion(output, y).backward()
        if self.poisson and number is not None:
            self.new.draws.update([number] if len(ids) or number in self.empty else [])
            self.new.numbers.add(number)
        else:
            self.new.others.update(ids.tolist())

    def clear(self) -> None:
        """Forget the gradients that no step has summed up."""
        self.optimizer.zero_grad()
        self.new = Fed()

    def step(self, batch: Any, number: int | None, **options: Any) -> bool:
        """One step on a batch; whether it was not refused."""
        self.clear()
        self.backward(batch, number, **options)
        return self.take()

    def take(self) -> bool:
        try:
            self.optimizer.step()
        except (UnsupportedError, ValueError):
            self.refusals += 1
            self.clear()
            if not self.stubborn:
                raise
            return False
        self.summed.add(self.new)  # nothing, if the step was taken
        self.clear()
        return True

    def truth(self, upward: bool = False) -> float:
        """What a record costs at most, from the log alone."""
        if self.endless:
            return math.inf
        where, records = Counter[int](), Counter[int]()
        parts: Counter[Shifts] = Counter()
        for step in self.steps:
            moved, n = self.rows / step.noise, len(step.draws)
            where.update(dict.fromkeys(step.draws, moved**2))  # pyright: ignore[reportArgumentType]
            records.update({each: (times / step.noise) ** 2 for each, times in step.others.items()})  # pyright: ignore
            if self.left_out and n:
                parts[((1.0, n * moved),)] += 1
            elif n > 1:
                binomial = [
                    (math.comb(n, k) * RATE**k * (1 - RATE) ** (n - k), k * moved)
                    for k in range(n + 1)
                ]
                parts[tuple(binomial)] += 1
        if not self.left_out:
            alone = {draw for step in self.steps if len(step.draws) == 1 for draw in step.draws}
            for draw in alone:
                parts[((1 - RATE, 0.0), (RATE, math.sqrt(where[draw])))] += 1
        if records:
            parts[((1.0, math.sqrt(max(records.values()))),)] += 1
        return epsilon(tuple(sorted(parts.items())), upward) if parts else 0.0

    @property
    def regroups(self) -> bool:
        """Whether a step was on other batches than Poisson samples, all of which were stepped on."""
        return self.left_out or any(step.others for step in self.steps)


class OwnLoop(Loop):
    """A loop without a loader: the accountant draws, and its hook charges."""

    def prepare(self, model: Any) -> None:
        from opacus import GradSampleModule  # pyright: ignore[reportMissingImports]
        from opacus.optimizers import DPOptimizer  # pyright: ignore[reportMissingImports]

        from dpcompose.interop.opacus import Accountant

        self.model = GradSampleModule(model)
        inner = self.torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.optimizer = DPOptimizer(
            inner, noise_multiplier=self.noise, max_grad_norm=1.0, expected_batch_size=BATCH
        )
        self.engine = SimpleNamespace(accountant=Accountant())
        self.optimizer.attach_step_hook(self.engine.accountant.get_optimizer_hook_fn(RATE))
        self.criterion = self.torch.nn.functional.cross_entropy

    @contextmanager
    def draw(self) -> Iterator[list[Any]]:
        """The batch of a draw of the accountant, numbered."""
        with self.engine.accountant.draw(RATE, records=RECORDS) as indices:
            self.pulled += 1
            self.empty |= set() if len(indices) else {self.pulled}
            yield [each[indices] for each in self.tensors]


def own(loop: Any, length: int) -> None:
    for _ in range(5 * length):
        with loop.draw() as batch:
            loop.step(batch, loop.pulled)


def own_twice(loop: Any, length: int) -> None:
    for _ in range(5 * length):
        with loop.draw() as batch:
            for _ in range(1 + (loop.rng.random() < 0.3)):
                loop.step(batch, loop.pulled)


def own_liked(loop: Any, length: int) -> None:
    for _ in range(5 * length):
        with loop.draw() as batch:
            if loop.rng.random() < 0.7:
                loop.step(batch, loop.pulled)


def own_given_up(loop: Any, length: int) -> None:
    for _ in range(5 * length):
        with suppress(RuntimeError), loop.draw() as batch:
            loop.step(batch, loop.pulled, raises=loop.rng.random() < 0.2)


def own_all_records(loop: Any, length: int) -> None:
    for _ in range(5 * length):
        with loop.draw() as batch:
            every = loop.rng.random() < 0.5
            loop.step(loop.tensors if every else batch, None if every else loop.pulled)


def own_outside(loop: Any, length: int) -> None:
    for _ in range(5 * length):
        with loop.draw() as batch:
            loop.step(batch, loop.pulled)
        if loop.rng.random() < 0.3:
            loop.step(batch, loop.pulled)


def rolled_back(loop: Loop, length: int) -> None:
    """Back to a checkpoint, after which steps are repeated."""
    plain(loop, length)
    accountant = loop.engine.accountant
    state = copy.deepcopy(dict(accountant.state_dict()))
    plain(loop, length)
    accountant.load_state_dict(state)
    plain(loop, 1)


def augmented(loop: Loop, length: int) -> None:
    """Rows of a record that are not averaged, as the accountant is told."""
    loop.rows = loop.engine.accountant.augmentations = loop.rng.choice([2, 3])
    for _ in range(length):
        for batch in loop.draws():
            loop.step(_repeated(batch, loop.rows), loop.pulled)


def augmented_in_silence(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.draws():
            loop.step(_repeated(batch, 2), None)


def _repeated(batch: Any, times: int) -> list[Any]:
    return [each.repeat(times, *[1] * (each.dim() - 1)) for each in batch]


def plain(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.draws():
            loop.step(batch, loop.pulled)


def managed(loop: Loop, length: int) -> None:
    from opacus.utils.batch_memory_manager import BatchMemoryManager  # pyright: ignore[reportMissingImports]

    manager = BatchMemoryManager(
        data_loader=loop.loader, max_physical_batch_size=3, optimizer=loop.optimizer
    )
    with manager as loader:
        for _ in range(length):
            for batch in loop.draws(loader):
                loop.step(batch, loop.pulled)


def in_parts(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.draws():
            for at in range(0, max(len(batch[0]), 1), 4):
                loop.optimizer.signal_skip_step(at + 4 < len(batch[0]))
                loop.step([each[at : at + 4] for each in batch], loop.pulled)


def broken_off(loop: Loop, length: int) -> None:
    for _ in range(length):
        for _, batch in zip(range(3), loop.draws(), strict=False):
            loop.step(batch, loop.pulled)


def tried_again(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.draws():
            if loop.rng.random() < 0.3:
                with suppress(RuntimeError):
                    loop.step(batch, loop.pulled, raises=True)
            loop.step(batch, loop.pulled)


def used_again(loop: Loop, length: int) -> None:
    for batch in loop.draws():
        for _ in range(5 * length):
            loop.step(batch, loop.pulled)
        return


def used_while_drawing(loop: Loop, length: int) -> None:
    first = None
    for batch in loop.draws():
        first = first or (batch, loop.pulled)
        loop.step(*first)


def liked(loop: Loop, length: int) -> None:
    least = loop.rng.choice([1, BATCH - 1, BATCH, BATCH + 2])
    for _ in range(length):
        for batch in loop.draws():
            if len(batch[0]) >= least:
                loop.step(batch, loop.pulled)


def liked_late(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.draws():
            loop.clear()
            loop.backward(batch, loop.pulled)
            if loop.rng.random() < 0.6:
                loop.take()


def unwanted(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.draws():
            loop.step(
                [each[:0] for each in batch] if loop.rng.random() < 0.3 else batch, loop.pulled
            )


def other_loader(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.torch.utils.data.DataLoader(
            loop.original.dataset, batch_size=BATCH, shuffle=True
        ):
            loop.step(batch, None)


def other_batches(loop: Loop, length: int) -> None:
    other = loop.torch.utils.data.DataLoader(loop.original.dataset, batch_size=BATCH, shuffle=True)
    for _ in range(length):
        for _, batch in zip(loop.draws(), other, strict=False):
            loop.step(batch, None)


def all_records(loop: Loop, length: int) -> None:
    every = loop.original.dataset.tensors
    drawing = loop.rng.random() < 0.5
    for _ in loop.draws() if drawing else range(5 * length):
        loop.step(every, None)


def accumulated(loop: Loop, length: int) -> None:
    every, varied, count = loop.rng.choice([2, 3, 5]), loop.rng.random() < 0.4, 0
    for _ in range(length):
        for batch in loop.draws():
            count += 1
            loop.optimizer.signal_skip_step(
                loop.rng.random() < 0.5 if varied else count % every != 0
            )
            loop.step(batch, loop.pulled)


def listed(loop: Loop, length: int) -> None:
    if loop.ghost:
        return accumulated(loop, length)
    loop.model.allow_grad_accumulation()
    ends = loop.rng.choice([(4,), (1, 4)])
    for _ in range(length):
        for at, batch in enumerate(loop.draws()):
            loop.backward(batch, loop.pulled)
            if at in ends:
                loop.take()
    return None


def given_up(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.draws():
            try:
                loop.step(batch, loop.pulled, raises=loop.rng.random() < 0.3)
            except RuntimeError:
                continue


def failing(loop: Loop, length: int) -> None:
    for _ in range(length):
        for batch in loop.draws():
            loop.fails = loop.rng.random() < 0.3
            try:
                loop.step(batch, loop.pulled)
            except RuntimeError:
                loop.step(batch, loop.pulled)


def hooked(loop: Loop, length: int) -> None:
    loop.optimizer.attach_step_hook(lambda optimizer: None)
    plain(loop, length)


def replaced(loop: Loop, length: int) -> None:
    from dpcompose.interop.opacus import Accountant

    loop.engine.accountant = Accountant()
    plain(loop, length)


def scheduled(loop: Loop, length: int) -> None:
    """Noise that changes from step to step."""
    for _ in range(length):
        for batch in loop.draws():
            loop.optimizer.noise_multiplier = loop.noise * loop.rng.choice([0.8, 1.0, 1.5])
            loop.step(batch, loop.pulled)


def layered(loop: Loop, length: int) -> None:
    plain(loop, length)


def validated(loop: Loop, length: int) -> None:
    """Passes without gradients over another loader, in the middle of the draws and after them."""
    for _ in range(length):
        for batch in loop.draws():
            loop.step(batch, loop.pulled)
            if loop.rng.random() < 0.3:
                _looked(loop, loop.original)


def validated_on_draws(loop: Loop, length: int) -> None:
    for _ in range(length):
        plain(loop, 1)
        _looked(loop, (batch for batch in loop.draws()))
    plain(loop, 1)


def _looked(loop: Loop, batches: Any) -> None:
    loop.model.eval()
    with loop.torch.no_grad():
        for batch in batches:
            loop.model(batch[0])
    loop.model.train()


def adaptive(loop: Loop, length: int) -> None:
    loop.unbounded = True
    plain(loop, length)


def normalized(loop: Loop, length: int) -> None:
    """A model whose output for a record depends on the others: nothing holds from two records on."""
    for _ in range(length):
        for batch in loop.draws():
            loop.unbounded = len(batch[0]) > 1
            try:
                loop.step(batch, loop.pulled)
            except UnsupportedError:
                loop.clear()
                if not loop.stubborn:
                    raise


def seeded(loop: Loop, length: int) -> None:
    loop.unbounded = True
    loop.optimizer.generator = loop.torch.Generator().manual_seed(5)
    plain(loop, length)


def restored(loop: Loop, length: int) -> None:
    """Noise that was drawn before, as from a checkpoint with the generator's state."""
    state = loop.optimizer.generator.get_state()
    plain(loop, length)
    loop.unbounded = True
    loop.optimizer.generator.set_state(state)
    plain(loop, length)


def known_coins(loop: Loop, length: int) -> None:
    plain(loop, 1)
    loop.coins_known = True
    loop.loader.batch_sampler.generator.manual_seed(5)
    plain(loop, length)


def not_clipped(loop: Loop, length: int) -> None:
    loop.unbounded = True
    loop.criterion = loop.torch.nn.functional.cross_entropy
    plain(loop, length)


def quieter(loop: Loop, length: int) -> None:
    """Noise for a smaller norm than ghost clipping or layers are clipped at."""
    plain(loop, length)
    loop.unbounded = True
    loop.optimizer.max_grad_norm = 0.1
    plain(loop, length)


def stepped_by_another(loop: Loop, length: int) -> None:
    own = loop.optimizer.original_optimizer
    second = loop.torch.optim.Adam(list(loop.model.parameters())[:1])
    other = loop.rng.choice([own, second])
    for _ in range(length):
        for batch in loop.draws():
            loop.clear()
            loop.backward(batch, loop.pulled)
            try:
                type(other).step(other)
                loop.endless = True
            except UnsupportedError:
                loop.refusals += 1
            loop.take()


HONEST = (
    plain, managed, in_parts, broken_off, tried_again, hooked, rolled_back, augmented, scheduled, layered, validated,
)  # fmt: skip
OWN = (own, own_twice, own_liked, own_given_up, own_all_records, own_outside)
OTHERS = (
    used_again, used_while_drawing, liked, liked_late, unwanted, other_loader, other_batches, all_records, accumulated,
    listed, given_up, failing, replaced, augmented_in_silence, validated_on_draws, adaptive, normalized, seeded,
    restored, known_coins, not_clipped, quieter, stepped_by_another,
)  # fmt: skip
PER_LAYER = {"ghost": False, "clipping": "per_layer", "max_grad_norm": [0.6, 0.8]}


def _normalizing(model: Any) -> Any:
    import torch  # pyright: ignore[reportMissingImports]

    class Normalized(torch.nn.Module):
        """Batch norm without parameters, which Opacus does not know."""

        def forward(self, x: Any) -> Any:
            return (x - x.mean(0)) / (1 + x.std(0, correction=0)) if len(x) else x

    return torch.nn.Sequential(Normalized(), model)


OPTIONS: dict[Any, dict[str, Any]] = {
    layered: PER_LAYER,
    quieter: PER_LAYER,
    normalized: {"wrapped": _normalizing, "ghost": False},
    known_coins: {"poisson": True},
    not_clipped: {"ghost": True},
    adaptive: {
        "ghost": False, "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
        "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 5.0,
    },
}  # fmt: skip
"""What `make_private` is told by the loops that need it."""


def run(rng: random.Random) -> tuple[str, bool]:
    """One random loop: which, and whether it was refused; TrainingError if it was charged less than it cost."""
    if rng.random() < 0.02:
        return killed(rng)
    kinds: Any = rng.choices([HONEST, OTHERS, OWN], [0.4, 0.45, 0.15])[0]
    train: Callable[[Any, int], None] = rng.choice(kinds)
    options = {"ghost": rng.random() < 0.4, "poisson": rng.random() < 0.75}
    if kinds is OWN:
        options = {"ghost": False, "poisson": True}
    options |= OPTIONS.get(train, {})
    if train is quieter and rng.random() < 0.5:
        options = {"ghost": True, "poisson": options["poisson"]}
    loop = (OwnLoop if kinds is OWN else Loop)(rng, noise=rng.choice([0.75, 1.0, 2.0]), **options)
    loop.stubborn = rng.random() < 0.5
    return checked(loop, train, rng.choice([1, 2]))


def checked(loop: Any, train: Callable[[Any, int], None], length: int) -> tuple[str, bool]:
    """Train, and compare what was charged with what the log says."""
    with suppress(UnsupportedError):
        train(loop, length)
    name = f"{train.__name__}, ghost {loop.ghost}, poisson {loop.poisson}, noise {loop.noise}"
    name += f", {len(loop.steps)} steps, stubborn {loop.stubborn}"
    accountant = loop.engine.accountant
    try:
        charged = accountant.get_epsilon(DELTA)
    except UnsupportedError:
        return name, True
    truth = loop.truth()
    if not charged >= truth - 1e-9:
        raise TrainingError(
            f"{name}: charged {charged:.4f} by {accountant.history}, and it costs {truth:.4f}"
        )
    if loop.regroups and accountant.adjacency is not Adjacency.ZERO_OUT:
        raise TrainingError(
            f"{name}: batches that regroup, charged under {accountant.adjacency.value}"
        )
    if train in (*HONEST, own):
        if loop.refusals:
            raise TrainingError(f"{name}: an honest loop is refused")
        if loop.poisson and not charged <= loop.truth(upward=True) + 1e-6:
            raise TrainingError(
                f"{name}: an honest loop is charged {charged:.4f}, and it costs {truth:.4f}"
            )
    return name, bool(loop.refusals)


def killed(rng: random.Random) -> tuple[str, bool]:
    """A training with a guard on a ledger, in processes that are killed and go on from their checkpoint."""
    from dpcompose.interop.guard import TrainingGuard
    from dpcompose.ledger import Ledger

    noise, kills = rng.choice([2.0, 3.0]), rng.choice([1, 2, 3])
    with tempfile.TemporaryDirectory() as folder:
        fed = Path(folder, "fed")
        fed.touch()
        for last in range(kills + 1):
            seed, steps = rng.randrange(2**31), rng.randrange(8)
            child = os.fork()
            if not child:
                try:
                    _attempt(Path(folder), random.Random(seed), noise, steps, last == kills)
                finally:
                    os._exit(
                        1
                    )  # as it says nothing to its parent, its errors are seen by its steps
            _, status = os.waitpid(child, 0)
            if status != signal.SIGKILL:
                raise TrainingError(f"killed: a process ended by itself ({status})")
        steps = fed.stat().st_size
        with Ledger.open(f"{folder}/ledger.db") as ledger:
            guard = TrainingGuard(epsilon=50, delta=DELTA, ledger=ledger, scope="model")
            charged = guard.epsilon().upper
            granted = sum(times for _, times in guard._all_charges())  # pyright: ignore[reportPrivateUsage]
    truth = epsilon(((((1 - RATE, 0.0), (RATE, 1 / noise)), steps),)) if steps else 0.0
    name = f"killed, noise {noise}, {kills} kills, {steps} steps"
    if not charged >= truth - 1e-9:
        raise TrainingError(f"{name}: charged {charged:.4f}, and it costs {truth:.4f}")
    if granted > steps + kills + 1:
        raise TrainingError(f"{name}: {granted} steps are charged")
    return name, False


def _attempt(folder: Path, rng: random.Random, noise: float, steps: int, last: bool) -> None:
    """Train from the checkpoint until the kill, which is between the charge and the step, or after it."""
    from dpcompose.interop.guard import TrainingGuard
    from dpcompose.ledger import Ledger

    loop, checkpoint = Loop(rng, ghost=False, poisson=True, noise=noise), folder / "checkpoint.json"
    accountant, early = loop.engine.accountant, rng.random() < 0.5
    if checkpoint.exists():
        accountant.load_state_dict(json.loads(checkpoint.read_text()))
    out = os.open(folder / "fed", os.O_WRONLY | os.O_APPEND)
    guard = TrainingGuard(
        epsilon=50, delta=DELTA, ledger=Ledger.open(f"{folder}/ledger.db"), scope="model", run="one"
    )
    while True:
        for batch in loop.draws():
            with guard.step(sigma=noise, rate=RATE):
                if len(loop.steps) == steps and early:
                    os.kill(os.getpid(), signal.SIGKILL)
                loop.step(batch, loop.pulled)
                os.write(out, b".")
            if len(loop.steps) > steps:
                os.kill(os.getpid(), signal.SIGKILL)
            if rng.random() < 0.3:
                partial = checkpoint.with_suffix(".partial")
                partial.write_text(json.dumps(dict(accountant.state_dict())))
                partial.replace(checkpoint)


def group(loops: int, seed: int) -> str:
    """Loops that train in two processes, each of which compares what it was charged with its own log."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "campaigns.training", "--folder", folder]
        command += ["--loops", str(loops), "--seed", str(seed), "--rank"]
        processes = [subprocess.Popen([*command, str(rank)]) for rank in (0, 1)]
        codes = [process.wait() for process in processes]
        if codes != [0, 0]:
            raise TrainingError("two processes: see above")
    return f"{loops} loops in two processes charged at least what they cost"


def member(folder: str, rank: int, loops: int, seed: int) -> None:
    """One of two processes: honest loops, and such as feed other rows, a batch again, or the same noise in one of them."""
    import torch.distributed  # pyright: ignore[reportMissingImports]
    from opacus.distributed import (  # pyright: ignore[reportMissingImports]
        DifferentiallyPrivateDistributedDataParallel as Together,
    )

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    together: Any = torch.distributed
    together.init_process_group(
        "gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2
    )

    def doubled(loop: Loop, length: int) -> None:
        for batch in loop.draws():
            other = rank == 1 and loop.pulled > 2
            loop.step(_repeated(batch, 2) if other else batch, None if other else loop.pulled)

    def again(loop: Loop, length: int) -> None:
        batch = next(loop.draws())
        for _ in range(length + 1):
            loop.step(batch, 1)

    def alike(loop: Loop, length: int) -> None:
        loop.unbounded = True
        hook = loop.optimizer.charging
        hook._noise.generator.manual_seed(5)
        hook._noise.used()
        plain(loop, length)

    for number in range(loops):
        rng = random.Random(f"{seed}/{number}")
        train = rng.choice([plain, plain, scheduled, doubled, again, alike])
        loop = Loop(
            rng, ghost=False, poisson=True, noise=rng.choice([0.75, 1.0, 2.0]), wrapped=Together
        )
        loop.stubborn = False
        if train is not alike:  # the seeds of a campaign are those of its number, and equal in both
            for generator in (loop.optimizer.generator, loop.loader.batch_sampler.generator):
                generator.manual_seed(rng.randrange(2**31) + rank)
            hook = loop.optimizer.charging
            hook._noise.used()
            hook.coins.used()
        checked(loop, train, 1)
    together.destroy_process_group()


def campaign(*, loops: int, seed: int) -> str:
    """Run that many loops; TrainingError if one is charged less than it cost."""
    import torch  # pyright: ignore[reportMissingImports]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    refused: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    try:
        for number in range(loops):
            with warnings.catch_warnings(action="ignore"):
                name, was_refused = run(random.Random(f"{seed}/{number}"))
            kind = name.partition(",")[0]
            ran[kind] += 1
            refused[kind] += was_refused
    finally:
        torch.set_num_threads(threads)
    shown = ", ".join(f"{kind} {refused[kind]}/{ran[kind]}" for kind in sorted(ran))
    return f"{loops} loops charged at least what they cost; refused steps in: {shown}"


def believing() -> Any:
    """The control: each step is taken for one on a fresh draw."""
    from dpcompose.interop.draws import Draw
    from dpcompose.interop.preflight import StepHook

    def reason(hook: Any, counts: list[int], adds_noise: bool) -> str:
        hook.taken, hook.waiting, hook.spanned = [Draw(0, RATE, None)], [], {None}
        return ""

    return patch.multiple(StepHook, _reason=reason, end_amplification=lambda hook: None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loops", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--group", type=int, default=20, help="loops in two processes")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank is not None:
        warnings.simplefilter("ignore")
        return member(asked.folder, asked.rank, asked.loops, asked.seed)
    try:
        with believing():
            campaign(loops=100, seed=asked.seed)
    except TrainingError as caught:
        print(f"control: caught: {caught}", flush=True)
    else:
        sys.exit("the control passed")
    print(campaign(loops=asked.loops, seed=asked.seed), flush=True)
    print(group(asked.group, asked.seed), flush=True)
    return None


if __name__ == "__main__":
    main()
