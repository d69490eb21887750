"""Bob's page: the account of his plan, what it assumes, who contributes what, and the deployments without a number."""

from __future__ import annotations

from dataclasses import replace

from dpcompose import Bound
from dpcompose.plan import Plan, PlanAccount
from dpcompose.report import Heading, Page, PageTable, page as page_of
from dpcompose.report.number import above
from examples.bob.make_plan import Table, plan

NO_TOTAL = "With any of these the total is infinite: nothing is promised about what they reveal."


def subtotals(table: Table, *, years: int, delta: float) -> dict[str, Bound]:
    """The certified epsilon of each organization's deployments alone, at the same delta."""
    plans = {
        name: Plan.parse(plan(table, years=years, organization=name))
        for name in table.organizations
    }
    return {
        name: each.composition().epsilon(delta=delta, adjacency=each.adjacency)
        for name, each in plans.items()
    }


def bob_page(table: Table, account: PlanAccount, *, years: int) -> Page:
    """The page of one account of Bob's plan."""
    page = page_of(account)
    horizon = "1 year" if years == 1 else f"{years} years"
    facts = (
        ("published", "no total: each organization states its own number, for its own unit"),
        ("horizon", f"{horizon} of every deployment that repeats"),
        (
            "unknown",
            f"{len(table.unknown)} more deployments state no number for Bob: with them epsilon is infinite",
        ),
    )
    notes = (
        "Certified for this table, this horizon and these assumptions: they are ours, not the publishers'.",
        "Zero-out: in every database, Bob's data against that database's own way of not having them, taken out or "
        "replaced by someone else's, as its statement says. Being replaced everywhere is a stronger question, to which "
        "these statements give no finite answer.",
    )
    grids = (
        _organizations(
            table, subtotals(table, years=years, delta=account.delta), years, account.delta
        ),
        _unknown(table),
        _assumptions(table, years),
    )
    return replace(
        page,
        title=f"Bob in the published deployments, {horizon}",
        headline=f"epsilon <= {above(account.total.upper, 7)} at delta = {account.delta!r}",
        facts=(*facts, *page.facts),
        tables=(*grids[:2], *page.tables, grids[2]),
        notes=(*notes, *page.notes),
    )


def _organizations(table: Table, totals: dict[str, Bound], years: int, delta: float) -> PageTable:
    columns = (
        Heading("organization"),
        Heading("deployments", "right"),
        Heading("their deltas", "right"),
        Heading("epsilon together", "right"),
    )
    rows = [
        (
            name,
            str(sum(row.organization == name for row in table.deployments)),
            above(
                float(
                    sum(
                        row.added("delta") * row.units(years)
                        for row in table.deployments
                        if row.organization == name
                    )
                ),
                3,
            ),
            above(total.upper),
        )
        for name, total in sorted(totals.items(), key=lambda item: -item[1].upper)
    ]
    return PageTable(f"Each organization alone, at delta = {delta!r}", columns, tuple(rows))


def _unknown(table: Table) -> PageTable:
    columns = (
        Heading("organization"),
        Heading("deployment"),
        Heading("why there is no number", wrap=True),
    )
    rows = tuple((row["organization"], row["name"], row["reason"]) for row in table.unknown)
    return PageTable("Unknown", columns, rows, (NO_TOTAL,))


def _assumptions(table: Table, years: int) -> PageTable:
    columns = (
        Heading("deployment", wrap=True),
        Heading("published"),
        Heading("protects", wrap=True),
        Heading("stated under"),
        Heading("of them", "right"),
        Heading("read as, each", wrap=True),
        Heading("assumed", wrap=True),
    )
    rows = tuple(
        (
            f"{row.organization}: {row.name}",
            ", ".join(f"{key} {value}" for key, value in row.published.items()),
            row.unit,
            row.adjacency,
            f"{row.units(years):,}",
            " + ".join(_read(part.numbers, part.times) for part in row.reading),
            " ".join(text for text in (row.assumed, row.note) if text),
        )
        for row in table.deployments
    )
    return PageTable("What is assumed", columns, rows)


def _read(numbers: tuple[tuple[str, object], ...], times: int) -> str:
    text = ", ".join(f"{key} {value}" for key, value in numbers)
    return f"{times} x ({text})" if times > 1 else text
