"""The draws of an Opacus loader, which of them the gradients of a step belong to, and a probe before
the first step: does the gradient of a record depend on the other records?

The sampler logs each batch that it draws, the model each tensor that it sees, and a step takes the
draws whose per-sample gradients it sums.

Clipping bounds what a record adds to the sum through its own gradient. If the gradients of others
move when it leaves the batch (batch norm, attention across the batch, routing with a capacity,
contrastive losses, losses divided by the tokens of the batch, class weights of the batch), the sum
moves by more, and no bound holds. The probe compares the rows of a batch with the same rows in
halves of it, without dropout.
"""

from __future__ import annotations

import secrets
import tomllib
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any
from weakref import WeakSet, WeakValueDictionary, ref

import numpy as np

from dpcompose.errors import UnsupportedError, optional_library


@dataclass(frozen=True)
class Finding:
    """A property of a training that the accountant's epsilon does not cover.

    Args:
        name: A short name.
        reason: Why it matters.
        line: The line of code to change.
        refused: Whether steps are refused, because no bound is proved.
    """

    name: str
    reason: str
    line: str
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}. Change: {self.line}"

    @property
    def error(self) -> UnsupportedError:
        """The refusal of a training that has this property."""
        return UnsupportedError(self.name, self.reason, f"Change: {self.line}")


_FINDINGS = tomllib.loads((files("dpcompose.interop") / "findings.toml").read_text("utf-8"))


def finding(key: str, **values: Any) -> Finding:
    """A finding of the table, with these values in its sentences."""
    row = _FINDINGS[key]
    texts = {name: row[name].format(**values) for name in ("name", "reason", "line")}
    return Finding(**texts, refused=row.get("refused", False))


class PreflightWarning(UserWarning):
    """The data loader and the accountant disagree, or may disagree."""


def warn(findings: list[Finding]) -> None:
    """Issue each finding as a warning."""
    for each in findings:
        warnings.warn(str(each), PreflightWarning, stacklevel=4)


@dataclass(frozen=True)
class Draw:
    """A batch drawn by a sampler.

    Args:
        size: The number of records in the batch.
        rate: The probability with which each record is in it.
        epoch: An object that identifies the pass over the loader.
    """

    size: int
    rate: float
    epoch: object


class DrawLog:
    """The draws of a loader that no optimizer step has used yet.

    Args:
        strict: Whether every draw must be used by a step. Otherwise a step may use the latest draws
            and skip earlier ones.
    """

    def __init__(self, strict: bool) -> None:
        self.strict, self.epochs = strict, 0
        self.waiting: list[Draw] = []
        self.taken: list[Draw] = []
        """The draws whose gradients are summed for the next step that adds noise."""
        self.spanned: set[object] = set()
        """The passes to which the waiting and the taken draws belong."""
        self.partial = 0
        """The number of records of the waiting draw whose gradients are already in the sum."""
        self.left_out = False
        """Whether a nonempty draw was stepped without any of its records."""
        self.rows = 1
        """The number of clipped rows of each record: its augmentations, if they are not averaged."""
        self.probed, self.dim = False, 0
        self._delivered, self._reused, self._ahead = 0, False, False
        self._queue: deque[Draw] = deque()
        self._optimizer: Callable[[], Any] = lambda: None
        self._sightings: Any = None
        self.coins: OwnGenerator | None = None
        """The generator of the sampler; None if the caller may choose it."""

    def watch(self, loader: Any, optimizer: Any, module: Any) -> None:
        """Record the draws of a loader, and which batches the model sees.

        Args:
            loader: The data loader.
            optimizer: The optimizer whose per-sample gradients are counted.
            module: The model as Opacus wraps it.
        """
        self._optimizer, self._ahead = ref(optimizer), loader.num_workers > 0
        _log(loader.batch_sampler, self, _draws)
        if self._ahead:
            _log(loader, self, _deliveries)
        self._sightings = library("torch.utils.weak").WeakIdKeyDictionary()
        key = secrets.token_hex(8)
        _LOGS[key] = self
        self.dim = 0 if module.batch_first else 1
        module._module.register_forward_pre_hook(partial(_seen, key), with_kwargs=True)

    def begin(self) -> None:
        """Record the start of a pass; draws that worker processes prepared for the previous one and
        never delivered are dropped.
        """
        self.epochs += 1
        self._queue.clear()

    def require_own_coins(self, sampler: Any) -> None:
        """Raise UnsupportedError if the sampler's coins may be known: set again, or taken from another generator."""
        if self.coins is not None and not self.coins.is_still(sampler.generator):
            raise finding("seeded_coins").error

    def draw(self, draw: Draw) -> None:
        """Record a draw; with worker processes it is made ahead of its delivery."""
        if self.coins is not None:
            self.coins.used()
        self._queue.append(draw)
        if not self._ahead:
            self.deliver()

    def deliver(self) -> None:
        """Record that the training loop receives the next draw."""
        self._delivered += 1
        if not self.strict:
            self.partial = 0
        elif self.waiting and (self.partial or self._sizes != counts_of(self._optimizer())):
            self.end_amplification()
        if self._queue:
            self.waiting.append(self._queue.popleft())

    def end_amplification(self) -> None:
        """Called if a draw is followed by another before its step; subclasses stop charging at a
        sampling rate.
        """

    @property
    def _sizes(self) -> list[int]:
        return [draw.size * self.rows for draw in self.waiting]

    def see(self, tensors: list[Any]) -> None:
        """Record the tensors of a forward pass, and whether all of them were first seen before the
        latest draw.
        """
        first = [self._first_seen(each if each._base is None else each._base) for each in tensors]
        self._reused |= bool(first) and max(first) < self._delivered

    def _first_seen(self, tensor: Any) -> int:
        """The number of delivered draws at the time the model first saw this tensor with its
        current values.
        """
        if self._sightings.get(tensor, (None, 0))[0] != tensor._version:
            self._sightings[tensor] = tensor._version, self._delivered
        return self._sightings[tensor][1]

    def take(self, counts: list[int]) -> str:
        """Match the waiting draws with the backward passes of a step.

        Args:
            counts: The number of records of each backward pass. A pass over no records uses its
                draw too, with noise alone.

        Returns:
            An empty string, or the reason why the draws and the passes do not match.
        """
        reused, self._reused = self._reused, False
        if not self.strict:
            self.spanned |= {draw.epoch for draw in self.waiting}
            self.waiting = self.waiting[-max(len(counts), 1) :]
        sizes, total = self._sizes, self.partial + sum(counts)
        if not sizes:
            return "no batch was drawn since the last step"
        if reused:
            return "the model saw a batch of an earlier draw"
        if len(sizes) == 1 and 0 < total < sizes[0]:
            self.partial = total
            return ""
        if counts != sizes and not (len(sizes) == 1 and counts and total in (0, sizes[0])):
            return f"{sizes} records were drawn since the last step, and its gradients are those of {counts}"
        self.left_out |= not total and sum(sizes) > 0
        self.taken += self.waiting
        self.waiting, self.partial = [], 0
        return ""


