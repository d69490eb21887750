"""A privacy statement as an entry of the Differential Privacy Deployments Registry, in YAML.

The registry (github.com/opendp/deployments-registry-data, as of July 2026) accepts only its own
fields, and for some of them only words of a list; both are checked here. It displays strings as
Markdown: text of the publisher is passed on unchanged, text of dpcompose is escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from typing import Any, cast

from dpcompose.errors import DomainError, MissingExtraError
from dpcompose.interop.statement import Statement, markdown, text_of, visible

CHOICES: Mapping[str, tuple[str, ...]] = {
    "product_type": (
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries",
    ),
    "sector": ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
    "model": ("Local", "Central", "Shuffle", "Federated", "Varies"),
    "release_type": ("One release", "Many releases"),
    "data_source": ("Static", "Dynamic"),
    "access": ("Interactive", "Non-interactive"),
}  # fmt: skip
"""The words that the registry accepts, for each field restricted to a list."""
_OPTIONAL = {
    *CHOICES,
    "sources",
    "notes",
    "data_domain",
    "unprotected",
    "post_processing",
    "tuning",
} - {"product_type"}


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
        given: dict[str, Any] = {
            name: self.__dict__[name] for name in self.__dataclass_fields__ if name != "_"
        }
        for name in ("curators", "authors"):
            people = given.pop(name)
            if isinstance(people, str) or not isinstance(people, Sequence) or not people:
                raise DomainError(name, people, "a list of at least one name")
            object.__setattr__(
                self, name, tuple(_prose(name, each) for each in cast("Sequence[Any]", people))
            )
        day, slug = given.pop("publication_date"), given.pop("slug")
        try:
            object.__setattr__(
                self, "publication_date", date.fromisoformat(str(day)[:10]).isoformat()
            )
            if len(str(day)) != 10:
                raise ValueError
        except ValueError:
            raise DomainError("publication_date", day, "a date such as 2026-07-01") from None
        for name, value in given.items():
            if value is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, _prose(name, value))
            if name in CHOICES and value is not None and value not in CHOICES[name]:
                raise DomainError(name, value, f"one of {', '.join(CHOICES[name])}")
        object.__setattr__(self, "name", " ".join(self.name.split()))
        made = slug or re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        if not isinstance(made, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", made):
            raise DomainError("slug", slug, "small letters and digits, with dashes between them")
        object.__setattr__(self, "slug", made)


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
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("registry_yaml", "registry") from None
    if status not in ("Draft", "Pending"):
        raise DomainError("status", status, "'Draft' or 'Pending'")
    facts = deployment
    stated = all((facts.model, facts.release_type, facts.data_source, facts.access))
    ran = "; ".join(markdown(run.described) for run in statement.runs)
    prose = [markdown(each) for each in (*statement.attacks, *statement.assumptions)]
    loss: dict[str, Any] = {"epsilon": float(statement.epsilon)}
    sections: dict[str, dict[str, Any]] = {
        "basic": {
            "name": facts.name,
            "data_curators": list(facts.curators),
            "intended_use": facts.intended_use,
            "data_product_type": facts.product_type,
            "data_product_region": facts.region,
            "description": facts.description,
            "publication_date": facts.publication_date,
            "data_product_sector": facts.sector,
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if statement.delta > 0 else "Pure DP",
            "data_domain": facts.data_domain,
            "unprotected_quantities": facts.unprotected,
        },
        "privacy_loss": {
            "privacy_unit": markdown(statement.unit),
            "privacy_unit_details": markdown(statement.neighbors),
            "privacy_parameters": loss
            | ({"delta": statement.delta} if statement.delta > 0 else {}),
            "privacy_parameters_details": "\n".join(prose),
        },
        "deployment_model": {
            "model_name": facts.model,
            "release_type": facts.release_type,
            "data_source_type": facts.data_source,
            "access_type": facts.access,
        },
        "accounting": {
            "post_processing": facts.post_processing,
            "composition": "Certified composition of the privacy losses of all mechanisms by dpcompose, rounded up.",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": facts.tuning,
            "mechanisms": ran,
        },
        "administrative": {
            "sources": facts.sources,
            "notes": facts.notes,
            "registry_authors": list(facts.authors),
        },
    }
    filled = {
        name: {key: value for key, value in rows.items() if value is not None}
        for name, rows in sections.items()
    }
    entry = {"url_slug": facts.slug, "status": status, "tier": 2 if stated else 1}
    document = entry | {"deployment": {name: rows for name, rows in filled.items() if rows}}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=math.inf)
