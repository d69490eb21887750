"""Each step under Opacus has one fresh draw behind it, or is refused, or is charged as what it is."""

from __future__ import annotations

import io
from typing import Any

import pytest

from campaigns import training as campaign
from dpcompose import Adjacency, Gaussian
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.interop import opacus as ours
from dpcompose.interop.statement import statement
from tests.interop.conftest import library
from tests.interop.test_opacus import BATCH, DELTA, NOISE, RATE, Training, records, said, shuffled

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]
torch, opacus = library("torch"), library("opacus")
data = library("torch.utils.data")
manager = library("opacus.utils.batch_memory_manager")
REFUSED = "one fresh draw.*Change: for batch in loader"
GHOST = {"grad_sample_mode": "ghost"}


class Ghost(Training):
    """A linear model under Opacus with ghost clipping."""

    def __init__(self, **options: Any) -> None:
        self.engine = opacus.PrivacyEngine(accountant="dpcompose")
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        given = (
            {"noise_multiplier": NOISE, "max_grad_norm": 1.0, "data_loader": shuffled()}
            | GHOST
            | options
        )
        prepared = self.engine.make_private(module=model, optimizer=optimizer, **given)
        self.model, self.optimizer, self.criterion, self.loader = prepared

    def epoch(self, batches: Any = None, every: int = 1) -> Training:
        for x, y in self.loader if batches is None else batches:
            self.criterion(self.model(x), y).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return self


def unsampled(steps: int) -> float:
    return (Gaussian(NOISE) * steps).epsilon(delta=DELTA).lower


@pytest.fixture(params=[Training, Ghost])
def private(request: pytest.FixtureRequest) -> Training:
    """A training on Poisson samples, with hooks and with ghost clipping."""
    return request.param() if request.param is Ghost else Training(shuffled())


@pytest.mark.parametrize("feed", ["one batch", "all records", "the original loader"])
def test_a_step_without_a_fresh_draw_is_refused(private: Training, feed: str) -> None:
    dataset = private.loader.dataset
    batches = {
        "one batch": lambda: [next(iter(private.loader))] * 10,
        "all records": lambda: [dataset.tensors] * 10,
        "the original loader": lambda: shuffled(dataset),
    }[feed]()
    with pytest.raises(UnsupportedError, match=REFUSED):
        private.epoch(batches=batches)
    assert private.history == [(NOISE, RATE, 1)] * (feed == "one batch")


def test_the_size_of_the_draw_is_that_of_the_batch(private: Training) -> None:
    with pytest.raises(UnsupportedError, match=REFUSED):
        for _ in private.loader:
            private.epoch(batches=[private.loader.dataset.tensors])
    assert private.history == []


def test_a_draw_that_no_step_followed_ends_amplification(private: Training) -> None:
    batches = iter(private.loader)
    private.epoch(batches=[next(batches)]).epoch(batches=[next(batches)])
    assert private.history == [(NOISE, RATE, 2)]
    next(batches)
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=REFUSED):
            private.epoch(batches=[next(batches)])
        private.optimizer.zero_grad()
    assert private.history == [(NOISE, 1.0, 2)]
    assert private.engine.accountant.adjacency is Adjacency.ZERO_OUT
    assert private.engine.get_epsilon(DELTA) >= unsampled(2)


def test_steps_on_batches_that_are_liked_are_refused() -> None:
    training = Training(shuffled())
    with pytest.raises(UnsupportedError, match=REFUSED):
        training.epoch(
            batches=(batch for _ in range(5) for batch in training.loader if len(batch[0]) >= BATCH)
        )
    assert all(rate == 1 for _, rate, _ in training.history)


def test_a_draw_is_lost_where_the_optimizer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(shuffled())
    batches = iter(training.loader)
    with monkeypatch.context() as change, pytest.raises(RuntimeError, match="memory"):
        change.setattr(
            opacus.optimizers.DPOptimizer,
            "add_noise",
            lambda _: (_ for _ in ()).throw(RuntimeError("memory")),
        )
        training.epoch(batches=batches)
    training.optimizer.zero_grad()
    with pytest.raises(UnsupportedError, match=REFUSED):
        training.epoch(batches=batches)


