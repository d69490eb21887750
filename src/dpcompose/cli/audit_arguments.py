"""The arguments of `dpcompose audit`: the subject, the claim, the pairs, the time and the seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcompose.cli.options import read_plan
from dpcompose.errors import DomainError

if TYPE_CHECKING:
    from dpcompose.audit import Pair, Subject
    from dpcompose.composition import Composable


def subject_of(found: Any, name: str, *, fresh: str, timing: bool, limit: float) -> Subject:
    """The subject of a loaded object."""
    from dpcompose.audit import Fresh, Subject

    if fresh not in [each.value for each in Fresh]:
        raise DomainError("--fresh", fresh, "worker, call, instance or process")
    if isinstance(found, Subject):
        return found
    if not callable(found):
        raise DomainError("NAME", name, "a function from a dataset to an answer")
    if Fresh(fresh) is Fresh.INSTANCE:
        made: Any = found
        return Subject(make=made, fresh=Fresh.INSTANCE, timed=timing, limit=limit, label=name)
    return Subject(found, fresh=Fresh(fresh), timed=timing, limit=limit, label=name)


def claim_of_options(
    subject: Subject,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    mu: float | None,
    plan: Path | None,
) -> Composable:
    """The claim that the options make, or that a measurement makes of itself."""
    from dpcompose.audit import Measurement, claim_of, usual_claim

    if not any(each is not None for each in (epsilon, rho, mu, plan)) and isinstance(
        subject.call, Measurement
    ):
        return claim_of(subject.call)
    if plan is None:
        return usual_claim(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    if any(each is not None for each in (epsilon, rho, mu)):
        raise DomainError("--plan", str(plan), "one claim: a plan, or --epsilon, --rho or --mu")
    return read_plan(plan).composition()


def read_pairs(file: Path) -> tuple[Pair, ...]:
    """The pairs of a file."""
    from dpcompose.audit import Pair

    try:
        listed = json.loads(file.read_text())
        for each in listed:
            if not {"zero", "one"} <= {*each} <= {"zero", "one", "distance"}:
                raise KeyError(*sorted({*each} ^ {"zero", "one"}))
        found = tuple(
            Pair(each["zero"], each["one"], distance=each.get("distance", 1)) for each in listed
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DomainError(
            "--pairs", str(file), f"a JSON list of pairs, zero and one ({error!r})"
        ) from None
    if not found or any(pair.zero == pair.one for pair in found):
        raise DomainError("--pairs", str(file), "at least one pair, each of two different datasets")
    return found


def seconds_of(seconds: float) -> float:
    """A positive time."""
    if not seconds > 0:
        raise DomainError("--seconds", seconds, "a positive number")
    return seconds


def seed_of(text: str | None) -> bytes | None:
    """The seed of 64 digits."""
    try:
        seed = None if text is None else bytes.fromhex(text)
    except ValueError:
        seed = b""
    if seed is not None and len(seed) != 32:
        raise DomainError("--seed", text, "64 hexadecimal digits")
    return seed
