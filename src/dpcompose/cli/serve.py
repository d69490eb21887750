"""`dpcompose serve`: a ledger behind identities, over HTTP, with pages that show it."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

from dpcompose.cli.command import LedgerUrl, Result, command, option
from dpcompose.cli.inputs import opened
from dpcompose.cli.output import stderr, stdout
from dpcompose.errors import DomainError, MissingExtraError, printable

if TYPE_CHECKING:
    from dpcompose.ledger import Ledger
    from dpcompose.serve import Counter, Identities, Published, Service


@command(doing=None)
def serve(
    typed: Mapping[str, Any],
    ledger: Annotated[str | None, option(envvar="DPCOMPOSE_LEDGER")] = None,
    people: str | None = None,
    host: str = "127.0.0.1",
    port: Annotated[int, option(min=1, max=65535)] = 8000,
    issuer: str | None = None,
    audience: str | None = None,
    checkpoints: Path | None = None,
    trust: list[str] | None = None,
    rate: Annotated[float, option(min=1)] = 200.0,
    log: bool = False,
    unit: bool = False,
    demo: bool = False,
    catalog: Path | None = None,
) -> None:
    """Serve a ledger to people who do not trust each other. Put a proxy with TLS before it.

    Args:
        ledger (URL): A file, or postgresql://user@host/database.
        people (FILE): A file of people of an earlier version, to take over; or else people.db.
        host: The address to listen at.
        port: The port to listen at.
        issuer (URL): An OpenID Connect issuer whose tokens are taken too.
        audience (NAME): The name of this service at the issuer.
        checkpoints (FILE): The file that `ledger evidence checkpoint` wrote, for proofs on the pages.
        trust (KEY): The public key that signs them.
        rate: Requests a second that each identity may make.
        log: A line of JSON for each request, to the standard error.
        unit: Print a unit of systemd for this ledger, and end.
        demo: Start with people and budgets that are thrown away.
        catalog (FILE): A TOML file of scopes and their tables, which analysts may ask here.
    """
    try:
        from dpcompose.serve import Identities, Issuer, Service, application, take_over
    except ModuleNotFoundError:
        raise MissingExtraError("The service", "serve") from None
    from dpcompose.ledger import Ledger

    verified = None if issuer is None else Issuer(issuer, audience or "")
    if ledger is None and not demo:
        raise DomainError("--ledger", None, "a ledger, or --demo")
    if unit:
        stdout(_unit(typed))
        return
    if demo:
        service = _demo()
    else:
        kept, shown = Ledger.open(ledger or "", create=False), _published(checkpoints, trust or [])
        earlier = people or (ledger if _is_on_server(ledger or "") else "people.db")
        if _is_on_server(earlier or "") or people or Path("people.db").exists():
            take_over(kept, earlier or "")
        counter = None if catalog is None else _counter(kept, catalog)
        service = Service(kept, Identities(kept, verified), shown, counter)
    if (ahead := service.people.ahead) > 60:
        what = "this clock is %.0f s behind a time that was recorded; ledger people --trust-clock undoes it"
        logging.getLogger("dpcompose.serve").warning(what, ahead)
    if log:
        logging.basicConfig(format="%(message)s", level=logging.WARNING)
        logging.getLogger("dpcompose.serve.requests").setLevel(logging.INFO)
    from dpcompose.serve import require_only, run

    file = None if demo else Ledger.file_of(ledger or "")
    if file is not None:
        require_only(file.resolve())
    Thread(target=service.verifier.verify_weekly, daemon=True).start()
    run(application(service, rate=rate), host=host, port=port)


def _counter(ledger: Ledger, file: Path) -> Counter:
    """The tables of a file; answers are kept beside it, by one process at a time, unless the ledger is in a database."""
    from dpcompose.files import load_text, read_toml
    from dpcompose.ledger import Ledger
    from dpcompose.serve import Counter, require_only

    text, answers = load_text(file, most=1_000_000, what="a catalog"), file.with_suffix(".answers")
    if ledger.store.source is None or Ledger.file_of(ledger.store.source) is not None:
        require_only(answers)
    return Counter.open(ledger, answers, read_toml(text, source=str(file)))


def _demo() -> Service:
    from dpcompose.serve import demo_service

    service, tokens = demo_service(Path(tempfile.mkdtemp(prefix="dpcompose-demo-")))
    for who, token in tokens.items():
        stderr(f"{who}: {token}")
    return service


def _unit(typed: Mapping[str, Any]) -> str:
    """The unit of a service with the options that were typed."""
    from importlib.resources import files

    words: list[str] = []
    for name, value in typed.items():
        if name in ("--unit", "--log"):
            continue
        if name == "--demo":
            raise DomainError("--unit", name, "the options of a service that goes on")
        words += [
            word for one in (value if name == "--trust" else [value]) for word in (name, str(one))
        ]
    for word in words:
        if not word.isprintable() or set(word) & set(" \"'\\"):
            raise DomainError(
                "--unit", word, "names and addresses without spaces, quotes and backslashes"
            )
    form = (files("dpcompose.serve") / "templates" / "dpcompose.service").read_text("utf-8")
    program = Path(sys.argv[0]).resolve()
    start = str(program) if program.name == "dpcompose" else f"{sys.executable} -m dpcompose"
    return form.format(command=start, options=" ".join(words).replace("%", "%%").replace("$", "$$"))


def _published(file: Path | None, trust: list[str]) -> Published | None:
    from dpcompose.ledger import VerifierKey
    from dpcompose.serve import Published

    if (file is None) != (not trust):
        raise DomainError(
            "--checkpoints", str(file), "a file, and with --trust the key that signs it"
        )
    return None if file is None else Published(file, [VerifierKey.read(each) for each in trust])


def _is_on_server(url: str) -> bool:
    return url.startswith(("postgresql:", "postgres:", "postgresql+psycopg:"))


@command("json", doing=None)
def people(
    url: LedgerUrl,
    name: str | None = None,
    invite: list[str] | None = None,
    subject: str | None = None,
    issuer: str | None = None,
    revoke: list[str] | None = None,
    trust_clock: bool = False,
) -> Result:
    """List everybody who was ever invited to the service of a ledger, the newest first; or invite and revoke.

    Args:
        name (NAME): List one name alone.
        invite (ROLE:NAME[:SCOPE]): Print a token; may be repeated: keeper, analyst or auditor, name, scope.
        subject (SUBJECT): With --invite: who it is at the issuer, instead of a token.
        issuer (URL): With --subject: the OpenID Connect issuer.
        revoke (NAME[:SCOPE]): Revoke the tokens of a name; may be repeated.
        trust_clock: Undo a time that was recorded ahead of the clock.
    """
    try:
        from dpcompose.serve import Identities, Issuer
    except ModuleNotFoundError:
        raise MissingExtraError("The service", "serve") from None

    is_reading = not (invite or revoke or trust_clock)
    with opened(url, reading=is_reading) as ledger:
        own = Identities(ledger, None if issuer is None else Issuer(issuer, issuer))
        lines = [f"{own.trust_clock():.0f} s were undone"] if trust_clock else []
        lines += [_invited(own, each, subject) for each in invite or []]
        lines += [f"{_revoked(own, each)} revoked" for each in revoke or []]
        listed = [vars(each) for _, each in own.listed("") if name in (None, each.name)]
    text = "".join(f"{line}\n" for line in (_shown(listed) if is_reading else lines))
    return Result(lambda: {"ledger": url, "people": listed, "changes": lines}, text=text)


def _shown(people: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for each in people:
        scope, gone = each["subtree"] or "every scope", each["revoked"]
        end = f"until {each['until'][:16]}Z"
        end = f"revoked {gone[:16]}Z by {each['revoked_by']}" if gone else end
        who = f"{each['role']} {each['name']} of {scope}: {end}"
        yield printable(f"{who}, invited {each['at'][:16]}Z by {each['by']}")


def _revoked(people: Identities, words: str) -> int:
    name, _, scope = words.partition(":")
    count = people.revoke(name, scope)
    if not count:
        domain = "a name and scope as they were invited, such as Grace, or Ada:city/health"
        raise DomainError("--revoke", words, domain)
    return count


def _invited(people: Identities, words: str, subject: str | None) -> str:
    from dpcompose.serve import Role

    role, _, rest = words.partition(":")
    name, _, scope = rest.partition(":")
    if role not in set(Role):
        raise DomainError("--invite", words, "keeper:Ada, or analyst:Ben:city/health")
    if subject is None:
        return people.invite(name, Role(role), scope)
    people.admit(subject, name, Role(role), scope)
    return "invited"
