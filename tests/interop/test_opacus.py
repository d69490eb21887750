"""Opacus trains with the accountant, and every loader that is no Poisson sample is told of."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from typing import Any

import pytest

from dpcompose import Adjacency, Gaussian, compose
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.interop import opacus as ours
from dpcompose.mechanisms import ShuffledEpochs
from tests.interop.conftest import library

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]
torch, opacus = library("torch"), library("opacus")
data = library("torch.utils.data")
DELTA, NOISE, RECORDS, BATCH = 1e-5, 1.0, 200, 20
RATE = BATCH / RECORDS


def records(count: int = RECORDS) -> Any:
    torch.manual_seed(0)
    return data.TensorDataset(torch.randn(count, 4), torch.randint(0, 2, (count,)))


class Training:
    """A linear model under Opacus."""

    def __init__(self, loader: Any, engine: Any = None, **options: Any) -> None:
        self.engine = engine or opacus.PrivacyEngine(accountant="dpcompose")
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        given = {"noise_multiplier": NOISE, "max_grad_norm": 1.0} | options
        make = (
            self.engine.make_private_with_epsilon if "epochs" in given else self.engine.make_private
        )
        if "epochs" in given:
            del given["noise_multiplier"]
        self.model, self.optimizer, self.loader = make(
            module=model, optimizer=optimizer, data_loader=loader, **given
        )

    def epoch(self, batches: Any = None, every: int = 1) -> Training:
        for at, (x, y) in enumerate(self.loader if batches is None else batches):
            torch.nn.functional.cross_entropy(self.model(x), y).backward()
            if (at + 1) % every == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return self

    @property
    def history(self) -> list[tuple[float, float, int]]:
        return self.engine.accountant.history


def shuffled(dataset: Any = None, **options: Any) -> Any:
    return data.DataLoader(dataset or records(), batch_size=BATCH, shuffle=True, **options)


def weighted(dataset: Any = None) -> Any:
    dataset = dataset or records()
    sampler = data.WeightedRandomSampler(torch.ones(len(dataset)), len(dataset))
    return data.DataLoader(dataset, batch_size=BATCH, sampler=sampler)


def said(training: Training, **options: Any) -> list[str]:
    """The warnings of one epoch."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        training.epoch(**options)
    return [
        str(each.message) for each in caught if issubclass(each.category, ours.PreflightWarning)
    ]


def test_one_line_trains_and_counts() -> None:
    training = Training(shuffled())
    assert isinstance(training.engine.accountant, ours.Accountant)
    for epochs in (1, 2):
        assert said(training) == []
        assert training.history == [(NOISE, RATE, 10 * epochs)]
        whole = (Gaussian(NOISE).sampled(RATE) * (10 * epochs)).epsilon(delta=DELTA)
        assert whole.lower <= training.engine.get_epsilon(DELTA) <= whole.upper * (1 + 1e-8)


def test_a_target_is_met_and_the_noise_is_at_most_that_of_prv() -> None:
    given = {"target_epsilon": 3.0, "target_delta": DELTA, "epochs": 2}
    training = Training(shuffled(), **given)
    training.epoch().epoch()
    assert 2.9 < training.engine.get_epsilon(DELTA) <= 3.0
    prv = Training(shuffled(), opacus.PrivacyEngine(accountant="prv"), **given)
    assert training.optimizer.noise_multiplier <= prv.optimizer.noise_multiplier
    least = ours.get_noise_multiplier(
        target_epsilon=3.0, target_delta=DELTA, sample_rate=RATE, epochs=2
    )
    assert least <= training.optimizer.noise_multiplier


def test_a_checkpoint_goes_on(tmp_path: Any) -> None:
    first = Training(shuffled()).epoch()
    first.engine.save_checkpoint(
        path=tmp_path / "run.pt", module=first.model, optimizer=first.optimizer
    )
    second = Training(shuffled())
    second.engine.load_checkpoint(
        path=tmp_path / "run.pt", module=second.model, optimizer=second.optimizer
    )
    assert second.history == first.history and second.history is not first.history
    second.epoch()
    assert second.history == [(NOISE, RATE, 20)]
    saved = torch.load(tmp_path / "run.pt", weights_only=True)["privacy_accountant_state_dict"]
    assert ours.from_state_dict(saved) == Gaussian(NOISE).sampled(RATE) * 10


