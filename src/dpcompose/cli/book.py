"""The commands about the book: its statements evaluated, and the experiment of Definition 3.7 played."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from dpcompose.cli.command import ARGUMENT, Result, command, option
from dpcompose.cli.inputs import read_plan
from dpcompose.cli.output import DONE, REFUSED, Progress, error_boundary
from dpcompose.errors import DomainError, UnsupportedError

if TYPE_CHECKING:
    from dpcompose.book import Lesson, Parameter, Statement
    from dpcompose.experiment import Adversary, Experiment
    from dpcompose.plan import Plan
    from dpcompose.values import Orientation

ANSWERS_A_SECOND = 10**7
"""About what one processor draws and weighs."""
_KINDS = {
    **dict.fromkeys(("theorem", "lemma", "corollary", "section", "定理", "引理", "推论", "第"), ""),
    "definition": "definition", "定义": "definition", "proposition": "proposition", "命题": "proposition",
    "remark": "remark", "备注": "remark", "注": "remark", "example": "example", "例": "example",
}  # fmt: skip
"""The kinds of statements, in English and Chinese, as the names of statements begin: a theorem's is its number."""


@command("json", "csv", doing=None)
def theorem(
    words: list[str],
    number: Annotated[str | None, ARGUMENT] = None,
) -> Result:
    """Evaluate a statement of the book: dpcompose theorem 3.20 --epsilon 0.1 --times 100 --slack 1e-6.

    Its parameters are options. The page lists them, and says where the printed statement is loose or wrong.

    Args:
        number ([NUMBER]): As printed, such as 3.20; left out: all statements.
    """
    from dpcompose.book import ELSEWHERE, STATEMENTS

    if number is None:
        if words:
            raise DomainError("NUMBER", words[0], "the number of a statement first, such as 3.20")
        return Result.of(list(STATEMENTS.values()))
    if words and number.lower() in _KINDS:
        number = f"{number} {words.pop(0)}"
    name = _named(number, [*STATEMENTS, *ELSEWHERE])
    if name in ELSEWHERE:
        remedy = f"docs/book.md runs an example of it: {ELSEWHERE[name]}"
        raise UnsupportedError(name, "it states no number that could be computed", remedy)
    statement = STATEMENTS[name]
    values = _values(statement, words)
    with error_boundary(*(parameter.name for parameter in statement.parameters)):
        rows = statement.evaluate(**values)
    return Result.of(statement, values, rows)


@command("json", "csv", doing=None)
def exercise(words: list[str], lesson: Annotated[int, ARGUMENT]) -> Result:
    """Print the exercises of a LESSON, or check answers to them: dpcompose exercise 3 --a 0.14 --d 1/8.

    Each answer is compared with what the library computes; three digits are enough. Exit status 1 if one is wrong.

    Args:
        lesson (LESSON): Its number.
    """
    from dpcompose.book import LESSONS

    if lesson not in LESSONS:
        raise DomainError("LESSON", lesson, f"one of {', '.join(map(str, LESSONS))}")
    chosen = LESSONS[lesson]
    verdicts = chosen.checked(answers := _values(chosen, words))
    return Result.of(chosen, answers, verdicts, status=REFUSED if False in verdicts else DONE)


def _named(words: str, names: list[str]) -> str:
    """The name of the statement that the book calls so, in English or Chinese: "Theorem 3.20", "3.20", "例3.7"."""
    plain = " ".join(unicodedata.normalize("NFKC", words).lower().removesuffix("节").split())
    printed = next((each for each in _KINDS if plain.startswith(each)), "")
    kind, number = _KINDS.get(printed, ""), plain.removeprefix(printed).strip()
    same = [each for each in names if each == number or each.endswith(f" {number}")]
    if (name := f"{kind} {number}".strip()) in names:
        return name
    if len(same) == 1 and not kind:
        return same[0]
    raise DomainError("NUMBER", words, f"one of {', '.join(same or names)}")


