"""The project's own files: fragments of the change log have a type, and what the hosted workflow calls exists."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FRAGMENTS = ROOT / "changelog.d"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.MULTILINE))


def test_fragments_are_named_by_their_type() -> None:
    kinds = "|".join(kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"])
    others = {"README.md", "template.md.jinja"}
    names = {path.name for path in FRAGMENTS.iterdir()} - others
    assert {
        name for name in names if not re.fullmatch(rf"[a-z0-9]+(-[a-z0-9]+)*\.({kinds})\.md", name)
    } == set()


@pytest.mark.parametrize("path", sorted(FRAGMENTS.glob("*.*.md")), ids=lambda path: path.name)
def test_a_fragment_says_something_and_links_from_the_root(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.strip()
    assert not re.search(r"\*\*(Added|Changed|Fixed|Removed)", text), "the type is the file's name"
    assert [
        link for link in re.findall(r"\]\((?!https?:)([^)#]+)", text) if not (ROOT / link).exists()
    ] == []


def test_every_target_is_explained_and_no_other() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    explained = set(re.findall(r'@echo "make ([a-z][\w-]*)', MAKEFILE))
    assert set(phony[1].split()) == TARGETS
    assert explained == TARGETS - {"help"}


def _steps(workflow: Any) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def _unknown(command: str) -> list[str]:
    """The words of a line of the workflow that name no target, no file and no script of ours."""
    program, *words = shlex.split(command)
    if program == "make":
        tests = [path for word in words if word.startswith("TESTS=") for path in word[6:].split()]
        goals = [word for word in words if "=" not in word]
        return [goal for goal in goals if goal not in TARGETS] + [
            path for path in tests if not (ROOT / path).exists()
        ]
    if program == "bash":
        return [word for word in words if not (ROOT / word).exists()]
    return [] if program in {"sudo", "python"} else [program]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_what_there_is(path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed: pip install '.[test]'")
    steps = _steps(yaml.safe_load(path.read_text(encoding="utf-8")))
    commands = [line for step in steps for line in step.get("run", "").splitlines()]
    assert commands
    assert all("run" in step or "uses" in step for step in steps)
    assert [word for command in commands for word in _unknown(command)] == []


@pytest.mark.parametrize(
    "command", ["make no-such-target", "make check TESTS='tests/none'", "bash none.sh", "curl x"]
)
def test_an_unknown_command_is_found(command: str) -> None:
    assert _unknown(command)


def test_the_oldest_versions_are_those_that_are_promised() -> None:
    promised = dict(re.findall(r"([\w-]+)>=([\d.]+)", " ".join(PROJECT["project"]["dependencies"])))
    pins = dict(
        re.findall(
            r"^([\w-]+)==([\d.]+)\.\*$", (ROOT / ".ci" / "oldest.txt").read_text(), re.MULTILINE
        )
    )
    assert set(pins) == {"numpy", "scipy"}
    assert all(promised[name] == version for name, version in pins.items())


def test_the_hooks_are_commands_of_the_makefile() -> None:
    hooks = re.findall(
        r"^ +entry: (.*)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE
    )
    lint = MAKEFILE.replace("$(BIN)", ".venv/bin")
    assert hooks
    assert [
        hook
        for hook in hooks
        if hook not in lint and not hook.startswith(".venv/bin/python -m pytest")
    ] == []
