"""Opacus with its own accountants and with dpcompose, in one run: the noise multiplier, and a loop that asks.

.venv-interop/bin/python -m benchmarks.interop
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from dpcompose.composition import running_epsilon
from dpcompose.interop import opacus as ours
from dpcompose.mechanisms import Gaussian

TARGETS = (
    (8.0, 1e-5, 256 / 50_000, 30),
    (3.0, 1e-5, 0.01, 10),
    (2.0, 1e-6, 512 / 60_000, 40),
    (1.0, 1e-5, 0.02, 20),
)
DELTA, RATE = 1e-6, 0.01


def timed(run: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least seconds of the processor of some runs, and the result."""
    seconds, found = [], None
    for _ in range(times):
        begin = time.process_time()
        found = run()
        seconds.append(time.process_time() - begin)
    return min(seconds), found


def calibration() -> None:
    from opacus.accountants.utils import get_noise_multiplier  # pyright: ignore[reportMissingImports]

    print(
        "| epsilon, delta, rate, epochs | PRV | its sigma | `dpcompose` | times | least | times | sigma |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for epsilon, delta, rate, epochs in TARGETS:
        given: Any = {
            "target_epsilon": epsilon,
            "target_delta": delta,
            "sample_rate": rate,
            "epochs": epochs,
        }
        prv, theirs = timed(lambda given=given: get_noise_multiplier(**given, accountant="prv"))
        word, same = timed(
            lambda given=given: get_noise_multiplier(**given, accountant="dpcompose")
        )
        least, best = timed(lambda given=given: ours.get_noise_multiplier(**given))
        assert best <= theirs and same <= theirs
        name = f"{epsilon:g}, {delta:g}, {rate:.4g}, {epochs}"
        print(
            f"| {name} | {prv * 1e3:.0f} ms | {theirs:.5f} | {word * 1e3:.1f} ms | {prv / word:.0f} ",
            end="",
        )
        print(f"| {least * 1e3:.1f} ms | {prv / least:.0f} | {best:.5f} |")


def loop(name: str, noise: Callable[[int], float], before: int, steps: int) -> None:
    """Ask after every step."""
    accountant, seconds = ours.Accountant(), []
    for step in range(before + steps):
        accountant.step(noise_multiplier=noise(step), sample_rate=RATE)
        if step >= before - 1:
            begin = time.process_time()
            accountant.get_epsilon(DELTA)
            seconds.append(time.process_time() - begin)
    rest = seconds[1:]
    fresh = ours.Accountant()
    fresh.history = list(accountant.history)
    assert fresh.bound(DELTA) == accountant.bound(DELTA)
    mean, middle, most = (
        1e3 * each for each in (statistics.fmean(rest), statistics.median(rest), max(rest))
    )
    print(
        f"| {name} | {1e3 * seconds[0]:.1f} ms | {middle:.2f} ms | {mean:.2f} ms | {most:.1f} ms |"
    )


def main() -> None:
    warnings.filterwarnings("ignore")
    calibration()
    print("\n| loop | first | median | mean | largest |")
    print("|---|--:|--:|--:|--:|")
    loop("one sigma, steps 1 to 2,000", lambda step: 1.0, 1, 2000)
    loop("500 sigmas before; one after, 200 steps", lambda step: 1 + min(step, 500) / 500, 501, 200)
    loop("500 sigmas before, a new one at each of 200 steps", lambda step: 1 + step / 500, 500, 200)
    seconds, _ = timed(
        lambda: running_epsilon(Gaussian(1.0).sampled(RATE) * 10_000, delta=DELTA), 2
    )
    print(f"\n10,000 steps at once: {seconds / 10_000 * 1e6:.0f} microseconds each")


if __name__ == "__main__":
    main()
