"""The architecture, held by reading the source: who imports whom, what is confined where, how large things may grow.

Each rule looks at one file and yields complaints. The last test feeds every rule a snippet that must be refused.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

import pytest

from campaigns.house import Module, past_a_face, read

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dpcompose"
KEYS = set(
    re.findall(r"^@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text(), re.MULTILINE)
)

THEORY = {
    "numerics",
    "contour",
    "proof",
    "divergence",
    "guarantee",
    "loss",
    "mechanisms",
    "composition",
    "book",
}
THEORY |= {"adaptive", "experiment", "audit"}
FACES = {
    "plan",
    "report",
    "book",
    "composition",
    "experiment",
    "ledger",
    "account",
    "release",
    "audit",
}

# A room, and the rooms whose faces it may import besides errors, files, check, values and numerics.
MAY_IMPORT = {
    "errors": set(),
    "files": set(),
    "version": set(),
    "notebook": set(),
    "pictured": set(),
    "face": set(),
    "check": set(),
    "document": set(),
    "attached": set(),
    "law": {"attached"},
    "values": set(),
    "numerics": set(),
    "contour": set(),
    "proof": {"contour"},
    "divergence": set(),
    "guarantee": set(),
    "loss": {"attached", "law", "guarantee", "contour", "proof"},
    # What a mechanism is needs nothing of how it is answered.
    "mechanisms": {"attached", "law", "guarantee"},
    "composition": {"attached", "law", "mechanisms", "loss", "guarantee", "contour"},
    "plan": {"mechanisms", "composition", "guarantee"},
    "book": {"guarantee", "divergence"},
    "adaptive": {"attached", "guarantee", "loss", "composition", "mechanisms"},
    "experiment": {"mechanisms", "adaptive", "composition", "guarantee"},
    "audit": {"experiment", "mechanisms", "adaptive", "composition", "guarantee"},
    "ledger": {"check"},
    "account": {"ledger", "adaptive", "mechanisms", "composition", "guarantee"},
    "release": {"account", "ledger", "mechanisms", "composition", "adaptive", "guarantee"},
    "report": {*THEORY, "plan", "ledger", "account", "release", "interop"},
    "interop": {
        "law",
        "plan",
        "account",
        "ledger",
        "adaptive",
        "mechanisms",
        "composition",
        "loss",
        "guarantee",
        "report",
    },
    "serve": {
        "account",
        "ledger",
        "plan",
        "mechanisms",
        "adaptive",
        "report",
        "guarantee",
        "composition",
        "release",
    },
    "cli": FACES | {"adaptive", "interop", "serve"},
    "__main__": {"cli"},
}
NO_NUMERICS = {
    "document",
    "errors",
    "files",
    "face",
    "ledger",
    "notebook",
    "pictured",
    "version",
}

# A third-party package, and the rooms it is confined to. What is not listed is not used.
CONFINED_TO = {
    "numpy": {*THEORY, "values", "interop", "release"},
    "scipy": THEORY,
    "flint": {"proof"},
    "lazy_loader": {"face"},
    "msgspec": {"document"},
    "cryptography": {"ledger"},
    "psycopg": {"ledger", "release", "serve"},
    "duckdb": {"release"},
    "pyspark": {"release"},
    "opendp": {"release", "interop"},
    "dp_accounting": {"interop"},
    "flwr": {"interop"},
    "hypothesis": {"audit"},
    "jax_privacy": {"interop"},
    "lightning": {"interop"},
    "mbi": {"release"},
    "opacus": {"interop"},
    "torch": {"interop"},
    "transformers": {"interop"},
    "yaml": {"interop"},
    "polars": {"release"},
    "pyarrow": {"release"},
    "sqlglot": {"release"},
    "typer": {"cli"},
    "rich": {"cli", "report"},
    "matplotlib": {"report"},
    "httpx": {"serve"},
    "jinja2": {"serve"},
    "joserfc": {"serve"},
    "markupsafe": {"serve"},
    "prometheus_client": {"serve"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
}
FILE_LIMIT, FUNCTION_LIMIT, POSITIONAL_LIMIT, WIDTH = 450, 75, 6, 100
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINED = re.compile(r"^\s*(?:async )?(?:def|class) (\w+)", re.MULTILINE)
OWN = {name for file in PACKAGE.rglob("*.py") for name in DEFINED.findall(file.read_text())}


@dataclass(frozen=True)
class Source:
    """One file of the package: its dotted place below `dpcompose`, and its text."""

    place: str
    text: str

    @property
    def room(self) -> str:
        return self.place.split(".")[0]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, walked once for all rules."""
        return list(ast.walk(self.tree))

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @cached_property
    def code_lines(self) -> set[int]:
        """Lines with code on them: no blank ones, no comments, no docstrings."""
        silent = {
            tokenize.COMMENT,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        }
        code = [token for token in self.tokens if token.type not in silent]
        lines = {line for token in code for line in range(token.start[0], token.end[0] + 1)}
        for node in self.nodes:
            match node:
                case ast.Expr(value=ast.Constant(value=str())):
                    lines -= _lines(node)
                case _:
                    pass
        return lines

    @cached_property
    def imports(self) -> set[str]:
        """Every module named by an import, lazy ones and those of `import_module` included, absolute and dotted."""
        found: set[str] = set()
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    found |= {name.name for name in names}
                case ast.ImportFrom(module=module, names=names, level=level):
                    here = ["dpcompose", *self.place.split(".")][:-level] if level else []
                    base = ".".join([*here, *([module] if module else [])])
                    found |= {_module(base, name.name) for name in names}
                case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _calls(
                    node, "import_module", "__import__"
                ):
                    found.add(name)
                case _:
                    pass
        return found


