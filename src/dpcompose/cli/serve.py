"""`dpcompose serve`: a ledger behind identities, over HTTP, with pages that show it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcompose.cli.options import option
from dpcompose.cli.output import error_boundary
from dpcompose.cli.streams import stderr, stdout
from dpcompose.errors import DomainError, MissingExtraError

if TYPE_CHECKING:
    from dpcompose.serve import Identities

LedgerUrl = Annotated[str | None, typer.Option("--ledger", metavar="URL", envvar="DPCOMPOSE_LEDGER")]


def serve(
    ledger: LedgerUrl = None,
    people: Annotated[str, option("The identities: a file, or postgresql://user@host/database.", "URL")] = "people.db",
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.", min=1, max=65535)] = 8000,
    invite: Annotated[
        str | None, option("Print a token and end: keeper, analyst or auditor, name, scope.", "ROLE:NAME[:SCOPE]")
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a second that each identity may make.", min=1)] = 200.0,
    demo: Annotated[bool, typer.Option("--demo", help="Start with people and budgets that are thrown away.")] = False,
) -> None:
    """Serve a ledger to people who do not trust each other. Put a proxy with TLS before it."""
    with error_boundary():
        try:
            from dpcompose.serve import Identities, Service
            from dpcompose.serve.demo import demo_service
            from dpcompose.serve.web import application
        except ModuleNotFoundError:
            raise MissingExtraError("The service", "serve") from None
        from dpcompose.ledger import Ledger

        if invite is not None:
            stdout(f"{_invited(Identities.open(people), invite)}\n")
            return
        if demo:
            service, tokens = demo_service(Path(tempfile.mkdtemp(prefix="dpcompose-demo-")))
            for who, token in tokens.items():
                stderr(f"{who}: {token}")
        elif ledger is None:
            raise DomainError("--ledger", None, "a ledger, or --demo")
        else:
            service = Service(Ledger.open(ledger, create=False), Identities.open(people))
        import uvicorn

        uvicorn.run(application(service, rate=rate), host=host, port=port, access_log=False, server_header=False)


def _invited(people: Identities, words: str) -> str:
    from dpcompose.serve import Role

    role, _, rest = words.partition(":")
    name, _, scope = rest.partition(":")
    if role not in set(Role):
        raise DomainError("--invite", words, "keeper:Ada, or analyst:Ben:city/health")
    return people.invite(name, Role(role), scope)
