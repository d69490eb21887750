"""What reaches the sum of a step: one clipped row of each record, which no other record moves."""

from __future__ import annotations

from typing import Any

import pytest

from dpcompose import Adjacency
from dpcompose.errors import UnsupportedError
from dpcompose.interop import opacus as ours
from dpcompose.interop.draws import forward_probe
from tests.interop.conftest import library

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]
torch, opacus = library("torch"), library("opacus")

from tests.interop.test_draws import Ghost  # noqa: E402
from tests.interop.test_opacus import NOISE, RATE, Training, shuffled  # noqa: E402

nn, functional = torch.nn, torch.nn.functional


class Routed(nn.Module):
    """Two experts with a capacity: the records above it go to the second one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return torch.cat([self.first(x[:3]), self.second(x[3:])])


class Attending(nn.Module):
    """Records of a batch that attend to each other."""

    def forward(self, x: Any) -> Any:
        return torch.softmax(x @ x.T, 1) @ x


class Noisy(nn.Module):
    """Random numbers for each record."""

    def forward(self, x: Any) -> Any:
        return x + torch.randn_like(x)


@pytest.mark.parametrize(
    "layers, name",
    [
        ([nn.Linear(4, 4), nn.BatchNorm1d(4)], r"1 \(BatchNorm1d\)"),
        ([nn.Linear(4, 4), Attending()], r"1 \(Attending\)"),
        ([Routed()], r"0 \(Routed\)"),
        ([nn.Linear(4, 4), nn.Dropout(0.5), nn.LayerNorm(4), nn.GroupNorm(2, 4)], ""),
        ([nn.Linear(4, 4), Noisy()], ""),
    ],
)
def test_layers_that_mix_records_are_refused_by_name(layers: list[Any], name: str) -> None:
    model = nn.Sequential(*layers)
    before = {key: each.clone() for key, each in model.state_dict().items()}
    inputs = (torch.randn(12, 4),)
    if name:
        with pytest.raises(UnsupportedError, match=f"{name} mixes the records.*Change: "):
            forward_probe(model, inputs, {}, 0)
    else:
        assert forward_probe(model, inputs, {}, 0)
    assert all(torch.equal(each, before[key]) for key, each in model.state_dict().items())
    assert all(layer.training for layer in model.modules())
    assert not forward_probe(model, (inputs[0][:1],), {}, 0)


class Running(nn.Module):
    """Statistics of the records, which only an evaluation uses."""

    def __init__(self, replaced: bool) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.replaced = replaced

    def forward(self, x: Any) -> Any:
        if not self.training:
            return x - self.mean
        mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        if self.replaced:
            self.mean = mean
        else:
            self.mean.copy_(mean)
        return x


@pytest.mark.parametrize("replaced", [True, False])
def test_a_buffer_that_takes_in_the_data_is_refused_by_name(replaced: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 4), Running(replaced))
    buffer = model[1].mean
    with pytest.raises(UnsupportedError, match=r"1\.mean changes with the records.*Change: "):
        forward_probe(model, (torch.randn(12, 4),), {}, 0)
    assert model[1].mean is buffer and not buffer.any()
    tracked = nn.Sequential(nn.Conv1d(4, 4, 1), nn.InstanceNorm1d(4, track_running_stats=True))
    with pytest.raises(UnsupportedError, match=r"running_mean changes"):
        forward_probe(tracked, (torch.randn(12, 4, 3),), {}, 0)
    normed = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))
    assert forward_probe(normed, (torch.randn(12, 4),), {}, 0)


def test_of_a_model_with_random_numbers_nothing_is_shown() -> None:
    class Both(Noisy):
        def forward(self, x: Any) -> Any:
            return super().forward(x - x.mean(0))

    with pytest.warns(ours.PreflightWarning, match="a model that draws random numbers"):
        assert forward_probe(Both(), (torch.randn(12, 4),), {}, 0)


@pytest.mark.parametrize("kind", [Training, Ghost])
def test_a_training_is_probed_when_it_starts(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Ghost() if kind is Ghost else Training(shuffled())
    inner = training.model._module
    with monkeypatch.context() as change:
        change.setattr(inner, "forward", lambda x: functional.linear(x - x.mean(0), inner.weight))
        with pytest.raises(UnsupportedError, match=r"it \(Linear\) mixes the records"):
            training.epoch()
    assert training.history == []
    training = Ghost() if kind is Ghost else Training(shuffled())
    assert training.epoch().history == [(NOISE, RATE, 10)]


def sequences() -> tuple[Any, Any]:
    """Sequences of four tokens, of which some are padding."""
    labels = torch.randint(0, 2, (6, 4))
    labels[1, 1:] = labels[4, 2:] = -100
    return torch.randn(6, 4, 4), labels


def _by_tokens(model: Any, batch: Any) -> Any:
    return functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def _by_records(model: Any, batch: Any) -> Any:
    each = functional.cross_entropy(model(batch[0]).transpose(1, 2), batch[1], reduction="none")
    return each.sum(1).mean()


def _contrastive(model: Any, batch: Any) -> Any:
    found = model(batch[0]).flatten(1)
    return functional.cross_entropy(found @ found.T, torch.arange(len(found)))


def _class_weights(model: Any, batch: Any) -> Any:
    labels = batch[1].clamp(min=0)[:, 0]
    weight = torch.bincount(labels, minlength=2) / len(labels)
    return functional.cross_entropy(model(batch[0]).mean(1), labels, weight=weight)


def _summed(model: Any, batch: Any) -> Any:
    return _by_records(model, batch) * len(batch[0])


@pytest.mark.parametrize(
    "loss, refused",
    [
        (_by_tokens, True),
        (_contrastive, True),
        (_class_weights, True),
        (_summed, True),
        (_by_records, False),
    ],
)
def test_losses_that_mix_records_are_refused_by_name(loss: Any, refused: bool) -> None:
    torch.manual_seed(3)
    model = opacus.GradSampleModule(nn.Linear(4, 2))
    if refused:
        with pytest.raises(UnsupportedError, match=r"a loss that mixes records.*Change: a loss of"):
            ours.probe(model, lambda batch: loss(model, batch), sequences())
    else:
        ours.probe(model, lambda batch: loss(model, batch), sequences())
    assert all(each.grad is None and each.grad_sample is None for each in model.parameters())


def test_a_probed_training_with_ghost_clipping_goes_on_as_before() -> None:
    training = Ghost()
    x, y = training.loader.dataset.tensors
    ours.probe(
        training.model, lambda b: training.criterion(training.model(b[0]), b[1]), (x[:8], y[:8])
    )
    assert training.epoch().history == [(NOISE, RATE, 10)]


@pytest.mark.parametrize("poisson", [True, False])
def test_augmentations_that_are_not_averaged_are_charged_at_their_number(poisson: bool) -> None:
    def thrice(training: Training) -> Training:
        return training.epoch(batches=((x.repeat(3, 1), y.repeat(3)) for x, y in training.loader))

    training = Training(shuffled(), poisson_sampling=poisson)
    training.engine.accountant.augmentations = 3
    ((noise, rate, steps),) = thrice(training).history
    assert NOISE / 3 * (1 - 1e-12) < noise <= NOISE / 3
    assert (rate, steps) == ((RATE, 10) if poisson else (1.0, 1))
    training = Training(shuffled(), poisson_sampling=poisson)
    if poisson:
        with pytest.raises(UnsupportedError, match="records were drawn"):
            thrice(training)
        assert training.history == []
    else:
        assert all(noise <= NOISE / 3 for noise, _, _ in thrice(training).history)
        assert training.engine.accountant.adjacency is Adjacency.ZERO_OUT


def test_each_noisy_evaluation_is_a_step() -> None:
    training = Training(shuffled())
    batches = iter(training.loader)
    for _ in range(2):  # as SAM: up, and down from there
        x, y = next(batches)
        training.optimizer.zero_grad()
        functional.cross_entropy(training.model(x), y).backward()
        training.optimizer.step()
    assert training.history == [(NOISE, RATE, 2)]
    training.optimizer.zero_grad()
    x, y = next(batches)
    functional.cross_entropy(training.model(x), y).backward()
    training.optimizer.clip_and_accumulate()
    with pytest.raises(UnsupportedError, match=r"noise outside of a step.*SAM.*Change: optimizer"):
        training.optimizer.add_noise()
    training = Training(shuffled())
    x, y = next(iter(training.loader))

    def closure() -> Any:
        training.optimizer.zero_grad()
        functional.cross_entropy(training.model(x), y).backward()

    training.optimizer.step(closure)
    with pytest.raises(UnsupportedError, match="no batch was drawn"):
        training.optimizer.step(closure)
    assert training.history == [(NOISE, RATE, 1)]
