"""`dpcompose audit`: is it as private as it claims?"""

from __future__ import annotations

import csv
import json as json_reader
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose import check as guard
from dpcompose.cli.command import ARGUMENT, Result, command, option
from dpcompose.cli.inputs import described, loaded, read_plan, read_text, typed
from dpcompose.cli.output import DONE, REFUSED, Progress, write
from dpcompose.errors import DomainError, printable

if TYPE_CHECKING:
    from dpcompose.audit import Moment, Pair, Repeated, Subject
    from dpcompose.composition import Composable

LARGEST_CERTIFICATE = 10**9
Mu = Annotated[float | None, option("The claim: mu-Gaussian differential privacy.", "M")]
Alpha = Annotated[float, option("The probability of refuting a true claim.", shown=True)]


@command("json", "html", "plot", files={"certificate": (".json",)}, doing="importing the mechanism")
def mechanism(
    steps: Progress,
    name: Annotated[str, ARGUMENT],
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: Mu = None,
    plan: Path | None = None,
    pairs: Path | None = None,
    alpha: Alpha = 1e-6,
    samples: int = 1_000_000,
    seconds: float = 60.0,
    seed: str | None = None,
    distance: Annotated[int, option(min=1)] = 16,
    adjacency: str = "add-remove",
    records: Path | None = None,
    domain: str | None = None,
    queries: Annotated[int, option(min=0)] = 0,
    timing: bool = False,
    fresh: str = "worker",
    limit: float = 1.0,
    certificate: Path | None = None,
    resume: Path | None = None,
) -> Result:
    """Audit one mechanism against a claim.

    Args:
        name (MODULE:NAME): The mechanism: a function of a dataset.
        epsilon (E): The claim.
        delta (D): Of the claim.
        rho (R): The claim: rho-zCDP.
        plan (PLAN): The claim: the composition of a plan file.
        pairs (FILE): JSON: [{"zero": ..., "one": ..., "distance": 1}]; else usual ones.
        samples (N): The most calls.
        seconds (S): The longest time.
        seed (HEX): 64 hexadecimal digits for the coins.
        distance (K): The largest distance of usual pairs.
        adjacency: Of the claim: add-remove, replace or zero-out.
        records (FILE): JSON: a list of records, of which datasets are made.
        domain (LOW,HIGH): The least and the largest number of a record; no other is tried.
        queries: A dataset is the answers of so many queries of sensitivity 1.
        timing: Look at the time of a call too.
        fresh: worker: one process beside; call: this process; new in each call: instance (NAME makes it), process.
        limit: Seconds that a call may take.
        certificate (FILE.json): Write the certificate.
        resume (FILE): Keep a journal in this file, and go on from it if it is there.
    """
    from dpcompose.audit import LEARNERS, Verdict, audit, text_of, usual_pairs
    from dpcompose.plan import adjacency as adjacency_of
    from dpcompose.report import pictures

    related = adjacency_of("--adjacency", adjacency)
    subject, own_claim = subject_of(name, fresh=fresh, timing=timing, limit=limit)
    claim = claim_of_options(own_claim, epsilon, delta, rho, mu, plan)
    chosen = (
        read_pairs(pairs)
        if pairs is not None
        else usual_pairs(
            subject, claim, adjacency=related, most=distance, queries=queries, records=read_records(records),
            domain=typed("--domain", domain, _two_numbers, "two numbers, such as 0,1"),
        )
    )  # fmt: skip
    goal = -math.log10(guard.open_probability("alpha", alpha))

    def progress(moment: Moment) -> None:
        wealth = f"wealth 10^{moment.log_wealth / math.log(10):.1f} of 10^{goal:.1f}"
        steps(f"{wealth}, epsilon >= {moment.epsilon:.3g}, samples", moment.samples, samples)

    outcome = audit(
        subject, chosen, claim=claim, alpha=alpha, samples=samples, seconds=guard.positive("--seconds", seconds),
        seed=typed("--seed", seed, _seed, "64 hexadecimal digits"), resume=resume, adjacency=related,
        learners=LEARNERS, progress=progress,
    )  # fmt: skip
    proof = partial(write, "--certificate", text=text_of(outcome.certificate or {}))
    status = REFUSED if outcome.verdict is Verdict.REFUTED else DONE
    result = Result.of(outcome, notes=sorted(subject.notes), status=status)
    files = [(certificate, proof)]
    return replace(result, pictures=lambda: pictures(outcome), files=files, costly=True)