def test_steps_after_a_checkpoint_are_not_forgotten_when_it_is_loaded(tmp_path: Any) -> None:
    where = {"path": tmp_path / "run.pt"}
    first = Training(shuffled()).epoch()
    first.engine.save_checkpoint(module=first.model, **where)
    first.epoch().engine.load_checkpoint(module=first.model, **where)
    assert first.history == [(NOISE, RATE, 20)]
    assert first.epoch().history == [(NOISE, RATE, 30)]  # steps that are repeated are new
    second = Training(shuffled())
    for _ in range(2):
        second.engine.load_checkpoint(module=second.model, **where)
        assert second.history == [(NOISE, RATE, 10)]
    second.epoch().engine.load_checkpoint(module=second.model, **where)
    assert second.history == [(NOISE, RATE, 20)]
    second.engine.save_checkpoint(module=second.model, **where)
    first.engine.load_checkpoint(module=first.model, **where)  # ten of its own, ten of the other
    assert sum(steps for _, _, steps in first.history) >= 40
    third = Training(shuffled()).epoch()
    state = {"mechanism": "dpcompose", "history": [(NOISE, RATE, 10)], "adjacency": "zero-out"}
    third.engine.accountant.load_state_dict(state)  # of another training on the same data
    assert sum(steps for _, _, steps in third.history) == 20
    assert third.engine.accountant.adjacency is Adjacency.ZERO_OUT


def test_noise_is_seeded_by_the_system_at_every_start() -> None:
    def noise(training: Training) -> Any:
        return [
            training.optimizer.generator.get_state(),
            training.loader.batch_sampler.generator.get_state(),
        ]

    torch.manual_seed(1)
    first = noise(Training(shuffled()))
    torch.manual_seed(1)
    second = noise(Training(shuffled()))
    every = [*first, *second]
    assert len({bytes(each.numpy().tobytes()) for each in every}) == 4
    for state in every:  # no seed of 32 bits, all of which could be tried
        word, following = state.numpy()[24:40].view("int64")
        assert (1812433253 * (int(word) ^ (int(word) >> 30)) + 1) % 2**32 != following
    assert not {0, 1} & {int(state.numpy()[24:32].view("int64")[0]) for state in every}


@pytest.mark.parametrize("how", ["seeded", "replaced", "restored"])
def test_noise_that_can_be_known_is_refused(how: str) -> None:
    options = {"noise_generator": torch.Generator().manual_seed(1)} if how == "seeded" else {}
    training = Training(shuffled(), **options)
    if how != "seeded":
        state = training.optimizer.generator.get_state()
        batches = iter(training.loader)
        training.epoch(batches=[next(batches)])
        if how == "restored":
            training.optimizer.generator.set_state(state)
        else:
            training.optimizer.generator = torch.Generator().manual_seed(1)
    with pytest.raises(UnsupportedError, match=r"not the system's.*Change: make_private"):
        training.epoch()
    engine = opacus.PrivacyEngine(accountant="dpcompose")
    engine.accountant.deterministic = True
    training = Training(shuffled(), engine, **options).epoch()
    assert engine.get_epsilon(DELTA) == math.inf and engine.get_epsilon(0.5) == math.inf
    assert ours.from_state_dict(engine.accountant.state_dict()).epsilon(delta=0.5).upper == math.inf


def test_a_state_dictionary_is_text_and_back() -> None:
    accountant = ours.Accountant()
    for noise in (1.0, 1.0, 1.5, 1.0):
        accountant.step(noise_multiplier=noise, sample_rate=0.25)
    assert accountant.history == [(1.0, 0.25, 2), (1.5, 0.25, 1), (1.0, 0.25, 1)]
    again = ours.Accountant()
    again.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    assert again.history == accountant.history and again.bound(DELTA) == accountant.bound(DELTA)
    assert pickle.loads(pickle.dumps(accountant.history)) == again.history


