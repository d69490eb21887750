"""The table of all commands: their words, and where each is declared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpcompose.cli.command import Command

COMMANDS = {
    "account": "plan account", "calibrate": "plan calibrate", "compare": "plan compare",
    "theorem": "book theorem", "exercise": "book exercise", "experiment": "book experiment", "release": "release release",
    "ask": "ask ask",
    "import": "plan import_document", "serve": "serve serve",
    "statement write": "statement write_statement", "statement verify": "statement verify", "adaptive advise": "plan advise",
    "audit mechanism": "audit mechanism", "audit check": "audit check",
    "audit scores": "audit scores",
    "ledger init": "ledger init", "ledger scope": "ledger scope", "ledger charge": "ledger charge",
    "ledger redeem": "ledger redeem", "ledger close": "ledger close", "ledger show": "ledger_read show",
    "ledger price": "ledger_read price", "ledger log": "ledger_read log", "ledger exposure": "ledger_read exposure",
    "ledger verify": "ledger_read verify", "ledger people": "serve people",
    "ledger admin schema": "evidence schema", "ledger admin backup": "evidence backup",
    "ledger admin restore": "evidence restore",
    "ledger evidence key": "evidence key", "ledger evidence announce": "evidence announce",
    "ledger evidence checkpoint": "evidence checkpoint", "ledger evidence prove": "evidence prove",
    "ledger evidence check-proof": "evidence check_proof",
}  # fmt: skip
"""The words of each command: its file and its function."""
GROUPS = {
    "adaptive": "Budgets for whoever chooses along the way.",
    "audit": "Refute a claim of privacy, or say how far it was tried: dpcompose audit MODULE:NAME --epsilon E. "
    "It imports and runs the mechanism's own code.",
    "ledger": "Open, charge and audit privacy budgets.",
    "ledger admin": "Copy and restore a ledger as a whole.",
    "ledger evidence": "Sign the state of a log, and prove what is in it to whoever has the public key.",
    "statement": "Publish a guarantee, and check a published one: dpcompose statement PLAN --unit TEXT.",
}
"""The help of each group."""
DEFAULTS = {"audit": "mechanism", "statement": "write"}
"""The command of a group whose first word is none of its commands."""


@cache
def load(line: str) -> Command:
    """The command of these words, such as "ledger show"; only its own file is imported."""
    file, _, name = COMMANDS[line].partition(" ")
    command: Command = vars(import_module(f"dpcompose.cli.{file}"))[name]
    command.line = title(line)
    return command


def title(line: str) -> str:
    """The words that the documents of a command have: those of its group, if it is the default command."""
    group, _, name = line.rpartition(" ")
    return group if DEFAULTS.get(group) == name else line


def split(words: Sequence[str]) -> tuple[str, list[str]]:
    """The words of a command or of a group, the default command included, and the words after them."""
    line, rest = "", list(words)
    while line not in COMMANDS and rest:
        longer = f"{line} {rest[0]}".strip()
        if longer in COMMANDS or longer in GROUPS:
            line = longer
            del rest[0]
        elif line in DEFAULTS and rest[0] not in ("-h", "--help"):
            line = f"{line} {DEFAULTS[line]}"
        else:
            break
    return line, rest
