"""`dpcompose audit`: is it as private as it claims?"""

from __future__ import annotations

import csv
import json as json_reader
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dpcompose.cli.audit_arguments import (
    claim_of_options,
    domain_of,
    read_pairs,
    read_records,
    seconds_of,
    seed_of,
    subject_of,
)
from dpcompose.cli.audit_output import draw, show
from dpcompose.cli.options import PICTURES, Json, Picture, option
from dpcompose.cli.output import REFUSED, emit_document, error_boundary, require_writable, write
from dpcompose.cli.streams import stderr, stdout
from dpcompose.errors import DomainError

if TYPE_CHECKING:
    from dpcompose.audit import AuditResult, Entry, Moment, Pair, Repeated, Source


class _Group(TyperGroup):
    """A group whose first word is a command, or else the mechanism to audit."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["mechanism", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    help="Refute a claim of privacy, or say how far it was tried: dpcompose audit MODULE:NAME --epsilon E. "
    "It imports and runs the mechanism's own code.",
)


@app.command()
def mechanism(
    name: Annotated[
        str, typer.Argument(metavar="MODULE:NAME", help="The mechanism: a function of a dataset.")
    ],
    epsilon: Annotated[float | None, option("The claim.", "E")] = None,
    delta: Annotated[float, typer.Option(help="Of the claim.", metavar="D")] = 0.0,
    rho: Annotated[float | None, option("The claim: rho-zCDP.", "R")] = None,
    mu: Annotated[float | None, option("The claim: mu-Gaussian differential privacy.", "M")] = None,
    plan: Annotated[
        Path | None, option("The claim: the composition of a plan file.", "PLAN")
    ] = None,
    pairs: Annotated[
        Path | None,
        option('JSON: [{"zero": ..., "one": ..., "distance": 1}]; else usual ones.', "FILE"),
    ] = None,
    alpha: Annotated[float, typer.Option(help="The probability of refuting a true claim.")] = 1e-6,
    samples: Annotated[int, typer.Option(help="The most calls.", metavar="N")] = 1_000_000,
    seconds: Annotated[float, typer.Option(help="The longest time.", metavar="S")] = 60.0,
    seed: Annotated[str | None, option("64 hexadecimal digits for the coins.", "HEX")] = None,
    distance: Annotated[
        int, typer.Option(help="The largest distance of usual pairs.", metavar="K", min=1)
    ] = 16,
    adjacency: Annotated[
        str, typer.Option(help="Of the claim: add-remove, replace or zero-out.")
    ] = "add-remove",
    records: Annotated[
        Path | None, option("JSON: a list of records, of which datasets are made.", "FILE")
    ] = None,
    domain: Annotated[
        str | None,
        option("The least and the largest number of a record; no other is tried.", "LOW,HIGH"),
    ] = None,
    queries: Annotated[
        int,
        typer.Option(help="A dataset is the answers of so many queries of sensitivity 1.", min=0),
    ] = 0,
    timing: Annotated[
        bool, typer.Option("--timing", help="Look at the time of a call too.")
    ] = False,
    fresh: Annotated[
        str,
        typer.Option(
            help="worker: one process beside; call: this process; new in each call: instance (NAME makes it), process."
        ),
    ] = "worker",
    limit: Annotated[float, typer.Option(help="Seconds that a call may take.")] = 1.0,
    certificate: Annotated[Path | None, option("Write the certificate.", "FILE.json")] = None,
    resume: Annotated[
        Path | None,
        option("Keep a journal in this file, and go on from it if it is there.", "FILE"),
    ] = None,
    json: Json = False,
    html: Annotated[
        Path | None, option("Write one self-contained page with pictures.", "FILE")
    ] = None,
    plot: Picture = None,
) -> None:
    """Audit one mechanism against a claim."""
    with error_boundary():
        from dpcompose.audit import require_answers, usual_pairs
        from dpcompose.plan import adjacency as adjacency_of
        from dpcompose.report import require_pictures

        require_writable("--certificate", certificate, ".json")
        require_writable("--html", html, ".html", ".htm")
        require_writable("--plot", plot, *PICTURES)
        if html is not None or plot is not None:
            require_pictures()
        related = adjacency_of("--adjacency", adjacency)
        subject, stated = subject_of(name, fresh=fresh, timing=timing, limit=limit)
        claim = claim_of_options(stated, epsilon, delta, rho, mu, plan)
        chosen = (
            read_pairs(pairs)
            if pairs is not None
            else usual_pairs(
                subject, claim, adjacency=related, most=distance, queries=queries,
                records=read_records(records), domain=domain_of(domain),
            )
        )  # fmt: skip
        found = _audited(
            subject, chosen, claim=claim, alpha=alpha, samples=samples, seconds=seconds_of(seconds), seed=seed_of(seed),
            resume=resume, adjacency=related,
        )  # fmt: skip
        require_answers(found, subject)
        show(found, subject, repr(claim), alpha, json)
        if certificate is not None:
            from dpcompose.audit import text_of

            write("--certificate", certificate, text_of(found.certificate or {}))
            stderr(f"wrote {certificate}")
        draw(found, subject, repr(claim), alpha, html=html, plot=plot)
    _end(found)


def _audited(subject: Source, pairs: tuple[Pair, ...], **given: Any) -> AuditResult:
    from dpcompose.audit import LEARNERS, audit

    shown = [0.0]

    def progress(moment: Moment) -> None:
        if time.monotonic() - shown[0] > 2:
            shown[0] = time.monotonic()
            wealth, goal = moment.log_wealth / math.log(10), -math.log10(given["alpha"])
            stderr(
                f"{moment.samples:,} samples, wealth 10^{wealth:.1f} of 10^{goal:.1f}, epsilon >= {moment.epsilon:.3g}"
            )

    return audit(subject, pairs, learners=LEARNERS, progress=progress, **given)


def _end(found: AuditResult) -> None:
    from dpcompose.audit import Verdict

    if found.verdict is Verdict.REFUTED:
        raise typer.Exit(REFUSED)


@app.command()
def check(
    file: Annotated[
        Path, typer.Argument(metavar="CERTIFICATE", help="A certificate.", show_default=False)
    ],
    again: Annotated[
        str | None, option("Bet on new draws too, first by its stakes.", "MODULE:NAME")
    ] = None,
    pairs: Annotated[
        Path | None,
        option(
            "The pairs of the audit, for --again; else those that the certificate tells.", "FILE"
        ),
    ] = None,
    samples: Annotated[
        int | None,
        option("The most new calls, for --again; else ten times the first, at least 4,096.", "N"),
    ] = None,
    json: Json = False,
) -> None:
    """Check the arithmetic of a certificate: what it shows, not where its counts came from.

    Somebody who makes up counts, or another claim, can compute every digest anew: read the claim that is printed, and
    draw from the mechanism again.
    """
    with error_boundary():
        from dpcompose.audit import CertificateError, check as checked

        try:
            found = checked(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise DomainError(
                "CERTIFICATE", str(file), f"a file that can be read ({error.strerror})"
            ) from None
        except (CertificateError, UnicodeDecodeError) as error:
            raise DomainError(
                "CERTIFICATE", str(file), f"an unchanged certificate ({error})"
            ) from None
        repeated = None if again is None else _again(file, again, pairs, samples)
        if json:
            again_ = None if repeated is None else repeated.refuted
            emit_document("audit check", found | {"again": again_})
        else:
            verdict = "refutes its claim" if found["refuted"] else "does not refute its claim"
            stdout(
                f"{_one_line(found['subject'])}: it {verdict} at alpha = {found['alpha']}: {found['samples']} samples\n"
            )
            stdout(f"The claim as it is written there: {_one_line(found['claim'])}\n")
            for claimed in found["claims"]:
                points = [
                    f"({float.fromhex(each['epsilon']):.6g}, {float.fromhex(each['delta']):.3g})"
                    for each in claimed["points"]
                ]
                shown = ", ".join(points[:4]) + (", ..." if len(points) > 4 else "")
                stdout(f"  {claimed['distance']} apart, epsilon and delta: {shown}\n")
            stdout(
                "Its arithmetic holds. That its counts came from the mechanism is not shown: draw again.\n"
            )
            if not found["comparable"]:
                stdout(
                    "Whether its points are those of the claim in words cannot be computed from it.\n"
                )
            if repeated is not None:
                verb = "refute the claim too" if repeated.refuted else "do not refute the claim"
                wealth, goal = (
                    repeated.log_wealth / math.log(10),
                    -math.log10(float(found["alpha"])),
                )
                stdout(
                    f"New draws {verb}: {repeated.samples:,} samples, wealth 10^{wealth:.1f} of 10^{goal:.1f}.\n"
                )
    if repeated is not None and not repeated.refuted:
        raise typer.Exit(REFUSED)


def _one_line(text: object) -> str:
    """A text of somebody else's, which moves no cursor and begins no line."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(text))