def test_the_state_of_another_accountant_is_refused_by_name() -> None:
    theirs = opacus.accountants.RDPAccountant()
    theirs.step(noise_multiplier=1.0, sample_rate=0.1)
    accountant = ours.Accountant()
    with pytest.raises(DomainError, match="rdp"):
        accountant.load_state_dict(theirs.state_dict())
    for bad in (
        None,
        {},
        {"history": []},
        {"history": [(float("nan"), 0.1, 1)], "mechanism": "dpcompose"},
    ):
        with pytest.raises(DomainError):
            accountant.load_state_dict(bad)
    assert accountant.history == []
    assert ours.from_state_dict(theirs.state_dict()) == compose(Gaussian(1.0).sampled(0.1))


@pytest.mark.parametrize(
    "bad", [{"noise_multiplier": -1.0}, {"sample_rate": float("nan")}, {"sample_rate": 2.0}]
)
def test_a_bad_step_is_refused(bad: dict[str, float]) -> None:
    accountant = ours.Accountant()
    with pytest.raises(DomainError):
        accountant.step(**({"noise_multiplier": 1.0, "sample_rate": 0.1} | bad))
    assert accountant.history == [] and accountant.get_epsilon(DELTA) == 0


def test_options_of_others_are_taken_where_they_change_nothing() -> None:
    accountant = ours.Accountant()
    accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    plain = accountant.get_epsilon(DELTA)
    assert (
        accountant.get_epsilon(DELTA, eps_error=0.1, delta_error=1e-9, alphas=[2], poisson=True)
        == plain
    )
    for option in ({"poisson": False}, {"poisson_sampling": False}, {"shuffled": True}):
        with pytest.raises(UnsupportedError, match=next(iter(option))):
            accountant.get_epsilon(DELTA, **option)


def test_without_noise_epsilon_is_infinite_and_training_goes_on() -> None:
    training = Training(shuffled(), noise_multiplier=0.0).epoch()
    assert training.history == [(0.0, RATE, 10)] and training.engine.get_epsilon(DELTA) == float(
        "inf"
    )


def test_shuffling_is_told_of_and_charged_without_amplification() -> None:
    training = Training(shuffled(), poisson_sampling=False)
    (text,) = said(training)
    assert "shuffling without Poisson sampling" in text and "poisson_sampling=True" in text
    epoch = ShuffledEpochs(NOISE, steps=10).epsilon(delta=DELTA, adjacency=Adjacency.ZERO_OUT)
    assert f"{epoch.lower:.3g} and {epoch.upper:.3g}" in text
    training.epoch()
    assert training.history == [(NOISE, 1.0, 2)]
    both = (ShuffledEpochs(NOISE, steps=10) * 2).epsilon(delta=DELTA, adjacency=Adjacency.ZERO_OUT)
    assert training.engine.get_epsilon(DELTA) == pytest.approx(both.upper, rel=1e-9)
    assert (
        training.engine.get_epsilon(DELTA)
        > (Gaussian(NOISE).sampled(RATE) * 20).epsilon(delta=DELTA).upper
    )


def test_a_pass_that_is_broken_off_is_charged_whole() -> None:
    training = Training(shuffled(), poisson_sampling=False)
    for _ in range(3):
        training.epoch(batches=(each for each, _ in zip(training.loader, range(2), strict=False)))
    assert training.history == [(NOISE, 1.0, 3)]


def test_less_noise_within_a_pass_is_charged_again() -> None:
    training = Training(shuffled(), poisson_sampling=False)
    for at, batch in enumerate(training.loader):
        training.optimizer.noise_multiplier = NOISE if at < 5 else NOISE / 2
        training.epoch(batches=[batch])
    assert training.history == [(NOISE, 1.0, 1), (NOISE / 2, 1.0, 1)]