def test_a_batch_of_an_earlier_draw_is_no_fresh_one() -> None:
    training = Training(shuffled(), poisson_sampling=False)
    first = next(iter(training.loader))
    for _ in training.loader:
        training.epoch(batches=[first])
    assert training.history == [
        (NOISE, 1.0, 11)
    ]  # two passes begin, and nine steps are on tensors seen before
    again = Training(shuffled(), poisson_sampling=False)
    again.epoch(batches=[next(iter(again.loader))] * 10)
    assert again.history == [(NOISE, 1.0, 10)] and again.engine.get_epsilon(DELTA) >= unsampled(10)


def test_empty_and_unwanted_batches_are_stepped_with_noise_alone(private: Training) -> None:
    texts = said(
        private,
        batches=(
            (x[: at % 2 * len(x)], y[: at % 2 * len(y)]) for at, (x, y) in enumerate(private.loader)
        ),
    )
    assert private.history == [(NOISE, RATE, 10)]
    assert ["no record decided it" in text for text in texts] == [True]


@pytest.mark.parametrize("size", [3, 8, 1000])
def test_a_memory_manager_and_parts_of_a_draw_are_charged_exactly(
    private: Training, size: int
) -> None:
    given = {
        "data_loader": private.loader,
        "max_physical_batch_size": size,
        "optimizer": private.optimizer,
    }
    with manager.BatchMemoryManager(**given) as loader:
        assert said(private, batches=loader) == []
    assert private.history == [(NOISE, RATE, 10)]


def test_workers_draw_ahead_and_are_charged_as_delivered() -> None:
    training = Training(shuffled(num_workers=1))
    assert said(training) == [] and training.history == [(NOISE, RATE, 10)]
    with pytest.raises(UnsupportedError, match=REFUSED):
        training.epoch(batches=(batch for at, batch in enumerate(training.loader) if at % 2))


def test_skipped_steps_add_up_to_accumulated_draws(private: Training) -> None:
    for at, batch in enumerate(private.loader):
        private.optimizer.signal_skip_step(at % 5 != 4)
        private.epoch(batches=[batch])
    ((noise, rate, steps),) = private.history
    assert 0.1999 < noise < NOISE / 5 and (rate, steps) == (0.5, 2)
    assert private.engine.get_epsilon(DELTA) > 9.716


def test_a_changing_number_of_draws_in_a_step_is_refused() -> None:
    training = Training(shuffled())
    with pytest.raises(UnsupportedError, match="held 2 each"):
        for at, batch in enumerate(training.loader):
            training.optimizer.signal_skip_step(at not in (1, 4, 9))
            training.epoch(batches=[batch])


ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.1,
    "unclipped_num_std": 2.0,
}
TARGET = {"target_epsilon": 3.0, "target_delta": DELTA, "epochs": 3}


@pytest.mark.parametrize("target", [{}, TARGET])
@pytest.mark.parametrize("options", [ADAPTIVE, {"rand_on_empty": True}])
def test_options_with_a_cost_of_their_own_are_refused_by_name(
    options: dict[str, Any], target: dict[str, Any]
) -> None:
    name = "clipping='adaptive'" if "clipping" in options else "rand_on_empty=True"
    with pytest.raises(UnsupportedError, match=f"{name}.*Change: make_private"):
        Training(shuffled(), **options, **target).epoch()
    Training(shuffled(), rand_on_empty=False, **target).epoch()


def test_adaptive_ghost_clipping_is_refused_by_name() -> None:
    training = Ghost()
    training.optimizer._adjusted_noise_multiplier = 1.1
    with pytest.raises(UnsupportedError, match="clipping='adaptive'"):
        training.epoch()
    with pytest.warns(ours.PreflightWarning, match="adaptive"):
        ours.check(training.engine, training.loader, optimizer=training.optimizer)


