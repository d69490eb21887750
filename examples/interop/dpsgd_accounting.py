"""DP-SGD as dp_accounting describes it, with one line changed: its accountant. Prints epsilon and a noise multiplier.

python -m examples.interop.dpsgd_accounting
"""

from __future__ import annotations

import time
from typing import Any

import dp_accounting  # pyright: ignore[reportMissingImports]
from dp_accounting.pld import PLDAccountant  # pyright: ignore[reportMissingImports]

from dpcompose.interop.dp_accounting import Accountant  # instead of PLDAccountant

RATE, STEPS, DELTA = 256 / 60_000, 14_062, 1e-5


def training(noise_multiplier: float) -> Any:
    """60 epochs over 60,000 records, in Poisson samples of 256."""
    step = dp_accounting.PoissonSampledDpEvent(
        RATE, dp_accounting.GaussianDpEvent(noise_multiplier)
    )
    return dp_accounting.SelfComposedDpEvent(step, STEPS)


def main() -> None:
    accountant = Accountant().compose(training(1.1))
    print(f"epsilon at most {accountant.get_epsilon(DELTA):.9f}; {accountant.bound(delta=DELTA)}")
    seconds: list[float] = []
    for kind in (Accountant, PLDAccountant):
        start = time.perf_counter()
        noise = dp_accounting.calibrate_dp_mechanism(kind, training, 3.0, DELTA)
        seconds.append(time.perf_counter() - start)
        print(
            f"{kind.__name__}: epsilon 3 needs a noise multiplier of {noise:.6f}, found in {seconds[-1]:.3f} s"
        )


if __name__ == "__main__":
    main()
