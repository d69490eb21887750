"""The largest loss on a sample is that of the base, moved; nothing is enclosed by atoms to know it."""

from typing import Any

import pytest
from flint import arb, ctx

from dpcompose import Adjacency, BlackBox, Gaussian, Laplace, RandomizedResponse
from dpcompose.loss import sampled


@pytest.fixture
def no_atoms(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("atoms were asked for")

    monkeypatch.setattr(sampled, "atomized", refuse)


def test_the_largest_loss_of_many_on_one_sample_needs_no_atoms(no_atoms):
    mechanism = (Laplace(0.01) * 8).sampled(0.5)
    ctx.prec = 200
    largest = ((1 + arb(800).exp()) / 2).log()
    pure = mechanism.pure()
    assert pure is not None
    assert largest <= pure <= 799.30685282
    assert mechanism.epsilon(delta=1e-6).upper < 799.3064


def test_a_leak_on_a_sample_is_the_share_of_the_sampled():
    mechanism: Any = (BlackBox(1.0, delta=1e-5) * 4 + RandomizedResponse(0.5)).sampled(0.3)
    ((pair, _),) = mechanism.pairs(Adjacency.ADD_REMOVE)
    lost = 0.3 * (1 - (1 - 1e-5) ** 4)
    assert pair.remove.infinite_mass == pytest.approx(lost, rel=1e-9)
    assert pair.add.infinite_mass == 0
    assert mechanism.epsilon(delta=0).lower == float("inf")


def test_a_sample_of_unbounded_losses_has_no_largest():
    mechanism = (Gaussian(1.0) * 2 + Laplace(1.0)).sampled(0.3)
    assert mechanism.epsilon(delta=0).lower == float("inf")
    assert mechanism.pure() is None
