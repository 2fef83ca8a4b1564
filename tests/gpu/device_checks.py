"""What has to hold on a device, as functions of it: on a GPU they are run where there is one, on a CPU everywhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from mtl.errors import NonFiniteError
from mtl.evaluation.evaluate import Evaluator
from mtl.models.dropout import DropoutKey
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.runtime.precision import Precision, forward_context
from mtl.training.loop import run_updates
from mtl.training.optimizer import named_parameters
from mtl.training.update import UpdateResult
from tests.distributed.toy_jobs import ByLosses
from tests.gpu.waits import no_waiting
from tests.training.toy_training import (
    SCORES,
    TASKS,
    Toy,
    relative_difference,
    toy_bert,
    toy_model,
    toy_spec,
    toy_store,
    toy_training,
)

CPU = torch.device("cpu")
WAYS = ("packed", "padded", "native")
NEEDS: tuple[Literal["nothing", "losses", "gradients", "second_forward"], ...] = (
    "nothing",
    "losses",
    "gradients",
    "second_forward",
)
Pooling = Literal["first_dense", "mean"]


def model_run(way: str, pooling: Pooling = "first_dense") -> MultitaskModel:
    """The toy model with dropout, its encoder run in that way, its weights always the same."""
    return toy_model(dropout=0.1, encoder=wrap_model(toy_bert(0.1), way), pooling=pooling)


def training(device: torch.device, way: str = "native", pooling: Pooling = "first_dense", **options: Any) -> Toy:
    """A short joint training on the device, in the middle of its learning rates from the first update on."""
    options.setdefault("optimizer", {"warmup": 0.0})
    return toy_training(model=model_run(way, pooling), device=device, total=20, **options)


def assert_same_bits(first: Toy, second: Toy) -> None:
    """Weights and the optimiser's state are equal to the bit."""
    for one, other in ((first.weights(), second.weights()), (state_of(first), state_of(second))):
        assert one.keys() == other.keys()
        assert [name for name, value in one.items() if not torch.equal(value, other[name])] == []


def state_of(toy: Toy) -> dict[str, Tensor]:
    """Copies of the optimiser's state."""
    return {name: value.clone() for name, value in toy.optimizer.state_tensors().items()}


def check_equal_to_cpu(device: torch.device, way: str, pooling: Pooling) -> None:
    """Losses and weights of a joint training in fp32 are those of a packed one on a CPU, up to rounding."""
    toy, reference = training(device, way, pooling), training(CPU, "packed", pooling)
    for result, expected in zip(toy.run(0, 10), reference.run(0, 10), strict=True):
        torch.testing.assert_close(result.losses.cpu(), expected.losses, rtol=1e-4, atol=0.0, equal_nan=True)
    for name, weight in reference.weights().items():
        # A key's bias shifts all scores of a query alike, so its gradient is rounding noise that Adam blows up.
        if not name.endswith("key.bias"):
            assert relative_difference(toy.weights()[name].cpu(), weight) < 1e-4, name


def check_ways_agree(device: torch.device, precision: Precision, pooling: Pooling) -> None:
    """The gradients of a mixed batch point the same way whichever way the encoder is run."""
    batch = training(CPU).update(0).batches[0].to(device)
    assert batch.tasks == TASKS
    found = []
    for way in WAYS:
        model = model_run(way, pooling).to(device).train()
        with forward_context(precision, device):
            outputs = model(batch, DropoutKey(1, 0))
        torch.stack([losses.sum() for losses in model.losses(outputs, batch).values()]).sum().backward()
        gradients = [parameter.grad for parameter in named_parameters(model).values()]
        assert all(gradient is not None and gradient.dtype == torch.float32 for gradient in gradients)
        found.append(torch.cat([gradient.flatten() for gradient in gradients if gradient is not None]))
    for one, other in pairwise(found):
        assert float(torch.cosine_similarity(one, other, dim=0)) > 0.999
        if precision == "fp32":
            assert relative_difference(one, other) < 1e-4


def check_repeats(device: torch.device, precision: Precision, way: str, pooling: Pooling) -> None:
    """A training with the same seed ends with the same bits."""
    first, second = (training(device, way, pooling, precision=precision) for _ in range(2))
    first.run(0, 8)
    second.run(0, 8)
    assert_same_bits(first, second)