def test_a_shuffled_loader_is_charged_stated_and_ledgered_under_zero_out(tmp_path: Any) -> None:
    training = Training(shuffled(), poisson_sampling=False).epoch()
    accountant = training.engine.accountant
    assert accountant.adjacency is Adjacency.ZERO_OUT
    torch.save(dict(accountant.state_dict()), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    run = ours.from_state_dict(state)
    assert run.epsilon(delta=DELTA, adjacency=Adjacency.ZERO_OUT).upper == pytest.approx(
        accountant.get_epsilon(DELTA)
    )
    with pytest.raises(UnsupportedError, match="zero-out"):
        run.epsilon(delta=DELTA)
    with pytest.raises(UnsupportedError, match=r"adjacency=Adjacency\.ZERO_OUT"):
        ours.from_state_dict(state, adjacency=Adjacency.ADD_REMOVE)
    with pytest.raises(UnsupportedError, match="zero-out"):
        statement(run + Gaussian(8.0), delta=DELTA, unit="one record")
    assert (
        statement(run, delta=DELTA, unit="one record", adjacency=accountant.adjacency).bound.upper
        > 4.377
    )
    again = ours.Accountant()
    again.load_state_dict(state)
    assert again.adjacency is Adjacency.ZERO_OUT and again.history == training.history


def test_poisson_samples_and_shuffled_passes_are_one_history_under_zero_out() -> None:
    first = Training(shuffled()).epoch()
    assert "adjacency" not in first.engine.accountant.state_dict()
    Training(shuffled(), first.engine, poisson_sampling=False).epoch()
    run = ours.from_state_dict(first.engine.accountant.state_dict())
    bound = run.epsilon(delta=DELTA, adjacency=Adjacency.ZERO_OUT)
    assert bound.lower <= first.engine.get_epsilon(DELTA) <= bound.upper * (1 + 1e-9)


def test_a_hook_of_the_user_does_not_take_the_place_of_the_charge(private: Training) -> None:
    called = []
    private.optimizer.attach_step_hook(called.append)
    assert private.epoch().history == [(NOISE, RATE, 10)] and len(called) == 10
    private.optimizer.step_hook = None
    assert private.epoch().history == [(NOISE, RATE, 20)]


def test_an_accountant_that_takes_the_place_of_another_has_no_epsilon() -> None:
    for engine in (None, opacus.PrivacyEngine()):
        training = Training(shuffled(), engine)
        training.engine.accountant = ours.Accountant()
        with pytest.raises(
            UnsupportedError, match=r"Change: engine.accountant = ... before make_private"
        ):
            training.epoch()
            training.engine.get_epsilon(DELTA)


def test_a_rate_that_nothing_shows_is_told_of() -> None:
    training = Training(shuffled(), opacus.PrivacyEngine())
    accountant = ours.Accountant()
    training.optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=RATE))
    assert ["no loader is known" in text for text in said(training)] == [True]
    assert accountant.history == [(NOISE, RATE, 10)]


def test_a_target_is_met_by_all_steps_of_its_epochs() -> None:
    training = Training(data.DataLoader(records(75), batch_size=1), **TARGET)
    training.epoch().epoch().epoch()
    ((_, rate, steps),) = training.history
    assert (rate, steps) == (1 / 75, 225) and 2.9 < training.engine.get_epsilon(DELTA) <= 3.0
    with pytest.raises(
        UnsupportedError,
        match=r"poisson_sampling=False.*Change: make_private\(..., noise_multiplier",
    ):
        Training(shuffled(), poisson_sampling=False, **TARGET)
    noise = ours.get_noise_multiplier(
        target_epsilon=3.0, target_delta=DELTA, sample_rate=1.0, steps=3
    )
    passes = (
        Training(shuffled(), noise_multiplier=noise, poisson_sampling=False).epoch().epoch().epoch()
    )
    assert 2.999 < passes.engine.get_epsilon(DELTA) <= 3.0


def test_a_model_is_copied_and_saved_as_before() -> None:
    training = Training(shuffled()).epoch()
    buffer = io.BytesIO()
    torch.save(training.model._module, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    assert torch.equal(loaded(torch.ones(1, 4)), training.model(torch.ones(1, 4)))


def test_random_loops_are_charged_at_least_what_they_cost() -> None:
    assert campaign.campaign(loops=80, seed=20).startswith(
        "80 loops charged at least what they cost"
    )


def test_the_control_of_the_campaign_fails() -> None:
    with campaign.believing(), pytest.raises(campaign.TrainingError, match="it costs"):
        campaign.campaign(loops=100, seed=20)


def test_the_oracle_of_the_campaign_agrees_with_itself_and_with_the_formula() -> None:
    whole = ((1.0, 1.0),)
    grid = campaign.epsilon(((whole, 3), (((0.999999999, 1e-9), (1e-9, 0.0)), 1)))
    assert campaign.gaussian_epsilon(3**0.5) - 0.01 < grid <= campaign.gaussian_epsilon(3**0.5)
    sampled = ((((0.9, 0.0), (0.1, 1.0)), 10),)
    assert campaign.epsilon(sampled) <= 2.8546 and 2.8545 <= campaign.epsilon(sampled, True) < 2.87


class OwnLoop:
    """A loop without a loader, whose batches the accountant draws."""

    def __init__(self) -> None:
        self.accountant = ours.Accountant()
        self.x, self.y = records(50).tensors
        self.model = opacus.GradSampleModule(torch.nn.Linear(4, 2))
        inner = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.optimizer = opacus.optimizers.DPOptimizer(
            inner, noise_multiplier=NOISE, max_grad_norm=1.0, expected_batch_size=5
        )
        self.optimizer.attach_step_hook(self.accountant.get_optimizer_hook_fn(sample_rate=RATE))

    def step(self, batch: Any) -> None:
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self.model(self.x[batch]), self.y[batch]).backward()
        self.optimizer.step()


