"""Which draws of a loader are behind a step of an optimizer.

Samplers log each draw with its size, optimizers how many records each backward pass had. A step is taken for that on
the draws that wait for one if the sizes agree and the model saw a tensor that it had not seen before the last draw. A
batch from elsewhere that has the same size by chance is not told apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from secrets import token_hex
from typing import Any
from weakref import WeakSet, WeakValueDictionary, ref


@dataclass(frozen=True)
class Draw:
    """A batch that a sampler drew.

    Args:
        size: How many records it has.
        rate: The probability with which each record is in it.
        epoch: The pass over the loader that it belongs to; an object of its own for each.
    """

    size: int
    rate: float
    epoch: object


class DrawLog:
    """The draws of a loader that no step has followed yet.

    Args:
        strict: Whether all draws need a step. Else a step may take the last ones and leave those before them.
    """

    def __init__(self, strict: bool) -> None:
        self.strict, self.epochs = strict, 0
        self.waiting: list[Draw] = []
        self.taken: list[Draw] = []
        """The draws that are summed up for the next step that adds noise."""
        self.spanned: set[object] = set()
        """The passes that the waiting and the taken draws belong to."""
        self.partial = 0
        """How many records of the waiting draw are in the sum already."""
        self.left_out = False
        """Whether a draw with records was taken for a backward pass over none."""
        self._delivered, self._reused, self._ahead = 0, False, False
        self._queue: deque[Draw] = deque()
        self._optimizer: Callable[[], Any] = lambda: None
        self._sightings: Any = None

    def watch(self, loader: Any, optimizer: Any, module: Any) -> None:
        """Log what this loader draws and what the model sees."""
        self._optimizer, self._ahead = ref(optimizer), loader.num_workers > 0
        _log(loader.batch_sampler, self, _draws)
        if self._ahead:
            _log(loader, self, _deliveries)
        self._sightings = import_module("torch.utils.weak").WeakIdKeyDictionary()
        key = token_hex(8)
        _LOGS[key] = self
        module._module.register_forward_pre_hook(partial(_seen, key), with_kwargs=True)

    def begin(self) -> None:
        """A pass over the loader begins: what workers drew for the one before, and nobody saw, is gone."""
        self.epochs += 1
        self._queue.clear()

    def draw(self, draw: Draw) -> None:
        """Log a draw; with workers it is made ahead, and delivered later."""
        self._queue.append(draw)
        if not self._ahead:
            self.deliver()

    def deliver(self) -> None:
        """The training gets the next draw."""
        self._delivered += 1
        if not self.strict:
            self.partial = 0
        elif self.waiting and (self.partial or self._sizes != counts_of(self._optimizer())):
            self.end_amplification()
        if self._queue:
            self.waiting.append(self._queue.popleft())

    def end_amplification(self) -> None:
        """A draw was made, and another one before the step on it."""

    @property
    def _sizes(self) -> list[int]:
        return [draw.size for draw in self.waiting]

    def see(self, tensors: list[Any]) -> None:
        """The model is about to see these: a batch of an earlier draw, if it saw all of them before the last one."""
        first = [self._first_seen(each if each._base is None else each._base) for each in tensors]
        self._reused |= bool(first) and max(first) < self._delivered

    def _first_seen(self, tensor: Any) -> int:
        """How many draws were delivered when the model first saw this tensor with these values."""
        if self._sightings.get(tensor, (None, 0))[0] != tensor._version:
            self._sightings[tensor] = tensor._version, self._delivered
        return self._sightings[tensor][1]

    def take(self, counts: list[int]) -> str:
        """Take the waiting draws for those of backward passes over so many records; else the reason why not.

        A pass over no records takes its draw too: the step then has noise alone.
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
    """Its own attributes, of which other libraries declare none."""
    return thing.__dict__


def counts_of(optimizer: Any) -> list[int]:
    """How many records each backward pass since the last step had."""
    for parameter in () if optimizer is None else optimizer.params:
        own = attributes(parameter)
        samples: Any = (
            own.get("_norm_sample") if own.get("grad_sample") is None else own["grad_sample"]
        )
        if samples is not None:
            return list(map(len, samples)) if isinstance(samples, list) else [len(samples)]  # pyright: ignore
    return []


_LOGS: WeakValueDictionary[str, DrawLog] = WeakValueDictionary()


def _seen(key: str, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Run before a forward pass, which knows its log by a key: the model can be copied and saved as before."""
    import torch  # pyright: ignore[reportMissingImports]

    if key in _LOGS and module.training and torch.is_grad_enabled():  # pyright: ignore[reportUnknownMemberType]
        every = (*arguments, *named.values())
        _LOGS[key].see([each for each in every if isinstance(each, torch.Tensor)])  # pyright: ignore


def _draws(base: Any, sampler: Any) -> Iterator[Any]:
    epoch = object()
    for log in sampler.draw_logs:
        log.begin()
    for batch in base.__iter__(sampler):
        for log in sampler.draw_logs:
            log.draw(Draw(len(batch), float(attributes(sampler).get("sample_rate", 1.0)), epoch))
        yield batch


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
    """Let one object have another method, which is called with its class first."""
    thing.__class__ = _with_method(type(thing), name, method)  # pyright: ignore[reportUnknownArgumentType]


@cache
def _with_method(base: type[Any], name: str, method: Callable[..., Any]) -> type[Any]:
    def run(self: Any, *arguments: Any, **named: Any) -> Any:
        return method(base, self, *arguments, **named)

    return type(
        base.__name__, (base,), {name: run, "unlogged": base, "__module__": base.__module__}
    )
