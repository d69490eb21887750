"""The example of guarded training: killed, resumed, refused at the end."""

from __future__ import annotations

import re

import pytest

from examples.interop import guarded_training


def test_the_guard_refuses_in_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    guarded_training.main()
    printed = capfd.readouterr().out
    assert re.search(r"\d+ steps taken. registry: 1 step refused", printed)
    epsilons = [float(each) for each in re.findall(r"charged: epsilon ([\d.]+) of 4", printed)]
    assert len(epsilons) == 5 and epsilons == sorted(epsilons) and 3 < epsilons[-1] <= 4