def attributes(thing: Any) -> dict[str, Any]:
    """The instance attributes of an object, for those that other libraries do not declare."""
    return thing.__dict__


def counts_of(optimizer: Any) -> list[int]:
    """The number of records of each backward pass since the last optimizer step."""
    for parameter in () if optimizer is None else optimizer.params:
        if (samples := _sample_of(parameter)) is not None:
            return list(map(len, samples)) if isinstance(samples, list) else [len(samples)]  # pyright: ignore
    for layer in _layers_of(optimizer):
        if norms := attributes(layer).get("norm_sample"):
            return [len(norms[0])]
    return []


def _sample_of(parameter: Any) -> Any:
    """The gradients of each record, or with ghost clipping their norms; None before a backward pass."""
    own = attributes(parameter)
    return own.get("_norm_sample") if own.get("grad_sample") is None else own["grad_sample"]


def _layers_of(optimizer: Any) -> Sequence[Any]:
    """The layers on which FSDP keeps the norms of per-sample gradients."""
    return () if optimizer is None else attributes(optimizer).get("charged_layers", ())


def forget_norms(optimizer: Any) -> None:
    """Drop the norms of per-sample gradients, which would count for the next step too."""
    for each in (*_layers_of(optimizer), *optimizer.params):
        for name in ("norm_sample", "_norm_sample"):
            attributes(each).pop(name, None)


_LOGS: WeakValueDictionary[str, DrawLog] = WeakValueDictionary()


def fresh_generator(device: Any = "cpu") -> Any:
    """A torch generator that the operating system seeds.

    A seed sets 32 bits of the Mersenne twister of a CPU, few enough to try all; so its whole state
    is drawn.
    """
    generator: Any = library("torch").Generator(device=device)
    generator.manual_seed(secrets.randbits(64))
    state = generator.get_state()
    if state.numel() == _TWISTER.stop + 40:
        words = np.frombuffer(secrets.token_bytes(4 * 624), np.uint32).astype(np.int64)
        state[_TWISTER] = library("torch").from_numpy(words).view(state.dtype)
        generator.set_state(state)
    return generator


_TWISTER = slice(24, 24 + 8 * 624)
"""The bytes of the twister's words in the state of a generator."""


