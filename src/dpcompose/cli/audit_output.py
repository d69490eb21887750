"""The result of `dpcompose audit`: printed, as a page, as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpcompose.cli.output import emit, package_version, write, writing
from dpcompose.cli.streams import stderr

if TYPE_CHECKING:
    from dpcompose.audit import AuditResult, Subject


def show(found: AuditResult, subject: Subject, claim: str, alpha: float, json: bool) -> None:
    """Print the result."""
    from dpcompose.report import audit_document, audit_page

    notes = tuple(sorted(subject.notes))
    emit(
        "audit",
        lambda: audit_document(found, subject=subject.name, claim=claim, alpha=alpha, notes=notes),
        lambda: audit_page(found, subject=subject.name, claim=claim, alpha=alpha, notes=notes),
        json=json,
    )


def draw(
    found: AuditResult,
    subject: Subject,
    claim: str,
    alpha: float,
    *,
    html: Path | None,
    plot: Path | None,
) -> None:
    """Write the page and the pictures that were asked for."""
    from dpcompose import report
    from dpcompose.report import audit_page, audit_svgs, save_audit

    if html is not None:
        page = audit_page(
            found,
            subject=subject.name,
            claim=claim,
            alpha=alpha,
            notes=tuple(sorted(subject.notes)),
        )
        made = f"Made by dpcompose {package_version()}."
        write(
            "--html",
            html,
            report.html(page, pictures=audit_svgs(found, alpha=alpha), producer=made),
        )
        stderr(f"wrote {html}")
    if plot is not None:
        with writing("--plot", plot):
            save_audit(plot, found, alpha=alpha)
        stderr(f"wrote {plot}")