def _lines(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _module(base: str, name: str) -> str:
    """`from base import name` names the module base.name if there is one, else base."""
    inside = PACKAGE.parent.joinpath(*base.split("."), name)
    return f"{base}.{name}" if inside.is_dir() or inside.with_suffix(".py").exists() else base


def rooms(source: Source) -> Iterator[str]:
    """Rooms import only the rooms that the table grants them."""
    if source.room == "__init__":
        return
    granted = {
        source.room,
        "errors",
        "document",
        "face",
        "files",
        "notebook",
        "pictured",
        "version",
        *MAY_IMPORT.get(source.room, set()),
    }
    granted |= set() if source.room in NO_NUMERICS else {"check", "values", "numerics"}
    if source.room not in MAY_IMPORT:
        yield f"{source.room} is a room that the table does not know"
    for module in sorted(source.imports):
        package, _, target = module.partition(".")
        if package == "dpcompose" and not any(
            target == room or target.startswith(f"{room}.") for room in granted
        ):
            yield f"{source.room} may not import {module}"


def third_parties(source: Source) -> Iterator[str]:
    """Third-party packages stay in the rooms they are confined to."""
    imported = {module.split(".")[0] for module in source.imports}
    for package in sorted(imported - sys.stdlib_module_names - {"dpcompose"}):
        if source.room not in CONFINED_TO.get(package, set()):
            yield f"{package} may not be imported in {source.room}"


def sizes(source: Source) -> Iterator[str]:
    """Files and functions stay small."""
    if len(source.code_lines) > FILE_LIMIT:
        yield f"{len(source.code_lines)} lines of code, above {FILE_LIMIT}"
    for node in source.nodes:
        if isinstance(node, FUNCTIONS):
            body = set(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
            length = len(source.code_lines & body)
            if length > FUNCTION_LIMIT:
                yield f"{node.name} has {length} lines of code, above {FUNCTION_LIMIT}"


def names(source: Source) -> Iterator[str]:
    """Files are named by their concept, and epsilon is spelled out."""
    if VAGUE & set(source.place.split(".")):
        yield "name the file by its concept"
    identifiers = {token.string for token in source.tokens if token.type == tokenize.NAME}
    for name in sorted(identifiers):
        if "eps" in name.lower().split("_"):
            yield f"{name}: spell epsilon"


def cancellation(source: Source) -> Iterator[str]:
    """`expm1` and `log1p` wherever a difference from 1 would cancel."""
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            left, right = node.left, node.right
            if (_is_one(left) and _calls(right, "exp")) or (_calls(left, "exp") and _is_one(right)):
                yield f"line {node.lineno}: use expm1"
        match node:
            case ast.Call(args=[ast.BinOp(left=one, op=ast.Add() | ast.Sub()), *_]):
                if _calls(node, "log") and _is_one(one):
                    yield f"line {node.lineno}: use log1p"
            case _:
                pass


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool) and node.value == 1


def _calls(node: ast.AST, *names: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return getattr(node.func, "id", None) in names or getattr(node.func, "attr", None) in names


def references(source: Source) -> Iterator[str]:
    """Every cited key is in docs/references.bib."""
    cited = set(re.findall(r"\[([A-Z]\w*\d{4}[a-z]?)[,\];]", source.text))
    cited |= {
        f"Reference: {text}"
        for text in re.findall(r"Reference: (?!\[[A-Z]\w*\d{4})(.*)", source.text)
    }
    for key in sorted(cited - KEYS):
        yield f"{key} is not a key of references.bib"


def declared_members(source: Source) -> Iterator[str]:
    """A member is declared by a class: none is looked up by a literal name."""
    for node in source.nodes:
        match node:
            case ast.Call(args=[_, ast.Constant(value=str(name)), *_]) if _calls(
                node, "getattr", "hasattr"
            ):
                yield f"line {node.lineno}: declare {name} in a class"
            case _:
                pass


def positional_arguments(source: Source) -> Iterator[str]:
    """Our own callables are given at most six arguments by position."""
    foreign = {
        alias.asname or alias.name
        for node in source.nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] != "dpcompose"
        for alias in node.names
    }
    for node in source.nodes:
        if isinstance(node, ast.Call) and len(node.args) > POSITIONAL_LIMIT:
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
            if name in OWN - foreign:
                yield f"line {node.lineno}: {name} is given {len(node.args)} arguments by position"


def openings(source: Source) -> Iterator[str]:
    """A docstring opens with its subject or its verb, not with "What"."""
    for node in source.nodes:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node) or ""
            if text.startswith("What "):
                yield f"the docstring {text[:40]!r} opens with What"