def test_batches_from_elsewhere_are_charged_one_by_one() -> None:
    training = Training(shuffled(), poisson_sampling=False)
    training.epoch(batches=shuffled(training.loader.dataset))
    assert training.history == [(NOISE, 1.0, 10)]


def test_a_step_over_the_end_of_a_shuffled_pass_may_hold_a_record_twice() -> None:
    training = Training(shuffled(), poisson_sampling=False)
    training.epoch(batches=[*training.loader, *training.loader][5:15], every=10)
    ((noise, rate, steps),) = training.history
    assert noise < NOISE / 2 and (rate, steps) == (1.0, 1)


def test_gradient_accumulation_is_told_of_and_costs_more_than_its_rate() -> None:
    training = Training(shuffled(), poisson_sampling=True)
    training.model.allow_grad_accumulation()
    (text,) = said(training, every=2)
    assert "gradient accumulation" in text and "BatchMemoryManager" in text
    ((noise, rate, steps),) = training.history
    assert 0.4999 < noise < 0.5 and (rate, steps) == (2 * RATE, 5)


def test_a_weighted_sampler_is_told_of_and_refused() -> None:
    training = Training(weighted(), poisson_sampling=False)
    with (
        pytest.warns(ours.PreflightWarning, match="WeightedRandomSampler.*sampler=None"),
        pytest.raises(UnsupportedError, match="WeightedRandomSampler"),
    ):
        training.epoch()
    assert training.history == []
    training.optimizer.zero_grad()
    with pytest.raises(UnsupportedError, match="WeightedRandomSampler"):
        training.epoch()


@pytest.mark.parametrize("sampler", ["replaced", "repeated", "own"])
def test_a_sampler_of_which_nothing_is_proved_is_refused(sampler: str) -> None:
    dataset = records()
    given = {
        "replaced": data.RandomSampler(dataset, replacement=True),
        "repeated": data.RandomSampler(dataset, num_samples=2 * RECORDS),
        "own": [0, 1, 2] * 20,
    }
    loader = data.DataLoader(dataset, batch_size=BATCH, sampler=given[sampler])
    with pytest.raises(UnsupportedError, match="unknown sampler"):
        Training(loader, poisson_sampling=False).epoch()


def test_check_looks_before_the_training() -> None:
    engine = opacus.PrivacyEngine(accountant="dpcompose")
    with pytest.warns(ours.PreflightWarning, match="WeightedRandomSampler"):
        (found,) = ours.check(engine, weighted())
    assert found.refused
    with pytest.warns(ours.PreflightWarning, match="shuffling without Poisson"):
        ours.check(engine, shuffled())
    training = Training(shuffled())
    assert ours.check(training.engine, training.loader) == ()


def test_dropped_last_batches_are_told_of() -> None:
    training = Training(shuffled(records(RECORDS + 7), drop_last=True), poisson_sampling=False)
    texts = said(training)
    assert any(
        "dropped last batches" in text and "drop_last=False" in text and "7 records" in text
        for text in texts
    )


def test_a_data_set_that_grows_is_told_of() -> None:
    class Growing(data.Dataset):
        def __init__(self) -> None:
            self.count = RECORDS

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, at: int) -> Any:
            return torch.zeros(4), torch.tensor(at % 2)

    dataset = Growing()
    training = Training(shuffled(dataset)).epoch()
    dataset.count += 50
    (text,) = said(training)
    assert "length changed" in text and "make_private again" in text
    with pytest.warns(ours.PreflightWarning, match="length changed"):
        ours.check(training.engine, training.loader)


def test_several_optimizers_on_one_data_set_are_told_of() -> None:
    dataset = records()
    first = Training(shuffled(dataset))
    second = Training(shuffled(dataset), first.engine)
    assert ["several optimizers on one data set" in text for text in said(second)] == [True]
    third = Training(shuffled(dataset))
    texts = said(third)
    assert any(
        "several engines on one data set" in text and "accountant = first" in text for text in texts
    )
