"""The page Ask in a browser, by keyboard alone: the price while typing, the answer, its file."""
# Playwright and axe are extras of their own.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("duckdb")
pytest.importorskip("opendp")
from dpcompose.ledger import entry
from tests.browser.test_dashboard import _One
from tests.browser.test_pages import SCHEMES, SERIOUS, SHOTS, browser, looked_at, pytestmark
from tests.serve.test_counter import Clinic

__all__ = ["browser", "pytestmark"]


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[tuple[Clinic, str]]:
    """A counter behind a port, and its address."""
    import uvicorn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry, "clock", entry.clock)
        made = Clinic(tmp_path)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        config = uvicorn.Config(made.app, port=port, log_level="error")
        server = uvicorn.Server(config)
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.01)
        yield made, f"http://127.0.0.1:{port}"
        server.should_exit = True
        made.desks.desks["clinic"].worker.close()


def test_an_analyst_asks_by_keyboard_and_sees_the_price_before(
    browser: Any, counter: tuple[Clinic, str]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    (clinic, address), wrong = counter, list[str]()
    SHOTS.mkdir(exist_ok=True, parents=True)

    def noted(message: Any) -> None:
        if message.type == "error":
            wrong.append(message.text)

    for scheme, width in SCHEMES:
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
        context.add_cookies([{"name": "dpcompose", "value": clinic.token, "url": address}])
        path = SHOTS / "ask"
        wrong += looked_at(_One(context), f"{address}/ask", shot=path)
        tab = context.new_page()
        tab.on("console", noted)
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto(f"{address}/ask")
        tab.get_by_label("SQL").focus()
        tab.keyboard.type(f"SELECT ward, COUNT(*) AS n{width} FROM visits GROUP BY ward")
        tab.get_by_text("Nothing was charged.").wait_for(timeout=30_000)
        before = clinic.kinds.count("granted")
        for _ in range(4):  # the price, the error, one button, the other
            tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        tab.get_by_text("The same statement again costs nothing.").wait_for(timeout=30_000)
        assert clinic.kinds.count("granted") == before + 1
        assert tab.locator("tbody").first.locator("tr").count() == 2
        with tab.expect_download() as found:
            tab.get_by_role("link", name="As CSV").press("Enter")
        assert Path(found.value.path()).read_text().startswith(f"ward,n{width}")
        found = Axe().run(tab).response["violations"]
        wrong += [
            f"{each['id']}: {each['nodes'][0]['html'][:120]}"
            for each in found
            if each["impact"] in SERIOUS
        ]
        tab.screenshot(path=SHOTS / f"ask-answer-{width}-{scheme}.png", full_page=True)
        context.close()
    assert wrong == []