@command("json", doing=None)
def check(
    file: Annotated[Path, ARGUMENT],
    again: str | None = None,
    pairs: Path | None = None,
    samples: int | None = None,
) -> Result:
    """Check the arithmetic of a certificate: what it shows, not where its counts came from.

    Somebody who makes up counts, or another claim, can compute every digest anew: read the claim that is printed, and
    draw from the mechanism again.

    Args:
        file (CERTIFICATE): A certificate.
        again (MODULE:NAME): Bet on new draws too, first by its stakes.
        pairs (FILE): The pairs of the audit, for --again; else those that the certificate tells.
        samples (N): The most new calls, for --again; else ten times the first, at least 4,096.
    """
    from dpcompose.audit import CertificateError, check as checked

    try:
        content = checked(read_text("CERTIFICATE", file, most=LARGEST_CERTIFICATE))
    except CertificateError as error:
        raise DomainError("CERTIFICATE", str(file), f"an unchanged certificate ({error})") from None
    repeated = None if again is None else _again(file, again, pairs, samples)
    refuted = None if repeated is None else repeated.refuted
    qualified = content["repeated"] or (repeated is not None and repeated.repeated)
    return Result(
        lambda: content | {"again": refuted, "repeated": qualified},
        text="".join(f"{line}\n" for line in _lines(content, repeated)),
        status=REFUSED if refuted is False else DONE,
    )


def _lines(content: dict[str, Any], repeated: Repeated | None) -> list[str]:
    """The lines that say what a certificate shows."""
    verdict = "refutes its claim" if content["refuted"] else "does not refute its claim"
    verdict += " for repeated calls" if content["refuted"] and content["repeated"] else ""
    lines = [
        f"{printable(content['subject'])}: it {verdict} at alpha = {content['alpha']}: {content['samples']} samples",
        f"The claim as it is written there: {printable(content['claim'])}",
    ]
    for claimed in content["claims"]:
        points = [
            f"({float.fromhex(each['epsilon']):.6g}, {float.fromhex(each['delta']):.3g})"
            for each in claimed["points"]
        ]
        shown = ", ".join([*points[:4], *["..."][: len(points) > 4]])
        lines.append(f"  {claimed['distance']} apart, epsilon and delta: {shown}")
    lines.append(
        "Its arithmetic holds. That its counts came from the mechanism is not shown: draw again."
    )
    if not content["comparable"]:
        lines.append(
            "Whether its points are those of the claim in words cannot be computed from it."
        )
    if repeated is not None:
        verb = "refute the claim too" if repeated.refuted else "do not refute the claim"
        calls = ", for repeated calls" if repeated.repeated else ""
        wealth, goal = repeated.log_wealth / math.log(10), -math.log10(float(content["alpha"]))
        drawn = f"{repeated.samples:,} samples, wealth 10^{wealth:.1f} of 10^{goal:.1f}"
        lines.append(f"New draws {verb}: {drawn}{calls}.")
    if content["repeated"] or (repeated is not None and repeated.repeated):
        lines.append(
            "Repeated calls may rightly be answered from memory: audit with a fresh process for each."
        )
    return lines


def _again(file: Path, name: str, pairs: Path | None, samples: int | None) -> Repeated:
    """The wealth that the stakes of a certificate reach on new draws, and that of new bets after them."""
    from dpcompose.audit import again

    subject, _ = subject_of(name, fresh="worker", timing=False, limit=1.0)
    chosen = None if pairs is None else read_pairs(pairs)
    return again(json_reader.loads(file.read_text()), subject, chosen, samples=samples)


