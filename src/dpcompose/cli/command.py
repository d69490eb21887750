"""How a command is declared: as a signature, whose docstring has the help of its options; what it returns is a `Result`.

`command` adds to a function what all commands share: the boundary at which errors become a sentence and an exit status,
progress, the checks of files to write, and the outputs --json, --csv, --html and --plot. A line that is typed correctly
is read here, without typer; typer has the help, the completion and the errors of all other lines.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from dpcompose.cli.output import (
    DONE,
    emit_document,
    error_boundary,
    progress,
    require_writable,
    stderr,
    stdout,
    write,
    writing,
)
from dpcompose.errors import DomainError

if TYPE_CHECKING:
    from dpcompose.report import Page, Picture

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_OPTION = re.compile(
    r"^    (?P<name>\w+)(?: \((?P<value>.*?)\))?: (?P<help>.*(?:\n {8}.*)*)", re.MULTILINE
)
_SUPPLIED = ("steps", "words", "typed")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Declared:
    """An option or an argument, as its help shows it.

    Args:
        help: A sentence.
        metavar: The name of its value.
        name: How an option is typed, if not as its parameter is called.
        envvar: A variable of the environment that gives its value.
        min: The least number.
        max: The largest number.
        shown: Whether the help shows the default, or the text that it shows in place of it.
        positional: Whether it is an argument.
    """

    help: str = ""
    metavar: str | None = None
    name: str | None = None
    envvar: str | None = None
    min: int | None = None
    max: int | None = None
    shown: bool | str = False
    positional: bool = False


def option(help: str = "", metavar: str | None = None, **more: Any) -> Declared:
    """An option with that help, whose default is not shown; without help, its line of the docstring has it."""
    return Declared(help, metavar, **more)


ARGUMENT = Declared(positional=True)
"""An argument whose name and help are a line of the docstring."""


def argument(metavar: str | None, help: str, *, shown: bool = False) -> Declared:
    """An argument with that name in the help."""
    return Declared(help, metavar, shown=shown, positional=True)


@dataclass(frozen=True)
class Result:
    """The result of a command; what is not asked for is not computed.

    Args:
        document: Makes the document for --json.
        page: Makes the page, and the tables for --csv.
        text: Printed in place of a page.
        remarks: Lines for standard error.
        status: The exit status.
        pictures: Makes the pictures, of the HTML page and of --plot.
        html: Makes the HTML page, if it is another one.
        files: Further files, if they are wanted, and what writes each.
        costly: Whether it is printed before files are written: what fails then loses a file, and not the result.
    """

    document: Callable[[], Mapping[str, Any]]
    page: Callable[[], Page] | None = None
    text: str = ""
    remarks: Sequence[str] = ()
    status: int = DONE
    pictures: Callable[[], Sequence[Picture]] = tuple
    html: Callable[[], Page] | None = None
    files: Sequence[tuple[Path | None, Callable[[Path], None]]] = ()
    costly: bool = False

    @classmethod
    def of(cls, subject: Any, *more: Any, status: int = DONE, **how: Any) -> Result:
        """A result that the reports know: its document, and its page."""
        from dpcompose.report import document, page

        stated = partial(document, subject, *more, **how)
        return cls(stated, partial(page, subject, *more, **how), status=status)


OUTPUTS: dict[str, tuple[Any, Declared]] = {
    "json": (bool, option("Print one JSON document.", name="--json")),
    "csv": (bool, option("Print the tables as CSV.", name="--csv")),
    "html": (Path, option("Write one self-contained page with pictures.", "FILE")),
    "plot": (Path, option("Write the pictures; the name ends in .png, .svg or .pdf.", "FILE")),
}
_SUFFIXES = {"html": (".html", ".htm"), "plot": (".png", ".svg", ".pdf")}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command: its name, its type (without None), its default and its declaration."""

    name: str
    kind: Any
    default: Any
    declared: Declared

    @property
    def option(self) -> str:
        """The name of an option as it is typed, such as --delta."""
        return self.declared.name or f"--{self.name.replace('_', '-')}"

    @property
    def is_list(self) -> bool:
        """Whether the option or argument may be given several times."""
        return get_origin(self.kind) is list

    def read(self, word: str) -> Any:
        """The value of a word; ValueError where typer is to judge it."""
        kind = get_args(self.kind)[0] if self.is_list else self.kind
        if get_origin(kind) is Literal:
            return get_args(kind)[get_args(kind).index(word)]
        if kind in (int, float):
            if not (_INTEGER if kind is int else _DECIMAL).fullmatch(word):
                raise ValueError(word)
            value, low, high = kind(word), self.declared.min, self.declared.max
            if not ((low is None or low <= value) and (high is None or value <= high)):
                raise ValueError(word)
            return value
        if not word and kind is not str:
            raise ValueError(word)
        return kind(word)