def _values(statement: Statement | Lesson, words: list[str]) -> dict[str, float | list[float]]:
    """The parameters among the words `--name value` or `--name=value`; one that takes many may come again."""
    takes = {parameter.name: parameter for parameter in statement.parameters}
    found: dict[str, float | list[float]] = {}
    rest = [
        part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])
    ]
    while rest:
        word = rest.pop(0)
        name = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or name not in takes:
            raise DomainError("option", word, f"one of {statement.number}: --{', --'.join(takes)}")
        if not rest:
            raise DomainError("option", word, f"a value after it: {takes[name].meaning}")
        values = [_number(takes[name], each) for each in rest.pop(0).split(",")]
        if takes[name].many:
            earlier = found.get(name, [])
            found[name] = [*(earlier if isinstance(earlier, list) else [earlier]), *values]
        elif len(values) > 1 or name in found:
            raise DomainError(word, values, "one value, given once")
        else:
            found[name] = values[0]
    return found


def _number(parameter: Parameter, text: str) -> float:
    try:
        is_part = "/" in text and parameter.kind is float
        return float(Fraction(text)) if is_part else parameter.kind(text)
    except (ValueError, ArithmeticError):
        wanted = "an integer" if parameter.kind is int else "a number"
        raise DomainError(f"--{parameter.name}", text, f"{wanted}: {parameter.meaning}") from None


Player = Literal["repeater", "databases", "greedy", "breaker", "random"]
"""The adversaries of the command."""


@command("json", "csv", "plot")
def experiment(
    steps: Progress,
    adversary: Annotated[Player, ARGUMENT],
    plan: Annotated[Path | None, ARGUMENT] = None,
    rounds: int | None = None,
    epsilon: Annotated[float | None, option(shown="1")] = None,
    transcripts: Annotated[int | None, option(shown="200000, fewer where a game is long")] = None,
    seed: int = 1,
    orientation: Literal["same", "free"] = "free",
) -> Result:
    """Simulate an attacker and compare it with the certified bound.

    Args:
        adversary (ADVERSARY): repeater (asks the same again and again), databases (Bob is in all of them), greedy,
            random, or breaker (of the natural filter; it brings its own mechanisms).
        plan (PLAN): A plan file: its mechanisms are the family.
        rounds (K): k; left out: as many as the plan runs.
        epsilon (E): Ask for delta here.
        transcripts (N): How many games in each world.
        seed: Of all random numbers.
        orientation: Whether the adversary may turn each pair.
    """
    from dpcompose import check
    from dpcompose.experiment import NaturalFilterBreaker, summarize
    from dpcompose.report import document, page, pictures
    from dpcompose.values import Orientation

    seed = check.count("--seed", seed, least=0)
    game, at = _game(adversary, plan, rounds, epsilon, seed, Orientation(orientation))
    # As many games as take some seconds, unless a number is typed.
    usual = max(min(200_000, 2 * ANSWERS_A_SECOND // game.rounds), 1_000)
    count = usual if transcripts is None else transcripts
    summary = summarize(game, epsilon=at, transcripts=count, seed=seed, progress=steps)
    budget, claim = None, ""
    if adversary == "breaker":
        budget = NaturalFilterBreaker.budget.epsilon, NaturalFilterBreaker.budget.delta
        claim = f"Each branch composes to ({budget[0]:g}, {budget[1]:g}) exactly: the natural filter lets both through."
    return Result(
        lambda: document(summary, adversary=adversary, seed=seed),
        lambda: page(summary, adversary=adversary, budget=claim),
        pictures=lambda: pictures(summary, adversary=adversary, budget=budget),
        status=DONE if summary.sound else REFUSED,
    )


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

    if player == "breaker":
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
        remedy = "Give --rounds: a transcript is played round by round"
        raise DomainError("--rounds", number, "at most 10000", remedy)
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
    exchanged = [query.exchanged for query in queries] if free else []
    if player == "repeater":
        return Repeater(*queries)
    if player == "greedy":
        return Greedy([*queries, *exchanged], epsilon=epsilon, adjacency=plan.adjacency)
    if player == "random":
        return Wanderer([*queries, *exchanged], seed=seed)
    # Each database has other people in it.
    asked = (queries * (rounds // len(queries) + 1))[:rounds]
    others = [(f"person {place}",) for place in range(rounds)]
    apart = zip(asked, others, strict=True)
    return ManyDatabases(
        [replace(query, zero=query.zero + base, one=query.one + base) for query, base in apart]
    )