class OwnGenerator:
    """A generator that the operating system seeds, with the state in which its last use left it.

    Args:
        device: The torch device of its numbers.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.generator = fresh_generator(device)
        self.used()

    def used(self) -> None:
        """Remember the state after a use."""
        self._state = self.generator.get_state()

    def is_still(self, generator: Any) -> bool:
        """Whether a generator is this one, and nobody set its state since the last use."""
        return generator is self.generator and bool(generator.get_state().equal(self._state))


def _seen(key: str, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Forward pre-hook. It finds its log by a key instead of a reference, so that the model can
    still be copied and saved.
    """
    import torch  # pyright: ignore[reportMissingImports]

    if key in _LOGS and module.training and torch.is_grad_enabled():  # pyright: ignore[reportUnknownMemberType]
        every, log = (*arguments, *named.values()), _LOGS[key]
        log.see([each for each in every if isinstance(each, torch.Tensor)])  # pyright: ignore
        log.probed = log.probed or forward_probe(module, arguments, named, log.dim)


def _draws(base: Any, sampler: Any) -> Iterator[Any]:
    epoch = object()
    for log in sampler.draw_logs:
        log.begin()
    skipping = library("opacus.utils.uniform_sampler").DistributedUniformWithReplacementSampler
    batches = _of_group(sampler) if issubclass(base, skipping) else base.__iter__(sampler)
    while True:
        for log in sampler.draw_logs:
            log.require_own_coins(sampler)
        if (batch := next(batches, None)) is None:
            return
        for log in sampler.draw_logs:
            log.draw(Draw(len(batch), float(attributes(sampler).get("sample_rate", 1.0)), epoch))
        yield batch


def _of_group(sampler: Any) -> Iterator[Any]:
    """The draws of one of several processes, by Opacus' rule, but for this: it leaves out empty ones, so that the
    processes would take different numbers of steps and wait for each other without end.
    """
    torch = library("torch")
    order = torch.arange(sampler.total_size)
    if sampler.shuffle:
        seeded = torch.Generator().manual_seed(sampler.shuffle_seed + sampler.epoch)
        order = torch.randperm(sampler.total_size, generator=seeded)
    own = order[sampler.rank : sampler.total_size : sampler.num_replicas]
    for _ in range(sampler.num_batches):
        yield own[torch.rand(len(own), generator=sampler.generator) < sampler.sample_rate]


def _deliveries(base: Any, loader: Any) -> Iterator[Any]:
    for batch in base.__iter__(loader):
        for log in loader.draw_logs:
            log.deliver()
        yield batch


def _log(thing: Any, log: DrawLog, method: Callable[..., Any]) -> None:
    if "draw_logs" not in attributes(thing):
        replace_method(thing, "__iter__", method)
        thing.draw_logs = WeakSet[DrawLog]()
    thing.draw_logs.add(log)


def replace_method(thing: Any, name: str, method: Callable[..., Any]) -> None:
    """Replace a method on one object; the new one is called with the object's original class as
    first argument.
    """
    thing.__class__ = _with_method(type(thing), name, method)  # pyright: ignore[reportUnknownArgumentType]


@cache
def _with_method(base: type[Any], name: str, method: Callable[..., Any]) -> type[Any]:
    def run(self: Any, *arguments: Any, **named: Any) -> Any:
        return method(base, self, *arguments, **named)

    return type(
        base.__name__, (base,), {name: run, "unlogged": base, "__module__": base.__module__}
    )


@cache
def library(name: str) -> Any:
    """A module of Opacus or of torch, which comes with it; MissingExtraError without them."""
    return optional_library(name, "dpcompose.interop.opacus", "opacus")


def forward_probe(module: Any, arguments: tuple[Any, ...], named: dict[str, Any], dim: int) -> bool:
    """Whether what a model returns for a record is seen not to depend on the others of the batch.

    Args:
        module: The model, in training mode.
        arguments: Its positional inputs.
        named: Its named inputs.
        dim: The dimension of inputs and outputs that counts records.

    Returns:
        False if the batch has fewer than two records, and shows nothing.

    Raises:
        UnsupportedError: If it depends on them, or a buffer takes in the data; the error has the
            name of the layer.
    """
    torch = library("torch")
    sizes = [each.shape[dim] for each in _tensors((arguments, named)) if each.dim() > dim]
    if not sizes or sizes[0] < 2:
        return False
    inputs, middle = (arguments, named), sizes[0] // 2
    with torch.no_grad():
        whole, states = _outputs(module, inputs)[0], list[list[Any]]()
        for rows in (slice(None, middle), slice(middle, None)):
            half, buffers = _outputs(module, _half(inputs, sizes[0], rows, dim))
            states.append(buffers)
            pairs = list(zip(whole, half, strict=False))
            moved = [one for one, other in pairs if _moved(one[2], other[2], rows, dim)]
            if any(layer is module for layer, _, _ in moved):
                if not _is_random(module, inputs):
                    raise finding("mixing_model", layer=moved[0][1]).error
                warn([finding("random_model")])
                break
        for (name, _), *both in zip(module.named_buffers(), *states, strict=False):
            if not both[0].equal(both[-1]):
                raise finding("raw_buffer", layer=name).error
    return True


