"""A refusal names the line of the script to change, and the script runs once that line is changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from dpcompose.errors import UnsupportedError
from tests.interop.conftest import library

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]
library("opacus")

SCRIPT = """
import opacus, torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
import dpcompose.interop.opacus as dp
from dpcompose import Adjacency

class Statistics(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
    def forward(self, x):
        self.mean = self.mean + x.sum(0)
        return x

torch.manual_seed(0)
records = TensorDataset(torch.randn(60, 4), torch.randint(0, 2, (60,)))
public = DataLoader(records, batch_size=12)
engine = PrivacyEngine(accountant="dpcompose")
cross_entropy = torch.nn.functional.cross_entropy
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
plain = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = engine.make_private(
    module=model, optimizer=plain, data_loader=public, noise_multiplier=1.0, max_grad_norm=1.0
)
for x, y in loader:
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()
    optimizer.step()
charged = engine.accountant.history
assert 0 < engine.get_epsilon(1e-5) < float("inf")
"""
MAKE = SCRIPT[SCRIPT.index("model, optimizer, loader") : SCRIPT.index("for x, y")]
LOOP = SCRIPT[SCRIPT.index("for x, y") : SCRIPT.index("charged")]
ADAPTIVE = (
    "clipping='adaptive', target_unclipped_quantile=0.5, clipbound_learning_rate=0.2, max_clipbound=9.0,"
    " min_clipbound=0.1, unclipped_num_std=3.0, max_grad_norm=1.0"
)
GHOST = MAKE.replace("optimizer, loader", "optimizer, criterion, loader").replace(
    "max_grad_norm=1.0", "max_grad_norm=1.0, grad_sample_mode='ghost'"
)
GHOST_LOOP = LOOP.replace("cross_entropy(", "criterion(")
GHOST = GHOST.replace(
    "data_loader=public", "data_loader=public, criterion=torch.nn.CrossEntropyLoss()"
)
OWN = """
model = opacus.GradSampleModule(model)
optimizer = opacus.optimizers.DPOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=6
)
optimizer.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=0.1))
inputs, labels = records.tensors
"""
OWN_LOOP = """
for _ in range(5):
    with engine.accountant.draw(0.1, records=len(inputs)) as batch:
        optimizer.zero_grad()
        cross_entropy(model(inputs[batch]), labels[batch]).backward()
        optimizer.step()
"""
MIXING = """
class Centered(torch.nn.Module):
    def forward(self, x):
        return x - x.mean(0) if len(x) else x
