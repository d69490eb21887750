"""What somebody mistypes: one sentence that names it, status 2 for bad input and 1 for a refusal, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import invoke

FILES: dict[str, bytes] = {
    "good.toml": b'delta = 1e-6\n[[mechanism]]\nkind = "laplace"\nname = "a"\nscale = 2.0\ntimes = 3\n',
    "asks.toml": b'[[mechanism]]\nkind = "laplace"\nscale = 2.0\n',
    "none.toml": b'delta = 1e-6\n[[mechanism]]\nkind = "laplace"\nscale = 2.0\ntimes = 0\n',
    "rho.toml": b'delta = 1e-6\n[[mechanism]]\nkind = "concentrated"\nrho = 0.1\n',
    "rate.toml": b'delta = 1e-6\n[[mechanism]]\nkind = "concentrated"\nrho = 0.1\nrate = 0.5\n',
    "huge.toml": b'delta = 1e-6\n[[mechanism]]\nkind = "laplace"\nscale = 2.0\ntimes = 99999999999999999\n',
    "integer.toml": b'delta = 1e-6\n[[mechanism]]\nkind = "laplace"\nscale = '
    + b"9" * 5000
    + b"\n",
    "wide.toml": b'delta = "1e-6"\n[[mechanism]]\nkind = "laplace"\nscale = 2.0\n',
    "date.toml": b'delta = 1e-6\n[[mechanism]]\nkind = "laplace"\nscale = 2020-01-01\n',
    "table.toml": b'delta = 1e-6\n[mechanism]\nkind = "laplace"\n',
    "empty.toml": b"",
    "zero.toml": b"\0\0\0",
    "utf16.toml": 'delta = 1e-6\n[[mechanism]]\nkind = "laplace"\n'.encode("utf-16"),
    "long.toml": b"#" * 20_000,
}
CALIBRATE = "calibrate good.toml --vary {} --epsilon {} --delta {}"
# The words, the status, and what the sentence says.
WRONG: list[tuple[str, int, str]] = [
    ("account missing.toml", 2, "missing.toml: expected a plan file that can be read"),
    ("account .", 2, "Is a directory"),
    ("account empty.toml", 2, "at least one [[mechanism]] table"),
    ("account zero.toml", 2, "zero.toml: expected TOML"),
    ("account utf16.toml", 2, "UTF-8"),
    ("account long.toml", 2, "line 1 is longer"),
    ("account asks.toml", 2, "delta or epsilon, in the plan or as --delta or --epsilon"),
    ("account wide.toml", 2, "wide.toml: delta = '1e-6': expected a number"),
    ("account date.toml", 2, "mechanism[1]: scale = datetime.date(2020, 1, 1): expected a number"),
    ("account table.toml", 2, "[[mechanism]] on its own line"),
    (
        "account huge.toml",
        2,
        "huge.toml: mechanism[1]: times = 99999999999999999: expected an integer from 0 to 10^15",
    ),
    ("account integer.toml", 2, "integer.toml: expected TOML"),
    ("account rate.toml", 3, "no sound guarantee is known of concentrated"),
    ("account good.toml --delta nan", 2, "delta = nan"),
    ("account good.toml --delta -1", 2, "delta = -1.0: expected a number in [0, 1]"),
    ("account good.toml --delta 2", 2, "delta = 2.0"),
    ("account good.toml --delta many", 2, "Invalid value for '--delta'"),
    ("account good.toml --epsilon nan", 2, "epsilon = nan"),
    ("account good.toml --epsilon inf", 2, "epsilon = inf"),
    (
        "account good.toml --delta 1e-6 --epsilon -1",
        2,
        "epsilon = -1.0: expected a finite number >= 0",
    ),
    (
        "account good.toml --html page.txt",
        2,
        "--html = 'page.txt': expected a file name that ends in .html or .htm",
    ),
    ("account good.toml --plot nowhere/x.png", 2, "a file in a directory that exists"),
    ("account good.toml --plot x.gif", 2, "ends in .png"),
    ("account good.toml more.toml", 2, "more.toml"),
    (CALIBRATE.format("scale", 1, 1e-6), 2, "mechanism.NAME.PARAMETER, such as mechanism.a.times"),
    (CALIBRATE.format("mechanism.b.scale", 1, 1e-6), 2, "a mechanism of the plan: one of a"),
    (CALIBRATE.format("mechanism.a.scal", 1, 1e-6), 2, "did you mean scale?"),
    (CALIBRATE.format("mechanism.a.name", 1, 1e-6), 2, "a number of a laplace"),
    (CALIBRATE.format("mechanism.a.scale", "nan", 1e-6), 2, "epsilon = nan"),
    (CALIBRATE.format("mechanism.a.scale", -1, 1e-6), 2, "epsilon = -1.0"),
    (CALIBRATE.format("mechanism.a.scale", 1, 2), 2, "delta = 2.0"),
    ("calibrate missing.toml --vary mechanism.a.scale --epsilon 1 --delta 0", 2, "missing.toml"),
    ("theorem 9.99", 2, "NUMBER = '9.99': expected one of definition 2.4, 2.2"),
    ("theorem --epsilon 1", 2, "NUMBER = '--epsilon'"),
    ("theorem 3.20", 2, "3.20 requires epsilon, times, slack"),
    ("theorem 3.20", 2, "--epsilon is missing: expected a value"),
    ("theorem 3.20 --epsilon 0.1 --times 9", 2, "--slack is missing: expected a value"),
    ("theorem optimal --epsilon 0.1 --times 9", 2, "--total-delta is missing: expected a value"),
    ("ledger evidence key ada", 2, "--out is missing: expected a new file for the secret key"),
    (
        "ledger evidence check-proof asks.toml",
        2,
        "--trust is missing: expected the public key of the signer",
    ),
    (
        "theorem 3.20 --epsilon",
        2,
        "option = '--epsilon': expected a value after it: of each mechanism",
    ),
    ("theorem 3.20 0.1", 2, "option = '0.1': expected one of 3.20: --epsilon"),
    ("theorem 3.20 --eta 1", 2, "option = '--eta'"),
    ("theorem 3.20 --epsilon x", 2, "--epsilon = 'x': expected a number: of each mechanism"),
    ("theorem 3.20 --epsilon nan --times 1 --slack 0.1", 2, "epsilon = nan"),
    (
        "theorem 3.20 --epsilon 0.1 --times 1.5 --slack 0.1",
        2,
        "--times = '1.5': expected an integer",
    ),
    ("theorem 3.20 --epsilon 0.1 --times 0 --slack 0.1", 2, "times = 0: expected an integer >= 1"),
    (
        "theorem 3.20 --epsilon 0.1 --times 1 --slack 1",
        2,
        "slack = 1.0: expected a number in (0, 1)",
    ),
    ("theorem 3.20 --epsilon 0.1,0.2 --times 1 --slack 0.1", 2, "one value, given once"),
    ("theorem 3.16 --epsilon 0.1,0.2 --delta 0.1", 2, "as many values as epsilon has, 2"),
    ("theorem 3.16 --epsilon 0.1,,0.2", 2, "--epsilon = ''"),
    (
        "theorem 3.19 --deviations 3 --times 9 --size 0.1 --drift 5",
        2,
        "drift = 5.0: expected at most the size 0.1",
    ),
    ("theorem 3.21 --epsilon 0.99 --times 100 --slack 0.998", 3, "it is false there"),
    ("theorem 2.3.1 --epsilon 1 --without 2 --utility-range 1", 2, "without = 2.0"),
    (
        "theorem 2.3.1 --epsilon 1 --delta 0.1 --without 2 --utility-range inf",
        3,
        "may be worth anything",
    ),
    ("theorem 2.2 --epsilon 1 --size 1000000000", 2, "size = 1000000000"),
    ("experiment nobody good.toml", 2, "nobody"),
    (
        "experiment repeater",
        2,
        "PLAN is missing: expected a plan file, whose mechanisms are the family",
    ),
    ("experiment repeater missing.toml", 2, "missing.toml"),
    ("experiment repeater good.toml --rounds 0", 2, "rounds = 0: expected an integer >= 1"),
    (
        "experiment repeater good.toml --rounds 99999999",
        2,
        "--rounds = 99999999: expected at most 10000",
    ),
    ("experiment repeater none.toml", 2, "a number of rounds: the plan runs nothing"),
    ("experiment repeater good.toml --transcripts 0", 2, "transcripts = 0"),
    (
        "experiment repeater good.toml --transcripts 9999999999999999",
        2,
        "an integer from 1 to 1000000000000",
    ),
    ("experiment repeater good.toml --seed -1", 2, "--seed = -1: expected an integer >= 0"),
    ("experiment repeater good.toml --epsilon nan", 2, "epsilon = nan"),
    ("experiment repeater good.toml --orientation up", 2, "--orientation"),
    ("experiment repeater good.toml --plot x.gif", 2, "ends in .png"),
    ("experiment breaker good.toml", 2, "the breaker brings its own mechanisms"),
    ("experiment breaker --rounds 0", 2, "rounds = 0"),
    ("experiment repeater rho.toml --transcripts 9", 1, "round 1 is refused"),
    ("acount good.toml", 2, "No such command 'acount'"),
]


@pytest.mark.parametrize(("words", "status", "said"), WRONG, ids=[words for words, _, _ in WRONG])
def test_a_mistake_is_named_in_one_sentence(
    words: str, status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    result = invoke(words.split(" "))
    assert result.exit_code == status and said in result.stderr, result.output
    assert (
        "Traceback" not in result.output and "a defect" not in result.output and not result.stdout
    )
    assert " = None" not in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "ledger charge city good.toml",
            "--key is missing: expected a key that names this request",
        ),
        (
            "ledger scope town --delta 1e-6",
            "--epsilon is missing: expected the target of the budget",
        ),
        (
            "ledger scope town --parameter rho=1",
            "--filter is missing: expected the name of a filter",
        ),
        (
            "ledger scope town --filter renyi --delta 1e-6",
            "--epsilon is missing: expected the target of the budget",
        ),
        (
            "ledger scope town --kind slots --filter pure --epsilon 1",
            "--slots is missing: expected",
        ),
        ("ledger evidence checkpoint", "--key is missing: expected the file of the secret key"),
        ("ledger evidence prove city", "--entry is missing: expected a number"),
        ("ledger admin backup", "--out is missing: expected a new file"),
        ("statement asks.toml --unit person", "--delta is missing: expected a number in [0, 1)"),
    ],
)
def test_what_is_missing_is_named_as_it_is_typed(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good.toml", "asks.toml"):
        (tmp_path / name).write_bytes(FILES[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPCOMPOSE_LEDGER", "ledger.db")
    assert invoke(["ledger", "init"]).exit_code == 0
    assert invoke(["ledger", "scope", "city", "--cap", "epsilon=1"]).exit_code == 0
    result = invoke(words.split(" "))
    assert result.exit_code == 2 and said in result.stderr, result.output
    assert " = None" not in result.output
