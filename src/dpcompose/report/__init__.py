"""Reports: a frozen page, its text, HTML and pictures, and the JSON of the same numbers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpcompose.report.html import html
from dpcompose.report.page import Fact, Heading, Page, PageTable, csv_text

if TYPE_CHECKING:
    from dpcompose.report.account import account_document, account_page, calibration_document, calibration_page
    from dpcompose.report.advice import advice_document, advice_page
    from dpcompose.report.budgets import budget_svgs, burn_down, icicle
    from dpcompose.report.counting import counting_page, save_counting
    from dpcompose.report.document import dumps
    from dpcompose.report.gallery import accuracy, plane, privacy_profile, steps, trade_off, waterfall
    from dpcompose.report.release import quote_document, quote_page, release_document, release_page
    from dpcompose.report.training import save_training

Column = Heading
Table = PageTable

__all__ = [
    "Column",
    "Fact",
    "Heading",
    "Page",
    "PageTable",
    "Table",
    "account_document",
    "account_page",
    "accuracy",
    "advice_document",
    "advice_page",
    "budget_svgs",
    "burn_down",
    "calibration_document",
    "calibration_page",
    "counting_page",
    "csv_text",
    "dumps",
    "html",
    "icicle",
    "plane",
    "privacy_profile",
    "quote_document",
    "quote_page",
    "release_document",
    "release_page",
    "save_counting",
    "save_training",
    "steps",
    "trade_off",
    "waterfall",
]

_PLACES = {
    "account_document": "account",
    "account_page": "account",
    "accuracy": "gallery",
    "advice_document": "advice",
    "advice_page": "advice",
    "budget_svgs": "budgets",
    "burn_down": "budgets",
    "calibration_document": "account",
    "calibration_page": "account",
    "counting_page": "counting",
    "dumps": "document",
    "icicle": "budgets",
    "plane": "gallery",
    "privacy_profile": "gallery",
    "quote_document": "release",
    "quote_page": "release",
    "release_document": "release",
    "release_page": "release",
    "save_counting": "counting",
    "save_training": "training",
    "steps": "gallery",
    "trade_off": "gallery",
    "waterfall": "gallery",
}


def __getattr__(name: str) -> Any:
    """A name of the room, from its file when it is first used: a command needs few of them."""
    if name not in _PLACES:
        raise AttributeError(f"module 'dpcompose.report' has no attribute {name!r}")
    found = getattr(import_module(f"dpcompose.report.{_PLACES[name]}"), name)
    globals()[name] = found
    return found