def wrapped_lines(source: Source) -> Iterator[str]:
    """A line of a docstring's paragraph is filled before the next one begins."""
    for node in source.nodes:
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            continue
        lines = (ast.get_docstring(node, clean=False) or "").splitlines()
        for first, second in pairwise(lines[1:]):
            if _is_prose(first) and _is_prose(second) and _indent(first) == _indent(second):
                word = second.split()[0]
                entry = re.match(r"\s*\w+( \(.*?\))?:", second)  # of Args: "name (VALUE): help"
                filled = first.rstrip()[-1] in ";:" or entry is not None
                if word[0].islower() and not filled and len(first) + 1 + len(word) <= WIDTH:
                    yield f"the line that ends {first.strip()[-30:]!r} has room for {word!r}"


def _is_prose(line: str) -> bool:
    return bool(line.strip()) and not re.match(
        r"\s*(>>>|\.\.\.|[-*|] |\w[\w.]* = |import |from .* import )", line
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def loop_targets(source: Source) -> Iterator[str]:
    """A loop binds names: one that binds an attribute changes the object, or the module, that has it."""
    for node in source.nodes:
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            for each in ast.walk(node.target):
                if isinstance(each, ast.Attribute):
                    yield f"line {each.lineno}: the loop assigns to {ast.unparse(each)}"


RULES: list[Callable[[Source], Iterator[str]]] = [
    rooms,
    third_parties,
    sizes,
    names,
    cancellation,
    references,
]
RULES += [declared_members, positional_arguments, openings, wrapped_lines, loop_targets]


@cache
def _sources() -> list[Source]:
    files = sorted(PACKAGE.rglob("*.py"))
    return [
        Source(".".join(file.relative_to(PACKAGE).with_suffix("").parts), file.read_text())
        for file in files
    ]


def test_the_source_keeps_the_rules() -> None:
    """One test for all rules, so that every file is parsed once in the whole run."""
    complaints = [
        f"{source.place}: {complaint} ({rule.__name__})"
        for source in _sources()
        for rule in RULES
        for complaint in rule(source)
    ]
    assert not complaints, "\n".join(complaints)


def _imported_files(source: Source, places: set[str]) -> set[str]:
    """The files of the package that a file imports, within functions and for types alone too."""
    named = {module.removeprefix("dpcompose").removeprefix(".") for module in source.imports}
    return {
        place for module in named for place in (module, f"{module}.__init__") if place in places
    } - {source.place}


def _circles(graph: dict[str, set[str]]) -> list[str]:
    """Files that import each other, directly or by way of others: what is left when leaves are taken away."""
    left = dict(graph)
    while leaves := [place for place, targets in left.items() if not targets & left.keys()]:
        for place in leaves:
            del left[place]
    while roots := [
        place for place in left if all(place not in targets for targets in left.values())
    ]:
        for place in roots:
            del left[place]
    return sorted(left)


def test_no_import_circle() -> None:
    sources = _sources()
    places = {source.place for source in sources}
    assert _circles({source.place: _imported_files(source, places) for source in sources}) == []


def test_a_circle_is_found() -> None:
    assert _circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
    assert _circles({"a": {"b"}, "b": set()}) == []


LAZY_LIMIT = 27
"""Imports of our own within functions, the command line aside: each waits for an extra, or for a face that is heavy."""


def test_imports_within_functions_are_few() -> None:
    found = [
        f"{source.place}:{node.lineno}"
        for source in _sources()
        if source.room != "cli"
        for function in source.nodes
        if isinstance(function, FUNCTIONS)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpcompose"
    ]
    assert len(found) <= LAZY_LIMIT, "\n".join(found)


def test_every_room_says_what_it_offers() -> None:
    folders = {
        folder.name
        for folder in PACKAGE.iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
    }
    silent = [
        name
        for name in sorted(folders)
        if "__all__ = " not in (PACKAGE / name / "__init__.py").read_text()
    ]
    assert silent == []


def test_rooms_are_imported_through_their_faces() -> None:
    assert past_a_face(read(ROOT)) == []


def test_an_import_past_a_face_is_found() -> None:
    modules = {
        "loss": Module("loss", "", True, frozenset({"Loss"})),
        "loss.base": Module("loss.base", "", False),
        "plan": Module("plan", "", True),
        "plan.plan": Module("plan.plan", "from dpcompose.loss import Loss, base", False),
    }
    assert past_a_face(modules) == ["plan.plan imports loss.base"]


def test_the_table_names_rooms_that_exist() -> None:
    rooms_there = {source.room for source in _sources()}
    named = {
        *MAY_IMPORT,
        *(room for granted in MAY_IMPORT.values() for room in granted),
        *THEORY,
        *FACES,
    }
    named |= {room for confined in CONFINED_TO.values() for room in confined}
    assert {name.split(".")[0] for name in named} - rooms_there == set()


def test_importing_the_package_stays_light() -> None:
    heavy = {"dpcompose.interop", "flint", "matplotlib", "mpmath", "rich", "scipy.stats", "typer"}
    code = f"import sys, dpcompose; print(*sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def _loaded(code: str) -> set[str]:
    """The files of the package that are loaded after a program, in a process of its own."""
    show = "print(*(name for name in sys.modules if name.startswith('dpcompose')))"
    run = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{show}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {*run.stdout.split()}


ENGINE = ("loss", "contour", "proof", "composition")


def test_a_mechanism_stands_on_nothing_of_its_answers() -> None:
    files = [file.stem for file in (PACKAGE / "mechanisms").glob("*.py")]
    code = "".join(f"import dpcompose.mechanisms.{name}\n" for name in files)
    code += "from dpcompose import Adjacency, Gaussian, Laplace, mechanisms\nfrom dpcompose.mechanisms import UnaryEncoding\n"
    code += "some = Laplace(2.0), Gaussian(1.0, sensitivity=2.0), UnaryEncoding(0.5, flip=0.25)\n"
    code += "assert len({hash(each) for each in some}) == len({repr(each) for each in some}) == 3\n"
    code += "assert isinstance(some[0], mechanisms.Composable) and some[0] == Laplace(2.0)\n"
    code += "assert some[0].laws(Adjacency.REPLACE)[0][0].remove.epsilon == 1.0\n"
    code += "assert some[1].costlier() is some[1] and some[0].typed(adjacency=Adjacency.ZERO_OUT)\n"
    rooms_loaded = {name.split(".")[1] for name in _loaded(code) if "." in name}
    assert not rooms_loaded & {*ENGINE} and "mechanisms" in rooms_loaded


def test_the_laplace_mechanism_stands_on_few_files() -> None:
    """Twelve beside five files at the root and the faces of rooms."""
    loaded = _loaded("import dpcompose.mechanisms.noise")
    files = [name for name in loaded if not (PACKAGE / Path(*name.split(".")[1:])).is_dir()]
    assert len(files) <= 17, sorted(files)


@pytest.mark.parametrize(
    "use",
    [
        "Laplace(1.0) * 3",
        "3 * Laplace(1.0)",
        "Laplace(1.0) + Laplace(2.0)",
        "sum([Laplace(1.0)])",
        "Laplace.epsilon",
        "Laplace(1.0).sampled(0.1)",
        "Laplace(1.0).plot",
        "Laplace(1.0).pairs(Adjacency.REPLACE)",
        "Laplace(1.0).laws(Adjacency.REPLACE)[0][0].add.loss()",
    ],
)
def test_operators_and_questions_come_from_above(use: str) -> None:
    code = (
        f"from dpcompose.mechanisms import Laplace\nfrom dpcompose.values import Adjacency\n{use}"
    )
    assert "dpcompose.composition.question" in _loaded(code)


def test_every_member_that_is_expected_is_supplied() -> None:
    code = "import dpcompose.composition.composition\nfrom dpcompose import attached, law, mechanisms\n"
    code += "kinds = law.Law, mechanisms.Part, mechanisms.Askable, mechanisms.Composable\n"
    code += "members = [each for kind in kinds for each in vars(kind).values()]\n"
    code += "assert not any(isinstance(each, attached.Attached) for each in members)"
    _loaded(code)


LONG = "\n".join(f"    x = {number}" for number in range(FUNCTION_LIMIT + 1))
REFUSED = [
    (rooms, "loss.laplace", "from dpcompose.mechanisms import Laplace"),
    (rooms, "loss.laplace", "def f():\n    from ..mechanism import Laplace"),
    (rooms, "loss.laplace", "from dpcompose import Laplace"),
    (
        rooms,
        "composition.question",
        "import importlib\nimportlib.import_module('dpcompose.plan')",
    ),
    *(
        (rooms, "mechanisms.noise", f"def f():\n    from dpcompose import {room}")
        for room in ("loss", "contour", "proof", "composition")
    ),
    (rooms, "ledger.entry", "from dpcompose.values import Bound"),
    (rooms, "kitchen.sink", "import math"),
    (third_parties, "ledger.entry", "import numpy"),
    (third_parties, "loss.laplace", "def f():\n    import matplotlib.pyplot as plt"),
    (third_parties, "loss.laplace", "import pandas"),
    (sizes, "plan", f"def f():\n{LONG}"),
    (sizes, "plan", "x = 1\n" * (FILE_LIMIT + 1)),
    (names, "loss.utils", "import math"),
    (names, "loss.laplace", "def f(*, max_eps): ..."),
    (cancellation, "loss.laplace", "import numpy as np\ny = 1.0 - np.exp(-2)"),
    (cancellation, "loss.laplace", "from math import exp\ny = exp(x) - 1"),
    (cancellation, "loss.laplace", "import math\ny = math.log(1 - x)"),
    (references, "loss.laplace", '"""Reference: [Nobody1999, Theorem 1]."""'),
    (references, "loss.laplace", '"""Reference: a paper."""'),
    (declared_members, "loss.laplace", "getattr(loss, 'scale', None)"),
    (declared_members, "loss.laplace", "hasattr(loss, 'scale')"),
    (positional_arguments, "loss.laplace", f"{min(OWN)}(1, 2, 3, 4, 5, 6, 7)"),
    (openings, "loss.laplace", '"""What is lost."""'),
    (wrapped_lines, "loss.laplace", '"""A loss.\n\nIt is the sum of\nall losses.\n"""'),
    (loop_targets, "interop.events", "[each for each, mechanisms.kinds in table]"),
]


@pytest.mark.parametrize(("rule", "place", "text"), REFUSED)
def test_the_rule_can_refuse(
    rule: Callable[[Source], Iterator[str]], place: str, text: str
) -> None:
    assert list(rule(Source(place, text)))


def test_the_rules_let_good_code_pass() -> None:
    text = f'"""Reference: [{min(KEYS)}, Theorem 1]."""\nimport math\nfrom dpcompose.values import Bound\n'
    text += (
        f"import numpy as np\ndef f():\n    '''{LONG}'''\n    return -math.expm1(-math.log1p(2))\n"
    )
    source = Source("loss.laplace", text)
    assert [complaint for rule in RULES for complaint in rule(source)] == []
