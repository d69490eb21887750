"""`dpcompose audit`: is it as private as it claims?"""

from __future__ import annotations

import csv
import json as json_reader
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose.cli.command import Result, argument, command, option
from dpcompose.cli.inputs import loaded, read_plan
from dpcompose.cli.output import DONE, REFUSED, stderr, stdout, write
from dpcompose.errors import DomainError

if TYPE_CHECKING:
    from dpcompose.audit import Entry, Found, Moment, Pair, Source, Subject
    from dpcompose.composition import Composable

Epsilon = Annotated[float | None, option("The claim.", "E")]
Delta = Annotated[float, option("Of the claim.", "D", shown=True)]
Rho = Annotated[float | None, option("The claim: rho-zCDP.", "R")]
Mu = Annotated[float | None, option("The claim: mu-Gaussian differential privacy.", "M")]
ClaimedPlan = Annotated[Path | None, option("The claim: the composition of a plan file.", "PLAN")]
Alpha = Annotated[float, option("The probability of refuting a true claim.", shown=True)]


@command("json", "html", "plot", files={"certificate": (".json",)}, doing=None)
def mechanism(
    name: Annotated[
        str, argument("MODULE:NAME", "The mechanism: a function of a dataset.", shown=True)
    ],
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    mu: Mu = None,
    plan: ClaimedPlan = None,
    pairs: Annotated[
        Path | None,
        option('JSON: [{"zero": ..., "one": ..., "distance": 1}]; else usual ones.', "FILE"),
    ] = None,
    alpha: Alpha = 1e-6,
    samples: Annotated[int, option("The most calls.", "N", shown=True)] = 1_000_000,
    seconds: Annotated[float, option("The longest time.", "S", shown=True)] = 60.0,
    seed: Annotated[str | None, option("64 hexadecimal digits for the coins.", "HEX")] = None,
    distance: Annotated[
        int, option("The largest distance of usual pairs.", "K", min=1, shown=True)
    ] = 16,
    queries: Annotated[
        int,
        option("A dataset is the answers of so many queries of sensitivity 1.", min=0, shown=True),
    ] = 0,
    timing: Annotated[bool, option("Look at the time of a call too.")] = False,
    fresh: Annotated[
        str,
        option(
            "worker: one process beside; call: this process; new in each call: instance (NAME makes it), process.",
            shown=True,
        ),
    ] = "worker",
    limit: Annotated[float, option("Seconds that a call may take.", shown=True)] = 1.0,
    certificate: Annotated[Path | None, option("Write the certificate.", "FILE.json")] = None,
    resume: Annotated[
        Path | None,
        option("Keep a journal in this file, and go on from it if it is there.", "FILE"),
    ] = None,
) -> Result:
    """Audit one mechanism against a claim."""
    from dpcompose.audit import Verdict, require_answers, text_of, usual_pairs
    from dpcompose.report import audit_svgs, document, page, save

    subject = subject_of(loaded(name), name, fresh=fresh, timing=timing, limit=limit)
    claim = claim_of_options(subject, epsilon, delta, rho, mu, plan)
    chosen = (
        read_pairs(pairs)
        if pairs is not None
        else usual_pairs(subject, claim, most=distance, queries=queries)
    )
    outcome = _audited(
        subject, chosen, claim=claim, alpha=alpha, samples=samples, seconds=seconds_of(seconds), seed=seed_of(seed),
        resume=resume,
    )  # fmt: skip
    require_answers(outcome, subject)
    stated: dict[str, Any] = {"subject": subject.name, "claim": repr(claim), "alpha": alpha}
    stated["notes"] = tuple(sorted(subject.notes))

    def files() -> Iterator[str]:
        if certificate is not None:
            write("--certificate", certificate, text_of(outcome.certificate or {}))
            yield str(certificate)

    return Result(
        lambda: document(outcome, **stated),
        lambda: page(outcome, **stated),
        pictures=lambda: audit_svgs(outcome, alpha=alpha),
        plot=lambda file: save(file, outcome, alpha=alpha),
        files=files,
        costly=True,
        status=REFUSED if outcome.verdict is Verdict.REFUTED else DONE,
    )


def _audited(subject: Source, pairs: tuple[Pair, ...], **how: Any) -> Found:
    from dpcompose.audit import LEARNERS, audit

    last = [0.0]

    def progress(moment: Moment) -> None:
        if time.monotonic() - last[0] > 2:
            last[0] = time.monotonic()
            wealth, goal = moment.log_wealth / math.log(10), -math.log10(how["alpha"])
            stderr(
                f"{moment.samples:,} samples, wealth 10^{wealth:.1f} of 10^{goal:.1f}, epsilon >= {moment.epsilon:.3g}"
            )

    return audit(subject, pairs, learners=LEARNERS, progress=progress, **how)


