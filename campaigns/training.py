"""Random training loops under Opacus, each charged at least what was fed: `python -m campaigns.training --loops 2000`.

It needs Opacus: run it in the environment of `make test-interop`, such as

    .venv-interop/bin/python -m campaigns.training --loops 2000 --seed 7

A loop has per-sample gradients or ghost clipping, a Poisson or a shuffled loader, sometimes a memory manager; it is
honest, or it uses a batch again, skips draws, steps on draws it likes, iterates over another loader, feeds all records,
accumulates, raises in a step, goes back to a checkpoint, has several rows of a record, or replaces the hook or the
accountant. Loops of their own draw from the accountant. A stubborn loop catches refusals and goes on.

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
import math
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
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

    def add(self, other: Fed) -> None:
        """Add what another sum has."""
        self.draws.update(other.draws)
        self.others.update(other.others)
        self.numbers |= other.numbers


class Loop:
    """A training under Opacus whose steps are logged where the parameters change."""

    def __init__(self, rng: random.Random, *, ghost: bool, poisson: bool, noise: float) -> None:
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
        self.tensors, self.rows = dataset.tensors, 1
        self.prepare(torch.nn.Linear(3, 2))
        self.pulled, self.refusals = 0, 0
        self.left_out, self.stubborn, self.fails = False, False, False
        self.used: set[int] = set()
        self.empty: set[int] = set()
        self.new, self.summed, self.steps = Fed(), Fed(), list[Fed]()
        inner, release = self.optimizer.original_optimizer, self.optimizer.original_optimizer.step

        def released(*arguments: Any) -> Any:
            self.summed.add(self.new)
            self.used |= self.summed.numbers
            self.steps.append(self.summed)
            self.new, self.summed = Fed(), Fed()
            self.left_out |= bool(set(range(1, max(self.used, default=1))) - self.used)
            if self.fails:
                self.fails = False
                raise RuntimeError("a step that fails after the release")
            return release(*arguments)

        inner.step = released

    def prepare(self, model: Any) -> None:
        """Model, optimizer, criterion and loader under Opacus, with a seed, so that a loop is the same again."""
        from opacus import PrivacyEngine  # pyright: ignore[reportMissingImports]

        import dpcompose.interop.opacus  # noqa: F401  registers the accountant
        from dpcompose.interop import preflight

        torch, rng = self.torch, self.rng

        def seeded(device: Any = "cpu") -> Any:
            return torch.Generator(device=device).manual_seed(rng.randrange(2**31))

        self.engine: Any = PrivacyEngine(accountant="dpcompose")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with patch.object(preflight, "fresh_generator", seeded):
            prepared = self.engine.make_private(
                module=model, optimizer=optimizer, data_loader=self.original, noise_multiplier=self.noise,
                max_grad_norm=1.0, poisson_sampling=self.poisson,
                grad_sample_mode="ghost" if self.ghost else "hooks",
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
                self.empty |= set() if batch else {self.pulled}
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
        noise = self.noise / self.rows
        where = Counter(draw for step in self.steps for draw in step.draws)
        parts: Counter[Shifts] = Counter()
        records: Counter[int] = Counter()
        for step in self.steps:
            records.update({each: times**2 for each, times in step.others.items()})
            if self.left_out and step.draws:
                parts[((1.0, len(step.draws) / noise),)] += 1
            elif len(step.draws) > 1:
                n = len(step.draws)
                binomial = [
                    (math.comb(n, k) * RATE**k * (1 - RATE) ** (n - k), k / noise)
                    for k in range(n + 1)
                ]
                parts[tuple(binomial)] += 1
        if not self.left_out:
            alone = {draw for step in self.steps if len(step.draws) == 1 for draw in step.draws}
            for draw in alone:
                parts[((1 - RATE, 0.0), (RATE, math.sqrt(where[draw]) / noise))] += 1
        if records:
            parts[((1.0, math.sqrt(max(records.values())) / self.noise),)] += 1
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


HONEST = (plain, managed, in_parts, broken_off, tried_again, hooked, rolled_back, augmented)
OWN = (own, own_twice, own_liked, own_given_up, own_all_records, own_outside)
OTHERS = (
    used_again, used_while_drawing, liked, liked_late, unwanted, other_loader, other_batches, all_records, accumulated,
    listed, given_up, failing, replaced, augmented_in_silence,
)  # fmt: skip


def run(rng: random.Random) -> tuple[str, bool]:
    """One random loop: which, and whether it was refused; TrainingError if it was charged less than it cost."""
    kinds: Any = rng.choices([HONEST, OTHERS, OWN], [0.4, 0.45, 0.15])[0]
    train: Callable[[Any, int], None] = rng.choice(kinds)
    options = {"ghost": rng.random() < 0.4, "poisson": rng.random() < 0.75}
    if kinds is OWN:
        options = {"ghost": False, "poisson": True}
    loop = (OwnLoop if kinds is OWN else Loop)(rng, noise=rng.choice([0.75, 1.0, 2.0]), **options)
    loop.stubborn = rng.random() < 0.5
    with suppress(UnsupportedError):
        train(loop, rng.choice([1, 2]))
    name = f"{train.__name__}, {options}, noise {loop.noise}, {len(loop.steps)} steps, stubborn {loop.stubborn}"
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
    asked = parser.parse_args()
    try:
        with believing():
            campaign(loops=100, seed=asked.seed)
    except TrainingError as caught:
        print(f"control: caught: {caught}", flush=True)
    else:
        sys.exit("the control passed")
    print(campaign(loops=asked.loops, seed=asked.seed), flush=True)


if __name__ == "__main__":
    main()