model.append(Centered())
"""


@dataclass(frozen=True)
class Case:
    """A script with a fault, and with the change that its refusal names.

    Args:
        bad: Lines of the script, or of one of its parts, that are replaced, each with its fault.
        good: The same lines after the change.
        names: What the refusal says to write.
    """

    bad: dict[str, str]
    good: dict[str, str]
    names: str

    def script(self, changes: dict[str, str]) -> str:
        text = SCRIPT
        for line, other in changes.items():
            assert line in text
            text = text.replace(line, other)
        return text


NORMS = "max_grad_norm=1.0"
EVALUATION = "with torch.no_grad():\n    for x, y in public:\n        model(x)\n"
AFTER, BEFORE = "model, optimizer, loader", "for x, y in loader:"
CASES = {
    "adaptive clipping": Case({NORMS: ADAPTIVE}, {NORMS: f"{NORMS}, clipping='flat'"}, "clipping='flat'"),
    "random on empty": Case(
        {NORMS: f"{NORMS}, rand_on_empty=True"}, {NORMS: f"{NORMS}, rand_on_empty=False"}, "rand_on_empty=False"),
    "a replaced accountant": Case(
        {BEFORE: f"engine.accountant = dp.Accountant()\n{BEFORE}"},
        {AFTER: f"engine.accountant = dp.Accountant()\n{AFTER}"}, "engine.accountant = ... before make_private"),
    "an accountant that nothing charges": Case(
        {"charged =": "engine.accountant = dp.Accountant()\ncharged ="},
        {AFTER: f"engine.accountant = dp.Accountant()\n{AFTER}"}, "engine.accountant = ... before make_private"),
    "noise outside of a step": Case(
        {"    optimizer.step()": "    optimizer.clip_and_accumulate()\n    optimizer.add_noise()"}, {},
        "optimizer.step() for each evaluation"),
    "seeded noise": Case(
        {NORMS: f"{NORMS}, noise_generator=torch.Generator().manual_seed(1)"}, {},
        "make_private(...) without noise_generator"),
    "restored noise": Case(
        {BEFORE: f"optimizer.generator.set_state(torch.Generator().get_state())\n{BEFORE}"}, {},
        "restore no state of optimizer.generator"),
    "known coins": Case(
        {BEFORE: f"loader.batch_sampler.generator.manual_seed(1)\n{BEFORE}"}, {},
        "leave the generator of loader.batch_sampler"),
    "another optimizer": Case(
        {"    optimizer.step()": "    plain.step()"}, {}, "optimizer.step() of the optimizer that make_private returned"),
    "another norm": Case(
        {MAKE: GHOST, LOOP: f"optimizer.max_grad_norm = 0.5\n{GHOST_LOOP}"}, {MAKE: GHOST, LOOP: GHOST_LOOP},
        "leave optimizer.max_grad_norm as it was"),
    "another loss": Case(
        {MAKE: GHOST}, {MAKE: GHOST, LOOP: GHOST_LOOP}, "criterion(model(x), y).backward()"),
    "a weighted sampler": Case(
        {"batch_size=12": "batch_size=12, sampler=WeightedRandomSampler(torch.ones(60), 60)",
         NORMS: f"{NORMS}, poisson_sampling=False"},
        {"batch_size=12": "batch_size=12, sampler=None", NORMS: f"{NORMS}, poisson_sampling=True"},
        "DataLoader(..., sampler=None); engine.make_private(..., poisson_sampling=True)"),
    "an unknown sampler": Case(
        {"batch_size=12": "batch_size=12, sampler=torch.utils.data.RandomSampler(records, replacement=True)",
         NORMS: f"{NORMS}, poisson_sampling=False"},
        {"batch_size=12": "batch_size=12, sampler=torch.utils.data.RandomSampler(records, replacement=True)",
         NORMS: f"{NORMS}, poisson_sampling=True"}, "engine.make_private(..., poisson_sampling=True)"),
    "the loader as it was": Case(
        {BEFORE: "for x, y in public:"}, {}, "for batch in loader"),
    "two steps on a batch": Case(
        {"    optimizer.step()": "    optimizer.step()\n    optimizer.step()"}, {}, "optimizer.step() once for each batch"),
    "an unwanted batch": Case(
        {BEFORE: f"{BEFORE}\n    if y.float().mean() > 0.1:\n        continue",
         "assert 0": "optimizer.step()\nassert 0"},
        {BEFORE: f"{BEFORE}\n    x, y = (x, y) if len(x) % 2 else (x[:0], y[:0])"}, "on batch[:0]"),
    "evaluation on draws": Case(
        {BEFORE: f"for x, y in loader:\n    model(x)\n{BEFORE}"}, {BEFORE: EVALUATION + BEFORE},
        "evaluate on another DataLoader"),
    "rows of augmentations": Case(
        {"    optimizer.zero_grad()": "    x, y = torch.cat([x, -x]), torch.cat([y, y])\n    optimizer.zero_grad()"},
        {"    optimizer.zero_grad()": "    x, y = torch.cat([x, -x]), torch.cat([y, y])\n    optimizer.zero_grad()",
         BEFORE: f"engine.accountant.augmentations = 2\n{BEFORE}"}, "accountant.augmentations = K"),
    "an own loop on other records": Case(
        {MAKE: OWN, LOOP: OWN_LOOP.replace("[batch]", "[:5]")}, {MAKE: OWN, LOOP: OWN_LOOP},
        "with accountant.draw(rate, records=...) as batch: one backward pass over all of it, then optimizer.step()"),
    "an own loop with two steps": Case(
        {MAKE: OWN, LOOP: OWN_LOOP + OWN_LOOP.partition("as batch:")[2]}, {MAKE: OWN, LOOP: OWN_LOOP},
        "with accountant.draw(rate, records=...) as batch: one backward pass over all of it, then optimizer.step()"),
    "a target for a shuffled loader": Case(
        {"engine.make_private": "engine.make_private_with_epsilon",
         "noise_multiplier=1.0": "target_epsilon=9.0, target_delta=1e-5, epochs=1, poisson_sampling=False"},
        {"noise_multiplier=1.0": "noise_multiplier=dp.get_noise_multiplier(target_epsilon=9.0, target_delta=1e-5,"
         " sample_rate=1.0, steps=1), poisson_sampling=False"},
        "make_private(..., noise_multiplier=dpcompose.interop.opacus.get_noise_multiplier(..., sample_rate=1.0,"
        " steps=epochs), poisson_sampling=False)"),
    "another adjacency": Case(
        {NORMS: f"{NORMS}, poisson_sampling=False",
         "charged =": "dp.from_state_dict(engine.accountant.state_dict(), adjacency=Adjacency.ADD_REMOVE)\ncharged ="},
        {NORMS: f"{NORMS}, poisson_sampling=False",
         "charged =": "dp.from_state_dict(engine.accountant.state_dict(), adjacency=Adjacency.ZERO_OUT)\ncharged ="},
        "from_state_dict(state, adjacency=Adjacency.ZERO_OUT)"),
    "a layer that mixes": Case(
        {"plain = ": f"{MIXING}plain = "}, {"plain = ": "model.append(torch.nn.GroupNorm(1, 2))\nplain = "}, "GroupNorm"),
    "a buffer of statistics": Case(
        {"model = torch.nn.Sequential(": "model = torch.nn.Sequential(Statistics(), "},
        {"model = torch.nn.Sequential(": "model = torch.nn.Sequential(torch.nn.GroupNorm(2, 4), "},
        "a layer without running statistics, such as GroupNorm"),
    "a head that the private optimizer leaves": Case(
        {"plain = torch.optim.SGD(model.parameters()": "plain = torch.optim.SGD(model[0].parameters()",
         BEFORE: f"head = torch.optim.SGD(model._module[1].parameters(), lr=0.1)\n{BEFORE}",
         "    optimizer.step()": "    optimizer.step()\n    head.step()"}, {},
        "optimizer.step() of the optimizer that make_private returned"),
    "a loss that mixes": Case(
        {BEFORE: "dp.probe(model, lambda batch: (model(batch[0]) - model(batch[0]).mean(0)).square().mean(),"
         f" (records[:8][0], records[:8][1]))\n{BEFORE}"},
        {BEFORE: "dp.probe(model, lambda batch: cross_entropy(model(batch[0]), batch[1]), records[:8])\n" + BEFORE},
        "a loss of each record by itself"),
}  # fmt: skip


def ran(script: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(script, "training.py", "exec"), names)
    return names


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_line_that_a_refusal_names_is_the_one_to_change(case: Case) -> None:
    with pytest.raises(UnsupportedError, match=f"Change: .*{re.escape(case.names)}"):
        ran(case.script(case.bad))
    assert ran(case.script(case.good))["charged"]
