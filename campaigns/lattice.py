"""The library against a lattice of losses: `python -m campaigns.lattice --cases 500 --first 0 --seed 777`.

The cases are those of `campaigns.extremes`: Gaussian and Laplace noise, sampled or not, parameters ten orders apart;
or with `--rare` such as have rare, large losses.
  OUTSIDE  two enclosures of epsilon have no number in common: one of them is wrong
  APART    the two sides of a lattice, or a lattice and its split, contradict each other; the library then says less
Where the library's own answer is from a lattice, two lattices are compared, of which one has a quarter of the points
(`two lattices`). Counted, and no violations: how many answers the lattice has (`both ends`), how many of the library's
are more than twice as wide (`loose`), and how many of the lattice's (`coarse`). A control moves the upper ends of the
lattice down by a thousandth of themselves, and must be caught. Exit status 1 after a violation, or where the control
is not caught.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

from campaigns.extremes import Case, drawn
from dpcompose import Bound
from dpcompose.errors import UnsupportedError
from dpcompose.loss import GaussianLoss, LaplaceLoss, Loss, lattice
from dpcompose.loss.lattice import POINTS, epsilon
from dpcompose.loss.lattice_plan import fits
from dpcompose.values import met

_PART = re.compile(r"(Gaussian|Laplace)\(([^)]*)\)(?:\.sampled\(([^)]*)\))? \* (\d+)")


def losses_of(case: Case, *, remove: bool) -> list[tuple[Loss, int]] | None:
    """The losses of one order; None if there is one that is no noise's."""
    found: list[tuple[Loss, int]] = []
    for part in case.parts:
        match = _PART.fullmatch(part)
        assert match is not None, part
        kind, noise, rate, times = match.groups()
        base = (
            GaussianLoss(1 / float(noise)) if kind == "Gaussian" else LaplaceLoss(1 / float(noise))
        )
        loss = base if rate is None else base.sampled(float(rate), remove=remove)
        if loss is None:
            return None
        found.append((loss, int(times)))
    return found if fits(found) else None


def rare(number: int, seed: int) -> Case:
    """The case of that number: few records in a sample, and little noise."""
    rng = Random(f"{seed} rare {number}")
    parts = [
        f"Gaussian({10 ** rng.uniform(-0.5, 1.3)!r}).sampled({10 ** -rng.uniform(0.3, 8)!r})"
        f" * {int(10 ** rng.uniform(0, 6))}"
        for _ in range(rng.choice([1, 1, 1, 2]))
    ]
    if rng.random() < 0.3:
        sample = f".sampled({10 ** -rng.uniform(0, 6)!r})" if rng.random() < 0.5 else ""
        parts.append(
            f"Laplace({10 ** rng.uniform(0, 3)!r}){sample} * {int(10 ** rng.uniform(0, 3))}"
        )
    if rng.random() < 0.3:
        parts.append(f"Gaussian({10 ** rng.uniform(1, 4)!r}) * {int(10 ** rng.uniform(0, 3))}")
    return Case(tuple(parts), 10 ** -rng.uniform(2, rng.choice([12, 12, 60, 200])))


def on_lattice(case: Case, points: int = POINTS) -> Bound | None:
    """Epsilon on a lattice, the larger of both orders; None if it does not hold the losses."""
    groups = [losses_of(case, remove=side) for side in (True, False)]
    if groups[0] is None or groups[1] is None:
        return None
    ends = [epsilon(group, case.delta, case.delta, points=points) for group in groups if group]
    return Bound(max(end.lower for end in ends), max(end.upper for end in ends))


@contextmanager
def contradictions() -> Iterator[list[tuple[Bound, Bound]]]:
    """The enclosures that were to be intersected in this block and have no number in common."""
    apart = list[tuple[Bound, Bound]]()

    def seen(first: Bound, second: Bound) -> tuple[float, float]:
        if max(first.lower, second.lower) > min(first.upper, second.upper):
            apart.append((first, second))
        return met(first, second)

    with patch.object(lattice, "met", seen):
        yield apart


def width(bound: Bound) -> float:
    """The relative width; infinite where an end says nothing."""
    if bound.upper == 0:
        return 0.0
    return bound.upper / bound.lower - 1 if 0 < bound.lower <= bound.upper < math.inf else math.inf


def run(
    cases: int,
    *,
    first: int = 0,
    seed: int = 777,
    points: int = POINTS,
    draw: Callable[[int, int], Case] = drawn,
) -> tuple[Counter[str], list[str]]:
    """Counts and violations."""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    for number in range(first, first + cases):
        case = draw(number, seed)
        with contradictions() as apart:
            found = on_lattice(case, points)
        problems += [f"APART {case.code}, delta {case.delta!r}: {each}" for each in apart]
        if found is None:
            counts["not held"] += 1
            continue
        counts["cases"] += 1
        try:
            with warnings.catch_warnings(action="ignore"):
                answer = case.of().epsilon(delta=case.delta)
        except UnsupportedError:
            counts["refused"] += 1
            continue
        if "lattice" in answer.certificate.method:
            answer = on_lattice(case, points // 4) or answer
            counts["two lattices"] += 1
        if max(found.lower, answer.lower) > min(found.upper, answer.upper):
            problems.append(f"OUTSIDE {case.code}, delta {case.delta!r}: {answer} and {found}")
        one, two = width(answer), width(found)
        counts["both ends"] += two < math.inf
        counts["loose"] += one > max(2 * two, 1e-6)
        counts["coarse"] += two > max(2 * one, 1e-6)
        counts["control"] += found.upper < math.inf and found.upper * 0.999 < answer.lower
    return counts, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=777)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--rare", action="store_true", help="cases with rare, large losses")
    options = parser.parse_args()
    counts, problems = run(
        options.cases,
        first=options.first,
        seed=options.seed,
        points=options.points,
        draw=rare if options.rare else drawn,
    )
    print(*problems, sep="\n", end="\n" if problems else "")
    print(
        ", ".join(f"{count} {name}" for name, count in counts.items()),
        f"{len(problems)} violations",
        sep=", ",
    )
    return int(bool(problems) or not counts["control"])


if __name__ == "__main__":
    sys.exit(main())
