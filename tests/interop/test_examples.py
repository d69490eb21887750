"""The examples run, without a GPU."""

from __future__ import annotations

import pytest

from tests.interop.conftest import library

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]


def test_opacus_trains_on_flights(capsys: pytest.CaptureFixture[str]) -> None:
    library("opacus")
    from examples.interop import opacus_training

    found = opacus_training.main()
    assert len(found) == opacus_training.EPOCHS
    assert 0.98 * opacus_training.EPSILON < found[-1][0] <= found[-1][1] <= opacus_training.EPSILON
    text = capsys.readouterr().out
    assert text.count("epoch ") == len(found) and "% right" in text