@command("json", doing=None)
def scores(
    file: Annotated[Path, ARGUMENT],
    epsilon: float | None = None,
    mu: Mu = None,
    delta: float = 0.0,
    alpha: Alpha = 0.05,
) -> Result:
    """Audit one training run from the scores of canaries that fair coins put in.

    Args:
        file (FILE.csv): Columns score and inside.
        epsilon (E): The claim of the run.
        delta (D): Of the claim; of mu, where epsilon is read.
    """
    from dpcompose.audit import Verdict, canaries, usual_claim
    from dpcompose.report import members

    try:
        with file.open(encoding="utf-8", newline="") as text:
            rows = [(float(row["score"]), float(row["inside"])) for row in csv.DictReader(text)]
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        raise DomainError(
            "FILE.csv", str(file), f"a CSV file, columns score and inside ({error!r})"
        ) from None
    canary, inside = [row[0] for row in rows], [row[1] for row in rows]
    claim, read_at = (
        usual_claim(epsilon=epsilon, delta=delta, mu=mu),
        delta if mu and delta else None,
    )
    outcome = canaries(canary, inside, claim=claim, alpha=alpha, delta=read_at)
    verdict, lower = outcome.verdict.value, outcome.epsilon.lower
    at = f"at delta = {outcome.delta:g}"
    text = f"{verdict.upper()} at alpha = {alpha:g}: {outcome.right} of {outcome.guesses} guesses right\n"
    text += f"epsilon >= {lower:.4f} {at}, but for alpha\n"
    if outcome.mu:
        text += f"It is not mu-GDP for any mu below {outcome.mu:.4f}, but for alpha; "
        text += f"if it is Gaussian, epsilon >= {outcome.gaussian:.4f} {at}\n"
    document = {"verdict": verdict, "epsilon": members(outcome, "lower=epsilon.lower delta")}
    document |= members(outcome, "guesses right pvalue") | {"alpha": alpha}
    document |= members(outcome, "mu if_gaussian=gaussian")
    status = REFUSED if outcome.verdict is Verdict.REFUTED else DONE
    return Result(lambda: document, text=text, status=status)


def subject_of(
    name: str, *, fresh: str, timing: bool, limit: float
) -> tuple[Subject, Composable | None]:
    """The subject of that name, and the claim that it makes of itself, if it does.

    Its module is imported in processes of its own; in this one only if it makes a `Subject`, or if calls are made here.
    """
    from dpcompose.audit import Fresh, Subject, usual_claim

    if fresh not in [each.value for each in Fresh]:
        raise DomainError("--fresh", fresh, "worker, call, instance or process")
    seen = described(name, _description)
    stated = None if seen["claim"] is None else usual_claim(**seen["claim"])
    if seen["kind"] == "other":
        raise DomainError("NAME", name, "a function from a dataset to an answer")
    if seen["kind"] == "subject":
        return loaded(name), stated
    options: Any = {"timed": timing, "limit": limit, "label": name, "fresh": Fresh(fresh)}
    if Fresh(fresh) is Fresh.WORKER:
        options["make"] = partial(loaded, name)
    else:
        options["make" if Fresh(fresh) is Fresh.INSTANCE else "call"] = loaded(name)
    return Subject(**options), stated


def _description(named: Any) -> dict[str, Any]:
    """The kind of an object (subject, function or other) and the claim that it states of itself, as plain data.

    Runs in the process that imported the object.
    """
    from dpcompose.audit import Measurement, Subject, stated_claim

    call = named.call if isinstance(named, Subject) else named
    kind = "subject" if isinstance(named, Subject) else "function" if callable(named) else "other"
    claim = None
    if isinstance(call, Measurement) and not isinstance(call, type):
        try:
            claim = stated_claim(call)
        except Exception:
            claim = None
    return {"kind": kind, "claim": claim}


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


def _two_numbers(text: str) -> tuple[float, float]:
    low, high = map(float, text.split(","))
    return low, high


def read_records(file: Path | None) -> list[Any] | None:
    """The records of a file."""
    if file is None:
        return None
    from dpcompose.document import read

    records = read(list[Any], read_text("--records", file), name="--records")
    if not records:
        raise DomainError("--records", str(file), "at least one record")
    return records


def read_pairs(file: Path) -> tuple[Pair, ...]:
    """The pairs of a file."""
    from dpcompose.audit import Pair
    from dpcompose.document import Document, read

    class Stated(Document, frozen=True):
        zero: Any
        one: Any
        distance: int = 1

    stated = read(list[Stated], read_text("--pairs", file), name="--pairs")
    if not stated or any(each.zero == each.one for each in stated):
        raise DomainError("--pairs", str(file), "at least one pair, each of two different datasets")
    return tuple(Pair(each.zero, each.one, distance=each.distance) for each in stated)


def _seed(text: str) -> bytes:
    seed = bytes.fromhex(text)
    if len(seed) != 32:
        raise ValueError(text)
    return seed
