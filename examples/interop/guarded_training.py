"""A model trained under a budget until the guard refuses: `python -m examples.interop.guarded_training`.

Logistic regression by DP-SGD, in numpy: does a published deployment of differential privacy protect users in the local
model? The records are the 41 deployments of examples/data/deployments.json: few, for a loop that is that of any
training. The noise multiplier follows what was released, which a filter allows.

The first attempt is killed with kill -9 in the middle of a step; the second goes on from its checkpoint. The steps
after the checkpoint run again, and are charged again. (Noise from numpy is for this page.)
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import tempfile
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dpcompose.adaptive import Budget
from dpcompose.errors import StepRefusedError
from dpcompose.interop.guard import TrainingGuard
from dpcompose.ledger import Ledger

DATA = Path(__file__).parents[1] / "data" / "deployments.json"
EPSILON, DELTA, RATE, CLIP, LEARNING_RATE = 4.0, 1e-4, 0.25, 1.0, 0.2


def records() -> tuple[Any, Any]:
    """Features of each deployment, the first of them constant, and whether it is local."""
    rows = json.loads(DATA.read_text(encoding="utf-8"))["deployments"]
    features = [
        (
            1.0,
            row["sector"] == "Technology",
            row["variant"] == "Pure DP",
            row["release_type"] == "Many releases",
        )
        for row in rows
    ]
    return np.array(features, dtype=float), np.array(
        [row["model"] == "Local" for row in rows], dtype=float
    )


def noisy_gradient(
    weights: Any, features: Any, local: Any, sigma: float, noise: np.random.Generator
) -> Any:
    """The sum of clipped gradients over a Poisson sample, plus noise, over the expected size of the sample."""
    chosen = noise.random(len(local)) < RATE
    predicted = 1 / (1 + np.exp(-features[chosen] @ weights))
    gradients = (predicted - local[chosen])[:, None] * features[chosen]
    sizes = np.maximum(np.linalg.norm(gradients, axis=1) / CLIP, 1.0)
    total = (gradients / sizes[:, None]).sum(axis=0)
    return (total + noise.normal(0.0, sigma * CLIP, len(weights))) / (RATE * len(local))


def train(folder: Path, *, seed: int, killed_in: int | None = None) -> None:
    """Train from the checkpoint until the budget refuses, or until the kill."""
    features, local = records()
    noise, checkpoint, sigma = np.random.default_rng(seed), folder / "weights.npy", 6.0
    weights = np.load(checkpoint) if checkpoint.exists() else np.zeros(features.shape[1])
    with Ledger.open(str(folder / "ledger.db")) as ledger:
        guard = TrainingGuard(
            epsilon=EPSILON,
            delta=DELTA,
            ledger=ledger,
            scope="registry",
            run="local or not",
            filter=Budget,  # for steps of any kind: sigma is chosen along the way
        )
        print(f"{guard.steps_left(sigma=sigma, rate=RATE)} steps of sigma {sigma:g} fit")
        for taken in itertools.count():
            try:
                with guard.step(sigma=sigma, rate=RATE):
                    if taken == killed_in:
                        os.kill(os.getpid(), signal.SIGKILL)
                    gradient = noisy_gradient(weights, features, local, sigma, noise)
            except StepRefusedError as refusal:
                print(f"{taken} steps taken. {refusal}")
                break
            weights = weights - LEARNING_RATE * gradient
            if taken % 5 == 4:
                np.save(checkpoint, weights)
            sigma = (
                6.0 if np.linalg.norm(gradient) > 0.5 else 9.0
            )  # from what was released, as a filter allows
        history = guard.history(points=5)
    for steps, epsilon in zip(history.steps, history.epsilon, strict=True):
        print(
            f"  {steps:4d} steps charged: epsilon {epsilon.upper:.4f} of {EPSILON:g} at delta {DELTA:g}"
        )
    right = ((features @ weights > 0) == (local > 0)).mean()
    print(f"weights {np.round(weights, 2)}; {right:.0%} of the records are on the right side")


def main() -> None:
    """One attempt that is killed, and one that ends."""
    with tempfile.TemporaryDirectory() as folder:
        print("first attempt, killed in its 13th step:")
        first = get_context("spawn").Process(
            target=train, args=(Path(folder),), kwargs={"seed": 1, "killed_in": 12}
        )
        first.start()
        first.join()
        assert first.exitcode == -signal.SIGKILL
        print("second attempt, from the checkpoint of the 10th:")
        train(Path(folder), seed=2)


if __name__ == "__main__":
    main()
