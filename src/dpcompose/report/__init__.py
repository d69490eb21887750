"""Reports: a frozen page, its text, HTML and pictures, and the JSON of the same numbers."""

from dpcompose.report.account import account_document, account_page, calibration_document, calibration_page
from dpcompose.report.advice import advice_document, advice_page
from dpcompose.report.counting import counting_page, save_counting
from dpcompose.report.document import dumps
from dpcompose.report.html import html
from dpcompose.report.page import Fact, Heading, Page, PageTable, csv_text
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
    "advice_document",
    "advice_page",
    "calibration_document",
    "calibration_page",
    "counting_page",
    "csv_text",
    "dumps",
    "html",
    "quote_document",
    "quote_page",
    "release_document",
    "release_page",
    "save_counting",
    "save_training",
]