def check_resumes(device: torch.device) -> None:
    """A training continued from copies on the host of what was saved ends with the bits of an uninterrupted one."""
    whole, first, second = (training(device, rows=3, micro_batches=2) for _ in range(3))
    whole.run(0, 12)
    first.run(0, 5)
    with torch.no_grad():
        for name, parameter in named_parameters(second.model).items():
            parameter.copy_(first.weights()[name].cpu())
    second.optimizer.load_state_tensors({name: value.cpu() for name, value in state_of(first).items()})
    second.planner.seek(5, first.planner.cursors(5))
    second.run(5, 12)
    assert_same_bits(second, whole)


def check_no_waiting(device: torch.device, way: str, pooling: Pooling, precision: Precision, needs: Any) -> None:
    """No update waits for the device, whatever the weighting reads."""
    for combine in ("share", "equal"):
        options = {"weighting": ByLosses(needs), "combine": combine, "micro_batches": 2, "precision": precision}
        toy = training(device, way, pooling, **options)
        toy.run(0, 3)
        updates = [toy.update(step) for step in range(3, 7)]
        with no_waiting(device):
            results = [toy.updater.run(update) for update in updates]
        assert float(results[-1].not_finite) == 0.0
        assert torch.isfinite(results[-1].gradient_norm)


def check_late_flag(device: torch.device) -> None:
    """An update that is not finite is named with its task and rows, and no weight changed, though it is seen late."""
    toy = training(device)
    run_updates([toy.update(0), toy.update(1)], toy.updater, lambda result: False)
    before, state = toy.weights(), state_of(toy)
    bad = toy.update(2)
    batch = next(batch for batch in bad.batches if SCORES in batch.tasks)
    batch.targets[SCORES][-1] = float("nan")
    row = int(batch.example_ids[batch.layout.slices[SCORES]][-1])
    seen: list[UpdateResult] = []

    def after_update(result: UpdateResult) -> bool:
        seen.append(result)
        return False

    updates = [bad, *(toy.update(step) for step in range(3, 6))]
    with pytest.raises(NonFiniteError, match=rf"loss of {SCORES} is not finite at update 2.*rows \[{row}\]"):
        run_updates(updates, toy.updater, after_update)
    # A GPU has been given the bad update's number by then, and one more update that it skips; no third.
    assert len(seen) == (0 if device.type == "cpu" else 1)
    for found, kept in ((toy.weights(), before), (state_of(toy), state)):
        assert all(torch.equal(value, kept[name]) for name, value in found.items())


Limit = Callable[[Toy], Any]
"""Given a training, a context in which its largest update does not fit."""


def check_out_of_memory(device: torch.device, short_of_memory: Limit, *, rows: int) -> None:
    """Where an update does not fit it is taken in smaller micro-batches, and the training goes on as if it had fitted.

    ``short_of_memory`` gets a training like the one that it has to stop, to try what that takes.
    """
    with_room, tried, short = (training(device, rows=rows, micro_batch_tokens=100 * rows) for _ in range(3))
    expected = with_room.run(0, 2)
    assert expected[0].update.micro_batches == 1
    with short_of_memory(tried):
        results = short.run(0, 2)
    assert all(result.update.micro_batches > 1 for result in results)
    for result, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(result.losses, wanted.losses, rtol=1e-4, atol=0.0)
    assert float(results[-1].not_finite) == 0.0


@contextmanager
def refusing(toy: Toy) -> Iterator[None]:
    """A CPU's stand-in: any model refuses batches of more than two thirds of the first update's tokens."""
    most = toy.update(0).work.tokens * 2 // 3

    def refuse(module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        if isinstance(module, MultitaskModel) and arguments[0].tokens > most:
            raise torch.OutOfMemoryError("no room for so many tokens")

    handle = torch.nn.modules.module.register_module_forward_pre_hook(refuse)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def little_gpu_memory(toy: Toy) -> Iterator[None]:
    """A GPU's memory is cut to what is in use and two thirds of what the first update adds."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    toy.run(0, 1)
    added = torch.cuda.max_memory_allocated() - before
    torch.cuda.empty_cache()
    allowed = torch.cuda.memory_reserved() + added * 2 // 3
    torch.cuda.set_per_process_memory_fraction(allowed / torch.cuda.get_device_properties(0).total_memory)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def check_evaluation(device: torch.device, way: str) -> None:
    """Outputs of a whole split are those of a packed encoder on a CPU, each in its row's place."""
    spec, store = toy_spec(SCORES), toy_store(SCORES, 40)
    model, reference = model_run(way).to(device), model_run("packed")
    found = Evaluator(60, "fp32", device).predict(model, spec, store)
    expected = Evaluator(60, "fp32", CPU).predict(reference, spec, store)
    np.testing.assert_allclose(found.outputs, expected.outputs, rtol=1e-3, atol=1e-5)
    assert found.labels is not None
