"""README and docs, executed.

Python blocks of one page share a namespace, in order; lines after `>>>` are doctests. In a console block every
`$ dpcompose ...` is run, and what it prints is compared, `...` standing for anything. A block whose opening fence
names a file, such as ```toml plan.toml, is that file for the commands that follow. A block below a comment
`<!-- needs mbi -->` runs where that library is installed.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.typed import typed

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "README.zh.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# The Chinese pages have the same code as the English ones (tests/website/test_languages.py).
EXECUTED = [page for page in PAGES if not page.name.endswith(".zh.md")]
COMMANDS = {page for page in EXECUTED if "```console" in page.read_text()}
FENCED = re.compile(
    r"^(?:<!-- needs (?P<needs>\w+) -->\n+)?```(?P<language>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    language: str
    file: str | None
    text: str
    line: int
    needs: str | None


PROGRESS = re.compile(r"dpcompose: .* (?:\(\d+ of \d+\)|\.\.\.)")


def blocks(page: str) -> Iterator[Block]:
    for match in FENCED.finditer(page):
        line = page.count("\n", 0, match.start("language")) + 1
        yield Block(match["language"], match["file"], match["text"], line, match["needs"])


def execute(page: str, name: str, workdir: Path) -> None:
    """Runs the blocks of a page in order, in `workdir`; raises at the first one that does not do what it shows."""
    namespace: dict[str, object] = {"__name__": name}
    for block in blocks(page):
        if block.needs is None or find_spec(block.needs) is not None:
            run_block(block, name, workdir, namespace)


def run_block(block: Block, name: str, workdir: Path, namespace: dict[str, object]) -> None:
    """Runs one block; raises if it does not do what it shows."""
    if block.file is not None:
        (workdir / block.file).write_text(block.text)
    elif block.language == "python" and ">>>" in block.text:
        _doctest(block, name, namespace)
    elif block.language == "python":
        exec(compile("\n" * block.line + block.text, name, "exec", dont_inherit=True), namespace)
    elif block.language == "console":
        _console(block, name, workdir)


def _doctest(block: Block, name: str, namespace: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, namespace, name, name, block.line)
    said: list[str] = []
    failed = (
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        .run(test, out=said.append, clear_globs=False)
        .failed
    )
    namespace.update(test.globs)
    assert not failed, "".join(said)


def _console(block: Block, name: str, workdir: Path) -> None:
    for shown in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, expected = shown.partition("\n")
        program, *arguments = shlex.split(line)
        assert program == "dpcompose", (
            f"{name}:{block.line}: only dpcompose is run here, not {program}"
        )
        printed = _run(arguments, workdir)
        same = doctest.OutputChecker().check_output(
            _stripped(expected), _stripped(printed), doctest.ELLIPSIS
        )
        assert same, f"{name}:{block.line}: $ {line}\nexpected:\n{expected}\nprinted:\n{printed}"


def _run(arguments: list[str], workdir: Path) -> str:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(workdir),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
    }
    return "".join(typed(arguments, workdir=workdir, environment=environment))


def _stripped(text: str) -> str:
    """`text` without blanks at line ends, without blank lines at its end, and without progress."""
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    return "\n".join(line for line in lines if not PROGRESS.fullmatch(line)) + "\n"


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where pages may write, with the examples in it under the name they have in the repository."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "path",
    [
        # Each command is a process of its own.
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.slow] if page in COMMANDS else [],
        )
        for page in EXECUTED
    ],
)
def test_page_does_what_it_shows(path: Path, workdir: Path) -> None:
    execute(path.read_text(), str(path.relative_to(ROOT)), workdir)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_page_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


def _runnable(module: str) -> bool:
    place = ROOT.joinpath(*module.split("."))
    return place.with_suffix(".py").exists() or (place / "__main__.py").exists()


def test_modules_that_are_to_be_run_are_there() -> None:
    folders = ("campaigns", "benchmarks", "examples", "tests", "website", "src")
    sources = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    pages = [
        *PAGES,
        ROOT / "examples" / "README.md",
        ROOT / "Makefile",
        *(ROOT / "changelog.d").glob("*.md"),
        *sources,
    ]
    ours = rf"python -m ((?:{'|'.join(folders)}|oracles)\.\w+(?:\.\w+)*)"
    named = {
        module for page in pages for module in re.findall(ours, page.read_text(encoding="utf-8"))
    }
    assert "campaigns.soundness" in named
    assert {module for module in named if not _runnable(module)} == set()


def test_names_of_the_notation_exist() -> None:
    source = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    rows = [
        line.split("|")
        for line in (ROOT / "docs" / "notation.md").read_text().splitlines()
        if line.startswith("|")
    ]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[2])}
    assert "sensitivity" in named
    assert {name for name in named if not re.search(rf"\b{name}\b", source)} == set()


@pytest.mark.parametrize(
    "page",
    [
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nx = 1\n```\n```python\nassert x == 2\n```\n",
        "```console\n$ dpcompose --no-such-option\n0\n```\n",
        "```console\n$ true\n```\n",
    ],
)
def test_a_wrong_page_fails(page: str, workdir: Path) -> None:
    with pytest.raises(AssertionError):
        execute(page, "wrong page", workdir)


def test_a_right_page_passes(workdir: Path) -> None:
    written = "```toml a.toml\na = 1\n```\n```python\nfrom pathlib import Path\na = Path('a.toml').read_text()\n```\n"
    execute(written + "```python\n>>> a\n'a = 1\\n'\n```\n", "right page", workdir)


def test_a_block_runs_where_what_it_needs_is_installed(workdir: Path) -> None:
    wrong = "```python\n>>> 1\n2\n```\n"
    execute(f"<!-- needs not_a_library -->\n\n{wrong}", "right page", workdir)
    with pytest.raises(AssertionError):
        execute(f"<!-- needs pytest -->\n\n{wrong}", "wrong page", workdir)
