"""Short versions of the campaigns on releases; the long ones are commands (docs/release.md)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from campaigns.ledger.server import Server
from campaigns.release import (
    audit,
    kills,
    neighbors,
    odd_columns,
    samplers,
    statements,
    truncation,
)
from dpcompose.audit import Verdict
from dpcompose.release import sampler


@pytest.mark.slow
def test_neighbors_differ_in_numbers_only() -> None:
    assert neighbors.run(25, seed=7) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_unit_moves_more_than_is_charged() -> None:
    assert truncation.run("duckdb", 12, seed=7) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rows_kept_by_a_key_of_the_rows_are_found() -> None:
    assert any(truncation.run("duckdb", 5, seed, key_of_rows=True) for seed in range(7, 15))


@pytest.mark.server
def test_an_odd_person_in_columns_of_postgresql_is_not_told(postgres: Server) -> None:
    assert odd_columns.run(postgres, 8, seed=1)[0] == []
    assert odd_columns.run(postgres, 4, seed=1, control=True)[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_statements_are_answered_as_sql_means_them() -> None:
    wrong, answers = statements.run("duckdb", 12, seed=3)
    assert wrong == []
    assert answers > 6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("defect", "seed"), list(zip(statements.DEFECTS, (8, 0, 0), strict=True)))
def test_statements_that_are_read_otherwise_are_found(defect: str, seed: int) -> None:
    assert statements.run("duckdb", 2, seed, defect=defect)[0]


def test_files_whose_quotes_go_on_over_lines_are_found() -> None:
    # Read so, one person's quote swallows the lines of others.
    assert neighbors.beyond(random.Random("file 1 5"), line_breaks=True) == 4
    assert neighbors.beyond(random.Random("file 1 5")) == 0


@pytest.mark.statistical
@pytest.mark.parametrize("name", audit.QUESTIONS)
def test_no_event_tells_neighbors_apart_too_well(name: str) -> None:
    # Refuted by chance with probability at most 1e-9.
    assert audit.audited(audit.QUESTIONS[name], 150, 1e-9).verdict is Verdict.NOT_REFUTED


@pytest.mark.parametrize(
    "name",
    [name for name in audit.QUESTIONS if name not in ("distinct", "rows per unit", "left out")],
)
def test_the_neighbors_of_the_audit_differ_as_far_as_is_charged(name: str) -> None:
    first, second = (audit.totals(audit.QUESTIONS[name], table) for table in audit.neighbors())
    change = sum(abs(first[place] - second[place]) for place in first.keys() | second.keys())
    assert change >= 2


@pytest.mark.statistical
def test_whole_sessions_neither() -> None:
    # By chance with probability at most 1e-9.
    assert audit.sessions(48, 1e-9).verdict is Verdict.NOT_REFUTED


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", [*list(audit.PLANTED)[:4], "wrong sensitivity: variance", "wrong sensitivity: distinct"]
)
def test_planted_defects_are_found(name: str) -> None:
    assert audit.PLANTED[name](1000).verdict is Verdict.REFUTED


@pytest.mark.slow
def test_a_kill_leaves_no_answer_without_its_charge() -> None:
    wrong, answers, _ = kills.run(12, seed=3)
    assert wrong == []
    assert answers > 0


@pytest.mark.statistical
@pytest.mark.parametrize("name", samplers.SAMPLERS)
def test_the_samplers_draw_what_they_state(name: str) -> None:
    # 5,000 draws: beyond the margin by chance with probability at most 1e-9.
    assert samplers.worst(samplers.SAMPLERS[name], 5000, 1e-9) <= 1


@pytest.mark.statistical
def test_a_sampler_that_rounds_is_found() -> None:
    # Scale 11 in place of 10: P(0) is 0.0454 in place of 0.0499, 13 standard errors of 400,000 draws; the margin is 8.
    coarse = samplers.SAMPLERS["Laplace, scale 10"]
    other = replace(coarse, draw=lambda number: sampler.discrete_laplace([0] * number, scale=11.0))
    assert samplers.worst(other, 400_000, 1e-9) > 1
