"""Pages of the demo and of the site in a browser: wide, narrow, dark, printed, and read by axe (make test-browser)."""
# Playwright and axe are extras of their own.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Iterator
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
SERIOUS = {"serious", "critical"}
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (REQUIRED or CHROMIUM.exists()), reason="Chromium is not installed"),
]


def _pages() -> list[Path]:
    return [*sorted(OUT.glob("*.html")), *sorted((OUT / "site").rglob("*.html"))] if REQUIRED else []


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


def looked_at(browser: Any, page: Path, *, width: int, scheme: str, shots: Path | None = None) -> list[str]:
    """What is wrong with a page: one line for each defect."""
    from axe_playwright_python.sync_playwright import Axe

    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    try:
        tab.goto(page.resolve().as_uri())
        found = tab.evaluate(LOOK)
        wrong = ["wider than the window"] if found["wide"] else []
        wrong += [f"broken inside: {word}" for word in found["broken"]]
        for each in Axe().run(tab).response["violations"]:
            if each["impact"] in SERIOUS:
                wrong.append(f"{each['id']}: {each['nodes'][0]['html'][:120]} ({len(each['nodes'])})")
        if shots is not None:
            name = f"{page.parent.name}-{page.stem}-{width}-{scheme}"
            tab.screenshot(path=shots / f"{name}.png", full_page=width > 1000)
            if scheme == "light" and width > 1000:
                tab.pdf(path=shots / f"{name}.pdf", format="A4")
        return wrong
    finally:
        tab.close()


@pytest.mark.skipif(not REQUIRED, reason="make test-browser writes the pages first")
@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(OUT)))
def test_a_page_is_readable(browser: Any, page: Path) -> None:
    SHOTS.mkdir(exist_ok=True, parents=True)
    found = {
        f"{width} {scheme}": wrong
        for width in (400, 1400)
        for scheme in ("light", "dark")
        if (wrong := looked_at(browser, page, width=width, scheme=scheme, shots=SHOTS))
    }
    assert found == {}


@pytest.mark.skipif(not REQUIRED, reason="make test-browser has the browser")
@pytest.mark.parametrize(
    ("body", "defect"),
    [
        ('<p style="width: 900px">wide</p>', "wider than the window"),
        ('<p style="width: 3em; overflow-wrap: anywhere">incomprehensibilities</p>', "broken inside"),
        ('<p style="color: #ddd; background: #fff">pale</p>', "color-contrast"),
        ("<img src='none.png'>", "image-alt"),
    ],
)
def test_what_is_wrong_is_found(browser: Any, tmp_path: Path, body: str, defect: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(f'<!doctype html><html lang="en"><title>t</title><main><h1>t</h1>{body}</main></html>', "utf-8")
    assert any(each.startswith(defect) for each in looked_at(browser, page, width=400, scheme="light"))
