"""`dpcompose experiment`: the composition experiment of Definition 3.7."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dpcompose.cli.options import PICTURES, Csv, Json, Picture, option, read_plan
from dpcompose.cli.output import REFUSED, emit, error_boundary, require_writable, writing
from dpcompose.cli.streams import announce, progress, stderr
from dpcompose.errors import DomainError

if TYPE_CHECKING:
    from dpcompose.experiment import Adversary, Experiment, Summary
    from dpcompose.plan import Plan
    from dpcompose.values import Orientation


Turns = Literal["same", "free"]
ANSWERS_A_SECOND = 10**7
"""About what one processor draws and weighs."""


class Player(StrEnum):
    """The adversaries of the command."""

    REPEATER = "repeater"
    DATABASES = "databases"
    GREEDY = "greedy"
    BREAKER = "breaker"
    RANDOM = "random"


def experiment(
    adversary: Annotated[
        Player,
        typer.Argument(
            metavar="ADVERSARY",
            help="repeater (asks the same again and again), databases (Bob is in all of them), greedy, random, or "
            "breaker (of the natural filter; it brings its own mechanisms).",
        ),
    ],
    plan: Annotated[
        Path | None,
        typer.Argument(
            metavar="PLAN", help="A plan file: its mechanisms are the family.", show_default=False
        ),
    ] = None,
    rounds: Annotated[int | None, option("k; left out: as many as the plan runs.", "K")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Ask for delta here.", metavar="E", show_default="1")
    ] = None,
    transcripts: Annotated[
        int | None,
        typer.Option(
            help="How many games in each world.",
            metavar="N",
            show_default="200000, fewer where a game is long",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 1,
    orientation: Annotated[
        Turns, typer.Option(help="Whether the adversary may turn each pair.")
    ] = "free",
    json: Json = False,
    csv: Csv = False,
    plot: Picture = None,
) -> None:
    """Simulate an attacker and compare it with the certified bound."""
    with error_boundary(), progress("reading") as steps:
        from dpcompose import check
        from dpcompose.experiment import summarize
        from dpcompose.values import Orientation

        require_writable("--plot", plot, *PICTURES)
        turned = Orientation(orientation)
        game, asked = _game(
            adversary, plan, rounds, epsilon, check.count("--seed", seed, least=0), turned
        )
        count = _transcripts(game) if transcripts is None else transcripts
        announce("playing", 2 * count * game.rounds / ANSWERS_A_SECOND)
        found = summarize(game, epsilon=asked, transcripts=count, seed=seed, progress=steps)
        _show(found, adversary, seed, plot, json=json, csv=csv)
    if not found.sound:
        raise typer.Exit(REFUSED)


def _transcripts(game: Experiment) -> int:
    """As many games as take some seconds."""
    return max(min(200_000, 2 * ANSWERS_A_SECOND // game.rounds), 1_000)


def _game(
    player: Player,
    file: Path | None,
    rounds: int | None,
    epsilon: float | None,
    seed: int,
    orientation: Orientation,
) -> tuple[Experiment, float]:
    """The experiment, and the epsilon to ask at."""
    from dpcompose.experiment import Experiment, NaturalFilterBreaker
    from dpcompose.values import Orientation

    if player is Player.BREAKER:
        if file is not None:
            raise DomainError("PLAN", str(file), "no plan: the breaker brings its own mechanisms")
        breaker = NaturalFilterBreaker()
        family = tuple(query.mechanism for query in breaker.queries)
        game = Experiment(
            breaker, family=family, rounds=2 if rounds is None else rounds, orientation=orientation
        )
        return game, breaker.budget.epsilon if epsilon is None else epsilon
    if file is None:
        raise DomainError("PLAN", None, "a plan file, whose mechanisms are the family")
    read = read_plan(file)
    if epsilon is None and read.question is not None and read.question.fixed == "epsilon":
        epsilon = read.question.value
    number = sum(entry.times for entry in read.entries) if rounds is None else rounds
    if not number <= 10_000:
        raise DomainError(
            "--rounds",
            number,
            "at most 10000",
            "Give --rounds: a transcript is played round by round",
        )
    if rounds is None and number == 0:
        raise DomainError("--rounds", None, "a number of rounds: the plan runs nothing")
    asked = 1.0 if epsilon is None else epsilon
    playing = _adversary(player, read, number, asked, seed, free=orientation is Orientation.FREE)
    family = tuple(entry.mechanism for entry in read.entries)
    return Experiment(
        playing, family=family, rounds=number, adjacency=read.adjacency, orientation=orientation
    ), asked


def _adversary(
    player: Player, plan: Plan, rounds: int, epsilon: float, seed: int, *, free: bool
) -> Adversary:
    from dpcompose.experiment import Greedy, ManyDatabases, Repeater, Wanderer, about_bob

    queries = [about_bob(entry.mechanism, adjacency=plan.adjacency) for entry in plan.entries]
    turned = [query.turned for query in queries] if free else []
    if player is Player.REPEATER:
        return Repeater(*queries)
    if player is Player.GREEDY:
        return Greedy([*queries, *turned], epsilon=epsilon, adjacency=plan.adjacency)
    if player is Player.RANDOM:
        return Wanderer([*queries, *turned], seed=seed)
    # Each database has other people in it.
    asked = (queries * (rounds // len(queries) + 1))[:rounds]
    others = [(f"person {place}",) for place in range(rounds)]
    apart = zip(asked, others, strict=True)
    return ManyDatabases(
        [replace(query, zero=query.zero + base, one=query.one + base) for query, base in apart]
    )


def _show(
    found: Summary, player: Player, seed: int, plot: Path | None, *, json: bool, csv: bool
) -> None:
    from dpcompose.experiment import NaturalFilterBreaker
    from dpcompose.report import experiment_document, experiment_page, save_experiment

    promised = NaturalFilterBreaker.budget if player is Player.BREAKER else None
    if plot is not None:
        budget = None if promised is None else (promised.epsilon, promised.delta)
        with writing("--plot", plot):
            save_experiment(plot, found, adversary=player.value, budget=budget)
        stderr(f"wrote {plot}")
    claim = ""
    if promised is not None:
        budget = f"({promised.epsilon:g}, {promised.delta:g})"
        claim = f"Each branch composes to {budget} exactly: the natural filter lets both through."
    emit(
        "experiment",
        lambda: experiment_document(found, adversary=player.value, seed=seed),
        lambda: experiment_page(found, adversary=player.value, budget=claim),
        json=json,
        csv=csv,
    )
