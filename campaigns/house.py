"""The weight and the walls of the source, in figures: `python -m campaigns.house [ROOT] [--rooms]`.

ROOT is a checkout (default: this one). It prints the size of `src`, its files, and the imports that break a rule of the
house, each beside its limit, and ends with status 1 where a limit is exceeded. `--rooms` adds the size of every room.
Code lines are counted after `ruff format --line-length 120` of a copy, so that a wider line is never a saving: lines
that are not blank, comment or docstring. Tokens are those of Python's tokenizer, without docstrings, comments, line
ends and indentation.
"""

from __future__ import annotations

import argparse
import ast
import io
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

LIMITS = {
    "code lines": 47_300,
    "tokens": 540_000,
    "bytes of other files": 36_068,
    "files": 330,
    "imports past a face": 0,
    "names of the largest face": 40,
    "files in import circles": 0,
    "class names twice in a room": 0,
    "files with a single importer": 60,
    "lines of docs/architecture.md": 350,
    "banned names": 0,
}
BANNED = frozenset(
    [
        "found",
        "made",
        "given",
        "asked",
        "told",
        "said",
        "known",
        "kept",
        "there",
        "here",
        "way",
        "ways",
        "place",
        "near",
        "far",
        "rest",
        "share",
        "turned",
        "sworn",
    ]
)
"""Names that say nothing of what they name: no function, class, field or parameter has one."""
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
WIDTH = 120


@dataclass(frozen=True)
class Module:
    """One file of the package: its dotted name below `dpcompose` (an `__init__` is its room), and its text.

    Args:
        name: The dotted name; the package itself has none.
        text: The text of the file.
        is_face: Whether it is the `__init__` of a room.
        offered: The names that the stub of a face lists.
    """

    name: str
    text: str
    is_face: bool
    offered: frozenset[str] = frozenset()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, walked once."""
        return list(ast.walk(self.tree))

    @property
    def room(self) -> str:
        return self.name.split(".")[0]

    @cached_property
    def docstrings(self) -> list[tuple[int, int]]:
        """First and last line of the docstring of every module, class and function."""
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in self.nodes if isinstance(node, documented)]
        return [
            (node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno)
            for node in nodes
            if ast.get_docstring(node, clean=False) is not None
        ]

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        """The tokens that count: docstrings, comments, line ends and indentation do not."""
        documented = {line for first, last in self.docstrings for line in range(first, last + 1)}
        every = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [
            token
            for token in every
            if token.type not in SILENT
            and not (token.type == tokenize.STRING and token.start[0] in documented)
        ]

    @property
    def code_lines(self) -> int:
        return len(
            {line for token in self.tokens for line in range(token.start[0], token.end[0] + 1)}
        )

    def imports(self, modules: dict[str, Module]) -> Iterator[tuple[str, str]]:
        """Every import of a module of the package, within functions too: the module as written, and the file read."""
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    written = [(name.name, "") for name in names]
                case ast.ImportFrom(module=str(module), names=names, level=0):
                    written = [(module, name.name) for name in names]
                case ast.Call(args=[ast.Constant(value=str(module)), *_]) if (
                    ast.unparse(node.func) == "import_module"
                ):
                    written = [(module, "")]
                case _:
                    continue
            for module, name in written:
                if module.split(".")[0] == "dpcompose":
                    base = module.removeprefix("dpcompose").removeprefix(".")
                    inner = f"{base}.{name}".removeprefix(".")
                    is_file = (
                        inner in modules and name not in modules[base].offered
                        if base in modules
                        else True
                    )
                    target = inner if name and inner in modules and is_file else base
                    if target in modules:
                        yield target, name


def read(root: Path) -> dict[str, Module]:
    """The modules of a checkout by name; the package itself has the name ""."""
    package = root / "src" / "dpcompose"
    modules = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package).with_suffix("").parts
        is_face = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_face else parts)
        stub = file.with_suffix(".pyi")
        offered = (
            frozenset(_names(stub.read_text(encoding="utf-8")))
            if stub.exists()
            else frozenset[str]()
        )
        modules[name] = Module(name, file.read_text(encoding="utf-8"), is_face, offered)
    return modules


def _names(stub: str) -> Iterator[str]:
    """The names that a stub offers."""
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def stubs(root: Path) -> list[Module]:
    """The lists of names of the faces, which are code too."""
    package = root / "src" / "dpcompose"
    return [
        Module(file.parent.name, file.read_text(encoding="utf-8"), True)
        for file in sorted(package.rglob("*.pyi"))
    ]


def formatted(root: Path, folder: Path) -> dict[str, Module]:
    """The same modules, formatted at the width in which lines are counted.

    The project is wrapped at a smaller width. Trailing commas that the formatter wrote there are
    not kept, else a call that fits on one line would be counted as ten.
    """
    shutil.copytree(root / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--quiet",
        "--line-length",
        str(WIDTH),
        "--config",
        "format.skip-magic-trailing-comma=true",
        "src",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return read(folder)


def past_a_face(modules: dict[str, Module]) -> list[str]:
    """Imports of one room that name a file of another."""
    return [
        f"{module.name} imports {target}"
        for module in modules.values()
        for target in sorted({target for target, _ in module.imports(modules)})
        if "." in target and target.split(".")[0] != module.room and module.name
    ]


def importers(modules: dict[str, Module]) -> dict[str, set[str]]:
    """Who imports each module."""
    result: dict[str, set[str]] = {name: set() for name in modules}
    for module in modules.values():
        for target, _ in module.imports(modules):
            if target != module.name:
                result[target].add(module.name)
    return result


def single_importers(modules: dict[str, Module]) -> list[str]:
    """Files that one other file alone imports, the room's own face aside."""
    return [
        name
        for name, users in importers(modules).items()
        if "." in name and len({user for user in users if not modules[user].is_face}) == 1
    ]


