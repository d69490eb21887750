"""Reports: a frozen page, its text, HTML and pictures, and the JSON of the same numbers."""

from dpcompose.report.account import account_document, account_page
from dpcompose.report.calibration import calibration_document, calibration_page
from dpcompose.report.document import dumps
from dpcompose.report.html import html
from dpcompose.report.page import Column, Fact, Page, Table

__all__ = [
    "Column",
    "Fact",
    "Page",
    "Table",
    "account_document",
    "account_page",
    "calibration_document",
    "calibration_page",
    "dumps",
    "html",
]
