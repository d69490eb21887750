"""The dashboard: a page for each role, rendered here; its one script only asks for the page anew."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from urllib.parse import urlencode

from jinja2 import DictLoader, Environment, StrictUndefined

from dpcompose.serve.identity import Identity
from dpcompose.serve.look import SEARCHED, Look
from dpcompose.serve.permission import Role
from dpcompose.serve.service import Service

_TEMPLATES = files("dpcompose.serve") / "templates"
STYLE = (_TEMPLATES / "style.css").read_text("utf-8")
SCRIPT = (_TEMPLATES / "live.js").read_text("utf-8")
_TYPED = (*SEARCHED, "at", "scope", "mechanism", "before")


@cache
def _environment() -> Environment:
    names = ("base.html", "login.html", "dashboard.html", "forms.html")
    pages = {name: (_TEMPLATES / name).read_text("utf-8") for name in names}
    made = Environment(
        loader=DictLoader(pages), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.filters["query"] = _query  # pyright: ignore[reportUnknownMemberType]
    return made


def _query(named: dict[str, object]) -> str:
    return f"/?{urlencode(named)}"


def login_page(problem: str) -> str:
    """Where a token is typed."""
    return _environment().get_template("login.html").render(problem=problem)


def page_for(
    service: Service,
    who: Identity,
    asked: Mapping[str, str],
    *,
    form: str = "",
    said: Mapping[str, str] | None = None,
) -> str:
    """The page of an identity; what it asks in the URL is answered on it.

    Args:
        service: What answers.
        who: Who looks.
        asked: The fields of the URL.
        form: What proves that a form came from this page.
        said: What became of a form that was sent.
    """
    typed = {name: asked.get(name, "")[:4096] for name in _TYPED}
    with service.ledger.moment() as moment:
        found = Look(service, moment, who, typed)
        return (
            _environment()
            .get_template("dashboard.html")
            .render(
                who=who,
                form=form,
                said=said or {},
                asked=typed,
                here="/?" + urlencode({name: text for name, text in typed.items() if text}),
                look=found,
                verified=service.verify(who, found.tops[0], {})
                if "verify" in asked and found.tops and who.role is Role.AUDITOR
                else None,
            )
        )