@command("json", doing=None)
def check(
    file: Annotated[Path, argument("CERTIFICATE", "A certificate.")],
    again: Annotated[
        str | None, option("Bet on new draws too, first by its stakes.", "MODULE:NAME")
    ] = None,
    pairs: Annotated[Path | None, option("The pairs of the audit, for --again.", "FILE")] = None,
    samples: Annotated[
        int | None,
        option("The most new calls, for --again; else ten times the first, at least 4,096.", "N"),
    ] = None,
) -> Result:
    """Check the arithmetic of a certificate: what it shows, not where its counts came from.

    Somebody who makes up counts, or another claim, can compute every digest anew: read the claim that is printed, and
    draw from the mechanism again.
    """
    from dpcompose.audit import CertificateError, check as checked

    try:
        content = checked(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DomainError(
            "CERTIFICATE", str(file), f"a file that can be read ({error.strerror})"
        ) from None
    except (CertificateError, UnicodeDecodeError) as error:
        raise DomainError("CERTIFICATE", str(file), f"an unchanged certificate ({error})") from None
    repeated = (
        None if again is None else _again(file, again, pairs, float(content["alpha"]), samples)
    )
    return Result(
        lambda: content | {"again": repeated},
        text="".join(f"{line}\n" for line in _lines(content, repeated)),
        status=REFUSED if repeated is False else DONE,
    )


def _lines(content: dict[str, Any], repeated: bool | None) -> list[str]:
    """The lines that say what a certificate shows."""
    verdict = "refutes its claim" if content["refuted"] else "does not refute its claim"
    lines = [
        f"{_one_line(content['subject'])}: it {verdict} at alpha = {content['alpha']}: {content['samples']} samples",
        f"The claim as it is written there: {_one_line(content['claim'])}",
    ]
    for claimed in content["claims"]:
        points = [
            f"({float.fromhex(each['epsilon']):.6g}, {float.fromhex(each['delta']):.3g})"
            for each in claimed["points"]
        ]
        shown = ", ".join(points[:4]) + (", ..." if len(points) > 4 else "")
        lines.append(f"  {claimed['distance']} apart, epsilon and delta: {shown}")
    lines.append(
        "Its arithmetic holds. That its counts came from the mechanism is not shown: draw again."
    )
    if repeated is not None:
        lines.append(
            f"New draws {'refute the claim too' if repeated else 'do not refute the claim'}."
        )
    return lines


def _one_line(text: object) -> str:
    """A text of somebody else's, which moves no cursor and begins no line."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(text))


def _again(file: Path, name: str, pairs: Path | None, alpha: float, samples: int | None) -> bool:
    """Whether the stakes of a certificate, and bets after them, win on new draws too."""
    from dpcompose.audit import again

    if pairs is None:
        raise DomainError("--pairs", None, "the file of the audit's pairs, to draw from again")
    subject, chosen = (
        subject_of(loaded(name), name, fresh="worker", timing=False, limit=1.0),
        read_pairs(pairs),
    )
    wealth = again(json_reader.loads(file.read_text()), subject, chosen, samples=samples)
    return wealth >= -math.log(alpha)


@command("json", doing=None)
def replay(
    name: Annotated[
        str,
        argument("MODULE:NAME", "A function of a dataset and of `Primitives`.", shown=True),
    ],
    pairs: Annotated[Path, option('JSON: [{"zero": ..., "one": ..., "distance": 1}].', "FILE")],
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    mu: Mu = None,
    plan: ClaimedPlan = None,
    model: Annotated[
        int, option("Runs whose noise is held to its stated law.", "N", shown=True)
    ] = 1000,
) -> Result:
    """Hold a mechanism to the calls by which it describes itself: run on one dataset, replayed on the other."""
    from dpcompose.audit import Subject, Verdict, modelled, replay as replayed

    recorded, chosen = loaded(name), read_pairs(pairs)
    claim = claim_of_options(Subject(recorded, label=name), epsilon, delta, rho, mu, plan)
    outcome = replayed(recorded, chosen, claim=claim)
    models = modelled(recorded, chosen[0].zero, runs=model) if model else ()
    document = {
        "verdict": outcome.verdict.value, "reason": outcome.reason, "calls": list(outcome.calls),
        "pairs": outcome.pairs, "models": [
            {"law": each.law, "verdict": each.verdict.value, "samples": each.samples, "event": each.event}
            for each in models
        ],
    }  # fmt: skip
    lines = [f"{outcome.verdict.value.upper()}, of the description: {outcome.reason}"]
    lines += [f"  {each}" for each in outcome.calls]
    lines += [
        f"{each.law}: {each.verdict.value}, of the model, {each.samples:,} residuals; {each.event}"
        for each in models
    ]
    refuted = Verdict.REFUTED in [outcome.verdict, *(each.verdict for each in models)]
    return Result(
        lambda: document,
        text="".join(f"{line}\n" for line in lines),
        status=REFUSED if refuted else DONE,
    )


@command("json", doing=None)
def zoo(
    json: bool,
    name: Annotated[
        str | None, argument("NAME", "One entry; left out: the list.", shown=True)
    ] = None,
    everything: Annotated[bool, option("Audit every entry.", name="--all")] = False,
    samples: Annotated[int, option("The most samples of each.", "N", shown=True)] = 2_000_000,
    seconds: Annotated[float, option("The longest time of each.", "S", shown=True)] = 60.0,
) -> Result:
    """Audit broken mechanisms and their twins; exit status 1 if one is found otherwise than it is."""
    from dpcompose.audit import ENTRIES, entry_of

    if name is None and not everything:
        return Result(
            lambda: {"entries": [_entry(entry) for entry in ENTRIES]},
            text="".join(
                f"{entry.name:28} {entry.claim!r}; broken: epsilon {entry.truth}\n"
                for entry in ENTRIES
            ),
        )
    chosen = ENTRIES if name is None else (entry_of(name),)
    rows = [row for entry in chosen for row in _both(entry, samples, seconds_of(seconds), json)]
    expected = all(row["as_expected"] for row in rows)
    return Result(lambda: {"audits": rows}, status=DONE if expected else REFUSED)


def _entry(entry: Entry) -> dict[str, str]:
    return {
        "name": entry.name,
        "claim": repr(entry.claim),
        "truth": entry.truth,
        "reference": entry.reference,
    }


def _both(entry: Entry, samples: int, seconds: float, json: bool) -> list[dict[str, Any]]:
    from dpcompose.audit import ALPHA, Verdict

    rows: list[dict[str, Any]] = []
    for which, make, claim in (
        ("broken", entry.broken, entry.claim),
        ("twin", entry.twin, entry.claim if entry.twin_claim is None else entry.twin_claim),
    ):
        outcome = _audited(
            make(), entry.pairs, claim=claim, alpha=ALPHA, samples=samples, seconds=seconds
        )
        expected = (outcome.verdict is Verdict.REFUTED) is (which == "broken")
        rows.append({"name": entry.name, "which": which, "verdict": outcome.verdict.value, "samples": outcome.samples,
                     "event": outcome.event, "as_expected": expected})  # fmt: skip
        if not json:
            stdout(
                f"{entry.name:28} {which:6} {outcome.verdict.value:12} {outcome.samples:>9,} samples  {outcome.event}\n"
            )
    return rows


@command("json", doing=None)
def scores(
    file: Annotated[Path, argument("FILE.csv", "Columns score and inside.")],
    epsilon: Annotated[float, option("The claim of the run.", "E")],
    delta: Delta = 0.0,
    alpha: Alpha = 0.05,
) -> Result:
    """Audit one training run from the scores of canaries that fair coins put in."""
    from dpcompose.audit import Verdict, canaries, usual_claim

    try:
        with file.open(encoding="utf-8", newline="") as text:
            rows = [(float(row["score"]), float(row["inside"])) for row in csv.DictReader(text)]
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        raise DomainError(
            "FILE.csv", str(file), f"a CSV file, columns score and inside ({error!r})"
        ) from None
    canary, inside = [row[0] for row in rows], [row[1] for row in rows]
    outcome = canaries(canary, inside, claim=usual_claim(epsilon=epsilon, delta=delta), alpha=alpha)
    verdict, lower = outcome.verdict.value, outcome.epsilon.lower
    return Result(
        lambda: {
            "verdict": verdict, "epsilon": {"lower": lower, "delta": outcome.delta}, "guesses": outcome.guesses,
            "right": outcome.right, "pvalue": outcome.pvalue, "alpha": alpha,
        },
        text=f"{verdict.upper()} at alpha = {alpha:g}: {outcome.right} of {outcome.guesses} guesses right\n"
        f"epsilon >= {lower:.4f} at delta = {outcome.delta:g}, but for alpha\n",
        status=REFUSED if outcome.verdict is Verdict.REFUTED else DONE,
    )  # fmt: skip


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
        listed = json_reader.loads(file.read_text())
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
