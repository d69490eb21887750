"""`python -m benchmarks.adapters`: the accountant of `dpcompose.interop.dp_accounting` beside dp_accounting's own.

Seconds of the processor, in turns. It needs dp_accounting: run it in the environment of `make test-interop`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any

ROUNDS = 3
SETTINGS = (
    (256 / 60_000, 14_062, 3.0, 1e-5),
    (0.01, 10_000, 8.0, 1e-5),
    (0.01, 10_000, 2.0, 1e-5),
    (0.01, 1_000, 1.0, 1e-5),
    (0.001, 100_000, 2.0, 1e-7),
)
"""Rate, steps, epsilon and delta of DP-SGD."""


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def calibrations(library: Any, ours: Any, theirs: Any) -> None:
    for rate, steps, epsilon, delta in SETTINGS:

        def training(noise: float, rate: float = rate, steps: int = steps) -> Any:
            step = library.PoissonSampledDpEvent(rate, library.GaussianDpEvent(noise))
            return library.SelfComposedDpEvent(step, steps)

        def calibrated(
            accountant: Any, target: float, delta: float = delta, event: Any = training
        ) -> Any:
            return lambda: library.calibrate_dp_mechanism(accountant, event, target, delta)

        turns = [
            (seconds(calibrated(ours, target)), seconds(calibrated(theirs, target)))
            for target in (epsilon * (1 + each / 100) for each in range(ROUNDS))
        ]
        own, other = (median(each) for each in zip(*turns, strict=True))
        print(
            f"rate {rate:.4f}, {steps} steps, epsilon {epsilon:g}: {own:.4f} s, {other:.2f} s, ratio {other / own:.0f}"
        )


def many(library: Any, ours: Any) -> None:
    gaussian, sampled = library.GaussianDpEvent, library.PoissonSampledDpEvent
    one = sampled(0.01, gaussian(1.0))
    for name, events in (
        ("different Gaussians", [gaussian(10 + each * 1e-3) for each in range(10**5)]),
        ("different samples", [sampled(0.01, gaussian(1 + each * 1e-5)) for each in range(10**5)]),
        ("equal samples", [sampled(0.01, gaussian(1.0)) for _ in range(10**5)]),
    ):
        whole = library.ComposedDpEvent(events)
        print(f"10^5 {name}: {seconds(lambda whole=whole: ours().compose(whole)):.3f} s")
    accountant = ours()
    print(
        f"10^5 calls of compose: {seconds(lambda: [accountant.compose(one) for _ in range(10**5)]):.3f} s"
    )
    deep = gaussian(100.0)
    for _ in range(1000):
        deep = library.ComposedDpEvent([deep, gaussian(100.0)])
    print(f"1,000 levels: {seconds(lambda: ours().compose(deep)):.4f} s")


def main() -> None:
    library, pld = import_module("dp_accounting"), import_module("dp_accounting.pld")
    ours = import_module("dpcompose.interop.dp_accounting").Accountant
    calibrations(library, ours, pld.PLDAccountant)
    many(library, ours)


if __name__ == "__main__":
    main()
