"""Documents as types: strict reading with errors that name the member, writing in full, and the schema."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dpcompose.document import Document, Number, checked, dumps, plain, read, schema
from dpcompose.errors import DomainError


class Run(Document, frozen=True):
    """A document in a document."""

    name: str
    times: int = 1


class Report(Document, frozen=True):
    """A document."""

    epsilon: Number
    runs: tuple[Run, ...] = ()
    caps: dict[str, str] | None = None


FULL = Report(epsilon=math.inf, runs=(Run(name="é", times=3),), caps={"rho": "0.1"})


def test_a_document_reads_as_it_was_written() -> None:
    assert read(Report, dumps(FULL), name="FILE") == Report(
        epsilon="inf", runs=FULL.runs, caps=FULL.caps
    )
    assert plain(FULL) == {
        "epsilon": "inf",
        "runs": [{"name": "é", "times": 3}],
        "caps": {"rho": "0.1"},
    }
    # msgspec itself writes 0.00001, and null.
    assert dumps({"small": 1e-05, "large": -math.inf}, indent=None) == (
        '{"small": 1e-05, "large": "-inf"}'
    )
    with pytest.raises(ValueError, match="JSON compliant"):
        dumps(Report(epsilon=math.nan))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "JSON text"),
        ("[" * 10**5, "JSON text"),
        ('{"epsilon": NaN}', "JSON text"),
        ('{"epsilon": 1e999}', "JSON text"),
        (b'\xff"', "JSON text"),
        ("[]", r"FILE = \[\]: expected object"),
        ("{}", "FILE = {}: expected a member 'epsilon'"),
        ('{"epsilon": true}', "FILE.epsilon = True: expected float or str"),
        ('{"epsilon": "infinite"}', "FILE.epsilon = 'infinite': expected one of the texts"),
        ('{"epsilon": 1, "more": 2}', "expected no member 'more'"),
        ('{"epsilon": 1, "runs": null}', "FILE.runs is missing: expected array"),
        (
            '{"epsilon": 1, "runs": [{"name": "a"}, {"name": "b", "times": 1.5}]}',
            r"FILE.runs\[1\].times = 1.5: expected int",
        ),
        ('{"epsilon": 1, "caps": {"a": 1}}', "FILE.caps.* expected str"),
    ],
)
def test_what_is_no_such_document_is_named(text: str, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        read(Report, text, name="FILE")


def test_a_parsed_value_is_read_as_strictly() -> None:
    value: Any = {"name": "x", "times": True}
    with pytest.raises(DomainError, match=r"run\.times = True: expected int"):
        checked(Run, value, name="run")


def test_the_schema_takes_the_document_and_no_other() -> None:
    validate = pytest.importorskip("jsonschema").validate
    validate(json.loads(dumps(FULL)), schema(Report))
    for wrong in ({}, {"epsilon": "x"}, {"epsilon": 1, "more": 2}):
        with pytest.raises(Exception, match=r"valid|expected|required|Additional"):
            validate(wrong, schema(Report))
