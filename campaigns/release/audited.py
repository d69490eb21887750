"""Releases as subjects of an audit: the claim is the charge, and the outcome is what an analyst
sees.

A question is drawn from the exact integers of two tables that differ in one unit, by the design
that is charged, many answers at once: the groups are copied, and one draw of all copies is treated
like a single one. A session is played completely, with its ledger. An audit uses made-up tables; it
reads nobody's ledger and no real rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcompose.account import open_scope
from dpcompose.adaptive import Budget
from dpcompose.audit import Pair, Subject
from dpcompose.composition import Composable, compose
from dpcompose.ledger import Ledger
from dpcompose.release.aggregate import Groups, exact
from dpcompose.release.answer import Answer
from dpcompose.release.columns import Key
from dpcompose.release.design import Design, PeelingStep
from dpcompose.release.question import Question
from dpcompose.release.session import Session
from dpcompose.release.table import Table

COPIES = 20_000
"""Answers that are drawn at once."""
_SCOPE, _ACTOR, _PLENTY = "audit", "auditor", 1e12


@dataclass(frozen=True)
class AuditedRelease:
    """The first arguments of `dpcompose.audit.audit`.

    Args:
        subject: What answers.
        pair: The two worlds.
        claim: What is charged.
    """

    subject: Subject
    pair: Pair
    claim: Composable


@dataclass(frozen=True)
class World:
    """One world of an audited question: a design, and the exact integers that it draws from."""

    design: Design
    aggregates: Groups


def audited_question(question: Question, zero: Table, one: Table) -> AuditedRelease:
    """A question about two tables that are one unit apart.

    Args:
        question: The question, with its spend.
        zero: The table of world 0.
        one: That of world 1, of the same schema.

    Raises:
        As `Question.design`, and `EngineError` if the engine failed.
    """
    designs = [question.design(table) for table in (zero, one)]
    worlds = [
        World(design, exact(table, design.aggregation))
        for design, table in zip(designs, (zero, one), strict=True)
    ]
    return audited_worlds(worlds[0], worlds[1], claim=designs[0].mechanism, name=question.kind)


def audited_worlds(zero: World, one: World, *, claim: Composable, name: str) -> AuditedRelease:
    """Two worlds, however they were made: a defect is planted by a design or integers that do not belong together.

    An answer is a row of numbers: for each key that any world holds whether it came out, and its released numbers.
    """
    worlds = (zero, one)
    keys: dict[Key, int] = {}
    for world in worlds:
        public = world.design.aggregation.public
        for key in world.aggregates if public is None else public:
            keys.setdefault(key, len(keys))

    def batch(world: int, rows: int) -> list[list[float]]:
        parts = [min(COPIES, rows - begin) for begin in range(0, rows, COPIES)]
        return [row for part in parts for row in _drawn(worlds[world], keys, part)]

    return AuditedRelease(Subject(batch=batch, label=f"release: {name}"), Pair(0, 1), claim)


def _drawn(world: World, keys: dict[Key, int], copies: int) -> list[list[float]]:
    if copies > 1 and any(isinstance(step, PeelingStep) for step in world.design.steps):
        # It chooses among all groups, so that copies cannot be drawn together.
        return [row for _ in range(copies) for row in _drawn(world, keys, 1)]
    design, aggregation = world.design, world.design.aggregation
    groups = (
        None
        if aggregation.public is None
        else tuple((i, *key) for i in range(copies) for key in aggregation.public)
    )
    many = {
        (copy, *key): numbers for copy in range(copies) for key, numbers in world.aggregates.items()
    }
    drawn = replace(design, aggregation=replace(aggregation, public=groups)).draw(many)
    bins = 1 if aggregation.bins is None else aggregation.bins[1].count
    sizes = [
        2 if isinstance(step, PeelingStep) else len(step.draw([[0] * bins])[0])
        for step in design.steps
    ]
    width = 1 + max(1, sum(sizes))
    rows = [[0.0, *[math.nan] * (width - 1)] * len(keys) for _ in range(copies)]
    for place, (copy, *key) in enumerate(drawn.keys):
        numbers = [float(number) for step in drawn.released for number in step[place]]
        begin = keys[tuple(key)] * width
        rows[copy][begin : begin + 1 + len(numbers)] = [1.0, *numbers]
    return rows


def audited_session(questions: Sequence[Question], zero: Table, one: Table) -> AuditedRelease:
    """A whole session with each table: the questions in one batch, charged to a ledger in memory and answered.

    Args:
        questions: The questions, each with its spend.
        zero: The table of world 0.
        one: That of world 1.
    """
    ledger = Ledger.open("memory:")
    open_scope(ledger, _SCOPE, filter=Budget(_PLENTY, 0.5, only="basic"), actor=_ACTOR)
    sessions = [Session(table, ledger=ledger, scope=_SCOPE, actor=_ACTOR) for table in (zero, one)]

    def call(world: int) -> list[Any]:
        return [_seen(answer) for answer in sessions[world].batch(questions)]

    claim = compose(*(question.design(zero).mechanism for question in questions))
    return AuditedRelease(Subject(call, limit=60.0, label="release: a session"), Pair(0, 1), claim)


def _seen(answer: Answer) -> list[list[Any]]:
    return [list(values.cells) for values in answer.columns]
