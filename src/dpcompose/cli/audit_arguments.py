"""The arguments of `dpcompose audit`: the subject, the claim, the pairs, the time and the seed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpcompose.cli.loaded import described, loaded
from dpcompose.cli.options import read_plan
from dpcompose.errors import DomainError

if TYPE_CHECKING:
    from dpcompose.audit import Pair, Subject
    from dpcompose.composition import Composable


def subject_of(
    name: str, *, fresh: str, timing: bool, limit: float
) -> tuple[Subject, Composable | None]:
    """The subject of that name, and the claim that it makes of itself, if it does.

    Its module is imported in processes of its own; in this one only if it makes a `Subject`, or if calls are made here.
    """
    from dpcompose.audit import Fresh, Subject

    if fresh not in [each.value for each in Fresh]:
        raise DomainError("--fresh", fresh, "worker, call, instance or process")
    seen = described(name, _description)
    stated = None if seen["claim"] is None else usual_claim_of(seen["claim"])
    if seen["kind"] == "other":
        raise DomainError("NAME", name, "a function from a dataset to an answer")
    if seen["kind"] == "subject":
        return loaded(name), stated
    options: Any = {"timed": timing, "limit": limit, "label": name, "fresh": Fresh(fresh)}
    if Fresh(fresh) is Fresh.WORKER:
        return Subject(make=partial(loaded, name), **options), stated
    if Fresh(fresh) is Fresh.INSTANCE:
        return Subject(make=loaded(name), **options), stated
    return Subject(loaded(name), **options), stated


def usual_claim_of(stated: dict[str, float]) -> Composable:
    """The claim of a description."""
    from dpcompose.audit import usual_claim

    return usual_claim(**stated)


def _description(found: Any) -> dict[str, Any]:
    """In the process that imports: what an object is, and the claim that it makes of itself, as data."""
    from dpcompose.audit import Measurement, Subject, arguments_of, claim_of

    call = found.call if isinstance(found, Subject) else found
    kind = "subject" if isinstance(found, Subject) else "function" if callable(found) else "other"
    claim = None
    if isinstance(call, Measurement) and not isinstance(call, type):
        try:
            claim = claim_of(call)
        except Exception:
            claim = None
    return {"kind": kind, "claim": None if claim is None else arguments_of(claim)}


def claim_of_options(
    stated: Composable | None,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    mu: float | None,
    plan: Path | None,
) -> Composable:
    """The claim that the options make, or that a measurement makes of itself."""
    from dpcompose.audit import usual_claim

    if not any(each is not None for each in (epsilon, rho, mu, plan)) and stated is not None:
        return stated
    if plan is None:
        return usual_claim(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    if any(each is not None for each in (epsilon, rho, mu)):
        raise DomainError("--plan", str(plan), "one claim: a plan, or --epsilon, --rho or --mu")
    return read_plan(plan).composition()


def domain_of(text: str | None) -> tuple[float, float] | None:
    """The least and the largest number of a record."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise DomainError("--domain", text, "two numbers, such as 0,1") from None
    return low, high


def read_records(file: Path | None) -> list[Any] | None:
    """The records of a file."""
    if file is None:
        return None
    try:
        found = json.loads(file.read_text())
        if not isinstance(found, list) or not found:
            raise ValueError("no list")
    except (OSError, ValueError, RecursionError) as error:
        raise DomainError("--records", str(file), f"a JSON list of records ({error!r})") from None
    return cast("list[Any]", found)


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