def _again(file: Path, name: str, pairs: Path | None, samples: int | None) -> Repeated:
    """How far the stakes of a certificate, and bets after them, come on new draws."""
    from dpcompose.audit import again

    subject, _ = subject_of(name, fresh="worker", timing=False, limit=1.0)
    chosen = None if pairs is None else read_pairs(pairs)
    return again(json_reader.loads(file.read_text()), subject, chosen, samples=samples)


@app.command()
def zoo(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One entry; left out: the list.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Audit every entry.")] = False,
    samples: Annotated[
        int, typer.Option(help="The most samples of each.", metavar="N")
    ] = 2_000_000,
    seconds: Annotated[float, typer.Option(help="The longest time of each.", metavar="S")] = 60.0,
    json: Json = False,
) -> None:
    """Audit broken mechanisms and their twins; exit status 1 if one is found otherwise than it is."""
    with error_boundary():
        from dpcompose.audit import ENTRIES, entry_of

        if name is None and not everything:
            if json:
                emit_document("audit zoo", {"entries": [_entry(entry) for entry in ENTRIES]})
                return
            for entry in ENTRIES:
                stdout(f"{entry.name:28} {entry.claim!r}; broken: epsilon {entry.truth}\n")
            return
        chosen = ENTRIES if name is None else (entry_of(name),)
        rows = [row for entry in chosen for row in _both(entry, samples, seconds_of(seconds), json)]
        if json:
            emit_document("audit zoo", {"audits": rows})
    if not all(row["as_expected"] for row in rows):
        raise typer.Exit(REFUSED)


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
        found = _audited(
            make(), entry.pairs, claim=claim, alpha=ALPHA, samples=samples, seconds=seconds
        )
        expected = (found.verdict is Verdict.REFUTED) is (which == "broken")
        rows.append({"name": entry.name, "which": which, "verdict": found.verdict.value, "samples": found.samples,
                     "event": found.event, "as_expected": expected})  # fmt: skip
        if not json:
            stdout(
                f"{entry.name:28} {which:6} {found.verdict.value:12} {found.samples:>9,} samples  {found.event}\n"
            )
    return rows


