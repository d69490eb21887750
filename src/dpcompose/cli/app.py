"""The commands as typer has them, for what `Command.parse` leaves to it: help, completion, and errors of a line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpcompose.cli.command import Command, Declared, Parameter
from dpcompose.cli.output import (
    BAD_INPUT,
    INVOKED,
    report_error,
    stdout,
)
from dpcompose.cli.table import COMMANDS, DEFAULTS, GROUPS, load
from dpcompose.version import __version__

_USAGE: Any = typer.BadParameter.__base__
"""The error of a line that cannot be parsed, which typer does not name."""

_OPEN = ("allow_extra_args", "ignore_unknown_options")
"""The settings of a command that takes words which are not declared."""


class _Root(TyperGroup):
    """All commands; an error of the line is a document under --json."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _USAGE as error:
            words = INVOKED.get()
            if words is None or not words.json:
                raise
            report_error("UsageError", error.format_message(), BAD_INPUT)
            raise typer.Exit(BAD_INPUT) from None


def _with_default(command: str) -> type[TyperGroup]:
    """A group whose first word is a command, or else the first argument of its default command."""

    class Group(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if args and args[0] not in (*self.commands, "-h", "--help"):
                args = [command, *args]
            return super().parse_args(ctx, args)

    return Group


def _version(wanted: bool) -> None:
    if wanted:
        stdout(f"dpcompose {__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Add up differential privacy: certified totals of the losses of many mechanisms."""


def _annotation(parameter: Parameter) -> Any:
    declared: Declared = parameter.declared
    if declared.positional:
        shown = typer.Argument(
            help=declared.help, metavar=declared.metavar, show_default=declared.shown
        )
        return Annotated[parameter.kind, shown]
    named = [] if declared.name is None and parameter.kind is not bool else [parameter.option]
    return Annotated[
        parameter.kind,
        typer.Option(
            *named, help=declared.help, metavar=declared.metavar, envvar=declared.envvar, min=declared.min,
            max=declared.max, show_default=declared.shown,
        ),
    ]  # fmt: skip


def _function(command: Command) -> Callable[..., None]:
    """The command as a function with typer's declarations."""

    def call(context: typer.Context, **values: Any) -> None:
        command(context.args, **values)

    context = inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    named = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    parameters = [
        named(each.name, default=each.default, annotation=_annotation(each))
        for each in command.parameters
    ]
    vars(call).update(__signature__=inspect.Signature([context, *parameters]))
    call.__doc__, _ = command.help
    call.__annotations__ = {each.name: each.annotation for each in (context, *parameters)}
    return call


def _built() -> typer.Typer:
    """The tree of all commands."""
    root = typer.Typer(
        name="dpcompose",
        cls=_Root,
        no_args_is_help=True,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        epilog="Exit status: 0 done, 1 refused, over budget or refuted, 2 bad input, 3 not available, 4 internal, "
        "130 stopped. Losses are in nats.",
    )
    root.callback()(_root)
    groups = {"": root}
    for line, help in GROUPS.items():
        parent, _, name = line.rpartition(" ")
        cls = _with_default(DEFAULTS[line]) if line in DEFAULTS else TyperGroup
        groups[line] = typer.Typer(cls=cls, no_args_is_help=True, help=help)
        groups[line].callback()(lambda: None)
        groups[parent].add_typer(groups[line], name=name)
    for line in COMMANDS:
        parent, _, name = line.rpartition(" ")
        command = load(line)
        settings = dict.fromkeys(_OPEN, True) if "words" in command.own else None
        groups[parent].command(name, context_settings=settings)(_function(command))
    return root


app = _built()
