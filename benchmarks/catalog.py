"""The cases, and what the project demands of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchmarks.case import Case, Part

SCHEDULES = (
    (1.0, 0.01, 10**3),
    (0.8, 0.001, 10**5),
    (1.1, 256 / 60000, 14062),
    (0.5, 1e-4, 10**6),
    (4.0, 0.1, 10**4),
)
STEPS = ((1.0, 0.001), (4.0, 1e-4))
FEWEST, MOST = 10**3, 10**9


@dataclass(frozen=True)
class Target:
    """The target that all cases of a group must reach.

    Args:
        title: As the tables show it.
        speedup: Least time of dp-accounting's PLD at grid 1e-4 over ours; None where no ratio is asked.
        width: Largest relative width of the answer; None where none is asked.
        beats_renyi: Whether it must be faster than dp-accounting's RDP accountant too.
    """

    title: str
    speedup: float | None
    width: float | None
    beats_renyi: bool = False


TARGETS = {
    "schedules": Target(
        "DP-SGD, five schedules, delta 1e-5 and 1e-10", 150, 1e-9, beats_renyi=True
    ),
    "distinct gaussian": Target("1,000 distinct Gaussian", 1000, 1e-12),
    "distinct laplace": Target("1,000 distinct Laplace", 80, 1e-6),
    "phases": Target("200 DP-SGD phases of 50 steps", 400, 1e-9),
    "laplace": Target("k-fold Laplace, k from 10 to 10^6", 30, 1e-9),
    "promises": Target("k-fold BlackBox and randomized response", 30, 1e-9),
    "mixed": Target("mixed plan of four kinds", 80, 1e-9),
    "calibration": Target("calibrate sigma", 100, 1e-9),
    "few": Target("2 to 20 sampled Gaussian, rate 0.01 and 0.1", 10, 1e-6),
    "tiny": Target("delta 1e-30 and 1e-100", None, 1e-9),
    "gaussian": Target("k-fold Gaussian", None, None),
    "scale": Target("one DP-SGD step, 10^3 and 10^9 times", None, None),
}


def cases() -> tuple[Case, ...]:
    """Every case, in the order of the tables."""
    return (
        *_schedules(),
        *_few(),
        *_laplace(),
        *_promises(),
        *_gaussian(),
        *_heterogeneous(),
        Case("calibrate sigma: epsilon 2, rate 0.01, 10^4 steps", "calibration", (Part("gaussian", 1.0, 10**4, 0.01),),
             1e-5, target=2.0, quick=True),
        *_tiny(),
        *_scale(),
    )  # fmt: skip


def _training(group: str, schedule: tuple[float, float, int], *, delta: float, quick: bool) -> Case:
    sigma, rate, times = schedule
    name = f"DP-SGD sigma {sigma:g}, rate {rate:.4g}, {power(times)} steps"
    return Case(name, group, (Part("gaussian", sigma, times, rate),), delta, quick=quick)


def _schedules() -> list[Case]:
    chosen = ((schedule, delta) for schedule in SCHEDULES for delta in (1e-5, 1e-10))
    return [
        _training(
            "schedules",
            schedule,
            delta=delta,
            quick=delta == 1e-5 and schedule[2] in (10**3, 14062),
        )
        for schedule, delta in chosen
    ]


def _few() -> list[Case]:
    chosen = (
        (sigma, rate, times)
        for sigma, rate in ((1.0, 0.01), (2.0, 0.1))
        for times in (2, 5, 10, 20)
    )
    return [
        Case(f"{times} sampled Gaussian, sigma {sigma:g}, rate {rate:g}", "few",
             (Part("gaussian", sigma, times, rate),), 1e-5, quick=times == 10)
        for sigma, rate, times in chosen
    ]  # fmt: skip


def _laplace() -> list[Case]:
    pairs = ((10, 3.0), (100, 10.0), (10**3, 30.0), (10**4, 100.0), (10**5, 300.0), (10**6, 1000.0))
    return [
        Case(f"{power(times)} Laplace of scale {scale:g}", "laplace", (Part("laplace", scale, times),), 1e-6,
             quick=times in (100, 10**4))
        for times, scale in pairs
    ]  # fmt: skip


def _promises() -> list[Case]:
    """Equal promises; the golden values are those of tests/data/golden.json (kov_eps)."""
    golden = {10: 0.999370905721758725, 100: 4.774567588107986153}
    pairs = ((10, 0.1), (100, 0.1), (10**3, 0.03), (10**4, 0.01), (10**5, 0.003), (10**6, 0.001))
    found = [
        Case(f"{power(times)} BlackBox of epsilon {epsilon:g}", "promises", (Part("black-box", epsilon, times),), 1e-6,
             golden=golden.get(times), quick=times in (100, 10**4))
        for times, epsilon in pairs
    ]  # fmt: skip
    book = Case(
        "10^4 BlackBox of epsilon 1/801",
        "promises",
        (Part("black-box", 1 / 801, 10**4),),
        math.exp(-32),
    )
    coin = (Part("randomized-response", 0.1, 100),)
    return [
        *found,
        book,
        Case("100 randomized responses, epsilon 0.1", "promises", coin, 1e-6, golden=golden[100]),
    ]


def _gaussian() -> list[Case]:
    """The golden values are those of tests/data/peer_defects.json."""
    return [
        Case(
            "100 Gaussian, sigma 10", "gaussian", (Part("gaussian", 10.0, 100),), 1e-5, quick=True
        ),
        *(
            Case(
                f"10^6 Gaussian, sigma {sigma:g}",
                "gaussian",
                (Part("gaussian", sigma, 10**6),),
                delta,
                golden=golden,
            )
            for sigma, delta, golden in (
                (100.0, 1e-10, 112.84032670423223),
                (1000.0, 1e-11, 6.901820244999318),
            )
        ),
    ]


def _heterogeneous() -> list[Case]:
    laplace = tuple(Part("laplace", 50 + index / 10) for index in range(1000))
    gaussian = tuple(Part("gaussian", 50 + index / 10) for index in range(1000))
    phases = tuple(Part("gaussian", 0.8 + index / 200, 50, 0.01) for index in range(200))
    mixed = (
        Part("gaussian", 1.0, 1000, 0.005),
        Part("laplace", 20.0, 10),
        Part("black-box", 0.01, 50),
        Part("gaussian", 30.0, 20),
    )
    return [
        Case("1,000 Laplace, scale 50 to 149.9", "distinct laplace", laplace, 1e-6),
        Case("1,000 Gaussian, sigma 50 to 149.9", "distinct gaussian", gaussian, 1e-6),
        Case("200 phases of 50 steps, sigma 0.8 to 1.795, rate 0.01", "phases", phases, 1e-6),
        Case(
            "1000 DP-SGD steps, 10 Laplace, 50 BlackBox, 20 Gaussian",
            "mixed",
            mixed,
            1e-8,
            quick=True,
        ),
    ]


def _tiny() -> list[Case]:
    found: list[Case] = []
    for delta in (1e-30, 1e-100):
        found += [
            _training("tiny", schedule, delta=delta, quick=schedule[2] == 10**3)
            for schedule in SCHEDULES
        ]
        found.append(
            Case("10^4 Laplace of scale 100", "tiny", (Part("laplace", 100.0, 10**4),), delta)
        )
        found.append(
            Case("10^4 BlackBox of epsilon 0.01", "tiny", (Part("black-box", 0.01, 10**4),), delta)
        )
        found.append(Case("100 Gaussian, sigma 10", "tiny", (Part("gaussian", 10.0, 100),), delta))
    return found


def _scale() -> list[Case]:
    chosen = ((sigma, rate, times) for sigma, rate in STEPS for times in (FEWEST, MOST))
    return [_training("scale", step, delta=1e-5, quick=step[0] == 1.0) for step in chosen]


def power(times: int) -> str:
    """A power of ten above a hundred as 10^n, any other count as it is."""
    digits = str(times)
    return f"10^{len(digits) - 1}" if times >= 1000 and digits.strip("0") == "1" else digits