@app.command()
def scores(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.csv", help="Columns score and inside.", show_default=False),
    ],
    epsilon: Annotated[float | None, option("The claim of the run.", "E")] = None,
    mu: Annotated[float | None, option("The claim: mu-Gaussian differential privacy.", "M")] = None,
    delta: Annotated[
        float, typer.Option(help="Of the claim; of mu, where epsilon is read.", metavar="D")
    ] = 0.0,
    alpha: Annotated[float, typer.Option(help="The probability of refuting a true claim.")] = 0.05,
    json: Json = False,
) -> None:
    """Audit one training run from the scores of canaries that fair coins put in."""
    with error_boundary():
        from dpcompose.audit import Verdict, canaries, usual_claim

        try:
            with file.open(encoding="utf-8", newline="") as text:
                rows = [(float(row["score"]), float(row["inside"])) for row in csv.DictReader(text)]
        except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
            raise DomainError(
                "FILE.csv", str(file), f"a CSV file, columns score and inside ({error!r})"
            ) from None
        known, inside = [row[0] for row in rows], [row[1] for row in rows]
        claim = usual_claim(epsilon=epsilon, delta=delta, mu=mu)
        found = canaries(
            known, inside, claim=claim, alpha=alpha, delta=delta if mu and delta else None
        )
        if json:
            emit_document("audit scores", {
                "verdict": found.verdict.value, "epsilon": {"lower": found.epsilon.lower, "delta": found.delta},
                "guesses": found.guesses, "right": found.right, "pvalue": found.pvalue, "alpha": alpha,
                "mu": found.mu, "if_gaussian": found.gaussian,
            })  # fmt: skip
        else:
            stdout(
                f"{found.verdict.value.upper()} at alpha = {alpha:g}: {found.right} of {found.guesses} guesses right\n"
            )
            stdout(
                f"epsilon >= {found.epsilon.lower:.4f} at delta = {found.delta:g}, but for alpha\n"
            )
            if found.mu:
                stdout(
                    f"It is not mu-GDP for any mu below {found.mu:.4f}, but for alpha; if it is Gaussian, "
                    f"epsilon >= {found.gaussian:.4f} at delta = {found.delta:g}\n"
                )
    if found.verdict is Verdict.REFUTED:
        raise typer.Exit(REFUSED)
