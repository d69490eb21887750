"""Certificates are verified without the mechanism; a changed one is refused, or is still true."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox
from dpcompose.audit import CertificateError, Pair, Subject, again, audit, check
from dpcompose.audit.certificate import canonical, text_of
from dpcompose.audit.check import _powers  # pyright: ignore[reportPrivateUsage]


@cache
def certificate() -> str:
    rng = np.random.default_rng(7)
    subject = Subject(
        lambda data: data, batch=lambda data, n: data + rng.laplace(scale=0.25, size=n)
    )
    pairs = [Pair(0.0, 1.0), Pair(0.0, 2.0, distance=2)]
    found = audit(
        subject,
        pairs,
        claim=BlackBox(1.0, delta=1e-3),
        samples=20_000,
        seed=bytes(32),
        ladder=False,
    )
    assert found.certificate is not None
    return text_of(found.certificate)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all leaves."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    if not isinstance(value, dict | list):
        yield path
    for key, each in inside:
        yield from places(each, (*path, key))


def changed(whole: dict[str, Any], path: tuple[Any, ...], draw: random.Random) -> None:
    inside: Any = whole
    for key in path[:-1]:
        inside = inside[key]
    old = inside[path[-1]]
    match old:
        case bool():
            inside[path[-1]] = not old
        case int():
            inside[path[-1]] = draw.choice([old + 1, old - 1, 2 * old + 1, -old - 1, 1 << 50])
        case float():
            inside[path[-1]] = old * 2 + 1
        case _:
            inside[path[-1]] = old + "1" if draw.random() < 0.5 or not old else old[:-1]


def resealed(whole: dict[str, Any]) -> str:
    """As a forger would: the digest over all anew."""
    body = {key: value for key, value in whole.items() if key != "digest"}
    return canonical(body | {"digest": hashlib.sha256(canonical(body)).hexdigest()}).decode()


def test_a_valid_one_is_checked() -> None:
    found = check(certificate())
    assert found["refuted"] and found["log_wealth"] >= 13.8


def test_a_changed_byte_is_rejected() -> None:
    text, draw = certificate(), random.Random(1)
    for _ in range(200):
        place = draw.randrange(len(text))
        other = chr(draw.randrange(32, 127))
        if other != text[place]:
            with pytest.raises(CertificateError):
                check(text[:place] + other + text[place + 1 :])


def test_a_changed_field_is_refused_or_still_true() -> None:
    """Also where the digest over all is computed anew: the chain, the coins and the wealth remain to be met."""
    whole, draw = json.loads(certificate()), random.Random(2)
    leaves = list(places(whole))
    for number in range(300):
        path = draw.choice(
            leaves if number % 2 else [each for each in leaves if each[0] != "batches"]
        )
        forged = copy.deepcopy(whole)
        changed(forged, path, draw)
        try:
            found = check(resealed(forged))
        except CertificateError:
            continue
        assert forged["header"] == whole["header"] and found["samples"] == whole["samples"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"format":"dpcompose-audit-1"}', "NaN", "[" * 100_000]
)
def test_what_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(CertificateError):
        check(text)


FORGERIES: tuple[tuple[tuple[str | int, ...], Any], ...] = (
    (("header", "alpha"), "1e-99999999"),
    (("header", "alpha"), "1/1000000"),
    (("header", "alpha"), " 1e-06"),
    (("header", "one_point"), 1),
    (("header", "claims", 0, "distance"), True),
    (("batches", 0, "stakes", "rows"), 10**15),
    (("samples",), True),
    (("log_wealth",), "nan"),
    (("more",), 1),
)


@pytest.mark.parametrize(("path", "value"), FORGERIES)
def test_what_takes_for_ever_or_has_two_spellings_is_refused(
    path: tuple[Any, ...], value: Any
) -> None:
    whole = json.loads(certificate())
    inside: Any = whole
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    with pytest.raises(CertificateError):
        check(resealed(whole))


def test_only_the_end_of_a_line_may_follow() -> None:
    assert check(certificate() + "\n") == check(certificate())
    for text in (certificate() + "\n\n", " " + certificate(), certificate() + " "):
        with pytest.raises(CertificateError):
            check(text)


@pytest.mark.parametrize("number", [1, 2, 3, 7, 64, 1000])
def test_groups_are_summed_by_doubling(number: int) -> None:
    direct = sum(math.exp(0.01 * step) for step in range(number))
    assert math.isclose(float(_powers(Decimal("0.01"), number)), direct, rel_tol=1e-12)


def test_the_checker_agrees_with_the_wealth() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        scale = 0.7 + 0.06 * (seed % 5)
        subject = Subject(
            lambda data: data,
            batch=lambda data, n, s=scale, r=rng: data + r.laplace(scale=s, size=n),
        )
        found = audit(subject, [Pair(0.0, 1.0)], claim=BlackBox(1.0), samples=1500, ladder=False)
        assert found.certificate is not None
        assert abs(check(text_of(found.certificate))["log_wealth"] - found.log_wealth) < 1e-8


def test_a_forger_is_found_by_betting_again() -> None:
    """The stakes win again on the broken mechanism, and win nothing on a correct one: its noise is on a lattice, since
    the bits of floats tell the worlds apart, and bets that go on find that too."""
    whole, pairs = json.loads(certificate()), [Pair(0.0, 1.0), Pair(0.0, 2.0, distance=2)]
    for scale, least, most in ((0.25, 7.0, 100.0), (1.0, -100.0, 6.0)):
        rng = np.random.default_rng(3)

        def batch(
            data: float, n: int, scale: float = scale, rng: np.random.Generator = rng
        ) -> np.ndarray:
            return np.round((data + rng.laplace(scale=scale, size=n)) * 2**30) / 2**30

        subject = Subject(lambda data: data, batch=batch)
        assert least < again(whole, subject, pairs).log_wealth < most