def test_a_loop_of_its_own_is_charged_for_one_step_on_each_draw() -> None:
    loop, sizes = OwnLoop(), []
    for _ in range(30):
        with loop.accountant.draw(RATE, records=50) as batch:
            loop.step(batch)
        assert sorted(set(batch)) == list(batch) and set(batch) <= set(range(50))
        sizes.append(len(batch))
    assert loop.accountant.history == [(NOISE, RATE, 30)] and len(set(sizes)) > 3
    with loop.accountant.draw(0.3, records=50):  # noise of its own
        loop.accountant.step(noise_multiplier=2.0, sample_rate=0.3)
    assert loop.accountant.history == [(NOISE, RATE, 30), (2.0, 0.3, 1)]
    for rate, size in ((0.0, 0), (1.0, 50)):
        with loop.accountant.draw(rate, records=50) as batch:
            assert len(batch) == size
            loop.accountant.step(noise_multiplier=2.0, sample_rate=rate)


def _twice(loop: OwnLoop, batch: Any) -> None:
    loop.step(batch)
    loop.step(batch)


def _fails(loop: OwnLoop, batch: Any) -> None:
    raise RuntimeError("memory")


def _draws_again(loop: OwnLoop, batch: Any) -> None:
    with loop.accountant.draw(RATE, records=50):
        pass


@pytest.mark.parametrize(
    "body, match, charged",
    [
        (_twice, "without a draw of its own.*Change: with accountant.draw", RATE),
        (lambda loop, batch: loop.step(range(50)), "50 records|records were drawn", 1.0),
        (lambda loop, batch: None, "one that had no step", 1.0),
        (_fails, "memory", 1.0),
        (_draws_again, "one that had no step", 1.0),
    ],
)
def test_a_draw_of_its_own_loop_without_its_one_step_ends_amplification(
    body: Any, match: str, charged: float
) -> None:
    loop = OwnLoop()
    with loop.accountant.draw(RATE, records=50) as batch:
        loop.step(batch)
    with pytest.raises((UnsupportedError, RuntimeError), match=match):
        for _ in range(2):
            with loop.accountant.draw(RATE, records=50) as batch:
                body(loop, batch)
    assert {rate for _, rate, _ in loop.accountant.history} == {charged}
    assert (loop.accountant.adjacency is Adjacency.ZERO_OUT) == (charged == 1.0)
    with pytest.raises(UnsupportedError, match="without a draw"):
        loop.step(range(5))


def ghost_of_a_plain_loss(training: Any) -> None:
    training.criterion = torch.nn.functional.cross_entropy
    training.epoch()


def ghost_and_then_a_plain_loss(training: Any) -> None:
    for x, y in training.loader:
        training.criterion(training.model(x), y).backward()
        torch.nn.functional.cross_entropy(training.model(x), y).backward()
        training.optimizer.step()


def noise_for_a_smaller_norm(training: Any) -> None:
    training.optimizer.max_grad_norm = 0.01
    training.epoch()


@pytest.mark.parametrize(
    ("cheat", "name"),
    [
        (ghost_of_a_plain_loss, "gradients that are not clipped"),
        (ghost_and_then_a_plain_loss, "gradients that are not clipped"),
        (noise_for_a_smaller_norm, "noise for another norm"),
    ],
)
def test_ghost_clipping_clips_what_it_is_charged_for(cheat: Any, name: str) -> None:
    training = Ghost()
    with pytest.raises(UnsupportedError, match=f"{name}.*Change: "):
        cheat(training)
    assert training.history == []
    honest = Ghost()
    honest.epoch()
    assert honest.history == [(NOISE, RATE, 10)]


