"""Certifies the 2020 Census redistricting data and Bob, spends a city's budget and that of flights: see out/.

make demo
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from dpcompose.plan import Plan, PlanAccount, PlanQuestion, account
from dpcompose.report import Page, budget_pictures, html, page as page_of, pictures, save
from dpcompose.report.html import framed
from dpcompose.report.ledger import tree_page
from dpcompose.report.number import above, below, digits_of
from examples.bob import make_plan as bob
from examples.bob.page import bob_page
from examples.census.make_plans import DATA, HERE, RELEASES, Release
from examples.city import city as analysts
from examples.flights import analysts as flights, counter

OUT = Path("out")
_CENSUS = (
    "Every query about {} in the redistricting data of the 2020 Census, composed and set beside the epsilon that was "
    "published for the same delta. The table shows which query uses most of it, largest first."
)
TITLE = "What dpcompose certifies"
LINKS = (
    ("census_us_persons.html", "2020 Census: persons, United States", _CENSUS.format("persons")),
    (
        "census_pr_persons.html",
        "2020 Census: persons, Puerto Rico",
        _CENSUS.format("persons of Puerto Rico"),
    ),
    (
        "census_us_housing_units.html",
        "2020 Census: housing units, United States",
        _CENSUS.format("housing units"),
    ),
    (
        "census_pr_housing_units.html",
        "2020 Census: housing units, Puerto Rico",
        _CENSUS.format("housing units of Puerto Rico"),
    ),
    (
        "bob.html",
        "Bob in the published deployments",
        "What one person is exposed to who is in every deployment that states its privacy parameters. It lists what "
        "each organization adds, what had to be assumed, and which deployments state no number.",
    ),
    (
        "city.html",
        "A city's ledger",
        "Forty analysts ask nine registers, and one ledger keeps them within their budgets. The page shows what each "
        "has spent and has left, and what a citizen in several registers is promised.",
    ),
)


def main() -> None:
    """Each example in a few lines: what is published, what is certified, what is spent."""
    began = time.perf_counter()
    OUT.mkdir(exist_ok=True)
    for line in chain(census(), bob_everywhere(), city(), new_york()):
        print(line, flush=True)
    sections = (
        f'<section><h2><a href="{address}">{name}</a></h2><p>{shown}</p></section>'
        for address, name, shown in LINKS
    )
    index = framed(TITLE, [f"<h1>{TITLE}</h1>", *sections])
    (OUT / "index.html").write_text(index, encoding="utf-8")
    print(f"\nall pages: {OUT}/index.html\n{time.perf_counter() - began:.1f} s")


def census() -> Iterator[str]:
    """The four plans of the redistricting data."""
    yield "2020 Census redistricting data: every query at every geographic level, one person or housing unit replaced"
    data = json.loads(DATA.read_text(encoding="utf-8"))
    for release in RELEASES:
        done = _account(Plan.read(HERE / release.plan))
        published = data[release.table]["published"]
        said = f"epsilon {published['epsilon']} at delta {published['delta']}"
        title = f"2020 Census redistricting data: {release.title}"
        page = replace(page_of(done), title=title)
        if float(published["delta"]) == done.delta:
            saved = 1 - done.total.upper / float(published["epsilon"])
            beside = f"published {published['epsilon']}: {100 * saved:.0f} % lower"
            page = replace(page, headline=f"{page.headline}; {beside}")
        _write(
            f"census_{Path(release.plan).stem}",
            replace(page, facts=(("published", said), *page.facts)),
            done,
        )
        yield from _lines(release, done, said)


def _lines(release: Release, done: PlanAccount, said: str) -> Iterator[str]:
    yield f"\n  {release.title}: {len(done.contributions)} mechanisms"
    yield f"    published  {said}"
    yield f"    certified  {_certified(done)}"
    yield f"    see        {OUT}/census_{Path(release.plan).stem}.html and .png"


def bob_everywhere(years: int = 1) -> Iterator[str]:
    """Bob's plan, with and without the deployments that state no number."""
    table = bob.load()
    done = _account(Plan.parse(bob.plan(table, years=years), source="examples/bob/plan.toml"))
    with_unknown = Plan.parse(bob.plan(table, years=years, unknown=True))
    all_of_them = with_unknown.composition().epsilon(
        delta=bob.DELTA, adjacency=with_unknown.adjacency
    )
    _write("bob", bob_page(table, done, years=years), done)
    answers = sum(share.entry.times for share in done.contributions)
    yield f"\nBob in {len(table.deployments)} published deployments, {answers:,} answers in {years} year"
    yield "    published  no total; each organization states its own number, for its own unit"
    yield f"    certified  {_certified(done)}"
    said = (
        "epsilon is infinite"
        if all_of_them.lower == math.inf
        else f"epsilon <= {above(all_of_them.upper)}"
    )
    yield f"    unknown    {len(table.unknown)} more state no number for one person: with them {said}"
    yield f"    see        {OUT}/bob.html and .png; what is assumed: examples/bob/deployments.toml"


def city() -> Iterator[str]:
    """Forty analysts, nine registers and one ledger, in short."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = analysts.run(Path(folder) / "city.db", questions=3)
    page = tree_page(outcome.balances, where="A city's ledger")
    promised = page_of(outcome.bob)
    bob_too = replace(
        page,
        headline=promised.headline,
        meaning="This holds for a citizen who is in the registers named below, whatever the analysts ask from now on.",
        facts=promised.facts,
        tables=(*page.tables, *promised.tables),
        notes=promised.notes,
    )
    (OUT / "city.html").write_text(
        html(bob_too, pictures=budget_pictures(outcome.balances)), encoding="utf-8"
    )
    first, *more = analysts.lines(outcome)
    yield f"\n{first}"
    yield from (f"  {line}" for line in more)
    yield f"    a citizen  {promised.headline}"
    yield f"    see        {OUT}/city.html; with twelve questions each: python -m examples.city.city"


def new_york() -> Iterator[str]:
    """Analysts who ask a real table, if it is installed: their own copy, and one behind a counter."""
    missing = flights.installed()
    yield "" if not missing else f"\nFlights from New York: not asked; {missing}"
    if not missing:
        yield from flights.told("duckdb")
        yield ""
        yield from counter.told()


def _account(plan: Plan) -> PlanAccount:
    question = plan.question
    assert isinstance(question, PlanQuestion), "every example asks something"
    return account(plan, question)


def _certified(done: PlanAccount) -> str:
    digits = max(digits_of(done.total) + 2, 7)
    lower, upper = below(done.total.lower, digits), above(done.total.upper, digits)
    return f"{lower} <= epsilon <= {upper} at delta {done.delta}"


def _write(name: str, page: Page, done: PlanAccount) -> None:
    (OUT / f"{name}.html").write_text(html(page, pictures=pictures(done)), encoding="utf-8")
    save(OUT / f"{name}.png", done)


if __name__ == "__main__":
    main()
