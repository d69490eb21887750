"""Calibrate JAX Privacy's banded matrix factorization with dpcompose; the accountant is the one line that changes.

python -m examples.interop.band_matrix
"""

from __future__ import annotations

import numpy as np
from dp_accounting import NeighboringRelation  # pyright: ignore[reportMissingImports]
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig  # pyright: ignore[reportMissingImports]

from dpcompose.interop.dp_accounting import Accountant

STEPS, RATE, DELTA = 1000, 0.1, 1e-6
STRATEGY = np.array([1.0, 0.5, 0.375, 0.3125])


def main() -> None:
    config = BandMFExecutionPlanConfig(
        iterations=STEPS,
        strategy=STRATEGY,
        epsilon=2.0,
        delta=DELTA,
        sampling_prob=RATE,
        accountant=Accountant(NeighboringRelation.REPLACE_SPECIAL),  # instead of PLDAccountant(...)
    )
    event = config.plan.dp_event
    spent = Accountant(NeighboringRelation.REPLACE_SPECIAL).compose(event)
    noise = event.event.event.noise_multiplier
    print(
        f"{STEPS} steps in {len(STRATEGY)} bands: noise multiplier {noise:.6f}, {event.count} rounds for each record"
    )
    print(f"epsilon at most {spent.get_epsilon(DELTA):.9f} at delta {DELTA:g}")


if __name__ == "__main__":
    main()
