"""Random plans that are nearly right: they give plausible numbers, or an error that says what is
wrong.
"""

from __future__ import annotations

import random

from campaigns.robustness.judge import judged
from dpcompose import plan

KINDS = {
    "laplace": ("scale", "sensitivity"),
    "gaussian": ("sigma", "sensitivity"),
    "discrete-laplace": ("scale", "shift"),
    "discrete-gaussian": ("sigma", "shift"),
    "randomized-response": ("epsilon", "categories"),
    "exponential": ("epsilon",),
    "black-box": ("epsilon", "delta"),
    "concentrated": ("rho", "delta"),
    "gaussian-dp": ("mu",),
}
NUMBERS = ["0.1", "1", "1.0", "3.5", "40", "1e-3", "1e3", "0.999999", "5e-324", "1e308", "1e-300"]
WRONG = [
    "0", "-1", "nan", "inf", "-inf", "true", '"1"', "[1, 2]", "[[1]]", "{a = 1}", "1979-05-27", "9" * 400, "1e400",
    '""',
    "'''a\nb'''",
    "0x10", "[]", '"\\u001b[2J"', "-0.0", "1_000",
]  # fmt: skip
TIMES = ["1", "2", "30", "1000", "0", "1000000000000000"]


def drawn(rng: random.Random) -> str:
    """The text of a plan."""

    def value(good: list[str]) -> str:
        return rng.choice(WRONG) if rng.random() < 0.08 else rng.choice(good)

    lines = []
    if rng.random() < 0.9:
        lines.append(
            f"delta = {value(['1e-6', '1e-12', '0.0', '0.5', '1'])}"
            if rng.random() < 0.8
            else f"epsilon = {value(NUMBERS)}"
        )
    if rng.random() < 0.4:
        lines.append("adjacency = " + value(['"add-remove"', '"replace"', '"zero-out"']))
    for _ in range(rng.randint(0 if rng.random() < 0.05 else 1, 3)):
        kind = rng.choice(list(KINDS))
        lines += [
            "[[mechanism]]",
            f'kind = "{kind}"' if rng.random() < 0.97 else f"kind = {rng.choice(WRONG)}",
        ]
        lines += [f"{key} = {value(NUMBERS if key not in ('shift', 'categories') else ['1', '2', '3'])}"
                  for place, key in enumerate(KINDS[kind]) if place == 0 or rng.random() < 0.3]  # fmt: skip
        if rng.random() < 0.5:
            lines.append(f"times = {value(TIMES)}")
        if rng.random() < 0.2:
            lines.append(f"rate = {value(['0.01', '0.5', '1', '1.0', '1e-12', '0.999999999'])}")
        if rng.random() < 0.1:
            lines.append("name = " + value(['"a"', '"laplace"', '"same"']))
    text = "\n".join(lines) + "\n"
    if rng.random() < 0.1:
        place = rng.randrange(len(text))
        text = (
            text[:place]
            + rng.choice(["\0", "\x1b", "[", '"', "=", "\u3164", "\n\n", ""])
            + text[place + 1 :]
        )
    return text


def run(number: int, *, seed: int, work: int = 3_000_000) -> list[str]:
    """Read and account for so many plans; what is wrong, a line each."""
    rng, found = random.Random(seed), []
    for _ in range(number):
        text = drawn(rng)
        wrong = judged(_accounted, {"text": text}, "Any", "text", work=work)
        if wrong:
            found.append(f"plan {text!r}: {wrong}")
    return found


def _accounted(text: str) -> object:
    read = plan.Plan.parse(text)
    if plan.Plan.parse(read.toml()) != read:
        raise AssertionError("its own TOML reads as another plan")
    found = plan.account(read, read.question or plan.PlanQuestion("delta", 1e-6))
    if any(share.alone.lower > found.total.upper for share in found.contributions):
        raise AssertionError("a part costs more than the whole")
    return (
        found.total,
        [share.alone for share in found.contributions],
        [each.epsilon for each in found.comparisons],
    )