def probe(model: Any, loss: Callable[[Any], Any], batch: Any) -> None:
    """Raise UnsupportedError if the gradient of one record depends on the others in the batch.

    Args:
        model: The model as `make_private` returned it, with per-sample gradients.
        loss: A function of a batch that runs the model and returns the loss whose `backward` the
            training calls.
        batch: Tensors of at least two records, nested as the loader returns them; the first
            dimension counts records. Records of unlike lengths show more.
    """
    records = len(next(_tensors(batch)))

    def gradients(rows: slice) -> list[Any]:
        model.zero_grad()
        with _as_trained(model):
            loss(_half(batch, records, rows, 0)).backward()
        samples: list[Any] = []
        for parameter in model.parameters():
            if (sample := _sample_of(parameter)) is not None:
                samples.append(sample.detach().clone())
            attributes(parameter).pop("_norm_sample", None)
            parameter.grad_sample = parameter.grad = None
        return samples

    whole = gradients(slice(None))
    for rows in (slice(None, records // 2), slice(records // 2, None)):
        if any(
            _moved(one, part, rows, 0) for one, part in zip(whole, gradients(rows), strict=True)
        ):
            raise finding("mixing_loss").error


def _tensors(tree: Any) -> Iterator[Any]:
    torch = library("torch")
    leaves = library("torch.utils._pytree").tree_leaves(tree)
    return (each for each in leaves if isinstance(each, torch.Tensor))


def _half(tree: Any, records: int, rows: slice, dim: int) -> Any:
    """The rows of the tensors that have one for each record; anything else as it is."""

    def part(leaf: Any) -> Any:
        counts = leaf.dim() > dim and leaf.shape[dim] == records
        return leaf[(slice(None),) * dim + (rows,)] if counts else leaf

    return library("torch.utils._pytree").tree_map_only(library("torch").Tensor, part, tree)


Outputs = list[tuple[Any, str, Any]]
"""Layers with their names and a tensor that they return, in the order in which they end."""


def _outputs(
    module: Any, inputs: tuple[tuple[Any, ...], dict[str, Any]], seed: int = 0
) -> tuple[Outputs, list[Any]]:
    """The tensors that layers return, and the buffers afterwards; the module is left as it was."""
    outputs: Outputs = []

    def add(name: str, layer: Any, _: Any, returned: Any) -> None:
        shown = f"{name or 'it'} ({type(layer).__name__})"
        outputs.extend((layer, shown, each) for each in _tensors(returned))

    hooks = [
        layer.register_forward_hook(partial(add, name)) for name, layer in module.named_modules()
    ]
    try:
        with _as_trained(module, seed):
            module(*inputs[0], **inputs[1])
            return outputs, [each.clone() for each in module.buffers()]
    finally:
        for hook in hooks:
            hook.remove()


def _is_random(module: Any, inputs: tuple[tuple[Any, ...], dict[str, Any]]) -> bool:
    """Whether the model returns something else with other random numbers: nothing is shown then."""
    runs = [[each for _, _, each in _outputs(module, inputs, seed)[0]] for seed in (0, 1)]
    return any(not one.equal(other) for one, other in zip(*runs, strict=False))


@contextmanager
def _as_trained(module: Any, seed: int = 0) -> Generator[None]:
    """Training mode without dropout, with random numbers of a seed, and buffers restored."""
    torch = library("torch")
    drops = [
        layer
        for layer in module.modules()
        if "dropout" in type(layer).__name__.lower() and layer.training
    ]
    buffers = [
        (layer._buffers, name, each, each.clone())
        for layer in module.modules()
        for name, each in layer.named_buffers(recurse=False)
    ]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for layer in drops:
            layer.eval()
        try:
            yield
        finally:
            for layer in drops:
                layer.train()
            for own, name, each, before in buffers:
                each.data.copy_(before)
                own[name] = each


def _moved(whole: Any, part: Any, rows: slice, dim: int) -> bool:
    """Whether the rows of a part differ from the same rows of the whole, beyond rounding.

    Several rows in a row may belong to one record. Tensors without rows of records do not count.
    """
    if whole.dim() <= dim or not whole.is_floating_point() or not part.numel():
        return False
    start = whole.shape[dim] - part.shape[dim] if rows.start else 0
    if start < 0:
        return False
    same = whole.narrow(dim, start, part.shape[dim])
    if same.shape != part.shape or whole.shape[dim] == part.shape[dim]:
        return False
    torch = library("torch")
    margin = torch.finfo(whole.dtype).resolution ** 0.5 * whole.abs().max()
    return not bool((same - part).abs().max() <= margin)