@dataclass
class Command:
    """A declared command; calling it runs it, and ends with SystemExit if its status is not 0.

    Args:
        function: Its action. A parameter `steps` gets the progress, `words` the words that no parameter takes,
            `typed` the options that were typed, and one with the name of an output that output's value.
        outputs: Those of --json, --csv, --html and --plot that it has.
        files: Its options that are files to write, each with its suffixes; a file without them belongs to no ledger.
        missing: Its options without which it may find that something is missing: errors name them as they are typed.
        doing: What the progress says first; None if there is none.
    """

    function: Callable[..., Result | None]
    outputs: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]
    doing: str | None
    line: str = field(default="", init=False)
    """The words of the command, such as "ledger show"."""

    @cached_property
    def own(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the function."""
        return inspect.signature(self.function, eval_str=True).parameters

    @cached_property
    def help(self) -> tuple[str, Mapping[str, tuple[str, str | None]]]:
        """The docstring in parts: of the command, and of each option its help and the name of its value."""
        text, _, options = inspect.cleandoc(self.function.__doc__ or "").partition("\n\nArgs:\n")
        described = {
            each["name"]: (" ".join(each["help"].split()), each["value"])
            for each in _OPTION.finditer(options)
        }
        return text, described

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The options and arguments: the parameters that the command line gives, then the outputs."""
        own = (each for each in self.own.values() if each.name not in {*_SUPPLIED, *OUTPUTS})
        outputs = ((name, *OUTPUTS[name]) for name in self.outputs)
        unset = {bool: False, Path: None}
        files = (Parameter(name, kind, unset[kind], shown) for name, kind, shown in outputs)
        return (*map(self._parameter, own), *files)

    def _parameter(self, parameter: inspect.Parameter) -> Parameter:
        kind, default, declared = parameter.annotation, parameter.default, Declared()
        if get_origin(kind) is Annotated:
            kind, declared = get_args(kind)
        if parameter.name in self.help[1]:
            help, value = self.help[1][parameter.name]
            visible = default not in (None, "", inspect.Parameter.empty) and default is not False
            shown = declared.shown or visible
            declared = replace(declared, help=help, metavar=value, shown=shown)
        if isinstance(kind, UnionType):
            (kind,) = (each for each in get_args(kind) if each is not type(None))
        return Parameter(parameter.name, kind, default, declared)

    def __call__(self, words: Sequence[str] = (), /, **values: Any) -> None:
        """Run the command with these values, one for each parameter, and the words that none of them takes."""
        outputs = {
            name: values[name] if name in self.own else values.pop(name) for name in self.outputs
        }
        own = values | {"words": list(words), "typed": self._typed(values)}
        with error_boundary(*self.missing):
            emitted = {name: bool(outputs.get(name)) for name in ("json", "csv")}
            if emitted["json"] and emitted["csv"]:
                raise DomainError("--csv", True, "not beside --json: one of them")
            for name, suffixes in (_SUFFIXES | dict(self.files)).items():
                require_writable(f"--{name}", outputs.get(name, values.get(name)), *suffixes)
            if any(outputs.get(name) is not None for name in _SUFFIXES):
                from dpcompose.report import require_pictures

                require_pictures()
            with nullcontext() if self.doing is None else progress(self.doing) as own["steps"]:
                result = self.function(**{name: own[name] for name in self.own})
                if result is not None and not result.costly:
                    _write_files(result, outputs)
            if result is None:
                return
            emit(self.line, result, **emitted)
            if result.costly:
                _write_files(result, outputs)
        for remark in result.remarks:
            stderr(remark)
        if result.status:
            raise SystemExit(result.status)

    def parse(self, line: Sequence[str]) -> tuple[list[str], dict[str, Any]] | None:
        """The words that no parameter takes, and the values of all parameters; None if typer is to judge the line."""
        try:
            "".join(line).encode()
            return self._parsed(iter(line))
        except (ValueError, StopIteration):
            return None

    def _parsed(self, line: Iterator[str]) -> tuple[list[str], dict[str, Any]]:
        options = {each.option: each for each in self.parameters if not each.declared.positional}
        values: dict[str, Any] = {}
        loose: list[str] = []
        for word in line:
            name, mark, value = word.partition("=")
            if name in options:
                parameter = options[name]
                if parameter.kind is bool:
                    _refuse(bool(mark))
                    values[parameter.name] = True
                    continue
                value = value if mark else next(line)
                _refuse(not mark and value.startswith("-") and value != "-")
                read = parameter.read(value)
                values[parameter.name] = (
                    [*values.get(parameter.name, ()), read] if parameter.is_list else read
                )
            else:
                _refuse(word.startswith("-") and word != "-" and not self._open(word))
                loose.append(word)
        for parameter in self.parameters:
            if parameter.declared.positional and loose:
                taken, loose = (loose, []) if parameter.is_list else (loose[:1], loose[1:])
                read = [parameter.read(word) for word in taken]
                values[parameter.name] = read if parameter.is_list else read[0]
            elif parameter.name not in values:
                stated = os.environ.get(parameter.declared.envvar or "")
                _refuse(not stated and parameter.default is inspect.Parameter.empty)
                values[parameter.name] = parameter.read(stated) if stated else parameter.default
        _refuse(bool(loose) and "words" not in self.own)
        return loose, values

    def _open(self, word: str) -> bool:
        """Whether a word is an option that the command does not declare, and that is passed on to it."""
        return "words" in self.own and word.startswith("--") and word not in ("--", "--help")

    def _typed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The options that are not at their defaults, as they are typed."""
        return {
            each.option: values[each.name]
            for each in self.parameters
            if values.get(each.name) not in (None, each.default)
        }


def command(
    *outputs: str,
    files: Mapping[str, tuple[str, ...]] | None = None,
    missing: Sequence[str] = (),
    doing: str | None = "reading",
) -> Callable[[Callable[..., Result | None]], Command]:
    """Declare a function as a command; see `Command`."""
    return lambda function: Command(function, outputs, files or {}, tuple(missing), doing)


def _refuse(wrong: bool) -> None:
    """Leave the line to typer, if it is wrong."""
    if wrong:
        raise ValueError


def emit(line: str, result: Result, *, json: bool, csv: bool) -> None:
    """Print a result on standard output: as one JSON document, as text, as CSV or as a page.

    Args:
        line: The words after `dpcompose`, such as "ledger show".
        result: The result of the command.
        json: Whether to print the document.
        csv: Whether to print the tables as CSV.
    """
    if json:
        emit_document(line, result.document())
    elif result.text or result.page is None:
        stdout(result.text)
    else:
        from dpcompose.report import csv_text, text as text_of

        stdout((csv_text if csv else text_of)(result.page()))


def _write_files(result: Result, outputs: Mapping[str, Any]) -> None:
    """Write the page, the pictures and the files that are asked for."""
    html, plot, page = outputs.get("html"), outputs.get("plot"), result.html or result.page
    for file, put in result.files:
        if file is not None:
            put(file)
            stderr(f"wrote {file}")
    if html is None and plot is None:
        return
    from dpcompose.report import html as html_of, write as write_pictures

    pictures = result.pictures()
    if html is not None and page is not None:
        write("--html", html, html_of(page(), pictures=pictures))
        stderr(f"wrote {html}")
    if plot is not None:
        with writing("--plot", plot):
            write_pictures(plot, pictures)
        stderr(f"wrote {plot}")


PlanFile = Annotated[Path, argument("PLAN", "A plan file (TOML), or - for standard input.")]
ScopePath = Annotated[str, argument("PATH", "A scope, such as world/acme.")]
LedgerUrl = Annotated[
    str,
    option(
        "A file, or postgresql://user@host/database.",
        "URL",
        name="--ledger",
        envvar="DPCOMPOSE_LEDGER",
    ),
]
Actor = Annotated[str, option("Who asks.", envvar="USER", shown=True)]
Key = Annotated[str | None, option("Idempotency key: a repeat returns the same result, free.")]
KeptAnchor = Annotated[
    Path | None, option("An anchor or a checkpoint that was kept elsewhere.", "FILE")
]
TrustedKeys = Annotated[
    list[str] | None,
    option(
        "A public key that you trust: NAME+ID+KEY, or a file of such lines. May be repeated.", "KEY"
    ),
]
