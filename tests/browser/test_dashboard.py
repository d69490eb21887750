"""The dashboard of a service in a browser, as its people use it: recorded in out/screenshots (make test-browser)."""
# Playwright and axe are extras of their own.
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
# ruff: noqa: E402

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
from dpcompose import Gaussian, Laplace
from dpcompose.errors import OverdrawnError
from dpcompose.serve import RemoteAccount
from dpcompose.serve.demo import demo_service
from dpcompose.serve.web import application
from tests.browser.test_pages import SCHEMES, SERIOUS, SHOTS, browser, looked_at, pytestmark

__all__ = ["browser", "pytestmark"]


class Running:
    """The demo behind a port."""

    def __init__(self, folder: Path) -> None:
        import uvicorn

        self.service, self.tokens = demo_service(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        app = application(self.service, rate=1e6)
        config = uvicorn.Config(app, port=self.port, log_level="error", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        threading.Thread(target=self.server.run, daemon=True).start()
        while not self.server.started:
            time.sleep(0.01)
        self.address = f"http://127.0.0.1:{self.port}"

    def token(self, name: str) -> str:
        return next(token for who, token in self.tokens.items() if who.startswith(name))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    yield made
    made.server.should_exit = True


def signed_in(browser: Any, running: Running, token: str, **looks: Any) -> Any:
    tab = browser.new_page(reduced_motion="reduce", **looks)
    tab.wrong = []
    tab.on("console", lambda said: tab.wrong.append(said.text) if said.type == "error" else None)
    tab.goto(running.address)
    tab.get_by_label("Token").fill(token)
    tab.keyboard.press("Enter")  # no mouse is needed
    tab.wait_for_selector("#budgets")
    return tab


def test_people_of_a_city_share_a_budget(browser: Any, running: Running, tmp_path: Path) -> None:
    SHOTS.mkdir(exist_ok=True, parents=True)
    keeper = signed_in(browser, running, running.token("Grace"))
    keeper.get_by_label("Scope", exact=True).nth(1).fill("city/parks")
    keeper.get_by_label("\u03b5").fill("0.2")
    keeper.get_by_role("button", name="Open it").press("Enter")
    keeper.get_by_text("city/parks is open.").wait_for()
    name = "<img src=x onerror=alert(1)>"
    keeper.get_by_role("link", name="People").click()
    keeper.get_by_label("Scope", exact=True).fill("city/parks")
    keeper.get_by_label("Name", exact=True).first.fill(name)
    keeper.get_by_role("button", name="Make a token").click()
    token = keeper.locator(".said code").inner_text()
    assert len(token) == 43 and keeper.locator("img").count() == 0
    keeper.screenshot(path=SHOTS / "dashboard-keeper-invites.png", full_page=True)

    analyst = signed_in(browser, running, token)
    analyst.get_by_label("Mechanism").first.fill("Laplace(20.0)")
    analyst.get_by_role("button", name="Ask the price").click()
    analyst.get_by_text("Nothing was charged.").wait_for()
    http = httpx.Client(base_url=running.address)
    account = RemoteAccount(running.address, token, scope="city/parks", client=http)
    account.redeem(account.charge(Laplace(200.0), key="count"), nonce="ab" * 32)
    analyst.get_by_role("link", name="Log").click()
    keeper.get_by_role("link", name="Log").click()
    account.redeem(account.charge(Laplace(300.0), key="again"), nonce="cd" * 32)
    for tab in (analyst, keeper):  # by itself
        tab.locator("#entries").get_by_text("Laplace(300.0)").wait_for(timeout=10_000)
    with pytest.raises(OverdrawnError):
        account.charge(Gaussian(1.0), key="too much")
    http.close()
    analyst.locator("#entries").get_by_text("left in city/parks").first.wait_for(timeout=10_000)
    analyst.screenshot(path=SHOTS / "dashboard-analyst-refused.png", full_page=True)

    auditor = signed_in(browser, running, running.token("Cleo"))
    auditor.get_by_role("link", name="Proofs").click()
    auditor.get_by_role("button", name="Verify now").click()
    auditor.get_by_text("Every hash, decision and balance agrees").wait_for()
    with auditor.expect_download() as found:
        auditor.get_by_role("link", name="Proof of 5").first.click()
    file = tmp_path / found.value.suggested_filename
    found.value.save_as(file)
    command = auditor.locator("#signed pre").inner_text()
    assert command.startswith(f"dpcompose ledger evidence check-proof {file.name} --trust ")
    key = command.partition('"')[2].rstrip('"')
    checked = [
        sys.executable,
        "-m",
        "dpcompose",
        "ledger",
        "evidence",
        "check-proof",
        str(file),
        "--trust",
        key,
    ]
    assert (
        "Entry 5 is in the log"
        in subprocess.run(checked, capture_output=True, text=True, check=True).stdout
    )
    file.write_text(file.read_text().replace("index 4", "index 3"))
    assert subprocess.run(checked, capture_output=True, check=False).returncode == 1
    auditor.screenshot(path=SHOTS / "dashboard-auditor.png", full_page=True)
    assert [*keeper.wrong, *analyst.wrong, *auditor.wrong] == []


@pytest.mark.parametrize("name", ["", "Grace", "Ada", "Cleo"])
def test_the_dashboard_is_readable(browser: Any, running: Running, name: str) -> None:
    SHOTS.mkdir(exist_ok=True, parents=True)
    wrong: list[str] = []
    for scheme, _ in SCHEMES:
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
        if name:
            context.add_cookies(
                [{"name": "dpcompose", "value": running.token(name), "url": running.address}]
            )
        path = SHOTS / f"dashboard-{name or 'login'}"
        wrong += looked_at(_One(context), running.address, shot=path)
        context.close()
    assert wrong == [] and SERIOUS


class _One:
    """A browser whose pages have the cookies of a context."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def new_page(self, *, color_scheme: str, reduced_motion: str) -> Any:
        page = self.context.new_page()
        page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        return page


def test_markup_that_is_not_escaped_is_stopped(
    browser: Any, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: even a page that escapes nothing runs no script but its own."""
    from dpcompose.serve import pages as page

    environment = page._environment()  # pyright: ignore[reportPrivateUsage]
    bad = "<script>document.title='bad'</script><img src=x onerror=\"document.title='bad'\"><p>shown</p>"
    monkeypatch.setattr(environment, "globals", {**environment.globals, "bad": bad})
    base = environment.get_template
    changed = environment.from_string(
        '{% extends "base.html" %}{% block content %}<h1>t</h1><p id="budgets">b</p>{{ bad|safe }}{% endblock %}'
    )
    monkeypatch.setattr(
        environment, "get_template", lambda name, *_: base(name) if name == "base.html" else changed
    )
    tab = browser.new_page()
    tab.goto(running.address)
    tab.get_by_text("shown").wait_for()
    assert tab.title() == "Budgets"
