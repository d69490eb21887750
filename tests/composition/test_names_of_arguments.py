"""Adjacencies and orientations can be passed by name, and numbers must be passed by keyword."""

from __future__ import annotations

import pytest

from dpcompose import Adjacency, Gaussian, Laplace, Orientation, calibrate, epsilon, parallel
from dpcompose.errors import DomainError


def test_a_name_is_its_member() -> None:
    composed = Gaussian(3.0) * 4
    for each in Adjacency:
        if each is not Adjacency.ZERO_OUT:
            assert composed.epsilon(delta=1e-6, adjacency=each.value) == composed.epsilon(
                delta=1e-6, adjacency=each
            )
            assert composed.zcdp(adjacency=each.value) == composed.zcdp(adjacency=each)
            assert composed.group(2).delta(epsilon=1, adjacency=each.value) == composed.group(
                2
            ).delta(epsilon=1, adjacency=each)
    doubled = composed.epsilon(delta=1e-6, adjacency="replace").upper
    assert doubled > composed.epsilon(delta=1e-6).upper
    assert epsilon([composed], delta=1e-6, adjacency="replace").upper[0] == pytest.approx(doubled)
    assert parallel(Laplace(1.0), Laplace(2.0), adjacency="replace").pure() == 2.0
    assert calibrate(Gaussian, epsilon=1, delta=1e-6, adjacency="replace").value > 8
    assert composed.epsilon(delta=1e-6, orientation="free") == composed.epsilon(
        delta=1e-6, orientation=Orientation.FREE
    )
    with pytest.raises(DomainError, match="'add-remove', 'replace', 'zero-out'"):
        composed.epsilon(delta=1e-6, adjacency="swap")  # type: ignore[arg-type]


def test_a_number_without_its_keyword() -> None:
    with pytest.raises(TypeError, match=r"\.epsilon\(delta=1e-05\)"):
        Gaussian(1.0).epsilon(1e-5)  # type: ignore[call-arg,misc]
