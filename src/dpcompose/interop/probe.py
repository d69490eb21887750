"""A probe before the first step: does the gradient of a record depend on the other records?

Clipping bounds what a record adds to the sum through its own gradient. If the gradients of others
move when it leaves the batch (batch norm, attention across the batch, routing with a capacity,
contrastive losses, losses divided by the tokens of the batch, class weights of the batch), the sum
moves by more, and no bound holds. The probe compares the rows of a batch with the same rows in
halves of it, without dropout.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from dpcompose.errors import UnsupportedError

_RECORDS = "and a record then moves the sum by more than its clipped gradient"


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
        UnsupportedError: If it depends on them; the error has the name of the layer.
    """
    torch: Any = import_module("torch")
    sizes = [each.shape[dim] for each in _tensors((arguments, named)) if each.dim() > dim]
    if not sizes or sizes[0] < 2:
        return False
    inputs, middle = (arguments, named), sizes[0] // 2
    with torch.no_grad():
        whole = _outputs(module, inputs)
        for rows in (slice(None, middle), slice(middle, None)):
            half = _half(inputs, sizes[0], rows, dim)
            pairs = list(zip(whole, _outputs(module, half), strict=False))
            moved = [one for one, other in pairs if _moved(one[2], other[2], rows, dim)]
            if any(layer is module for layer, _, _ in moved) and not _is_random(module, inputs):
                reason = f"{moved[0][1]} mixes the records of a batch, {_RECORDS}"
                remedy = "Change: a layer that treats each record by itself, such as GroupNorm"
                raise UnsupportedError("a model that mixes records", reason, remedy)
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
        own = [parameter.__dict__ for parameter in model.parameters()]
        samples = [
            each["_norm_sample"] if each.get("grad_sample") is None else each["grad_sample"]
            for each in own
            if each.get("grad_sample") is not None or each.get("_norm_sample") is not None
        ]
        kept = [each.detach().clone() for each in samples]
        for each in own:
            each.pop("_norm_sample", None)
        for parameter in model.parameters():
            parameter.grad_sample = parameter.grad = None
        return kept

    whole = gradients(slice(None))
    for rows in (slice(None, records // 2), slice(records // 2, None)):
        if any(
            _moved(one, part, rows, 0) for one, part in zip(whole, gradients(rows), strict=True)
        ):
            reason = f"the gradient of a record depends on the others, {_RECORDS}"
            remedy = (
                "Change: a loss of each record by itself, averaged over the records alone: not over "
                "the tokens of the batch, not against its other records, without its class weights"
            )
            raise UnsupportedError("a loss that mixes records", reason, remedy)


def _tensors(tree: Any) -> Iterator[Any]:
    torch: Any = import_module("torch")
    leaves = import_module("torch.utils._pytree").tree_leaves(tree)
    return (each for each in leaves if isinstance(each, torch.Tensor))


def _half(tree: Any, records: int, rows: slice, dim: int) -> Any:
    """The rows of the tensors that have one for each record; anything else as it is."""
    tensor: Any = import_module("torch").Tensor

    def part(leaf: Any) -> Any:
        counts = isinstance(leaf, tensor) and leaf.dim() > dim and leaf.shape[dim] == records
        return leaf[(slice(None),) * dim + (rows,)] if counts else leaf

    return import_module("torch.utils._pytree").tree_map(part, tree)


Outputs = list[tuple[Any, str, Any]]
"""Layers with their names and a tensor that they return, in the order in which they end."""


def _outputs(module: Any, inputs: tuple[tuple[Any, ...], dict[str, Any]], seed: int = 0) -> Outputs:
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
    finally:
        for hook in hooks:
            hook.remove()
    return outputs


def _is_random(module: Any, inputs: tuple[tuple[Any, ...], dict[str, Any]]) -> bool:
    """Whether the model returns something else with other random numbers: nothing is shown then."""
    runs = [[each for _, _, each in _outputs(module, inputs, seed)] for seed in (0, 1)]
    return any(not one.equal(other) for one, other in zip(*runs, strict=False))


@contextmanager
def _as_trained(module: Any, seed: int = 0) -> Generator[None]:
    """Training mode without dropout, with random numbers of a seed, and buffers restored."""
    torch: Any = import_module("torch")
    drops = [
        layer
        for layer in module.modules()
        if "dropout" in type(layer).__name__.lower() and layer.training
    ]
    buffers = [(each, each.clone()) for each in module.buffers()]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for layer in drops:
            layer.eval()
        try:
            yield
        finally:
            for layer in drops:
                layer.train()
            for each, before in buffers:
                each.data.copy_(before)


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
    torch: Any = import_module("torch")
    margin = torch.finfo(whole.dtype).resolution ** 0.5 * whole.abs().max()
    return not bool((same - part).abs().max() <= margin)
