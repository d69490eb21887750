"""Pages of the demo and of the site in a browser: wide, narrow, dark, printed, and read by axe (make test-browser)."""
# Playwright and axe are extras of their own.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out"
LOOK = (Path(__file__).parent / "look.js").read_text("utf-8")
SHOTS = OUT / "screenshots"
REQUIRED = "browser" in os.environ.get("DPCOMPOSE_REQUIRE", "")
CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
SCHEMES = (("light", 400), ("dark", 1400))
"""With the width at which axe reads the page."""
SERIOUS = {"serious", "critical"}
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (REQUIRED or CHROMIUM.exists()), reason="Chromium is not installed"),
]


def _pages() -> list[Path]:
    return (
        [*sorted(OUT.glob("*.html")), *sorted((OUT / "site").rglob("*.html"))] if REQUIRED else []
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the site, whose page of errors asks for absolute paths."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(OUT / "site"))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def looked_at(browser: Any, address: str, *, shot: Path | None = None) -> list[str]:
    """The defects of a page, a line each: every width in light and dark, axe once in each, and its PDF is written."""
    from axe_playwright_python.sync_playwright import Axe

    wrong: list[str] = []
    for scheme, read_at in SCHEMES:
        tab = browser.new_page(color_scheme=scheme, reduced_motion="reduce")
        try:
            tab.goto(address)
            for width in (400, 1400):
                tab.set_viewport_size({"width": width, "height": 900})
                found, view = tab.evaluate(LOOK), f"{width} {scheme}"
                wrong += [f"wider than the window: {view}"] if found["wide"] else []
                wrong += [f"broken inside: {word}, {view}" for word in found["broken"]]
                wrong += [f"not {scheme}: {view}"] if found["dark"] != (scheme == "dark") else []
                for each in Axe().run(tab).response["violations"] if width == read_at else ():
                    if each["impact"] in SERIOUS:
                        wrong.append(
                            f"{each['id']}: {each['nodes'][0]['html'][:120]} ({len(each['nodes'])}), {view}"
                        )
                if shot is not None:
                    tab.screenshot(path=shot.with_name(f"{shot.name}-{width}-{scheme}.png"))
            if shot is not None and scheme == "light":
                printed = shot.with_name(f"{shot.name}.pdf")
                tab.pdf(path=printed, format="A4")
                wrong += undated(printed)
        finally:
            tab.close()
    return wrong


def undated(printed: Path) -> list[str]:
    """The sheets of a PDF without a date and its zone, a line each; none where pdftotext is missing."""
    if shutil.which("pdftotext") is None:
        return []
    command = ["pdftotext", str(printed), "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sheets = enumerate(text.split("\f")[:-1], 1)
    dated = re.compile(r"\d{4}-\d\d-\d\d[ \u00a0](\d\d:\d\d[ \u00a0]UTC|\(UTC\))")
    return [f"no date on sheet {number}" for number, sheet in sheets if not dated.search(sheet)]


@pytest.mark.skipif(not REQUIRED, reason="make test-browser writes the pages first")
@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(OUT)))
def test_a_page_is_readable(browser: Any, site: str, page: Path) -> None:
    SHOTS.mkdir(exist_ok=True, parents=True)
    inside = OUT / "site" in page.parents
    address = f"{site}/{page.relative_to(OUT / 'site')}" if inside else page.resolve().as_uri()
    shot = SHOTS / "-".join(page.relative_to(OUT).with_suffix("").parts)
    assert looked_at(browser, address, shot=shot) == []


@pytest.mark.skipif(not REQUIRED, reason="make test-browser has the browser")
@pytest.mark.parametrize(
    ("body", "defect"),
    [
        ('<p style="width: 900px">wide</p>', "wider than the window"),
        (
            '<p style="width: 3em; overflow-wrap: anywhere">incomprehensibilities</p>',
            "broken inside",
        ),
        ('<p style="color: #ddd; background: #fff">pale</p>', "color-contrast"),
        ("<img src='none.png'>", "image-alt"),
        ("<style>body { background: #fff }</style>", "not dark: 400"),
        ("<p>2026-11-28</p>", "no date on sheet 1"),
    ],
)
def test_what_is_wrong_is_found(browser: Any, tmp_path: Path, body: str, defect: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        f'<!doctype html><html lang="en"><title>t</title><main><h1>t</h1>{body}</main></html>',
        "utf-8",
    )
    shot = tmp_path / "page"
    assert any(each.startswith(defect) for each in looked_at(browser, page.as_uri(), shot=shot))
