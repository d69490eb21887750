"""A privacy statement as an entry of the Differential Privacy Deployments Registry, in YAML.

The registry (github.com/opendp/deployments-registry-data, as of July 2026) accepts only its own
fields, and for some of them only words of a list; both are checked here. It displays strings as
Markdown: text of the publisher is passed on unchanged, text of dpcompose is escaped.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, fields
from datetime import date
from importlib.resources import files
from typing import Any, cast

from dpcompose.errors import DomainError, optional_library
from dpcompose.interop.statement import Statement, markdown, text_of, visible

_SCHEMA = tomllib.loads((files("dpcompose.interop") / "registry.toml").read_text("utf-8"))
CHOICES: Mapping[str, list[str]] = _SCHEMA["choices"]
"""The words that the registry accepts, for each field restricted to a list."""


@dataclass(frozen=True)
class Deployment:
    """Facts about a deployment that cannot be derived from its mechanisms.

    Args:
        name: The name of the data product.
        curators: The publishers, at least one.
        authors: The authors of the entry, at least one.
        description: A description of the data product in one or more sentences.
        intended_use: Its intended use in one or more sentences.
        product_type: A word of `CHOICES`, as are `sector`, `model`, `release_type`, `data_source`
            and `access`.
        region: The region that the data describe, or whose laws apply.
        publication_date: A date, or its text such as "2026-07-01".
        sector: The sector of the product.
        model: The trust model, such as "Central" or "Local".
        release_type: Whether there is one release or many.
        data_source: Whether the data are static or new data arrive.
        access: Whether analysts can ask queries.
        sources: Links to papers and posts.
        notes: Further remarks.
        data_domain: The datasets that are protected.
        unprotected: What is published without noise.
        post_processing: How outputs are processed.
        tuning: How parameters were chosen, and the privacy cost of that.
        slug: The address in the registry; by default derived from the name.

    Raises:
        DomainError: If a field is missing or empty, or is not one of the registry's words.
    """

    name: str
    _: KW_ONLY
    curators: Sequence[str]
    authors: Sequence[str]
    description: str
    intended_use: str
    product_type: str
    region: str
    publication_date: str | date
    sector: str | None = None
    model: str | None = None
    release_type: str | None = None
    data_source: str | None = None
    access: str | None = None
    sources: str | None = None
    notes: str | None = None
    data_domain: str | None = None
    unprotected: str | None = None
    post_processing: str | None = None
    tuning: str | None = None
    slug: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            name, value = each.name, self.__dict__[each.name]
            if name in ("curators", "authors"):
                if isinstance(value, str) or not isinstance(value, Sequence) or not value:
                    raise DomainError(name, value, "a list of at least one name")
                value = tuple(_prose(name, person) for person in cast("Sequence[Any]", value))
            elif name == "publication_date":
                value = _day(value)
            elif name != "slug" and (value is not None or each.default is not None):
                value = _prose(name, value)
            if name in CHOICES and value is not None and value not in CHOICES[name]:
                raise DomainError(name, value, f"one of {', '.join(CHOICES[name])}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "name", " ".join(self.name.split()))
        slug = self.slug or re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        if not isinstance(slug, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(
                "slug", self.slug, "small letters and digits, with dashes between them"
            )
        object.__setattr__(self, "slug", slug)


def _day(value: Any) -> str:
    with suppress(ValueError):
        if len(str(value)) == 10:
            return date.fromisoformat(str(value)).isoformat()
    raise DomainError("publication_date", value, "a date such as 2026-07-01")


def _prose(name: str, value: Any) -> str:
    """The publisher's Markdown text; DomainError for a double backslash, which the registry takes
    for a mistake in a formula.
    """
    text = visible(text_of(name, value))
    if re.search(r"\\\\(?![()])", text):
        raise DomainError(
            name, value, "text without two backslashes in a row, but before a parenthesis"
        )
    return text


def registry_yaml(statement: Statement, deployment: Deployment, *, status: str = "Draft") -> str:
    """The registry entry of a statement, as the contents of a file in the registry's folder
    `deployments`.

    Its tier is 2 if model, release type, data source and access are given, otherwise 1.

    Args:
        statement: The statement, as `statement` returned it.
        deployment: The facts about the deployment.
        status: "Draft" or "Pending"; other statuses are assigned by the registry.

    Raises:
        DomainError: If the status is another one.
        MissingExtraError: If PyYAML is not installed (extra `registry`).
    """
    yaml = optional_library("yaml", "registry_yaml", "registry")
    if status not in ("Draft", "Pending"):
        raise DomainError("status", status, "'Draft' or 'Pending'")
    facts = vars(deployment)
    values: dict[str, Any] = facts | {
        "variant": "Approximate DP" if statement.delta > 0 else "Pure DP",
        "unit": markdown(statement.unit),
        "neighbors": markdown(statement.neighbors),
        "parameters": {"epsilon": float(statement.epsilon)}
        | ({"delta": statement.delta} if statement.delta > 0 else {}),
        "details": "\n".join(
            markdown(each) for each in (*statement.attacks, *statement.assumptions)
        ),
        "composition": "Certified composition of the privacy losses of all mechanisms by dpcompose, rounded up.",
        "mechanisms": "; ".join(markdown(run.described) for run in statement.runs),
    }
    sections = {
        section: {name: values[own] for name, own in names.items() if values[own] is not None}
        for section, names in _SCHEMA["sections"].items()
    }
    stated = all(facts[name] for name in ("model", "release_type", "data_source", "access"))
    entry = {"url_slug": deployment.slug, "status": status, "tier": 2 if stated else 1}
    document = entry | {"deployment": {name: rows for name, rows in sections.items() if rows}}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=math.inf)