def circles(modules: dict[str, Module]) -> list[str]:
    """Files that import each other, directly or by way of others."""
    graph = {
        module.name: {target for target, _ in module.imports(modules)}
        for module in modules.values()
    }
    remaining = {name: targets - {name} for name, targets in graph.items()}
    while removable := [
        name
        for name, targets in remaining.items()
        if not targets & remaining.keys()
        or all(name not in others for others in remaining.values())
    ]:
        for name in removable:
            del remaining[name]
    return sorted(remaining)


def repeated_classes(modules: dict[str, Module]) -> list[str]:
    """Names that two classes of one room have."""
    counted = Counter(
        (module.room, node.name)
        for module in modules.values()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    )
    return sorted(f"{room}: {name}" for (room, name), number in counted.items() if number > 1)


def banned_names(modules: dict[str, Module]) -> list[str]:
    """Functions, classes, fields and parameters with a banned name."""
    listed: list[str] = []
    for module in modules.values():
        for node in module.nodes:
            names: list[str] = []
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.append(node.name)
            if isinstance(node, ast.arg):
                names.append(node.arg)
            if isinstance(node, ast.ClassDef):
                fields = [line for line in node.body if isinstance(line, ast.AnnAssign)]
                names += [line.target.id for line in fields if isinstance(line.target, ast.Name)]
            listed += [
                f"{module.name}: {name}" for name in names if name.strip("_").lower() in BANNED
            ]
    return listed


def figures(root: Path) -> dict[str, int]:
    """Every figure that has a limit."""
    modules = read(root)
    with tempfile.TemporaryDirectory() as folder:
        every = [*formatted(root, Path(folder)).values(), *stubs(Path(folder))]
        lines = sum(module.code_lines for module in every)
    package = root / "src" / "dpcompose"
    others = [
        file
        for file in package.rglob("*")
        if file.is_file() and file.suffix not in {".py", ".pyi", ".pyc"}
    ]
    return {
        "code lines": lines,
        "tokens": sum(len(module.tokens) for module in [*modules.values(), *stubs(root)]),
        "bytes of other files": sum(file.stat().st_size for file in others),
        "files": len(modules),
        "imports past a face": len(past_a_face(modules)),
        "names of the largest face": max(len(module.offered) for module in modules.values()),
        "files in import circles": len(circles(modules)),
        "class names twice in a room": len(repeated_classes(modules)),
        "files with a single importer": len(single_importers(modules)),
        "lines of docs/architecture.md": len(
            (root / "docs" / "architecture.md").read_text().splitlines()
        ),
        "banned names": len(banned_names(modules)),
    }


def main() -> int:
    """Print the figures beside their limits; 1 where one is exceeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--rooms", action="store_true", help="the size of every room")
    parser.add_argument("--list", action="store_true", help="name what each rule complains of")
    options = parser.parse_args()
    modules = read(options.root)
    if options.rooms:
        with tempfile.TemporaryDirectory() as folder:
            lines = Counter[str]()
            for module in formatted(options.root, Path(folder)).values():
                lines[module.room] += module.code_lines
        for room, number in lines.most_common():
            inside = [module for module in modules.values() if module.room == room]
            tokens = sum(len(module.tokens) for module in inside)
            print(
                f"{room or 'dpcompose':14} {number:7,} lines {tokens:9,} tokens {len(inside):4} files"
            )
    if options.list:
        for rule in (past_a_face, circles, repeated_classes, single_importers, banned_names):
            print(f"{rule.__name__}:", *rule(modules), sep="\n  ")
    exceeded = 0
    for name, figure in figures(options.root).items():
        above = figure > LIMITS[name]
        exceeded += above
        print(f"{name:32} {figure:9,} of at most {LIMITS[name]:9,}{'  EXCEEDED' if above else ''}")
    return int(exceeded > 0)


if __name__ == "__main__":
    sys.exit(main())