def test_per_layer_noise_is_for_the_norms_of_the_layers() -> None:
    options = {"clipping": "per_layer", "max_grad_norm": [1.0, 2.0]}
    honest, cheating = (Training(shuffled(), **options) for _ in range(2))
    assert honest.epoch().history == [(NOISE, RATE, 10)]
    cheating.optimizer.max_grad_norm = 1.0
    with pytest.raises(UnsupportedError, match="noise for another norm"):
        cheating.epoch()
    assert cheating.history == []


@pytest.mark.parametrize("whose", ["wrapped", "second"])
def test_no_other_optimizer_changes_the_parameters(private: Training, whose: str) -> None:
    raw = private.optimizer.original_optimizer
    other = raw if whose == "wrapped" else torch.optim.Adam(list(private.model.parameters())[:1])
    x, y = next(iter(private.loader))
    before = [each.detach().clone() for each in private.model.parameters()]
    torch.nn.functional.cross_entropy(private.model(x), y).backward()
    with pytest.raises(UnsupportedError, match="a step without noise"):
        other.step()
    assert all(map(torch.equal, before, private.model.parameters()))
    elsewhere = torch.nn.Linear(2, 2)
    elsewhere(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(elsewhere.parameters(), lr=0.1).step()
    assert private.history == []


@pytest.mark.parametrize("frozen", [True, False])
def test_no_other_optimizer_changes_the_parameters_that_the_private_one_leaves(
    frozen: bool,
) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    model[1].requires_grad_(not frozen)
    own = torch.optim.SGD(model[0].parameters(), lr=0.1)
    prepared = opacus.PrivacyEngine(accountant="dpcompose").make_private(
        module=model, optimizer=own, data_loader=shuffled(), noise_multiplier=1.0, max_grad_norm=1.0
    )
    model[1].requires_grad_(True)
    x, y = next(iter(prepared[2]))
    torch.nn.functional.cross_entropy(prepared[0](x), y).backward()
    with pytest.raises(UnsupportedError, match="a step without noise"):
        torch.optim.SGD(model[1].parameters(), lr=0.1).step()


def test_two_private_optimizers_of_one_model_are_no_strangers() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    engine, optimizers, wrapped = opacus.PrivacyEngine(accountant="dpcompose"), list[Any](), model
    for part in (model[0], model[1]):
        wrapped, optimizer, loader = engine.make_private(
            module=wrapped, optimizer=torch.optim.SGD(part.parameters(), lr=0.1), data_loader=shuffled(),
            noise_multiplier=NOISE, max_grad_norm=1.0,
        )  # fmt: skip
        optimizers.append((optimizer, loader))
    for optimizer, loader in optimizers:
        for x, y in loader:
            for each, _ in optimizers:
                each.zero_grad()
            torch.nn.functional.cross_entropy(wrapped(x), y).backward()
            optimizer.step()
    assert engine.accountant.history == [(NOISE, RATE, 20)]


def test_secure_mode_is_that_of_the_engine() -> None:
    training = Training(shuffled())
    training.optimizer.secure_mode = True
    training.optimizer.generator = torch.Generator().manual_seed(5)
    with pytest.raises(UnsupportedError, match="a noise generator that is not the system's"):
        training.epoch()


@pytest.mark.parametrize("rows", [0, -1, 0.5, True])
def test_augmentations_are_a_number_of_rows(rows: Any) -> None:
    training = Training(shuffled())
    training.engine.accountant.augmentations = rows
    with pytest.raises(DomainError, match="augmentations"):
        training.epoch()
    assert training.history == []


@pytest.mark.parametrize("how", ["another generator", "a seed"])
def test_the_coins_of_a_sampler_are_its_own(private: Training, how: str) -> None:
    private.epoch()
    sampler = private.loader.batch_sampler
    if how == "a seed":
        sampler.generator.manual_seed(1)
    else:
        sampler.generator = torch.Generator()
    with pytest.raises(UnsupportedError, match="coins of a sampler"):
        private.epoch()
    assert private.history == [(NOISE, RATE, 10)]


def test_the_noise_that_is_added_is_charged() -> None:
    training = Training(shuffled())
    clip = training.optimizer.clip_and_accumulate

    def quieter() -> None:
        clip()
        training.optimizer.noise_multiplier = 0.5

    training.optimizer.clip_and_accumulate = quieter
    assert training.epoch().history == [(0.5, RATE, 10)]
